"""google-cloud-aiplatform over REST against the local cloud; enums go as numbers: ``$alt=json;enum-encoding=int``."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from local_google_cloud.api import serve
from tests.examples.conftest import PROJECT, REGION
from tests.examples.jobs.conftest import PYTHON
from tests.examples.jobs.job_files import VERTEX, rendered
from tests.parts.jobs.runs.vertex_cloud import Cloud, write_repository

pytestmark = [pytest.mark.examples, pytest.mark.timeout(300)]

PROGRAM = Path(__file__).with_name("drive_vertex.py")


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    with serve(Cloud(write_repository(tmp_path / "lab")).cloud) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
def drive(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Return a function that runs the program and returns its output."""
    python = os.environ.get(PYTHON)
    if python is None:
        pytest.skip("only `make test-examples` installs and uses google-cloud-aiplatform")
    home = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "GOOGLE_CLOUD_PROJECT": "example-lab"}

    def run(*arguments: str) -> dict[str, Any]:
        done = subprocess.run([python, str(PROGRAM), *arguments], env=home, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-3000:]
        printed: dict[str, Any] = json.loads(done.stdout)
        return printed

    return run


def test_each_example_is_created_by_the_generated_client(
    drive: Callable[..., dict[str, Any]], cloud: tuple[Cloud, str], root: Path, tmp_path: Path
) -> None:
    files = []
    for example in VERTEX:
        files.append(tmp_path / f"{example}.json")
        files[-1].write_text(rendered(tmp_path / f"of-{example}", example, "vision"))

    created = drive(cloud[1], f"projects/{PROJECT}/locations/{REGION}", *map(str, files))

    names = {example: example.replace("_", "-") for example in VERTEX}
    assert created == {example: [name, "JOB_STATE_PENDING"] for example, name in names.items()}


def test_the_generated_client_takes_jobs_through_their_life(drive: Callable[..., dict[str, Any]], url: str) -> None:
    seen = drive(url)
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
