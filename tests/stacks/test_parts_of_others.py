"""Environments whose parts are left out or somebody else's: what is registered, counted and refused."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import yaml

from tests.stacks.every_field import ENVIRONMENT, TEAM, planned
from tests.support import stack_files
from tests.support.places import ROOT
from tests.support.plans import PlannedStack
from tests.support.stack_files import RANGES, cluster, shares, team, workspace_of
from training_platform.checks.cost import stack_cost
from training_platform.config.model.environment import Environment
from training_platform.config.workspace import Workspace
from training_platform.quota.demand import stack_demand
from training_platform.resources import resource_types
from training_platform.resources.project import HOST_ROLES
from training_platform.resources.resource_types import RESOURCE_TYPES
from training_platform.resources.stack_resource import StackResource

POOLS = {"h100": {"machine_type": "a3-highgpu-8g", "zone": "us-central1-a", "max_nodes": 4}}
OWN = cluster("us-central1", node_pools=POOLS)
NAMED: dict[str, Any] = {**OWN, "subnet": {**RANGES, "name": "train", "pods_range": "a", "services_range": "b"}}
OTHERS: dict[str, Any] = {"location": "us-central1", "existing": "shared", "node_pools": POOLS}
HOST = {"name": "shared-vpc", "project": "example-host"}
ATTACHMENTS = {"network_attachments": {"us-central1": "10.30.0.0/24"}}
OWN_HOST = {**HOST, "project": "example-train"}
WITH_SHARE = team("env", "team", shares=shares(h100=8))
NO_SHARES = {**WITH_SHARE, "shares": {}}
NETWORK = "gcp:compute/network:Network"
SUBNET = "gcp:compute/subnetwork:Subnetwork"
NAT = "gcp:compute/routerNat:RouterNat"
FIREWALL = "gcp:compute/firewall:Firewall"
CLUSTER = "gcp:container/cluster:Cluster"
POOL = "gcp:container/nodePool:NodePool"
MEMBER = "gcp:projects/iAMMember:IAMMember"
FILESTORE = "gcp:filestore/instance:Instance"
RELEASE = "kubernetes:helm.sh/v3:Release"
CLASS = "kubernetes:storage.k8s.io/v1:StorageClass"
FLAVOR, QUEUE = (f"kubernetes:kueue.x-k8s.io/v1beta2:{kind}" for kind in ("ResourceFlavor", "ClusterQueue"))
SCRAPE = "kubernetes:monitoring.googleapis.com/v1:ClusterPodMonitoring"


def environment(cluster: Mapping[str, Any] = OWN, **fields: Any) -> dict[str, Any]:
    return stack_files.environment({"main": copy.deepcopy(cluster)}, **fields)


def plan_of(cluster: Mapping[str, Any] = OWN, **fields: Any) -> PlannedStack:
    return planned(environment(cluster, **fields), NO_SHARES, "env")


def names(plan: PlannedStack, kind: str) -> set[str]:
    return {resource.name for resource in plan.of(kind)}


def workspace(section: Mapping[str, Any], team: Mapping[str, Any] = NO_SHARES) -> Workspace:
    return workspace_of({"env": {"environment": section}, "team": {"team": team}})


def refused(section: Mapping[str, Any], team: Mapping[str, Any] = NO_SHARES) -> dict[str, str]:
    """Return the findings about both files by path."""
    return {
        finding.path: str(finding) for stack in workspace(section, team).stacks.values() for finding in stack.findings
    }


def test_an_existing_network_is_joined_and_nothing_of_it_is_made() -> None:
    plan = plan_of(network={"name": "vpc"})

    assert not [name for name in names(plan, NETWORK) if "gpu" not in name]
    assert plan.of(NAT) == []
    assert plan.of("gcp:dns/managedZone:ManagedZone") == []
    assert plan.outputs["google_apis"] == "199.36.153.8/30"
    assert plan.one(CLUSTER).inputs["network"] == "projects/example-train/global/networks/vpc"
    assert plan.one(SUBNET, "main-subnet").inputs["network"] == "projects/example-train/global/networks/vpc"
    assert "main-webhooks" in names(plan, FIREWALL)


def test_a_named_subnet_is_taken_with_the_names_of_its_ranges() -> None:
    plan = plan_of(NAMED, network={"name": "vpc"})

    cluster = plan.one(CLUSTER).inputs
    assert "main-subnet" not in names(plan, SUBNET)
    assert cluster["subnetwork"] == "projects/example-train/regions/us-central1/subnetworks/train"
    assert cluster["ipAllocationPolicy"] == {"clusterSecondaryRangeName": "a", "servicesSecondaryRangeName": "b"}


def test_a_subnet_of_ones_own_has_ranges_of_the_names_that_are_said() -> None:
    plan = plan_of({**OWN, "subnet": {**RANGES, "pods_range": "a"}})

    ranges = plan.one(SUBNET, "main-subnet").inputs["secondaryIpRanges"]
    assert [row["rangeName"] for row in ranges] == ["a", "services"]


def test_a_shared_vpc_is_the_host_projects_with_its_subnets_and_firewall() -> None:
    plan = plan_of(NAMED, network=HOST)

    cluster = plan.one(CLUSTER).inputs
    assert cluster["project"] == "example-train"
    assert cluster["network"] == "projects/example-host/global/networks/shared-vpc"
    assert cluster["subnetwork"] == "projects/example-host/regions/us-central1/subnetworks/train"
    assert "main-webhooks" not in names(plan, FIREWALL)
    assert not [resource for resource in plan.resources if resource.inputs.get("project") == "example-host"]


def test_roles_in_the_host_project_are_granted_where_that_is_asked_for_and_clusters_wait_for_them() -> None:
    plan = plan_of(NAMED, network={**HOST, "grant_roles": True})

    granted = [grant for grant in plan.of(MEMBER) if grant.inputs["project"] == "example-host"]
    of_vertex = "agents-vertex-network"
    assert {grant.name.partition("host-")[2] or grant.name: grant.inputs["role"] for grant in granted} == {
        "cloudservices-compute.networkUser": "roles/compute.networkUser",
        "container-engine-robot-compute.networkUser": "roles/compute.networkUser",
        "container-engine-robot-container.hostServiceAgentUser": "roles/container.hostServiceAgentUser",
        of_vertex: "projects/example-host/roles/training_platform_vertex_network",
    }
    assert {grant.key for grant in granted if grant.name != of_vertex} <= set(plan.one(CLUSTER).options["dependsOn"])


def test_storage_in_a_shared_vpc_joins_it_by_private_service_access() -> None:
    instance = {"location": "us-central1-a", "capacity_gib": 1024, "connection": "private-service-access"}

    plan = plan_of(NAMED, network=HOST, filestore={"homes": instance})

    vpc = "projects/example-host/global/networks/shared-vpc"
    assert plan.one(FILESTORE).inputs["networks"][0]["network"] == vpc
    parameters = plan.one(CLASS).inputs["parameters"]
    assert (parameters["network"], parameters["connect-mode"]) == (vpc, "PRIVATE_SERVICE_ACCESS")


def test_storage_in_a_network_of_the_project_knows_it_by_its_name() -> None:
    plan = plan_of(network={"name": "vpc"}, filestore={"homes": {"location": "us-central1-a", "capacity_gib": 1024}})

    parameters = plan.one(CLASS).inputs["parameters"]
    assert parameters["network"] == "vpc"
    assert "connect-mode" not in parameters


def test_pools_and_software_go_into_an_existing_cluster_and_nothing_is_made_of_it() -> None:
    plan = plan_of(OTHERS)

    assert plan.of(CLUSTER) == plan.of(NAT) == []
    assert names(plan, POOL) == {"main-h100-pool"}
    assert plan.one(POOL).inputs["cluster"] == "shared"
    assert {"main-subnet", "main-webhooks"}.isdisjoint(names(plan, SUBNET) | names(plan, FIREWALL))
    assert names(plan, RELEASE) == {"main-jobset-release", "main-kueue-release"}
    assert len(plan.of(FLAVOR)) == 1


def test_a_team_reaches_an_existing_cluster_by_its_own_name() -> None:
    plan = planned(environment(OTHERS), WITH_SHARE, "team")

    (provider,) = (resource for resource in plan.resources if resource.type == "pulumi:providers:kubernetes")
    assert provider.inputs["clusterIdentifier"] == "projects/example-train/locations/us-central1/clusters/shared"
    assert len(plan.of(QUEUE)) == 1


@pytest.mark.parametrize(
    ("software", "releases", "flavors", "scrapes"),
    [
        ({}, {"jobset", "kueue"}, 1, {"jobset", "kueue"}),
        ({"kueue": "existing"}, {"jobset"}, 1, {"jobset"}),
        ({"kueue": "none"}, {"jobset"}, 0, {"jobset"}),
        ({"jobset": "existing"}, {"kueue"}, 1, {"kueue"}),
        ({"kueue": "none", "jobset": "none"}, set(), 0, set()),
        ({"metrics": False}, {"jobset", "kueue"}, 1, set()),
    ],
    ids=lambda value: str(sorted(value)) if isinstance(value, set) else str(value),
)
def test_software_is_installed_as_the_cluster_says(
    software: dict[str, Any], releases: set[str], flavors: int, scrapes: set[str]
) -> None:
    plan = plan_of({**OWN, "software": software})

    assert names(plan, RELEASE) == {f"main-{name}-release" for name in releases}
    assert len(plan.of(FLAVOR)) == flavors
    assert names(plan, SCRAPE) == {f"main-{name}-metrics-scrape" for name in scrapes}


def charged(section: dict[str, Any]) -> set[str]:
    """Return the labels of all charges, except those of the accelerator pool."""
    loaded = workspace(section)
    holders = {charge.holder.label for charge in stack_demand(loaded.stacks["env"], loaded)}
    return {label for label in holders if "h100" not in label and "GPU" not in label}


def paid(section: dict[str, Any]) -> float:
    section_environment = workspace(section).stacks["env"].environment
    assert section_environment
    return stack_cost(section_environment).maximum


def test_what_is_somebody_elses_is_not_charged() -> None:
    charged_to_own = charged(environment())

    assert {"main", "main-system", "network", "NAT of us-central1"} <= charged_to_own
    assert charged(environment(NAMED, network={"name": "vpc"})) == charged_to_own - {"network", "NAT of us-central1"}
    assert charged(environment(NAMED, network=HOST)) == charged_to_own - {"main", "network", "NAT of us-central1"}
    assert charged(environment(OTHERS, network={"name": "vpc"})) == set()


def test_what_is_somebody_elses_is_not_paid() -> None:
    pools = stack_cost(Environment(project="example-train", clusters={})).maximum

    assert paid(environment()) > paid(environment(network={"name": "vpc"})) > paid(environment(OTHERS)) > pools


def test_settings_of_what_is_somebody_elses_are_refused_all_at_once() -> None:
    of_a_cluster: dict[str, Any] = {"release_channel": "RAPID", "system_pool": {}, "subnet": RANGES}
    of_a_network: dict[str, Any] = {"nat_addresses": 1, "private_services_range": "10.9.0.0/16"}

    in_a_cluster = refused(environment({**OTHERS, **of_a_cluster}))
    in_a_network = refused(environment(network={"name": "vpc", "grant_roles": True}, **of_a_network))

    assert in_a_cluster.keys() == {f"clusters.main.{field}" for field in of_a_cluster}
    assert in_a_network.keys() == {*of_a_network, "network.grant_roles"}


@pytest.mark.parametrize(
    ("section", "path", "words"),
    [
        (environment({"location": "us-central1"}), "clusters.main.subnet", "nodes, pods and services"),
        (environment(NAMED), "clusters.main.subnet.name", "creates the network"),
        (environment(network=HOST), "clusters.main.subnet.name", "are in project example-host"),
        (environment(NAMED, network=HOST, **ATTACHMENTS), "network_attachments", "host project example-host"),
        (environment(NAMED, network={**OWN_HOST, "grant_roles": True}), "network.grant_roles", "Nearest: false"),
    ],
)
def test_what_cannot_be_is_said_at_its_line(section: dict[str, Any], path: str, words: str) -> None:
    refusals = refused(section)

    assert refusals.keys() == {path}
    assert words in refusals[path]


def test_a_share_of_a_cluster_without_kueue_is_refused() -> None:
    cohorts = {"research": {"shares": WITH_SHARE["shares"]}}
    refusals = refused(environment({**OWN, "software": {"kueue": "none"}}, cohorts=cohorts), WITH_SHARE)

    assert refusals.keys() == {"shares.main", "cohorts.research.shares.main"}
    assert "it cannot have queues" in refusals["shares.main"]
    assert refused(environment({**OWN, "software": {"kueue": "existing"}}), WITH_SHARE) == {}


def test_the_example_of_the_page_is_an_environment() -> None:
    page = (ROOT / "docs" / "existing.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^```yaml\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    section = yaml.safe_load(example)["config"]["training-platform:environment"]

    assert refused(section) == {}
    assert workspace(section).stacks["env"].environment


def test_the_page_names_the_roles_that_are_granted() -> None:
    page = (ROOT / "docs" / "existing.md").read_text(encoding="utf-8")
    commands = re.findall(r"--role (\S+) \\\n *--member serviceAccount:(\S+)", page)

    granted = [(role, account.format("NUMBER")) for account, roles in HOST_ROLES.items() for role in roles]
    assert sorted(commands) == sorted(granted)


NEVER_CHANGED: Mapping[str, set[str]] = {
    "gcp:compute/network:Network": {"autoCreateSubnetworks"},
    "gcp:compute/address:Address": {"addressType", "description"},
}
"""Inputs that no field of a stack file changes: only another project replaces the VPC and its addresses."""


def _named(resource: StackResource) -> tuple[str, ...]:
    """Return the inputs that a resource's full name consists of; none if Pulumi or Google Cloud names it."""
    of_type = RESOURCE_TYPES.get(resource.type)
    names = tuple(re.findall(r"{(\w+)}", of_type.import_id or "")) if of_type else ()
    return names if names and names[-1] in resource.inputs else ()


def _in_its_place(resource: StackResource) -> Iterator[str]:
    """Yield the inputs whose change replaces a resource, and leaves its full name."""
    for field in resource_types.replacing_inputs(resource.type):
        first = re.split(r"[.\[]", field)[0]
        if first in resource.inputs and first not in _named(resource):
            yield first


def test_what_keeps_its_name_is_deleted_before_it_is_replaced() -> None:
    inputs_of_types: dict[str, set[str]] = {}
    for stack in ("env", "team"):
        for resource in planned(ENVIRONMENT, TEAM, stack).resources:
            if (
                _named(resource)
                and not resource.options.get("deleteBeforeReplace")
                and (inputs := set(_in_its_place(resource)))
            ):
                inputs_of_types.setdefault(resource.type, set()).update(inputs)

    assert inputs_of_types == NEVER_CHANGED
