"""Machines that Vertex AI keeps for a team's training jobs."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
from pulumi_gcp import vertex

from training_platform.catalog import MACHINE_TYPES
from training_platform.config.spec import team
from training_platform.resources.cloud_names import persistent_resource_id
from training_platform.resources.scope import Scope

POOL_ID = "machines"
# Of the input that autoscaling changes behind the program's back, as the engine writes paths.
DRIFTING = "resourcePools[*].replicaCount"


@dataclass(frozen=True, kw_only=True)
class PersistentResourceArgs:
    """``key`` and ``spec`` are the stack file's."""

    scope: Scope
    key: str
    spec: team.PersistentResourceSpec


class PersistentResource(pulumi.ComponentResource):
    """A Vertex AI persistent resource of one pool of machines; jobs name it by ``resource_id``, and their own account.

    Any change but to labels and the number of machines replaces it, which cancels the jobs that run on it. A change of
    those two may be refused: pulumi-gcp 10.2 sends it in a form that the API does not offer (read in the provider's
    code, not tried). Google advises to make it anew every 30 days (Vertex AI documentation, read 2026-08).
    """

    resource_id: str
    resource_name: pulumi.Output[str]  # projects/*/locations/*/persistentResources/*

    def __init__(self, name: str, args: PersistentResourceArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:vertex:PersistentResource", name, {}, opts)
        scope, spec = args.scope, args.spec
        self.resource_id = persistent_resource_id(scope, args.key)
        resource = vertex.AiPersistentResource(
            f"{name}-persistent-resource",
            name=self.resource_id,
            display_name=self.resource_id,
            project=scope.project,
            location=spec.region,
            resource_pools=[resource_pool(spec)],
            resource_runtime_spec=_own_account(),
            labels=scope.labels,
            opts=pulumi.ResourceOptions(
                parent=self,
                # A replacement cancels the jobs on it, and its machines may not be had again.
                protect=scope.deletion_protection and spec.deletion_protection,
                # The name is fixed, and taken until the old resource is gone.
                delete_before_replace=True,
                # The provider gives up after 20 minutes, and GPU machines take longer.
                custom_timeouts=pulumi.CustomTimeouts(create="60m", update="60m", delete="60m"),
                # The autoscaler sets the number of machines, and writing our own would undo it.
                ignore_changes=[DRIFTING] if spec.max_replicas is not None else None,
            ),
        )
        self.resource_name = resource.id
        self.register_outputs({"resource_id": self.resource_id, "resource_name": self.resource_name})


def resource_pool(spec: team.PersistentResourceSpec) -> vertex.AiPersistentResourceResourcePoolArgs:
    """Return the one pool. A job must give the same machine and disk, so nothing is left to Vertex AI's defaults."""
    return vertex.AiPersistentResourceResourcePoolArgs(
        id=POOL_ID,
        machine_spec=machine_spec(spec.machine_type),
        replica_count=str(spec.replicas),
        autoscaling_spec=autoscaling_spec(spec),
        disk_spec=vertex.AiPersistentResourceResourcePoolDiskSpecArgs(
            boot_disk_type=spec.boot_disk.type, boot_disk_size_gb=spec.boot_disk.size_gb
        ),
    )


def machine_spec(machine_type: str) -> vertex.AiPersistentResourceResourcePoolMachineSpecArgs:
    """Return a machine; its GPUs are spelt out, TPUs follow from the machine type (and a pool may well refuse them)."""
    machine = MACHINE_TYPES[machine_type]
    support = machine.accelerator.vertex if machine.accelerator and machine.kind == "gpu" else None
    accelerator = support.accelerator_type if support else None
    return vertex.AiPersistentResourceResourcePoolMachineSpecArgs(
        machine_type=machine_type,
        accelerator_type=accelerator,
        accelerator_count=machine.chips if accelerator else None,
    )


def autoscaling_spec(
    spec: team.PersistentResourceSpec,
) -> vertex.AiPersistentResourceResourcePoolAutoscalingSpecArgs | None:
    """Return the bounds of autoscaling, as the texts that the API wants, or None where there is to be none."""
    if spec.max_replicas is None:
        return None
    return vertex.AiPersistentResourceResourcePoolAutoscalingSpecArgs(
        min_replica_count=str(spec.replicas), max_replica_count=str(spec.max_replicas)
    )


def _own_account() -> vertex.AiPersistentResourceResourceRuntimeSpecArgs:
    """Return the setting by which every job runs as its own service account, and not as Vertex AI's for all."""
    return vertex.AiPersistentResourceResourceRuntimeSpecArgs(
        service_account_spec=vertex.AiPersistentResourceResourceRuntimeSpecServiceAccountSpecArgs(
            enable_custom_service_account=True
        )
    )
