"""Machines that Vertex AI keeps for a team's training jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from training_platform.catalog.types import MachineType
from training_platform.config.model import team
from training_platform.config.names import declared_name
from training_platform.resources import gcp
from training_platform.resources.cloud_names import persistent_resource_id
from training_platform.resources.declared import Declared, Options
from training_platform.resources.network.vertex_attachment import attachment
from training_platform.resources.register import PERSISTENT_RESOURCE
from training_platform.resources.scope import Scope

if TYPE_CHECKING:
    from pulumi_gcp.vertex import AiPersistentResourceResourcePoolArgsDict as ResourcePool
    from pulumi_gcp.vertex import AiPersistentResourceResourcePoolAutoscalingSpecArgsDict as Autoscaling
    from pulumi_gcp.vertex import AiPersistentResourceResourcePoolMachineSpecArgsDict as Machine
    from pulumi_gcp.vertex import AiPersistentResourceResourceRuntimeSpecArgsDict as Runtime

# As the engine writes paths; the provider sends changes of these with PUT and without a mask, a method that the API
# does not offer (resource_vertex_ai_persistent_resource.go, persistent_resource_service.proto; read 2026-08).
_REPLACING = ("displayName", "resourcePools")


def persistent_resource(key: str, spec: team.PersistentResourceSpec, scope: Scope) -> Declared:
    """Return a persistent resource; ``key`` is its key in the stack file."""
    resource_id, kms_key = persistent_resource_id(scope, key), scope.key(spec.region)
    network = attachment(spec.network_attachment, spec.region, scope)
    inputs = gcp.persistent_resource(
        name=resource_id,
        display_name=resource_id,
        project=scope.project,
        location=spec.region,
        resource_pools=[_resource_pool(name, pool) for name, pool in spec.pools.items()],
        resource_runtime_spec=_own_account(),
        psc_interface_config={"network_attachment": network} if network else None,
        encryption_spec={"kms_key_name": kms_key} if kms_key else None,
        labels=scope.labels,
    )
    name = f"{declared_name('vertex.persistent_resources', key)}-persistent-resource"
    return Declared(type=PERSISTENT_RESOURCE, name=name, inputs=inputs, options=_options(spec, scope))


def _resource_pool(name: str, spec: team.ResourcePoolSpec) -> ResourcePool:
    """Return a pool. A job must give the same machine and disk, so nothing is left to Vertex AI's defaults."""
    return {
        "id": name,
        "machine_spec": _machine_spec(spec.machine),
        "replica_count": str(spec.replicas),
        "autoscaling_spec": _autoscaling_spec(spec),
        "disk_spec": {"boot_disk_type": spec.boot_disk.type, "boot_disk_size_gb": spec.boot_disk.size_gb},
    }


def _machine_spec(machine: MachineType) -> Machine:
    """Return a machine; its GPUs are spelt out, TPUs follow from the machine type (and a pool may well refuse them)."""
    return {
        "machine_type": machine.name,
        "accelerator_type": machine.vertex_gpus,
        "accelerator_count": machine.chips if machine.vertex_gpus else None,
    }


def _autoscaling_spec(spec: team.ResourcePoolSpec) -> Autoscaling | None:
    """Return the bounds of autoscaling, as the texts that the API wants, or None where there is to be none."""
    if spec.max_replicas is None:
        return None
    return {"min_replica_count": str(spec.replicas), "max_replica_count": str(spec.max_replicas)}


def _own_account() -> Runtime:
    """Return the setting by which every job runs as its own service account, and not as Vertex AI's for all."""
    return {"service_account_spec": {"enable_custom_service_account": True}}


def _options(spec: team.PersistentResourceSpec, scope: Scope) -> Options:
    return Options(
        # A replacement cancels the jobs on it, and its machines may not be available again.
        protect=scope.deletion_protection and spec.deletion_protection,
        # The name is fixed, and taken until the old resource is gone.
        delete_before_replace=True,
        # The provider gives up after 20 minutes, and GPU machines take longer.
        timeouts={"create": "60m", "update": "60m", "delete": "60m"},
        # The autoscaler sets the number of machines, and writing our own would undo it.
        ignore_changes=_scaled_counts(spec),
        replace_on_changes=_REPLACING,
    )


def _scaled_counts(spec: team.PersistentResourceSpec) -> tuple[str, ...]:
    """Return the counts that autoscaling changes behind the program's back, as the engine writes paths."""
    scaled = [pool.max_replicas is not None for pool in spec.pools.values()]
    if all(scaled):
        return ("resourcePools[*].replicaCount",)
    return tuple(f"resourcePools[{index}].replicaCount" for index, scales in enumerate(scaled) if scales)
