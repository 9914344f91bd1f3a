"""The samples' jobs are let in by a real API server, and the policies are evaluated within its limits."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest

from tests.kube.bodies import GPU_JOB, TCPX, pod_of
from tests.kube.conftest import JOBS_ON_GKE
from tests.kube.server import JOB_CONTROLLER, MEMBER, Json, Server

pytestmark = [pytest.mark.kube, pytest.mark.timeout(300)]

Render = Callable[[str], Json]


@pytest.mark.parametrize("file", JOBS_ON_GKE)
def test_every_sample_and_example_is_let_in_with_its_pods(server: Server, rendered: Render, file: str) -> None:
    held = rendered(file)
    assert server.ask("Pod", pod_of(held), JOB_CONTROLLER) == ""
    held["spec"]["suspend"] = True  # as Kueue's webhook leaves it
    member = MEMBER | {"Impersonate-Group": f"{held['metadata']['namespace']}@example.com"}
    assert server.ask("JobSet", held, member) == ""


@pytest.mark.parametrize(("jobs", "refused"), [(20, False), (21, True)])
def test_a_jobset_too_large_to_be_judged_is_refused_for_that(
    server: Server, rendered: Render, jobs: int, refused: bool
) -> None:
    """20 replicated jobs of 10 containers, 20 mounts and 20 volumes are judged within the API server's limits."""
    held = rendered(GPU_JOB)
    held["spec"]["suspend"] = True
    (first,) = held["spec"]["replicatedJobs"]
    names = [f"v{number}" for number in range(20)]
    mounts = [{"name": name, "mountPath": f"/{name}", "readOnly": True} for name in names]
    pod = first["template"]["spec"]["template"]["spec"]
    del pod["initContainers"], pod["tolerations"]  # of TPUs or GPUs, which these containers do not request
    pod["volumes"] = [{"name": name, "hostPath": {"path": TCPX.host_paths[0]}} for name in names]
    pod["containers"] = [{"name": f"c{n}", "image": "example.com/a:1", "volumeMounts": mounts} for n in range(10)]
    held["spec"]["replicatedJobs"] = [{**copy.deepcopy(first), "name": f"job{number}"} for number in range(jobs)]

    answer = server.ask("JobSet", held, MEMBER)

    assert ("the job is too large to check" in answer) == refused
    assert refused or answer == ""
