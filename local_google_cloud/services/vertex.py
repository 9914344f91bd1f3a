"""Vertex AI: persistent resources, TensorBoards and training jobs."""

from __future__ import annotations

from typing import Final

from local_google_cloud.requests.errors import Refusal, failed_precondition
from local_google_cloud.resources.actions import patch, start_operation
from local_google_cloud.resources.resource_kinds import Call, ResourceKind, Service
from local_google_cloud.services import vertex_jobs
from local_google_cloud.services.vertex_jobs import name_and_date
from local_google_cloud.state.cloud import Cloud
from local_google_cloud.state.operation import StateChange
from local_google_cloud.state.store import Record
from training_platform.catalog.types import Json

# Persistent resources


def _fill_persistent_resource(cloud: Cloud, _call: Call, record: Record, old: Json) -> None:
    name_and_date(cloud, record, old)
    pools = record.body.get("resourcePools")
    if not pools:
        raise Refusal(400, "resource_pools is required")
    for index, pool in enumerate(pools):
        pool.setdefault("id", f"pool-{index}")
        pool["usedReplicaCount"] = pool.get("usedReplicaCount", "0")
        if "autoscalingSpec" in pool:
            pool.setdefault("replicaCount", pool["autoscalingSpec"].get("minReplicaCount", "1"))
    if not old:
        record.body["startTime"] = cloud.time()


def _patch_persistent_resource(cloud: Cloud, call: Call) -> Json:
    """Change the size of a persistent resource's pools. The mask is required, and there is no PUT method.

    Source: persistentResources.patch of the discovery document of google-api-python-client 2.202, read 2026-11-22.
    """
    if not call.parameters.get("updateMask"):
        raise Refusal(400, "update_mask is required")
    return patch(cloud, _PERSISTENT_RESOURCES, call)


def _reboot(cloud: Cloud, call: Call) -> Json:
    """Restart the VMs of a persistent resource that no job uses. Autoscaled pools restart with their minimum size.

    Source: Vertex AI docs, reboot a persistent resource; facts read 2026-08-22.
    """
    record = cloud.existing(call.name)
    state = record.body["state"]
    if state not in ("RUNNING", "ERROR"):
        raise failed_precondition(f"The persistent resource {call.path} is {state}.")
    if vertex_jobs.jobs_on(cloud, record):
        raise failed_precondition(f"The persistent resource {call.path} has running jobs.")
    for pool in record.body["resourcePools"]:
        if "autoscalingSpec" in pool:
            pool["replicaCount"] = pool["autoscalingSpec"]["minReplicaCount"]
    record.body["state"] = "REBOOTING"
    cloud.store.put(record)
    package = f"google.cloud.aiplatform.{call.api.version}"
    return start_operation(
        cloud,
        call,
        "persistentResources",
        schema=f"{package}.PersistentResource",
        changes=[StateChange(target=record.name, fields={"state": "RUNNING"})],
        metadata=_dated(cloud, f"{package}.RebootPersistentResourceOperationMetadata"),
    )


def _cancel_jobs(cloud: Cloud, _call: Call, record: Record) -> None:
    """Cancel the jobs on a persistent resource that is being deleted.

    Source: Vertex AI docs, delete a persistent resource, read 2026-11-28.
    """
    for job in vertex_jobs.jobs_on(cloud, record):
        vertex_jobs.cancel(cloud, job)


# TensorBoards


def _fill_tensorboard(cloud: Cloud, _call: Call, record: Record, old: Json) -> None:
    name_and_date(cloud, record, old)
    if not record.body.get("displayName"):
        raise Refusal(400, "display_name is required")
    if not old:
        record.body["blobStoragePathPrefix"] = f"cloud-ai-platform-{record.id[-8:]}"


def _metadata(cloud: Cloud, call: Call, kind: ResourceKind, _record: Record) -> Json:
    verb = {"create": "Create", "patch": "Update", "update": "Update"}.get(call.method.action)
    name = f"{verb}{kind.schema}OperationMetadata" if verb else "DeleteOperationMetadata"
    return _dated(cloud, f"google.cloud.aiplatform.{call.api.version}.{name}")


def _dated(cloud: Cloud, message: str) -> Json:
    now = cloud.time()
    return {"@type": f"type.googleapis.com/{message}", "genericMetadata": {"createTime": now, "updateTime": now}}


_PERSISTENT_RESOURCES: Final = ResourceKind(
    collection="persistentResources",
    schema="PersistentResource",
    style="longrunning",
    id_in="persistentResourceId",
    states=("state", "PROVISIONING", "RUNNING", "UPDATING", "STOPPING"),
    fill=_fill_persistent_resource,
    clean_up=_cancel_jobs,
)
VERTEX: Final = Service(
    name="aiplatform",
    package="google.cloud.aiplatform",
    metadata=_metadata,
    kinds=(
        _PERSISTENT_RESOURCES,
        ResourceKind(
            collection="tensorboards",
            schema="Tensorboard",
            style="longrunning",
            id_in="",
            fill=_fill_tensorboard,
            etag="etag",
        ),
        *vertex_jobs.KINDS,
    ),
    handlers={
        **vertex_jobs.HANDLERS,
        "persistentResources.patch": _patch_persistent_resource,
        "persistentResources.reboot": _reboot,
    },
    settle=vertex_jobs.settle,
)
