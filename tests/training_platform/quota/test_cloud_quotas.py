"""The client of the Cloud Quotas API, against answers that a test makes up."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
import requests
from google.auth import exceptions

from training_platform.clients.quota_pull import CloudQuotas, QuotaInfo, Row
from training_platform.config.reading.finding import UserError

SERVICE = "compute.googleapis.com"
PATH = f"http://127.0.0.1:1/v1/projects/example-train/locations/global/services/{SERVICE}/quotaInfos"


class Session(requests.Session):
    """Gives one answer after the other, and keeps what it was asked."""

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
    made = requests.Response()
    made.status_code = code
    made._content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return made


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


def test_every_page_is_read() -> None:
    session = Session(
        {"quotaInfos": [info("A")], "nextPageToken": "two"}, {"quotaInfos": [info("B")], "nextPageToken": ""}
    )

    found = quotas(session)

    assert [each.quota_id for each in found] == ["A", "B"]
    assert [url for url, _ in session.asked] == [PATH, PATH]
    assert [parameters.get("pageToken") for _, parameters in session.asked] == [None, "two"]


def test_a_limit_has_its_dimensions_and_one_that_is_left_out_is_0() -> None:
    zero: dict[str, Any] = {"dimensions": {"region": "us-west4"}, "details": {}}

    (found,) = listed({"quotaInfos": [info("A", row("64", region="us-central1"), zero, row("-1"))]})

    assert found.rows == (Row({"region": "us-central1"}, 64), Row({"region": "us-west4"}, 0), Row({}, -1))
    assert found.dimensions == ("region",)


def test_rates_and_limits_of_folders_are_left_out() -> None:
    infos = [info("RATE", refreshInterval="minute"), info("FOLDER", containerType="FOLDER"), info("A")]

    assert [each.quota_id for each in listed({"quotaInfos": infos})] == ["A"]


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
    said = refused(200, body)

    assert "\n" not in said
    assert said.endswith(".")


def test_a_server_that_never_stops_is_left() -> None:
    page = {"quotaInfos": [], "nextPageToken": "again"}

    with pytest.raises(UserError, match="has no last page"):
        listed(*([page] * 1001))


@pytest.mark.parametrize(
    ("code", "reason", "said"),
    [
        (403, "SERVICE_DISABLED", "gcloud services enable cloudquotas.googleapis.com --project example-train"),
        (403, "IAM_PERMISSION_DENIED", "roles/cloudquotas.viewer may"),
        (401, "", "gcloud auth application-default login"),
        (404, "", "knows no project example-train"),
        (429, "", "busy (HTTP 429) after 4 repetitions"),
        (400, "", "(HTTP 400)"),
    ],
)
def test_a_refusal_says_what_to_do_and_what_google_said(code: int, reason: str, said: str) -> None:
    body = {"error": {"code": code, "message": "No\n  way.", "details": [{"@type": "x", "reason": reason}]}}

    message = refused(code, body)

    assert said in message
    assert message.endswith("It says: No way.")


@pytest.mark.parametrize("body", [b"", b"<html>", {"error": "no"}, ["no"]])
def test_an_error_that_cannot_be_read_is_one_sentence_too(body: Any) -> None:
    assert refused(500, body).endswith("It says nothing that can be read.")


def test_a_server_that_is_not_there_is_one_sentence() -> None:
    with pytest.raises(UserError, match=r"^Cloud Quotas in projects/example-train cannot be reached: no\.$"):
        listed(requests.ConnectionError("no"))


def test_a_connection_that_fails_is_told_in_the_system_s_words_alone() -> None:
    failed = requests.ConnectionError("HTTPSConnectionPool(host='x', port=443): Max retries exceeded with url: /x")
    failed.__context__ = ConnectionRefusedError(111, "Connection refused")

    with pytest.raises(UserError, match=r" cannot be reached: \[Errno 111\] Connection refused\.$"):
        listed(failed)


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

    with pytest.raises(UserError, match=r"needs the extra `quota`: pip install"):
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
