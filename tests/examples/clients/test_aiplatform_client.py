"""google-cloud-aiplatform over REST against the local cloud; enums go as numbers: ``$alt=json;enum-encoding=int``."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.examples.jobs.conftest import PYTHON
from tests.training_platform.jobs.runs.vertex_cloud import Cloud, write_repository
from training_platform.sandbox.cloud.http.server import serve

pytestmark = [pytest.mark.examples, pytest.mark.timeout(300)]

PROGRAM = Path(__file__).with_name("drive_vertex.py")


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    with serve(Cloud(write_repository(tmp_path / "lab")).cloud) as port:
        yield f"http://127.0.0.1:{port}"


def test_the_generated_client_takes_jobs_through_their_life(url: str, tmp_path: Path) -> None:
    python = os.environ.get(PYTHON)
    if python is None:
        pytest.skip("google-cloud-aiplatform is installed and used by `make test-examples` alone")
    home = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "GOOGLE_CLOUD_PROJECT": "example-lab"}

    done = subprocess.run([python, str(PROGRAM), url], env=home, check=False, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr[-3000:]
    seen = json.loads(done.stdout)
    refused = seen.pop("refused")
    assert refused.startswith("BadRequest: 400 POST ")
    assert "alt=json%3Benum-encoding%3Dint: " in refused
    assert refused.endswith('Machine type "a3-higpu-8g" is not supported. Nearest: a3-highgpu-8g.')
    assert seen == {
        "strategy": "FLEX_START",
        "accelerator": "NVIDIA_H100_80GB",
        "replicas": 1,
        "state": "JOB_STATE_PENDING",
        "listed": ["train"],
        "cancelled": "JOB_STATE_CANCELLED",
        "left": 0,
        "tuned": {
            "scale": "UNIT_LOG_SCALE",
            "goal": "MAXIMIZE",
            "most": 0.1,
            "trials": 4,
            "cancelled": "JOB_STATE_CANCELLED",
        },
        "sdk": "sdk-tune 2",
        "pipeline": {
            "state": "PIPELINE_STATE_RUNNING",
            "job": "JOB_STATE_PENDING",
            "strategy": "FLEX_START",
            "cancelled": "PIPELINE_STATE_CANCELLED",
            "with it": "JOB_STATE_CANCELLED",
        },
    }
