"""A repository with one small, protected environment, and the command that a person would type in it."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from local_google_cloud.api import Store
from training_platform.config.model.stack import PROJECT
from training_platform.parts.sandbox.run.folder import SandboxFolder

ROOT = Path(__file__).parents[4]
STACK = """\
config:
  training-platform:environment:
    project: example-train-small
    production: false
    filestore:
      homes: {location: us-central1-a, tier: ZONAL, capacity_gib: 1024}
    clusters:
      main:
        location: us-central1
        subnet: {nodes: 10.12.0.0/20, pods: 10.66.0.0/16, services: 10.12.16.0/20}
        system_pool: {machine_type: e2-standard-8, min_nodes: 3, max_nodes: 6}
        node_pools:
          h100:
            machine_type: a3-highgpu-8g
            zone: us-central1-a
            capacity: flex-start
            max_run_hours: 24
            max_nodes: 2
"""
SECONDS = 600  # for one command; an up takes about 30 on two idle cores, and a destroy 200 on busy ones


class Sandbox:
    """The sandbox of a small repository; ``folder`` is where everything of it is."""

    def __init__(self, root: Path, *, program: Path = ROOT) -> None:
        """With ``program``, the checkout of another version, that version's command and program run."""
        self.folder = SandboxFolder(root, root / ".sandbox")
        self.command = [sys.executable, "-m", "training_platform.cli.main", "sandbox"]
        self.environment = {**os.environ, "PYTHONPATH": str(program)}

    def __call__(self, *args: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end, whatever its exit code."""
        return subprocess.run(
            [*self.command, *args], cwd=self.folder.root, env=self.environment,
            check=False, capture_output=True, text=True, timeout=SECONDS,
        )  # fmt: skip

    def write(self, stack: str, section: dict[str, Any]) -> None:
        """Write the file of a stack: of a team if its section has members, else of an environment."""
        kind = "team" if "members" in section else "environment"
        text = yaml.safe_dump({"config": {f"{PROJECT}:{kind}": section}}, sort_keys=False)
        (self.folder.root / "stacks" / f"Pulumi.{stack}.yaml").write_text(text, encoding="utf-8")

    def steps(self, command: str, stack: str) -> dict[str, set[str]]:
        """Run a command that must succeed, and return its operations by resource name."""
        ran = self(command, stack)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        operations: dict[str, set[str]] = {}
        for step in json.loads(self.folder.summary(stack).read_text())["steps"]:
            operations.setdefault(step["name"], set()).add(step["op"])
        return operations

    def kill(self, when: Callable[[], bool], *args: str) -> bool:
        """Run a command and kill it with all its processes, like a power cut; False if it ended before."""
        process = subprocess.Popen(
            [*self.command, *args], cwd=self.folder.root, env=self.environment,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        deadline = time.monotonic() + SECONDS
        while process.poll() is None and not when():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        killed = process.poll() is None
        if killed:
            for pid in family(process.pid):
                _kill(pid)
        output, _ = process.communicate()
        assert killed or process.returncode == 0, output
        return killed

    def up_with_kills(self, stack: str, every: int) -> tuple[int, int]:
        """Deploy a stack, killing the run after every so many operations, until one run ends by itself.

        Return the number of kills, and of operations that were under way then.
        """
        kills = under_way = 0
        while self.kill(self._more(stack, every), "up", stack, "--resume", "--duration", "*=1"):
            kills += 1
            under_way += len(self.folder.pending(stack))
            assert kills < 40
        return kills, under_way

    def _more(self, stack: str, count: int) -> Callable[[], bool]:
        goal = len(self.folder.resources(stack)) + count
        return lambda: len(self.folder.resources(stack)) >= goal


def small(root: Path, stack: str = STACK) -> Sandbox:
    """Create a repository with one stack, ``small``, and return its sandbox."""
    sandbox = without_stacks(root)
    (root / "stacks" / "Pulumi.small.yaml").write_text(stack)
    return sandbox


def without_stacks(root: Path) -> Sandbox:
    """Create a repository that has the program but no stack, and return its sandbox."""
    (root / "stacks").mkdir(parents=True)
    for name in ("Pulumi.yaml", "__main__.py"):
        shutil.copy(ROOT / name, root / name)
    (root / "training_platform").symlink_to(ROOT / "training_platform")  # of this checkout, whichever is installed
    return Sandbox(root)


def family(pid: int) -> list[int]:
    """Return a process and all its descendants, in any process group."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        children.setdefault(parent, []).append(int(stat.parent.name))
    pids = []
    todo = [pid]
    while todo:
        pids.append(todo.pop())
        todo += children.get(pids[-1], [])
    return pids


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def held(folder: SandboxFolder) -> Counter[str]:
    """Count the local cloud's resources by name, without random parts, operations and changes."""
    names = (
        record.name for record in Store(folder.cloud).all() if not re.search("/(operations|changes)/", record.name)
    )
    return Counter(re.sub(r"-[0-9a-f]{7}$|\d{15,}", "", name) for name in names)


def state(folder: SandboxFolder) -> set[tuple[str, str]]:
    return {(resource["type"], resource["urn"].split("::", 3)[-1]) for resource in folder.resources("small")}
