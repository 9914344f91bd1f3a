"""The experiment of docs/data.md: from the page's commands to both submitted halves, with the submitter's rights.

On GKE that is a member of the team, on Vertex AI the account in ``vertex_submitters``: people cannot start jobs there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from local_google_cloud.api import LocalCloud, Record, serve
from tests.kube.offline import Offline, admission_objects, namespace_objects, refused_requests
from tests.local_google_cloud.policies import cloud_of, grants_of
from tests.parts.jobs.runs.api_stub import ApiStub, served, write_kubeconfig
from tests.support.places import ORGANISATION, ROOT
from tests.support.plans import planned_stacks
from training_platform.config.workspace import read_workspace

PROJECT = "example-train-prod"
BUCKET = "example-train-prod-prod-vision-checkpoints"
MEMBER = "group:vision@example.com"
PIPELINE = "serviceAccount:submit@example-ci.iam.gserviceaccount.com"
IN_CLUSTER = {"Impersonate-User": "ada@example.com", "Impersonate-Group": "vision@example.com"}
HALVES = ["vit-bucket", "vit-filestore"]
INSTANCE = f"projects/{PROJECT}/locations/us-central1/instances/prod-datasets"
DATA_SETS = """\
    network_attachments: {us-central1: 10.22.48.0/24}
    python_repository: us
    data_sets:
      food101-bucket: {size_gib: 5, bucket: {name: example-images, location: us-central1, path: food101}}
      food101-files: {size_gib: 5, writer: vision, filestore: {instance: datasets, path: food101}}
"""
# Nothing runs: a run of the experiment is submitted, and has trained at once.
COMMAND = """\
#!/bin/sh
case "$2" in
  submit) exec {command} "$@" --local-cloud "$LOCAL_CLOUD" --kubeconfig "$STUB" ;;
  wait) ;;
  logs) case "$3" in *bucket*) echo "a | seconds 4000.0" ;; *) echo "a | seconds 2500.0" ;; esac ;;
  *) exec {command} "$@" ;;
esac
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "clone"
    shutil.copytree(ORGANISATION / "stacks", root / "stacks")
    shutil.copytree(ROOT / "examples", root / "examples")
    (root / "jobs" / "vision").mkdir(parents=True)
    with (root / "stacks" / "Pulumi.prod.yaml").open("a", encoding="utf-8") as file:
        file.write(DATA_SETS)
    shutil.copy(ROOT / "Pulumi.yaml", root)
    command = root / "bin" / "training-platform"
    command.parent.mkdir()
    command.write_text(COMMAND.format(command=f"{sys.executable} -m training_platform.cli.main"), encoding="utf-8")
    command.chmod(0o755)
    return root


@pytest.fixture
def cloud(root: Path) -> LocalCloud:
    projects = (PROJECT, "example-train-dev", "example-ci")
    cloud = cloud_of(grants_of(root, projects), projects, {BUCKET: PROJECT})
    body = {"networks": [{"ipAddresses": ["10.22.33.2"]}], "fileShares": [{"name": "share"}]}
    cloud.store.put(Record(name=f"file/{INSTANCE}", project=PROJECT, body=body))
    return cloud


def of_the_page() -> list[str]:
    """Return the commands of docs/experiment.md that copy the jobs' files and compare both halves."""
    lines = (ROOT / "docs" / "experiment.md").read_text(encoding="utf-8").splitlines()
    (copy,) = [line for line in lines if line.startswith("cp examples/experiments/vit_storage/")]
    (compare,) = [
        line for line in lines if line.startswith(".venv/bin/python examples/experiments/vit_storage/compare")
    ]
    return ["mkdir -p jobs/vision", copy, compare.removeprefix(".venv/bin/").partition(" --target")[0]]


def by_the_page(root: Path, cloud: LocalCloud, stub: ApiStub, member: str, target: str) -> Any:
    """Run the page's commands for one target, as somebody."""
    *before, compare = of_the_page()
    script = "\n".join(("set -e", *before, f"{compare} --target {target}"))
    with serve(cloud) as port, served(stub) as server:
        environment = {
            **os.environ,
            "PATH": f"{root / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "GOOGLE_OAUTH_ACCESS_TOKEN": f"as:{member}",
            "LOCAL_CLOUD": f"http://127.0.0.1:{port}",
            "STUB": str(write_kubeconfig(root / "kubeconfig", server, "prod-us-central1")),
        }
        return subprocess.run(
            ["sh", "-c", script], env=environment, cwd=root, check=False, capture_output=True, text=True
        )  # fmt: skip


