"""Creates views from planned resources, from the model of a stack file, and from REST bodies.

A view is a typed model of a resource that rules read. Planned resources have inputs with the names of pulumi-gcp and
pulumi-kubernetes. A value that a program leaves out is None, or the provider's default if leaving it out has an effect
(``auto_repair``). Every resource of a provider has a view of the whole resource. A type that no rule reads has no other
view. The REST bodies of GKE, Filestore and Vertex AI differ from pulumi-gcp's inputs in a few names, which
``views_of_rest`` translates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from training_platform.catalog.types import Json
from training_platform.config.model.stack import Stack
from training_platform.config.names import Locator
from training_platform.config.workspace import Workspace
from training_platform.resources import resource_types
from training_platform.resources.compute_classes import created_pools
from training_platform.resources.plan import preview
from training_platform.resources.scope import environment_scope
from training_platform.resources.spelling import wire_inputs
from training_platform.resources.stack_plan import stack_plan
from training_platform.resources.stack_resource import StackResource
from training_platform.views import access, cluster, kueue, network, node_pool, storage, vertex
from training_platform.views.node_pool import CreatedPoolView, InlinePoolView
from training_platform.views.view import View
from training_platform.views.whole_stack import PACKAGES, ObjectView

VIEWS: tuple[type[View], ...] = (
    cluster.ClusterView, cluster.AutoProvisioningView, node_pool.NodePoolView, node_pool.InlinePoolView,
    cluster.ResourcePolicyView,
    cluster.ReservationView, cluster.VmView, network.CountedView, network.NetworkView,
    network.SubnetView, network.AttachmentView, network.FirewallView, network.GatewayView,
    network.InterfaceView, network.ServicesRangeView, access.AccountView, access.RoleGrantView, storage.FilestoreView,
    storage.LustreView, storage.SnapshotView, storage.RepositoryView,
    storage.BucketView, storage.EncryptedView, storage.StorageClassView,
    storage.VolumeClaimView,
    vertex.PersistentPoolView, kueue.FlavorView, kueue.FlavorQuotaView,
    cluster.ComputeClassView, access.AlertPolicyView, access.ReleaseView, access.LabelledView,
)  # fmt: skip


VIEWS_OF: Mapping[str, list[type[View]]] = {
    token: [kind for kind in VIEWS if token in kind.TYPES] for view in VIEWS for token in view.TYPES
}
_PROVIDED: dict[str, Sequence[type[View]]] = {token: (ObjectView, *kinds) for token, kinds in VIEWS_OF.items()}


def views_of_plan(planned: Iterable[StackResource], locator: Locator | None = None) -> list[View]:
    """Return the views of a stack's planned resources. Each has its section of the stack file, if there is one."""
    views: list[View] = []
    for resource in planned:
        if kinds := kinds_of(resource.type):
            origin = locator.path(resource.name) if locator and resource.own_line is None else ()
            for kind in kinds:
                of_resource = list(kind.of(resource, origin))
                if resource.own_line is not None:
                    for view in of_resource:
                        view.own_line = resource.own_line
                views += of_resource
    return views


def views_of_model(stack: Stack, workspace: Workspace) -> list[View]:
    """Return the views of a stack; empty for a rejected file, or for a team without its environment."""
    plan = stack_plan(stack, workspace)
    return views_of_plan(plan.planned(), Locator(stack.section)) if plan and stack.section else []


def views_of_created_pools(stack: Stack) -> list[View]:
    """Return a view of the node pool that GKE would create for each priority of a compute class."""
    views: list[View] = []
    if stack.environment is None:
        return views
    scope = environment_scope(stack.name, stack.environment)
    for name, spec in stack.environment.clusters.items():
        for path, pool in created_pools(name, spec, scope):
            inputs = wire_inputs(pool.type, pool.inputs, preview)
            planned = StackResource(stack=stack.name, type=pool.type, name=pool.name, inputs=inputs)
            views += CreatedPoolView.of(planned, path)
    return views


def kinds_of(token: str) -> Sequence[type[View]]:
    """Return the view classes for a resource type."""
    return _PROVIDED.get(token) or ((ObjectView,) if token.startswith(PACKAGES) else ())


