"""Builders of the rule tests: views that break no rule, one call to change a field, one to run a rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from training_platform.config.expansion.pools import GPU_DIRECT_LABEL, GPU_DIRECT_OFF
from training_platform.config.reading.finding import Finding
from training_platform.rules import RULES, View, evaluate, program
from training_platform.rules.views.compute_class import ClassPriority, ComputeClass
from training_platform.rules.views.gke import (
    BootDisk,
    Bucket,
    Cluster,
    Filestore,
    FilestorePerformance,
    Flavor,
    FlavorQuota,
    Gateway,
    Labelled,
    NodePool,
    PersistentPool,
)
from training_platform.rules.views.gke_settings import (
    AutoProvisioning,
    ClusterSettings,
    Limit,
    PoolSettings,
    Reservation,
    ResourcePolicy,
    Taint,
    Window,
)
from training_platform.rules.views.network import (
    Account,
    Firewall,
    Network,
    RoleGrant,
    StorageClass,
    Subnet,
    VolumeClaim,
)

Make = Callable[..., View]
Check = Callable[..., list[Finding]]
LABELS = {"environment": "dev", "team": "vision"}
POOL: dict[str, Any] = {
    "project": "example-train",
    "cluster": "dev-main",
    "pool": "h100",
    "version": None,
    "max_pods": 32,
    "location": "us-central1",
    "zones": ("us-central1-a",),
    "spot": False,
    "flex_start": False,
    "queued": False,
    "consume_reservation": "NO_RESERVATION",
    "reservation": None,
    "placement_type": None,
    "tpu_topology": None,
    "initial_nodes": 0,
    "node_count": None,
    "min_nodes": 0,
    "max_nodes": 4,
    "total_min_nodes": None,
    "total_max_nodes": None,
    "location_policy": "ANY",
    "auto_repair": True,
    "auto_upgrade": True,
    "upgrade_strategy": "SURGE",
    "max_run_seconds": None,
    "accelerator_type": None,
    "accelerator_count": None,
    "local_ssd_count": None,
    "private_nodes": True,
    "node_labels": {},
    "labels": LABELS,
}
GPU = {
    **POOL,
    "machine_type": "a3-highgpu-8g",
    "accelerator_type": "nvidia-h100-80gb",
    "accelerator_count": 8,
    "local_ssd_count": 16,
    "node_labels": {GPU_DIRECT_LABEL: GPU_DIRECT_OFF},  # so that it breaks no rule without further interfaces
}
SLICE = {
    **POOL,
    "machine_type": "ct5lp-hightpu-4t",
    "tpu_topology": "4x8",
    "placement_type": "COMPACT",
    "max_nodes": 8,
}
FLEX = {**GPU, "flex_start": True, "auto_repair": False, "upgrade_strategy": None, "max_run_seconds": 3600}


def _maker(kind: type[View], **defaults: Any) -> Make:
    head = {"stack": "dev", "type": kind.__name__, "name": "thing", "origin": ("section",)}
    return lambda **changes: kind(**{**head, **defaults, **changes})


def _nested(kind: type[View], field: str, inner: type[View], of_inner: dict[str, Any], own: dict[str, Any]) -> Make:
    """Return a builder of a view that holds another; a change goes to whichever of the two has the field."""

    def make(**changes: Any) -> View:
        head: dict[str, Any] = {"stack": "dev", "type": kind.__name__, "name": "thing", "origin": ("section",)}
        head |= {key: changes.pop(key) for key in head.keys() & changes.keys()}
        below = {**of_inner, **{key: changes.pop(key) for key in of_inner.keys() - own.keys() & changes.keys()}}
        return kind(**{**head, field: inner(**{**head, "type": inner.__name__}, **below), **own, **changes})

    return make


@pytest.fixture
def gpu_pool() -> Make:
    """Return a builder of an H100 pool."""
    return _maker(NodePool, **GPU)


@pytest.fixture
def flex_pool() -> Make:
    """Return a builder of an H100 pool by flex-start."""
    return _maker(NodePool, **FLEX)


@pytest.fixture
def slice_pool() -> Make:
    """Return a builder of the pool of one TPU v5e slice over 8 hosts."""
    return _maker(NodePool, **SLICE)


@pytest.fixture
def host_pool() -> Make:
    """Return a builder of a pool of one-host TPU v5e slices."""
    return _maker(NodePool, **POOL, machine_type="ct5lp-hightpu-8t")


@pytest.fixture
def boot_disk() -> Make:
    """Return a builder of the boot disk of an H100 node."""
    return _maker(BootDisk, of="gke", machine_type="a3-highgpu-8g", size_gb=200, disk_type="pd-balanced")


@pytest.fixture
def vertex_disk() -> Make:
    """Return a builder of the boot disk of an A100 machine of Vertex AI."""
    return _maker(BootDisk, of="vertex", machine_type="a2-highgpu-1g", size_gb=200, disk_type="pd-ssd")


@pytest.fixture
def filestore() -> Make:
    """Return a builder of a zonal Filestore instance."""
    return _maker(
        Filestore,
        project="example-train",
        tier="ZONAL",
        location="us-central1-a",
        capacity_gib=1024,
        protocol="NFS_V3",
        connect_mode="DIRECT_PEERING",
        reserved_range=None,
        network_project=None,
        deletion_protection=True,
        labels=LABELS,
    )


@pytest.fixture
def persistent_pool() -> Make:
    """Return a builder of a pool of a persistent resource that scales from 1 to 4."""
    return _maker(
        PersistentPool,
        project="example-train",
        region="us-central1",
        resource_id="dev-vision-tuning",
        machine_type="a2-highgpu-1g",
        accelerator_type="NVIDIA_TESLA_A100",
        accelerator_count=1,
        replica_count=1,
        min_replicas=1,
        max_replicas=4,
        labels=LABELS,
    )


CLUSTER: dict[str, Any] = {
    "project": "example-train",
    "cluster": "dev-main",
    "location": "us-central1",
    "private_nodes": True,
    "public_endpoint": False,
    "deletion_protection": True,
    "labels": LABELS,
    "version": None,
    "release_channel": "REGULAR",
    "subnetwork": "subnet",
    "pods_range": "pods",
    "max_pods": None,
}
SETTINGS: dict[str, Any] = {
    "network": "vpc",
    "datapath": "ADVANCED_DATAPATH",
    "networking_mode": "VPC_NATIVE",
    "multi_networking": True,
    "network_policy": False,
    "dataplane_policies": False,
    "autopilot": False,
    "clashing": (),
    "zones": (),
    "node_version": None,
    "remove_default_pool": True,
    "initial_nodes": 1,
    "inline_pools": 0,
    "default_machine": "n2-standard-2",
    "workload_pool": "example-train.svc.id.goog",
    "tags": 0,
    "window": Window("2026-01-03T06:00:00Z", "2026-01-03T18:00:00Z", "FREQ=WEEKLY;BYDAY=SA,SU"),
    "exclusions": (),
}
POOL_SETTINGS: dict[str, Any] = {
    "spot_twice": False,
    "min_cpu_platform": None,
    "image_type": "COS_CONTAINERD",
    "gvnic": True,
    "fast_socket": False,
    "image_streaming": True,
    "secondary_disks": 0,
    "driver": "DEFAULT",
    "partition": None,
    "sharing": None,
    "sharing_clients": None,
    "confidential": None,
    "maintenance": None,
    "shutdown_seconds": None,
    "upgrades": True,
    "max_surge": 0,
    "max_unavailable": 1,
    "policy": None,
    "reservation_path": None,
    "nics": (),
    "network_profile": None,
    "metadata_mode": "GKE_METADATA",
    "scopes": ("https://www.googleapis.com/auth/cloud-platform",),
    "service_account": "nodes@example-train.iam.gserviceaccount.com",
    "tags": 0,
    "taints": (Taint("nvidia.com/gpu", "NO_SCHEDULE"),),
    "provisioned": False,
    "disk_type": "pd-balanced",
    "storage_pools": 0,
    "disk_twice": False,
    "ignored": ("initialNodeCount",),
    "replaced_first": True,
}
SYSTEM: dict[str, Any] = {
    **POOL,
    "machine_type": "e2-standard-4",
    "pool": "system",
    "zones": (),
    "initial_nodes": 1,
    "min_nodes": None,
    "max_nodes": None,
    "total_min_nodes": 2,
    "total_max_nodes": 6,
}


@pytest.fixture
def cluster() -> Make:
    """Return a builder of a private cluster."""
    return _maker(Cluster, **CLUSTER)


@pytest.fixture
def cluster_settings() -> Make:
    """Return a builder of a cluster's settings; fields of the cluster itself may be changed, too."""
    return _nested(ClusterSettings, "cluster", Cluster, CLUSTER, SETTINGS)


