"""A fleet's clusters and pools as ``terraform show -json`` would print the plan of them, for tools that read that.

The gcp provider is Terraform's, so its inputs are Terraform's in another spelling: names with underscores, and a list
around each block. IAM, in-cluster objects and teams are left out; so is what only a deployment tells.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from training_platform.config.workspace import Workspace
from training_platform.resources.declared import MAP_FIELDS
from training_platform.resources.model import planned_of_model
from training_platform.resources.planned import UNKNOWN
from training_platform.resources.register import CLUSTER, NETWORK, NODE_POOL, SUBNETWORK

Json = dict[str, Any]
PROVIDER = "registry.terraform.io/hashicorp/google"
TYPES = {
    NETWORK: "google_compute_network",
    SUBNETWORK: "google_compute_subnetwork",
    CLUSTER: "google_container_cluster",
    NODE_POOL: "google_container_node_pool",
}


def terraform_plan(workspace: Workspace) -> Json:
    """Return the plan of every environment: networks, subnets, clusters, node pools, all to be created."""
    resources = [
        {**_head(TYPES[each.type], f"{stack.name}-{each.name}"), "schema_version": 0, "values": _values(each.inputs)}
        for stack, _ in workspace.environments()
        for each in planned_of_model(stack, workspace)
        if each.type in TYPES
    ]
    changes = [
        {
            **_head(each["type"], each["name"]),
            "change": {"actions": ["create"], "before": None, "after": each["values"], "after_unknown": {}},
        }
        for each in resources
    ]
    return {
        "format_version": "1.2",
        "terraform_version": "1.9.0",
        "planned_values": {"root_module": {"resources": resources}},
        "resource_changes": changes,
        "configuration": {"root_module": {}},
    }


def _head(kind: str, name: str) -> Json:
    return {"address": f"{kind}.{name}", "mode": "managed", "type": kind, "name": name, "provider_name": PROVIDER}


def _values(inputs: Mapping[str, Any]) -> Json:
    named = ((re.sub(r"([A-Z])", r"_\1", name).lower(), value) for name, value in inputs.items())
    return {name: value if name in MAP_FIELDS else _value(value) for name, value in named if value is not UNKNOWN}


def _value(value: Any) -> Any:
    if isinstance(value, Mapping):
        return [_values(value)]
    if isinstance(value, list):
        return [_values(item) if isinstance(item, Mapping) else item for item in value]
    return value
