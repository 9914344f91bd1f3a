"""Components in a Pulumi program of somebody's own, under Pulumi's own mocks, as docs/components.md has them."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import re
import runpy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pulumi
import pulumi_gcp as gcp
import pulumi_kubernetes as kubernetes
import pytest

from tests.support.places import ROOT
from tests.support.stack_files import RANGES
from training_platform.config.component_arguments import COMPONENTS
from training_platform.modules import GkeCluster, Place, TeamPlace, components
from training_platform.resources.spelling import camel_case

PROGRAM = ROOT / "examples" / "components" / "__main__.py"
CLUSTER = "gcp:container/cluster:Cluster"
NODE_POOL = "gcp:container/nodePool:NodePool"


@dataclass
class PlainMocks(pulumi.runtime.Mocks):
    """The simplest mocks that people write: a resource's outputs are its inputs, but for what ``outputs`` adds."""

    outputs: dict[str, dict[str, Any]] = field(default_factory=dict)  # by type
    inputs: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)

    def new_resource(self, args: pulumi.runtime.MockResourceArgs) -> tuple[str | None, dict[Any, Any]]:
        """Keep the inputs, and answer with them."""
        self.inputs[args.typ, args.name] = args.inputs
        return f"{args.name}-id", {**args.inputs, **self.outputs.get(args.typ, {})}

    def call(self, args: pulumi.runtime.MockCallArgs) -> tuple[dict[Any, Any], list[tuple[str, str]] | None]:
        """Refuse a call, since no component reads anything."""
        raise AssertionError(f"{args.token} was called")


class Monitor(pulumi.runtime.mocks.MockMonitor):
    """Mocks see no options: this keeps the requests as they are sent."""

    def __init__(self, mocks: PlainMocks) -> None:
        super().__init__(mocks)
        self.requests: dict[str, Any] = {}  # by URN

    def RegisterResource(self, request: Any) -> Any:  # noqa: N802 # as the engine's interface calls it
        """Keep a request."""
        response = super().RegisterResource(request)  # type: ignore[no-untyped-call]
        self.requests[response.urn] = request
        return response


@dataclass
class Run:
    """What a program registered and exported under mocks."""

    mocks: PlainMocks
    requests: dict[str, Any]
    exports: dict[str, Any]

    def inputs(self, resource_type: str, name: str) -> dict[str, Any]:
        """Return the inputs of a resource."""
        return self.mocks.inputs[resource_type, name]

    def component(self, name: str) -> tuple[str, Any]:
        """Return the URN and the request of the only component of the platform with a name."""
        (component_request,) = [
            (urn, request)
            for urn, request in self.requests.items()
            if request.name == name and request.type.startswith("training-platform:")
        ]
        return component_request

    def below(self, urn: str) -> Iterator[Any]:
        """Yield the requests of everything below a resource."""
        for child, request in self.requests.items():
            if request.parent == urn:
                yield request
                yield from self.below(child)


@pytest.fixture(scope="module", autouse=True)
def loop() -> None:
    """Set the event loop that Pulumi's mocks take for granted: a test before this file may have left none.

    It is not closed, as Python's own default loop is not, since mocks leave tasks in it.
    """
    asyncio.set_event_loop(asyncio.new_event_loop())


def run(program: Callable[[], Any], outputs: dict[str, dict[str, Any]] | None = None) -> Run:
    """Run a program under mocks, in a context of its own, and wait for all that it registers."""
    mocks = PlainMocks(outputs or {})
    monitor = Monitor(mocks)
    exports = dict[str, Any]()

    @pulumi.runtime.test  # type: ignore[untyped-decorator]
    def awaited() -> pulumi.Output[Any]:
        program()
        stack: Any = pulumi.runtime.get_root_resource()
        return pulumi.Output.from_input(stack.outputs).apply(exports.update)

    def under_mocks() -> None:
        pulumi.runtime.set_mocks(mocks, monitor=monitor)
        awaited()

    contextvars.copy_context().run(under_mocks)
    return Run(mocks, monitor.requests, exports)


