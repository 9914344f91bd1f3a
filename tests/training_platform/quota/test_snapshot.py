from __future__ import annotations

import math
import os
from datetime import date, timedelta
from pathlib import Path

import pytest

from training_platform.config.reading.finding import Finding
from training_platform.config.reading.source import parse_source
from training_platform.quota.charges import QuotaKey
from training_platform.quota.snapshot import Snapshots, parse_snapshot, read_snapshots

TEXT = """\
project: example-train
taken: "2026-11-01"
limits:
  compute.googleapis.com:
    GPUS-ALL-REGIONS-per-project:
      - limit: 64
    CPUS-per-project-region:
      - {limit: -1, region: us-central1}
    SSD-TOTAL-GB-per-project-region:
      - {limit: 500, region: others}
      - {limit: 9000, region: us-west4}
    TPU-V5P-per-project-zone:
      - {limit: 8, zone: us-west4-a}
    GPUS-PER-GPU-FAMILY-per-project-region:
      - {limit: 16, region: us-central1, gpu_family: NVIDIA_H100}
"""
GPUS_PATH = "limits.compute.googleapis.com.GPUS-ALL-REGIONS-per-project[0]"
SSD_PATH = "limits.compute.googleapis.com.SSD-TOTAL-GB-per-project-region[0]"
TAKEN = date(2026, 11, 1)


def parse(text: str) -> list[Finding]:
    return parse_snapshot("example-train", parse_source(text, "stacks/quotas/example-train.yaml"))[1]


def limit(quota_id: str, location: str = "", **dimensions: str) -> float | None:
    snapshot, _ = parse_snapshot("example-train", parse_source(TEXT, "f"))
    assert snapshot is not None
    return snapshot.limit(
        QuotaKey("example-train", "compute.googleapis.com", quota_id, location, tuple(dimensions.items()))
    )


def test_minus_one_is_unlimited() -> None:
    assert limit("CPUS-per-project-region", "us-central1") == math.inf


def test_listed_id_without_the_place_has_limit_0() -> None:
    assert limit("CPUS-per-project-region", "us-west4") == 0
    assert limit("TPU-V5P-per-project-zone", "us-west4-b") == 0
    assert limit("GPUS-PER-GPU-FAMILY-per-project-region", "us-central1", gpu_family="NVIDIA_B200") == 0
    assert limit("GPUS-PER-GPU-FAMILY-per-project-region", "us-west4", gpu_family="NVIDIA_H100") == 0


def test_unlisted_id_is_unknown() -> None:
    assert limit("N2-CPUS-per-project-region", "us-central1") is None


def test_row_of_others_holds_where_no_other_row_does() -> None:
    assert limit("SSD-TOTAL-GB-per-project-region", "us-central1") == 500
    assert limit("SSD-TOTAL-GB-per-project-region", "us-west4") == 9000


@pytest.mark.parametrize(
    ("old", "new", "path", "line"),
    [
        ("limit: 64", "limit: many", "limits.compute.googleapis.com.GPUS-ALL-REGIONS-per-project[0].limit", 6),
        ("limit: 64", "limit: -2", "limits.compute.googleapis.com.GPUS-ALL-REGIONS-per-project[0].limit", 6),
        ("limit: 64", "limit: 6.5", "limits.compute.googleapis.com.GPUS-ALL-REGIONS-per-project[0].limit", 6),
        ("gpu_family: NVIDIA_H100", "gpu_family: 5", "limits.compute.googleapis.com", 15),
        ('"2026-11-01"', "2026-11-01", "taken", 2),
        ('"2026-11-01"', "someday", "taken", 2),
        ("project: example-train", "project: other-train", "project", 1),
        ("limits:", "quotas: {}\nlimits:", "quotas", 3),
        ("compute.googleapis.com:", "compute:", "limits", 4),
        ("region: us-west4}", "region: us-west4}\n      - {limit: 1, region: us-west4}", "limits", 12),
        ("region: us-west4}", "region: us-west4}\n      - {limit: 1, region: others}", "limits", 12),
        ("limit: 64", "limit: 64\n        unit: TPUs", f"{GPUS_PATH}.unit", 7),
        ("limit: 500,", "limit: 500, unit: GiB,", f"{SSD_PATH}.unit", 10),
        ("limit: 500,", "limit: 500, unit: null,", f"{SSD_PATH}.unit", 10),
        ("limit: 500, region: others", "limit: 500", SSD_PATH, 10),
        ("limit: 500, region: others", "limit: 500, region: null", f"{SSD_PATH}.region", 10),
        ("limit: 500, region: others", "limit: 500, zone: us-west4-a", f"{SSD_PATH}.zone", 10),
        ("limit: 64", "limit: 64\n        region: us-west4", f"{GPUS_PATH}.region", 7),
    ],
)
def test_spoilt_file_is_a_finding_at_its_line(old: str, new: str, path: str, line: int) -> None:
    findings = parse(TEXT.replace(old, new, 1))

    assert findings, "nothing was found"
    assert findings[0].file == "stacks/quotas/example-train.yaml"
    assert findings[0].path.startswith(path)
    assert findings[0].position is not None
    assert findings[0].position.line == line
    assert findings[0].severity == "error"


EVERYTHING_WRONG = """\
project: example-trai
taken: "2026-11-01"
limits:
  compute.googleapis.com:
    GPUS-ALL-REGIONS-per-project:
      - {limit: -2, unit: TPUs}
      - 7
    CPUS-per-project-region:
      - {limit: 10}
      - {limit: many, region: us-central1}
      - {limit: 4, region: null, unit: GB}
      - {limit: -5}
      - {region: us-west4, zone: us-west4-a}
    SSD-TOTAL-GB-per-project-region: 500
    DISKS-TOTAL-GB-per-project-region:
      - {limit: 5, region: us-centrl1, unit: gb}
"""


