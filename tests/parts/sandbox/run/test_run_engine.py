"""The life of a stack and a quota request with the real engine and gcp plugin, also in real API servers."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.parts.sandbox.run.repositories import STACK, Sandbox, family, held, state
from training_platform.parts.sandbox.run.folder import SandboxFolder, is_alive

pytestmark = [
    pytest.mark.engine,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(sys.platform != "linux", reason="kills by /proc"),
]


def kinds(folder: SandboxFolder) -> set[str]:
    return {name.split("/")[-2] for name in held(folder) if name.count("/") > 1}


def test_a_stack_is_deployed_and_destroyed_and_a_protected_one_only_on_request(sandbox: Sandbox) -> None:
    folder = sandbox.folder
    before = {path.name: path.read_bytes() for path in folder.root.glob("*") if path.is_file()}

    ran = sandbox("up", "small")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "From the first change to the last" in ran.stdout
    assert "compute.googleapis.com" in ran.stdout
    assert "A stand-in for the kubernetes provider kept" in ran.stdout
    assert {"clusters", "nodePools", "instances"} <= kinds(folder)
    summary = json.loads(folder.summary("small").read_text())
    assert summary["seconds"] > 0
    (planned,) = summary["counts"].values()
    assert len(summary["steps"]) == planned
    order = [step["name"] for step in summary["steps"]]
    assert order.index("main-cluster") < order.index("main-h100-pool")

    for command in ("up", "refresh", "preview"):
        again = sandbox(command, "small")
        assert again.returncode == 0, again.stdout + again.stderr
        assert f"small: {command} done: {planned} unchanged\n" in again.stdout
    assert f"stack small: {planned} resources\n" in sandbox("status").stdout

    refused = sandbox("destroy", "small")
    assert refused.returncode == 1
    assert "small is protected: " in refused.stderr
    assert "--lift-protection" in refused.stderr
    assert {"clusters", "nodePools", "instances"} <= kinds(folder)

    gone = sandbox("destroy", "small", "--lift-protection")
    assert gone.returncode == 0, gone.stdout + gone.stderr
    assert "Lifted the protection of " in gone.stdout
    assert not {"clusters", "nodePools", "instances", "networks", "alertPolicies"} & kinds(folder)
    assert folder.resources("small") == []

    assert {path.name: path.read_bytes() for path in folder.root.glob("*") if path.is_file()} == before
    assert (folder.root / "stacks" / "Pulumi.small.yaml").read_text() == STACK


def test_a_run_killed_at_every_tenth_operation_ends_as_one_that_was_not(sandbox: Sandbox, tmp_path: Path) -> None:
    folder = sandbox.folder

    kills, imported = sandbox.up_with_kills("small", 10)

    assert kills >= 3
    assert imported
    assert folder.pending("small") == []
    assert folder.locks("small") == []
    again = sandbox("up", "small")
    assert re.match(r"small: up done: \d+ unchanged\n", again.stdout), again.stdout + again.stderr
    whole = Sandbox(_copy_of(folder.root, tmp_path / "whole"))
    assert whole("up", "small").returncode == 0
    assert state(folder) == state(whole.folder)
    assert held(folder) == held(whole.folder)


def _copy_of(root: Path, target: Path) -> Path:
    (target / "stacks").mkdir(parents=True)
    for name in ("Pulumi.yaml", "__main__.py", "stacks/Pulumi.small.yaml"):
        (target / name).write_bytes((root / name).read_bytes())
    (target / "training_platform").symlink_to((root / "training_platform").resolve())
    return target


@pytest.mark.parametrize("cut", [0, 1000], ids=["empty", "truncated"])
def test_a_broken_state_of_a_run_killed_in_the_middle_of_creating_is_restored_without_a_double(
    sandbox: Sandbox, tmp_path: Path, cut: int
) -> None:
    path = sandbox.folder.state / ".pulumi" / "stacks" / "training-platform" / "small.json"

    def creating() -> bool:
        kinds = {row["resource"]["type"] for row in sandbox.folder.pending("small")} if path.exists() else set()
        return "gcp:container/cluster:Cluster" in kinds

    killed = sandbox.kill(creating, "up", "small", "--duration", "container.clusters=15")
    path.write_bytes(path.read_bytes()[:cut])
    refused = sandbox("up", "small")
    resumed = sandbox("up", "small", "--resume")
    preview = sandbox("preview", "small")

    assert killed
    assert refused.returncode == 2
    assert "sandbox up small --resume` restores its backup" in " ".join(refused.stderr.split())
    assert resumed.returncode == 0, resumed.stdout + resumed.stderr
    assert "restored the backup" in resumed.stdout
    assert re.match(r"small: preview done: \d+ unchanged\n", preview.stdout), preview.stdout
    once = Sandbox(_copy_of(sandbox.folder.root, tmp_path / "once"))
    assert once("up", "small").returncode == 0
    assert held(sandbox.folder) == held(once.folder)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_run_that_is_ended_leaves_no_process_and_prints_no_traceback(
    sandbox: Sandbox, number: signal.Signals
) -> None:
    process = subprocess.Popen(
        [*sandbox.command, "up", "small", "--duration", "container.clusters=600"], cwd=sandbox.folder.root,
        env=sandbox.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
    )  # fmt: skip
    while process.poll() is None and not sandbox.folder.pending("small"):
        time.sleep(0.1)
    started = set(family(process.pid)) - {process.pid}

    os.killpg(process.pid, number) if number == signal.SIGTERM else process.kill()
    output, _ = process.communicate()  # ends with the last process that has its output
    for _ in range(300):
        if not any(map(is_alive, started)):
            break
        time.sleep(0.1)

    assert len(started) > 2  # the engine, its plugins, and what watches them
    assert process.returncode == (143 if number == signal.SIGTERM else -number)
    assert not [pid for pid in started if is_alive(pid)]
    assert "Traceback" not in output
    assert "Warning" not in output


def test_a_protected_stack_whose_file_is_gone_is_destroyed_by_its_state(sandbox: Sandbox) -> None:
    ran = sandbox("up", "small")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    file = sandbox.folder.root / "stacks" / "Pulumi.small.yaml"
    file.write_text(file.read_text().replace("a3-highgpu-8g", "a3-higpu-8g"))
    assert "is not a machine type" in sandbox("up", "small").stderr
    file.unlink()

    refused = sandbox("destroy", "small")
    gone = sandbox("destroy", "small", "--lift-protection")

    assert refused.returncode == 1
    assert "small is protected: " in refused.stderr
    assert gone.returncode == 0, gone.stdout + gone.stderr
    assert "resources in the state: " in gone.stdout
    assert sandbox.folder.resources("small") == []
    assert not {"clusters", "nodePools", "instances", "networks"} & kinds(sandbox.folder)