def jobs_of(cloud: LocalCloud) -> list[dict[str, Any]]:
    return [record.body for record in cloud.store.all() if "/customJobs/" in record.name]


def cluster(root: Path) -> Offline:
    """Return the policies of prod's cluster and the roles of vision's namespace, as they are planned."""
    workspace = read_workspace(root)
    stacks = [workspace.stacks[name] for name in ("prod", "prod-vision")]
    prod, vision = (plan for _, plan in planned_stacks(workspace, stacks))
    objects = [*namespace_objects(vision, "share-us-central1", "vision"), *admission_objects(prod, "us-central1")]
    return Offline(objects, [], {})


def queue() -> ApiStub:
    stub = ApiStub()
    stub.lists["/apis/kueue.x-k8s.io/v1beta2/namespaces/vision/localqueues"] = [{"metadata": {"name": "vision"}}]
    return stub


@pytest.mark.timeout(120)
def test_a_member_submits_both_halves_on_gke(root: Path, cloud: LocalCloud) -> None:
    stub = queue()

    ran = by_the_page(root, cloud, stub, MEMBER, "gke")

    assert ran.returncode == 0, ran.stderr
    assert [line.split() for line in ran.stdout.splitlines()[-4:]] == [
        ["read", "from", "on", "GKE", "reference"],
        ["Cloud", "Storage", "4,000", "4,837"],
        ["Filestore", "2,500", "3,006"],
        ["first", "/", "second", "1.60", "1.61"],
    ]
    prod = cluster(root)
    assert refused_requests(prod, stub.requests, IN_CLUSTER) == []
    held = [{**body, "spec": {**body["spec"], "suspend": True}} for body in stub.created]  # by Kueue's webhook
    assert [prod.ask("JobSet", body, IN_CLUSTER) for body in held] == ["", ""]
    assert [body["metadata"]["name"].rpartition("-")[0] for body in stub.created] == HALVES
    for body, data in zip(stub.created, ("/gcs/example-images/food101", "/mnt/nfs/data"), strict=True):
        (part,) = body["spec"]["replicatedJobs"]
        pod = part["template"]["spec"]["template"]["spec"]
        (container,) = [container for container in pod["containers"] if container["name"] == "training"]
        assert body["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "vision"
        assert container["resources"]["limits"]["nvidia.com/gpu"] == "1"
        assert {"/dev/shm", data} <= {mount["mountPath"] for mount in container["volumeMounts"]}  # noqa: S108
        assert f"--data={data}" in str(container)
        assert f"gs://{BUCKET}/sources/" in str(container)  # where the program was uploaded


@pytest.mark.timeout(120)
def test_the_pipeline_submits_both_halves_on_vertex_ai(root: Path, cloud: LocalCloud) -> None:
    ran = by_the_page(root, cloud, ApiStub(), PIPELINE, "vertex")

    assert ran.returncode == 0, ran.stderr
    bodies = jobs_of(cloud)
    assert [body["displayName"].rpartition("-")[0] for body in bodies] == HALVES
    for body in bodies:
        (pool,) = body["jobSpec"]["workerPoolSpecs"]
        assert pool["machineSpec"]["machineType"] == "a2-highgpu-1g"
        assert body["jobSpec"]["serviceAccount"] == f"prod-vision-jobs@{PROJECT}.iam.gserviceaccount.com"
        assert body["jobSpec"]["pscInterfaceConfig"]["networkAttachment"].endswith("/prod-vertex-us-central1")
    bucket, files = (body["jobSpec"]["workerPoolSpecs"][0] for body in bodies)
    assert bucket.get("nfsMounts") is None
    assert files["nfsMounts"] == [{"server": "10.22.33.2", "path": "/share/food101", "mountPoint": "data"}]
