"""The app over HTTP: answers, refused bodies, and web pages that can neither change nor read the cloud."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import pytest

from local_google_cloud.endpoints import endpoints
from local_google_cloud.http.guard import DEEPEST, MOST_BYTES, parse_json
from local_google_cloud.local_cloud import LocalCloud
from local_google_cloud.requests.errors import Refusal
from tests.local_google_cloud.client import INSTANCE, LOCATION, PROJECT, Client


def test_the_server_is_reachable_from_this_machine_only(port: int) -> None:
    assert all(url.startswith(f"http://127.0.0.1:{port}/") for url in endpoints(port).values())


def test_every_endpoint_is_a_setting_of_the_provider(port: int) -> None:
    package = find_spec("pulumi_gcp")  # found, not imported: that takes a second
    assert package is not None
    assert package.origin is not None
    source = (Path(package.origin).parent / "provider.py").read_text(encoding="utf-8")

    assert [name for name in endpoints(port) if f'"{name.removeprefix("gcp:")}"' not in source] == []


@pytest.mark.parametrize("content", [b"{", b"[1]", b'"text"', b"\xff", b"[" * 5000])
def test_a_body_that_is_no_message_is_refused(http: httpx.Client, content: bytes) -> None:
    answer = http.post(f"/compute/v1/projects/{PROJECT}/global/networks", content=content)

    assert answer.status_code == 400
    assert answer.json()["error"]["errors"][0]["message"].startswith("Invalid JSON payload received.")


def test_an_unknown_service_is_404_in_googles_form(http: httpx.Client) -> None:
    assert http.get("/elsewhere").json()["error"]["status"] == "NOT_FOUND"


def test_settings_and_time_are_a_persons_to_change(http: httpx.Client) -> None:
    assert http.put("/_sandbox/settings", json={"durations": {"file.instances": 240.0}}).status_code == 200
    path = f"/file/v1/projects/{PROJECT}/locations/us-central1-a/instances"
    operation = http.post(path, params={"instanceId": "homes"}, json=INSTANCE).json()
    assert operation["done"] is False
    assert http.get(f"{path}/homes").json()["state"] == "CREATING"

    http.post("/_sandbox/clock", json={"advance": 240})

    done = http.get(f"/file/v1/{operation['name']}").json()
    assert done["done"] is True
    assert done["response"]["state"] == http.get(f"{path}/homes").json()["state"] == "READY"
    assert http.post("/_sandbox/clock", json={"advance": -1}).status_code == 400
    assert http.put("/_sandbox/settings", json={"speed": 1}).status_code == 400


def test_a_fault_of_ours_is_an_answer_and_a_line_in_the_log(
    cloud: LocalCloud, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(cloud.store, "children", lambda _name: 1 / 0)

    code, body = cloud.handle("serviceusage", "GET", f"v1/projects/{PROJECT}/services", [], None)

    assert (code, body["error"]["status"]) == (500, "INTERNAL")
    assert "ZeroDivisionError" in caplog.text


def test_acknowledged_changes_survive_a_restart(
    make: Callable[..., LocalCloud], time: list[float], tmp_path: Path
) -> None:
    file = tmp_path / "state" / "cloud.json"
    before = Client(make(file))
    before.enable(PROJECT, "compute", "container")
    before.network()
    before.cloud.settings = before.cloud.settings.model_copy(update={"durations": {"container.clusters": 360.0}})
    operation = before.cluster()

    after = Client(make(file))
    assert after.done("GET", f"container/v1/{LOCATION}/clusters/one")["status"] == "PROVISIONING"
    time[0] += 360
    assert after.done("GET", f"container/v1/{LOCATION}/operations/{operation['name']}")["status"] == "DONE"
    assert after.done("GET", f"container/v1/{LOCATION}/clusters/one")["status"] == "RUNNING"
    assert [path.name for path in file.parent.iterdir()] == ["cloud.json"]


@pytest.fixture
def http(port: int) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
        yield client


CHANNELS = f"/monitoring/v3/projects/{PROJECT}/notificationChannels"
NETWORKS = f"/compute/v1/projects/{PROJECT}/global/networks"
JSON = {"Content-Type": "application/json"}
POISON = (r'"\ud800"', r'"a\udfffb"', "NaN", "Infinity", "-Infinity", "1e400", "-1e999")


@pytest.mark.parametrize("value", POISON)
def test_what_no_answer_could_hold_is_refused_and_lists_stay_readable(http: httpx.Client, value: str) -> None:
    body = f'{{"type": "email", "labels": {{"email_address": "a@example.com"}}, "userLabels": {{"a": {value}}}}}'

    answer = http.post(CHANNELS, content=body.encode(), headers=JSON)

    assert (answer.status_code, answer.json()["error"]["status"]) == (400, "INVALID_ARGUMENT")
    assert http.get(CHANNELS).json() == {}
    assert http.post("/_sandbox/clock", content=f'{{"advance": {value}}}'.encode(), headers=JSON).status_code == 400


def test_both_halves_of_a_character_are_taken() -> None:
    assert parse_json(rb'{"name": "\ud83d\ude00"}') == {"name": "\U0001f600"}


def test_nesting_is_bounded_wherever_it_is() -> None:
    assert parse_json(b"[" * DEEPEST + b"]" * DEEPEST)
    assert parse_json(b'{"a": "' + b"[" * 5000 + b'"}') == {"a": "[" * 5000}
    for opening, closing in ((b"[", b"]"), (b'{"a":', b"}")):
        with pytest.raises(Refusal, match="Message too deep"):
            parse_json(opening * (DEEPEST + 1) + b"1" + closing * (DEEPEST + 1))


@pytest.mark.parametrize("depth", [200, 900, 100_000])
def test_a_deep_body_is_refused_and_the_server_lives_on(http: httpx.Client, depth: int) -> None:
    body = b'{"name": "n", "params": {"resourceManagerTags": ' + b'{"a":' * depth + b"1" + b"}" * depth + b"}}"

    assert http.post(NETWORKS, content=body, headers=JSON).status_code == 400
    assert http.get(NETWORKS).status_code == 200


def test_a_long_body_is_refused_before_its_end(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        head = f"POST {NETWORKS} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {2**40}\r\n\r\n"
        connection.sendall(head.encode())
        sent = 0
        answer = b""
        connection.settimeout(0.001)
        while sent < 8 * MOST_BYTES and not answer:
            with suppress(TimeoutError, ConnectionError):
                sent += connection.send(b" " * 2**16)
            with suppress(TimeoutError, ConnectionError):
                answer = connection.recv(4096)

    assert answer.startswith(b"HTTP/1.1 413")
    assert sent < 8 * MOST_BYTES


@pytest.mark.parametrize("seconds", ["-1", "1e308", "315360001"])
def test_the_clock_never_leaves_what_can_be_written_as_a_date(http: httpx.Client, seconds: str) -> None:
    answer = http.post("/_sandbox/clock", content=f'{{"advance": {seconds}}}'.encode(), headers=JSON)

    assert answer.status_code == 400
    assert "the clock moves forward only" in answer.json()["error"]


@pytest.mark.parametrize("seconds", [-1, "x"])
def test_durations_are_seconds(http: httpx.Client, seconds: object) -> None:
    assert http.put("/_sandbox/settings", json={"durations": {"*": seconds}}).status_code == 400


def test_a_full_disk_is_one_sentence_and_the_change_did_not_take_place(
    make: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert callable(make)
    client = Client(make(tmp_path / "cloud.json"))
    client.enable(PROJECT, "compute")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("local_google_cloud.state.store.write_whole", full)
        answer = client("POST", NETWORKS.removeprefix("/"), {"name": "net"})
    assert (answer.code, answer.message) == (503, "The local cloud cannot write its state: No space left on device.")
    assert "Traceback" not in caplog.text
    assert client("GET", f"{NETWORKS.removeprefix('/')}/net").code == 404
    assert client("POST", NETWORKS.removeprefix("/"), {"name": "net"}).code == 200
    assert Client(make(tmp_path / "cloud.json"))("GET", f"{NETWORKS.removeprefix('/')}/net").code == 200


SETTINGS = "/_sandbox/settings"
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
    before = http.get(SETTINGS).json()

    assert http.put(SETTINGS, json={"check_services": False}, headers=headers).status_code == 403
    assert http.post(NETWORKS, json={"name": "net"}, headers=headers).status_code == 403
    assert http.get(SETTINGS, headers=headers).status_code == 403
    assert http.get(SETTINGS).json() == before
    assert http.get(f"{NETWORKS}/net").status_code == 404


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"])
def test_what_a_form_can_send_is_no_body(http: httpx.Client, kind: str) -> None:
    for verb, path in (("POST", NETWORKS), ("PUT", "/_sandbox/settings"), ("POST", "/_sandbox/clock")):
        answer = http.request(verb, path, content=b'{"name": "net"}', headers={"Content-Type": kind})
        assert answer.status_code == 415
        assert kind.partition(";")[0] in answer.json()["error"]["message"]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "localhost:8080", "[::1]:8080"])
def test_programs_of_this_machine_are_answered(http: httpx.Client, host: str) -> None:
    assert http.get(SETTINGS, headers={"Host": host}).status_code == 200
    assert http.get(SETTINGS, headers={"Host": host, "Origin": f"http://{host}"}).status_code == 200
    sent = http.post(NETWORKS, content=b'{"name": "net"}', headers={"Host": host})
    assert sent.status_code == 200


@pytest.mark.parametrize("path", [NETWORKS, SETTINGS, "/elsewhere"])
@pytest.mark.parametrize("verb", ["OPTIONS", "TRACE", "HEAD"])
def test_a_verb_that_no_api_has_is_refused_in_googles_form(http: httpx.Client, verb: str, path: str) -> None:
    answer = http.request(verb, path)

    assert answer.status_code == 405
    assert verb == "HEAD" or answer.json()["error"]["code"] == 405


def test_a_verb_that_a_control_path_lacks_is_refused_in_googles_form(http: httpx.Client) -> None:
    answer = http.delete(SETTINGS)

    assert answer.status_code == answer.json()["error"]["code"] == 404


def test_no_log_and_no_list_of_the_cloud_has_a_value_that_can_be_a_secret(
    http: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    path = f"/aiplatform/v1/{LOCATION}/customJobs"
    token = "Zx9-secret-of-nobody-4711"

    def body(env: Any) -> dict[str, Any]:
        pool = {"machineSpec": {"machineType": "n1-standard-4"}, "replicaCount": "1"}
        container = {"imageUri": "a:1", "env": env}
        return {"displayName": "a", "jobSpec": {"workerPoolSpecs": [{**pool, "containerSpec": container}]}}

    kept = http.post(path, json=body([{"name": "A", "value": token}]))
    wrong: list[Any] = [token, [token], [{"name": "A", "value": [token]}], [{"name": "A", "valu": token}]]
    refused = [http.post(path, json=body(env)) for env in wrong]
    refused.append(http.post(path, content=f'{{"displayName": "{token}" "type"}}'))
    shown = http.get("/_sandbox/faults").text

    assert kept.status_code == 200
    assert [answer.status_code for answer in refused] == [400] * 5
    assert "customJobs 400" in caplog.text
    assert token not in "".join([caplog.text, *(answer.text for answer in refused), shown])
