"""The fewest requests that make all stacks fit, and the lines to paste."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import indent

import pytest
import yaml

from training_platform.config.model.stack import parse_stack
from training_platform.config.reading.source import parse_source
from training_platform.config.workspace import Workspace
from training_platform.quota.demand import workspace_demand
from training_platform.quota.ledger import project_ledgers
from training_platform.quota.plan import ProjectPlan, plan_requests, request_lines
from training_platform.quota.requests import request_findings, requested
from training_platform.quota.snapshot import Snapshots

Build = Callable[..., Workspace]
Limits = Callable[[str], Snapshots]
POOLS = """
node_pools:
  h100: {machine_type: a3-highgpu-8g, zone: us-central1-a, max_nodes: 4}
  eval: {machine_type: a3-highgpu-8g, zone: us-central1-a, max_nodes: 2}
"""
UNLIMITED = "".join(
    f"      {name}: [{{limit: -1}}]\n"
    for name in (
        "INSTANCES-per-project-region",
        "IN-USE-ADDRESSES-per-project-region",
        "CPUS-per-project-region",
        "CPUS-ALL-REGIONS-per-project",
        "NETWORKS-per-project",
        "SUBNETWORKS-per-project",
        "ROUTERS-per-project",
        "FIREWALLS-per-project",
        "SSD-TOTAL-GB-per-project-region",
        "LOCAL-SSD-TOTAL-STORAGE-PER-VM-FAMILY-per-project-region",
    )
)
LISTED = (
    "    compute.googleapis.com:\n"
    + UNLIMITED
    + """\
      GPUS-ALL-REGIONS-per-project: [{limit: %(all)d}]
      GPUS-PER-GPU-FAMILY-per-project-region:
        - {limit: %(here)d, region: us-central1, gpu_family: NVIDIA_H100}
        - {limit: %(there)d, region: us-east4, gpu_family: NVIDIA_H100}
      PREEMPTIBLE-NVIDIA-H100-GPUS-per-project-region: [{limit: 0}]
"""
)
NEEDS = (4 + 2) * 8


def plans(workspace: Workspace, snapshots: Snapshots) -> list[ProjectPlan]:
    ledgers = project_ledgers(workspace_demand(workspace), snapshots, requested(workspace))
    return plan_requests(ledgers.values(), workspace)


def plan(workspace: Workspace, limits: Limits, **numbers: int) -> ProjectPlan:
    (found,) = plans(workspace, limits(LISTED % {"all": NEEDS, "here": NEEDS, "there": 0, **numbers}))
    return found


def test_nothing_is_asked_for_where_all_fits(build: Build, limits: Limits) -> None:
    found = plan(build(dev=POOLS), limits)

    assert (found.needed, found.waiting, found.unknown) == ((), (), ())
    assert request_lines(found) == []


def test_one_request_for_each_exceeded_limit_asks_for_what_all_stacks_hold(build: Build, limits: Limits) -> None:
    found = plan(build(dev=POOLS), limits, here=NEEDS - 1)

    (need,) = found.needed
    assert need.value == NEEDS
    assert need.name == "gpus-per-gpu-family-nvidia-h100-us-central1"
    assert need.dimensions == {"region": "us-central1", "gpu_family": "NVIDIA_H100"}
    assert [(held.holder.label, held.amount) for held in need.line.holders] == [("h100", 32), ("eval", 16)]


def test_two_exceeded_limits_are_two_requests_with_two_names(build: Build, limits: Limits) -> None:
    found = plan(build(dev=POOLS), limits, here=0, all=0)

    assert [(need.name, need.value) for need in found.needed] == [
        ("gpus-all-regions", NEEDS),
        ("gpus-per-gpu-family-nvidia-h100-us-central1", NEEDS),
    ]


@pytest.mark.parametrize(("there", "named"), [(32, True), (31, False)])
def test_a_region_is_named_where_the_largest_holder_would_fit_today(
    build: Build, limits: Limits, there: int, named: bool
) -> None:
    (need,) = plan(build(dev=POOLS), limits, here=0, there=there).needed

    wanted = f"dev/h100: zone us-east4-a, us-east4-b, us-east4-c ({there} GPUs left)"
    assert need.instead == ((wanted,) if named else ())


def test_lines_to_paste_are_a_request_that_the_model_and_the_rules_take(build: Build, limits: Limits) -> None:
    workspace = build(dev=POOLS)
    snapshots = limits(LISTED % {"all": NEEDS, "here": 16, "there": 0})
    (found,) = plans(workspace, snapshots)
    lines = "\n".join(request_lines(found)).replace('contact: ""  # whom Google may ask', "contact: a@example.com")
    source = yaml.safe_dump(workspace.stacks["dev"].source.value) + indent(lines, " " * 4)

    stack = parse_stack("dev", parse_source(source, "stacks/Pulumi.dev.yaml"))

    assert [str(each) for each in stack.findings] == []
    with_it = Workspace(workspace.root, {"dev": stack})
    (after,) = plans(with_it, snapshots)
    assert after.needed == ()
    assert [line.requested for line in after.waiting] == [NEEDS]
    assert request_findings([after.ledger], with_it) == []


def test_a_request_that_is_too_small_is_asked_for_under_its_own_name(build: Build, limits: Limits) -> None:
    text = POOLS + "\n"
    workspace = build(dev=text)
    source = yaml.safe_dump(workspace.stacks["dev"].source.value) + indent(
        """\
quota_requests:
  mine:
    service: compute.googleapis.com
    quota_id: GPUS-ALL-REGIONS-per-project
    value: 40
    justification: More.
    contact: a@example.com
""",
        " " * 4,
    )
    stack = parse_stack("dev", parse_source(source, "stacks/Pulumi.dev.yaml"))
    assert not stack.findings

    found = plan(Workspace(workspace.root, {"dev": stack}), limits, all=0)

    assert [(need.name, need.value) for need in found.needed] == [("mine", NEEDS)]


def test_a_contact_that_nobody_named_is_left_for_a_person_to_fill_in(build: Build, limits: Limits) -> None:
    lines = request_lines(plan(build(dev=POOLS), limits, all=0))

    assert '    contact: ""  # whom Google may ask' in lines


def test_a_limit_that_the_snapshot_does_not_list_is_not_guessed(build: Build, limits: Limits) -> None:
    (found,) = plans(build(dev=POOLS), limits("    compute.googleapis.com:\n" + UNLIMITED))

    assert found.needed == ()
    assert {line.key.quota_id for line in found.unknown} == {
        "GPUS-ALL-REGIONS-per-project",
        "GPUS-PER-GPU-FAMILY-per-project-region",
    }


def test_a_project_that_no_environment_has_gets_no_lines(build: Build) -> None:
    team = (
        "project: other-train\nvertex: {persistent_resources: {t: {region: us-central1, machine_type: a2-highgpu-1g}}}"
    )

    homes = {each.ledger.project: each.stack for each in plans(build(dev=POOLS, dev_vision=team), Snapshots())}

    assert homes["other-train"] is None
    assert homes["example-train"] is not None
