"""A stack with every machine that has TPUs or GPUs, in every way that it can be had, is taken, planned and found right.

T4 and V100 are attached to one CPU machine of each number of GPUs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.demand_of_model import model_demand, planned_demand
from tests.plans import PlannedStack, planned_stack
from tests.stack_files import workspace_of
from training_platform.catalog import ACCELERATORS, MACHINE_TYPES
from training_platform.catalog.locations import region_of
from training_platform.catalog.topologies import hosts, legal_topologies
from training_platform.catalog.types import MachineType
from training_platform.config.model.stack import Stack
from training_platform.config.names import Locator
from training_platform.config.pools import pools
from training_platform.config.reading.finding import Finding
from training_platform.config.workspace import Workspace
from training_platform.resources.planned import Planned
from training_platform.rules import evaluate, program, views_of_plan

NODE_POOL = "gcp:container/nodePool:NodePool"
RESOURCE_POLICY = "gcp:compute/resourcePolicy:ResourcePolicy"
ATTACHED = [("t4", 1, 8), ("t4", 2, 16), ("t4", 4, 96)]
ATTACHED += [("v100", 1, 8), ("v100", 2, 16), ("v100", 4, 32), ("v100", 8, 96)]
MACHINES = {name: machine for name, machine in MACHINE_TYPES.items() if machine.accelerator is not None}
every_machine = pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
FIRST = "us-central1"  # where most machines are: one cluster for all of them


def zone_of(machine: MachineType) -> str:
    """Return a zone with the machine; one of a known region where no source says which zone."""
    known = sorted(machine.zones or (f"{region}-a" for region in machine.regions or (FIRST,)))
    return next((zone for zone in known if region_of(zone) == FIRST), known[0])


def pools_of(machine: MachineType) -> dict[str, dict[str, Any]]:
    """Return a pool for every capacity, with the smallest slice, and one with the smallest over several hosts."""
    found: dict[str, dict[str, Any]] = {}
    for capacity in machine.capacities:
        pool: dict[str, Any] = {"machine_type": machine.name, "zone": zone_of(machine), "capacity": capacity}
        if capacity == "reservation":
            pool["reservation"] = "reserved"
        if machine.kind == "tpu":
            pool["topology"] = machine.single_host
        name = f"{machine.name}-{capacity[:4].strip('-')}"  # names have 30 characters at most
        found[name] = pool
        if machine.multi_host:
            larger = next(shape for shape in legal_topologies(machine) if (hosts(machine, shape) or 0) > 1)
            found[f"{name}-hosts"] = {**pool, "topology": larger}
    return found


def attached_pools() -> dict[str, dict[str, Any]]:
    """Return a pool of each number of T4 and V100, on a machine that takes so many."""
    return {
        f"{gpu}-{count}": {
            "machine_type": f"n1-standard-{vcpus}",
            "accelerator": gpu,
            "accelerator_count": count,
            "zone": f"{FIRST}-a",
        }
        for gpu, count, vcpus in ATTACHED
    }


def environment() -> dict[str, Any]:
    """Return an environment with a cluster in every region that is needed."""
    regions = sorted({region_of(zone_of(machine)) for machine in MACHINES.values()})
    clusters: dict[str, Any] = {}
    for number, region in enumerate(regions):
        of_region: dict[str, Any] = attached_pools() if region == FIRST else {}
        for machine in MACHINES.values():
            if region_of(zone_of(machine)) == region:
                of_region |= pools_of(machine)
        clusters[region] = {
            "location": region,
            "version": "1.35",
            "subnet": {
                "nodes": f"10.{number}.0.0/18",
                "services": f"10.{number}.64.0/20",
                "pods": f"10.{128 + 4 * number}.0.0/14",
            },
            "node_pools": of_region,
        }
    return {"project": "example-every", "clusters": clusters}


@pytest.fixture(scope="module")
def stack() -> Stack:
    return workspace_of({"every": {"environment": environment()}}).stacks["every"]


@pytest.fixture(scope="module")
def plan(stack: Stack) -> PlannedStack:
    return planned_stack(stack, Workspace(Path(), {stack.name: stack}))


@pytest.fixture(scope="module")
def findings(stack: Stack, plan: PlannedStack) -> list[Finding]:
    assert stack.section is not None
    views = views_of_plan(plan.resources, Locator(stack.section))
    return evaluate(program(views, stack="every", environment="every", team=None, production=False), file=stack)


def of_machine(plan: PlannedStack, machine: MachineType) -> list[Planned]:
    """Return the planned node pools of a machine type."""
    return [pool for pool in plan.of(NODE_POOL) if pool.inputs["nodeConfig"]["machineType"] == machine.name]


def test_the_model_takes_every_machine_that_has_an_accelerator(stack: Stack) -> None:
    assert [str(finding) for finding in stack.findings] == []
    assert stack.environment is not None
    named = {pool.accelerator.name for pool in pools(stack.environment)}
    assert set(ACCELERATORS) == named


@every_machine
def test_every_machine_is_planned_in_every_capacity(machine: MachineType, plan: PlannedStack) -> None:
    pools = of_machine(plan, machine)

    assert len(pools) == len(machine.capacities) * (1 + machine.multi_host)
    assert {pool.inputs["nodeConfig"]["bootDisk"]["diskType"] for pool in pools} == {machine.boot_disk_types[0]}
    configs = [pool.inputs["nodeConfig"] for pool in pools]
    assert sum(config.get("spot") is True for config in configs) == ("spot" in machine.capacities) * (
        1 + machine.multi_host
    )
    assert sum(config.get("flexStart") is True for config in configs) == ("flex-start" in machine.capacities) * (
        1 + machine.multi_host
    )
    gpus = {(gpu["type"], gpu["count"]) for config in configs for gpu in config.get("guestAccelerators", [])}
    assert machine.accelerator is not None
    assert gpus == ({(machine.accelerator.gke_label, machine.chips)} if machine.kind == "gpu" else set())


@every_machine
def test_no_rule_refuses_a_machine_where_and_how_it_is_had(machine: MachineType, findings: list[Finding]) -> None:
    errors = [
        f"{finding.rule}: {finding.path}: {finding.message}"
        for finding in findings
        if finding.severity == "error" and f"node_pools.{machine.name}-" in f"{finding.path}."
    ]
    assert errors == []


def test_no_rule_refuses_anything_else_of_the_stack(findings: list[Finding]) -> None:
    assert [str(f) for f in findings if f.severity == "error" and "node_pools." not in f.path] == []


def test_the_model_and_the_plan_charge_the_same_quotas(stack: Stack, plan: PlannedStack) -> None:
    workspace = Workspace(Path(), {"every": stack})
    of_model: dict[Any, float] = {}
    of_plan: dict[Any, float] = {}
    for charge in model_demand(stack, workspace):
        of_model[charge.keys] = of_model.get(charge.keys, 0) + charge.amount
    for charge in planned_demand(plan.resources):
        of_plan[charge.keys] = of_plan.get(charge.keys, 0) + charge.amount

    assert of_plan == of_model
    charged = {(key.quota_id, key.dimensions) for keys in of_model for key in keys}
    for machine in MACHINES.values():
        assert machine.accelerator is not None
        for capacity in machine.capacities:
            if capacity in machine.accelerator.quotas:
                quota = machine.accelerator.quotas[capacity]
                assert (quota.quota_id, quota.dimensions) in charged


@pytest.mark.parametrize(("gpu", "count", "vcpus"), ATTACHED)
def test_attached_gpus_are_planned_and_found_right(
    gpu: str, count: int, vcpus: int, plan: PlannedStack, findings: list[Finding]
) -> None:
    (pool,) = [each for each in plan.of(NODE_POOL) if each.name == f"{FIRST}-{gpu}-{count}-pool"]
    (guest,) = pool.inputs["nodeConfig"]["guestAccelerators"]

    assert pool.inputs["nodeConfig"]["machineType"] == f"n1-standard-{vcpus}"
    assert (guest["type"], guest["count"]) == (ACCELERATORS[gpu].gke_label, count)
    assert not [each for each in findings if each.severity == "error" and f"node_pools.{gpu}-{count}" in each.path]


@every_machine
def test_every_nic_but_the_first_has_its_network(machine: MachineType, plan: PlannedStack) -> None:
    for pool in of_machine(plan, machine):
        networks = pool.inputs.get("networkConfig", {}).get("additionalNodeNetworkConfigs", [])
        assert len(networks) == machine.nics - 1


@pytest.mark.parametrize("machine", [m for m in MACHINES.values() if m.workload_policy], ids=lambda m: m.name)
def test_a_workload_policy_joins_the_hosts_of_one_slice_or_nvlink_domain(
    machine: MachineType, plan: PlannedStack
) -> None:
    joined = [pool for pool in of_machine(plan, machine) if machine.nvlink_domain or "placementPolicy" in pool.inputs]
    policies = {each.inputs["name"]: each.inputs for each in plan.of(RESOURCE_POLICY)}
    assert joined
    for pool in joined:
        policy = policies[pool.inputs["placementPolicy"]["policyName"]]
        topology = machine.nvlink_domain or pool.inputs["placementPolicy"]["tpuTopology"]
        assert policy["workloadPolicy"] == {"type": "HIGH_THROUGHPUT", "acceleratorTopology": topology}
