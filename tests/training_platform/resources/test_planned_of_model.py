"""What the model says a stack's resources are is what its program registers: input by input, for invented stacks."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from benchmarks.fleet import Shape, write_fleet
from tests.places import ORGANISATION
from tests.training_platform.resources.planned_alike import differences
from training_platform.checks.planning.recorder import plan_stacks
from training_platform.config.workspace import Workspace, read_workspace
from training_platform.resources.declared import Declared, Later, ModelPlan, ResourceOptions
from training_platform.resources.environment_outputs import EnvironmentOutputs, OutputsError, parse_outputs
from training_platform.resources.model import planned_of_model
from training_platform.resources.planned import UNKNOWN
from training_platform.views.adapters import VIEWS_OF


@pytest.mark.parametrize("root", [ORGANISATION, None], ids=["shipped stacks", "a generated organisation"])
def test_the_model_says_what_the_program_registers(root: Path | None, tmp_path: Path) -> None:
    if root is None:
        write_fleet(tmp_path, Shape(environments=2, pools=42, teams=2))  # every family of machines
    workspace = read_workspace(root or tmp_path)
    plans = {stack.name: plan for stack, plan in plan_stacks(workspace, workspace.stacks.values())}

    for name, stack in workspace.stacks.items():
        of_model = planned_of_model(stack, workspace)
        assert of_model
        assert differences(of_model, plans[name].resources, VIEWS_OF) == [], name


def test_a_team_without_its_environment_has_no_resources() -> None:
    team = read_workspace(ORGANISATION).stacks["prod-vision"]

    assert planned_of_model(team, Workspace(ORGANISATION, {team.name: team})) == []


def test_another_resource_s_value_is_unknown_and_waited_for() -> None:
    network = Later("gcp:compute/network:Network", "network-vpc")
    declared = Declared(type="gcp:compute/subnetwork:Subnetwork", name="c-subnet", inputs={"network": network})
    planned = declared.planned("dev")

    assert planned.inputs == {"network": UNKNOWN}
    assert planned.options == {"dependsOn": [("gcp:compute/network:Network", "network-vpc")]}


def test_an_output_that_is_an_input_is_known_as_in_a_preview() -> None:
    plan = ModelPlan()
    zone = plan(Declared(type="gcp:dns/managedZone:ManagedZone", name="zone", inputs={"name": "dev-apis", "ttl": None}))

    assert zone.name == "dev-apis"
    assert zone.id == zone.ttl == Later("gcp:dns/managedZone:ManagedZone", "zone")
    assert [resource.name for resource in plan.resources] == ["zone"]


def test_what_is_left_out_is_left_out_at_any_depth() -> None:
    inputs = {"node_config": {"taints": None, "guest_accelerators": [{"gpu_partition_size": None, "count": 1}]}}

    planned = Declared(type="gcp:container/nodePool:NodePool", name="p", inputs=inputs).planned("dev")
    assert planned.inputs == {"nodeConfig": {"guestAccelerators": [{"count": 1}]}}


def test_keys_that_users_write_stay_as_they_are() -> None:
    inputs = {"node_config": {"labels": {"my_label": "a"}, "resource_labels": {"cost_center": "b"}}}

    planned = Declared(type="gcp:container/nodePool:NodePool", name="p", inputs=inputs).planned("dev")
    assert planned.inputs["nodeConfig"] == {"labels": {"my_label": "a"}, "resourceLabels": {"cost_center": "b"}}


def test_every_option_is_planned_where_it_is_set() -> None:
    every = ResourceOptions(
        protect=True,
        retain_on_delete=True,
        delete_before_replace=True,
        ignore_changes=("a",),
        replace_on_changes=("b",),
        replacement_trigger="c",
        timeouts={"create": "1m"},
    )

    assert len(every.planned) == len(dataclasses.fields(ResourceOptions))
    assert ResourceOptions().planned == {}


def outputs(flavors: list[str] | None) -> EnvironmentOutputs:
    cluster = {"endpoint": "gke.example.com", **({"flavors": flavors} if flavors is not None else {})}
    return parse_outputs("prod", {"clusters": {"west": cluster}})


def test_a_cluster_with_the_teams_flavors_is_found() -> None:
    assert outputs(["a100-40", "h100"]).cluster_with("west", ["h100"]).endpoint == "gke.example.com"


@pytest.mark.parametrize(
    ("wanted", "said"), [(["h100"], "flavor h100"), (["h100", "a100-40", "b200"], "flavors h100, b200")]
)
def test_a_flavor_that_is_not_deployed_is_refused_with_what_to_run(wanted: list[str], said: str) -> None:
    with pytest.raises(OutputsError) as refused:
        outputs(["a100-40"]).cluster_with("west", wanted)

    assert (
        str(refused.value) == f"Stack prod is deployed without {said} in cluster west: run `pulumi up -s prod` first."
    )


def test_an_environment_of_an_older_program_is_taken_at_its_file() -> None:
    assert outputs(None).cluster_with("west", ["h100"]).endpoint == "gke.example.com"


def test_a_cluster_without_any_flavor_has_none_of_the_teams() -> None:
    with pytest.raises(OutputsError, match="without flavor h100"):
        outputs([]).cluster_with("west", ["h100"])


@pytest.mark.parametrize("deployed", [None, "199.36.153.4/30"])
def test_googles_apis_elsewhere_than_the_team_lets_its_pods_connect_to_are_refused(deployed: str | None) -> None:
    found = parse_outputs("prod", {"clusters": {}, "google_apis": deployed})

    with pytest.raises(OutputsError, match=r"lead to 199\.36\.153\.8/30: run `pulumi up -s prod` first"):
        found.check_google_apis("199.36.153.8/30")
    parse_outputs("prod", {"clusters": {}, "google_apis": "199.36.153.8/30"}).check_google_apis("199.36.153.8/30")
