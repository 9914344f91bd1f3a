"""Faults under the real engine and the real gcp plugin: each ends well after retries, or in a stack that resumes."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pytest

from tests.sandbox_run.conftest import Sandbox
from tests.sandbox_run.test_run_engine import held, state

pytestmark = [
    pytest.mark.engine,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(sys.platform != "linux", reason="the sandbox of this test is"),
]

PASSING = """
bursts:
  many: {code: 429, service: container, times: 3, retry_after_seconds: 1}
  away: {code: 503, service: file, times: 2}
slow_operations:
  slow: {kind: file.instances, seconds: 0.5}
stuck_pools:
  held: {name: system, for_seconds: 45}
"""
# One after the other: the engine begins nothing new once a create has failed. Scenario, what it hit, what is said.
FAILING = {
    "broken instance": (
        "failed_operations: {broken: {kind: file.instances, action: create, times: 1}}",
        "broken (failed operations) hit 1",
        "Internal error.",
    ),
    "expired token": (
        "expired_tokens: {old: {service: container, verb: POST, times: 1}}",
        "old (expired tokens) hit 1",
        "Request had invalid authentication credentials",
    ),
    "stock-out": (
        "stockouts: {gone: {machine_type: e2-standard-8, location: us-central1-a, after_seconds: 0.3}}",
        "gone (stockouts) hit 1",
        "The zone 'projects/example-train-small/zones/us-central1-a' does not have enough",
    ),
    "broken pool": (
        "failed_operations: {broken: {kind: container.nodePools, action: create, name: system, times: 1}}",
        "broken (failed operations) hit 1",
        'NodePool system was created in the error state "ERROR"',
    ),
    "lost response": (
        'lost_responses: {unheard: {service: container, verb: POST, path: "*/nodePools", times: 1}}',
        "unheard (lost responses) hit 1",
        "EOF",
    ),
}


def test_what_passes_is_waited_for(sandbox: Sandbox, tmp_path: Path) -> None:
    file = tmp_path / "passing.yaml"
    file.write_text(PASSING)

    passed = sandbox("up", "small", "--scenario", str(file))

    assert passed.returncode == 0, passed.stdout + passed.stderr
    hits = ("many (bursts) hit 3", "away (bursts) hit 2", "slow (slow operations) hit 1", "held (stuck pools) hit 1")
    assert [line for line in hits if f"Fault {line}" not in passed.stdout] == []


def test_what_fails_is_said_and_the_resumed_stack_is_one_that_never_failed(sandbox: Sandbox, tmp_path: Path) -> None:
    whole = Sandbox(tmp_path / "whole")
    shutil.copytree(sandbox.folder.root, whole.folder.root, symlinks=True)

    for name, (text, hit, said) in FAILING.items():
        file = tmp_path / f"{name}.yaml"
        file.write_text(text)
        failed = sandbox("up", "small", "--resume", "--scenario", str(file))
        assert failed.returncode == 1, (name, failed.stdout, failed.stderr)
        assert f"Fault {hit}" in failed.stdout, name
        assert said in failed.stderr, name

    resumed = sandbox("up", "small", "--resume")
    assert resumed.returncode == 0, resumed.stdout + resumed.stderr
    assert "Resumed: imported main-" in resumed.stdout
    again = sandbox("up", "small")
    assert re.match(r"small: up done: \d+ unchanged\n", again.stdout), again.stdout + again.stderr
    assert whole("up", "small").returncode == 0
    assert state(sandbox.folder) == state(whole.folder)
    assert held(sandbox.folder) == held(whole.folder)
