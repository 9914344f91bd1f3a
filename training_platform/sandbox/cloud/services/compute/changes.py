"""Compute Engine's methods that change one thing of a resource."""

from __future__ import annotations

from ipaddress import IPv4Network
from typing import Final

from training_platform.sandbox.cloud.requests.errors import ApiError
from training_platform.sandbox.cloud.resources import actions
from training_platform.sandbox.cloud.resources.model import Call, Handler, Json
from training_platform.sandbox.cloud.services.compute.networks import read_range
from training_platform.sandbox.cloud.state.cloud import Cloud
from training_platform.sandbox.cloud.state.store import Record
from training_platform.sandbox.cloud.state.work import Work


def _expand(cloud: Cloud, call: Call) -> Json:
    record = cloud.existing(call.name.removesuffix("/expandIpCidrRange"))
    old, new = IPv4Network(record.body["ipCidrRange"]), read_range(call.body.get("ipCidrRange", ""), "ipCidrRange")
    if not old.subnet_of(new):
        raise ApiError(400, "The new range must contain the old one.")
    record.body |= {"ipCidrRange": str(new), "fingerprint": actions.etag(cloud)}
    return _done(cloud, record, "expandIpCidrRange")


def _google_access(cloud: Cloud, call: Call) -> Json:
    record = cloud.existing(call.name.removesuffix("/setPrivateIpGoogleAccess"))
    record.body |= {
        "privateIpGoogleAccess": call.body.get("privateIpGoogleAccess", False),
        "fingerprint": actions.etag(cloud),
    }
    return _done(cloud, record, "setPrivateIpGoogleAccess")


def _set_labels(cloud: Cloud, call: Call) -> Json:
    record = cloud.existing(call.name.removesuffix("/setLabels"))
    actions.check_versions(record, call.body)
    record.body |= {"labels": call.body.get("labels", {}), "labelFingerprint": actions.etag(cloud)}
    return _done(cloud, record, "setLabels")


def fill_disk(_cloud: Cloud, _call: Call, record: Record, _old: Json) -> None:
    """Complete a disk: its type is answered as a link."""
    kind = record.body.get("type", "pd-standard").rpartition("/")[2]
    record.body["type"] = f"{record.body['zone']}/diskTypes/{kind}"


def _resize(cloud: Cloud, call: Call) -> Json:
    record = cloud.existing(call.name.removesuffix("/resize"))
    size = call.body.get("sizeGb", "0")
    if int(size) <= int(record.body["sizeGb"]):
        raise ApiError(
            400, f"New disk size '{size}' GB must be larger than existing size '{record.body['sizeGb']}' GB."
        )
    record.body["sizeGb"] = size
    return _done(cloud, record, "resizeDisk")


def _update_disk(cloud: Cloud, call: Call) -> Json:
    record = cloud.existing(call.name)
    record.body |= {key: value for key, value in call.body.items() if key != "name"}
    return _done(cloud, record, "updateDisk")


def _done(cloud: Cloud, record: Record, kind: str) -> Json:
    cloud.store.put(record)
    work = Work(
        style="compute",
        service="compute",
        project=record.project,
        target=record.name,
        type=kind,
        seconds=cloud.settings.seconds("compute.change"),
    )
    return cloud.operations.start(work)


HANDLERS: Final[dict[str, Handler]] = {
    "subnetworks.expandIpCidrRange": _expand,
    "subnetworks.setPrivateIpGoogleAccess": _google_access,
    "addresses.setLabels": _set_labels,
    "disks.resize": _resize,
    "disks.setLabels": _set_labels,
    "disks.update": _update_disk,
    "globalAddresses.setLabels": _set_labels,
}
