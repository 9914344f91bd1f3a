"""Components in a Pulumi program of somebody's own, under Pulumi's own mocks, as docs/components.md has them."""

from __future__ import annotations

import asyncio
import contextvars
import re
import runpy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pulumi
import pulumi_gcp as gcp
import pulumi_kubernetes as kubernetes
import pytest

from tests.places import ROOT
from training_platform.config.model.cluster import ClusterSpec, SubnetSpec
from training_platform.config.model.node_pool import NodePoolSpec
from training_platform.config.model.storage import FilestoreSpec
from training_platform.config.model.team import PersistentResourceSpec
from training_platform.config.model.workloads import Notebooks
from training_platform.modules import components
from training_platform.modules.components import (
    ControllerMonitoring,
    FilestoreInstance,
    GkeCluster,
    JobSet,
    JupyterHub,
    Kueue,
    Network,
    NodePools,
    PersistentResource,
    PlatformComponent,
    TeamNamespace,
)
from training_platform.resources.plan import Resource, once, text
from training_platform.resources.scope import program_scope

PAGE = ROOT / "docs" / "components.md"
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
        "endpoint": "",
        "homes": "",
        "namespace": "vision",
        "machines": "vertex-tuning-persistent-resource-id",
    }
    pool = ran.inputs(NODE_POOL, "main-h100-pool")
    assert pool["cluster"] == ran.inputs(CLUSTER, "main-cluster")["name"] == "dev-main"
    assert pool["nodeConfig"]["resourceLabels"] == {
        "cost-center": "research",
        "environment": "dev",
        "managed-by": "training-platform",
    }


def test_mocks_give_the_addresses_that_google_cloud_does() -> None:
    ran = run(
        page_program,
        {
            "gcp:filestore/instance:Instance": {"networks": [{"ipAddresses": ["10.0.0.2"]}]},
            CLUSTER: {"controlPlaneEndpointsConfig": {"dnsEndpointConfig": {"endpoint": "gke-1.example.goog"}}},
        },
    )

    assert (ran.exports["endpoint"], ran.exports["homes"]) == ("gke-1.example.goog", "10.0.0.2")
    assert "https://gke-1.example.goog" in ran.inputs("pulumi:providers:kubernetes", "main-kubernetes")["kubeconfig"]
    volume = ran.inputs("kubernetes:core/v1:PersistentVolume", "homes")
    assert volume["spec"]["nfs"]["server"] == "10.0.0.2"


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


def test_the_page_constructs_every_component_and_names_it() -> None:
    names = {name for name, value in vars(components).items() if is_component(value)}
    page = PAGE.read_text(encoding="utf-8")
    program = PROGRAM.read_text(encoding="utf-8")

    assert len(names) == len(CONSTRUCT) == 10
    assert [name for name in names if f"`{name}`" not in page] == []
    assert [name for name in names if not re.search(rf"^(\w+ = )?{name}\(", program, re.MULTILINE)] == []


def is_component(value: Any) -> bool:
    """Whether a name of the module is a component."""
    return isinstance(value, type) and issubclass(value, PlatformComponent) and value is not PlatformComponent


# Unprotected, so that a protection is the caller's.
SCOPE = program_scope("example-train-dev", "dev", deletion_protection=False)
SPEC = ClusterSpec(
    location="us-central1",
    subnet=SubnetSpec(nodes="10.10.0.0/20", pods="10.64.0.0/16", services="10.10.16.0/20"),
    node_pools={"h100": NodePoolSpec(machine_type="a3-highgpu-8g", zone="us-central1-a", max_nodes=4)},
)
NOTEBOOKS = Notebooks(filestore="homes", oauth_client_id="id", allowed_domain="example.com")
VALUE = "told-by-a-deployment"
Construct = Callable[[pulumi.ResourceOptions, pulumi.Output[str]], PlatformComponent]
CONSTRUCT: dict[str, Construct] = {
    "Network": lambda opts, _: Network("it", opts, scope=SCOPE, regions=["us-central1"], services_range="10.90.0.0/20"),
    "GkeCluster": lambda opts, value: GkeCluster("it", opts, scope=SCOPE, spec=SPEC, network=value),
    "NodePools": lambda opts, value: NodePools(
        "it", opts, scope=SCOPE, spec=SPEC, cluster=value, service_account=value
    ),
    "FilestoreInstance": lambda opts, value: FilestoreInstance(
        "it", opts, scope=SCOPE, spec=FilestoreSpec(location="us-central1-a", capacity_gib=1024), network=value
    ),
    "JobSet": lambda opts, _: JobSet("it", opts),
    "Kueue": lambda opts, _: Kueue("it", opts, scope=SCOPE, cluster="main", spec=SPEC),
    "ControllerMonitoring": lambda opts, _: ControllerMonitoring("it", opts, scope=SCOPE, controller="jobset"),
    "JupyterHub": lambda opts, value: JupyterHub(
        "it", opts, scope=SCOPE, cluster="main", spec=SPEC, notebooks=NOTEBOOKS, home_claim=value
    ),
    "TeamNamespace": lambda opts, value: TeamNamespace(
        "it", opts, scope=SCOPE, team="vision", members=["user:ada@example.com"], google_service_account=value
    ),
    "PersistentResource": lambda opts, value: PersistentResource(
        "it",
        opts,
        scope=SCOPE,
        spec=PersistentResourceSpec(region="us-central1", machine_type="a2-highgpu-8g", replicas=1),
        network_attachment=value,
    ),
}  # fmt: skip
REACHED: dict[str, set[str]] = {
    "GkeCluster": {"it-cluster", "it-subnet", "it-webhooks"},
    "NodePools": {"it-h100-pool", "it-system-pool"},
    "FilestoreInstance": {"filestore-it-instance"},
    "JupyterHub": {"it-release"},
    "TeamNamespace": {"it-service-account"},
    "PersistentResource": {"vertex-it-persistent-resource"},
}
"""The resources of a component that an output reaches; the others have plain arguments only."""


