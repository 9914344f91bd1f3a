"""A model server whose replicas are of several VMs, as a LeaderWorkerSet: a group of pods for each replica.

The first pod of a group answers requests. The others find it by ``LWS_LEADER_ADDRESS``, which the controller sets,
beside ``LWS_GROUP_SIZE``, ``LWS_WORKER_INDEX`` and what the TPU runtime reads of its slice. Kueue admits whole groups.
Sources: kubernetes-sigs/lws v0.10.0, api/leaderworkerset/v1 and pkg/utils; kubernetes-sigs/kueue v0.19.2,
pkg/controller/jobs/leaderworkerset; read 2026-11-22.
"""

from __future__ import annotations

from typing import Any

from training_platform.config.model.node_pool import SLICE_LEVELS
from training_platform.config.model.workloads import ServerSpec
from training_platform.config.pools import Flavor
from training_platform.resources.scope import Scope
from training_platform.resources.serving.server import SERVER_LABEL, pod, slice_vms, vms_of

OPERATOR = "leader-worker-set"
SIZE = "spec.leaderWorkerTemplate.size"
_TEMPLATES = ("leaderTemplate", "workerTemplate")
# What Kueue counts of a group cannot change while it is in a queue: its webhook refuses that. Source: as above,
# leaderworkerset_webhook.go, and pkg/util/pod, SpecShape.
REPLACED = [
    SIZE,
    *(
        f"spec.leaderWorkerTemplate.{template}.spec.{field}"
        for template in _TEMPLATES
        for field in ("nodeSelector", "tolerations", "containers[0].resources")
    ),
]
# A group has a node pool, which is one slice, for itself.
_EXCLUSIVE = {"leaderworkerset.sigs.k8s.io/exclusive-topology": SLICE_LEVELS[0]}
_GROUP, _REQUIRED, _PREFERRED = (
    f"kueue.x-k8s.io/podset-{name}" for name in ("group-name", "required-topology", "preferred-topology")
)


def leader_worker_set(name: str, server: ServerSpec, flavor: Flavor, scope: Scope) -> dict[str, Any]:
    """Return the spec of a LeaderWorkerSet; how many groups it has is the autoscaler's to say."""
    rolling = {"maxSurge": 0, "maxUnavailable": 1}  # no group more than the most that the share is counted for
    placed = {"annotations": placement} if (placement := _placement(flavor)) else {}
    worker = {"metadata": placed} if placed else {}
    return {
        "leaderWorkerTemplate": {
            "size": vms_of(server, flavor),
            "restartPolicy": "RecreateGroupOnPodRestart",  # a model on several VMs does not go on without one
            "leaderTemplate": {
                "metadata": {"labels": {SERVER_LABEL: name}, **placed},
                "spec": pod(server, flavor, scope),
            },
            "workerTemplate": {**worker, "spec": pod(server, flavor, scope, answers=False)},
        },
        "rolloutStrategy": {"type": "RollingUpdate", "rollingUpdateConfiguration": rolling},
        "startupPolicy": "LeaderCreated",
    }


def set_annotations(flavor: Flavor) -> dict[str, str]:
    """Return what the controller reads beside the spec: where Kueue does not place pods, a group takes a slice."""
    return dict(_EXCLUSIVE) if slice_vms(flavor) > 1 and not flavor.topology_levels else {}


def _placement(flavor: Flavor) -> dict[str, str]:
    """Return what asks Kueue to place a group's pods together: on one slice, or as near as they go."""
    if not flavor.topology_levels:
        return {}
    if flavor.topology_levels == SLICE_LEVELS:
        return {_GROUP: "replica", _REQUIRED: SLICE_LEVELS[0]}
    *_, narrowest, _ = flavor.topology_levels
    return {_GROUP: "replica", _PREFERRED: narrowest}
