"""Resources that stack files name as existing. The local cloud creates them before the first run.

They belong to other people, so they are kept when a stack is destroyed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from local_google_cloud.api import LocalCloud
from training_platform.catalog.locations import region_of
from training_platform.config.model.environment import Environment
from training_platform.config.model.team import Team
from training_platform.config.workspace import Workspace
from training_platform.resources.custom_roles import CUSTOM_ROLES, custom_permissions
from training_platform.resources.network import existing_network, existing_subnet, own_ranges
from training_platform.resources.plan import Plan, PlanError, Resource
from training_platform.resources.resource_types import (
    BUCKET,
    BUCKET_MEMBER,
    CLUSTER,
    IAM_MEMBER,
    NODE_POOL,
)
from training_platform.resources.stack_plan import plannable, stack_plan


class Existing(NamedTuple):
    """A resource that somebody else owns: a title, its name in the local cloud, and the request to create it."""

    title: str
    record: str
    service: str
    path: str
    query: tuple[tuple[str, str], ...]
    body: dict[str, Any]


def create_existing(cloud: LocalCloud, workspace: Workspace) -> list[str]:
    """Create missing resources that stack files name as existing, and return a line for each one."""
    settings = cloud.settings
    cloud.settings = settings.model_copy(update={"check_services": False, "durations": {}})
    lines = []
    resources = {resource.record: resource for resource in existing_resources(workspace)}
    for resource in resources.values():
        line = resource.title
        if resource.record not in cloud.store:
            code, response = cloud.handle(resource.service, "POST", resource.path, resource.query, resource.body)
            if code != 200:
                line = f"{resource.title} (not created: {response['error']['message']})"
        lines.append(line)
    cloud.settle()
    cloud.settings = settings
    return lines


def existing_resources(workspace: Workspace) -> Iterator[Existing]:
    """Yield the resources that stack files name as existing. Networks precede the resources in them."""
    for _, environment in workspace.environments():
        yield from _networks(environment)
    plans = list(_plans(workspace))
    created = {resource.inputs["name"] for plan, _ in plans for resource in plan.resources() if resource.type == BUCKET}
    for plan, project in plans:
        for resource in plan.resources():
            if resource.type == IAM_MEMBER and custom_permissions(resource.inputs["role"]):
                yield _role(resource.inputs["role"])
            elif resource.type == CLUSTER and resource.read_id:
                yield from _cluster(resource.read_id, workspace)
            elif resource.type == NODE_POOL:
                yield from _reservations(resource, project)
            for bucket in _buckets(resource):
                if bucket not in created:
                    yield _bucket(bucket, project, workspace)


def _plans(workspace: Workspace) -> Iterator[tuple[Plan, str]]:
    """Yield plans with the projects of their stacks. An error in a plan is reported when its stack runs."""
    for stack in plannable(workspace, workspace.stacks):
        try:
            plan = stack_plan(stack, workspace)
        except PlanError:
            continue
        project = workspace.project_of(stack)
        if plan is not None and project is not None:
            yield plan, project


def _networks(environment: Environment) -> Iterator[Existing]:
    if environment.network is None:
        return
    path = str(existing_network(environment))
    project = path.split("/")[1]
    yield _network(path)
    for cluster in environment.own_clusters.values():
        subnet = existing_subnet(cluster, project)
        if subnet is None:
            continue
        ranges = own_ranges(cluster)
        body: dict[str, Any] = {
            "name": ranges.name,
            "network": path,
            "ipCidrRange": ranges.nodes,
            "secondaryIpRanges": [
                {"rangeName": ranges.pods_range, "ipCidrRange": ranges.pods},
                {"rangeName": ranges.services_range, "ipCidrRange": ranges.services},
            ],
        }
        collection = subnet.rpartition("/")[0]
        title = f"subnet {ranges.name} with ranges {ranges.pods_range} and {ranges.services_range}"
        yield Existing(title, f"compute/{subnet}", service="compute", path=f"v1/{collection}", query=(), body=body)


def _network(path: str) -> Existing:
    collection, _, name = path.rpartition("/")
    body = {"name": name, "autoCreateSubnetworks": False}
    return Existing(
        f"network {name}", f"compute/{path}", service="compute", path=f"v1/{collection}", query=(), body=body
    )


def _role(name: str) -> Existing:
    collection, _, role_id = name.rpartition("/")
    title, permissions = CUSTOM_ROLES[role_id]
    role = {"title": title, "includedPermissions": list(permissions), "stage": "GA"}
    line = f"custom role {role_id} of {name.split('/')[1]}"
    return Existing(
        line, f"iam/{name}", service="iam", path=f"v1/{collection}", query=(), body={"roleId": role_id, "role": role}
    )


def _cluster(path: str, workspace: Workspace) -> Iterator[Existing]:
    """Yield a cluster's network, a subnet named after the cluster, and the cluster."""
    collection, _, name = path.rpartition("/")
    project = path.split("/")[1]
    region = region_of(path.split("/")[3])
    environments = [home for _, home in workspace.environments() if home.project == project]
    network = str(existing_network(environments[0]) or f"projects/{project}/global/networks/default")
    owner = network.split("/")[1]
    yield _network(network)
    subnets = f"projects/{owner}/regions/{region}/subnetworks"
    number = [spec.existing for home in environments for spec in home.clusters.values() if spec.existing].index(name)
    subnet = {
        "name": name,
        "network": network,
        "ipCidrRange": f"172.16.{16 * number}.0/20",
        "secondaryIpRanges": [
            {"rangeName": "pods", "ipCidrRange": f"172.{20 + number}.0.0/16"},
            {"rangeName": "services", "ipCidrRange": f"172.17.{16 * number}.0/20"},
        ],
    }
    yield Existing(
        f"subnet {name}", f"compute/{subnets}/{name}", service="compute", path=f"v1/{subnets}", query=(), body=subnet
    )
    cluster: dict[str, Any] = {
        "name": name,
        "initialNodeCount": 1,
        "network": network,
        "subnetwork": f"{subnets}/{name}",
        "controlPlaneEndpointsConfig": {"dnsEndpointConfig": {"allowExternalTraffic": True}},
        "workloadIdentityConfig": {"workloadPool": f"{project}.svc.id.goog"},
    }
    path_of = f"v1/{collection}"
    yield Existing(
        f"cluster {name}", f"container/{path}", service="container", path=path_of, query=(), body={"cluster": cluster}
    )


