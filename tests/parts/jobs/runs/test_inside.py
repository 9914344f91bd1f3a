"""Runs that differ from their file by options, runs that wait for a shell, and kubectl inside them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from tests.parts.jobs.runs.stub_lab import JOB, RUN, SETS, Lab, one_sentence, stub_lab
from training_platform.parts.jobs.runs.state import since
from training_platform.resources.kueue import RUN_LABEL
from training_platform.resources.launcher import launcher

PODS = "/api/v1/namespaces/vision/pods"
KUBECTL = """\
#!/bin/sh
case "$*" in
  *nvidia-smi*"pod-1"*|*pod-1*nvidia-smi*) echo "no nvidia-smi" >&2; exit 1;;
  *nvidia-smi*) echo "0, 97, 61440, 81559"; echo "1, 3, 12, 81559"; exit 0;;
  *tpu-info*) printf '%s\\n' "$@" > "$CALLED"; echo "Chip  Duty cycle"; exit 0;;
esac
printf '%s\\n' "$@" > "$CALLED"
exit 7
"""


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    with stub_lab(tmp_path) as lab:
        yield lab


def submitted(lab: Lab, *options: str) -> dict[str, Any]:
    result = lab("submit", *options)
    assert result.exit_code == 0, result.output
    (body,) = lab.api.created
    return body


def container(body: dict[str, Any]) -> dict[str, Any]:
    (role,) = body["spec"]["replicatedJobs"]
    (training,) = role["template"]["spec"]["template"]["spec"]["containers"]
    return dict(training)


def test_options_change_one_run_and_not_its_file(lab: Lab) -> None:
    body = submitted(lab, "--name", "train-mine", "--args", "--lr=0.1", "--args", "x", "--env", "A=b=c", "--nodes", "3")

    assert body["metadata"]["name"] == "train-mine"
    assert body["metadata"]["annotations"]["training-platform/user"] == "ada@example.com"
    assert body["spec"]["replicatedJobs"][0]["template"]["spec"]["parallelism"] == 3
    assert container(body)["args"] == ["train", "--rate=1", "--lr=0.1", "x"]
    assert {"name": "A", "value": "b=c"} in container(body)["env"]
    assert (lab.root / "jobs" / "vision" / "train.yaml").read_text() == JOB


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (("--env", "A"), 2, "'A' is not NAME=VALUE."),
        (("--args", "--lr 0.1 --bs 3"), 2, "Nearest: --args=--lr --args=0.1 --args=--bs --args=3"),
        (("--dry-run",), 2, "training-platform job render FILE prints the run"),
        (("--env", "1A=b"), 1, "jobs/vision/train.yaml:1:1: env"),
        (("--nodes", "9"), 1, "jobs/vision/train.yaml:4:"),
        (("--nodes", "0"), 2, "0 is not in the range x>=1."),
    ],
)
def test_an_option_is_checked_like_a_field_of_the_file(
    lab: Lab, options: tuple[str, ...], code: int, message: str
) -> None:
    result = lab("submit", *options)

    assert (result.exit_code, lab.api.created) == (code, [])
    assert message in result.stderr


def debug(lab: Lab, *options: str) -> Result:
    return lab("debug", str(lab.root / "jobs" / "vision" / "train.yaml"), *options)


def test_a_held_run_is_the_same_pod_with_a_command_that_ends_by_itself(lab: Lab) -> None:
    plain = submitted(lab)
    lab.api.created.clear()

    result = debug(lab, "--minutes", "30")

    assert result.exit_code == 0, result.output
    (body,) = lab.api.created
    run = body["metadata"]["name"]
    assert result.stdout == f"{run}\n"
    assert f"training-platform job exec {run} opens a shell once it runs; its program: train --rate=1" in result.stderr
    limit = {RUN_LABEL: str(2 * 3600)}  # the half hour, and the hour that VMs on demand may take to start
    assert body["metadata"]["labels"] == plain["metadata"]["labels"] | limit
    assert body["spec"]["failurePolicy"]["maxRestarts"] == 0
    held = container(body)
    original = container(plain)
    assert held["command"] == ["python3", "-c", launcher()]
    assert held["args"] == ["sleep", "1800"]
    assert held["resources"] == original["resources"]
    assert {row["name"] for row in held["env"]} == {row["name"] for row in original["env"]}


@pytest.mark.parametrize(
    ("limit_field", "minutes", "hours"),
    [("", 61, 3), (", max_run_hours: 1", 60, 1), (", max_run_hours: 9", 60, 2)],
)
def test_kueue_ends_a_held_run_at_the_jobs_own_limit_at_the_latest(
    lab: Lab, limit_field: str, minutes: int, hours: int
) -> None:
    file = lab.root / "jobs" / "vision" / "train.yaml"
    file.write_text(file.read_text().replace("nodes: 2", f"nodes: 2{limit_field}"))

    assert debug(lab, "--minutes", str(minutes)).exit_code == 0

    (body,) = lab.api.created
    assert body["metadata"]["labels"][RUN_LABEL] == str(hours * 3600)


def pods(lab: Lab, phases: str, plan: dict[str, Any] | None = None) -> None:
    env = [{"name": "TRAINING_LAUNCH", "value": json.dumps(plan)}] if plan else []
    lab.api.lists[PODS] = [
        {
            "metadata": {
                "name": f"pod-{index}",
                "annotations": {"batch.kubernetes.io/job-completion-index": str(index)},
            },
            "spec": {"containers": [{"name": "training", "command": ["python3", "-c", "LAUNCHER"], "env": env}]},
            "status": {"phase": "Running" if phase == "R" else "Pending"},
        }
        for index, phase in reversed(list(enumerate(phases)))
    ]


@pytest.fixture
def called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a kubectl on PATH that records its arguments, one per line, and exits with 7."""
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "kubectl"
    program.write_text(KUBECTL)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("CALLED", str(tmp_path / "called"))
    return tmp_path / "called"


