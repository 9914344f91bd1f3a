"""Data sets far from every accelerator are warned of at their line, with what reading them sends."""

from __future__ import annotations

from pathlib import Path

import pytest

from training_platform.config.data_sets import far_data_sets
from training_platform.config.reading.finding import Finding
from training_platform.config.workspace import read_workspace

ENVIRONMENT = """
config:
  training-platform:environment:
    project: example-data
    filestore:
      near: {location: us-central1-c, capacity_gib: 1024}
      far: {location: europe-west4-a, capacity_gib: 1024}
    data_sets: {d: DATA}
    clusters:
      c:
        location: us-central1
        subnet: {nodes: 10.0.0.0/20, pods: 10.64.0.0/16, services: 10.1.0.0/20}
        POOLS
"""
POOLS = "node_pools: {gpu: {machine_type: a2-highgpu-1g, zone: us-central1-a}}"


def found(root: Path, data: str, pools: str = POOLS) -> list[Finding]:
    (root / "stacks").mkdir()
    text = ENVIRONMENT.replace("DATA", data).replace("POOLS", pools)
    (root / "stacks" / "Pulumi.env.yaml").write_text(text, encoding="utf-8")
    workspace = read_workspace(root)
    assert not [str(each) for stack in workspace.stacks.values() for each in stack.findings]
    return list(far_data_sets(workspace))


@pytest.mark.parametrize(
    "data",
    [
        "{bucket: {name: example-one, location: us-central1}}",
        "{filestore: {instance: near, path: a}}",
        "{hyperdisk_ml: {zone: us-central1-b, size_gib: 100}}",
    ],
)
def test_data_beside_the_accelerators_is_right(tmp_path: Path, data: str) -> None:
    assert found(tmp_path, data) == []


def test_a_bucket_of_another_region_is_warned_of_with_its_egress(tmp_path: Path) -> None:
    (finding,) = found(tmp_path, "{size_gib: 5, bucket: {name: example-one, location: europe-west4}}")

    assert (finding.rule, finding.severity, finding.path) == ("data-set-region", "warning", "data_sets.d")
    assert "each pass over it sends 5 GiB between regions, which is charged as egress" in finding.message
    assert finding.position is not None
    assert finding.nearest == "us-central1"


def test_a_volume_of_another_region_is_mounted_by_nobody(tmp_path: Path) -> None:
    (finding,) = found(tmp_path, "{filestore: {instance: far, path: a}}")

    assert "no cluster mounts it" in finding.message


def test_an_environment_without_accelerators_has_no_region_to_be_far_from(tmp_path: Path) -> None:
    assert found(tmp_path, "{bucket: {name: example-one, location: europe-west4}}", "release_channel: STABLE") == []
