"""Network devices of VMs by DRANET, GKE's driver for dynamic resource allocation, and the claims of pods to them.

A pod names a ResourceClaimTemplate of its team's namespace, by which Kubernetes creates a claim for each pod. The
device classes are GKE's own, and so are the networks of the devices. Counts are exact: a pod waits for a VM with all
of its devices, rather than train over those that are left.
Sources: GKE docs, allocate network resources by using GKE managed DRANET (an excerpt, read 2026-11-29); Cluster Toolkit
1047080, gke-node-pool and the examples gke-a4x and gke-a4x-max-bm; GKE cluster-autoscaler 7d25050 (2026-08-21),
dranet.go, for the devices of each machine type. None of it was seen to run on GKE.
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
    """Yield the templates by which a team's pods claim network devices; ``name`` is the component's."""
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
