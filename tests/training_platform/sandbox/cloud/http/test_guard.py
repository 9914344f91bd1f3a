"""A web page in a browser on this machine can neither change the local cloud nor read it."""

from __future__ import annotations

import httpx
import pytest

from tests.training_platform.sandbox.cloud.conftest import PROJECT

NETWORKS = f"/compute/v1/projects/{PROJECT}/global/networks"
RESET = "/_sandbox/reset"
FROM_PAGES = (
    {"Origin": "https://example.com"},
    {"Origin": "null"},
    {"Origin": "http://localhost:3000"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Host": "example.com"},
    {"Host": "example.com:8080"},
    {"Host": "127.0.0.1.example.com"},
)


@pytest.mark.parametrize("headers", FROM_PAGES)
def test_what_a_page_sends_is_refused_and_changes_nothing(http: httpx.Client, headers: dict[str, str]) -> None:
    names = http.get("/_sandbox/state").json()["names"]

    assert http.post(RESET, headers=headers).status_code == 403
    assert http.post(NETWORKS, json={"name": "net"}, headers=headers).status_code == 403
    assert http.get("/_sandbox/state", headers=headers).status_code == 403
    assert names
    assert http.get("/_sandbox/state").json()["names"] == names


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"])
def test_what_a_form_can_send_is_no_body(http: httpx.Client, kind: str) -> None:
    for verb, path in (("POST", NETWORKS), ("PUT", "/_sandbox/settings"), ("POST", "/_sandbox/faults")):
        answer = http.request(verb, path, content=b'{"name": "net"}', headers={"Content-Type": kind})
        assert answer.status_code == 415
        assert kind.partition(";")[0] in answer.json()["error"]["message"]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "localhost:8080", "[::1]:8080"])
def test_programs_of_this_machine_are_answered(http: httpx.Client, host: str) -> None:
    assert http.get("/_sandbox/state", headers={"Host": host}).status_code == 200
    assert http.get("/_sandbox/state", headers={"Host": host, "Origin": f"http://{host}"}).status_code == 200
    sent = http.post(NETWORKS, content=b'{"name": "net"}', headers={"Host": host})
    assert sent.status_code == 200


@pytest.mark.parametrize("path", [NETWORKS, "/_sandbox/state", "/elsewhere"])
@pytest.mark.parametrize("verb", ["OPTIONS", "TRACE", "HEAD"])
def test_a_verb_that_no_api_has_is_refused_in_googles_form(http: httpx.Client, verb: str, path: str) -> None:
    answer = http.request(verb, path)

    assert answer.status_code == 405
    assert verb == "HEAD" or answer.json()["error"]["code"] == 405


def test_a_verb_that_a_control_path_lacks_is_refused_in_googles_form(http: httpx.Client) -> None:
    answer = http.delete("/_sandbox/state")

    assert answer.status_code == answer.json()["error"]["code"] == 404
