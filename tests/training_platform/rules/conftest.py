"""Builders of the rule tests: views that break no rule, one call to change a field, one to run a rule.

What a builder does not name is what a program leaves out, as the view's own declaration reads it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.training_platform.rules import table_tests
from tests.training_platform.rules.tables import Changes, Holds, row_ids, spoiled
from training_platform.config.pools import GPU_DIRECT_LABEL, GPU_DIRECT_OFF, SYSTEM_TAINT
from training_platform.config.reading.finding import Finding
from training_platform.resources.planned import UNKNOWN
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
Check = Callable[..., list[Finding]]
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
FLAWLESS: dict[str, tuple[type[View], dict[str, Any]]] = {
    "gpu_pool": (NodePoolView, GPU),
    "flex_pool": (NodePoolView, {**GPU, **FLEX}),
    "slice_pool": (NodePoolView, SLICE),  # one TPU v5e slice over 8 hosts
    "host_pool": (NodePoolView, {**POOL, "machine_type": "ct5lp-hightpu-8t"}),
    "system_pool": (NodePoolView, SYSTEM),
    "cluster": (ClusterView, CLUSTER),
    "nap": (
        AutoProvisioningView,
        {
            "cluster": ClusterView(stack="dev", type="ClusterView", name="thing", origin=("section",), **CLUSTER),
            "limits": tuple(map(ResourceLimit, ("cpu", "memory", "nvidia-h100-80gb"), (10_000, 100_000, 64))),
            "zones": ("us-central1-a",), "written": True, "disk_type": "pd-balanced", "disk_gb": 200,
            "strategy": "SURGE", "max_surge": 1,
        },
    ),
    "resource_policy": (
        ResourcePolicyView,
        {
            **PROJECT, "region": "us-central1", "policy": "slices", "workload": True, "topology": "4x4x4",
            "workload_type": "HIGH_THROUGHPUT",
        },
    ),
    "reservation": (
        ReservationView,
        {
            **PROJECT, "zone": "us-central1-a", "reservation": "training", "machine_type": "a3-highgpu-8g", "count": 4,
            "specific": True,
        },
    ),
    "network": (NetworkView, {**PROJECT, "name": "vpc", "network": "dev-network", "mtu": 8896}),
    "subnet": (
        SubnetView,
        {
            **PROJECT, "name": "subnet", "region": "us-central1", "network": "vpc", "cidr": "10.10.0.0/20",
            "ranges": {"pods": "10.64.0.0/16", "services": "10.10.16.0/20"},
        },
    ),
    "attachment": (AttachmentView, {"subnet": "subnet"}),
    "firewall": (FirewallView, {"network": "vpc", "ports": ("8443", "9443", "15017")}),
    "gateway": (GatewayView, {**PROJECT, "region": "us-central1"}),
    "filestore": (
        FilestoreView,
        {
            **PROJECT, "tier": "ZONAL", "location": "us-central1-a", "capacity_gib": 1024, "protocol": "NFS_V3",
            "connect_mode": "DIRECT_PEERING", "deletion_protection": True, "labels": LABELS, "iops_per_tb": 4000,
            "network": "vpc", "reserved_range": "10.0.0.0/24",
        },
    ),
    "lustre": (
        LustreView,
        {"location": "us-central1-a", "capacity_gib": 9000, "mbps_per_tib": 1000, "network": "vpc"},
    ),
    "repository": (
        RepositoryView, {"location": "us", "repository": "dev-images", "format": "DOCKER", "mode": None}
    ),
    "bucket": (BucketView, {"location": "us-central1"}),
    "storage_class": (
        StorageClassView,
        {
            "class_name": "zonal", "provisioner": "filestore.csi.storage.gke.io",
            "parameters": {"tier": "zonal", "network": "dev-network", "connect-mode": "DIRECT_PEERING"},
        },
    ),
    "volume_claim": (VolumeClaimView, {"class_name": "zonal"}),
    "persistent_pool": (
        PersistentPoolView,
        {
            **PROJECT, "region": "us-central1", "resource_id": "dev-vision-tuning", "machine_type": "a2-highgpu-1g",
            "accelerator_type": "NVIDIA_TESLA_A100", "accelerator_count": 1, "replica_count": 1, "min_replicas": 1,
            "max_replicas": 4, "labels": LABELS, "disk_gb": 200, "disk_type": "pd-ssd",
        },
    ),
    "labelled": (LabelledView, {"labels": LABELS}),
    "flavor": (
        FlavorView,
        {
            "flavor": "tpu-v5e-4x8", "node_labels": {"cloud.google.com/gke-tpu-topology": "4x8"},
            "tolerated": ("google.com/tpu",),
        },
    ),
    "flavor_quota": (
        FlavorQuotaView,
        {
            "queue": "vision", "cohort": "training-platform", "resource": "google.com/tpu", "flavor": "tpu-v5e-4x8",
            "nominal_quota": 64, "borrowing_limit": 32, "lending_limit": 64,
        },
    ),
    "compute_class": (
        ComputeClassView, {"compute_class": "h100", "makes_pools": True, "priorities": (IN_POOL, H100_SPOT)}
    ),
}  # fmt: skip
OTHERS: dict[str, tuple[type[View], dict[str, Any]]] = {  # a program with these has need of more
    "account": (AccountView, {**PROJECT, "email": ACCOUNT}),
    "role_grant": (
        RoleGrantView, {**PROJECT, "role": "roles/container.defaultNodeServiceAccount", "account": ACCOUNT}
    ),
}  # fmt: skip


def _builder(kind: type[View], defaults: dict[str, Any]) -> Make:
    head = {"stack": "dev", "type": kind.__name__, "name": "thing", "origin": ("section",)}
    return lambda **changes: kind(**{**head, **defaults, **changes})


def _fixture(name: str, kind: type[View], defaults: dict[str, Any]) -> Any:
    return pytest.fixture(name=name)(lambda: _builder(kind, defaults))


globals().update({f"_{name}": _fixture(name, *row) for name, row in {**FLAWLESS, **OTHERS}.items()})


@pytest.fixture
def flawless() -> dict[str, Make]:
    """Return every builder of a view that breaks no rule, alone or with the others, by name."""
    return {name: _builder(*row) for name, row in FLAWLESS.items()}


@pytest.fixture
def check() -> Check:
    """Return a function that runs one rule over views, in a stack of team vision in environment dev."""

    def run(rule: str, *views: View, production: bool = False) -> list[Finding]:
        whole = program(views, stack="dev", environment="dev", team="vision", production=production)
        return evaluate(whole, [RULES[rule]])

    return run


# What each part of the program is built from; a spoiled one replaces or adds to these.
PARTS = (
    "cluster", "nap", "gpu_pool", "system_pool", "network", "subnet", "attachment", "firewall", "gateway", "filestore",
    "account", "role_grant", "image_grant", "resource_policy", "reservation",
)  # fmt: skip

OWN: dict[str, dict[str, Any]] = {
    "system_pool": {"name": "system"},
    "image_grant": {"role": "roles/artifactregistry.reader"},
    "gpu_pool": {"name": "h100"},
    "account": {"name": "nodes"},
}


@pytest.fixture
def run(check: Check, request: pytest.FixtureRequest) -> Callable[..., list[Finding]]:
    """Return a function that runs a rule over the program, some parts changed and some left out."""

    def of(rule: str, without: tuple[str, ...] = (), **changes: dict[str, Any]) -> list[Finding]:
        views = []
        for part in PARTS:
            if part in without:
                continue
            base = {"image_grant": "role_grant"}.get(part, part)
            make = request.getfixturevalue(base)
            own = OWN.get(part, {})
            changed = {**own, **changes.get(part, {})}
            if part == "nap":
                cluster = request.getfixturevalue("cluster")(**changes.get("cluster", {}))
                changed = {"cluster": cluster, **changed}
            views.append(make(**changed))
        return check(rule, *views)

    return of


@pytest.fixture
def finds_alone(check: Check, request: pytest.FixtureRequest) -> Holds:
    """Return a function that runs a rule over one changed view."""

    def holds(rule: str, fixture: str, changes: dict[str, Any], count: int) -> None:
        found = check(rule, request.getfixturevalue(fixture)(**changes))

        assert [finding.rule for finding in found] == [rule] * count
        assert all(finding.severity in (RULES[rule].severity, "warning") for finding in found)
        assert all(finding.allowed for finding in found)

    return holds


@pytest.fixture
def notes_alone(check: Check, request: pytest.FixtureRequest) -> Holds:
    """Return a function that runs a rule over one view, with one and with all of the changed fields unknown."""

    def holds(rule: str, fixture: str, changes: dict[str, Any], _count: int) -> None:
        make = request.getfixturevalue(fixture)
        for field in changes:
            found = check(rule, make(**{**changes, field: UNKNOWN}))
            assert all(finding.severity == "note" or finding.rule == rule for finding in found)
        everything = check(rule, make(**dict.fromkeys(changes, UNKNOWN)))
        assert {finding.severity for finding in everything} <= {"note"}

    return holds


@pytest.fixture
def names_nearest(check: Check, request: pytest.FixtureRequest) -> Holds:
    """Return a function that looks at the nearest value of the one finding about a changed view."""

    def holds(rule: str, fixture: str, changes: dict[str, Any], nearest: str) -> None:
        (found,) = check(rule, request.getfixturevalue(fixture)(**changes))

        assert found.nearest == nearest

    return holds


@pytest.fixture
def finds_together(run: Callable[..., list[Finding]]) -> Holds:
    """Return a function that runs a rule over a whole program with changed parts."""

    def holds(rule: str, changes: Changes, without: tuple[str, ...], count: int) -> None:
        found = run(rule, without, **changes)

        assert [each.rule for each in found if each.severity != "note"] == [rule] * count
        assert all(each.allowed for each in found if each.severity != "note")

    return holds


@pytest.fixture
def notes_together(run: Callable[..., list[Finding]]) -> Holds:
    """Return a function that runs a rule over a whole program of which one field is unknown."""

    def holds(rule: str, part: str, field: str) -> None:
        pool = {"flex_start": True} if rule == "gke-floor" else {}
        found = run(
            rule,
            ("nap",) if rule == "system-pool" else (),
            **{"gpu_pool": pool, part: {**({} if part != "gpu_pool" else pool), field: UNKNOWN}},
        )

        assert {each.severity for each in found} == {"note"}
        assert all(field in each.message for each in found)

    return holds


@pytest.fixture
def names_nearest_together(run: Callable[..., list[Finding]]) -> Holds:
    """Return a function that looks at the nearest value of the one finding about a whole program."""

    def holds(rule: str, changes: Changes, nearest: str) -> None:
        (found,) = run(rule, (), **changes)

        assert found.nearest == nearest

    return holds


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test of ``table_tests`` the rows of the table that the importing module has."""
    if metafunc.function.__module__ != table_tests.__name__:
        return
    for argument in table_tests.TABLES.keys() & set(metafunc.fixturenames):
        rows = getattr(metafunc.module, table_tests.TABLES[argument])
        chosen = spoiled(rows) if argument == "spoiled_alone" else rows
        metafunc.parametrize(argument, chosen, ids=row_ids(chosen))
