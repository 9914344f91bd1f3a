"""A retired stack can be destroyed: nothing in it is protected, and resources that stay are only forgotten."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from training_platform.config.workspace import read_workspace
from training_platform.resources.plan import Resource
from training_platform.resources.resource_types import BUCKET, CLUSTER, FILESTORE, NETWORK
from training_platform.resources.stack_plan import stack_plan

ENVIRONMENT = """\
config:
  training-platform:environment:
    project: example-lab
    production: true
    {retired}
    filestore:
      homes: {{location: us-central1-a, capacity_gib: 1024}}
      kept: {{location: us-central1-a, capacity_gib: 1024}}
    clusters:
      c:
        location: us-central1
        subnet: {{nodes: 10.0.0.0/20, pods: 10.64.0.0/16, services: 10.1.0.0/20}}
"""
TEAM = """\
config:
  training-platform:team:
    environment: lab
    name: vision
    members: [group:vision@example.com]
    {retired}
    buckets:
      data: {{location: us-central1}}
      old: {{location: us-central1}}
    vertex: {{tensorboards: [us-central1]}}
"""


def resources(root: Path, stack: str, *, keeps: str = "", retired: bool = True) -> dict[tuple[str, str], Resource]:
    """Return the planned resources of a stack by type and name."""
    (root / "stacks").mkdir(exist_ok=True)
    mark = f'retired: {{since: "2026-12-01", keeps: [{keeps}], paid_by: ml@example.com}}' if retired else "labels: {}"
    for name, text in (("lab", ENVIRONMENT), ("lab-vision", TEAM)):
        (root / "stacks" / f"Pulumi.{name}.yaml").write_text(
            text.format(retired=mark if name == stack else "labels: {}")
        )
    workspace = read_workspace(root)
    end = workspace.stacks[stack].retired
    assert (end.since if end else None) == (date(2026, 12, 1) if retired else None)
    plan = stack_plan(workspace.stacks[stack], workspace)
    assert plan is not None
    return {resource.key: resource for resource in plan.resources()}


def test_nothing_of_a_retired_team_is_protected_and_its_bucket_is_refused_while_it_has_objects(tmp_path: Path) -> None:
    before = resources(tmp_path, "lab-vision", retired=False)
    after = resources(tmp_path, "lab-vision", keeps="buckets.data")

    assert before[BUCKET, "bucket-old-bucket"].options.protect
    assert not [key for key, resource in after.items() if resource.options.protect]
    kept = {key for key, resource in after.items() if resource.options.retain_on_delete}
    kept -= {key for key, resource in before.items() if resource.options.retain_on_delete}
    assert kept == {(BUCKET, "bucket-data-bucket")}  # without the roles of its members
    assert after[BUCKET, "bucket-old-bucket"].inputs["force_destroy"] is False


def test_rules_for_production_let_what_ends_be_deleted(tmp_path: Path) -> None:
    resources(tmp_path, "lab", retired=False)
    assert read_workspace(tmp_path).stacks["lab"].production is True

    resources(tmp_path, "lab", keeps="filestore.kept")
    assert read_workspace(tmp_path).stacks["lab"].production is False


@pytest.mark.parametrize(
    ("key", "protecting"),
    [
        ((CLUSTER, "c-cluster"), "deletion_protection"),
        ((FILESTORE, "filestore-homes-instance"), "deletion_protection_enabled"),
    ],
)
def test_protection_in_google_cloud_is_lifted_but_for_what_is_kept(
    tmp_path: Path, key: tuple[str, str], protecting: str
) -> None:
    before = resources(tmp_path, "lab", retired=False)
    after = resources(tmp_path, "lab", keeps="filestore.kept")

    assert before[key].inputs[protecting] is True
    assert after[key].inputs[protecting] is False
    kept = after[FILESTORE, "filestore-kept-instance"]
    assert kept.inputs["deletion_protection_enabled"] is True
    assert (kept.options.protect, kept.options.retain_on_delete) == (False, True)
    assert {
        name for (kind, name), resource in after.items() if kind == NETWORK and resource.options.retain_on_delete
    } == {"network-vpc"}  # which Google does not delete before the instance