def page_program() -> None:
    """Run the program to which the page leads."""
    runpy.run_path(str(PROGRAM), run_name="__main__")


def test_the_program_of_the_page_runs_under_mocks_that_return_the_inputs() -> None:
    ran = run(page_program)

    assert ran.exports == {
        "bucket": "example-train-dev-dev-vision-checkpoints",
        "endpoint": "",
        "homes": "",
        "machines": "vertex-tuning-persistent-resource-id",
        "pools": ["system", "h100"],
        "queues": ["vision", "default"],
    }
    pool = ran.inputs(NODE_POOL, "main-h100-pool")
    assert pool["cluster"] == ran.inputs(CLUSTER, "main-cluster")["name"] == "dev-main"
    assert pool["nodeConfig"]["resourceLabels"] == {
        "cost-center": "research",
        "environment": "dev",
        "managed-by": "training-platform",
    }


def test_software_waits_for_what_the_caller_names_and_goes_into_the_cluster() -> None:
    ran = run(page_program)

    _, kueue = ran.component("kueue")
    dependencies = {ran.requests[urn].name for urn in kueue.dependencies}
    assert {"jobset-release", "main-h100-pool", "main-system-pool"} <= dependencies
    objects = [request for request in ran.requests.values() if request.type.startswith("kubernetes:")]
    assert {request.provider.rpartition("::")[0].rpartition("::")[2] for request in objects} == {"main-kubernetes"}


def test_nodes_start_once_their_account_has_its_roles() -> None:
    ran = run(page_program)

    (cluster,) = [request for request in ran.requests.values() if request.type == CLUSTER]
    roles = {"main-nodes-artifactregistry.reader", "main-nodes-container.defaultNodeServiceAccount"}
    assert roles <= {ran.requests[urn].name for urn in cluster.dependencies}


def test_a_queue_holds_the_share_and_the_bucket_the_grants_of_jobs_and_members() -> None:
    ran = run(page_program)

    queue = ran.inputs("kubernetes:kueue.x-k8s.io/v1beta2:ClusterQueue", "vision-queues-cluster-queue")
    assert queue["metadata"]["name"] == "vision"
    (group,) = queue["spec"]["resourceGroups"]
    assert [flavor["name"] for flavor in group["flavors"]] == ["h100"]
    grants = {
        (inputs["role"].removeprefix("roles/storage."), inputs["member"].partition(":")[0])
        for (kind, _), inputs in ran.mocks.inputs.items()
        if kind == "gcp:storage/bucketIAMMember:BucketIAMMember"
    }
    jobs = "serviceAccount"
    assert grants == {
        ("objectUser", jobs), ("bucketViewer", jobs), ("objectViewer", "group"), ("objectCreator", "group"),
    }  # fmt: skip


@pytest.mark.parametrize("name", COMPONENTS)
def test_the_program_of_the_page_constructs_every_component(name: str) -> None:
    program = PROGRAM.read_text(encoding="utf-8")

    assert name in components.__all__
    assert name in CONSTRUCT
    assert re.search(rf"^(\w+ = )?{name}\(", program, re.MULTILINE)


