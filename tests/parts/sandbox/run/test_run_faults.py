"""Faults with the real engine and gcp plugin: what a run leaves, and how a resumed stack equals one without faults."""

from __future__ import annotations

import re
import sys
from subprocess import CompletedProcess

import pytest

from tests.parts.sandbox.run.repositories import Sandbox, held, small, state

pytestmark = [
    pytest.mark.engine,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(sys.platform != "linux", reason="the sandbox of this test is"),
]

Ran = CompletedProcess[str]


@pytest.fixture(scope="module")
def never_failed(tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    """Deploy a stack without faults."""
    sandbox = small(tmp_path_factory.mktemp("passing") / "repository")
    ran = sandbox("up", "small", "--fault", "stockout=a3-highgpu-8g")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "Faults that hit nothing: stockout=a3-highgpu-8g." in ran.stdout
    return sandbox


def test_a_failure_is_reported_and_the_resumed_stack_equals_one_without_faults(
    sandbox: Sandbox, never_failed: Sandbox
) -> None:
    def up(*faults: str) -> Ran:
        return sandbox("up", "small", "--resume", *(f"--fault={fault}" for fault in faults))

    no_subnet = up("lost-response=compute.subnetworks", "failure=file.instances")
    no_instance = up("failure=file.instances")
    no_cluster = up("stockout=e2-standard-8")
    broken_pool = up("failure=container.nodePools")
    unheard_pool = up("lost-response=container.nodePools")
    resumed = up()
    again = sandbox("up", "small")

    refused(no_subnet, "-subnet: .* Error creating Subnetwork: .*: EOF")
    refused(no_instance, "filestore-homes-instance: .*: Internal error")
    refused(
        no_cluster, "main-cluster: .* The zone 'projects/example-train-small/zones/us-central1-a' does not have enough"
    )
    refused(broken_pool, 'main-.*-pool: .* was created in the error state "ERROR"')
    refused(unheard_pool, "main-.*-pool: .*: EOF")
    refused(unheard_pool, "To continue: `training-platform sandbox up small --resume`")
    assert re.search(r"Fault lost-response=container.nodePools hit 1: POST /container/", unheard_pool.stdout)
    assert re.search(r"Resumed: deleted main-\w+-pool, which was half created", unheard_pool.stdout)
    assert resumed.returncode == 0, resumed.stdout + resumed.stderr
    assert re.search(r"Resumed: imported main-\w+-pool as ", resumed.stdout)
    assert re.match(r"small: up done: \d+ unchanged\n", again.stdout), again.stdout + again.stderr
    assert state(sandbox.folder) == state(never_failed.folder)
    assert held(sandbox.folder) == held(never_failed.folder)


def refused(ran: Ran, pattern: str) -> None:
    """Assert that a command failed with a reason; ``.`` in the pattern matches line ends too."""
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert re.search(pattern, ran.stderr, re.DOTALL), ran.stderr
