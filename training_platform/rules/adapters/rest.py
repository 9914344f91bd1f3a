"""Views from REST bodies, as Google's APIs name their fields.

The bodies of GKE, Filestore and Vertex AI differ from pulumi-gcp's inputs in few names; those are put right here, and
the views of planned resources do the rest. What a client leaves out is as the API filled it in before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from training_platform.resources import register
from training_platform.resources.planned import Planned
from training_platform.rules.adapters.plan import views_of_plan
from training_platform.rules.views.node_pool import InlinePoolView
from training_platform.rules.views.program import ObjectView
from training_platform.rules.views.view import View

Json = Mapping[str, Any]


def views_of_rest(collection: str, body: Json, *, project: str, name: str) -> list[View]:
    """Return the views of one resource: ``collection`` is service and collection, ``container.nodePools``.

    ``name`` is its name below the API's version, ``projects/*/locations/*/clusters/*``; it is the views' name, too. A
    collection that no rule reads has no views.
    """
    if collection not in _READERS:
        return []
    kind, read = _READERS[collection]
    parts = name.split("/")
    inputs = {"project": project, "location": parts[3] if len(parts) > 3 else None, **read(body, parts)}
    views = views_of_plan([Planned(stack="", type=kind, name=name, inputs=inputs)])
    return [view for view in views if not isinstance(view, (InlinePoolView, ObjectView))]


def _as_it_is(body: Json, _parts: list[str]) -> dict[str, Any]:
    return dict(body)


def _cluster(body: Json, parts: list[str]) -> dict[str, Any]:
    network, scaling = body.get("networkConfig") or {}, body.get("autoscaling") or {}
    return {
        **body,
        "datapathProvider": network.get("datapathProvider"),
        "enableMultiNetworking": network.get("enableMultiNetworking"),
        # The API counts a zonal cluster's own zone among them.
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
        {**each, "type": each.get("acceleratorType"), "count": each.get("acceleratorCount")}
        for each in config.get("accelerators", ())
    ]
    scaling = body.get("autoscaling") or {}
    # A number or a truth value that is left out of a body is 0 or false, and 0 is what a limit that does not hold says.
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


def _filestore(body: Json, _parts: list[str]) -> dict[str, Any]:
    return {**body, "deletionProtectionEnabled": body.get("deletionProtectionEnabled")}


def _persistent_resource(body: Json, parts: list[str]) -> dict[str, Any]:
    return {**body, "name": parts[-1]}


def _workbench(body: Json, parts: list[str]) -> dict[str, Any]:
    return {**body, "name": parts[-1], "location": parts[3]}


def _in_a_region(body: Json, parts: list[str]) -> dict[str, Any]:
    return {**body, "region": parts[3]}


def _nats(body: Json, parts: list[str]) -> dict[str, Any]:
    return {"region": parts[3], "natIps": [ip for nat in body.get("nats", ()) for ip in nat.get("natIps", ())]}


_READERS: Mapping[str, tuple[str, Callable[[Json, list[str]], dict[str, Any]]]] = {
    "container.clusters": (register.CLUSTER, _cluster),
    "container.nodePools": (register.NODE_POOL, _node_pool),
    "file.instances": (register.FILESTORE, _filestore),
    "lustre.instances": (register.LUSTRE, _as_it_is),
    "aiplatform.persistentResources": (register.PERSISTENT_RESOURCE, _persistent_resource),
    "notebooks.instances": (register.WORKBENCH, _workbench),
    "compute.networks": (register.NETWORK, _as_it_is),
    "compute.resourcePolicies": (register.RESOURCE_POLICY, _in_a_region),
    "compute.subnetworks": (register.SUBNETWORK, _as_it_is),
    "compute.routers": (register.ROUTER_NAT, _nats),
}
