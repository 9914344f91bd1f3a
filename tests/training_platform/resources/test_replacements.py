import importlib
import re
from typing import Any

import pytest
from pulumi._types import input_type_py_to_pulumi_names

from training_platform.checks.comparison.changes import resource_changes
from training_platform.checks.outcome import LATER, FlatResource, flat_resource
from training_platform.resources import resource_types
from training_platform.resources.resource_types import RESOURCE_TYPES
from training_platform.resources.stack_resource import StackResource

NODE_POOL = "gcp:container/nodePool:NodePool"
CLUSTER = "gcp:container/cluster:Cluster"
FILESTORE = "gcp:filestore/instance:Instance"


@pytest.mark.parametrize(
    ("path", "forces"),
    [
        ("nodeConfig.spot", True),
        ("nodeConfig.guestAccelerators[0].type", True),
        ("nodeConfig.reservationAffinity.values", True),
        ("nodeConfig.metadata.anything", True),
        ("nodeConfig.machineType", False),
        ("nodeConfig.bootDisk.sizeGb", False),
        ("autoscaling.maxNodeCount", False),
        ("placementPolicy.tpuTopology", False),
    ],
)
def test_a_field_of_a_node_pool_replaces_it_or_not(path: str, forces: bool) -> None:
    assert resource_types.forces_replacement(NODE_POOL, path) is forces


def test_a_part_that_comes_or_goes_counts_as_the_part() -> None:
    assert resource_types.forces_replacement(NODE_POOL, "placementPolicy.tpuTopology", "placementPolicy")
    assert resource_types.forces_replacement(FILESTORE, "networks[1].ipAddresses", "networks[1]")
    assert not resource_types.forces_replacement(NODE_POOL, "autoscaling.maxNodeCount", "autoscaling")


def test_what_a_program_registers_as_replacing_covers_all_below_it_and_no_longer_name() -> None:
    assert resource_types.forces_replacement(NODE_POOL, "placementPolicy.tpuTopology", also=["placementPolicy"])
    assert not resource_types.forces_replacement(NODE_POOL, "nodeConfig.machineType", also=["nodeConfig.machine"])


@pytest.mark.parametrize(
    ("kind", "path", "forces"),
    [
        ("kubernetes:core/v1:Namespace", "metadata.name", True),
        ("kubernetes:core/v1:Namespace", "metadata.labels.team", False),
        ("kubernetes:rbac.authorization.k8s.io/v1:RoleBinding", "roleRef.name", True),
        ("kubernetes:rbac.authorization.k8s.io/v1:RoleBinding", "subjects[0].name", False),
        ("kubernetes:helm.sh/v3:Release", "name", True),
        ("kubernetes:helm.sh/v3:Release", "metadata.name", False),
    ],
)
def test_objects_are_replaced_under_another_name_and_releases_by_their_own(kind: str, path: str, forces: bool) -> None:
    assert resource_types.forces_replacement(kind, path) is forces


def test_of_a_type_that_the_table_lacks_nothing_is_known() -> None:
    assert not resource_types.has_known_replacements("gcp:pubsub/topic:Topic")
    assert not resource_types.forces_replacement("gcp:pubsub/topic:Topic", "name")
    assert resource_types.has_known_replacements("kubernetes:core/v1:Namespace")


GCP = sorted(token for token, row in RESOURCE_TYPES.items() if token.startswith("gcp:") and row.replacing)


@pytest.mark.parametrize("kind", GCP)
def test_every_field_is_an_input_of_the_released_sdk(kind: str) -> None:
    _, module, name = kind.split(":")
    package: Any = importlib.import_module(f"pulumi_gcp.{module.split('/')[0]}")

    for field in resource_types.replacing_inputs(kind):
        arguments = getattr(package, f"{name}Args")
        for part in field.removesuffix(".*").replace("[*]", "").split("."):
            names = {text: python for python, text in input_type_py_to_pulumi_names(arguments).items()}
            assert part in names, f"{kind} has no {field}"
            arguments = _inner(package, arguments, names[part])


def _inner(package: Any, arguments: Any, name: str) -> Any:
    """Return the class of an argument's value, None where it is a plain one."""
    class_names = re.findall(r"\w+Args\b", str(arguments.__init__.__annotations__[name]))
    return getattr(package, class_names[0]) if class_names else None


def changes(kind: str, before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Return the kinds of changes of a resource whose inputs change."""
    sides = (
        flat_resource(StackResource(stack="dev", type=kind, name="c", inputs=inputs)) for inputs in (before, after)
    )
    return [change.kind for change in resource_changes(*([side] for side in sides))]


def test_a_switch_that_cannot_be_turned_off_in_place_is_turned_on_in_place() -> None:
    assert changes(CLUSTER, {}, {"enableFqdnNetworkPolicy": True}) == ["changed"]
    assert changes(CLUSTER, {"enableFqdnNetworkPolicy": False}, {"enableFqdnNetworkPolicy": True}) == ["changed"]
    assert changes(CLUSTER, {"enableFqdnNetworkPolicy": True}, {}) == ["replaced"]
    assert changes(CLUSTER, {"enableAutopilot": False}, {"enableAutopilot": True}) == ["replaced"]


def test_a_pool_that_stops_to_survive_stock_outs_is_another_pool() -> None:
    some = {"bestEffortProvisioning": {"enabled": True, "minProvisionNodes": 3}}
    fewer = {"bestEffortProvisioning": {"enabled": True, "minProvisionNodes": 2}}

    assert changes(NODE_POOL, {}, some) == ["changed"]
    assert changes(NODE_POOL, some, fewer) == ["changed"]
    assert changes(NODE_POOL, some, {}) == ["replaced"]


def test_objects_go_with_their_provider_which_goes_with_its_cluster() -> None:
    def plan(identifier: str, kubeconfig: str = "one") -> list[FlatResource]:
        settings = {"clusterIdentifier": identifier, "kubeconfig": kubeconfig}
        provider = StackResource(stack="dev", type="pulumi:providers:kubernetes", name="k8s", inputs=settings)
        inside, outside = (
            StackResource(stack="dev", type="kubernetes:core/v1:Namespace", name=name, inputs={}, options=options)
            for name, options in {"inside": {"provider": "k8s"}, "outside": {"provider": "another"}}.items()
        )
        return [flat_resource(resource) for resource in (inside, outside, provider)]

    def kinds(after: list[FlatResource]) -> dict[str, str]:
        return {change.name: change.kind for change in resource_changes(plan("clusters/a"), after)}

    assert kinds(plan("clusters/b")) == {"k8s": "replaced", "inside": "replaced"}
    assert kinds(plan("clusters/a", "two")) == {"k8s": "changed"}


@pytest.mark.parametrize("unknown", [LATER, ["subnet", LATER]])
def test_an_unknown_value_of_another_resource_than_before_is_a_change(unknown: object) -> None:
    def with_source(name: str, value: object) -> FlatResource:
        return FlatResource(
            type=CLUSTER,
            name="c",
            inputs={"subnetwork": value},
            inputs_from={"subnetwork": (("gcp:Subnetwork", name),)},
        )

    def changed(value: object, source: str) -> list[tuple[str, object, object]]:
        changes = resource_changes([with_source("first", value)], [with_source(source, value)])
        return [(row.path, row.old, row.new) for change in changes for row in change.inputs]

    assert changed(unknown, "second") == [("subnetwork", "first", "second")]
    assert changed(unknown, "first") == []
    assert changed(["a", "b"], "second") == []
