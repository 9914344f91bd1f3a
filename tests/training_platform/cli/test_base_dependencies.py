"""Commands of a machine that only checks: each in a process that can import nothing beyond the base dependencies."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.places import ORGANISATION, ROOT

EXTRAS = (
    "pulumi", "pulumi_gcp", "pulumi_kubernetes", "pulumi_policy", "grpc", "google", "googleapiclient", "kubernetes",
    "requests", "httpx", "starlette", "uvicorn", "ruamel", "numpy",
)  # fmt: skip
PROGRAM = f"""
import sys


class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {EXTRAS!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)


sys.meta_path.insert(0, Refuse())
from training_platform.cli.main import main

sys.argv[0] = "training-platform"
main()
"""
TRACE = "submitted,team,needs,seconds\n0,vision,8 h100-reservation,60\n"
LAB = ("init", "environment", "lab", "--project", "example-lab", "--no-production", "--machine-type", "h100")
COMMANDS = {
    "check": (["check"], 0, "5 stacks: clean"),
    "plan": (["plan", "dev", "--format", "json"], 0, '"gcp:container/nodePool:NodePool"'),
    "job check": (["job", "check", "jobs/nlp/pretrain.yaml"], 0, ""),
    "job render": (["job", "render", "jobs/nlp/pretrain.yaml", "--target", "gke"], 0, "kind: JobSet"),
    "explain a rule": (["explain", "plan"], 0, "Looks for a stack that cannot be planned"),
    "explain a line": (["explain", "stacks/Pulumi.dev.yaml:1"], None, "stacks/Pulumi.dev.yaml"),
    "simulate": (["simulate", "trace.csv", "--environment", "prod"], 0, "vision"),
    "init": ([*LAB, "--alert-email", "a@example.com"], 0, "Pulumi.lab.yaml"),
    "quota show": (["quota", "show"], 0, "example-train-prod"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_needs_only_the_base_dependencies(name: str, tmp_path: Path) -> None:
    arguments, code, output = COMMANDS[name]
    root = tmp_path / "organisation"
    shutil.copytree(ORGANISATION, root, ignore=shutil.ignore_patterns("inventories"))
    (root / "trace.csv").write_text(TRACE, encoding="utf-8")

    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        cwd=root, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert "No module named" not in done.stderr
    assert "Traceback" not in done.stderr
    assert code is None or done.returncode == code, done.stderr
    assert output in done.stdout + done.stderr
