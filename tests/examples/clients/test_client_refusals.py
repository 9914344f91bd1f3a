"""What google-cloud-storage and google-cloud-aiplatform over REST make of the local cloud's refusals by IAM."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from local_google_cloud.api import LocalCloud, serve
from tests.examples.jobs.conftest import PYTHON
from training_platform.parts.sandbox.google_rules import judged_cloud

pytestmark = [pytest.mark.examples, pytest.mark.timeout(300)]
PROGRAM = Path(__file__).with_name("drive_refusals.py")
PROJECT = "example-lab"
TEAM = "group:vision@example.com"


def outcomes(cloud: LocalCloud, home: Path) -> dict[str, tuple[str, str]]:
    """Run the program as a member of the team, and return what became of each of its calls."""
    python = os.environ.get(PYTHON)
    if python is None:
        pytest.skip("only `make test-examples` installs and uses the clients")
    environment = {"HOME": str(home), "PATH": os.environ["PATH"]}
    with serve(cloud) as port:
        command = [python, str(PROGRAM), f"http://127.0.0.1:{port}", TEAM]
        done = subprocess.run(command, env=environment, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return {name: (kind, message) for name, (kind, message) in json.loads(done.stdout).items()}


def owner(cloud: LocalCloud, service: str, verb: str, path: str, body: Any, **query: str) -> None:
    code, answer = cloud.handle(service, verb, path, list(query.items()), body)
    assert code == 200, answer


@pytest.fixture
def cloud() -> LocalCloud:
    cloud = judged_cloud([PROJECT])
    apis = {"serviceIds": ["aiplatform.googleapis.com", "storage.googleapis.com"]}
    owner(cloud, "serviceusage", "POST", f"v1/projects/{PROJECT}/services:batchEnable", apis)
    owner(cloud, "storage", "POST", "v1/b", {"name": "data"}, project=PROJECT)
    return cloud


def test_the_clients_tell_who_lacks_which_permission(cloud: LocalCloud, tmp_path: Path) -> None:
    seen = outcomes(cloud, tmp_path)

    assert {kind for kind, _ in seen.values()} == {"Forbidden"}
    who = "vision@example.com does not have"
    for name, permission, kind in (
        ("get_bucket", "storage.buckets.get", "bucket"),
        ("list_blobs", "storage.objects.list", "object"),
        ("upload", "storage.objects.create", "object"),
    ):
        assert f"{who} {permission} access to the Google Cloud Storage {kind}. Permission" in seen[name][1]
    jobs = f"//aiplatform.googleapis.com/projects/{PROJECT}/locations/us-central1/customJobs"
    assert f"Permission 'aiplatform.customJobs.list' denied on resource '{jobs}'" in seen["list_jobs"][1]


def test_the_clients_are_served_what_the_member_is_granted(cloud: LocalCloud, tmp_path: Path) -> None:
    grants = [
        {"role": role, "members": [TEAM]} for role in ("roles/storage.objectViewer", "roles/storage.objectCreator")
    ]
    owner(cloud, "storage", "PUT", "v1/b/data/iam", {"bindings": grants})

    seen = outcomes(cloud, tmp_path)

    assert {name: kind for name, (kind, _) in seen.items()} == {
        "get_bucket": "Forbidden",  # neither role has storage.buckets.get
        "list_blobs": "allowed",
        "upload": "allowed",
        "list_jobs": "Forbidden",
    }
