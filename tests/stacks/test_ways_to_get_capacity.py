"""A stack with every way to get capacity: it plans, breaks no rule, and the model says what the plan says."""

from __future__ import annotations

from typing import Any

import pulumi
import pytest

from modules.environment import build_environment
from tests.demand_of_model import model_demand
from tests.places import ORGANISATION
from training_platform.checks.planning.recorder import Plan, record
from training_platform.config.model.stack import PROJECT, parse_stack
from training_platform.config.names import Locator
from training_platform.config.reading.source import parse_source
from training_platform.config.workspace import Workspace, cross_check
from training_platform.quota.charges import Charge
from training_platform.quota.demand import demand_of_views
from training_platform.rules import View, evaluate, program, views_of_model, views_of_plan

KUEUE = "kubernetes:kueue.x-k8s.io/v1beta2"
TEXT = """\
config:
  training-platform:environment:
    project: example-ways
    alerts: {emails: [ml-platform@example.com]}
    nat_addresses: 2
    production: false
    clusters:
      c:
        location: us-central1
        subnet: {nodes: 10.0.0.0/20, pods: 10.64.0.0/16, services: 10.1.0.0/20}
        system_pool: {machine_type: e2-standard-8, min_nodes: 3, max_nodes: 3}
        node_pools:
          queued: {machine_type: a3-highgpu-8g, zone: us-central1-a, capacity: queued-provisioning, max_run_hours: 24}
          spot: {machine_type: a3-highgpu-8g, zone: us-central1-a, capacity: spot}
          any: {machine_type: a3-highgpu-8g, zone: us-central1-a, capacity: reservation, reservation: any}
          block:
            machine_type: a3-highgpu-8g
            zone: us-central1-a
            capacity: reservation
            reservation: {name: h100, project: example-shared, block: block-1, sub_block: sub-1}
          future:
            machine_type: ct5lp-hightpu-4t
            zone: us-central1-a
            topology: 4x4
            capacity: reservation
            reservation: {name: v5e, starts: "2027-03-01", ends: "2027-03-28"}
        auto_provisioning:
          cpu: 4000
          memory_gb: 40000
          accelerators: {nvidia-h100-80gb: 64, tpu-v5-lite-podslice: 32}
          zones: [us-central1-a]
        compute_classes:
          best:
            priorities:
              - node_pools: [spot]
              - {machine_type: a3-highgpu-8g, capacity: flex-start, max_wait_minutes: 30}
          slices:
            priorities:
              - {machine_type: ct5lp-hightpu-4t, topology: 4x4, capacity: reservation, reservation: v5e}
              - machine_type: ct5lp-hightpu-4t
                topology: 4x4
                capacity: spot
                zones: [us-central1-a]
                max_run_hours: 24
"""


@pytest.fixture(scope="module")
def workspace() -> Workspace:
    found = cross_check(
        Workspace(ORGANISATION, {"ways": parse_stack("ways", parse_source(TEXT, "stacks/Pulumi.ways.yaml"))})
    )
    assert not [str(finding) for finding in found.stacks["ways"].findings]
    return found


@pytest.fixture(scope="module")
def plan(workspace: Workspace) -> Plan:
    environment = workspace.stacks["ways"].environment
    assert environment is not None
    return record(lambda: export(build_environment("ways", environment)), project=PROJECT, stack_name="ways")


def export(outputs: dict[str, Any]) -> None:
    for name, value in outputs.items():
        pulumi.export(name, value)


def totals(charges: list[Charge]) -> dict[tuple[str, str], float]:
    found: dict[tuple[str, str], float] = {}
    for charge in charges:
        key = (charge.key.quota_id, charge.key.location)
        found[key] = found.get(key, 0) + charge.amount
    return found


def test_no_rule_objects_to_any_of_them(workspace: Workspace, plan: Plan) -> None:
    section = workspace.stacks["ways"].section
    assert section is not None
    views = views_of_plan(plan.resources, Locator(section))
    whole = program(views, stack="ways", environment="ways", team=None, production=False)
    found = [finding for finding in evaluate(whole, file=workspace.stacks["ways"]) if finding.severity != "note"]
    assert [f"{finding.rule}: {finding.message}" for finding in found] == []


def test_the_model_has_the_views_of_the_plan(workspace: Workspace, plan: Plan) -> None:
    section = workspace.stacks["ways"].section
    assert section is not None
    planned = {(type(view), view.name): described(view) for view in views_of_plan(plan.resources, Locator(section))}

    for view in views_of_model(workspace.stacks["ways"], workspace):
        assert planned[type(view), view.name] == described(view), view.name


def described(view: View) -> dict[str, Any]:
    """Return a view's values, with those of a view in it."""
    return {name: described(each) if isinstance(each, View) else each for name, each in view.values().items()}


def test_both_sums_of_demand_are_equal_with_what_auto_provisioning_may_add(workspace: Workspace, plan: Plan) -> None:
    model = totals(model_demand(workspace.stacks["ways"], workspace))
    views = views_of_plan(plan.resources)

    # 64 in all, of which the pools hold 4 VMs with 8 each; those of the pools are preemptible and on-demand ones.
    assert model["GPUS-PER-GPU-FAMILY-per-project-region", "us-central1"] == (64 - 4 * 8) + 2 * 8
    assert model["TPU-LITE-PODSLICE-V5-per-project-region", "us-central1"] == 32 - 16
    assert totals(demand_of_views(views)[0]) == model


def test_queued_nodes_have_a_check_and_a_class_has_an_object(plan: Plan) -> None:
    kinds = [resource.type for resource in plan.resources]

    assert kinds.count(f"{KUEUE}:AdmissionCheck") == 1
    assert kinds.count(f"{KUEUE}:ProvisioningRequestConfig") == 1
    assert kinds.count("kubernetes:cloud.google.com/v1:ComputeClass") == 2
