"""The README's command and table."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import httpx

from local_google_cloud.services.service_table import SERVICES

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
        bodies = re.findall(r"-d '(.+)' \\\n +http://127.0.0.1:8431(/\S+)", README)
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as http:
            json_content = {"Content-Type": "application/json"}
            codes = [http.post(path, content=body, headers=json_content).status_code for body, path in bodies]
            wrong = http.post(bodies[-1][1], json={"name": "other", "autoCreateSubnets": False})
        server.terminate()

    assert codes == [200, 200]
    assert wrong.status_code == 400
    assert 'Unknown name "autoCreateSubnets"' in wrong.json()["error"]["message"]
    assert server.returncode == 0
    assert "compute/projects/example/global/networks/net" in state.read_text()
