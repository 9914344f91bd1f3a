"""What programs may do in their containers: as another user than root, and of the system calls of their node."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.containers.nodes import IMAGE, USER_IMAGE
from tests.parts.jobs.runs.gke_cluster import CLUSTER, PODS, TEAM, Cluster, Command, until
from tests.support.plans import planned_stack
from training_platform.config.workspace import read_workspace
from training_platform.resources.volumes import JOB

pytestmark = [pytest.mark.kube, pytest.mark.containers, pytest.mark.timeout(300)]

WRITES = """\
import os, pathlib
for name in ("STATE", "DATA"):
    folder = pathlib.Path(os.environ["MOUNT_" + name], "run")
    folder.mkdir()
    (folder / "file").write_text(str(os.getuid()))
"""


def create_folder(cluster: Cluster, root: Path, share: Path) -> None:
    """Run the Job that the team's stack plans for its folder, and add its claim; ``share`` is in place of NFS."""
    workspace = read_workspace(root)
    plan = planned_stack(workspace.stacks["lab-vision"], workspace)
    job = next(resource for resource in plan.resources if resource.type == JOB and "gpus-shared" in resource.name)
    pod = job.inputs["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    pod = {
        **pod,
        "containers": [{**container, "image": IMAGE}],
        "volumes": [{"name": "share", "hostPath": {"path": str(share)}}],
    }
    path = "/apis/batch/v1/namespaces/default/jobs"
    cluster.post(path, {"metadata": {"name": "folder"}, "spec": {"template": {"spec": pod}}})
    until(lambda: cluster.client.get(f"{path}/folder").json()["status"].get("succeeded"), lambda pods: pods == 1)
    room = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
    volume = {**room, "hostPath": {"path": str(share / TEAM)}, "capacity": {"storage": "1Gi"}}
    cluster.post("/api/v1/persistentvolumes", {"metadata": {"name": "data"}, "spec": volume})
    claim = {**room, "volumeName": "data", "resources": {"requests": {"storage": "1Gi"}}}
    claims = f"/api/v1/namespaces/{TEAM}/persistentvolumeclaims"
    cluster.post(claims, {"metadata": {"name": "data"}, "spec": claim})


def test_an_image_of_another_user_than_root_writes_to_its_directory_and_bucket(
    cluster: Cluster, root: Path, tmp_path: Path, submit: Callable[..., str], job: Command
) -> None:
    create_folder(cluster, root, tmp_path)
    mounts = [
        {"name": "state", "source": {"bucket": "checkpoints"}},
        {"name": "data", "source": {"directory": "data"}},
    ]

    run = submit(WRITES, image=USER_IMAGE, mounts=mounts, retries=0)
    end = job("wait", run, "--timeout", "2")

    assert end.exit_code == 0, job("why", run).stdout
    assert (tmp_path / TEAM / "data" / "run" / "file").read_text() == "1000"


CALLS = """\
import ctypes, os, re
print(*re.findall(r"(?:NoNewPrivs|Seccomp):\\s*(\\d)", open("/proc/self/status").read()))
libc = ctypes.CDLL(None, use_errno=True)
SET_MEMPOLICY, GETPPID = 238, 110
print(libc.syscall(SET_MEMPOLICY, 0, None, 0), os.strerror(ctypes.get_errno()), libc.syscall(GETPPID) > 0)
"""


@pytest.mark.parametrize(
    ("fields", "output"),
    [({}, "1 2\n-1 Operation not permitted True\n"), ({"unconfined": True}, "0 0\n0 Success True\n")],
    ids=["confined", "unconfined"],
)
def test_a_program_has_the_system_calls_of_containers_unless_its_job_wants_all(
    cluster: Cluster, submit: Callable[..., str], job: Command, fields: dict[str, bool], output: str
) -> None:
    run = submit(CALLS, gke={"cluster": CLUSTER, "flavor": "h100", "nodes": 1, **fields}, retries=0)

    assert job("wait", run, "--timeout", "2").exit_code == 0, job("why", run).stdout
    (pod,) = cluster.pods(run)
    assert cluster.client.get(f"{PODS}/{pod['metadata']['name']}/log").text == output
