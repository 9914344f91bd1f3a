"""A repository with one job, the local cloud that it runs in, and the command that a person would type."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.training_platform.jobs.runs.vertex_cloud import Cloud, Command, job_command, write_repository
from training_platform.sandbox.cloud.http.server import serve


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The organisation's repository with one job, ``jobs/vision/train.yaml``."""
    return write_repository(tmp_path / "lab")


@pytest.fixture
def vertex(root: Path) -> Cloud:
    """The local cloud, with a clock that a test moves on."""
    return Cloud(root)


@pytest.fixture
def job(root: Path, vertex: Cloud) -> Iterator[Command]:
    """Return a function that runs ``training-platform job`` against the local cloud."""
    with serve(vertex.cloud) as port:
        yield job_command(root, port)
