"""Builders of views that break no rule, and two calls that run one rule, over views and over a small program.

What a builder does not name is what a program leaves out, as the view's own declaration reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from training_platform.config.expansion import GPU_DIRECT_LABEL, GPU_DIRECT_OFF, SYSTEM_TAINT
from training_platform.config.reading.finding import Finding
from training_platform.rules import RULES, View, evaluate, program
from training_platform.views.access import AccountView, LabelledView, RoleGrantView
from training_platform.views.cluster import (
    AutoProvisioningView,
    ClassPriority,
    ClusterView,
    ComputeClassView,
    ReservationView,
    ResourceLimit,
    ResourcePolicyView,
    Window,
)
from training_platform.views.kueue import FlavorQuotaView, FlavorView
from training_platform.views.network import AttachmentView, FirewallView, GatewayView, NetworkView, SubnetView
from training_platform.views.node_pool import NodePoolView, Taint
from training_platform.views.storage import (
    BucketView,
    FilestoreView,
    LustreView,
    RepositoryView,
    StorageClassView,
    VolumeClaimView,
)
from training_platform.views.vertex import PersistentPoolView

Make = Callable[..., View]
PROJECT = {"project": "example-train"}
LABELS = {"environment": "dev", "team": "vision"}
ACCOUNT = "nodes@example-train.iam.gserviceaccount.com"
POOL: dict[str, Any] = {
    **PROJECT, "cluster": "dev-main", "pool": "h100", "max_pods": 32, "location": "us-central1",
    "zones": ("us-central1-a",), "consume_reservation": "NO_RESERVATION", "initial_nodes": 0, "min_nodes": 0,
    "max_nodes": 4, "location_policy": "ANY", "upgrade_strategy": "SURGE", "upgrades": True, "max_surge": 0,
    "max_unavailable": 1, "private_nodes": True, "labels": LABELS, "disk_gb": 200, "disk_type": "pd-balanced",
    "image_type": "COS_CONTAINERD", "gvnic": True, "image_streaming": True, "metadata_mode": "GKE_METADATA",
    "scopes": ("https://www.googleapis.com/auth/cloud-platform",), "service_account": ACCOUNT,
    "ignored": ("initialNodeCount",), "replaced_first": True,
}  # fmt: skip
GPU = {
    **POOL, "machine_type": "a3-highgpu-8g", "accelerator_type": "nvidia-h100-80gb", "accelerator_count": 8,
    "local_ssd_count": 16, "driver": "DEFAULT", "taints": (Taint("nvidia.com/gpu", "NO_SCHEDULE"),),
    "node_labels": {GPU_DIRECT_LABEL: GPU_DIRECT_OFF},  # so that it breaks no rule without further interfaces
}  # fmt: skip
FLEX = {"flex_start": True, "auto_repair": False, "upgrades": False, "upgrade_strategy": None, "max_run_seconds": 3600}
SLICE = {**POOL, "machine_type": "ct5lp-hightpu-4t", "tpu_topology": "4x8", "placement_type": "COMPACT", "max_nodes": 8}
SYSTEM = {
    **POOL, "machine_type": "e2-standard-4", "pool": "system", "zones": (), "initial_nodes": 1, "min_nodes": None,
    "max_nodes": None, "total_min_nodes": 2, "total_max_nodes": 6, "taints": (Taint(SYSTEM_TAINT[0], "NO_SCHEDULE"),),
}  # fmt: skip
CLUSTER: dict[str, Any] = {
    **PROJECT, "cluster": "dev-main", "location": "us-central1", "private_nodes": True, "public_endpoint": False,
    "labels": LABELS, "release_channel": "REGULAR", "subnetwork": "subnet", "pods_range": "pods", "network": "vpc",
    "datapath": "ADVANCED_DATAPATH", "networking_mode": "VPC_NATIVE", "multi_networking": True,
    "remove_default_pool": True, "initial_nodes": 1, "default_machine": "n2-standard-2",
    "workload_pool": "example-train.svc.id.goog", "clashing": (),
    "window": Window("2026-01-03T06:00:00Z", "2026-01-03T18:00:00Z", "FREQ=WEEKLY;BYDAY=SA,SU"),
}  # fmt: skip
IN_POOL = ClassPriority(("nodepools",), ("cheap",), None, False, False, None, 0, False, None, None)
H100_SPOT = IN_POOL._replace(
    written=("gpu", "machineType", "reservations", "spot"), node_pools=(), machine_type="a3-highgpu-8g", spot=True,
    affinity="None", accelerator="nvidia-h100-80gb",
)  # fmt: skip


def _builder(kind: type[View], defaults: dict[str, Any]) -> Make:
    head = {"stack": "dev", "type": kind.__name__, "name": "thing", "origin": ("section",)}
    return lambda **changes: kind(**{**head, **defaults, **changes})


gpu_pool = _builder(NodePoolView, GPU)
flex_pool = _builder(NodePoolView, {**GPU, **FLEX})
slice_pool = _builder(NodePoolView, SLICE)  # one TPU v5e slice over 8 hosts
host_pool = _builder(NodePoolView, {**POOL, "machine_type": "ct5lp-hightpu-8t"})
system_pool = _builder(NodePoolView, SYSTEM)
cluster = _builder(ClusterView, CLUSTER)
nap = _builder(
    AutoProvisioningView,
    {
        "cluster": ClusterView(stack="dev", type="ClusterView", name="thing", origin=("section",), **CLUSTER),
        "limits": tuple(map(ResourceLimit, ("cpu", "memory", "nvidia-h100-80gb"), (10_000, 100_000, 64))),
        "zones": ("us-central1-a",),
        "written": True,
        "scopes": ("https://www.googleapis.com/auth/cloud-platform",),
        "service_account": "nodes@example-train.iam.gserviceaccount.com",
        "image_type": "COS_CONTAINERD",
        "disk_type": "pd-balanced",
        "disk_gb": 200,
        "strategy": "SURGE",
        "max_surge": 1,
    },
)
resource_policy = _builder(
    ResourcePolicyView,
    {
        **PROJECT,
        "region": "us-central1",
        "policy": "slices",
        "workload": True,
        "topology": "4x4x4",
        "workload_type": "HIGH_THROUGHPUT",
    },
)
reservation = _builder(
    ReservationView,
    {
        **PROJECT,
        "zone": "us-central1-a",
        "reservation": "training",
        "machine_type": "a3-highgpu-8g",
        "count": 4,
        "specific": True,
    },
)
network = _builder(NetworkView, {**PROJECT, "name": "vpc", "network": "dev-network", "mtu": 8896})
subnet = _builder(
    SubnetView,
    {
        **PROJECT,
        "name": "subnet",
        "region": "us-central1",
        "network": "vpc",
        "cidr": "10.10.0.0/20",
        "ranges": {"pods": "10.64.0.0/16", "services": "10.10.16.0/20"},
    },
)
attachment = _builder(AttachmentView, {"subnet": "subnet"})
firewall = _builder(FirewallView, {"network": "vpc", "ports": ("8443", "9443", "15017")})
gateway = _builder(GatewayView, {**PROJECT, "region": "us-central1"})
filestore = _builder(
    FilestoreView,
    {
        **PROJECT,
        "tier": "ZONAL",
        "location": "us-central1-a",
        "capacity_gib": 1024,
        "protocol": "NFS_V3",
        "connect_mode": "DIRECT_PEERING",
        "deletion_protection": True,
        "labels": LABELS,
        "iops_per_tb": 4000,
        "network": "vpc",
        "reserved_range": "10.0.0.0/26",
    },
)
lustre = _builder(
    LustreView, {"location": "us-central1-a", "capacity_gib": 9000, "mbps_per_tib": 1000, "network": "vpc"}
)
repository = _builder(RepositoryView, {"location": "us", "repository": "dev-images", "format": "DOCKER", "mode": None})
bucket = _builder(BucketView, {"location": "us-central1"})
storage_class = _builder(
    StorageClassView,
    {
        "class_name": "zonal",
        "provisioner": "filestore.csi.storage.gke.io",
        "parameters": {"tier": "zonal", "network": "dev-network", "connect-mode": "DIRECT_PEERING"},
    },
)
volume_claim = _builder(VolumeClaimView, {"class_name": "zonal"})
persistent_pool = _builder(
    PersistentPoolView,
    {
        **PROJECT,
        "region": "us-central1",
        "resource_id": "dev-vision-tuning",
        "machine_type": "a2-highgpu-1g",
        "accelerator_type": "NVIDIA_TESLA_A100",
        "accelerator_count": 1,
        "replica_count": 1,
        "min_replicas": 1,
        "max_replicas": 4,
        "labels": LABELS,
        "disk_gb": 200,
        "disk_type": "pd-ssd",
    },
)
labelled = _builder(LabelledView, {"labels": LABELS})
flavor = _builder(
    FlavorView,
    {
        "flavor": "tpu-v5e-4x8",
        "node_labels": {"cloud.google.com/gke-tpu-topology": "4x8"},
        "tolerated": ("google.com/tpu",),
    },
)
flavor_quota = _builder(
    FlavorQuotaView,
    {
        "queue": "vision",
        "cohort": "training-platform",
        "resource": "google.com/tpu",
        "flavor": "tpu-v5e-4x8",
        "nominal_quota": 64,
        "borrowing_limit": 32,
        "lending_limit": 64,
    },
)
compute_class = _builder(
    ComputeClassView, {"compute_class": "h100", "makes_pools": True, "priorities": (IN_POOL, H100_SPOT)}
)
account = _builder(AccountView, {**PROJECT, "email": ACCOUNT})
role_grant = _builder(
    RoleGrantView, {**PROJECT, "role": "roles/container.defaultNodeServiceAccount", "account": ACCOUNT}
)

FLAWLESS: tuple[Make, ...] = (
    gpu_pool,
    flex_pool,
    slice_pool,
    host_pool,
    system_pool,
    cluster,
    nap,
    resource_policy,
    reservation,
    network,
    subnet,
    attachment,
    firewall,
    gateway,
    filestore,
    lustre,
    repository,
    bucket,
    storage_class,
    volume_claim,
    persistent_pool,
    labelled,
    flavor,
    flavor_quota,
    compute_class,
)
"""Those whose views break no rule, each by itself and all together."""

PARTS: dict[str, Make] = {
    "cluster": cluster,
    "nap": nap,
    "gpu_pool": partial(gpu_pool, name="h100"),
    "system_pool": partial(system_pool, name="system"),
    "network": network,
    "subnet": subnet,
    "attachment": attachment,
    "firewall": firewall,
    "gateway": gateway,
    "filestore": filestore,
    "account": partial(account, name="nodes"),
    "role_grant": role_grant,
    "image_grant": partial(role_grant, role="roles/artifactregistry.reader"),
    "resource_policy": resource_policy,
    "reservation": reservation,
}


def example(**changes: Any) -> list[View]:
    """Return the views of a program that breaks no rule.

    A change is a field of a part, as ``subnet.cidr``, several fields of a part, or None for a part that is left out.
    """
    changed: dict[str, dict[str, Any] | None] = {part: {} for part in PARTS}
    for name, value in changes.items():
        part, _, field = name.partition(".")
        fields = {field: value} if field else value
        changed[part] = None if fields is None else {**(changed[part] or {}), **fields}
    return [make(**_fields(part, changed)) for part, make in PARTS.items() if changed[part] is not None]


def _fields(part: str, changed: Mapping[str, dict[str, Any] | None]) -> dict[str, Any]:
    part_fields = changed[part] or {}
    return {"cluster": cluster(**(changed["cluster"] or {})), **part_fields} if part == "nap" else part_fields


def check(rule: str, *views: View, production: bool = False) -> list[Finding]:
    """Return what one rule finds in views, in a stack of team vision in environment dev."""
    whole = program(views, stack="dev", environment="dev", team="vision", production=production)
    return evaluate(whole, [RULES[rule]])
