"""Jobs on queued flavors and on compute classes: what they ask for, and how long they may run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from training_platform.config.workspace import Workspace, read_workspace
from training_platform.jobs.gke.jobset import jobset
from training_platform.jobs.gke.rules import gke_findings
from training_platform.jobs.resolve import ResolvedJob

Take = Callable[..., ResolvedJob]
Lab = Callable[..., Path]
POOLS = """
          queue:
            {machine_type: a3-highgpu-8g, zone: us-central1-a, capacity: queued-provisioning, max_run_hours: 48,
             max_nodes: 2}
          classed: {machine_type: a3-highgpu-8g, zone: us-central1-a, max_nodes: 2}
"""
CLASSES = "        compute_classes: {best: {priorities: [{node_pools: [classed]}]}}\n"
SHARES = """
        h100-queued-provisioning: {nominal_quota: 16}
        class-best: {nominal_quota: 16}
"""


@pytest.fixture
def workspace(new_lab: Lab) -> Workspace:
    root = new_lab()
    h100 = "          h100: {machine_type: a3-highgpu-8g, zone: us-central1-a, max_nodes: 8}"
    share = "        h100: {nominal_quota: 32, borrowing_limit: 8}"
    insert(root / "stacks" / "Pulumi.lab.yaml", h100, h100 + POOLS.rstrip())
    cluster, _, pools = (
        (root / "stacks" / "Pulumi.lab.yaml").read_text(encoding="utf-8").rpartition("        node_pools:")
    )
    (root / "stacks" / "Pulumi.lab.yaml").write_text(f"{cluster}{CLASSES}        node_pools:{pools}", encoding="utf-8")
    insert(root / "stacks" / "Pulumi.lab-vision.yaml", share, share + SHARES.rstrip())
    return read_workspace(root)


def insert(path: Path, line: str, lines: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count(line) == 1
    path.write_text(text.replace(line, lines), encoding="utf-8")


@pytest.fixture
def job(take: Take, workspace: Workspace) -> Callable[[str], ResolvedJob]:
    return lambda target: take(f"gke: {{cluster: gpus, {target}}}", workspace=workspace)


def pod(manifest: dict[str, Any]) -> dict[str, Any]:
    (replicated,) = manifest["spec"]["replicatedJobs"]
    found: dict[str, Any] = replicated["template"]["spec"]["template"]["spec"]
    return found


def test_a_queued_job_says_how_long_it_needs_its_vms(job: Callable[[str], ResolvedJob]) -> None:
    manifest = jobset(job("flavor: h100-queued-provisioning, nodes: 2, max_run_hours: 12"))

    assert manifest["metadata"]["annotations"] == {"provreq.kueue.x-k8s.io/maxRunDurationSeconds": str(12 * 3600)}
    assert pod(manifest)["nodeSelector"]["cloud.google.com/gke-queued"] == "true"
    assert {"nvidia.com/gpu", "cloud.google.com/gke-queued"} == {each["key"] for each in pod(manifest)["tolerations"]}


def test_a_queued_job_without_a_time_asks_for_the_pools(job: Callable[[str], ResolvedJob]) -> None:
    annotations = jobset(job("flavor: h100-queued-provisioning, nodes: 2"))["metadata"]["annotations"]

    assert annotations == {"provreq.kueue.x-k8s.io/maxRunDurationSeconds": str(48 * 3600)}


def test_a_job_on_other_flavors_says_no_time(job: Callable[[str], ResolvedJob]) -> None:
    assert "annotations" not in jobset(job("flavor: class-best, nodes: 2"))["metadata"]


def test_a_job_of_a_class_selects_the_class_and_no_pool(job: Callable[[str], ResolvedJob]) -> None:
    spec = pod(jobset(job("flavor: class-best, nodes: 2")))

    assert spec["nodeSelector"] == {"cloud.google.com/compute-class": "best"}
    assert {each["key"]: each["value"] for each in spec["tolerations"]} == {
        "cloud.google.com/compute-class": "best",
        "nvidia.com/gpu": "present",
    }


@pytest.mark.parametrize(
    ("target", "nearest"),
    [
        ("flavor: h100-queued-provisioning, nodes: 2, max_run_hours: 48", []),
        ("flavor: h100-queued-provisioning, nodes: 2, max_run_hours: 49", ["48"]),
        ("flavor: class-best, nodes: 2, max_run_hours: 1", [None]),
        ("flavor: class-best, nodes: 2", []),
    ],
)
def test_a_run_is_no_longer_than_its_vms_live(
    job: Callable[[str], ResolvedJob], target: str, nearest: list[str | None]
) -> None:
    found = [finding for finding in gke_findings(job(target)) if finding.rule == "job-run-time"]

    assert [finding.nearest for finding in found] == nearest
    assert all(finding.path == "gke.max_run_hours" for finding in found)


def test_a_class_holds_no_more_than_its_pools(job: Callable[[str], ResolvedJob]) -> None:
    assert "job-fits-pools" in {finding.rule for finding in gke_findings(job("flavor: class-best, nodes: 3"))}
    assert "job-fits-pools" not in {finding.rule for finding in gke_findings(job("flavor: class-best, nodes: 2"))}
