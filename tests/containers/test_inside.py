"""Commands in the containers of a run, by kubectl and the node's kubelet."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.parts.jobs.runs.gke_cluster import TEAM, Cluster, Command, until

pytestmark = [pytest.mark.kube, pytest.mark.containers, pytest.mark.timeout(300)]

ASKS = "import os; print(os.environ['GREETING'], os.environ['NODE_RANK'])"


def test_a_held_run_has_a_shell_in_its_container_and_is_away_once_cancelled(
    cluster: Cluster, root: Path, submit: Callable[..., str], job: Command, capfd: pytest.CaptureFixture[str]
) -> None:
    if shutil.which("kubectl") is None:
        pytest.skip("no kubectl on PATH")
    job("cancel", submit("", env={"GREETING": "a"}))  # its file is what is debugged
    file = root / "jobs" / TEAM / "train.yaml"
    run = json.loads(job("debug", str(file), "--minutes", "5", "--format", "json").stdout)["run"]
    until(lambda: json.loads(job("status", run, "--format", "json").stdout)[0]["state"], lambda now: now == "running")

    capfd.readouterr()
    code = job("exec", run, "--", "python3", "-c", ASKS).exit_code
    output = capfd.readouterr().out
    failed = job("exec", run, "--", "sh", "-c", "exit 3").exit_code
    job("cancel", run)

    assert (code, output, failed) == (0, "a 0\n", 3)
    until(lambda: len(cluster.pods(run)), lambda pods: pods == 0)
