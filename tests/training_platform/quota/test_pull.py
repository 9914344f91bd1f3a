"""A snapshot's new text, from listings that a test makes up."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from datetime import date
from typing import Any

import pytest
import requests
from google.auth import exceptions

from training_platform.clients.quota_pull import CloudQuotas, LimitRow, Pulled, QuotaInfo, pull, rows_of
from training_platform.config.reading.finding import UserError
from training_platform.config.reading.source import parse_source
from training_platform.quota.snapshot import Snapshot, parse_snapshot

COMPUTE = "compute.googleapis.com"
FILE = "file.googleapis.com"
CPUS = "CPUS-per-project-region"
GPUS = "GPUS-ALL-REGIONS-per-project"
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
            yield QuotaInfo(quota_id, names, tuple(LimitRow(dimensions, limit) for limit, dimensions in rows))


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
    parsed, findings = parse_snapshot("example-train", parse_source(text, "stacks/quotas/example-train.yaml"))
    assert parsed is not None
    assert findings == []
    return parsed


def compute(**changes: Any) -> Any:
    ids = {"gpus": GPUS, "cpus": CPUS}
    return {**SAME, COMPUTE: {**SAME[COMPUTE], **{ids.get(name, name): rows for name, rows in changes.items()}}}


def test_nothing_but_the_day_changes_where_no_limit_does() -> None:
    new = pulled(SAME)

    assert new.changes == ()
    assert new.text == OLD.replace("2026-11-01", "2026-11-21")
    assert new.file == "stacks/quotas/example-train.yaml"


def test_a_changed_limit_is_told_and_all_around_it_stays() -> None:
    new = pulled(compute(gpus=[(128, {})]))

    assert [str(change) for change in new.changes] == ["GPUS-ALL-REGIONS-per-project: 64 -> 128"]
    assert new.text == OLD.replace("2026-11-01", "2026-11-21").replace("limit: 64 #", "limit: 128 #")


def test_what_google_lists_no_more_is_not_kept_as_if_it_had_been_read() -> None:
    new = pulled({COMPUTE: SAME[COMPUTE]})

    assert [str(change) for change in new.changes] == ["EnterpriseStorageGibPerRegion us-central1: 2,048 -> not listed"]
    assert FILE not in new.text


def test_an_id_that_the_file_lists_is_kept_although_the_catalogue_does_not_know_it() -> None:
    text = OLD.replace("  file", "    SNAPSHOTS-per-project:\n      - limit: 5\n  file")

    new = pulled(compute(**{"SNAPSHOTS-per-project": [(6, {})]}), text)

    assert [str(change) for change in new.changes] == ["SNAPSHOTS-per-project: 5 -> 6"]


def test_an_id_that_stacks_need_and_google_does_not_list_is_told() -> None:
    assert pulled(SAME, needed=((COMPUTE, "N2-CPUS-per-project-region"), (COMPUTE, CPUS))).missing == (
        "N2-CPUS-per-project-region",
    )


def test_the_limit_for_all_other_places_says_so() -> None:
    new = pulled(compute(cpus=[region(200, "us-central1"), (24, {})]))

    assert "      - {limit: 24, region: others}\n" in new.text
    assert snapshot(new.text).limits[COMPUTE][CPUS][-1].place is None


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
    info = QuotaInfo(CPUS, ("region",), tuple(LimitRow(dimensions, limit) for limit, dimensions in rows))

    assert list(rows_of(info).values()) == kept


def test_without_the_library_for_comments_one_sentence_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ruamel.yaml", None)

    with pytest.raises(UserError, match="needs the extra `quota`"):
        pulled(SAME)


SERVICE = "compute.googleapis.com"
PATH = f"http://127.0.0.1:1/v1/projects/example-train/locations/global/services/{SERVICE}/quotaInfos"


class Session(requests.Session):
    """Returns one response after the other, and records the requests."""

    def __init__(self, *answers: Any) -> None:
        super().__init__()
        self.answers = list(answers)
        self.asked: list[tuple[str, dict[str, Any]]] = []

    def request(self, method: Any, url: Any, *_: Any, **options: Any) -> requests.Response:
        assert method == "GET"
        self.asked.append((url, options["params"]))
        assert options["timeout"]
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, requests.Response) else response(200, answer)


def response(code: int, body: Any) -> requests.Response:
    answer = requests.Response()
    answer.status_code = code
    answer._content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return answer


def info(quota_id: str, *rows: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"quotaId": quota_id, "dimensions": ["region"], "dimensionsInfos": list(rows), **fields}


def row(value: Any, **dimensions: str) -> dict[str, Any]:
    return {"details": {"value": value}, "dimensions": dimensions}


def quotas(session: Session) -> list[QuotaInfo]:
    api = CloudQuotas("example-train", "http://127.0.0.1:1/")
    api._session = session
    return list(api.quotas(SERVICE))


def listed(*answers: Any) -> list[QuotaInfo]:
    return quotas(Session(*answers))


def refused(code: int, body: Any = b"") -> str:
    with pytest.raises(UserError) as caught:
        listed(response(code, body))
    return str(caught.value)


def test_rates_and_limits_of_folders_are_left_out() -> None:
    infos = [info("RATE", refreshInterval="minute"), info("FOLDER", containerType="FOLDER"), info("A")]

    assert [quota.quota_id for quota in listed({"quotaInfos": infos})] == ["A"]


def test_a_project_without_quotas_has_none() -> None:
    assert listed({}) == []


@pytest.mark.parametrize(
    "body",
    [
        [],
        {"quotaInfos": {}},
        {"quotaInfos": ["A"]},
        {"quotaInfos": [{"dimensionsInfos": []}]},
        {"quotaInfos": [info("A", row("many"))]},
        {"quotaInfos": [info("A", row("-2"))]},
        {"quotaInfos": [info("A", row("6.5"))]},
        {"quotaInfos": [info("A", {"details": {"value": "1"}, "dimensions": ["us"]})]},
        b"<html>",
    ],
)
def test_an_answer_of_another_shape_is_one_sentence(body: Any) -> None:
    message = refused(200, body)

    assert "\n" not in message
    assert message.endswith(".")


def test_a_server_that_never_stops_is_left() -> None:
    page = {"quotaInfos": [], "nextPageToken": "again"}

    with pytest.raises(UserError, match="never returns a last page"):
        listed(*([page] * 1001))


@pytest.mark.parametrize(
    ("code", "reason", "advice"),
    [
        (403, "SERVICE_DISABLED", "gcloud services enable cloudquotas.googleapis.com --project example-train"),
        (403, "IAM_PERMISSION_DENIED", "they need roles/cloudquotas.viewer"),
        (401, "", "gcloud auth application-default login"),
        (404, "", "does not find project example-train"),
        (429, "", "busy (HTTP 429) after 4 retries"),
        (400, "", "(HTTP 400)"),
    ],
)
def test_a_refusal_says_what_to_do_and_what_google_said(code: int, reason: str, advice: str) -> None:
    body = {"error": {"code": code, "message": "No\n  way.", "details": [{"@type": "x", "reason": reason}]}}

    message = refused(code, body)

    assert advice in message
    assert message.endswith("Its error: No way.")


def test_credentials_without_a_quota_project_are_told_how_to_set_one() -> None:
    words = "The cloudquotas.googleapis.com API requires a quota project, which is not set by default."
    details = [{"@type": "x", "reason": "SERVICE_DISABLED"}]
    message = refused(403, {"error": {"code": 403, "message": words, "details": details}})

    assert "gcloud auth application-default set-quota-project example-train." in message
    assert "gcloud services enable" not in message


@pytest.mark.parametrize("body", [b"", b"<html>", {"error": "no"}, ["no"]])
def test_an_error_that_cannot_be_read_is_one_sentence_too(body: Any) -> None:
    assert refused(500, body).endswith("Its error message cannot be read.")


def test_a_server_that_is_not_there_is_one_sentence() -> None:
    with pytest.raises(UserError, match=r"^Cloud Quotas in projects/example-train cannot be reached: no\.$"):
        listed(requests.ConnectionError("no"))


def test_credentials_that_have_ended_say_how_to_log_in() -> None:
    with pytest.raises(UserError, match=r"The credentials do not work: over\. Log in with gcloud auth"):
        listed(exceptions.RefreshError("over"))


def test_missing_credentials_say_how_to_log_in(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(**_: object) -> None:
        raise exceptions.DefaultCredentialsError("a long text")

    monkeypatch.setattr("google.auth.default", none)

    with pytest.raises(UserError, match=r"no credentials: a long text\. Log in with gcloud auth"):
        CloudQuotas("example-train")


@pytest.mark.parametrize("module", ["google.auth", "requests"])
def test_without_the_extra_one_sentence_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    monkeypatch.setitem(sys.modules, module, None)

    with pytest.raises(UserError, match=r"needs the extra `quota`: run `make setup`"):
        CloudQuotas("example-train")


@pytest.mark.parametrize("endpoint", ["http://quotas.example.com/", "ftp://127.0.0.1/", "127.0.0.1:80/", "https:///"])
def test_only_this_machine_is_asked_without_encryption(endpoint: str) -> None:
    with pytest.raises(UserError, match="--endpoint"):
        CloudQuotas("example-train", endpoint)


def test_a_server_on_this_machine_is_shown_no_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("google.auth.default", lambda **_: pytest.fail("asked for credentials"))

    session = CloudQuotas("example-train", "http://127.0.0.1:1/")._session

    assert type(session) is requests.Session
    assert not session.trust_env
