"""Faults with the real engine and gcp plugin: a run succeeds after retries, or leaves a stack that can resume."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from subprocess import CompletedProcess

import pytest

from tests.parts.sandbox.run.repositories import Sandbox, held, small, state
from training_platform.parts.sandbox.run.faults import FaultControl
from training_platform.parts.sandbox.run.servers import announced, serving
from training_platform.parts.sandbox.run.session import read_stacks

pytestmark = [
    pytest.mark.engine,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(sys.platform != "linux", reason="the sandbox of this test is"),
]

Ran = CompletedProcess[str]

# The stock-out is of the pool "system": the first that asks for its machines is the cluster, for its throw-away pool.
PASSING = """
bursts:
  many: {code: 429, service: container, times: 3}
  away: {code: 503, service: file, times: 2}
stockouts:
  sold-out: {machine_type: e2-standard-8, location: us-central1-a, skip: 1, after_seconds: 600}
"""
# The engine begins nothing new once a create has failed, so these three wait for each other.
WAITING = """
bursts:
  instance: {code: 503, service: file, verb: POST}
  subnet: {code: 503, service: compute, verb: POST, path: "*/subnetworks"}
  router: {code: 503, service: compute, verb: POST, path: "*/routers"}
"""
UNLIKE = """
failed_operations: {broken-instance: {kind: file.instances, action: create, times: 1, message: The instance broke.}}
lost_responses: {unheard-subnet: {service: compute, verb: POST, path: "*/subnetworks", times: 1}}
bursts: {old-token: {code: 401, service: compute, verb: POST, path: "*/routers", times: 1}}
"""
NO_CLUSTER = "stockouts: {gone: {machine_type: e2-standard-8, location: us-central1-a, after_seconds: 0.3}}"
# Of two pools, one breaks seconds after the other's answer is lost: operations on pools take as long.
NO_POOLS = """
failed_operations: {broken-pool: {kind: container.nodePools, action: create, times: 1, at: 1}}
lost_responses: {unheard-pool: {service: container, verb: POST, path: "*/nodePools", skip: 1, times: 1}}
"""
POOL_SECONDS = 5.0


@pytest.fixture(scope="module")
def never_failed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Sandbox, Ran]]:
    """Deploy a stack through all transient faults, and return it with the command's output."""
    root = tmp_path_factory.mktemp("passing")
    sandbox = small(root / "repository")
    with faults_of(sandbox) as faults:
        yield sandbox, up(sandbox, PASSING, faults, once=("sold-out",), lift=("sold-out",))


def test_transient_faults_are_waited_out(never_failed: tuple[Sandbox, Ran]) -> None:
    _, passed = never_failed

    assert passed.returncode == 0, passed.stdout + passed.stderr
    hits = ("many (bursts) hit 3", "away (bursts) hit 2")
    assert [line for line in hits if f"Fault {line}" not in passed.stdout] == []


def test_a_failure_is_reported_and_the_resumed_stack_equals_one_without_faults(
    sandbox: Sandbox, never_failed: tuple[Sandbox, Ran]
) -> None:
    waiting = ("instance", "subnet", "router")
    with faults_of(sandbox) as faults:
        unlike = up(sandbox, WAITING, faults, once=waiting, then=UNLIKE, lift=waiting)
        no_cluster = up(sandbox, NO_CLUSTER, faults)
        no_pools = up(sandbox, NO_POOLS, faults)
        resumed = sandbox("up", "small", "--resume")
        again = sandbox("up", "small")

    refused(unlike, "filestore-homes-instance: .*: The instance broke.")
    refused(unlike, "network-us-central1-router: .*: Request had invalid authentication credentials")
    refused(unlike, "-subnet: .* Error creating Subnetwork: .*: EOF")
    refused(
        no_cluster, "main-cluster: .* The zone 'projects/example-train-small/zones/us-central1-a' does not have enough"
    )
    refused(no_pools, 'main-.*-pool: .* was created in the error state "ERROR"')
    refused(no_pools, "main-.*-pool: .*: EOF")
    refused(no_pools, "To continue: `training-platform sandbox up small --resume`")
    assert resumed.returncode == 0, resumed.stdout + resumed.stderr
    assert re.search(r"Resumed: imported main-\w+-pool as ", resumed.stdout)
    assert re.search(r"Resumed: deleted main-\w+-pool, which was half created", resumed.stdout)
    assert re.match(r"small: up done: \d+ unchanged\n", again.stdout), again.stdout + again.stderr
    assert state(sandbox.folder) == state(never_failed[0].folder)
    assert held(sandbox.folder) == held(never_failed[0].folder)


def refused(ran: Ran, pattern: str) -> None:
    """Assert that a command failed with a reason; ``.`` in the pattern matches line ends too."""
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert re.search(pattern, ran.stderr, re.DOTALL), ran.stderr


@contextmanager
def faults_of(sandbox: Sandbox) -> Iterator[FaultControl]:
    """Serve the local cloud of a sandbox; yields the control of its faults."""
    folder = sandbox.folder
    stacks = read_stacks(folder.root, ())
    with (
        folder.locked(),
        serving(folder, stacks, durations={"container.nodePools": POOL_SECONDS}) as servers,
        announced(folder, servers),
    ):
        yield FaultControl(servers.cloud)


def up(
    sandbox: Sandbox,
    scenario: str,
    faults: FaultControl,
    *,
    once: Sequence[str] = (),
    then: str = "",
    lift: Sequence[str] = (),
) -> Ran:
    """Deploy the stack in a scenario; once each fault of ``once`` has fired, play ``then`` too, and lift faults."""
    file, other = (sandbox.folder.root / name for name in ("scenario.yaml", "then.yaml"))
    file.write_text(scenario)
    other.write_text(then)
    with ThreadPoolExecutor(1) as threads:
        run = threads.submit(sandbox, "up", "small", "--resume", "--scenario", str(file))
        while once and not wait([run], timeout=0.05).done:
            if {*once} <= {fault["name"] for fault in faults.listed() if fault["fired"]}:
                if then:
                    faults.add(other)
                faults.clear(lift)
                break
        return run.result()