# Unprotected, so that a protection is the caller's.
PLACE = Place(project="example-train-dev", environment="dev", deletion_protection=False)
TEAM = TeamPlace(project="example-train-dev", environment="dev", team="vision", deletion_protection=False)
POOLS: Any = {
    "location": "us-central1",
    "node_pools": {"h100": {"machine_type": "a3-highgpu-8g", "zone": "us-central1-a", "max_nodes": 4}},
}
NOTEBOOKS: Any = {"filestore": "homes", "oauth_client_id": "id", "allowed_domain": "example.com"}
VALUE = "told-by-a-deployment"
CONSTRUCT: dict[str, Callable[[pulumi.Output[str]], dict[str, Any]]] = {
    "Network": lambda _: {"place": PLACE, "regions": ["us-central1"], "services_range": "10.90.0.0/20"},
    "GkeCluster": lambda value: {"place": PLACE, **POOLS, "subnet": RANGES, "network": value},
    "NodePools": lambda value: {"place": PLACE, **POOLS, "cluster": value, "service_account": value},
    "FilestoreInstance": lambda value: {
        "place": PLACE, "location": "us-central1-a", "capacity_gib": 1024, "network": value,
    },
    "JobSet": lambda _: {},
    "Kueue": lambda _: {"place": PLACE, **POOLS, "cluster": "main"},
    "Prometheus": lambda _: {"place": PLACE, "controller": "jobset"},
    "ResourceFlavors": lambda _: {"place": PLACE, **POOLS, "cluster": "main"},
    "TeamNamespace": lambda value: {
        "place": TEAM, "members": ["user:ada@example.com"], "google_service_account": value,
    },
    "TeamQueues": lambda value: {
        "place": TEAM, **POOLS, "cluster": "main", "namespace": value, "shares": {"h100": {"nominal_quota": 8}},
    },
    "TeamBucket": lambda value: {"place": TEAM, "location": "us-central1", "jobs": value},
    "JupyterHub": lambda value: {
        "place": PLACE, **POOLS, "cluster": "main", "notebooks": NOTEBOOKS, "home_claim": value,
    },
    "PersistentResource": lambda value: {
        "place": TEAM, "region": "us-central1", "machine_type": "a2-highgpu-8g", "network_attachment": value,
    },
}  # fmt: skip
"""The arguments of each component, with an output wherever one is taken."""
REACHED: dict[str, set[str]] = {
    "GkeCluster": {"it-cluster", "it-subnet", "it-webhooks"},
    "NodePools": {"it-h100-pool", "it-system-pool"},
    "FilestoreInstance": {"filestore-it-instance"},
    "JupyterHub": {"it-release"},
    "TeamNamespace": {"it-service-account"},
    "TeamQueues": {"it-local-queue-default", "it-local-queue-vision"},
    "TeamBucket": {"it-jobs", "it-jobs-viewer"},
    "PersistentResource": {"vertex-it-persistent-resource"},
}
"""The resources of a component that an output reaches; the others have plain arguments only."""


def constructed(component: str, value: Any, opts: pulumi.ResourceOptions | None = None) -> Any:
    return getattr(components, component)("it", CONSTRUCT[component](value), opts)


@pytest.mark.parametrize("component", CONSTRUCT)
def test_an_output_is_passed_on(component: str) -> None:
    ran = run(lambda: constructed(component, pulumi.Output.from_input(VALUE)))

    with_value = {name for (_, name), inputs in ran.mocks.inputs.items() if VALUE in str(inputs)}
    assert with_value == REACHED.get(component, set())


@pytest.mark.parametrize("component", CONSTRUCT)
def test_a_component_has_and_registers_each_output_that_it_declares(component: str) -> None:
    created: list[Any] = []
    registered: list[tuple[Any, dict[str, Any]]] = []

    def program() -> None:
        created.append(constructed(component, VALUE))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            pulumi.ComponentResource, "register_outputs", lambda self, outputs: registered.append((self, outputs))
        )
        run(program)

    declared = inspect.get_annotations(getattr(components, component))
    (outputs,) = [outputs for registering, outputs in registered if registering is created[0]]
    assert outputs.keys() == {camel_case(name) for name in declared}
    assert all(isinstance(getattr(created[0], name), pulumi.Output) for name in declared)
    assert created[0].pulumi_resource_type == f"training-platform:index:{component}"


