"""Bodies that no answer could hold, that are too deep or too long: refused at once, in Google's form."""

from __future__ import annotations

import socket
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from tests.training_platform.sandbox.cloud.conftest import PROJECT, Client
from training_platform.sandbox.cloud.http.guard import DEEPEST, MOST_BYTES, parse_json
from training_platform.sandbox.cloud.requests.errors import ApiError

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
        with pytest.raises(ApiError, match="Message too deep"):
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
        sent, answer = 0, b""
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
    assert "the clock moves on, not back" in answer.json()["error"]


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
        patched.setattr("training_platform.sandbox.cloud.state.store.write_whole", full)
        answer = client("POST", NETWORKS.removeprefix("/"), {"name": "net"})
    assert (answer.code, answer.message) == (503, "The local cloud cannot write its state: No space left on device.")
    assert "Traceback" not in caplog.text
    assert client("GET", f"{NETWORKS.removeprefix('/')}/net").code == 404
    assert client("POST", NETWORKS.removeprefix("/"), {"name": "net"}).code == 200
    assert Client(make(tmp_path / "cloud.json"))("GET", f"{NETWORKS.removeprefix('/')}/net").code == 200
