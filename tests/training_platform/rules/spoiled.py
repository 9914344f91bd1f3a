"""One value that breaks a rule, in a program that is not ours, and what the rule says then.

For each rule that breaks neither in the records of ``tests/violations`` nor, as those of whole objects, in tests of its
own: those have a wrong value and a right one already. A row is the rule's id, its severity, what is spoiled, and what
the program has besides: without the spoiled value the rule is silent. Paths are those of ``foreign.found``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from tests.training_platform.rules.foreign import DROP, LABELS, PROJECT


class Row(NamedTuple):
    """One rule, and the change that it finds."""

    rule: str
    severity: str
    spoiled: Mapping[str, Any]
    besides: Mapping[str, Any] = {}


def _gpus(kind: str, count: float) -> list[dict[str, Any]]:
    return [{"type": kind, "count": count, "gpuDriverInstallationConfig": {"gpuDriverVersion": "DEFAULT"}}]


KEY = "projects/example-keys/locations/us-central1/keyRings/training/cryptoKeys/data"
FILES_KEY = {"files.kmsKeyName": KEY, "files.performanceConfig": DROP}
MACHINE = "gpu.nodeConfig.machineType"
GUESTS = "gpu.nodeConfig.guestAccelerators"
PRIORITY = "order.spec.priorities.1"
SPOT = {"gpu.nodeConfig.spot": True}
FLEX = {"gpu.nodeConfig.flexStart": True, "gpu.management.autoRepair": False, "gpu.upgradeSettings": None}
H100 = {MACHINE: "a3-highgpu-8g", GUESTS: _gpus("nvidia-h100-80gb", 8.0)}
H200 = {MACHINE: "a3-ultragpu-8g", GUESTS: _gpus("nvidia-h200-141gb", 8.0)}
GB200 = {MACHINE: "a4x-highgpu-4g", GUESTS: _gpus("nvidia-gb200", 4.0)}
T4 = {MACHINE: "n1-standard-8", GUESTS: _gpus("nvidia-tesla-t4", 1.0)}
RESERVED = {
    "gpu.nodeConfig.reservationAffinity": {"consumeReservationType": "SPECIFIC_RESERVATION", "values": ["training"]}
}
IRONWOOD = {
    "slice.nodeConfig.machineType": "tpu7x-standard-4t",
    "slice.placementPolicy": {"type": "COMPACT", "tpuTopology": "4x4x4", "policyName": "cubes"},
    "slice.options": {"ignoreChanges": ["placementPolicy"], "deleteBeforeReplace": True},
}
SLICE_RESERVED = {
    "slice.nodeConfig.reservationAffinity": {"consumeReservationType": "SPECIFIC_RESERVATION", "values": ["training"]}
}
NICS = {"gpu.networkConfig.additionalNodeNetworkConfigs": [{"network": f"n{n}", "subnetwork": f"s{n}"} for n in "1234"]}
ROCE = "gcp:compute/network:Network", {
    **PROJECT, "name": "fast", "mtu": 8896.0, "networkProfile": "x/us-central1-a-vpc-roce",
}  # fmt: skip
FABRIC = {"gpu.networkConfig.additionalNodeNetworkConfigs": [{"network": "fast", "subnetwork": "fabric"}]}
EXPORTS = "files.fileShares.nfsExportOptions"
SCRATCH = "gcp:lustre/instance:Instance", {
    **PROJECT, "instanceId": "scratch", "location": "us-central1-a", "network": "net", "filesystem": "lustre",
    "capacityGib": "9000", "perUnitStorageThroughput": "1000", "labels": LABELS,
}  # fmt: skip
PRIVATE = "gcp:compute/globalAddress:GlobalAddress", {
    **PROJECT, "purpose": "VPC_PEERING", "address": "10.200.0.0", "prefixLength": 23.0, "labels": LABELS,
}  # fmt: skip
ATTACHMENT = "gcp:compute/networkAttachment:NetworkAttachment", {
    **PROJECT, "region": "us-central1", "connectionPreference": "ACCEPT_AUTOMATIC", "subnetworks": ["subnet"],
}  # fmt: skip
SNAPSHOT = {
    "before": ("gcp:filestore/snapshot:Snapshot", {**PROJECT, "instance": "files", "location": "us-central1-a"})
}
WATCH = {
    "watch": ("gcp:monitoring/alertPolicy:AlertPolicy", {
        **PROJECT, "displayName": "idle", "combiner": "OR", "conditions": [{"displayName": "idle"}],
        "notificationChannels": ["projects/example-train/notificationChannels/1"],
        "userLabels": {"environment": "dev"},
    }),
}  # fmt: skip
RESERVED_VMS = "kept.specificReservation.instanceProperties"
RESERVATION_OF_A100 = {"kept": ("gcp:compute/reservation:Reservation", {
    **PROJECT, "name": "kept", "zone": "us-central1-a", "specificReservation": {
        "count": 4.0, "instanceProperties": {"machineType": "a2-highgpu-1g"},
    },
})}  # fmt: skip
VM = {"vm": ("gcp:compute/instance:Instance", {
    **PROJECT, "zone": "us-central1-a", "machineType": "zones/us-central1-a/machineTypes/a2-highgpu-1g",
    "labels": LABELS, "networkInterfaces": [{"network": "net"}], "scheduling": {"onHostMaintenance": "TERMINATE"},
    "scratchDisks": [{"interface": "NVME"}] * 2,
})}  # fmt: skip
FLAVOR_OF_QUEUED = {
    "flavor.spec.nodeLabels": {"cloud.google.com/gke-queued": "true"},
    "flavor.spec.tolerations": [{"key": "cloud.google.com/gke-queued", "operator": "Exists"}],
    "queue.spec.admissionChecksStrategy": {"admissionChecks": [{"name": "requests"}]},
}
AUTO_ZONES = "cluster.clusterAutoscaling.autoProvisioningLocations"
DEFAULTS = "cluster.clusterAutoscaling.autoProvisioningDefaults"
LIMITS = "cluster.clusterAutoscaling.resourceLimits"

ROWS = [
    # addresses
    Row("pod-range", "warning", {"subnet.secondaryIpRanges.0.ipCidrRange": "10.64.0.0/24"}),
    Row("node-range", "error", {"subnet.ipCidrRange": "10.0.0.0/29"}),
    Row("ranges-overlap", "error", {"subnet.ipCidrRange": "10.64.16.0/20"}),
    Row("subnet-range", "error", {"subnet.ipCidrRange": "169.254.0.0/20"}),
    Row("attachment-range", "warning", {"subnet.ipCidrRange": "240.0.0.0/20"}, {"in": ATTACHMENT}),
    Row("max-run-on-demand", "warning", {"gpu.nodeConfig.maxRunDuration": "3600s"}),
    Row("public-range", "warning", {"subnet.ipCidrRange": "172.160.0.0/20"}),
    Row("public-access", "error", {"wall.sourceRanges": ["0.0.0.0/0"]}),
    Row("broad-role", "warning", {"node-role.role": "roles/editor"}),
    Row("webhook-firewall", "error", {"wall.allows.0.ports": ["8443"]}),
    Row("webhook-firewall", "warning", {"wall": DROP}, {"flavor": DROP, "queue": DROP}),
    Row("private-nodes-way-out", "warning", {"nat.region": "us-west4"}),
    Row("nat-addresses", "warning", {"nat.natIps": ["one"]}, {"nat.minPortsPerVm": 30_000.0}),
    Row("filestore-range-free", "error", {"files.networks.0.reservedIpRange": "10.0.1.0/24"}),
    Row("filestore-clients", "error", {"files.networks.0.reservedIpRange": "172.17.0.0/29"}),
    Row("images-streamed", "warning", {"images.location": "europe"}),
    Row("filestore-range-given", "warning", {"files.networks.0.reservedIpRange": DROP}),
    Row("filestore-region", "warning", {"files.location": "us-west4-a"}),
    Row("elsewhere-not-judged", "note", {"gpu.cluster": "another"}),
    Row("range-names", "error", {"cluster.ipAllocationPolicy.servicesSecondaryRangeName": "pods"}),
    Row("subnet-region", "error", {"subnet.region": "us-west4"}),
    # clusters
    Row("cluster-name", "error", {"cluster.name": "c" * 41}),
    Row("dataplane-policies", "error", {"cluster.networkPolicy": {"enabled": True}}),
    Row("default-pool-machine", "warning", {"cluster.location": "us-central2-b"}),
    Row("resource-tags", "error", {"cluster.nodeConfig": {"resourceManagerTags": dict.fromkeys("abcdef", "v")}}),
    Row("add-on-floor", "error", {"cluster.minMasterVersion": "1.34.1-gke.2541000"}, {
        "cluster.addonsConfig": {"sliceControllerConfig": {"enabled": True}},
    }),
    Row("pinned-version", "warning", {"cluster.minMasterVersion": "1.35.1-gke.1000000"}),
    # compute classes
    Row("compute-class-priority", "error", {f"{PRIORITY}.minCores": 8.0}),
    Row("compute-class-capacity", "error", {f"{PRIORITY}.machineType": "a4x-highgpu-4g"}),
    Row("compute-class-reservation", "error", {f"{PRIORITY}.reservations.affinity": "AnyBestEffort"}),
    Row("compute-class-pools", "error", {"gpu.nodeConfig.labels": {}}),
    Row("compute-class-floor", "error", {"cluster.minMasterVersion": "1.30.1-gke.1"}),
    Row("compute-class-limits", "error", {f"{PRIORITY}.gpu.type": "nvidia-b200"}),
    Row("compute-class-limits", "warning", {"cluster.clusterAutoscaling": DROP}),
    # documents
    Row("document-missing", "note", {"queue": ("kubernetes:kueue.x-k8s.io/v1beta9:ClusterQueue", {})}),
    # how VMs are had
    Row("tpu-reservation-name", "warning", {
        "slice.nodeConfig.reservationAffinity": {"consumeReservationType": "ANY_RESERVATION"},
    }),
    Row("capacity-offered", "error", {"gpu.nodeConfig.spot": DROP}, {**SPOT, **H200}),
    Row("capacity-on-request", "warning", {"slice.nodeConfig.spot": True}, IRONWOOD),
    Row("reservation-block", "error", {"gpu.nodeLocations": []}, {
        **RESERVED, "gpu.nodeConfig.reservationAffinity.values": ["training/reservationBlocks/b"],
    }),
    Row("reservation-blocks", "warning", {
        "gpu.nodeConfig.reservationAffinity.values": ["training/reservationBlocks/b"],
    }, RESERVED),
    Row("host-maintenance", "warning", {"gpu.nodeConfig.hostMaintenancePolicy": {"maintenanceInterval": "PERIODIC"}}),
    Row("reservation-fits", "error", {"reserved.zone": "us-central1-b"}, RESERVED),
    Row("reservation-room", "warning", {"reserved.specificReservation.count": 3.0}, RESERVED),
    Row("reservation-ahead", "warning", {"gpu.autoscaling.minNodeCount": 1.0}, {
        "gpu.nodeConfig.labels": {"training-platform/reserved-from": "2026-12-01"},
    }),
    # disks
    Row("boot-disk-settings", "error", {"gpu.nodeConfig.storagePools": ["pool"]}),
    Row("local-ssd-forms", "warning", {"gpu.nodeConfig.localSsdCount": 1.0}, {
        "gpu.nodeConfig.ephemeralStorageLocalSsdConfig": {"localSsdCount": 1.0},
    }),
    Row("vertex-boot-disk-written", "warning", {"tuning.resourcePools.0.diskSpec": DROP}),
    # networks between GPUs
    Row("gpudirect-interfaces", "warning", {f"{next(iter(NICS))}": next(iter(NICS.values()))[:3]}, {**H100, **NICS}),
    Row("gpudirect-own-networks", "warning", {f"{next(iter(NICS))}.3.network": "n1"}, {**H100, **NICS}),
    Row("accelerator-network-profile", "error", {"gpu.networkConfig.acceleratorNetworkProfile": "own"}, H200),
    Row("network-driver-label", "warning", {"gpu.nodeConfig.labels": {}}, {
        **H200, "gpu.networkConfig.acceleratorNetworkProfile": "auto",
        "gpu.nodeConfig.labels": {"cloud.google.com/gke-networking-dra-driver": "true"},
    }),
    Row("rdma-network", "error", {"fast": (ROCE[0], {**ROCE[1], "networkProfile": "x/us-central1-b-vpc-roce"})}, {
        **H200, **FABRIC, "gpu-subnet": DROP, "fast": ROCE,
    }),
    Row("rdma-firewall", "error", {"wall.network": "fast"}, {"fast": ROCE}),
    Row("rdma-metal-subnets", "error", {
        "fast": (ROCE[0], {**ROCE[1], "networkProfile": "us-central1-a-vpc-roce-metal"}),
    }, {"fast": ROCE}),
    Row("gpu-network-room", "error", {"gpu-subnet.ipCidrRange": "192.168.0.0/30"}, FABRIC),
    Row("gpu-network-range", "error", {"gpu-subnet.ipCidrRange": "10.64.1.0/24"}, FABRIC),
    # Filestore and volumes
    Row("filestore-tier", "warning", {"files.tier": "ZONALL"}),
    Row("filestore-shared-vpc", "error", {"files.networks.0.network": "projects/host/global/networks/net"}),
    Row("filestore-exports", "error", {EXPORTS: [{"ipRanges": ["10.0.0.0/20"]}, {"ipRanges": ["10.0.1.0/24"]}]}),
    Row("filestore-squashed-root", "warning", {EXPORTS: [{"ipRanges": ["10.0.0.0/20"], "squashMode": "ROOT_SQUASH"}]}),
    Row("filestore-protection", "warning", {"files.tier": "BASIC_HDD"}, {
        "files.performanceConfig": None, "files.deletionProtectionEnabled": True,
    }),
    Row("filestore-snapshot", "error", {"files.tier": "BASIC_HDD"}, {"files.performanceConfig": None, **SNAPSHOT}),
    Row("filestore-key", "error", {"files.tier": "BASIC_SSD", "files.fileShares.capacityGb": 2560.0}, FILES_KEY),
    Row("key-location", "error", {"tuning.encryptionSpec": {"kmsKeyName": KEY.replace("central1", "west4")}}),
    Row("disk-key-location", "error", {"gpu.nodeConfig.bootDiskKmsKey": KEY.replace("central1", "west4")}),
    Row("lustre-location", "error", {"scratch.location": "us-central1"}, {"scratch": SCRATCH}),
    Row("lustre-region", "warning", {"scratch.location": "us-west4-a"}, {"scratch": SCRATCH}),
    Row("lustre-addresses", "warning", {"private.prefixLength": 24.0}, {"scratch": SCRATCH, "private": PRIVATE}),
    Row("filestore-directory", "error", {"files.directoryServices": {"ldap": {}}}),
    Row("filestore-multishare", "error", {"class.parameters.multishare": "true"}),
    Row("built-in-class", "warning", {"claim.spec.storageClassName": "standard-rwx"}),
    # TPUs, GPUs, machines
    Row("placement-one-zone", "error", {"slice.upgradeSettings.strategy": "BLUE_GREEN"}),
    Row("tpu-flavor-topology", "error", {"slice.placementPolicy": DROP}),
    Row("flavor-accelerator", "error", {
        "flavor.spec.nodeLabels": {"cloud.google.com/gke-tpu-accelerator": "tpu-v5e-slice"},
    }),
    Row("machine-zone", "warning", {"slice.nodeLocations": ["us-central1-f"]}),
    Row("gpu-fixed-pair", "error", {f"{RESERVED_VMS}.guestAccelerators": [
        {"acceleratorType": "nvidia-l4", "acceleratorCount": 1.0},
    ]}, RESERVATION_OF_A100),
    Row("vm-local-ssds", "error", {f"{RESERVED_VMS}.localSsds": [{"diskSizeGb": 375.0}] * 3}, RESERVATION_OF_A100),
    Row("vm-local-ssds", "error", {"vm.scratchDisks": [{"interface": "NVME"}] * 3}, VM),
    Row("vm-migration", "error", {"vm.scheduling": {"onHostMaintenance": "MIGRATE"}}, VM),
    # Kueue
    Row("kueue-preemption", "error", {"queue.spec.preemption": {"borrowWithinCohort": {"policy": "LowerPriority"}}}),
    Row("topology-autoscaled", "warning", {"flavor.spec.topologyName": "slices"}),
    Row("queued-flavor-check", "error", {"queue.spec.admissionChecksStrategy": DROP}, FLAVOR_OF_QUEUED),
    Row("queued-flavor-toleration", "error", {"flavor.spec.tolerations": DROP}, FLAVOR_OF_QUEUED),
    Row("arm-flavor-toleration", "warning", {"flavor.spec.tolerations": DROP}, {
        "flavor.spec.nodeLabels": {"cloud.google.com/gke-accelerator": "nvidia-gb200"},
        "flavor.spec.tolerations": [{"key": "kubernetes.io/arch", "operator": "Exists"}],
    }),
    Row("flex-start-beside-reserved", "warning", FLEX, SLICE_RESERVED),
    # labels, addresses on the internet, protection
    Row("labels", "error", {"bucket.labels": {}}),
    Row("alerts-reach-nobody", "warning", {"watch.notificationChannels": DROP}, WATCH),
    Row("chart-version-untested", "warning", {"installed.version": "0.20.0"}, {
        "installed": ("kubernetes:helm.sh/v3:Release", {
            "name": "kueue", "chart": "oci://registry.k8s.io/kueue/charts/kueue", "version": "0.19.2",
            "namespace": "kueue-system",
        }),
    }),
    Row("releases-together", "error", {"trainer-release.version": "2.3.0"}, {
        f"{name}-release": ("kubernetes:helm.sh/v3:Release", {"name": name, "chart": chart, "version": version})
        for name, chart, version in (("kueue", "kueue", "0.19.2"), ("trainer", "kubeflow-trainer", "2.2.1"))
    }),
    Row("private-cluster", "error", {"cluster.privateClusterConfig": {"enablePrivateEndpoint": True}}),
    Row("private-nodes", "error", {"gpu.networkConfig.enablePrivateNodes": False}),
    Row("private-control-plane", "error", {"cluster.privateClusterConfig.enablePrivateEndpoint": False}),
    Row("no-external-address", "error", {"vm.networkInterfaces.0.accessConfigs": [{}]}),
    Row("production-said", "error", {"production": None}),
    Row("cluster-deletion-protection", "error", {"cluster.deletionProtection": False}),
    Row("filestore-deletion-protection", "error", {"files.deletionProtectionEnabled": DROP}),
    Row("bucket-force-destroy", "error", {"bucket.forceDestroy": True}),
    # auto-provisioning
    Row("auto-provisioning-room", "error", {f"{LIMITS}.3.maximum": 31}),
    Row("auto-provisioning-type", "warning", {f"{LIMITS}.3.resourceType": "tpu-v5e-slice"}),
    Row("alpha-cluster", "error", {"cluster.enableKubernetesAlpha": True, "cluster.releaseChannel.channel": "REGULAR"}),
    Row("cluster-needs", "warning", {
        "cluster.addonsConfig": {
            "statefulHaConfig": {"enabled": True}, "gcePersistentDiskCsiDriverConfig": {"enabled": False},
        },
    }),
    Row("e2-features", "warning", {"system.nodeConfig.linuxNodeConfig": {"hugepagesConfig": {"hugepageSize1g": 1.0}}}),
    Row("auto-provisioning-nodes", "warning", {f"{DEFAULTS}.serviceAccount": "default"}),
    Row("auto-provisioning-disk", "warning", {f"{DEFAULTS}.diskType": DROP}),
    Row("auto-provisioning-zones", "warning", {AUTO_ZONES: ["us-central1-f"]}),
    Row("auto-provisioning-zones", "error", {AUTO_ZONES: ["us-east1-d"]}),
    Row("auto-provisioning-upgrades", "error", {f"{DEFAULTS}.upgradeSettings.maxSurge": 21.0}, {
        f"{DEFAULTS}.upgradeSettings": {"maxSurge": 1.0},
    }),
    # nodes
    Row("node-huge-pages", "error", {"gpu.nodeConfig.linuxNodeConfig": {"hugepagesConfig": {"hugepageSize1g": 700.0}}}),
    Row("node-sysctls", "error", {"gpu.nodeConfig.linuxNodeConfig": {"sysctls": {"net.core.somaxconn": "127"}}}),
    Row("gpu-driver-image", "warning", {
        f"{GUESTS}.0.gpuDriverInstallationConfig.gpuDriverVersion": "LATEST",
    }, {"gpu.nodeConfig.imageType": "UBUNTU_CONTAINERD"}),
    Row("node-taints", "error", {
        "gpu.nodeConfig.taints": [{"key": "a", "effect": "NO_SCHEDULE"}, {"key": "a", "effect": "NO_SCHEDULE"}],
    }),
    Row("node-tags", "error", {"gpu.nodeConfig.resourceManagerTags": dict.fromkeys("abcdef", "v")}),
    Row("node-scopes", "warning", {"gpu.nodeConfig.oauthScopes": DROP}),
    Row("node-account", "warning", {"gpu.nodeConfig.serviceAccount": DROP}),
    Row("graceful-shutdown", "error", {"gpu.nodeConfig.kubeletConfig": {"shutdownGracePeriodSeconds": 30.0}}),
    Row("numa-policy", "warning", {
        "gpu.nodeConfig.kubeletConfig": {"topologyManager": {"policy": "single-numa-node"}},
    }),
    # placement
    Row("placement-type", "error", {"slice.placementPolicy.type": "SPREAD"}),
    Row("placement-machine", "error", T4, {"gpu.placementPolicy": {"type": "COMPACT"}}),
    Row("placement-size", "error", {"gpu.autoscaling.maxNodeCount": 151.0}, {
        "gpu.placementPolicy": {"type": "COMPACT"},
    }),
    Row("placement-capacity", "error", FLEX, {"gpu.placementPolicy": {"type": "COMPACT"}}),
    Row("nvlink-domain", "warning", {"gpu.autoscaling.maxNodeCount": 17.0}, {
        **GB200, "gpu.autoscaling.maxNodeCount": 18.0,
    }),
    Row("workload-policy-drift", "warning", {"slice.options": DROP}, IRONWOOD),
    Row("provision-only", "error", {"policy.workloadPolicy.acceleratorTopology": DROP}, {
        "policy.workloadPolicy.acceleratorTopologyMode": "PROVISION_ONLY",
    }),
    Row("provision-only-pool", "error", {"policy.workloadPolicy.acceleratorTopologyMode": "PROVISION_ONLY"}, IRONWOOD),
    Row("placement-policy", "error", {"policy.region": "us-west4"}, IRONWOOD),
    # pools
    Row("pool-counts", "error", {"gpu.autoscaling.totalMaxNodeCount": 4.0}),
    Row("pool-nodes", "warning", {"gpu.autoscaling.maxNodeCount": 1_001.0}),
    Row("cluster-nodes", "warning", {"gpu.autoscaling.maxNodeCount": 4_987.0}),
    Row("routes-max-pods", "error", {"cluster.networkingMode": "ROUTES"}),
    Row("upgrade-room", "warning", {"gpu.upgradeSettings.maxSurge": 1.0}, RESERVED),
    Row("slice-upgrades", "warning", {"slice.upgradeSettings.maxSurge": 1.0}),
    Row("pool-replacement", "warning", {"gpu.options": {"deleteBeforeReplace": False}}),
    # resources beside each other
    Row("system-pool", "error", {"system.autoscaling.totalMinNodeCount": 0.0}, {"cluster.clusterAutoscaling": DROP}),
    Row("system-pool-shared", "warning", {"system.nodeConfig.taints": DROP}),
    Row("inline-pools", "error", {"cluster.nodePools": [{"name": "other"}]}),
    Row("autopilot-pools", "error", {"cluster.enableAutopilot": True}),
    Row("dranet-cluster", "error", {"cluster.enableMultiNetworking": DROP}, FABRIC),
    Row("node-account-roles", "warning", {"image-role.role": "roles/viewer"}),
    # versions
    Row("gke-floor", "error", {"cluster.minMasterVersion": "1.34.0-gke.2200999"}, IRONWOOD),
    Row("gpudirect-floor", "warning", {"gpu.version": "1.29.15-gke.2466999"}, {**H100, **NICS}),
    Row("feature-floor", "error", {"gpu.version": "1.28.3-gke.106699"}, {
        "gpu.nodeConfig.secondaryBootDisks": [{"diskImage": "i"}],
    }),
    Row("auto-provisioning-floor", "error", {"cluster.minMasterVersion": "1.28.9-gke.1"}),
    Row("pool-version", "error", {"gpu.version": "1.35.1-gke.1000001"}, {
        "cluster.minMasterVersion": "1.35.1-gke.1000000",
    }),
    # Vertex AI
    Row("vertex-region", "warning", {"tuning.location": "us-west2"}),
    Row("persistent-network", "error", {"tuning.pscInterfaceConfig": {
        "networkAttachment": "projects/example-train/regions/europe-west4/networkAttachments/vertex"}}),
]  # fmt: skip
