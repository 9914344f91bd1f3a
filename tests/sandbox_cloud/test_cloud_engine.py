"""The real engine with the real gcp provider, deploying the sample stacks to the local cloud."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest

from modules.quota.snapshot import read_snapshots
from sandbox.cloud.cloud import Cloud
from sandbox.cloud.endpoints import endpoints
from sandbox.cloud.projects import Projects
from sandbox.cloud.server import serve
from sandbox.kubernetes.server import serve as serve_kubernetes
from tests.engine.workspace import ROOT, Workspace

pytestmark = [pytest.mark.engine, pytest.mark.timeout(600)]

KEPT = ("serviceusage/", "cloudresourcemanager/", "iam/projects/example-train-dev/identityPool")


@pytest.fixture
def cloud() -> Cloud:
    return Cloud(Projects(read_snapshots(ROOT, date(2026, 11, 2)).by_project))


@pytest.fixture
def workspace(cloud: Cloud, tmp_path: Path) -> Iterator[Workspace]:
    with serve(cloud) as port, serve_kubernetes() as kubernetes:
        made = Workspace(tmp_path, kubernetes)
        made.environment |= {"PULUMI_GCP_SKIP_IDENTITY_LOOKUP": "true"}
        made.settings = {**endpoints(port), "gcp:pollInterval": "1s"}  # type: ignore[attr-defined]
        yield made


def start(workspace: Workspace, stack: str) -> None:
    workspace.init(stack)
    settings = [part for item in workspace.settings.items() for part in ("--plaintext", "=".join(item))]  # type: ignore[attr-defined]
    done(workspace.run("config", "set-all", "--stack", stack, *settings))


def done(ran: subprocess.CompletedProcess[str]) -> str:
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def test_dev_and_a_team_are_deployed_stay_as_they_are_and_go(workspace: Workspace, cloud: Cloud) -> None:
    for stack in ("dev", "dev-vision"):
        start(workspace, stack)
        done(workspace.run("up", "--stack", stack, "--yes", "--skip-preview", "--parallel", "40"))
        done(workspace.run("preview", "--stack", stack, "--expect-no-changes"))
        done(workspace.run("refresh", "--stack", stack, "--yes", "--skip-preview", "--expect-no-changes"))

    for stack in ("dev-vision", "dev"):
        done(workspace.run("destroy", "--stack", stack, "--yes", "--skip-preview", "--parallel", "40"))
    left = [each.name for each in cloud.store.all() if "/operations/" not in each.name]
    assert [name for name in left if not name.startswith(KEPT)] == []
