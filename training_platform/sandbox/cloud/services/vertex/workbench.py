"""Workbench instances: VMs with JupyterLab. Disks only grow; a machine type changes while the VM is stopped."""

from __future__ import annotations

from collections.abc import Callable

from training_platform.sandbox.cloud.requests.errors import ApiError, failed_precondition, not_found
from training_platform.sandbox.cloud.resources.model import Call, Json, Kind, Service, operation_metadata
from training_platform.sandbox.cloud.state.cloud import Cloud
from training_platform.sandbox.cloud.state.store import Record
from training_platform.sandbox.cloud.state.work import Change, Work


def _fill(cloud: Cloud, call: Call, record: Record, old: Json) -> None:
    setup = record.body.setdefault("gceSetup", {})
    if old:
        before = old["gceSetup"].get("machineType")
        if setup.get("machineType") != before and old["state"] != "STOPPED":
            raise failed_precondition(f"The machine type of '{call.path}' can be changed once it is STOPPED.")
        return
    for interface in setup.get("networkInterfaces", ()):
        name = interface.get("subnet", "").partition("projects/")[2]
        if name and cloud.store.get(f"compute/projects/{name}") is None:
            raise not_found(f"projects/{name}")
    if len(record.body.get("instanceOwners", ())) > 1:
        raise ApiError(400, "An instance has one owner at most")
    record.body |= {
        "id": f"{cloud.store.serial():019d}",
        "proxyUri": f"{record.id}-dot-{call.location}.notebooks.example.com", "healthState": "HEALTHY",
    }  # fmt: skip


def _turned(passing: str, state: str) -> Callable[[Cloud, Call], Json]:
    """Return the handler that brings an instance into a state, through another."""

    def turn(cloud: Cloud, call: Call) -> Json:
        record = cloud.existing(call.name)
        record.body["state"] = passing
        cloud.store.put(record)
        return _start(cloud, call, record, {"state": state})

    return turn


def _resize(cloud: Cloud, call: Call) -> Json:
    record = cloud.existing(call.name)
    setup = record.body["gceSetup"]
    boot = "bootDisk" in call.body
    disk = setup["bootDisk"] if boot else setup["dataDisks"][0]
    before, after = int(disk["diskSizeGb"]), int(call.body["bootDisk" if boot else "dataDisk"]["diskSizeGb"])
    if after < before:
        raise ApiError(400, f"A disk cannot be made smaller, from {before} to {after} GB")
    disk["diskSizeGb"] = str(after)
    cloud.store.put(record)
    return _start(cloud, call, record, {})


def _start(cloud: Cloud, call: Call, record: Record, fields: Json) -> Json:
    work = Work(
        style="longrunning", service=call.service, project=call.project, target=record.name,
        type=call.method.action, seconds=cloud.settings.seconds("notebooks.instances"),
        changes=[Change(target=record.name, fields=fields)], schema="google.cloud.notebooks.v2.Instance",
        metadata=_METADATA(cloud, call, KIND, record),
    )  # fmt: skip
    return cloud.operations.start(work)


_METADATA = operation_metadata("google.cloud.notebooks.{version}.OperationMetadata")
KIND = Kind(
    collection="instances",
    schema="Instance",
    style="longrunning",
    id_in="instanceId",
    states=("state", "PROVISIONING", "ACTIVE", "ACTIVE", "DELETED"),
    fill=_fill,
    protection="enableDeletionProtection",
)
SERVICE = Service(
    name="notebooks",
    package="google.cloud.notebooks",
    metadata=_METADATA,
    kinds=(KIND,),
    handlers={
        "instances.start": _turned("STARTING", "ACTIVE"),
        "instances.stop": _turned("STOPPING", "STOPPED"),
        "instances.resizeDisk": _resize,
    },
)