@pytest.mark.parametrize("component", CONSTRUCT)
def test_an_output_is_passed_on(component: str) -> None:
    ran = run(lambda: CONSTRUCT[component](pulumi.ResourceOptions(), pulumi.Output.from_input(VALUE)))

    with_value = {name for (_, name), inputs in ran.mocks.inputs.items() if VALUE in str(inputs)}
    assert with_value == REACHED.get(component, set())


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
        CONSTRUCT[component](opts, pulumi.Output.from_input(VALUE))

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
        Kueue("kueue", scope=SCOPE, cluster="main", spec=SPEC, fair_sharing=False)
        ControllerMonitoring("metrics", scope=SCOPE, controller="jobset")
        TeamNamespace(
            "vision", scope=SCOPE, team="vision", members=[], google_service_account="jobs", quota={"pods": "8"},
            egress={"policyTypes": ["Egress"]},
        )  # fmt: skip

    ran = run(program)

    (config,) = ran.inputs("kubernetes:helm.sh/v3:Release", "kueue-release")["values"]["managerConfig"].values()
    assert "fairSharing" not in config
    scrape = ran.inputs("kubernetes:monitoring.googleapis.com/v1:ClusterPodMonitoring", "metrics-scrape")
    assert scrape["metadata"]["name"] == "jobset"
    assert ran.inputs("kubernetes:core/v1:ResourceQuota", "vision-resource-quota")["spec"]["hard"] == {"pods": "8"}
    egress = ran.inputs("kubernetes:networking.k8s.io/v1:NetworkPolicy", "vision-egress-policy")
    assert egress["spec"] == {"policyTypes": ["Egress"]}


def test_a_value_that_is_made_of_outputs_is_made_once_they_are_known() -> None:
    class Account(PlatformComponent):
        """A component whose resource has a text with an output, and a value that waits for one."""

        def __init__(self) -> None:
            super().__init__("training-platform:example:Account", "it", None)
            value = pulumi.Output.from_input(VALUE)
            inputs = {"account_id": text("id-{}", value), "description": once("after", value), "project": None}
            self.plan.add(Resource(type="gcp:serviceaccount/account:Account", name="it-account", inputs=inputs))
            self._register()

    ran = run(Account)

    assert ran.inputs("gcp:serviceaccount/account:Account", "it-account") == {
        "accountId": f"id-{VALUE}",
        "description": "after",
    }


def test_an_existing_cluster_is_read_and_its_endpoint_becomes_the_providers() -> None:
    def program() -> None:
        theirs = ClusterSpec(location="us-central1", existing="shared")
        cluster = GkeCluster("main", scope=SCOPE, spec=theirs)
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
        run(lambda: GkeCluster("main", scope=SCOPE, spec=ClusterSpec(location="us-central1", existing="shared")))


def test_a_new_cluster_without_a_network_is_an_error() -> None:
    with pytest.raises(TypeError, match="GkeCluster main needs a network"):
        run(lambda: GkeCluster("main", scope=SCOPE, spec=SPEC))


def test_addresses_for_services_are_known_once_the_services_joined() -> None:
    def program() -> None:
        network = Network("it", scope=SCOPE, regions=[], services_range="10.90.0.0/20", google_apis="restricted")
        spec = FilestoreSpec(location="us-central1-a", capacity_gib=1024, connection="private-service-access")
        FilestoreInstance(
            "homes", scope=SCOPE, spec=spec, network=network.network_id, services_range=network.services_range
        )

    ran = run(program)

    (instance,) = [request for request in ran.requests.values() if request.type == "gcp:filestore/instance:Instance"]
    assert "it-services" in {ran.requests[urn].name for urn in instance.dependencies}
    (joined,) = ran.inputs(instance.type, instance.name)["networks"]
    assert joined["reservedIpRange"] == "dev-services"
    assert ran.inputs("gcp:dns/recordSet:RecordSet", "it-googleapis-com-addresses")["rrdatas"][0] == "199.36.153.4"
