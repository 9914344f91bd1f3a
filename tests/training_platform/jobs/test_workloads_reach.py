"""Every field of a job reaches what is submitted, or what is said beside it; a new field has to be added here."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest

from training_platform.config.spec.team import VertexBootDisk
from training_platform.config.workspace import Workspace, read_workspace
from training_platform.jobs.gke.jobset import jobset
from training_platform.jobs.render import judge
from training_platform.jobs.resolve import ResolvedJob
from training_platform.jobs.spec.job import GkeTarget, Job, VertexTarget
from training_platform.jobs.text import json_text, yaml_text
from training_platform.jobs.vertex.custom_job import custom_job

Take = Callable[..., ResolvedJob]
Lab = Callable[..., Path]
TODAY = date(2026, 11, 21)
TPU = "gke: {cluster: tpus, flavor: tpu-v5e-4x8, slices: 1}"
GPU = "gke: {cluster: gpus, flavor: h100, nodes: 1}"
QUEUED = "gke: {cluster: gpus, flavor: h100-queued-provisioning, nodes: 1, max_run_hours: 1}"
QUEUED_POOL = "queue: {machine_type: a3-highgpu-8g, zone: us-central1-a, capacity: queued-provisioning}"
QUEUED_SHARE = "h100-queued-provisioning: {nominal_quota: 8}"
H100 = "vertex: {region: us-central1, machine_type: a3-highgpu-8g, capacity: flex-start, boot_disk: {type: pd-ssd}}"
V5E = "vertex: {region: us-west4, machine_type: ct5lp-hightpu-4t, topology: 4x8}"

JOB = {
    "environment": (GPU, "environment: lab", "environment: lob"),
    "image": (GPU, "train:1", "train:2"),
    "command": (GPU, "gke:", "command: [a]\ngke:"),
    "args": (GPU, "gke:", "args: [a]\ngke:"),
    "env": (GPU, "gke:", "env: {A: b}\ngke:"),
    "output": (GPU, "gke:", "output: checkpoints\ngke:"),
    "gke": (GPU, GPU, H100),
    "vertex": (H100, H100, GPU),
}
GKE = {
    "cluster": (GPU, "cluster: gpus", "cluster: more"),
    "flavor": (TPU, "4x8", "2x4"),
    "slices": (TPU, "slices: 1", "slices: 2"),
    "nodes": (GPU, "nodes: 1", "nodes: 2"),
    "priority": (GPU, "nodes: 1", "nodes: 1, priority: low"),
    "max_restarts": (GPU, "nodes: 1", "nodes: 1, max_restarts: 4"),
    "max_run_hours": (QUEUED, "max_run_hours: 1", "max_run_hours: 2"),
    "host_network": (GPU, "nodes: 1", "nodes: 1, host_network: true"),
}
VERTEX = {
    "region": (H100, "us-central1", "us-east4"),
    "machine_type": (H100, "a3-highgpu-8g", "a2-highgpu-8g"),
    "topology": (V5E, "4x8", "4x4"),
    "replicas": (H100, "boot", "replicas: 2, boot"),
    "capacity": (H100, "flex-start", "spot"),
    "timeout_hours": (H100, "boot", "timeout_hours: 2, boot"),
    "max_wait_hours": (H100, "boot", "max_wait_hours: 2, boot"),
    "boot_disk": (H100, "{type: pd-ssd}", "{size_gb: 200}"),
    "persistent_resource": (H100, "boot", "persistent_resource: tuning, boot"),
}
DISK = {"type": (H100, "pd-ssd", "pd-standard"), "size_gb": (H100, "pd-ssd", "pd-ssd, size_gb: 200")}


@pytest.fixture
def two(new_lab: Lab) -> Workspace:
    """The organisation with a second, equal environment, and a second, equal cluster of GPUs."""
    root = new_lab()
    for name in ("Pulumi.lab.yaml", "Pulumi.lab-vision.yaml"):
        path = root / "stacks" / name
        text = path.read_text()
        for line, more in (("          h100: ", QUEUED_POOL), ("        h100: ", QUEUED_SHARE)):
            text = text.replace(f"\n{line}", f"\n{line.removesuffix('h100: ')}{more}\n{line}")
        *head, gpus = text.partition("gpus:\n")
        gpus, *rest = gpus.partition("    buckets:")
        path.write_text("".join([*head, gpus, "      more:\n", gpus, *rest]))
        other = path.read_text().replace("environment: lab", "environment: lob").replace("example-lab", "example-lob")
        (root / "stacks" / name.replace("lab", "lob")).write_text(other)
    workspace = read_workspace(root)
    assert [str(found) for stack in workspace.stacks.values() for found in stack.findings] == []
    return workspace


@pytest.mark.parametrize(
    ("model", "changes"),
    [(Job, JOB), (GkeTarget, GKE), (VertexTarget, VERTEX), (VertexBootDisk, DISK)],
    ids=["job", "gke", "vertex", "disk"],
)
def test_every_field_is_changed_here(
    model: type[Job | GkeTarget | VertexTarget | VertexBootDisk], changes: dict[str, object]
) -> None:
    assert changes.keys() == model.model_fields.keys()


@pytest.mark.parametrize(
    ("target", "old", "new"),
    [*JOB.values(), *GKE.values(), *VERTEX.values(), *DISK.values()],
    ids=[f"{kind}.{name}" for kind, all_of in zip("jgvd", (JOB, GKE, VERTEX, DISK), strict=True) for name in all_of],
)
def test_a_changed_field_changes_what_is_submitted(
    take: Take, two: Workspace, *, target: str, old: str, new: str
) -> None:
    text = f"environment: lab\nimage: registry.example.com/train:1\n{target}\n"
    assert text.count(old) == 1

    assert submitted(take(text, workspace=two)) != submitted(take(text.replace(old, new), workspace=two))


def submitted(job: ResolvedJob) -> tuple[str, tuple[str, ...]]:
    """Return what a job submits, and the notes about it; a JobSet does not say into which cluster it goes."""
    if job.spec.gke:
        return yaml_text(jobset(job)), judge(job, "gke", TODAY).notes
    return json_text(custom_job(job)), judge(job, "vertex", TODAY).notes