def _reservations(pool: Resource, project: str) -> Iterator[Existing]:
    """Yield the reservations of a node pool's VMs."""
    config = pool.inputs["node_config"]
    affinity = config.get("reservation_affinity") or {}
    for value in affinity.get("values") or ():
        name = value.rpartition("/")[2]
        owner = value.split("/")[1] if value.startswith("projects/") else project
        for zone in pool.inputs.get("node_locations") or [pool.inputs["location"]]:
            parent = f"projects/{owner}/zones/{zone}/reservations"
            specific = {"count": "1", "instanceProperties": {"machineType": config["machine_type"]}}
            body = {"name": name, "specificReservationRequired": True, "specificReservation": specific}
            title = f"reservation {name} in {zone}"
            yield Existing(
                title, f"compute/{parent}/{name}", service="compute", path=f"v1/{parent}", query=(), body=body
            )


def _buckets(resource: Resource) -> Iterator[str]:
    """Yield the buckets that a resource names."""
    if resource.type == BUCKET_MEMBER:
        bucket = resource.inputs["bucket"]
    elif resource.type == BUCKET:
        bucket = (resource.inputs.get("logging") or {}).get("log_bucket")
    else:
        return
    if isinstance(bucket, str):
        yield bucket


def _bucket(name: str, project: str, workspace: Workspace) -> Existing:
    sections: list[Environment | Team] = [home for _, home in workspace.environments()]
    sections += [team for _, team, _ in workspace.teams()]
    data_sets = [data_set.bucket for section in sections for data_set in section.data_sets.values()]
    locations = [bucket.location for bucket in data_sets if bucket and bucket.name == name]
    body = {"name": name, "location": (locations or ["US"])[0].upper()}
    return Existing(
        f"bucket {name}", f"storage/b/{name}", service="storage", path="v1/b", query=(("project", project),), body=body
    )
