"""The job that fills a data set, ``examples/data/prefetch.py``: from a bucket into a folder of Filestore."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.containers.buckets import Buckets
from tests.containers.pods import log
from tests.kube.rendered_objects import rendered
from tests.parts.jobs.runs.gke_cluster import CLUSTER, TEAM, Cluster, Command
from tests.support.places import ROOT
from tests.support.plans import planned_stack
from training_platform.config.workspace import read_workspace

pytestmark = [pytest.mark.kube, pytest.mark.containers, pytest.mark.timeout(300)]

PREFETCH = ROOT / "examples" / "data" / "prefetch.py"


@pytest.fixture
def filestore(cluster: Cluster, root: Path, tmp_path: Path) -> Path:
    """Add the planned volumes and claims of two data sets, and return the folder of the one on Filestore."""
    share = tmp_path / "share"
    share.mkdir()
    workspace = read_workspace(root)
    plan = planned_stack(workspace.stacks["lab-vision"], workspace)
    bodies = [planned.body for planned in rendered("", "", plan) if planned.cluster[1] == CLUSTER]
    for name in ("images", "files"):
        claim_name = f"data-set.{name}"
        (claim,) = (body for body in bodies if body["metadata"]["name"] == claim_name)
        volumes = [body for body in bodies if body["kind"] == "PersistentVolume"]
        (volume,) = (body for body in volumes if body["spec"]["claimRef"]["name"] == claim_name)
        spec = {**volume["spec"], "claimRef": {"namespace": TEAM, "name": claim_name}}
        if spec.pop("nfs", None):
            del spec["mountOptions"]
            spec["hostPath"] = {"path": str(share)}
        cluster.post("/api/v1/persistentvolumes", {"metadata": {"name": claim_name}, "spec": spec})
        claim["spec"]["volumeName"] = claim_name
        cluster.post(f"/api/v1/namespaces/{TEAM}/persistentvolumeclaims", claim)
    return share


def test_a_prefetch_copies_what_is_missing_ends_and_does_not_start_again(
    cluster: Cluster, buckets: Buckets, filestore: Path, submit: Callable[..., str], job: Command
) -> None:
    source = buckets.folder / "example-images" / "food101" / "train"
    source.mkdir(parents=True)
    (source / "0.tar").write_bytes(os.urandom(3 << 20))
    (source / "1.tar").write_bytes(b"1")
    program = PREFETCH.read_text(encoding="utf-8")
    mounts = [
        {"name": "bucket", "source": {"data_set": "images"}, "read_only": True},
        {"name": "filled", "source": {"data_set": "files"}},
    ]
    command = ["bash", "-c", 'exec python3 -u -c "$0" "$DATA_SET_IMAGES" "$DATA_SET_FILES"', program]

    for copied, present in ((2, 0), (0, 2)):
        run = submit("", command=command, mounts=mounts)
        assert job("wait", run, "--timeout", "2").exit_code == 0, job("why", run).stdout
        (pod,) = cluster.pods(run)
        assert log(cluster, pod).startswith(f"{copied} copied ")
        assert f" {present} there already, 0 failed, 0 only in the destination" in log(cluster, pod)

    assert (filestore / "train" / "0.tar").read_bytes() == (source / "0.tar").read_bytes()