def test_a_command_runs_in_the_container_of_one_node_as_the_member(lab: Lab, called: Path) -> None:
    pods(lab, "RR")

    result = lab("exec", RUN, "python", "train.py", "--node", "1")

    assert result.exit_code == 7
    head = ["--kubeconfig", str(lab.kubeconfig), "--context", "lab-gpus", "--namespace", "vision"]
    inside = ["exec", "-i", "pod-1", "--container", "training", "--", "python", "train.py"]
    assert called.read_text().splitlines() == [*head, *inside]


def test_a_command_has_the_secrets_of_the_program_and_tells_nobody(lab: Lab, called: Path) -> None:
    pods(lab, "R", {"secrets": {"TOKEN": "a"}, "topic": "t", "message": {}})

    lab("exec", RUN)

    words = called.read_text().splitlines()
    assert words[words.index("--") + 1 : -3] == [
        "env", 'TRAINING_LAUNCH={"secrets": {"TOKEN": "a"}, "exec": true}', "python3", "-c", "LAUNCHER",
    ]  # fmt: skip


def test_ports_are_forwarded_to_the_first_node(lab: Lab, called: Path) -> None:
    pods(lab, "RR")

    lab("port-forward", RUN, "8888:80", "6006")

    assert called.read_text().splitlines()[6:] == ["port-forward", "pod/pod-0", "8888:80", "6006"]


def test_a_node_that_does_not_run_cannot_be_entered(lab: Lab, called: Path) -> None:
    pods(lab, "RP")
    one_sentence(lab("exec", RUN, "--node", "1"), "train-bcdfg has no running node 1: --node is at most 0.")
    pods(lab, "P")
    one_sentence(lab("exec", RUN), "train-bcdfg has no running container: the run is waiting.")
    one_sentence(lab("logs", "--tail"), "training-platform job logs RUN | tail -n 100 has the last lines.")
    assert "job exec RUN -- nvidia-smi -l 1." in lab("exec", RUN, "nvidia-smi", "-l", "1").stderr
    assert not called.exists()


def test_use_of_accelerators_is_a_row_for_each(lab: Lab, called: Path) -> None:
    pods(lab, "RR")

    result = lab("top", RUN, "--format", "json")

    assert not called.exists()
    assert json.loads(result.stdout) == [
        {"node": "pod-0", "gpu": "0", "busy_percent": "97", "used_mib": "61440", "total_mib": "81559"},
        {"node": "pod-0", "gpu": "1", "busy_percent": "3", "used_mib": "12", "total_mib": "81559"},
    ]
    assert (result.exit_code, result.stderr) == (2, "training-platform: pod-1 did not answer: no nvidia-smi\n")
    assert "pod-0  1" in lab("top", RUN).stdout


def test_tpus_are_measured_by_the_tool_of_the_image(lab: Lab, called: Path) -> None:
    pods(lab, "R")
    (pod,) = lab.api.lists[PODS]
    pod["spec"]["containers"][0]["resources"] = {"limits": {"google.com/tpu": "4"}}

    result = lab("top", RUN, "--format", "json")

    assert called.read_text().splitlines()[-1] == "exec tpu-info"
    assert (json.loads(result.stdout), result.stderr) == ([], "pod-0\nChip  Duty cycle\n")
    assert lab("top", RUN).stdout == "pod-0\nChip  Duty cycle\n"


def test_a_list_has_the_submitter_the_priority_and_the_accelerators(lab: Lab) -> None:
    run = lab.live()
    run["metadata"]["annotations"] = {"training-platform/user": "ada@example.com"}
    run["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] = "high"
    lab.api.lists[SETS] = [run]

    (run_row,) = json.loads(lab("list", "--team", "vision", "--format", "json").stdout)

    assert (run_row["user"], run_row["priority"], run_row["accelerators"]) == ("ada@example.com", "high", 2 * 8)


@pytest.mark.parametrize(
    ("start", "end", "text"),
    [
        ("2026-11-23T10:00:00Z", "", "119m"),
        ("2026-11-23T09:59:00Z", "", "2h"),
        ("2026-11-21T11:59:00Z", "", "2d"),
        ("2026-11-23T10:00:00Z", "2026-11-23T10:05:59Z", "5m"),
        ("", "", "-"),
    ],
)
def test_a_time_is_in_its_largest_unit_of_at_least_two(start: str, end: str, text: str) -> None:
    assert since(start, end, datetime(2026, 11, 23, 11, 59, tzinfo=UTC)) == text
