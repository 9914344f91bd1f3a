"""Queued provisioning as Kueue drives it: an AdmissionCheck and a ProvisioningRequestConfig for each queued flavor.

A job that Kueue has quota for waits on the check until GKE has all of its VMs; without one, nothing would ever scale a
queued pool. Both objects are called after the flavor.
Source: Kueue v0.19.2, ProvisioningRequest admission check; GKE docs, flex-start with queued provisioning; xpk 367c838
for the node selector, all read 2026.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from training_platform.config.pools import Flavor

CONTROLLER = "kueue.x-k8s.io/provisioning-request"  # of Kueue; a check can never be given another
CLASS = "queued-provisioning.gke.io"  # the only one that GKE's autoscaler serves
CONFIG = "ProvisioningRequestConfig"
# On a job: Kueue hands it to GKE as the request's parameter.
MAX_RUN_ANNOTATION = "provreq.kueue.x-k8s.io/maxRunDurationSeconds"
# GKE labels the nodes of one request by it, so that a job gets those that were made for it.
_REQUEST_LABEL = {
    "key": "autoscaling.gke.io/provisioning-request",
    "valueFromProvisioningClassDetail": "ResizeRequestName",
}


def admission_check(flavor: Flavor) -> dict[str, Any]:
    """Return the spec of a flavor's AdmissionCheck."""
    group = "kueue.x-k8s.io"
    return {"controllerName": CONTROLLER, "parameters": {"apiGroup": group, "kind": CONFIG, "name": flavor.name}}


def provisioning_request_config(flavor: Flavor) -> dict[str, Any]:
    """Return the spec of a flavor's ProvisioningRequestConfig.

    It has no parameters: where one differs from a job's annotation, Kueue deletes and makes the request at each pass
    (v0.19.2, provReqSyncedWithConfig; tried with its controller), so the longest run stands on the job alone.
    Kueue tries a failed request again three times, after 1, 2 and 4 minutes.
    """
    return {
        "provisioningClassName": CLASS,
        "managedResources": [flavor.accelerator.resource],  # a job that asks for none of it needs no nodes of ours
        "podSetUpdates": {"nodeSelector": [dict(_REQUEST_LABEL)]},
        "retryStrategy": {"backoffLimitCount": 3, "backoffBaseSeconds": 60, "backoffMaxSeconds": 1800},
    }


def longest_run_hours(flavor: Flavor) -> int | None:
    """Return the longest life that every pool of a flavor gives its VMs; None where no pool says one."""
    return min((pool.spec.max_run_hours for pool in flavor.pools if pool.spec.max_run_hours), default=None)


def admission_checks(flavors: Iterable[Flavor]) -> dict[str, Any]:
    """Return the part of a ClusterQueue that holds its jobs back until their nodes are there, by flavor."""
    checks = [{"name": flavor.name, "onFlavors": [flavor.name]} for flavor in flavors if flavor.by_request]
    return {"admissionChecksStrategy": {"admissionChecks": checks}} if checks else {}
