"""The README's command and table."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx

from local_google_cloud.api import Judge, LocalCloud
from local_google_cloud.services.service_table import SERVICES
from tests.local_google_cloud.client import PROJECT, Client

ROOT = Path(__file__).parents[2]
README = (ROOT / "local_google_cloud" / "README.md").read_text(encoding="utf-8")
WITHOUT_KINDS = {
    "cloudkms", "cloudresourcemanager", "policytroubleshooter", "servicenetworking", "serviceusage",
}  # fmt: skip


def test_the_table_has_every_service_and_its_kinds() -> None:
    table = README.partition("## What it serves")[2].partition("## What is refused")[0]
    rows = dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", table, re.MULTILINE))

    assert rows.keys() == SERVICES.keys()
    assert {name: kinds.split(", ") for name, kinds in rows.items() if name not in WITHOUT_KINDS} == {
        name: sorted(kind.collection for kind in service.kinds)
        for name, service in SERVICES.items()
        if name not in WITHOUT_KINDS
    }


def test_a_served_cloud_takes_the_requests_of_the_page_and_refuses_by_documents(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from local_google_cloud.cli import main; main()", "serve", "--project", "example"]
    state = tmp_path / "cloud.json"
    with subprocess.Popen([*command, "--state", str(state)], cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        port = server.stdout.readline().partition("127.0.0.1:")[2].partition("/")[0]
        warning = server.stdout.readline()
        settings = [server.stdout.readline() for _ in range(2)]
        bodies = re.findall(r"-d '(.+)' \\\n +http://127.0.0.1:8431(/\S+)", README)
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as http:
            json_content = {"Content-Type": "application/json"}
            codes = [http.post(path, content=body, headers=json_content).status_code for body, path in bodies]
            http.post("/serviceusage/v1/projects/example/services/storage.googleapis.com:enable", json={})
            bucket = http.post("/storage/v1/b?project=example", json={"name": "example-data"})
            inserted = http.post("/storage/v1/b/example-data/o?name=a", json={})
            multipart = {"Content-Type": "multipart/related; boundary=b"}
            uploads = [
                http.post(f"{prefix}/upload/storage/v1/b/example-data/o?name=a", content=b"a", headers=multipart)
                for prefix in ("", "/storage")
            ]
            wrong = http.post(bodies[-1][1], json={"name": "other", "autoCreateSubnets": False})
        server.terminate()

    assert "not in this list go to Google" in warning
    assert settings == ["config:\n", "  gcp:project: example\n"]
    assert codes == [200, 200]
    assert bucket.status_code == 200
    for answer in (inserted, *uploads):
        assert answer.status_code == 501
        assert "storage.objects.insert is not implemented" in answer.json()["error"]["message"]
    assert wrong.status_code == 400
    assert 'Unknown name "autoCreateSubnets"' in wrong.json()["error"]["message"]
    assert server.returncode == 0
    assert "compute/projects/example/global/networks/net" in state.read_text()


def test_the_judge_of_the_page_refuses_what_the_page_says() -> None:
    example = re.findall(r"```python\n(.*?)```", README, re.DOTALL)[-1]
    names: dict[str, Any] = {}
    exec(example.replace("    ...\n", "    pass\n"), names)  # noqa: S102
    client = Client(LocalCloud([PROJECT], judge=names["OneRegion"]()))
    client.enable(PROJECT, "compute", "container")
    client.network()
    europe = f"container/v1/projects/{PROJECT}/locations/europe-west4/clusters"

    assert client.cluster()["status"] == "DONE"
    subnet = {"name": "eu", "network": f"projects/{PROJECT}/global/networks/net", "ipCidrRange": "10.9.0.0/20"}
    client.done("POST", f"compute/v1/projects/{PROJECT}/regions/europe-west4/subnetworks", subnet)
    body = {"name": "two", "initialNodeCount": 1, "network": "net", "subnetwork": "eu"}
    assert client("POST", europe, {"cluster": body}).code == 403


def test_the_table_has_every_method_of_the_judge() -> None:
    table = README.partition("## From Python")[2]
    named = {name for row in re.findall(r"^\| (`.+?) \|", table, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)}

    assert named == {name for name in vars(Judge) if not name.startswith("_")}


def test_the_default_judge_takes_any_machine_type_member_and_amount() -> None:
    client = Client(LocalCloud([PROJECT]))
    client.enable(PROJECT, "compute", "container")
    client.network()
    client.cluster()
    pool = {"name": "many", "initialNodeCount": 100_000, "config": {"machineType": "z9-giga-1024"}}
    path = f"container/v1/projects/{PROJECT}/locations/us-central1/clusters/one/nodePools"

    client.as_member("user:ada@example.com").done("POST", path, {"nodePool": pool})

    assert client.cloud.quota.used(PROJECT) == {}
