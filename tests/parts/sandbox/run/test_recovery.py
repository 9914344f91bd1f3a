"""Creates of a killed or failed run that took place, their ids, and faults that make them fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pulumi.automation.events import EngineEvent

from tests.support.places import ORGANISATION
from tests.support.plans import planned_stacks
from training_platform.cli.main import app
from training_platform.config.workspace import read_workspace
from training_platform.parts.sandbox.run.faults import FaultControl, fault_lines, injected
from training_platform.parts.sandbox.run.folder import CannotRun, SandboxFolder
from training_platform.parts.sandbox.run.recovery import (
    HalfCreated,
    Holdings,
    clusters_of,
    find_half_created,
    find_id,
    find_pending_creates,
    holdings,
    lost_creates,
)
from training_platform.parts.sandbox.run.reports import Timeline
from training_platform.parts.sandbox.run.servers import Servers, announced, running, serving
from training_platform.parts.sandbox.run.session import read_stacks
from training_platform.resources.resource_types import RESOURCE_TYPES, ResourceType
from training_platform.resources.stack_plan import plannable

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


@pytest.mark.parametrize(
    ("kind", "inputs", "folder"),
    [
        ("gcp:monitoring/alertPolicy:AlertPolicy", {"displayName": "Hot"}, "alertPolicies"),
        ("gcp:monitoring/dashboard:Dashboard", {"dashboardJson": '{"displayName": "Hot"}'}, "dashboards"),
    ],
)
def test_what_google_numbers_is_found_by_the_name_that_people_see(
    kind: str, inputs: dict[str, str], folder: str
) -> None:
    inputs = {"project": "p", **inputs}
    held = holding(Cold=f"projects/p/{folder}/1", Hot=f"projects/p/{folder}/2")

    assert find_id({"type": kind, "inputs": inputs}, held) == f"projects/p/{folder}/2"
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
    assert [create.id for create in find_pending_creates([operation], held, {"u": "a"})] == ["m/n"]
    assert [create.id for create in find_pending_creates([operation], held, {"u": "b"})] == [None]


def test_only_creates_are_taken_from_what_was_under_way() -> None:
    pool = {"urn": "u::p::t::pool", "type": "gcp:container/nodePool:NodePool", "inputs": POOL, "provider": "g::1f"}
    custom = {**pool, "custom": True}

    operations = [("updating", custom), ("creating", {**pool, "urn": "u::p::t::component"}), ("creating", custom)]
    pending = find_pending_creates([{"type": kind, "resource": resource} for kind, resource in operations], NOTHING, {})

    assert [(create.urn, create.id, create.provider) for create in pending] == [("u::p::t::pool", None, "g")]


def test_one_create_of_a_resource_counts_and_rather_the_one_that_succeeded() -> None:
    pool = {"urn": "u::p::t::pool", "type": "gcp:container/nodePool:NodePool", "custom": True, "provider": "g::1f"}
    path = "projects/p/locations/us-central1/clusters/c/nodePools/a100-0f1e2d"
    names = ("a100-1111111", "a100-0f1e2d", "a100-2222222")
    operations = [{"type": "creating", "resource": {**pool, "inputs": {**POOL, "name": name}}} for name in names]

    assert [create.id for create in find_pending_creates(operations, holding(path), {})] == [path]
    assert [create.id for create in find_pending_creates(operations, NOTHING, {})] == [None]


def test_every_type_of_the_stacks_can_be_found_or_is_known_to_be_an_addition() -> None:
    workspace = read_workspace(ORGANISATION)
    plans = planned_stacks(workspace, plannable(workspace, workspace.stacks))
    types = {resource.type for _, plan in plans for resource in plan.resources if resource.type.startswith("gcp:")}

    assert types
    assert {resource_type for resource_type in types if not _found_again(RESOURCE_TYPES.get(resource_type))} == set()


def _found_again(row: ResourceType | None) -> bool:
    """Whether an interrupted create of a type is found again, or is harmless when repeated."""
    return row is not None and bool(row.import_id or row.listed_under or row.adds)


def test_a_sandbox_that_was_never_used_holds_nothing(tmp_path: Any) -> None:
    assert holdings(SandboxFolder(ORGANISATION, tmp_path)) == NOTHING


POOL_URN = "urn:pulumi:small::training-platform::gcp:container/nodePool:NodePool::main-system-pool"
CLUSTER = "urn:pulumi:small::training-platform::gcp:container/cluster:Cluster::main-cluster"
HOMES = "urn:pulumi:small::training-platform::gcp:filestore/instance:Instance::homes"
POOL_INPUTS = {"project": "p", "location": "us-central1", "cluster": "main", "name": "system"}
POOL_ID = "projects/p/locations/us-central1/clusters/main/nodePools/system"
HOMES_ID = "projects/p/locations/us-central1-a/instances/homes"

Command = Callable[..., tuple[int, str]]


@pytest.fixture
def folder(tmp_path: Path) -> SandboxFolder:
    return SandboxFolder(ORGANISATION, tmp_path / "sandbox")


@pytest.fixture
def served(folder: SandboxFolder) -> Iterator[Servers]:
    with serving(folder, read_stacks(ORGANISATION, ()), durations={}) as servers, announced(folder, servers):
        yield servers


@pytest.fixture
def command(folder: SandboxFolder) -> Command:
    def run(*args: str) -> tuple[int, str]:
        place = ["--root", str(ORGANISATION), "--workspace", str(folder.path)]
        result = CliRunner().invoke(app, ["sandbox", *args, *place])
        return result.exit_code, result.output

    return run


@pytest.mark.parametrize("args", [("up", "dev"), ("serve",)])
def test_a_fault_that_does_not_exist_ends_with_2_before_anything_runs(command: Command, args: tuple[str, ...]) -> None:
    code, output = command(*args, "--fault", "failure=container.nodePool")

    assert code == 2
    assert "--fault: 'failure=container.nodePool': 'container.nodePool' is not a kind of resource." in output


def test_a_fault_lasts_as_long_as_the_run(served: Servers) -> None:
    faults = FaultControl(served.cloud)
    faults.add("stockout=e2-standard-8")
    with injected(served.cloud, ["failure=file.instances"]):
        assert [fault["fault"] for fault in faults.listed()] == ["stockout=e2-standard-8", "failure=file.instances"]

    assert [fault["fault"] for fault in faults.listed()] == ["stockout=e2-standard-8"]


def test_what_a_fault_hit_in_this_run_is_told_and_what_it_hit_before_is_not() -> None:
    events = [{"what": f"create {index}"} for index in range(7)]
    fault: dict[str, Any] = {"fault": "stockout=a", "fired": 7, "events": events}

    assert list(fault_lines([fault], {"stockout=a": 2})) == [
        "Fault stockout=a hit 5: create 2, create 3, create 4 and 2 more."
    ]
    assert list(fault_lines([fault], {"stockout=a": 7})) == ["Faults that hit nothing: stockout=a."]


@pytest.mark.parametrize(
    ("options", "message"),
    [({"durations": {"*": 1.0}}, "--duration cannot be"), ({"crds": (Path("crds"),)}, "--crds cannot be")],
)
def test_what_a_server_that_runs_could_not_be_told_is_refused(
    folder: SandboxFolder, served: Servers, options: dict[str, Any], message: str
) -> None:
    settings = {"durations": {}, "crds": (), **options}

    with (
        pytest.raises(CannotRun, match=message),
        running(folder, read_stacks(ORGANISATION, ()), **settings),
    ):
        pass


def holding_status(**status: str) -> Holdings:
    pool = {"status": status.get("pool", "RUNNING")}
    return Holdings({"pool": pool, POOL_ID: pool, HOMES_ID: {"state": "ERROR"}}, frozenset())


def test_a_pool_in_error_and_a_cluster_whose_create_failed_are_created_again() -> None:
    pool = {"urn": POOL_URN, "type": "gcp:container/nodePool:NodePool", "id": "pool", "initErrors": ["failed"]}
    cluster = {"urn": CLUSTER, "type": "gcp:container/cluster:Cluster", "id": "cluster", "initErrors": ["failed"]}

    assert find_half_created([pool], [], holding_status()) == []
    assert find_half_created([pool], [], holding_status(pool="ERROR")) == [HalfCreated(POOL_URN, "pool", in_state=True)]
    assert find_half_created([pool | {"initErrors": None}], [], holding_status(pool="ERROR")) == [
        HalfCreated(POOL_URN, "pool", in_state=True)
    ]
    begun = {"type": "creating", "resource": {**pool, "custom": True, "inputs": POOL_INPUTS}}
    assert find_half_created([pool | {"id": POOL_ID}], [begun], holding_status(pool="ERROR")) == [
        HalfCreated(POOL_URN, POOL_ID, in_state=True)
    ]
    assert find_half_created([cluster], [], holding_status()) == [HalfCreated(CLUSTER, "cluster", in_state=True)]
    assert find_half_created([cluster | {"initErrors": []}], [], holding_status()) == []


def test_an_instance_in_error_that_pulumi_forgot_is_found_by_its_inputs_unless_another_stack_has_it() -> None:
    inputs = {"project": "p", "location": "us-central1-a", "name": "homes"}
    resource = {"urn": HOMES, "type": "gcp:filestore/instance:Instance", "inputs": inputs, "custom": True}
    operations = [{"type": "creating", "resource": resource}]

    assert find_half_created([], operations, holding_status()) == [HalfCreated(HOMES, HOMES_ID, in_state=False)]
    assert find_half_created([], operations, holding_status().without([{"id": HOMES_ID}])) == []


def test_a_create_that_failed_is_kept_with_its_inputs_as_a_pending_one_is() -> None:
    timeline = Timeline()
    for op, urn in (("create", HOMES), ("update", POOL_URN)):
        new = {"type": "t", "urn": urn, "id": "", "parent": "up", "provider": "gcp::1", "custom": True}
        about = {
            "op": op,
            "urn": urn,
            "type": "gcp:x:X",
            "provider": "gcp::1",
            "new": {**new, "inputs": {"name": "homes"}},
        }
        for kind in ("resourcePreEvent", "resOpFailedEvent"):
            timeline.take(EngineEvent.from_json({kind: {"metadata": about, "status": 1, "steps": 1}}))

    assert timeline.failed_creates == [
        {
            "type": "creating",
            "resource": {
                "urn": HOMES, "type": "gcp:x:X", "custom": True, "inputs": {"name": "homes"}, "parent": "up",
                "provider": "gcp::1",
            },
        }
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("created", "lost"), [("a100-0f1e2d3", ["a100-0f1e2d3"]), ("a100-0f1e2d", []), ("a100-b-0f1e2d3", [])]
)
def test_a_lost_create_is_found_under_another_random_suffix(created: str, lost: list[str]) -> None:
    path = f"projects/p/locations/us-central1/clusters/c/nodePools/{created}"
    inputs = {**POOL, "name": "a100-1111111"}
    resource = {"type": "gcp:container/nodePool:NodePool", "custom": True, "inputs": inputs}

    creates = lost_creates([{"resource": resource}], holding(path))

    assert [row["resource"]["inputs"]["name"] for row in creates] == lost
