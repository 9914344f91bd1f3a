"""Workbench instances of a team."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.demand_of_model import model_demand, planned_demand
from tests.stacks.test_reach import ENVIRONMENT, TEAM, planned
from training_platform.catalog import MACHINE_TYPES
from training_platform.catalog.prices import machines_cost, service_cost
from training_platform.checks.cost import stack_cost
from training_platform.checks.planning.recorder import Plan
from training_platform.config.model.stack import parse_stack
from training_platform.config.reading.source import parse_source
from training_platform.config.workspace import Workspace, cross_check
from training_platform.quota.demand import stack_demand
from training_platform.resources.model import planned_of_model
from training_platform.resources.planned import UNKNOWN
from training_platform.resources.register import SERVICE, WORKBENCH

BENCH: dict[str, Any] = {"zone": "us-central1-a", "machine_type": "g2-standard-8", "owner": "ada@example.com"}


def team(**changes: Any) -> dict[str, Any]:
    return {**TEAM, "project": None, "vertex": {"workbench": {"ada": {**BENCH, **changes}}}}


def plan(environment: dict[str, Any] = ENVIRONMENT, **changes: Any) -> Plan:
    return planned(environment, team(**changes), "team")


def checked(section: dict[str, Any]) -> Workspace:
    files = {"env": {"training-platform:environment": ENVIRONMENT}, "team": {"training-platform:team": section}}
    stacks = {
        name: parse_stack(name, parse_source(yaml.safe_dump({"config": text}), f"stacks/Pulumi.{name}.yaml"))
        for name, text in files.items()
    }
    return cross_check(Workspace(None, stacks))  # type: ignore[arg-type] # no file is read


def test_an_instance_is_one_person_s_and_acts_as_the_team() -> None:
    found = plan().one(WORKBENCH, "workbench-ada-instance").inputs
    setup = found["gceSetup"]

    assert (found["name"], found["location"]) == ("env-team-ada", "us-central1-a")
    assert found["instanceOwners"] == ["ada@example.com"]
    assert found["labels"]["team"] == "team"
    assert setup["serviceAccounts"] == [{"email": "env-team-jobs@example-reach.iam.gserviceaccount.com"}]
    assert setup["acceleratorConfigs"] == [{"type": "NVIDIA_L4", "coreCount": "1"}]
    assert setup["metadata"] == {"idle-timeout-seconds": str(180 * 60)}


def test_it_has_no_public_address_and_joins_the_environment_s_subnet() -> None:
    setup = plan().one(WORKBENCH).inputs["gceSetup"]

    assert setup["disablePublicIp"] is True
    assert setup["networkInterfaces"] == [{"network": UNKNOWN, "subnet": UNKNOWN}]
    assert set(planned(ENVIRONMENT, team(), "env").outputs["subnets"]) == {"us-central1"}


def test_both_disks_have_the_environment_s_key() -> None:
    key = ENVIRONMENT["encryption"]["keys"][0]
    setup = plan(boot_disk_gb=200, data_disk_gb=500, disk_type="pd-ssd").one(WORKBENCH).inputs["gceSetup"]
    common = {"diskType": "PD_SSD", "diskEncryption": "CMEK", "kmsKey": key}

    assert setup["bootDisk"] == {**common, "diskSizeGb": "200"}
    assert setup["dataDisks"] == {**common, "diskSizeGb": "500"}
    members = {each.name for each in plan().resources if "cryptoKeyIAMMember" in each.type}
    assert {"agents-compute-system-key-us-central1", "agents-gcp-sa-notebooks-key-us-central1"} <= members


@pytest.mark.parametrize("protected", [True, False])
def test_it_is_protected_against_deletion_unless_the_file_says_otherwise(protected: bool) -> None:
    found = plan(deletion_protection=protected).one(WORKBENCH)

    assert found.inputs["enableDeletionProtection"] is protected
    assert bool(found.options.get("protect")) is protected


def test_its_api_is_enabled_for_a_team_that_has_one_alone() -> None:
    without = planned(ENVIRONMENT, {**TEAM, "vertex": {}}, "team")
    apis = [{each.inputs["service"] for each in which.of(SERVICE)} for which in (plan(), without)]

    assert ["notebooks.googleapis.com" in services for services in apis] == [True, False]


def test_the_vcpus_of_a_machine_without_gpus_are_counted() -> None:
    workspace = checked(team(machine_type="n2-standard-8"))
    found = {each.key.quota_id: each.amount for each in stack_demand(workspace.stacks["team"], workspace)}

    assert found["CPUS-ALL-REGIONS-per-project"] == 8


def test_its_machine_gpus_and_disks_are_counted_alike_from_the_file_and_from_the_plan() -> None:
    workspace = checked(team(boot_disk_gb=200, data_disk_gb=500, disk_type="pd-ssd"))
    stack = workspace.stacks["team"]
    amounts = [
        {charge.key.quota_id: charge.amount for charge in charges}
        for charges in (model_demand(stack, workspace), planned_demand(planned_of_model(stack, workspace)))
    ]

    assert amounts[0] == amounts[1]
    assert amounts[0]["SSD-TOTAL-GB-per-project-region"] == 200 + 500
    assert amounts[0]["GPUS-ALL-REGIONS-per-project"] == 1
    assert amounts[0]["INSTANCES-per-project-region"] == 1


def test_it_costs_its_disks_while_it_is_stopped_and_its_machine_beside_them_while_it_runs() -> None:
    spec = checked(team(disk_type="pd-ssd")).stacks["team"].team
    assert spec
    cost, region = stack_cost(spec), "us-central1"
    machine = machines_cost(MACHINE_TYPES["g2-standard-8"], "on-demand", region, 1, 1)
    disks = service_cost("pd-ssd", region, 150 + 100, 150 + 100)

    assert cost.least == pytest.approx(disks.least)
    assert cost.most == pytest.approx(disks.most + machine.most)
    assert machine.most > 0


T4: dict[str, Any] = {"machine_type": "n1-standard-8", "accelerator": "t4", "accelerator_count": 2}


def test_attached_gpus_are_made_counted_and_priced() -> None:
    workspace = checked(team(**T4))
    stack = workspace.stacks["team"]
    assert stack.team
    found = [
        {charge.key.quota_id: charge.amount for charge in charges}
        for charges in (model_demand(stack, workspace), planned_demand(planned_of_model(stack, workspace)))
    ]
    bare = checked(team(machine_type="n1-standard-8")).stacks["team"].team
    assert bare

    assert plan(**T4).one(WORKBENCH).inputs["gceSetup"]["acceleratorConfigs"] == [
        {"type": "NVIDIA_TESLA_T4", "coreCount": "2"}
    ]
    assert found[0] == found[1]
    assert found[0]["NVIDIA-T4-GPUS-per-project-region"] == found[0]["GPUS-ALL-REGIONS-per-project"] == 2
    assert stack_cost(stack.team).most - stack_cost(bare).most == pytest.approx(2 * 0.35)
    assert stack_cost(stack.team).least == stack_cost(bare).least


@pytest.mark.parametrize(
    ("changes", "path", "said"),
    [
        ({"machine_type": "g2-standard-8", "accelerator": "t4"}, "accelerator", "which includes GPUs"),
        ({**T4, "accelerator": "h100"}, "accelerator", "t4, v100"),
        ({**T4, "accelerator": None}, "", "accelerator_count needs accelerator"),
    ],
)
def test_gpus_that_cannot_be_attached_are_refused_at_their_line(changes: dict[str, Any], path: str, said: str) -> None:
    (found,) = checked(team(**changes)).stacks["team"].findings

    assert (found.path or "").endswith(path)
    assert said in f"{found.message} {found.allowed}"


def test_a_machine_with_tpus_is_refused() -> None:
    (found,) = checked(team(machine_type="ct5lp-hightpu-1t")).stacks["team"].findings

    assert "has TPUs, which Workbench does not offer" in found.message


@pytest.mark.parametrize(
    ("section", "path", "said"),
    [
        (team(zone="us-west4-a"), "vertex.workbench.ada.zone", "where no cluster of env has a subnet"),
        ({**team(), "project": "example-team"}, "vertex.workbench.ada", "machines of example-team may join"),
        (
            team(subnet="projects/example-team/regions/us-west4/subnetworks/one"),
            "vertex.workbench.ada.subnet",
            "is in another region than zone us-central1-a",
        ),
    ],
)
def test_an_instance_without_a_subnet_is_found_at_its_line(section: dict[str, Any], path: str, said: str) -> None:
    found = [(each.path, each.message) for each in checked(section).stacks["team"].findings]

    assert len(found) == 1
    assert found[0][0] == path
    assert said in found[0][1]
