"""Which creates of a killed run took place, and under which id."""

from __future__ import annotations

from typing import Any

import pytest

from tests.places import ORGANISATION
from training_platform.checks.planning.planner import plan_order
from training_platform.checks.planning.recorder import plan_stacks
from training_platform.config.workspace import read_workspace
from training_platform.resources.register import REGISTER, ResourceType
from training_platform.sandbox.run.folder import SandboxFolder
from training_platform.sandbox.run.recovery import Holdings, clusters_of, find_id, find_pending_creates, holdings

NOTHING = Holdings({}, frozenset())
POOL = {
    "project": "p",
    "location": "us-central1",
    "name": "a100-0f1e2d",
    "cluster": "projects/p/locations/l/clusters/c",
}


def holding(*names: str, **displayed: str) -> Holdings:
    bodies: dict[str, dict[str, Any]] = {name: {} for name in names}
    return Holdings(bodies | {name: {"displayName": shown} for shown, name in displayed.items()}, frozenset())


def test_a_pool_with_a_random_suffix_is_found_under_the_name_that_was_written_down() -> None:
    path = "projects/p/locations/us-central1/clusters/c/nodePools/a100-0f1e2d"

    assert find_id({"type": "gcp:container/nodePool:NodePool", "inputs": POOL}, holding(path)) == path


def test_a_create_that_never_reached_the_cloud_has_no_id() -> None:
    assert find_id({"type": "gcp:container/nodePool:NodePool", "inputs": POOL}, NOTHING) is None


@pytest.mark.parametrize(
    ("kind", "inputs", "held", "expected"),
    [
        ("gcp:storage/bucket:Bucket", {"name": "data", "project": "p"}, "b/data", "p/data"),
        (
            "gcp:serviceaccount/account:Account",
            {"project": "p", "accountId": "nodes"},
            "projects/p/serviceAccounts/nodes@p.iam.gserviceaccount.com",
            "projects/p/serviceAccounts/nodes@p.iam.gserviceaccount.com",
        ),
        (
            "gcp:vertex/aiPersistentResource:AiPersistentResource",
            {"project": "p", "location": "us-central1", "name": "tuning"},
            "projects/p/locations/us-central1/persistentResources/tuning",
            "projects/p/locations/us-central1/persistentResources/tuning",
        ),
    ],
)
def test_ids_that_are_not_the_apis_path(kind: str, inputs: dict[str, str], held: str, expected: str) -> None:
    assert find_id({"type": kind, "inputs": inputs}, holding(held)) == expected
    assert find_id({"type": kind, "inputs": inputs}, NOTHING) is None


def test_a_nat_gateway_is_there_when_its_router_has_it() -> None:
    inputs = {"project": "p", "region": "r", "router": "router", "name": "nat"}
    router: dict[str, Any] = {"nats": [{"name": "other"}]}
    held = Holdings({"projects/p/regions/r/routers/router": router}, frozenset())

    assert find_id({"type": "gcp:compute/routerNat:RouterNat", "inputs": inputs}, held) is None
    router["nats"].append({"name": "nat"})
    assert find_id({"type": "gcp:compute/routerNat:RouterNat", "inputs": inputs}, held) == "p/r/router/nat"


def test_what_google_numbers_is_found_by_the_name_that_people_see() -> None:
    kind, inputs = "gcp:monitoring/alertPolicy:AlertPolicy", {"project": "p", "displayName": "Hot"}
    held = holding(Cold="projects/p/alertPolicies/1", Hot="projects/p/alertPolicies/2")

    assert find_id({"type": kind, "inputs": inputs}, held) == "projects/p/alertPolicies/2"
    assert find_id({"type": kind, "inputs": inputs | {"project": "q"}}, held) is None


@pytest.mark.parametrize(
    ("kind", "inputs", "held"),
    [
        ("kubernetes:core/v1:Secret", {"metadata": {"name": "a", "namespace": "n"}}, ("Secret", "n/a")),
        ("kubernetes:core/v1:Namespace", {"metadata": {"name": "n"}}, ("Namespace", "n")),
        ("kubernetes:helm.sh/v3:Release", {"name": "kueue", "namespace": "n"}, ("Release", "n/kueue")),
    ],
)
def test_objects_are_found_in_the_clusters(kind: str, inputs: dict[str, Any], held: tuple[str, str]) -> None:
    assert find_id({"type": kind, "inputs": inputs}, Holdings({}, frozenset({("a", *held)})), "a") == held[1]
    assert find_id({"type": kind, "inputs": inputs}, Holdings({}, frozenset({("b", *held)})), "a") is None
    assert find_id({"type": kind, "inputs": inputs}, NOTHING) is None


def test_the_cluster_of_an_object_is_its_providers() -> None:
    provider = {"urn": "u", "type": "pulumi:providers:kubernetes", "inputs": {"clusterIdentifier": "a"}}

    assert clusters_of([provider, {"urn": "v", "type": "pulumi:providers:gcp"}]) == {"u": "a"}
    secret = {"urn": "s", "type": "kubernetes:core/v1:Secret", "custom": True, "provider": "u::0f1e"}
    operation = {"type": "creating", "resource": {**secret, "inputs": {"metadata": {"name": "n", "namespace": "m"}}}}
    held = Holdings({}, frozenset({("a", "Secret", "m/n")}))
    assert [each.id for each in find_pending_creates([operation], held, {"u": "a"})] == ["m/n"]
    assert [each.id for each in find_pending_creates([operation], held, {"u": "b"})] == [None]


def test_only_creates_are_taken_from_what_was_under_way() -> None:
    pool = {"urn": "u::p::t::pool", "type": "gcp:container/nodePool:NodePool", "inputs": POOL, "provider": "g::1f"}
    custom = {**pool, "custom": True}

    operations = [("updating", custom), ("creating", {**pool, "urn": "u::p::t::component"}), ("creating", custom)]
    found = find_pending_creates([{"type": kind, "resource": each} for kind, each in operations], NOTHING, {})

    assert [(each.name, each.id, each.provider) for each in found] == [("pool", None, "g")]


def test_every_type_of_the_stacks_can_be_found_or_is_known_to_be_an_addition() -> None:
    workspace = read_workspace(ORGANISATION)
    plans = plan_stacks(workspace, plan_order(workspace, workspace.stacks))
    types = {resource.type for _, plan in plans for resource in plan.resources if resource.type.startswith("gcp:")}

    assert types
    assert {each for each in types if not _found_again(REGISTER.get(each))} == set()


def _found_again(row: ResourceType | None) -> bool:
    """Whether a create of a type that was cut off is found, or changes nothing when it is made again."""
    return row is not None and bool(row.import_id or row.listed_under or row.adds)


def test_a_sandbox_that_was_never_used_holds_nothing(tmp_path: Any) -> None:
    assert holdings(SandboxFolder(ORGANISATION, tmp_path)) == NOTHING
