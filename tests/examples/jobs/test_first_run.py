"""Each example as somebody new to the platform uses it: init, check, submit, why, logs, wait, by the commands.

A job on GKE meets an API server that answers from a table, one on Vertex AI the local cloud.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.examples.conftest import PROJECT, REGION
from tests.examples.jobs.conftest import EXAMPLES
from tests.examples.jobs.job_files import GKE, VERTEX
from tests.parts.jobs.runs.api_stub import ApiStub, served, write_kubeconfig
from tests.parts.jobs.runs.vertex_cloud import Cloud, replica
from training_platform.cli.main import app

pytestmark = pytest.mark.filterwarnings("ignore:You are using a Python version:FutureWarning")

Json = dict[str, Any]
Command = Callable[..., Result]
IMAGE = f"{REGION}-docker.pkg.dev/{PROJECT}/prod-images/first:1"


@pytest.fixture
def job(root: Path, cloud: tuple[Cloud, str], tmp_path: Path) -> Command:
    """Return a function that runs ``training-platform job``; its last line has to be one that it succeeded."""

    def run(command: str, *arguments: str, code: int = 0) -> Result:
        local = command not in ("init", "check", "render", "cost")
        where = ["--local-cloud", cloud[1], "--kubeconfig", str(tmp_path / "config")] if local else []
        result = CliRunner().invoke(app, ["job", command, *arguments, *where, "--root", str(root)])
        assert result.exit_code == code, result.output
        return result

    return run


def placed(root: Path, job: Command, example: str, team: str, *target: str) -> Path:
    """Let ``job init`` write a first file, then put the example beside it; both have to be clean."""
    job("init", f"{team}/first", "--environment", "prod", "--image", IMAGE, *target)
    path = root / "jobs" / team / f"{example.replace('_', '-')}.yaml"
    shutil.copy(EXAMPLES / example / "job.yaml", path)
    checked = job("check")
    assert checked.stdout.splitlines()[-1].startswith("2 jobs: clean")
    assert job("cost", str(path)).stdout
    return path


@pytest.mark.parametrize("example", GKE)
def test_an_example_on_gke_from_its_file_to_its_end(root: Path, job: Command, example: str, tmp_path: Path) -> None:
    team = GKE[example]
    cluster = "us-west4" if team == "nlp" else REGION
    flavor = "tpu-v5e-2x4" if team == "nlp" else "a100-40"
    path = placed(root, job, example, team, "--cluster", cluster, "--flavor", flavor)
    api = ApiStub()
    sets = f"/apis/jobset.x-k8s.io/v1alpha2/namespaces/{team}/jobsets"
    kueue = f"/apis/kueue.x-k8s.io/v1beta2/namespaces/{team}"
    core = f"/api/v1/namespaces/{team}"
    active = {"type": "Active", "status": "True"}
    api.lists = {f"{kueue}/localqueues": [{"metadata": {"name": team}, "status": {"conditions": [active]}}]}
    with served(api) as address:
        write_kubeconfig(tmp_path / "config", address, f"prod-{cluster}")
        run = job("submit", str(path)).stdout.strip()

        (body,) = api.created
        body["metadata"] |= {"uid": "1", "creationTimestamp": "2026-11-22T10:00:00Z"}
        about = {"name": "jobset-x", "ownerReferences": [{"uid": "1"}], "uid": "2"}
        full = {"type": "QuotaReserved", "status": "False", "message": "insufficient unused quota"}
        workload: Json = {"metadata": about, "spec": {}, "status": {"conditions": [full]}}
        pod = {"metadata": {"name": f"{run}-slice-0-0-x"}, "status": {"phase": "Running"}}
        requests = f"/apis/autoscaling.x-k8s.io/v1/namespaces/{team}/provisioningrequests"
        api.lists |= {sets: [body], f"{kueue}/workloads": [workload], requests: []}
        api.lists |= {f"{core}/pods": [], f"{core}/events": []}
        reason = job("why", run).stdout
        assert f"{run} waits for quota in queue {team} of {cluster}." in reason
        assert "insufficient unused quota" in reason
        assert job("logs", run).stdout == ""

        yes = {"status": "True", "lastTransitionTime": "2026-11-22T10:05:00Z"}
        workload["status"]["conditions"] = [
            {"type": kind, **yes} for kind in ("QuotaReserved", "Admitted", "PodsReady")
        ]
        api.lists[f"{core}/pods"] = [pod]
        api.texts[f"{core}/pods/{run}-slice-0-0-x/log"] = "step 1\nstep 2\n"
        assert job("logs", run).stdout == "slice-0-0-x | step 1\nslice-0-0-x | step 2\n"
        assert job("why", run).stdout == f"{run} has been running since 2026-11-22T10:05:00Z.\n"

        body["status"] = {"conditions": [{"type": "Completed", **yes}]}
        (ended,) = json.loads(job("wait", run, "--timeout", "0", "--format", "json").stdout)
        assert (ended["state"], ended["restarts"]) == ("succeeded", 0)
        assert job("why", run).stdout == f"{run} has succeeded.\n"


@pytest.mark.parametrize("example", VERTEX)
def test_an_example_on_vertex_ai_from_its_file_to_its_end(
    root: Path, job: Command, cloud: tuple[Cloud, str], example: str
) -> None:
    target = ("--target", "vertex", "--region", REGION, "--machine-type", "a2-highgpu-1g")
    path = placed(root, job, example, "vision", *target)

    run = job("submit", str(path)).stdout.strip()

    assert job("why", run).stdout.startswith(f"{run} is PENDING in {REGION} since ")
    (row,) = json.loads(job("status", run, "--format", "json").stdout)
    assert (row["state"], row["identity"].split("/")[-2]) == ("waiting", VERTEX[example])
    cloud[0].now += 61
    resource = replica(row["identity"].rpartition("/")[2], "workerpool0-0")
    entries = [{"textPayload": "step 1"}]
    name = f"projects/{PROJECT}/logs/workerpool0-0"
    cloud[0].cloud.handle(
        "logging", "POST", "v2/entries:write", [], {"logName": name, "resource": resource, "entries": entries}
    )
    assert job("logs", run).stdout.splitlines()[-1] == "workerpool0-0 | step 1"
    assert f"{run} is running since " in job("why", run).stdout
    cloud[0].now += 601
    assert " succeeded " in job("wait", run, "--timeout", "0").stdout
    assert job("why", run).stdout == f"{run} has succeeded.\n"
