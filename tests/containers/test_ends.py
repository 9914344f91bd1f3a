"""Jobs that end in real containers: by their programs, their limits, the kubelet, Kueue and people."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import pytest

from tests.containers.buckets import Buckets
from tests.containers.conftest import Seen
from tests.containers.pods import WAIT, Json, begun
from tests.parts.jobs.runs.gke_cluster import CLUSTER, PODS, TEAM, Cluster, Command, until

pytestmark = [pytest.mark.kube, pytest.mark.containers, pytest.mark.timeout(300)]

Submit = Callable[..., str]
QUEUE = f"/apis/kueue.x-k8s.io/v1beta2/clusterqueues/{TEAM}"
POLITE = """\
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
print('begun')
time.sleep(600)
"""
FAILS = "import sys; sys.exit({code})"


def evict(cluster: Cluster, pod: Json) -> None:
    """Evict a pod as a drained node does."""
    about = {"name": pod["metadata"]["name"], "namespace": TEAM}
    cluster.post(f"{PODS}/{about['name']}/eviction", {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": about})


def held(cluster: Cluster) -> int:
    """Return the GPUs of the team that are in use."""
    rows = cluster.client.get(QUEUE).json()["status"].get("flavorsReservation", ())
    return sum(int(resource["total"]) for row in rows for resource in row["resources"])


def ended(seen: Callable[[str], Seen], run: str) -> Seen:
    return until(lambda: seen(run), lambda now: now.state in ("succeeded", "failed"))


def test_a_program_that_fails_starts_again_until_its_retries_are_used(
    submit: Submit, seen: Callable[[str], Seen]
) -> None:
    last = ended(seen, submit(FAILS.format(code=3), retries=2))

    assert (last.state, last.restarts, last.interruptions) == ("failed", 2, 0)
    assert "ended with exit code 3 (Error)" in last.why


def test_a_code_of_retry_on_is_tried_again_and_another_ends_the_run(
    submit: Submit, seen: Callable[[str], Seen]
) -> None:
    program = "import os, sys; os.mkdir('{0}') if not os.path.exists('{0}') else sys.exit(3); sys.exit(75)"
    folder = "/gcs/example-lab-lab-vision-checkpoints/tried"
    mounts = [{"name": "state", "source": {"bucket": "checkpoints"}}]

    last = ended(seen, submit(program.format(folder), retries=5, retry_on=[75], mounts=mounts))

    assert (last.state, last.restarts, last.interruptions) == ("failed", 1, 0)
    assert "ended with exit code 3 (Error)" in last.why


def test_a_run_with_retry_on_that_kueue_evicts_while_unmounting_takes_long_starts_again(
    cluster: Cluster, buckets: Buckets, submit: Submit, seen: Callable[[str], Seen]
) -> None:
    mounts = [{"name": "state", "source": {"bucket": "checkpoints"}}]
    run = submit(WAIT, retries=0, retry_on=[75], mounts=mounts)
    begun(cluster, run)

    buckets.unmounts.clear()
    cluster.patch(QUEUE, {"spec": {"stopPolicy": "HoldAndDrain"}})
    until(lambda: cluster.pods(run)[0]["status"]["phase"], lambda phase: phase == "Failed")
    cluster.patch(QUEUE, {"spec": {"stopPolicy": "None"}})
    time.sleep(20)
    buckets.unmounts.set()

    begun(cluster, run)
    last = until(lambda: seen(run), lambda now: now.state == "running")
    assert (last.restarts, last.interruptions) == (0, 0)


def test_a_program_that_outgrows_its_memory_has_failed(submit: Submit, seen: Callable[[str], Seen]) -> None:
    last = ended(seen, submit("held = bytearray(3 << 30)", memory_gib=1, retries=1))

    assert (last.state, last.restarts, last.interruptions) == ("failed", 1, 0)
    assert "ended with exit code 137 (OOMKilled)" in last.why


def test_a_program_that_outgrows_its_disk_has_failed(submit: Submit, seen: Callable[[str], Seen]) -> None:
    program = "open('/filled', 'wb').write(bytes(3 << 29)); " + WAIT

    last = ended(seen, submit(program, disk_gib=1, retries=0))

    assert (last.state, last.restarts, last.interruptions) == ("failed", 0, 0)
    assert 'failed with Evicted: "' in last.why


def test_a_program_that_does_not_exist_has_failed_at_once(submit: Submit, seen: Callable[[str], Seen]) -> None:
    last = ended(seen, submit("", command=["no-such-program"], retries=5))

    assert (last.state, last.restarts) == ("failed", 0)
    assert "no-such-program could not be started: No such file or directory" in last.why


def test_a_container_that_cannot_start_has_failed_at_once(submit: Submit, seen: Callable[[str], Seen]) -> None:
    """The image's ``python3`` is not on this PATH."""
    last = ended(seen, submit(WAIT, env={"PATH": "/nowhere"}, retries=5))

    assert (last.state, last.restarts) == ("failed", 0)
    assert "(StartError)" in last.why


def test_a_run_whose_image_cannot_be_pulled_says_so_and_is_named_to_those_behind_it(
    cluster: Cluster, submit: Submit, job: Command, seen: Callable[[str], Seen]
) -> None:
    run = submit(WAIT, image="registry.example.com/missing:1")

    def listed() -> str:
        (row,) = json.loads(job("list", "--team", TEAM, "--format", "json").stdout)
        assert row["state"] in ("waiting", "starting")
        return str(row["waiting_reason"])

    until(listed, lambda reason: reason in ("ErrImagePull", "ImagePullBackOff"))
    assert "starting: ErrImagePull" in (text := job("status", run).stdout) or "starting: ImagePullBackOff" in text
    assert "registry.example.com/missing:1" in seen(run).why
    behind = submit(WAIT, gke={"cluster": CLUSTER, "flavor": "h100", "nodes": 5})
    until(lambda: seen(behind).why, lambda text: f"{run} since" in text and "(its pods are not ready)" in text)
    assert seen(run).restarts == 0


def test_a_drained_run_whose_program_ends_with_0_starts_again_without_a_retry(
    cluster: Cluster, submit: Submit, seen: Callable[[str], Seen]
) -> None:
    run = submit(POLITE, retries=0)

    evict(cluster, begun(cluster, run))

    begun(cluster, run, attempt=1)
    last = until(lambda: seen(run), lambda now: now.state == "running")
    assert (last.restarts, last.interruptions) == (0, 1)


def test_a_cancelled_run_whose_program_does_not_expect_it_frees_its_machines_at_once(
    cluster: Cluster, submit: Submit, job: Command
) -> None:
    run = submit(WAIT)
    begun(cluster, run)
    assert held(cluster) == 8

    start = time.monotonic()
    assert job("cancel", run).exit_code == 0
    until(lambda: (held(cluster), len(cluster.pods(run))), lambda now: now == (0, 0))

    assert time.monotonic() - start < 15


def test_a_killed_program_is_a_failure_that_counts(
    cluster: Cluster, submit: Submit, seen: Callable[[str], Seen]
) -> None:
    program = "import os; print('begun'); os.kill(os.getpid(), 9)"

    last = ended(seen, submit(program, retries=1))

    assert (last.state, last.restarts, last.interruptions) == ("failed", 1, 0)
    assert "ended with exit code 137 (Error)" in last.why
