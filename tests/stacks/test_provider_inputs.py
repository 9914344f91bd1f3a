"""Inputs below ``provider_inputs``: the answer to former fields, and the refusal of inputs that a field sets."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import pytest
import yaml

from tests.stacks.every_field import (
    CLUSTER,
    ENVIRONMENT,
    ENVIRONMENT_CHANGES,
    NAP,
    POOLS,
    TEAM,
    TEAM_CHANGES,
    TEAM_WITHOUT_SHARES,
    changed,
    parsed,
    stacks_of,
)
from tests.support.places import ORGANISATION
from tests.support.plans import PlannedStack, planned_stack
from training_platform.checks.outcome import rule_findings
from training_platform.config.model.node_pool import NodePoolSpec
from training_platform.config.model.stack import Stack, parse_stack
from training_platform.config.reading.source import parse_source
from training_platform.config.workspace import Workspace, cross_check
from training_platform.resources import resource_types
from training_platform.resources.plan import PlanError, Resource
from training_platform.resources.provider_inputs import add_provider_inputs
from training_platform.resources.resource_types import BUCKET, FILESTORE, NODE_POOL, PERSISTENT_RESOURCE
from training_platform.resources.stack_plan import stack_plan

FORMER = {
    "intranode_visibility": (
        "env", (*CLUSTER, "intranode_visibility"), True, {"enable_intranode_visibility": True},
    ),
    "autoscaling_profile": (
        "env", (*CLUSTER, "autoscaling_profile"), "BALANCED",
        {"cluster_autoscaling": {"autoscaling_profile": "BALANCED"}},
    ),
    "image_type": (
        "env", (*NAP, "image_type"), "UBUNTU_CONTAINERD",
        {"cluster_autoscaling": {"auto_provisioning_defaults": {"image_type": "UBUNTU_CONTAINERD"}}},
    ),
    "max_surge": (
        "env", (*NAP, "max_surge"), 1,
        {"cluster_autoscaling": {"auto_provisioning_defaults": {"upgrade_settings": {"max_surge": 1}}}},
    ),
    "max_unavailable": (
        "env", (*NAP, "max_unavailable"), 2,
        {"cluster_autoscaling": {"auto_provisioning_defaults": {"upgrade_settings": {"max_unavailable": 2}}}},
    ),
    "soak_minutes": (
        "env", (*POOLS, "soaking", "upgrades", "soak_minutes"), 30,
        {"upgrade_settings": {"blue_green_settings": {"node_pool_soak_duration": "1800s"}}},
    ),
    "access_logs": (
        "team", ("buckets", "k", "access_logs"), "example-logs", {"logging": {"log_bucket": "example-logs"}},
    ),
}  # fmt: skip
"""By a former field: its stack, its place, a value, and the inputs that replace it."""


@pytest.mark.parametrize("field", FORMER)
def test_a_former_field_is_answered_with_its_line_below_provider_inputs(field: str) -> None:
    stack, path, value, inputs = FORMER[field]
    section = changed(ENVIRONMENT if stack == "env" else TEAM, path, value)

    (finding,) = parsed(stack, {"environment" if stack == "env" else "team": section}).findings

    assert finding.message == "is no longer a field of this section"
    allowed = yaml.safe_load((finding.allowed or "").partition(": ")[2])
    assert names_of(allowed) == names_of(inputs)


def names_of(inputs: Any) -> Any:
    return {name: names_of(value) for name, value in inputs.items()} if isinstance(inputs, Mapping) else None


PLAIN_ENVIRONMENT = """\
config:
  training-platform:environment:
    project: example-plain
    production: false
    filestore:
      plain: {location: us-central1-a, capacity_gib: 1024}
    clusters:
      c:
        location: us-central1
        subnet: {nodes: 10.10.0.0/20, pods: 10.64.0.0/16, services: 10.10.16.0/20}
        node_pools:
          plain: {machine_type: a2-highgpu-1g, zone: us-central1-a}
"""
PLAIN_TEAM = """\
config:
  training-platform:team:
    environment: env
    name: plain
    members: [group:a@example.com]
    buckets: {plain: {location: us-central1}}
    vertex:
      persistent_resources: {plain: {region: us-central1, machine_type: n1-standard-8}}
