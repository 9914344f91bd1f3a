"""Vertex AI: persistent resources and TensorBoards of teams."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from training_platform.catalog.types import MachineType
from training_platform.config.model import team
from training_platform.config.names import declared_name
from training_platform.resources import gcp
from training_platform.resources.network import attachment
from training_platform.resources.plan import Options, Resource
from training_platform.resources.provider_inputs import add_provider_inputs
from training_platform.resources.scope import Scope, persistent_resource_id

if TYPE_CHECKING:
    from pulumi_gcp.vertex import AiPersistentResourceResourcePoolArgsDict as ResourcePool
    from pulumi_gcp.vertex import AiPersistentResourceResourcePoolAutoscalingSpecArgsDict as Autoscaling
    from pulumi_gcp.vertex import AiPersistentResourceResourcePoolMachineSpecArgsDict as Machine
    from pulumi_gcp.vertex import AiPersistentResourceResourceRuntimeSpecArgsDict as Runtime

# As the engine writes paths; the provider sends changes of these with PUT and without a mask, a method that the API
# does not offer (resource_vertex_ai_persistent_resource.go, persistent_resource_service.proto; read 2026-08).
_REPLACING = ("displayName", "resourcePools")


def persistent_resource(
    key: str, spec: team.PersistentResourceSpec, scope: Scope, network_attachment: Any = None
) -> Resource:
    """Return a persistent resource; ``key`` is its key in the stack file.

    ``network_attachment`` is the full name of an attachment. A program passes it instead of the field in ``spec``.
    """
    resource_id = persistent_resource_id(scope, key)
    kms_key = scope.key(spec.region)
    network = network_attachment
    if network is None:
        network = attachment(spec.network_attachment, spec.region, scope)
    name = f"{declared_name('vertex.persistent_resources', key)}-persistent-resource"
    resource = gcp.persistent_resource(
        name,
        _options(spec, scope),
        name=resource_id,
        display_name=resource_id,
        project=scope.project,
        location=spec.region,
        resource_pools=[_resource_pool(name, pool) for name, pool in spec.pools.items()],
        resource_runtime_spec=_own_account(),
        psc_interface_config=None if network is None else {"network_attachment": network},
        encryption_spec={"kms_key_name": kms_key} if kms_key else None,
        labels=scope.labels,
    )
    section = ("vertex", "persistent_resources", key)
    add_provider_inputs(resource, spec.provider_inputs, section, spec.TAKEN_OVER)
    return resource


def _resource_pool(name: str, spec: team.ResourcePoolSpec) -> ResourcePool:
    """Return a pool. A job must specify the same machine and disk, so nothing is left to Vertex AI's defaults."""
    return {
        "id": name,
        "machine_spec": _machine_spec(spec.machine),
        "replica_count": str(spec.replicas),
        "autoscaling_spec": _autoscaling_spec(spec),
        "disk_spec": {"boot_disk_type": spec.boot_disk.type, "boot_disk_size_gb": spec.boot_disk.size_gb},
    }


def _machine_spec(machine: MachineType) -> Machine:
    """Return a machine with its GPUs. TPUs are left out: the machine type implies them, and a pool may refuse them."""
    return {
        "machine_type": machine.name,
        "accelerator_type": machine.vertex_gpus,
        "accelerator_count": machine.chips if machine.vertex_gpus else None,
    }


def _autoscaling_spec(spec: team.ResourcePoolSpec) -> Autoscaling | None:
    """Return the minimum and maximum for autoscaling, as strings as in the API, or None if there is no autoscaling."""
    if spec.max_replicas is None:
        return None
    return {"min_replica_count": str(spec.replicas), "max_replica_count": str(spec.max_replicas)}


def _own_account() -> Runtime:
    """Return the setting that makes every job run as its own service account instead of Vertex AI's shared account."""
    return {"service_account_spec": {"enable_custom_service_account": True}}


def _options(spec: team.PersistentResourceSpec, scope: Scope) -> Options:
    return Options(
        # A replacement cancels the jobs on it, and its machines may not be available again.
        protect=scope.deletion_protection and spec.deletion_protection,
        # The name is fixed, and taken until the old resource is gone.
        delete_before_replace=True,
        # The provider gives up after 20 minutes, and GPU machines take longer.
        timeouts={"create": "60m", "update": "60m", "delete": "60m"},
        # The autoscaler sets the number of machines; writing another would undo its decision.
        ignore_changes=_scaled_counts(spec),
        replace_on_changes=_REPLACING,
    )


def _scaled_counts(spec: team.PersistentResourceSpec) -> tuple[str, ...]:
    """Return the paths of the counts that autoscaling changes, with the field names of the Pulumi engine."""
    scaled = [pool.max_replicas is not None for pool in spec.pools.values()]
    if all(scaled):
        return ("resourcePools[*].replicaCount",)
    return tuple(f"resourcePools[{index}].replicaCount" for index, scales in enumerate(scaled) if scales)


def tensorboard_name(region: str, scope: Scope) -> str:
    """Return the name of a team's TensorBoard in a region, by which people and job submission find it."""
    return f"{scope.prefix}-{region}"


def tensorboard(region: str, scope: Scope) -> Resource:
    """Return a team's TensorBoard in a region. Every job that writes to it must be in the same region."""
    key = scope.key(region)
    # Deletion takes every experiment with it.
    options = Options(protect=scope.deletion_protection)
    return gcp.tensorboard(
        f"tensorboard-{region}-tensorboard",
        options,
        display_name=tensorboard_name(region, scope),
        description=f"Experiments of {scope.prefix}",
        project=scope.project,
        region=region,
        encryption_spec={"kms_key_name": key} if key else None,
        labels=scope.labels,
    )