@pytest.mark.parametrize("component", CONSTRUCT)
def test_the_callers_options_reach_all_resources_of_a_component(component: str) -> None:
    def program() -> None:
        outer = pulumi.ComponentResource("example:index:Outer", "outer")
        first = gcp.projects.Service("first", service="container.googleapis.com")
        kubeconfig = pulumi.Output.from_input("{}")
        providers = [
            gcp.Provider("theirs", project="example"), kubernetes.Provider("theirs", kubeconfig=kubeconfig)
        ]  # fmt: skip
        opts = pulumi.ResourceOptions(parent=outer, providers=providers, protect=True, depends_on=[first])
        constructed(component, pulumi.Output.from_input(VALUE), opts)

    ran = run(program)

    urn, request = ran.component("it")
    assert ran.requests[request.parent].name == "outer"
    assert [ran.requests[urn].name for urn in request.dependencies] == ["first"]
    resources = [child for child in ran.below(urn) if child.custom]
    assert resources
    assert [child.name for child in resources if not child.protect] == []
    of_provider = [child for child in resources if not child.type.startswith("pulumi:providers:")]
    assert {child.provider.split("::")[3] for child in of_provider} == {"theirs"}


def test_plain_arguments_reach_their_resources() -> None:
    def program() -> None:
        kueue: Any = {"place": PLACE, **POOLS, "cluster": "main", "fair_sharing": False}
        components.Kueue("kueue", kueue)
        components.TeamNamespace(
            "vision",
            {
                "place": TEAM,
                "members": [],
                "google_service_account": "jobs",
                "quota": {"pods": "8"},
                "egress": {"policyTypes": ["Egress"]},
            },
        )

    ran = run(program)

    (config,) = ran.inputs("kubernetes:helm.sh/v3:Release", "kueue-release")["values"]["managerConfig"].values()
    assert "fairSharing" not in config
    assert ran.inputs("kubernetes:core/v1:ResourceQuota", "vision-resource-quota")["spec"]["hard"] == {"pods": "8"}
    egress = ran.inputs("kubernetes:networking.k8s.io/v1:NetworkPolicy", "vision-egress-policy")
    assert egress["spec"] == {"policyTypes": ["Egress"]}


def test_an_existing_cluster_is_read_and_its_endpoint_becomes_the_providers() -> None:
    def program() -> None:
        cluster = GkeCluster("main", {"place": PLACE, "location": "us-central1", "existing": "shared"})
        pulumi.export("name", cluster.cluster_name)
        pulumi.export("account", cluster.service_account)

    endpoints = {"controlPlaneEndpointsConfig": {"dnsEndpointConfig": {"endpoint": "gke-1.example.goog"}}}
    ran = run(program, {CLUSTER: endpoints})

    assert ran.exports == {"name": "shared", "account": None}
    provider = ran.inputs("pulumi:providers:kubernetes", "main-kubernetes")
    assert provider["clusterIdentifier"] == "projects/example-train-dev/locations/us-central1/clusters/shared"
    assert "https://gke-1.example.goog" in provider["kubeconfig"]


def test_an_existing_cluster_without_an_endpoint_by_name_is_an_error() -> None:
    with pytest.raises(ValueError, match="clusters/shared has no DNS-based control-plane endpoint"):
        run(lambda: GkeCluster("main", {"place": PLACE, "location": "us-central1", "existing": "shared"}))


def test_addresses_for_services_are_known_once_the_services_joined() -> None:
    def program() -> None:
        network = components.Network(
            "it", {"place": PLACE, "regions": [], "services_range": "10.90.0.0/20", "google_apis": "restricted"}
        )
        components.FilestoreInstance(
            "homes",
            {
                "place": PLACE,
                "location": "us-central1-a",
                "capacity_gib": 1024,
                "connection": "private-service-access",
                "network": network.network_id,
                "services_range": network.services_range,
            },
        )

    ran = run(program)

    (instance,) = [request for request in ran.requests.values() if request.type == "gcp:filestore/instance:Instance"]
    assert "it-services" in {ran.requests[urn].name for urn in instance.dependencies}
    (joined,) = ran.inputs(instance.type, instance.name)["networks"]
    assert joined["reservedIpRange"] == "dev-services"
    assert ran.inputs("gcp:dns/recordSet:RecordSet", "it-googleapis-com-addresses")["rrdatas"][0] == "199.36.153.4"
