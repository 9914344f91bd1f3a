"""A request for a larger limit under the real engine and the real gcp plugin."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.training_platform.sandbox.run.conftest import Sandbox, small
from training_platform.sandbox.cloud.state.store import Store

pytestmark = [pytest.mark.engine, pytest.mark.timeout(900)]
STACK = """\
config:
  training-platform:environment:
    project: example-train-small
    production: false
    clusters:
      main:
        location: us-central1-a
        subnet: {nodes: 10.12.0.0/20, pods: 10.66.0.0/16, services: 10.12.16.0/20}
        system_pool: {machine_type: e2-standard-8, min_nodes: 1, max_nodes: 1}
"""
REQUEST = """\
    quota_requests:
      h100:
        service: compute.googleapis.com
        quota_id: GPUS-PER-GPU-FAMILY-per-project-region
        dimensions: {region: us-central1, gpu_family: NVIDIA_H100}
        value: 96
        justification: Two teams train at once.
        contact: ml-platform@example.com
"""


def preferences(sandbox: Sandbox) -> list[dict[str, object]]:
    held = Store(sandbox.folder.cloud).all()
    return [each.body for each in held if "/quotaPreferences/" in each.name]


def test_a_request_comes_up_once_and_stays_when_it_is_taken_out(tmp_path: Path) -> None:
    sandbox = small(tmp_path / "repository", STACK + REQUEST)
    path = sandbox.folder.root / "stacks" / "Pulumi.small.yaml"

    ran = sandbox("up", "small")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    (made,) = preferences(sandbox)
    assert str(made["name"]).endswith("/quotaPreferences/small-h100")
    assert made["service"] == "compute.googleapis.com"
    assert made["quotaId"] == "GPUS-PER-GPU-FAMILY-per-project-region"
    assert made["dimensions"] == {"region": "us-central1", "gpu_family": "NVIDIA_H100"}
    assert made["contactEmail"] == "ml-platform@example.com"
    config = made["quotaConfig"]
    assert isinstance(config, dict)
    assert config["preferredValue"] == "96"

    again = sandbox("preview", "small")
    assert re.match(r"small: preview done: \d+ unchanged\n", again.stdout), again.stdout + again.stderr

    path.write_text(path.read_text().replace("value: 96", "value: 128"))
    changed = sandbox("up", "small")
    assert changed.returncode == 0, changed.stdout + changed.stderr
    assert [each["quotaConfig"]["preferredValue"] for each in preferences(sandbox)] == ["128"]  # type: ignore[index]

    path.write_text(STACK)
    taken_out = sandbox("up", "small")
    assert taken_out.returncode == 0, taken_out.stdout + taken_out.stderr
    assert len(preferences(sandbox)) == 1
