"""The app over HTTP."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import httpx
import pytest

from tests.training_platform.sandbox.cloud.conftest import LOCATION, PROJECT, Client
from training_platform.sandbox.cloud.endpoints import endpoints
from training_platform.sandbox.cloud.local_cloud import LocalCloud


def test_the_server_can_be_reached_from_this_machine_alone(port: int) -> None:
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
    body = {"tier": "ZONAL", "fileShares": [{"name": "a", "capacityGb": "1024"}], "networks": [{"network": "net"}]}
    path = f"/file/v1/projects/{PROJECT}/locations/us-central1-a/instances"
    operation = http.post(path, params={"instanceId": "homes"}, json=body).json()
    assert operation["done"] is False
    assert http.get(f"{path}/homes").json()["state"] == "CREATING"

    http.post("/_sandbox/clock", json={"advance": 240})

    done = http.get(f"/file/v1/{operation['name']}").json()
    assert done["done"] is True
    assert done["response"]["state"] == http.get(f"{path}/homes").json()["state"] == "READY"
    assert http.post("/_sandbox/clock", json={"advance": -1}).status_code == 400
    assert http.put("/_sandbox/settings", json={"speed": 1}).status_code == 400


def test_a_reset_forgets_one_project_or_all(http: httpx.Client) -> None:
    http.put("/_sandbox/projects/example-more")
    assert "example-more" in http.get("/_sandbox/state").json()["projects"]

    http.post("/_sandbox/reset", params={"project": PROJECT})

    assert http.get("/_sandbox/state", params={"project": PROJECT}).json()["names"] == []


def test_a_fault_of_ours_is_an_answer_and_a_line_in_the_log(
    cloud: LocalCloud, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(cloud.store, "children", lambda _name: 1 / 0)

    code, body = cloud.handle("serviceusage", "GET", f"v1/projects/{PROJECT}/services", [], None)

    assert (code, body["error"]["status"]) == (500, "INTERNAL")
    assert "ZeroDivisionError" in caplog.text


def test_what_was_answered_survives_a_restart(
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
    assert [each.name for each in file.parent.iterdir()] == ["cloud.json"]
