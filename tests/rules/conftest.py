"""Builders of the rule tests: views that break no rule, one call to change a field, one to run a rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from modules.config.finding import Finding
from modules.rules import RULES, View, evaluate, program
from modules.rules.views import (
    BootDisk,
    Bucket,
    Cluster,
    Filestore,
    Flavor,
    FlavorQuota,
    Gateway,
    Labelled,
    NodePool,
    PersistentPool,
)

Make = Callable[..., View]
Check = Callable[..., list[Finding]]
LABELS = {"environment": "dev", "team": "vision"}
POOL: dict[str, Any] = {
    "project": "example-train",
    "cluster": "dev-main",
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


@pytest.fixture
def cluster() -> Make:
    """Return a builder of a private cluster."""
    return _maker(
        Cluster,
        project="example-train",
        cluster="dev-main",
        location="us-central1",
        private_nodes=True,
        public_endpoint=False,
        deletion_protection=True,
        labels=LABELS,
    )


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
    return _maker(Flavor, flavor="tpu-v5e-4x8", node_labels=labels)


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
    )


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
        "persistent_pool", "cluster", "bucket", "labelled", "gateway", "flavor", "flavor_quota",
    )  # fmt: skip
    return {name: request.getfixturevalue(name) for name in names}