@pytest.fixture
def nap() -> Make:
    """Return a builder of auto-provisioning of H100 machines."""
    limits = (Limit("cpu", 10_000), Limit("memory", 100_000), Limit("nvidia-h100-80gb", 64))
    own = {
        "limits": limits, "zones": ("us-central1-a",), "written": True, "disk_type": "pd-balanced", "disk_gb": 200,
        "strategy": "SURGE", "max_surge": 1,
    }  # fmt: skip
    return _nested(AutoProvisioning, "cluster", Cluster, CLUSTER, own)


@pytest.fixture
def gpu_settings() -> Make:
    """Return a builder of the settings of an H100 pool; fields of the pool itself may be changed, too."""
    return _nested(PoolSettings, "pool", NodePool, GPU, POOL_SETTINGS)


@pytest.fixture
def slice_settings() -> Make:
    """Return a builder of the settings of a pool of one TPU v5e slice."""
    return _nested(PoolSettings, "pool", NodePool, SLICE, {**POOL_SETTINGS, "driver": None, "taints": ()})


@pytest.fixture
def system_settings() -> Make:
    """Return a builder of the settings of a pool for controllers and system pods."""
    return _nested(PoolSettings, "pool", NodePool, SYSTEM, {**POOL_SETTINGS, "driver": None, "taints": ()})


