"""Persistent resources in the local cloud: which are idle, and a restart, by the client that asks Google's service."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from local_google_cloud.api import CloudSettings, serve
from tests.parts.jobs.runs.vertex_cloud import PROJECT, Cloud, write_repository
from training_platform.catalog import MACHINE_TYPES
from training_platform.catalog.prices import machines_cost
from training_platform.cli.main import app
from training_platform.config.model.team import PersistentResourceSpec
from training_platform.parts.jobs.vertex.worker_pools import KeptMachines, kept_machines

pytestmark = pytest.mark.filterwarnings("ignore:You are using a Python version:FutureWarning")

PLACE = f"projects/{PROJECT}/locations/us-central1"
MADE = datetime(2026, 11, 1, tzinfo=UTC)
SPEC = PersistentResourceSpec(region="us-central1", machine_type="a2-highgpu-1g")


class Kept:
    """A repository, a local cloud with its one persistent resource, and the command."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.vertex = Cloud(root)
        self.port = 0
        self.vertex.cloud.settings = CloudSettings(
            durations={"aiplatform.persistentResources": 600.0, "aiplatform.jobs.running": 600.0}
        )
        machine = {"machineType": "a2-highgpu-1g", "acceleratorType": "NVIDIA_TESLA_A100", "acceleratorCount": 1}
        scaling = {"minReplicaCount": "1", "maxReplicaCount": "4"}
        body = {"resourcePools": [{"machineSpec": machine, "replicaCount": "3", "autoscalingSpec": scaling}]}
        self.ask("POST", "persistentResources", body, persistentResourceId="lab-vision-tuning")
        self.vertex.now += 3_600

    def ask(self, verb: str, path: str, body: dict[str, Any], **query: str) -> dict[str, Any]:
        code, answer = self.vertex.cloud.handle("aiplatform", verb, f"v1/{PLACE}/{path}", list(query.items()), body)
        assert code == 200, answer
        return answer

    def pool(self) -> dict[str, Any]:
        pool: dict[str, Any] = self.ask("GET", "persistentResources/lab-vision-tuning", {})["resourcePools"][0]
        return pool

    def __call__(self, *arguments: str) -> Result:
        where = ["--root", str(self.root), "--local-cloud", f"http://127.0.0.1:{self.port}"]
        return CliRunner().invoke(app, ["persistent-resource", *arguments, *where])


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Kept]:
    kept_machines = Kept(write_repository(tmp_path / "lab"))
    with serve(kept_machines.vertex.cloud) as port:
        kept_machines.port = port
        yield kept_machines


def test_an_idle_resource_is_a_finding_with_its_cost(kept: Kept) -> None:
    result = kept("list", "lab-vision")

    assert result.exit_code == 1, result.output
    assert result.stdout.startswith("tuning: RUNNING, 0 of 3 VMs in use, ")
    assert re.search(r"at least [0-9.]+ USD an hour, idle", result.stdout)


def test_those_of_all_teams_are_listed_without_a_stack(kept: Kept) -> None:
    result = kept("list")

    assert result.exit_code == 1, result.output
    assert [line.partition(":")[0] for line in result.stdout.splitlines()] == ["lab-vision tuning"]


def test_a_reboot_brings_a_pool_that_scales_back_at_its_fewest(kept: Kept) -> None:
    assert kept.pool()["replicaCount"] == "3"

    result = kept("reboot", "lab-vision", "tuning")

    assert result.exit_code == 0, result.output
    assert kept.pool()["replicaCount"] == "1"
    assert kept.ask("GET", "persistentResources/lab-vision-tuning", {})["state"] == "REBOOTING"
    assert "REBOOTING" in kept("reboot", "lab-vision", "tuning").output
    kept.vertex.now += 3_600
    assert kept.ask("GET", "persistentResources/lab-vision-tuning", {})["state"] == "RUNNING"


def test_a_resource_with_a_running_job_is_not_restarted(kept: Kept) -> None:
    container = {"imageUri": "example.com/train"}
    pool = {"machineSpec": {"machineType": "a2-highgpu-1g"}, "replicaCount": "1", "containerSpec": container}
    spec = {"workerPoolSpecs": [pool], "persistentResourceId": "lab-vision-tuning"}
    kept.ask("POST", "customJobs", {"displayName": "train", "jobSpec": spec})

    result = kept("reboot", "lab-vision", "tuning")

    assert result.exit_code == 2
    assert "has running jobs" in result.output


def test_an_unknown_name_gives_one_sentence(kept: Kept) -> None:
    other = kept("reboot", "lab-vision", "tunning")

    assert (other.exit_code, other.output.count("\n")) == (2, 1)
    assert "lab-vision has no persistent resource tunning. Nearest: tuning." in other.output
    assert "lab is not a team's stack. Allowed: " in kept("list", "lab").output


def answer(used: int, age: timedelta) -> KeptMachines:
    pool = {"machineSpec": {"machineType": "a2-highgpu-1g"}, "replicaCount": "2", "usedReplicaCount": str(used)}
    body = {"state": "RUNNING", "createTime": "2026-11-01T00:00:00Z", "resourcePools": [pool]}
    return kept_machines(SPEC, body, MADE + age)


def test_a_resource_is_idle_if_no_vm_is_used_and_old_after_30_days() -> None:
    assert (answer(1, timedelta(days=1)).idle, answer(0, timedelta(days=1)).idle) == (False, True)
    assert (answer(1, timedelta(days=30)).old, answer(1, timedelta(days=30, seconds=1)).old) == (False, True)


def test_attached_gpus_are_in_the_cost() -> None:
    machine = {"machineType": "n1-standard-8", "acceleratorType": "NVIDIA_TESLA_T4", "acceleratorCount": 2}
    body = {"createTime": "2026-11-01T00:00:00Z", "resourcePools": [{"machineSpec": machine, "replicaCount": "3"}]}
    t4 = PersistentResourceSpec(
        region="us-central1", machine_type="n1-standard-8", accelerator="t4", accelerator_count=2
    )

    cost = kept_machines(t4, body, MADE).cost.minimum

    assert cost == pytest.approx(machines_cost(t4.machine, "on-demand", "us-central1", 3, 3).minimum)
    assert cost > machines_cost(MACHINE_TYPES["n1-standard-8"], "on-demand", "us-central1", 3, 3).minimum