def views_of_rest(collection: str, body: Json, *, project: str, name: str) -> list[View]:
    """Return the views of one resource. ``collection`` is its service and collection, such as ``container.nodePools``.

    ``name`` is the resource's name in the API, ``projects/*/locations/*/clusters/*``, and also the name of the views. A
    collection that no rule reads has no views.
    """
    if collection not in _READERS:
        return []
    kind, read = _READERS[collection]
    parts = name.split("/")
    inputs = {"project": project, "location": parts[3] if len(parts) > 3 else None, **read(body, parts)}
    views = views_of_plan([StackResource(stack="", type=kind, name=name, inputs=inputs)])
    return [view for view in views if not isinstance(view, (InlinePoolView, ObjectView))]


def _cluster(body: Json, parts: list[str]) -> dict[str, Any]:
    network = body.get("networkConfig") or {}
    scaling = body.get("autoscaling") or {}
    return {
        **body,
        "datapathProvider": network.get("datapathProvider"),
        "enableMultiNetworking": network.get("enableMultiNetworking"),
        # The API includes a zonal cluster's own zone.
        "nodeLocations": [zone for zone in body.get("locations") or () if zone != parts[3]],
        "defaultMaxPodsPerNode": (body.get("defaultMaxPodsConstraint") or {}).get("maxPodsPerNode"),
        "clusterAutoscaling": {
            "enabled": scaling.get("enableNodeAutoprovisioning"),
            "resourceLimits": scaling.get("resourceLimits"),
            "autoProvisioningLocations": scaling.get("autoprovisioningLocations"),
        },
    }


def _node_pool(body: Json, parts: list[str]) -> dict[str, Any]:
    config = dict(body.get("config") or {})
    config["guestAccelerators"] = [
        {**gpus, "type": gpus.get("acceleratorType"), "count": gpus.get("acceleratorCount")}
        for gpus in config.get("accelerators", ())
    ]
    scaling = body.get("autoscaling") or {}
    # A number or boolean that a body omits is 0 or false, and 0 means no limit.
    scaling = {key: value for key, value in scaling.items() if value or not key.startswith("total")}
    return {
        "cluster": parts[5],
        "nodeConfig": config,
        "nodeLocations": body.get("locations"),
        "initialNodeCount": body.get("initialNodeCount", 0),
        "autoscaling": {"minNodeCount": 0, **scaling} if scaling.get("enabled") else None,
        "management": {"autoRepair": False, "autoUpgrade": False, **(body.get("management") or {})},
        "upgradeSettings": body.get("upgradeSettings"),
        "placementPolicy": body.get("placementPolicy"),
        "queuedProvisioning": body.get("queuedProvisioning"),
        "networkConfig": body.get("networkConfig"),
        "maxPodsPerNode": (body.get("maxPodsConstraint") or {}).get("maxPodsPerNode"),
    }


def _nats(body: Json, parts: list[str]) -> dict[str, Any]:
    return {"region": parts[3], "natIps": [ip for nat in body.get("nats", ()) for ip in nat.get("natIps", ())]}


_READERS: Mapping[str, tuple[str, Callable[[Json, list[str]], dict[str, Any]]]] = {
    "container.clusters": (resource_types.CLUSTER, _cluster),
    "container.nodePools": (resource_types.NODE_POOL, _node_pool),
    "file.instances": (resource_types.FILESTORE, lambda body, _: body),
    "lustre.instances": (resource_types.LUSTRE, lambda body, _: body),
    "aiplatform.persistentResources": (
        resource_types.PERSISTENT_RESOURCE,
        lambda body, parts: {**body, "name": parts[-1]},
    ),
    "compute.networks": (resource_types.NETWORK, lambda body, _: body),
    "compute.resourcePolicies": (resource_types.RESOURCE_POLICY, lambda body, parts: {**body, "region": parts[3]}),
    "compute.subnetworks": (resource_types.SUBNETWORK, lambda body, _: body),
    "compute.routers": (resource_types.ROUTER_NAT, _nats),
}