@pytest.fixture
def resource_policy() -> Make:
    """Return a builder of a workload policy for slices of 4x4x4."""
    return _maker(
        ResourcePolicy,
        project="example-train",
        region="us-central1",
        policy="slices",
        workload=True,
        workload_type="HIGH_THROUGHPUT",
        topology="4x4x4",
        topology_mode=None,
        topology_distance=None,
        group=False,
        max_distance=None,
        gpu_topology=None,
    )


@pytest.fixture
def reservation() -> Make:
    """Return a builder of a reservation of H100 VMs."""
    return _maker(
        Reservation,
        project="example-train",
        zone="us-central1-a",
        reservation="training",
        machine_type="a3-highgpu-8g",
        accelerator_type=None,
        accelerator_count=None,
        min_cpu_platform=None,
        local_ssds=0,
        count=4,
        specific=True,
    )


@pytest.fixture
def network() -> Make:
    """Return a builder of a VPC."""
    return _maker(Network, name="vpc", project="example-train", network="dev-network", mtu=8896, profile=None)


@pytest.fixture
def subnet() -> Make:
    """Return a builder of a cluster's subnet."""
    return _maker(
        Subnet,
        name="subnet",
        project="example-train",
        region="us-central1",
        subnetwork=None,
        network="vpc",
        cidr="10.10.0.0/20",
        ranges={"pods": "10.64.0.0/16", "services": "10.10.16.0/20"},
    )


@pytest.fixture
def firewall() -> Make:
    """Return a builder of a firewall rule that lets the control plane reach webhooks."""
    return _maker(Firewall, network="vpc", ports=("8443", "9443", "15017"))


@pytest.fixture
def account() -> Make:
    """Return a builder of the account of nodes."""
    return _maker(Account, project="example-train", email="nodes@example-train.iam.gserviceaccount.com")


@pytest.fixture
def role_grant() -> Make:
    """Return a builder of one role of the account of nodes."""
    return _maker(
        RoleGrant,
        project="example-train",
        role="roles/container.defaultNodeServiceAccount",
        account="nodes@example-train.iam.gserviceaccount.com",
    )