"""
TYPES = (resource_types.CLUSTER, NODE_POOL, FILESTORE, BUCKET, PERSISTENT_RESOURCE)


def resources_of(workspace: Workspace, name: str) -> Iterator[Resource]:
    plan = stack_plan(workspace.stacks[name], workspace)
    assert plan is not None
    yield from (resource for resource in plan.resources() if resource.type in TYPES)


@cache
def plain_resources() -> Mapping[str, Resource]:
    """Return the plainest resource of each type."""
    texts = {"env": PLAIN_ENVIRONMENT, "team": PLAIN_TEAM}
    stacks = {name: parse_stack(name, parse_source(text, f"stacks/Pulumi.{name}.yaml")) for name, text in texts.items()}
    workspace = cross_check(Workspace(ORGANISATION, stacks))
    resources = [resource for name in texts for resource in resources_of(workspace, name)]
    return {
        resource.type: resource
        for resource in resources
        if "plain" in resource.name or resource.type == resource_types.CLUSTER
    }


def refused(resource_type: str, inputs: Mapping[str, Any]) -> bool:
    resource = copy.copy(plain_resources()[resource_type])
    try:
        add_provider_inputs(resource, inputs, ("section",), {})
    except PlanError:
        return True
    return False


def inputs_below(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the paths of inputs that are set, without positions in lists."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from inputs_below(inner, (*path, str(name)))
    elif isinstance(value, list | tuple) and any(isinstance(entry, Mapping) for entry in value):
        for entry in value:
            yield from inputs_below(entry, path)
    elif value is not None:
        yield path


def inputs_of_fields() -> set[tuple[str, tuple[str, ...]]]:
    """Return the inputs that a value of some field sets, by type, but for those given below ``provider_inputs``."""
    base = copy.deepcopy(ENVIRONMENT)
    for pool in base["clusters"]["c"]["node_pools"].values():
        pool.pop("provider_inputs", None)
    seen = set()
    for table, name in ((ENVIRONMENT_CHANGES, "env"), (TEAM_CHANGES, "team")):
        for path, value in table.items():
            if path[-1] == "provider_inputs":
                continue
            files = {"env": base, "team": TEAM_WITHOUT_SHARES if name == "env" else TEAM}
            files[name] = changed(files[name], path, value)
            workspace = stacks_of(files["env"], files["team"])
            for resource in resources_of(workspace, name):
                seen |= {(resource.type, inner) for inner in inputs_below(resource.inputs)}
    return seen


def test_no_input_that_a_field_sets_is_taken_from_provider_inputs_set_or_not() -> None:
    taken = []
    for resource_type, path in sorted(inputs_of_fields()):
        inputs: Any = "given"
        for part in reversed(path):
            inputs = {part: inputs}
        if not refused(resource_type, as_lists(inputs, plain_resources()[resource_type].inputs)):
            taken.append((resource_type, ".".join(path)))

    assert taken == []


def as_lists(inputs: Any, planned: Any) -> Any:
    """Return inputs in the shape of planned ones: blocks are in a list where the plan has a list of them."""
    if isinstance(planned, list | tuple) and isinstance(inputs, Mapping):
        return [as_lists(inputs, planned[0] if planned else None)] * max(len(planned), 1)
    if isinstance(planned, Mapping) and isinstance(inputs, Mapping):
        return {name: as_lists(value, planned.get(name)) for name, value in inputs.items()}
    return inputs


def test_blocks_of_a_list_are_merged_by_position() -> None:
    resource = copy.copy(plain_resources()[PERSISTENT_RESOURCE])

    add_provider_inputs(resource, {"resource_pools": [{"machine_spec": {"tpu_topology": "2x2"}}]}, ("section",), {})

    (pool,) = resource.inputs["resource_pools"]
    assert (pool["machine_spec"]["tpu_topology"], pool["machine_spec"]["machine_type"]) == ("2x2", "n1-standard-8")
    with pytest.raises(PlanError, match="resource_pools has 2 entries, but the platform plans 1"):
        add_provider_inputs(resource, {"resource_pools": [{}, {}]}, ("section",), {})


DISKS = [{"disk_image": "global/images/warm", "mode": "CONTAINER_IMAGE_CACHE"}]


def disks_by_provider_inputs(*, field: bool = False) -> Stack:
    """Return an environment whose pool has preloaded images by ``provider_inputs``, and by their field as well."""
    settings = ", preload_images: [global/images/other]" if field else ""
    old = "zone: us-central1-a}"
    inputs = f"{{node_config: {{secondary_boot_disks: {DISKS}}}}}"
    new = f"zone: us-central1-a{settings},\n            provider_inputs: {inputs}}}"
    assert old in PLAIN_ENVIRONMENT
    return parse_stack("env", parse_source(PLAIN_ENVIRONMENT.replace(old, new), "stacks/Pulumi.env.yaml"))


def plan_of(stack: Stack) -> PlannedStack:
    return planned_stack(stack, cross_check(Workspace(ORGANISATION, {stack.name: stack})))


def test_the_input_of_a_new_field_is_taken_from_provider_inputs_for_a_release_with_a_warning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(NodePoolSpec, "TAKEN_OVER", {"node_config.secondary_boot_disks": "preload_images"})
    stack = disks_by_provider_inputs()

    plan = plan_of(stack)

    (pool,) = (resource for resource in plan.resources if resource.name == "c-plain-pool")
    assert [dict(disk) for disk in pool.inputs["nodeConfig"]["secondaryBootDisks"]] == [
        {"diskImage": "global/images/warm", "mode": "CONTAINER_IMAGE_CACHE"}
    ]
    (warning,) = (finding for finding in rule_findings(stack, []) if finding.rule == "former-input")
    assert warning.severity == "warning"
    assert warning.allowed == "clusters.c.node_pools.plain.preload_images"
    assert warning.path == "clusters.c.node_pools.plain.provider_inputs.node_config.secondary_boot_disks"
    assert warning.position is not None
    assert warning.position.line == 13


def test_an_input_that_a_new_field_sets_too_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NodePoolSpec, "TAKEN_OVER", {"node_config.secondary_boot_disks": "preload_images"})

    with pytest.raises(PlanError, match="secondary_boot_disks is also set by the field preload_images: delete it here"):
        plan_of(disks_by_provider_inputs(field=True))


def test_the_next_release_refuses_the_input_of_a_field() -> None:
    with pytest.raises(PlanError, match="secondary_boot_disks is planned by the platform"):
        plan_of(disks_by_provider_inputs())
