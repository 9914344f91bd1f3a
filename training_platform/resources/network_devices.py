"""Network devices of VMs, and the ResourceClaims with which pods request them from GKE's DRANET.

DRANET is GKE's driver for dynamic resource allocation. A pod names a ResourceClaimTemplate in its team's namespace,
from which Kubernetes creates a claim for each pod. The device classes and the networks of the devices are GKE's own.
Counts are exact: a pod waits for a VM on which all devices are free instead of training with fewer devices.

Sources: GKE docs, allocate network resources by using GKE managed DRANET (an excerpt, read 2026-11-29); Cluster Toolkit
1047080, gke-node-pool and the examples gke-a4x and gke-a4x-max-bm; GKE cluster-autoscaler 7d25050 (2026-08-21),
dranet.go, for the devices of each machine type. None of this was tested on GKE.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from training_platform.catalog import MACHINE_TYPES
from training_platform.config.expansion import Flavor
from training_platform.resources.kubernetes_objects import kubernetes_object, object_type
from training_platform.resources.plan import Resource
from training_platform.resources.scope import Scope

API_VERSION = "resource.k8s.io/v1"
CLAIM_TEMPLATE = object_type(API_VERSION, "ResourceClaimTemplate")
DEVICE_CLASSES = sorted({row.network_devices.device_class for row in MACHINE_TYPES.values() if row.network_devices})


def claim_templates(name: str, flavors: Iterable[Flavor], scope: Scope, namespace: str) -> Iterator[Resource]:
    """Yield the ResourceClaimTemplates for network devices that a team's pods use; ``name`` is the component's name."""
    pools = (pool for flavor in flavors for pool in flavor.pools)
    by_name = {pool.network_devices.template: pool.network_devices for pool in pools if pool.network_devices}
    for template, devices in sorted(by_name.items()):
        exactly = {
            "deviceClassName": devices.device_class,
            "allocationMode": "ExactCount",
            "count": devices.count,
        }
        fields = {"spec": {"spec": {"devices": {"requests": [{"name": "devices", "exactly": exactly}]}}}}
        yield kubernetes_object(CLAIM_TEMPLATE, f"{name}-{template}", scope, template, fields, namespace=namespace)
