"""Workbench instances of a team."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tests.demand_of_model import model_demand, planned_demand
from tests.plans import PlannedStack, composed, planned_stack
from tests.stack_files import workspace_of
from tests.stacks.test_reach import ENVIRONMENT, TEAM, planned
from training_platform.catalog import MACHINE_TYPES
from training_platform.catalog.prices import machines_cost, service_cost
from training_platform.checks.cost import stack_cost
from training_platform.config.model import team
from training_platform.config.workspace import Workspace
from training_platform.quota.demand import stack_demand
from training_platform.resources import resource_types
from training_platform.resources.planned import UNKNOWN
from training_platform.resources.resource_types import SERVICE, WORKBENCH
from training_platform.resources.scope import Scope, persistent_resource_id
from training_platform.resources.vertex import persistent_resource, tensorboard

RESOURCE = "gcp:vertex/aiPersistentResource:AiPersistentResource"
LABELS = {"environment": "prod", "team": "vision", "managed-by": "training-platform"}
names = st.from_regex(r"[a-z]([a-z0-9-]{0,28}[a-z0-9])?", fullmatch=True)


def scope(environment: str = "prod", name: str = "vision") -> Scope:
    return Scope(environment=environment, team=name, project="example-vision", labels=LABELS, deletion_protection=True)


def deploy(**fields: Any) -> PlannedStack:
    spec = team.PersistentResourceSpec(**{"region": "us-central1", "machine_type": "a2-highgpu-1g", **fields})

    return composed(lambda into: into.add(persistent_resource("tuning", spec, scope())), "vertex-tuning")


def pool(plan: PlannedStack) -> dict[str, Any]:
    (found,) = plan.one(RESOURCE).inputs["resourcePools"]
    assert isinstance(found, dict)
    return found


def test_the_stack_file_decides_what_the_resource_is() -> None:
    plan = deploy()

    assert plan.one(RESOURCE, "vertex-tuning-persistent-resource").inputs == {
        "name": "prod-vision-tuning",
        "displayName": "prod-vision-tuning",
        "project": "example-vision",
        "location": "us-central1",
        "resourcePools": [
            {
                "id": "machines",
                "machineSpec": {
                    "machineType": "a2-highgpu-1g",
                    "acceleratorType": "NVIDIA_TESLA_A100",
                    "acceleratorCount": 1,
                },
                "replicaCount": "1",
                "diskSpec": {"bootDiskType": "pd-ssd", "bootDiskSizeGb": 100},
            }
        ],
        "resourceRuntimeSpec": {"serviceAccountSpec": {"enableCustomServiceAccount": True}},
        "labels": LABELS,
    }
    assert [resource.type for resource in plan.resources if resource.custom] == [RESOURCE]


def test_counts_are_texts_and_autoscaling_has_both_bounds() -> None:
    scaled = pool(deploy(replicas=2, max_replicas=4))

    assert scaled["replicaCount"] == "2"
    assert scaled["autoscalingSpec"] == {"minReplicaCount": "2", "maxReplicaCount": "4"}


def test_without_max_replicas_nothing_scales() -> None:
    plan = deploy(replicas=3)

    assert pool(plan)["replicaCount"] == "3"
    assert "autoscalingSpec" not in pool(plan)
    assert "ignoreChanges" not in plan.one(RESOURCE).options


def test_the_autoscalers_count_is_not_undone() -> None:
    assert deploy(max_replicas=4).one(RESOURCE).options["ignoreChanges"] == ["resourcePools[*].replicaCount"]


MORE = {"servers": {"machine_type": "n2-standard-8", "replicas": 2, "boot_disk": {"type": "pd-standard"}}}


def test_every_pool_has_machines_counts_and_a_disk_of_its_own() -> None:
    pools = deploy(max_replicas=4, more_pools=MORE).one(RESOURCE).inputs["resourcePools"]

    assert [each["id"] for each in pools] == ["machines", "servers"]
    assert pools[1] == {
        "id": "servers",
        "machineSpec": {"machineType": "n2-standard-8"},
        "replicaCount": "2",
        "diskSpec": {"bootDiskType": "pd-standard", "bootDiskSizeGb": 100},
    }


def test_only_the_count_of_a_pool_that_scales_is_left_to_the_autoscaler() -> None:
    assert deploy(max_replicas=4, more_pools=MORE).one(RESOURCE).options["ignoreChanges"] == [
        "resourcePools[0].replicaCount"
    ]


def test_a_pool_cannot_have_the_name_of_the_first() -> None:
    with pytest.raises(ValidationError, match="more_pools has machines, which is the name of the first pool"):
        deploy(more_pools={"machines": MORE["servers"]})


def test_a_change_that_the_provider_cannot_send_replaces() -> None:
    assert deploy().one(RESOURCE).options["replaceOnChanges"] == ["displayName", "resourcePools"]


def test_machines_reach_a_vpc_by_the_network_attachment() -> None:
    attachment = "projects/example-vision/regions/us-central1/networkAttachments/vertex"

    assert deploy(network_attachment=attachment).one(RESOURCE).inputs["pscInterfaceConfig"] == {
        "networkAttachment": attachment
    }


def test_bounds_that_vertex_refuses_still_build() -> None:
    assert pool(deploy(replicas=2, max_replicas=2))["autoscalingSpec"] == {
        "minReplicaCount": "2",
        "maxReplicaCount": "2",
    }


@pytest.mark.parametrize(
    ("disk", "wanted"),
    [
        ({}, {"bootDiskType": "pd-ssd", "bootDiskSizeGb": 100}),
        ({"size_gb": 200}, {"bootDiskType": "pd-ssd", "bootDiskSizeGb": 200}),
        ({"type": "pd-standard"}, {"bootDiskType": "pd-standard", "bootDiskSizeGb": 100}),
        ({"type": "pd-balanced", "size_gb": 700_000}, {"bootDiskType": "pd-balanced", "bootDiskSizeGb": 700_000}),
    ],
)
def test_both_fields_of_the_disk_are_always_written(disk: dict[str, object], wanted: dict[str, object]) -> None:
    assert pool(deploy(boot_disk=disk))["diskSpec"] == wanted


def test_a_disk_without_a_type_is_no_disk_of_vertex() -> None:
    with pytest.raises(ValidationError, match=r"boot_disk\.type"):
        deploy(boot_disk={"type": None})


@pytest.mark.parametrize("machine", [name for name, machine in MACHINE_TYPES.items() if machine.vertex])
def test_gpus_are_spelt_out_and_nothing_else_is(machine: str) -> None:
    row = MACHINE_TYPES[machine]
    spec = pool(deploy(machine_type=machine))["machineSpec"]

    if row.kind == "gpu":
        assert row.accelerator
        assert row.accelerator.vertex
        assert spec == {
            "machineType": machine,
            "acceleratorType": row.accelerator.vertex.accelerator_type,
            "acceleratorCount": row.chips,
        }
    else:
        assert spec == {"machineType": machine}


def test_an_eight_gpu_machine_counts_eight() -> None:
    assert pool(deploy(machine_type="a3-highgpu-8g"))["machineSpec"] == {
        "machineType": "a3-highgpu-8g",
        "acceleratorType": "NVIDIA_H100_80GB",
        "acceleratorCount": 8,
    }


@pytest.mark.parametrize(("gpu", "named"), [("t4", "NVIDIA_TESLA_T4"), ("v100", "NVIDIA_TESLA_V100")])
def test_gpus_are_attached_to_the_machines_of_a_pool(gpu: str, named: str) -> None:
    attached = {"machine_type": "n1-standard-16", "accelerator": gpu, "accelerator_count": 2}
    pools = deploy(**attached, more_pools={"more": attached}).one(RESOURCE).inputs["resourcePools"]

    assert [each["machineSpec"] for each in pools] == 2 * [
        {"machineType": "n1-standard-16", "acceleratorType": named, "acceleratorCount": 2}
    ]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"accelerator": "t4"}, "does not go with a2-highgpu-1g, which includes GPUs"),
        ({"machine_type": "n1-standard-8", "accelerator_count": 2}, "accelerator_count needs accelerator"),
        ({"machine_type": "n1-standard-8", "accelerator": "h100"}, "h100"),
    ],
)
def test_what_no_machine_has_attached_is_refused(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        deploy(**fields)


def test_the_region_reaches_the_resource() -> None:
    assert deploy(region="us-east1").one(RESOURCE).inputs["location"] == "us-east1"


def test_the_fixed_name_is_free_before_it_is_taken_again_and_machines_have_time_to_start() -> None:
    options = deploy().one(RESOURCE).options

    assert options["deleteBeforeReplace"] is True
    assert options["customTimeouts"] == {"create": "60m", "update": "60m", "delete": "60m"}


def test_an_id_of_63_characters_stays_whole_and_one_more_is_cut() -> None:
    assert persistent_resource_id(scope("e" * 20, "t" * 20), "k" * 21) == f"{'e' * 20}-{'t' * 20}-{'k' * 21}"
    assert re.fullmatch(r"e{20}-t{20}-k{14}-[0-9a-f]{6}", persistent_resource_id(scope("e" * 20, "t" * 20), "k" * 22))


@given(names, names, names)
def test_every_resource_has_an_id_that_vertex_takes(environment: str, name: str, key: str) -> None:
    assert re.fullmatch(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?", persistent_resource_id(scope(environment, name), key))


@pytest.mark.parametrize("path", ["resourcePools[0].replicaCount", "resourcePools[1].replicaCount", "displayName"])
def test_the_plan_says_of_a_change_that_the_api_does_not_take_that_it_replaces(path: str) -> None:
    also = deploy().one(RESOURCE).options["replaceOnChanges"]

    assert not resource_types.forces_replacement(RESOURCE, path)
    assert resource_types.forces_replacement(RESOURCE, path, also=also)


TENSORBOARD = "gcp:vertex/aiTensorboard:AiTensorboard"


def deploy_tensorboard(region: str = "us-central1", *, protected: bool = True) -> PlannedStack:
    scope = Scope(
        environment="prod", team="vision", project="example-vision", labels=LABELS, deletion_protection=protected
    )

    return composed(lambda into: into.add(tensorboard(region, scope)))


def test_a_team_has_a_tensorboard_in_the_region_of_its_jobs() -> None:
    plan = deploy_tensorboard("us-west4")

    assert plan.one(TENSORBOARD, "tensorboard-us-west4-tensorboard").inputs == {
        "displayName": "prod-vision-us-west4",
        "description": "Experiments of prod-vision",
        "project": "example-vision",
        "region": "us-west4",
        "labels": LABELS,
    }
    assert [resource.type for resource in plan.resources if resource.custom] == [TENSORBOARD]


def test_deletion_protection_decides_whether_experiments_can_go() -> None:
    assert deploy_tensorboard().one(TENSORBOARD).options["protect"] is True
    assert "protect" not in deploy_tensorboard(protected=False).one(TENSORBOARD).options


BENCH: dict[str, Any] = {"zone": "us-central1-a", "machine_type": "g2-standard-8", "owner": "ada@example.com"}


def team_workbench(**changes: Any) -> dict[str, Any]:
    return {**TEAM, "project": None, "vertex": {"workbench": {"ada": {**BENCH, **changes}}}}


def plan(environment: dict[str, Any] = ENVIRONMENT, **changes: Any) -> PlannedStack:
    return planned(environment, team_workbench(**changes), "team")


def checked(section: dict[str, Any]) -> Workspace:
    return workspace_of({"env": {"environment": ENVIRONMENT}, "team": {"team": section}})


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
    assert set(planned(ENVIRONMENT, team_workbench(), "env").outputs["subnets"]) == {"us-central1"}


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
    workspace = checked(team_workbench(machine_type="n2-standard-8"))
    found = {each.key.quota_id: each.amount for each in stack_demand(workspace.stacks["team"], workspace)}

    assert found["CPUS-ALL-REGIONS-per-project"] == 8


def test_its_machine_gpus_and_disks_are_counted_alike_from_the_file_and_from_the_plan() -> None:
    workspace = checked(team_workbench(boot_disk_gb=200, data_disk_gb=500, disk_type="pd-ssd"))
    stack = workspace.stacks["team"]
    amounts = [
        {charge.key.quota_id: charge.amount for charge in charges}
        for charges in (model_demand(stack, workspace), planned_demand(planned_stack(stack, workspace).resources))
    ]

    assert amounts[0] == amounts[1]
    assert amounts[0]["SSD-TOTAL-GB-per-project-region"] == 200 + 500
    assert amounts[0]["GPUS-ALL-REGIONS-per-project"] == 1
    assert amounts[0]["INSTANCES-per-project-region"] == 1


def test_it_costs_its_disks_while_it_is_stopped_and_its_machine_beside_them_while_it_runs() -> None:
    spec = checked(team_workbench(disk_type="pd-ssd")).stacks["team"].team
    assert spec
    cost, region = stack_cost(spec), "us-central1"
    machine = machines_cost(MACHINE_TYPES["g2-standard-8"], "on-demand", region, 1, 1)
    disks = service_cost("pd-ssd", region, 150 + 100, 150 + 100)

    assert cost.least == pytest.approx(disks.least)
    assert cost.most == pytest.approx(disks.most + machine.most)
    assert machine.most > 0


T4: dict[str, Any] = {"machine_type": "n1-standard-8", "accelerator": "t4", "accelerator_count": 2}


def test_attached_gpus_are_made_counted_and_priced() -> None:
    workspace = checked(team_workbench(**T4))
    stack = workspace.stacks["team"]
    assert stack.team
    found = [
        {charge.key.quota_id: charge.amount for charge in charges}
        for charges in (model_demand(stack, workspace), planned_demand(planned_stack(stack, workspace).resources))
    ]
    bare = checked(team_workbench(machine_type="n1-standard-8")).stacks["team"].team
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
    (found,) = checked(team_workbench(**changes)).stacks["team"].findings

    assert (found.path or "").endswith(path)
    assert said in f"{found.message} {found.allowed}"


def test_a_machine_with_tpus_is_refused() -> None:
    (found,) = checked(team_workbench(machine_type="ct5lp-hightpu-1t")).stacks["team"].findings

    assert "has TPUs, which Workbench does not offer" in found.message


@pytest.mark.parametrize(
    ("section", "path", "said"),
    [
        (team_workbench(zone="us-west4-a"), "vertex.workbench.ada.zone", "where no cluster of env has a subnet"),
        ({**team_workbench(), "project": "example-team"}, "vertex.workbench.ada", "machines of example-team may join"),
        (
            team_workbench(subnet="projects/example-team/regions/us-west4/subnetworks/one"),
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
