"""Vertex AI: persistent resources, TensorBoards, and training jobs."""

from __future__ import annotations

from typing import Final

from training_platform.sandbox.cloud.requests.errors import ApiError, failed_precondition
from training_platform.sandbox.cloud.resources.actions import patch
from training_platform.sandbox.cloud.resources.model import Call, Json, Kind, Service
from training_platform.sandbox.cloud.services.vertex import jobs
from training_platform.sandbox.cloud.services.vertex.names import name_and_date
from training_platform.sandbox.cloud.services.vertex.pipelines import settle
from training_platform.sandbox.cloud.state.cloud import Cloud
from training_platform.sandbox.cloud.state.store import Record
from training_platform.sandbox.cloud.state.work import Change, Work


def _named(cloud: Cloud, _call: Call, record: Record, old: Json) -> None:
    name_and_date(cloud, record, old)


def _persistent_resource(cloud: Cloud, _call: Call, record: Record, old: Json) -> None:
    name_and_date(cloud, record, old)
    pools = record.body.get("resourcePools")
    if not pools:
        raise ApiError(400, "resource_pools is required")
    for index, pool in enumerate(pools):
        pool.setdefault("id", f"pool-{index}")
        pool["usedReplicaCount"] = pool.get("usedReplicaCount", "0")
        if "autoscalingSpec" in pool:
            pool.setdefault("replicaCount", pool["autoscalingSpec"].get("minReplicaCount", "1"))
    if not old:
        record.body["startTime"] = cloud.time()


def _resize(cloud: Cloud, call: Call) -> Json:
    """Change the number of VMs of a resource's pools; the mask is required, and there is no PUT.

    Source: persistentResources.patch of the discovery document of google-api-python-client 2.202, read 2026-11-22.
    """
    if not call.parameters.get("updateMask"):
        raise ApiError(400, "update_mask is required")
    return patch(cloud, _PERSISTENT_RESOURCES, call)


def _tensorboard(cloud: Cloud, _call: Call, record: Record, old: Json) -> None:
    name_and_date(cloud, record, old)
    if not record.body.get("displayName"):
        raise ApiError(400, "display_name is required")
    if not old:
        record.body["blobStoragePathPrefix"] = f"cloud-ai-platform-{record.id[-8:]}"


def _reboot(cloud: Cloud, call: Call) -> Json:
    """Restart the VMs of a resource that no job uses; pools that scale come back at their fewest.

    Source: Vertex AI docs, reboot a persistent resource; facts read 2026-08-22.
    """
    record = cloud.existing(call.name)
    state, place = record.body["state"], record.name.rpartition("/persistentResources/")[0]
    if state not in ("RUNNING", "ERROR"):
        raise failed_precondition(f"The persistent resource {call.path} is {state}.")
    jobs_there = (each for each in cloud.store.all() if each.name.startswith(f"{place}/") and "job" in each.meta)
    if any(each.meta["job"]["resource"] == record.id for each in jobs_there):
        raise failed_precondition(f"The persistent resource {call.path} has running jobs.")
    for pool in record.body["resourcePools"]:
        if "autoscalingSpec" in pool:
            pool["replicaCount"] = pool["autoscalingSpec"]["minReplicaCount"]
    record.body["state"] = "REBOOTING"
    cloud.store.put(record)
    name = f"google.cloud.aiplatform.{call.api.version}.RebootPersistentResourceOperationMetadata"
    work = Work(
        style="longrunning", service=call.service, project=call.project, target=record.name, type="reboot",
        seconds=cloud.settings.seconds("aiplatform.persistentResources"),
        changes=[Change(target=record.name, fields={"state": "RUNNING"})],
        schema=f"google.cloud.aiplatform.{call.api.version}.PersistentResource",
        metadata={
            "@type": f"type.googleapis.com/{name}",
            "genericMetadata": {"createTime": cloud.time(), "updateTime": cloud.time()},
        },
    )  # fmt: skip
    return cloud.operations.start(work)


_VERBS: Final = {"create": "Create", "patch": "Update", "update": "Update"}


def _metadata(cloud: Cloud, call: Call, kind: Kind, _record: Record) -> Json:
    verb = _VERBS.get(call.method.action)
    name = f"{verb}{kind.schema}OperationMetadata" if verb else "DeleteOperationMetadata"
    return {
        "@type": f"type.googleapis.com/google.cloud.aiplatform.{call.api.version}.{name}",
        "genericMetadata": {"createTime": cloud.time(), "updateTime": cloud.time()},
    }


_PERSISTENT_RESOURCES = Kind(
    collection="persistentResources",
    schema="PersistentResource",
    style="longrunning",
    id_in="persistentResourceId",
    states=("state", "PROVISIONING", "RUNNING", "UPDATING", "STOPPING"),
    fill=_persistent_resource,
)
SERVICE = Service(
    name="aiplatform",
    package="google.cloud.aiplatform",
    metadata=_metadata,
    kinds=(
        _PERSISTENT_RESOURCES,
        Kind(
            collection="tensorboards",
            schema="Tensorboard",
            style="longrunning",
            id_in="",
            fill=_tensorboard,
            etag="etag",
        ),
        Kind(
            collection="metadataStores",
            schema="MetadataStore",
            style="longrunning",
            id_in="metadataStoreId",
            id_form=r"[a-z_][a-z0-9_]{0,59}",
            fill=_named,
        ),
        *jobs.KINDS,
    ),
    handlers={**jobs.HANDLERS, "persistentResources.patch": _resize, "persistentResources.reboot": _reboot},
    settle=settle,
)
