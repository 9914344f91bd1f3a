"""A small program that is not ours, as the engine would register it, and a way to change one input of it.

It breaks no rule. Inputs are spelled as pulumi-gcp and pulumi-kubernetes spell them, under names of its own.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from training_platform.config.expansion import SYSTEM_TAINT
from training_platform.config.reading.finding import Finding
from training_platform.resources.stack_resource import StackResource
from training_platform.rules import RULES, evaluate, program, views_of_plan

DROP = object()  # instead of a value: the input, or the whole resource, is not there
PROJECT = {"project": "example-train"}
LABELS = {"environment": "dev"}
CLOUD_PLATFORM = "https://www.googleapis.com/auth/cloud-platform"
EMAIL = "gke-nodes@example-train.iam.gserviceaccount.com"
NODE = {
    "oauthScopes": [CLOUD_PLATFORM],
    "serviceAccount": EMAIL,
    "resourceLabels": LABELS,
    "imageType": "COS_CONTAINERD",
    "gvnic": {"enabled": True},
    "gcfsConfig": {"enabled": True},
    "workloadMetadataConfig": {"mode": "GKE_METADATA"},
    "reservationAffinity": {"consumeReservationType": "NO_RESERVATION"},
    "bootDisk": {"sizeGb": 100.0, "diskType": "pd-balanced"},
}
POOL = {
    **PROJECT,
    "cluster": "training",
    "location": "us-central1",
    "nodeLocations": ["us-central1-a"],
    "initialNodeCount": 0.0,
    "autoscaling": {"minNodeCount": 0.0, "maxNodeCount": 4.0, "locationPolicy": "ANY"},
    "maxPodsPerNode": 16.0,
    "management": {"autoRepair": True, "autoUpgrade": True},
    "upgradeSettings": {"strategy": "SURGE", "maxSurge": 0.0, "maxUnavailable": 1.0},
    "networkConfig": {"enablePrivateNodes": True},
}


LIMITS = [("cpu", 10_000), ("memory", 100_000), ("nvidia-tesla-a100", 64), ("tpu-v5-lite-podslice", 64)]
Resources = Mapping[str, tuple[str, dict[str, Any]]]
RESOURCES: Resources = {
    "net": ("gcp:compute/network:Network", {**PROJECT, "name": "net", "mtu": 8896.0}),
    "subnet": (
        "gcp:compute/subnetwork:Subnetwork",
        {
            **PROJECT, "name": "nodes", "network": "net", "region": "us-central1", "ipCidrRange": "10.0.0.0/20",
            "secondaryIpRanges": [{"rangeName": "pods", "ipCidrRange": "10.64.0.0/16"}],
        },
    ),
    "gpu-subnet": (
        "gcp:compute/subnetwork:Subnetwork",
        {**PROJECT, "name": "fabric", "network": "fast", "region": "us-central1", "ipCidrRange": "192.168.0.0/24"},
    ),
    "nat": (
        "gcp:compute/routerNat:RouterNat",
        {
            **PROJECT, "region": "us-central1", "router": "edge",
            "sourceSubnetworkIpRangesToNat": "ALL_SUBNETWORKS_ALL_IP_RANGES",
        },
    ),
    "wall": (
        "gcp:compute/firewall:Firewall",
        {**PROJECT, "network": "net", "sourceRanges": ["10.0.0.0/28"],
         "allows": [{"protocol": "tcp", "ports": ["9443"]}]},
    ),
    "nodes": ("gcp:serviceaccount/account:Account", {**PROJECT, "accountId": "gke-nodes"}),
    "node-role": (
        "gcp:projects/iAMMember:IAMMember",
        {**PROJECT, "role": "roles/container.defaultNodeServiceAccount", "member": f"serviceAccount:{EMAIL}"},
    ),
    "image-role": (
        "gcp:projects/iAMMember:IAMMember",
        {**PROJECT, "role": "roles/artifactregistry.reader", "member": f"serviceAccount:{EMAIL}"},
    ),
    "cluster": (
        "gcp:container/cluster:Cluster",
        {
            **PROJECT,
            "name": "training",
            "location": "us-central1",
            "network": "net",
            "subnetwork": "nodes",
            "ipAllocationPolicy": {"clusterSecondaryRangeName": "pods"},
            "networkingMode": "VPC_NATIVE",
            "datapathProvider": "ADVANCED_DATAPATH",
            "enableMultiNetworking": True,
            "releaseChannel": {"channel": "REGULAR"},
            "removeDefaultNodePool": True,
            "initialNodeCount": 1.0,
            "deletionProtection": True,
            "resourceLabels": LABELS,
            "privateClusterConfig": {"enablePrivateNodes": True, "enablePrivateEndpoint": True},
            "workloadIdentityConfig": {"workloadPool": "example-train.svc.id.goog"},
            "maintenancePolicy": {
                "recurringWindow": {
                    "startTime": "2026-01-03T06:00:00Z", "endTime": "2026-01-03T18:00:00Z",
                    "recurrence": "FREQ=WEEKLY;BYDAY=SA,SU",
                },
                "maintenanceExclusions": [
                    {
                        "exclusionName": "deadline", "startTime": "2026-03-01T00:00:00Z",
                        "endTime": "2026-03-31T00:00:00Z", "exclusionOptions": {"scope": "NO_UPGRADES"},
                    }
                ],
            },
            "clusterAutoscaling": {
                "enabled": True,
                "resourceLimits": [{"resourceType": name, "maximum": maximum} for name, maximum in LIMITS],
                "autoProvisioningLocations": ["us-central1-a"],
                "autoProvisioningDefaults": {
                    "diskType": "pd-balanced", "diskSize": 100.0, "serviceAccount": "nodes@p.iam.gserviceaccount.com",
                    "oauthScopes": ["https://www.googleapis.com/auth/cloud-platform"],
                },
            },
        },
    ),
    "system": (
        "gcp:container/nodePool:NodePool",
        {
            **POOL, "name": "system", "nodeLocations": None, "initialNodeCount": 1.0,
            "autoscaling": {"totalMinNodeCount": 2.0, "totalMaxNodeCount": 6.0},
            "upgradeSettings": {"strategy": "SURGE", "maxSurge": 1.0, "maxUnavailable": 0.0},
            "nodeConfig": {
                **NODE, "machineType": "e2-standard-4",
                "taints": [{"key": SYSTEM_TAINT[0], "value": SYSTEM_TAINT[1], "effect": "NO_SCHEDULE"}],
            },
        },
    ),
    "gpu": (
        "gcp:container/nodePool:NodePool",
        {
            **POOL,
            "name": "a100",
            "nodeConfig": {
                **NODE,
                "machineType": "a2-highgpu-8g",
                "labels": {"cloud.google.com/compute-class": "a100"},
                "taints": [{"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"}],
                "guestAccelerators": [
                    {
                        "type": "nvidia-tesla-a100", "count": 8.0,
                        "gpuDriverInstallationConfig": {"gpuDriverVersion": "DEFAULT"},
                    }
                ],
            },
        },
    ),
    "slice": (
        "gcp:container/nodePool:NodePool",
        {
            **POOL,
            "name": "v5e",
            "autoscaling": {"minNodeCount": 0.0, "maxNodeCount": 8.0, "locationPolicy": "ANY"},
            "placementPolicy": {"type": "COMPACT", "tpuTopology": "4x8"},
            "nodeConfig": {**NODE, "machineType": "ct5lp-hightpu-4t", "labels": {"training-platform/flavor": "v5e"}},
        },
    ),
    "reserved": (
        "gcp:compute/reservation:Reservation",
        {
            **PROJECT, "name": "training", "zone": "us-central1-a", "specificReservationRequired": True,
            "specificReservation": {"count": 4.0, "instanceProperties": {"machineType": "a2-highgpu-8g"}},
        },
    ),
    "policy": (
        "gcp:compute/resourcePolicy:ResourcePolicy",
        {
            **PROJECT, "name": "cubes", "region": "us-central1",
            "workloadPolicy": {"type": "HIGH_THROUGHPUT", "acceleratorTopology": "4x4x4"},
        },
    ),
    "files": (
        "gcp:filestore/instance:Instance",
        {
            **PROJECT, "tier": "ZONAL", "location": "us-central1-a", "protocol": "NFS_V3", "labels": LABELS,
            "deletionProtectionEnabled": True, "fileShares": {"name": "home", "capacityGb": 1024.0},
            "networks": [
                {
                    "network": "net", "modes": ["MODE_IPV4"], "connectMode": "DIRECT_PEERING",
                    "reservedIpRange": "10.2.0.0/26",
                }
            ],
            "performanceConfig": {"iopsPerTb": {"maxIopsPerTb": 4000.0}},
        },
    ),
    "images": (
        "gcp:artifactregistry/repository:Repository",
        {**PROJECT, "location": "us", "repositoryId": "images", "format": "DOCKER", "labels": LABELS},
    ),
    "bucket": ("gcp:storage/bucket:Bucket", {**PROJECT, "location": "us-central1", "labels": LABELS}),
    "vm": (
        "gcp:compute/instance:Instance",
        {
            **PROJECT, "networkInterfaces": [{"network": "net"}], "labels": LABELS, "machineType": "e2-standard-4",
            "bootDisk": {"initializeParams": {"image": "debian-cloud/debian-12"}},
        },
    ),
    "tuning": (
        "gcp:vertex/aiPersistentResource:AiPersistentResource",
        {
            **PROJECT, "name": "tuning", "location": "us-central1", "labels": LABELS,
            "resourcePools": [
                {
                    "machineSpec": {
                        "machineType": "a2-highgpu-1g", "acceleratorType": "NVIDIA_TESLA_A100", "acceleratorCount": 1.0,
                    },
                    "replicaCount": "1", "autoscalingSpec": {"minReplicaCount": "1", "maxReplicaCount": "4"},
                    "diskSpec": {"bootDiskType": "pd-ssd", "bootDiskSizeGb": 100.0},
                }
            ],
        },
    ),
    "class": (
        "kubernetes:storage.k8s.io/v1:StorageClass",
        {
            "metadata": {"name": "shared"}, "provisioner": "filestore.csi.storage.gke.io",
            "parameters": {"tier": "zonal", "network": "net", "connect-mode": "DIRECT_PEERING"},
        },
    ),
    "claim": (
        "kubernetes:core/v1:PersistentVolumeClaim",
        {
            "spec": {
                "storageClassName": "shared", "accessModes": ["ReadWriteMany"],
                "resources": {"requests": {"storage": "1Ti"}},
            }
        },
    ),
    "flavor": (
        "kubernetes:kueue.x-k8s.io/v1beta2:ResourceFlavor",
        {
            "metadata": {"name": "v5e"},
            "spec": {
                "nodeLabels": {
                    "cloud.google.com/gke-tpu-accelerator": "tpu-v5-lite-podslice",
                    "cloud.google.com/gke-tpu-topology": "4x8",
                },
                "tolerations": [{"key": "google.com/tpu", "operator": "Exists"}],
            },
        },
    ),
    "queue": (
        "kubernetes:kueue.x-k8s.io/v1beta2:ClusterQueue",
        {
            "metadata": {"name": "vision"},
            "spec": {
                "cohortName": "all",
                "resourceGroups": [
                    {
                        "coveredResources": ["google.com/tpu"],
                        "flavors": [
                            {
                                "name": "v5e",
                                "resources": [{"name": "google.com/tpu", "nominalQuota": "32", "lendingLimit": "32"}],
                            }
                        ],
                    }
                ],
            },
        },
    ),
    "order": (
        "kubernetes:cloud.google.com/v1:ComputeClass",
        {
            "metadata": {"name": "a100"},
            "spec": {
                "nodePoolAutoCreation": {"enabled": True},
                "priorities": [
                    {"nodepools": ["a100"]},
                    {
                        "machineType": "a2-highgpu-8g", "gpu": {"type": "nvidia-tesla-a100", "count": 8.0},
                        "spot": True, "reservations": {"affinity": "None"},
                    },
                ],
            },
        },
    ),
}  # fmt: skip


def found(*changes: Mapping[str, Any], rule: str | None = None) -> list[Finding]:
    """Return what one rule, or all, find in the program after changes, such as ``gpu.nodeConfig.spot`` to its value.

    A number in a path is a place in a list. Its environment ``dev`` is production, unless ``production`` is changed.
    """
    production = next((change["production"] for change in reversed(changes) if "production" in change), True)
    views = views_of_plan(planned(*changes))
    whole = program(views, stack="dev", environment="dev", team=None, production=production)
    return evaluate(whole, [RULES[rule]] if rule else None)


def planned(*changes: Mapping[str, Any]) -> list[StackResource]:
    """Return the resources of the program after changes."""
    resources = {
        name: copy.deepcopy(resource) for name, resource in RESOURCES.items()
    }  # each by itself: pools share parts
    for path, value in (item for change in changes for item in change.items()):
        name, *parts = path.split(".")
        if parts:
            _set(resources[name][1], parts, value)
        elif value is DROP:
            del resources[name]
        elif name != "production":
            resources[name] = copy.deepcopy(value)
    options = {"deleteBeforeReplace": True, "ignoreChanges": ["initialNodeCount"]}
    return [
        StackResource(
            stack="dev", type=kind, name=name, inputs={**inputs}, options={**options, **inputs.pop("options", {})}
        )
        for name, (kind, inputs) in resources.items()
    ]


def _set(inputs: Any, parts: list[str], value: Any) -> None:
    for part in parts[:-1]:
        inputs = inputs[int(part)] if isinstance(inputs, list) else inputs.setdefault(part, {})
    key: Any = int(parts[-1]) if isinstance(inputs, list) else parts[-1]
    if value is DROP:
        del inputs[key]
    else:
        inputs[key] = copy.deepcopy(value)