def test_all_that_is_wrong_comes_at_once_each_at_its_place() -> None:
    wrong = {
        (f"{finding.position.line}:{finding.position.column}", finding.message.split(",")[0], finding.nearest)
        for finding in parse(EVERYTHING_WRONG)
        if finding.position
    }

    assert wrong == {
        ("1:1", "is 'example-trai'", "example-train"),
        ("6:10", "is -2", "2"),
        ("6:21", "'TPUs' is not the unit of GPUS-ALL-REGIONS-per-project", "GPUs"),
        ("7:9", "7 is not a mapping", "{limit: 7}"),
        ("9:9", "has no region", "region: others"),
        ("10:10", "'many' is not an integer", None),
        ("11:20", "has no value", None),
        ("11:34", "'GB' is not the unit of CPUS-per-project-region", "vCPUs"),
        ("12:10", "is -5", "5"),
        ("12:9", "has the same dimensions as line 9", None),
        ("12:9", "has no region", "region: others"),
        ("13:9", "is missing", None),
        ("13:28", "CPUS-per-project-region is counted per region", None),
        ("14:5", "500 is not a list", None),
        ("16:20", "'us-centrl1' is not a region in the catalogue", "us-central1"),
        ("16:40", "'gb' is not the unit of DISKS-TOTAL-GB-per-project-region", "GB"),
    }


@pytest.mark.parametrize(
    "text",
    [
        "",
        "limits: 5",
        "limits: {compute.googleapis.com: 5}",
        "limits: {compute.googleapis.com: {A: {limit: 1}}}",
        "- 1",
        "limits: {compute.googleapis.com: {A: [[1], null]}}",
    ],
)
def test_a_file_of_another_shape_is_rejected_and_no_traceback(text: str) -> None:
    assert [finding.severity for finding in parse(text)].count("error") >= 1


@pytest.mark.parametrize(
    ("old", "new", "message", "nearest"),
    [
        ("GPUS-ALL-REGIONS", "GPU-ALL-REGIONS", "not a quota id in the catalogue", "GPUS-ALL-REGIONS-per-project"),
        ("region: us-west4", "region: us-west44", "not a region in the catalogue", "us-west4"),
        ("gpu_family:", "gpu_famly:", "not a dimension of GPUS-PER-GPU-FAMILY", "gpu_family"),
        ("region: us-central1}", "region: us-central1, rgion: us-west4}", "not a dimension of CPUS", "region"),
    ],
)
def test_what_the_catalogue_may_be_too_old_to_know_is_a_warning(old: str, new: str, message: str, nearest: str) -> None:
    (finding,) = parse(TEXT.replace(old, new, 1))

    assert message in finding.message
    assert (finding.severity, finding.nearest) == ("warning", nearest)


@pytest.mark.parametrize("limit", [0, -1])
def test_nothing_and_no_end_need_no_region(limit: int) -> None:
    assert parse(TEXT.replace("limit: 500, region: others", f"limit: {limit}")) == []
    (finding,) = parse(TEXT.replace("limit: 500, region: others", "limit: 1"))
    assert finding.message == "has no region, but SSD-TOTAL-GB-per-project-region is counted per region"


def test_a_unit_may_be_written_beside_a_limit() -> None:
    assert parse(TEXT.replace("limit: 500,", "limit: 500, unit: GB,")) == []
    assert limit("SSD-TOTAL-GB-per-project-region", "us-central1") == 500


def written(root: Path, today: date) -> Snapshots:
    folder = root / "stacks" / "quotas"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "example-train.yaml").write_text(TEXT)
    return read_snapshots(root, today)


@pytest.mark.parametrize(("days", "rules"), [(30, []), (31, ["quota-snapshot-age"])])
def test_snapshot_older_than_30_days_is_a_warning(tmp_path: Path, days: int, rules: list[str]) -> None:
    snapshots = written(tmp_path, TAKEN + timedelta(days=days))

    assert [(finding.rule, finding.severity) for finding in snapshots.findings] == [(rule, "warning") for rule in rules]
    assert set(snapshots.by_project) == {"example-train"}


def test_snapshot_of_tomorrow_is_rejected(tmp_path: Path) -> None:
    (finding,) = written(tmp_path, TAKEN - timedelta(days=1)).findings

    assert (finding.severity, finding.path) == ("error", "taken")


def test_one_unreadable_snapshot_hides_no_other(tmp_path: Path) -> None:
    written(tmp_path, TAKEN)
    (tmp_path / "stacks" / "quotas" / "broken.yaml").write_text("a: [")

    snapshots = read_snapshots(tmp_path, TAKEN)

    assert set(snapshots.by_project) == {"example-train"}
    assert len(snapshots.unreadable) == 1
    assert next(iter(snapshots.unreadable.values())).startswith("stacks/quotas/broken.yaml:")


def test_a_name_that_is_not_utf_8_is_one_sentence(tmp_path: Path) -> None:
    folder = tmp_path / "stacks" / "quotas"
    folder.mkdir(parents=True)
    (folder / os.fsdecode(b"example-\xff.yaml")).touch()

    (sentence,) = read_snapshots(tmp_path, TAKEN).unreadable.values()

    assert sentence.encode() == b"stacks/quotas/example-\\udcff.yaml: the name of the file is not UTF-8."
