"""A stack with every TPU and GPU machine in each of its capacities is valid, can be planned, and has no errors.

T4 is attached to one CPU machine of each number of GPUs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.stacks.every_machine import ATTACHED, FIRST, MACHINES, NODE_POOL, environment
from tests.support.plans import PlannedStack, planned_demand, planned_stack
from tests.support.stack_files import workspace_of
from training_platform.catalog import ACCELERATORS
from training_platform.catalog.types import MachineType
from training_platform.config.expansion import pools
from training_platform.config.model.stack import Stack
from training_platform.config.names import Locator
from training_platform.config.reading.finding import Finding
from training_platform.config.workspace import Workspace
from training_platform.resources.stack_resource import StackResource
from training_platform.rules import evaluate, program, views_of_plan

every_machine = pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)


@pytest.fixture(scope="module", params=["multi-network", "dranet"])
def stack(request: pytest.FixtureRequest) -> Stack:
    return workspace_of({"every": {"environment": environment(request.param)}}).stacks["every"]


@pytest.fixture(scope="module")
def plan(stack: Stack) -> PlannedStack:
    return planned_stack(stack, Workspace(Path(), {stack.name: stack}))


@pytest.fixture(scope="module")
def findings(stack: Stack, plan: PlannedStack) -> list[Finding]:
    assert stack.section is not None
    views = views_of_plan(plan.resources, Locator(stack.section))
    return evaluate(program(views, stack="every", environment="every", team=None, production=False), file=stack)


@pytest.fixture(scope="module")
def charged(plan: PlannedStack) -> set[tuple[Any, ...]]:
    keys = (key for charge in planned_demand(plan.resources) for key in charge.keys)
    return {(key.quota_id, key.dimensions) for key in keys}


def of_machine(plan: PlannedStack, machine: MachineType) -> list[StackResource]:
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
    disk_type = "pd-balanced" if "pd-balanced" in machine.boot_disk_types else machine.boot_disk_types[0]
    assert {pool.inputs["nodeConfig"]["bootDisk"]["diskType"] for pool in pools} == {disk_type}
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


@every_machine
def test_every_capacity_of_a_machine_is_charged(machine: MachineType, charged: set[tuple[Any, ...]]) -> None:
    assert machine.accelerator is not None
    quotas = (machine.accelerator.quotas.get(capacity) for capacity in machine.capacities)
    assert {(quota.quota_id, quota.dimensions) for quota in quotas if quota} <= charged


@pytest.mark.parametrize(("gpu", "count", "vcpus"), ATTACHED)
def test_attached_gpus_are_planned_and_found_right(
    gpu: str, count: int, vcpus: int, plan: PlannedStack, findings: list[Finding]
) -> None:
    (pool,) = [node_pool for node_pool in plan.of(NODE_POOL) if node_pool.name == f"{FIRST}-{gpu}-{count}-pool"]
    (guest,) = pool.inputs["nodeConfig"]["guestAccelerators"]

    assert pool.inputs["nodeConfig"]["machineType"] == f"n1-standard-{vcpus}"
    assert (guest["type"], guest["count"]) == (ACCELERATORS[gpu].gke_label, count)
    assert not [
        finding for finding in findings if finding.severity == "error" and f"node_pools.{gpu}-{count}" in finding.path
    ]


@every_machine
def test_every_nic_but_the_first_has_a_network_of_ours_or_of_gke(
    machine: MachineType, plan: PlannedStack, stack: Stack
) -> None:
    assert stack.environment is not None
    by_gke = stack.environment.clusters[FIRST].accelerator_networks == "dranet" and machine.network_devices is not None
    for pool in of_machine(plan, machine):
        config = pool.inputs["networkConfig"]
        networks = config.get("additionalNodeNetworkConfigs", [])
        assert len(networks) == (0 if by_gke else machine.nics - 1)
        assert config.get("acceleratorNetworkProfile") == ("auto" if by_gke else None)
        driver = pool.inputs["nodeConfig"]["labels"].get("cloud.google.com/gke-networking-dra-driver")
        assert driver == ("true" if by_gke else None)
