"""A fleet's clusters and pools as ``terraform show -json`` would print the plan of them, for tools that read that.

It has what the tools' checks look at in GKE resources; the fleet's IAM, in-cluster objects and teams are not in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from training_platform.config.expansion.pools import ExpandedPool, GkePool, cluster_pools
from training_platform.config.spec.cluster import ClusterSpec
from training_platform.config.spec.environment import Environment
from training_platform.config.workspace import Workspace

Json = dict[str, Any]
PROVIDER = "registry.terraform.io/hashicorp/google"


def terraform_plan(workspace: Workspace) -> Json:
    """Return the plan of every environment: networks, subnets, clusters, node pools, all to be created."""
    resources = [each for stack, home in workspace.environments() for each in _environment(stack.name, home)]
    changes = [
        {
            "address": each["address"],
            "mode": "managed",
            "type": each["type"],
            "name": each["name"],
            "provider_name": PROVIDER,
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


def _environment(name: str, home: Environment) -> Iterator[Json]:
    network = {"name": name, "project": home.project, "auto_create_subnetworks": False}
    yield _resource("google_compute_network", name, network)
    for key, cluster in home.clusters.items():
        yield from _cluster(name, key, cluster, home)


def _cluster(environment: str, key: str, cluster: ClusterSpec, home: Environment) -> Iterator[Json]:
    name = f"{environment}-{key}"
    subnet = {
        "name": name,
        "network": environment,
        "ip_cidr_range": cluster.subnet.nodes,
        "private_ip_google_access": True,
        "project": home.project,
    }
    yield _resource("google_compute_subnetwork", name, subnet)
    values = {
        "name": name,
        "location": cluster.location,
        "project": home.project,
        "network": environment,
        "subnetwork": name,
        "remove_default_node_pool": True,
        "initial_node_count": 1,
        "release_channel": [{"channel": cluster.release_channel}],
        "private_cluster_config": [{"enable_private_nodes": True, "enable_private_endpoint": True}],
        "workload_identity_config": [{"workload_pool": f"{home.project}.svc.id.goog"}],
        "resource_labels": dict(home.labels),
        "deletion_protection": True,
    }
    yield _resource("google_container_cluster", name, values)
    for pool in cluster_pools(key, cluster):
        for gke_pool in pool.gke_pools:
            yield _resource("google_container_node_pool", f"{environment}-{gke_pool.name}", _pool(name, pool, gke_pool))


def _pool(cluster: str, pool: ExpandedPool, gke_pool: GkePool) -> Json:
    disk = pool.spec.boot_disk
    gpus = [{"type": pool.accelerator.gke_label, "count": pool.machine.chips}] if pool.machine.kind == "gpu" else []
    return {
        "name": gke_pool.name,
        "cluster": cluster,
        "node_locations": [pool.zone],
        "autoscaling": [{"min_node_count": gke_pool.min_nodes, "max_node_count": gke_pool.max_nodes}],
        "management": [{"auto_repair": True, "auto_upgrade": True}],
        "node_config": [
            {
                "machine_type": pool.spec.machine_type,
                "disk_size_gb": disk.size_gb,
                "disk_type": disk.type_on(pool.machine),
                "spot": pool.spec.capacity == "spot",
                "guest_accelerator": gpus,
                "metadata": {"disable-legacy-endpoints": "true"},
                "shielded_instance_config": [{"enable_secure_boot": True, "enable_integrity_monitoring": True}],
                "workload_metadata_config": [{"mode": "GKE_METADATA"}],
            }
        ],
    }


def _resource(kind: str, name: str, values: Json) -> Json:
    return {
        "address": f"{kind}.{name}",
        "mode": "managed",
        "type": kind,
        "name": name,
        "provider_name": PROVIDER,
        "schema_version": 0,
        "values": values,
    }
