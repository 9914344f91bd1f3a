"""A snapshot's new text, from listings that a test makes up."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from textwrap import dedent
from typing import Any

import pytest

from training_platform.clients.quota_pull import CloudQuotas, Pulled, QuotaInfo, Row, pull, rows_of
from training_platform.config.reading.finding import UserError
from training_platform.config.reading.source import parse_source
from training_platform.quota.quota_ids import known_quotas
from training_platform.quota.snapshot import Snapshot, parse_snapshot

COMPUTE, FILE = "compute.googleapis.com", "file.googleapis.com"
CPUS, GPUS = "CPUS-per-project-region", "GPUS-ALL-REGIONS-per-project"
TODAY = date(2026, 11, 21)
OLD = """\
# What the platform may have.
project: example-train
taken: "2026-11-01"
limits:
  compute.googleapis.com:
    # Raised for the spring.
    GPUS-ALL-REGIONS-per-project:
      - limit: 64 # asked for 128
    CPUS-per-project-region:
      - {limit: 200, region: us-central1} # nodes of all clusters
      - {region: us-west4, limit: 72}
      - {limit: 8, region: europe-west4}
  file.googleapis.com:
    EnterpriseStorageGibPerRegion:
      - {limit: 2048, region: us-central1}
"""


class Api(CloudQuotas):
    """Lists what a test gives it: service, then quota id, then rows."""

    def __init__(self, listings: dict[str, dict[str, list[tuple[int, dict[str, str]]]]]) -> None:
        self.project = "example-train"
        self.listings = listings
        self.asked: list[str] = []

    def quotas(self, service: str) -> Iterator[QuotaInfo]:
        self.asked.append(service)
        for quota_id, rows in self.listings.get(service, {}).items():
            names = ("region",) if "region" in quota_id or "Region" in quota_id else ()
            yield QuotaInfo(quota_id, names, tuple(Row(dimensions, limit) for limit, dimensions in rows))


def region(limit: int, name: str) -> tuple[int, dict[str, str]]:
    return limit, {"region": name}


SAME: Any = {
    COMPUTE: {GPUS: [(64, {})], CPUS: [region(8, "europe-west4"), region(72, "us-west4"), region(200, "us-central1")]},
    FILE: {"EnterpriseStorageGibPerRegion": [region(2048, "us-central1")]},
}


def pulled(listings: Any, text: str | None = OLD, needed: tuple[tuple[str, str], ...] = ()) -> Pulled:
    old = snapshot(text) if text is not None else None
    return pull(Api(listings), old=old, text=text, needed=needed, today=TODAY)


def snapshot(text: str) -> Snapshot:
    found, findings = parse_snapshot("example-train", parse_source(text, "stacks/quotas/example-train.yaml"))
    assert found is not None
    assert findings == []
    return found


def compute(**changes: Any) -> Any:
    ids = {"gpus": GPUS, "cpus": CPUS}
    return {**SAME, COMPUTE: {**SAME[COMPUTE], **{ids.get(name, name): rows for name, rows in changes.items()}}}


def test_nothing_but_the_day_changes_where_no_limit_does() -> None:
    found = pulled(SAME)

    assert found.changes == ()
    assert found.text == OLD.replace("2026-11-01", "2026-11-21")
    assert found.file == "stacks/quotas/example-train.yaml"


def test_a_changed_limit_is_told_and_all_around_it_stays() -> None:
    found = pulled(compute(gpus=[(128, {})]))

    assert [str(each) for each in found.changes] == ["GPUS-ALL-REGIONS-per-project: 64 -> 128"]
    assert found.text == OLD.replace("2026-11-01", "2026-11-21").replace("limit: 64 #", "limit: 128 #")


def test_rows_come_after_those_that_were_there_and_go_where_they_stood() -> None:
    found = pulled(compute(cpus=[region(200, "us-central1"), region(8, "europe-west4"), region(16, "asia-east1")]))

    assert [str(each) for each in found.changes] == [
        "CPUS-per-project-region asia-east1: not listed -> 16",
        "CPUS-per-project-region us-west4: 72 -> not listed",
    ]
    rows = found.text.partition("CPUS-per-project-region:\n")[2].partition("  file")[0]
    assert [line.strip() for line in rows.splitlines()] == [
        "- {limit: 200, region: us-central1} # nodes of all clusters",
        "- {limit: 8, region: europe-west4}",
        "- {limit: 16, region: asia-east1}",
    ]


def test_what_google_lists_no_more_is_not_kept_as_if_it_had_been_read() -> None:
    found = pulled({COMPUTE: SAME[COMPUTE]})

    assert [str(each) for each in found.changes] == ["EnterpriseStorageGibPerRegion us-central1: 2,048 -> not listed"]
    assert FILE not in found.text


def test_an_id_that_the_catalogue_knows_is_added_and_another_is_not() -> None:
    listings = compute(
        **{"A2-CPUS-per-project-region": [region(96, "us-central1")], "SNAPSHOTS-per-project": [(5, {})]}
    )

    found = pulled(listings)

    assert [each.quota_id for each in found.changes] == ["A2-CPUS-per-project-region"]
    assert "    A2-CPUS-per-project-region:\n      - {limit: 96, region: us-central1}\n" in found.text


def test_an_id_that_the_file_lists_is_kept_although_the_catalogue_does_not_know_it() -> None:
    text = OLD.replace("  file", "    SNAPSHOTS-per-project:\n      - limit: 5\n  file")

    found = pulled(compute(**{"SNAPSHOTS-per-project": [(6, {})]}), text)

    assert [str(each) for each in found.changes] == ["SNAPSHOTS-per-project: 5 -> 6"]


def test_an_id_that_stacks_need_and_google_does_not_list_is_told() -> None:
    assert pulled(SAME, needed=((COMPUTE, "N2-CPUS-per-project-region"), (COMPUTE, CPUS))).missing == (
        "N2-CPUS-per-project-region",
    )


def test_all_services_of_the_catalogue_and_of_the_file_are_asked() -> None:
    text = OLD.replace("file.googleapis.com", "redis.googleapis.com")
    api = Api({})

    pull(api, old=snapshot(text), text=text, needed=(), today=TODAY)

    assert api.asked == sorted({service for service, _ in known_quotas()} | {"redis.googleapis.com"})


def test_a_first_snapshot_is_a_whole_file_that_can_be_read() -> None:
    found = pulled(SAME, None)

    assert found.text.startswith("# yaml-language-server: $schema=./quotas.schema.json\n")
    assert len(found.changes) == 1 + 3 + 1
    assert snapshot(found.text).limits[COMPUTE][CPUS][0].limit == 8
    assert pulled(SAME, found.text).text == found.text


def test_the_limit_for_all_other_places_says_so() -> None:
    found = pulled(compute(cpus=[region(200, "us-central1"), (24, {})]))

    assert "      - {limit: 24, region: others}\n" in found.text
    assert snapshot(found.text).limits[COMPUTE][CPUS][-1].place is None


@pytest.mark.parametrize(
    ("rows", "kept"),
    [
        ([region(0, "us-west4")], []),
        ([region(0, "us-west4"), (0, {})], []),
        ([region(0, "us-west4"), (24, {})], [0, 24]),
        ([region(0, "us-west4"), region(24, "us-east1")], [24]),
        ([(0, {"region": "us-west4", "gpu_family": "X"}), (24, {"region": "us-west4"})], [0, 24]),
        ([(0, {"region": "us-west4", "gpu_family": "X"}), (24, {"region": "us-east1"})], [24]),
    ],
)
def test_a_limit_of_0_is_left_out_unless_a_wider_row_would_speak_for_it(rows: Any, kept: list[int]) -> None:
    info = QuotaInfo(CPUS, ("region",), tuple(Row(dimensions, limit) for limit, dimensions in rows))

    assert list(rows_of(info).values()) == kept


def test_a_quota_that_is_0_everywhere_is_listed_without_rows() -> None:
    found = pulled(compute(cpus=[region(0, "us-west4")]))

    assert "CPUS-per-project-region: []\n" in found.text
    assert snapshot(found.text).limits[COMPUTE][CPUS] == ()


def test_text_of_a_file_is_no_wider_than_it_was_written() -> None:
    family = "LOCAL-SSD-TOTAL-STORAGE-PER-VM-FAMILY-per-project-region"
    dimensions = {"region": "northamerica-northeast2", "vm_family": "A3" * 60}

    found = pulled({COMPUTE: {family: [(1, dimensions)]}}, None)

    assert dedent("- {limit: 1, region: northamerica-northeast2, vm_family: " + "A3" * 60 + "}") in found.text


def test_without_the_library_for_comments_one_sentence_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ruamel.yaml", None)

    with pytest.raises(UserError, match="needs the extra `quota`"):
        pulled(SAME)