@pytest.fixture
def storage_class() -> Make:
    """Return a builder of a StorageClass of Filestore."""
    parameters = {"tier": "zonal", "network": "dev-network", "connect-mode": "DIRECT_PEERING"}
    return _maker(StorageClass, class_name="zonal", provisioner="filestore.csi.storage.gke.io", parameters=parameters)


@pytest.fixture
def volume_claim() -> Make:
    """Return a builder of a claim."""
    return _maker(VolumeClaim, class_name="zonal")


@pytest.fixture
def performance() -> Make:
    """Return a builder of the performance of a zonal Filestore instance of 1 TiB."""
    instance = {
        "project": "example-train", "tier": "ZONAL", "location": "us-central1-a", "capacity_gib": 1024,
        "protocol": "NFS_V3", "connect_mode": None, "reserved_range": None, "network_project": None,
        "deletion_protection": True, "labels": LABELS,
    }  # fmt: skip
    own = {"iops_per_tb": 4000, "fixed_iops": None, "directory_services": False}
    return _nested(FilestorePerformance, "filestore", Filestore, instance, own)


@pytest.fixture
def bucket() -> Make:
    """Return a builder of a bucket."""
    return _maker(Bucket, location="us-central1", force_destroy=False)


@pytest.fixture
def labelled() -> Make:
    """Return a builder of something with labels."""
    return _maker(Labelled, labels=LABELS)


@pytest.fixture
def gateway() -> Make:
    """Return a builder of a NAT gateway."""
    return _maker(Gateway, project="example-train", region="us-central1", addresses=0)


@pytest.fixture
def flavor() -> Make:
    """Return a builder of a ResourceFlavor for TPU v5e slices of 4x8."""
    labels = {"cloud.google.com/gke-tpu-topology": "4x8"}
    return _maker(Flavor, flavor="tpu-v5e-4x8", node_labels=labels, tolerated=("google.com/tpu",))


@pytest.fixture
def flavor_quota() -> Make:
    """Return a builder of a team's quota of TPU v5e slices of 4x8."""
    return _maker(
        FlavorQuota,
        queue="vision",
        cohort="training-platform",
        resource="google.com/tpu",
        flavor="tpu-v5e-4x8",
        nominal_quota=64,
        borrowing_limit=32,
        lending_limit=64,
        checks=(),
    )


@pytest.fixture
def compute_class() -> Make:
    """Return a builder of a compute class that looks in a pool first, then makes spot pools of H100."""
    priority = ClassPriority(
        written=("nodepools",), node_pools=("cheap",), machine_type=None, spot=False, flex_start=False, affinity=None,
        reservations=0, tpu=False, accelerator=None, wait_seconds=None,
    )  # fmt: skip
    made = priority._replace(
        written=("gpu", "machineType", "reservations", "spot"), node_pools=(), machine_type="a3-highgpu-8g", spot=True,
        affinity="None", accelerator="nvidia-h100-80gb",
    )  # fmt: skip
    return _maker(ComputeClass, compute_class="h100", makes_pools=True, priorities=(priority, made))


@pytest.fixture
def check() -> Check:
    """Return a function that runs one rule over views, in a stack of team vision in environment dev."""

    def run(rule: str, *views: View, production: bool = False) -> list[Finding]:
        whole = program(views, stack="dev", environment="dev", team="vision", production=production)
        return evaluate(whole, [RULES[rule]])

    return run


@pytest.fixture
def flawless(request: pytest.FixtureRequest) -> dict[str, Make]:
    """Return every builder by name."""
    names = (
        "gpu_pool", "flex_pool", "slice_pool", "host_pool", "boot_disk", "vertex_disk", "filestore",
        "persistent_pool", "cluster", "bucket", "labelled", "gateway", "flavor", "flavor_quota", "cluster_settings",
        "nap", "gpu_settings", "slice_settings", "system_settings", "resource_policy", "reservation", "network",
        "subnet", "firewall", "storage_class", "volume_claim", "performance", "compute_class",
    )  # fmt: skip
    return {name: request.getfixturevalue(name) for name in names}
