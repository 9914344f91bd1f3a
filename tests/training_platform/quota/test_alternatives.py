"""What would do instead where limits are too low, in findings of quotas and of rules."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.training_platform.quota.limits import UNLIMITED
from training_platform.config.reading.finding import Finding
from training_platform.config.workspace import Workspace
from training_platform.quota.alternatives import Room, named
from training_platform.quota.demand import workspace_demand
from training_platform.quota.ledger import project_ledgers
from training_platform.quota.ledger_findings import quota_findings
from training_platform.quota.snapshot import Snapshots
from training_platform.rules import evaluate, program, views_of_model
from training_platform.rules.suggestions import Suggestions

Build = Callable[..., Workspace]
Limits = Callable[[str], Snapshots]
H100 = "node_pools: {h100: {machine_type: a3-highgpu-8g, zone: us-central1-a, max_nodes: 4}}"
SLICE = "node_pools: {v5e: {machine_type: ct5lp-hightpu-4t, zone: us-central1-a, topology: %s, slices: %d}}"
LISTED = (
    UNLIMITED
    + """\
      SSD-TOTAL-GB-per-project-region: [{limit: -1}]
      LOCAL-SSD-TOTAL-STORAGE-PER-VM-FAMILY-per-project-region: [{limit: -1}]
      GPUS-ALL-REGIONS-per-project: [{limit: %(all)s}]
      GPUS-PER-GPU-FAMILY-per-project-region:
        - {limit: %(here)s, region: us-central1, gpu_family: NVIDIA_H100}
        - {limit: %(there)s, region: us-east4, gpu_family: NVIDIA_H100}
        - {limit: 1000, region: us-east4, gpu_family: NVIDIA_H200}
        - {limit: 1000, region: us-south1, gpu_family: NVIDIA_H100}
      PREEMPTIBLE-NVIDIA-H100-GPUS-per-project-region: [{limit: %(spot)s, region: us-central1}]
      TPU-LITE-PODSLICE-V5-per-project-region: [{limit: %(tpu)s, region: us-central1}]
      PREEMPTIBLE-TPU-LITE-PODSLICE-V5-per-project-region: [{limit: 0}]
"""
)
PLENTY = {"all": 1000, "here": 1000, "there": 0, "spot": 0, "tpu": 1000}


def nearest(build: Build, limits: Limits, stack: str, **short: int) -> list[str]:
    workspace = build(dev=stack)
    ledgers = project_ledgers(workspace_demand(workspace), limits(LISTED % {**PLENTY, **short}))
    findings: list[Finding] = quota_findings(ledgers.values(), workspace)
    return [part for finding in findings for part in (finding.nearest or "").split("; or ")]


def test_enough_quota_is_no_finding(build: Build, limits: Limits) -> None:
    assert nearest(build, limits, H100) == []


def test_limit_to_ask_for_is_what_all_holders_need(build: Build, limits: Limits) -> None:
    assert nearest(build, limits, H100, here=31) == [
        "max_nodes 3 for h100",
        f"request {4 * 8} GPUs (training-platform quota plan)",
    ]
    assert nearest(build, limits, H100, all=31) == [
        "max_nodes 3 for h100",
        f"request {4 * 8} GPUs (training-platform quota plan)",
    ]


@pytest.mark.parametrize(("spot", "named"), [(4 * 8, True), (4 * 8 - 1, False)])
def test_other_capacity_is_named_where_its_quota_holds_the_pool(
    build: Build, limits: Limits, spot: int, named: bool
) -> None:
    suggestions = nearest(build, limits, H100, here=0, spot=spot)

    told = f"with {spot} of PREEMPTIBLE-NVIDIA-H100-GPUS-per-project-region left"
    expected = [f"capacity spot, {told}", f"capacity flex-start or queued-provisioning, {told}"] if named else []
    assert [part for part in suggestions if part.startswith("capacity")] == expected


def test_a_reservation_is_not_offered_though_its_quota_holds_the_pool(build: Build, limits: Limits) -> None:
    suggestions = nearest(build, limits, H100.replace("max_nodes", "capacity: spot, max_nodes"), here=1000)

    assert [part.partition(",")[0] for part in suggestions if part.startswith("capacity")] == ["capacity on-demand"]


def test_shortage_of_all_regions_sends_nobody_to_another(build: Build, limits: Limits) -> None:
    assert nearest(build, limits, H100, all=0, there=1000, spot=1000) == [
        "request 32 GPUs (training-platform quota plan)"
    ]


@pytest.mark.parametrize(
    ("slices", "tpu", "smaller"),
    [
        (("8x8", 1), 63, ["4x8"]),
        (("8x8", 1), 31, ["4x4"]),
        (("8x8", 2), 63, ["4x4"]),
        (("8x8", 2), 64, []),
        (("8x8", 1), 7, ["2x2"]),
    ],
)
def test_smaller_slice_is_named_where_the_pools_own_does_not_fit_once(
    build: Build, limits: Limits, slices: tuple[str, int], tpu: int, smaller: list[str]
) -> None:
    suggestions = nearest(build, limits, SLICE % slices, tpu=tpu)

    assert [part for part in suggestions if part.startswith("topology")] == [
        f"topology {topology} for v5e" for topology in smaller
    ]


SUGGESTED_LIMITS = (
    UNLIMITED
    + """\
      GPUS-ALL-REGIONS-per-project: [{limit: 1000}]
"""
)
DISKS = """\
      SSD-TOTAL-GB-per-project-region: [{limit: -1}]
      LOCAL-SSD-TOTAL-STORAGE-PER-VM-FAMILY-per-project-region: [{limit: -1}]
"""
H100_POOL = "{machine_type: a3-highgpu-8g, zone: %s, max_nodes: 2}"
WANTED = "GPUS-PER-GPU-FAMILY-per-project-region (NVIDIA_H100) in us-central1"
SPOT = "of PREEMPTIBLE-NVIDIA-H100-GPUS-per-project-region left"
V5E = "{machine_type: ct5lp-hightpu-4t, zone: us-central1-a, topology: %s, slices: %d}"


def family(**regions: int) -> str:
    rows = "".join(f"\n        - {{limit: {limit}, region: {key.replace('_', '-')}, gpu_family: NVIDIA_H100}}"
                   for key, limit in regions.items())  # fmt: skip
    return f"{SUGGESTED_LIMITS}{DISKS}      GPUS-PER-GPU-FAMILY-per-project-region:{rows}\n"


def one(build: Build, snapshots: Snapshots, pools: str, rule: str) -> Finding:
    workspace = build(dev=f"node_pools: {{{pools}}}")
    stack = workspace.stacks["dev"]
    views = views_of_model(stack, workspace)
    whole = program(views, stack="dev", environment="dev", team=None, production=False)
    ledgers = project_ledgers(workspace_demand(workspace), snapshots)
    (finding,) = (finding for finding in evaluate(whole, file=stack) if finding.rule == rule)
    (suggested,) = Suggestions(workspace, ledgers).to([finding])
    assert (suggested.position, suggested.path, suggested.message) == (
        finding.position,
        finding.path,
        finding.message,
    )
    return suggested


def zone(build: Build, snapshots: Snapshots, more: str = "") -> Finding:
    """Return the finding about 2 VMs with 8 H100 each in a zone that does not offer them."""
    return one(build, snapshots, f"h100: {H100_POOL % 'us-central1-f'}{more}", "machine-zone")


def test_what_other_pools_ask_is_not_left(build: Build, limits: Limits) -> None:
    other = f", other: {H100_POOL % 'us-central1-a'}"

    assert zone(build, limits(family(us_central1=40)), other).nearest == f"us-central1-a ({40 - 2 * 8} GPUs left)"
    assert (zone(build, limits(family(us_central1=31)), other).nearest or "").startswith(
        "us-central1-a, with a request"
    )


def test_zones_are_told_apart_by_what_is_known_of_their_quota(build: Build, limits: Limits) -> None:
    fits, short = (zone(build, limits(family(us_central1=here, us_east4=40))).allowed for here in (16, 7))

    assert fits == "with quota for 16 GPUs: us-central1-a, us-central1-b, us-central1-c (16 GPUs left)"
    assert short == "offered, quota short: us-central1-a, us-central1-b, us-central1-c (7 GPUs left)"


def test_a_reservation_that_no_quota_counts_fits_wherever_the_machine_is(build: Build, limits: Limits) -> None:
    pool = (
        "v5e: {machine_type: ct5lp-hightpu-4t, zone: us-central1-b, topology: 4x8, "
        "capacity: reservation, reservation: training}"
    )

    assert one(build, limits(SUGGESTED_LIMITS + DISKS), pool, "machine-zone").nearest == "us-central1-a (no limit)"


def test_where_no_quota_holds_the_pool_the_request_is_named(build: Build, limits: Limits) -> None:
    assert (
        zone(build, limits(family(us_central1=8))).nearest == f"us-central1-a, with a request for 16 GPUs of {WANTED}"
    )


def test_a_limit_that_the_snapshot_does_not_list_is_called_unknown(build: Build, limits: Limits) -> None:
    finding = zone(build, limits(SUGGESTED_LIMITS + DISKS))

    assert (finding.allowed or "").startswith("offered, quota not known: us-central1-a, us-central1-b, us-central1-c")
    assert finding.nearest == ("us-central1-a; its limits are not known: training-platform quota pull example-train")


@pytest.mark.parametrize(
    ("spot", "nearest"),
    [
        (16, f"capacity spot, with 16 {SPOT}; or capacity flex-start or queued-provisioning, with 16 {SPOT}"),
        (15, "spot, charged to PREEMPTIBLE-NVIDIA-H100-GPUS-per-project-region in us-central1, which has 15 left"),
    ],
)
def test_a_way_to_get_vms_is_named_with_its_quota(build: Build, limits: Limits, spot: int, nearest: str) -> None:
    text = f"{SUGGESTED_LIMITS}{DISKS}      PREEMPTIBLE-NVIDIA-H100-GPUS-per-project-region: [{{limit: {spot}}}]\n"
    pool = "h100: {machine_type: a3-highgpu-4g, zone: us-central1-a, max_nodes: 4}"

    assert one(build, limits(text), pool, "capacity-offered").nearest == nearest


@pytest.mark.parametrize(
    ("slices", "chips", "nearest"),
    [
        (("2x16", 1), 32, "4x8"),
        (("2x16", 1), 31, "4x8; 4x4 fits the remaining 31 chips of quota, 4x8 takes 32"),
        (("2x16", 2), 63, "4x8; 4x4 fits the remaining 63 chips of quota, 4x8 takes 64"),
        (("2x16", 1), 3, "4x8; 3 chips of quota are left, 4x8 takes 32"),
        (("1x3", 2), 8, "2x2"),  # of one VM: its pool has no placement, and its flavor has the topology
        (("1x3", 2), 7, "2x2; 7 chips of quota are left, 2x2 takes 8"),
    ],
)
def test_a_slice_that_the_quota_holds_is_named_beside_the_legal_one(
    build: Build, limits: Limits, slices: tuple[str, int], chips: int, nearest: str
) -> None:
    text = f"{SUGGESTED_LIMITS}{DISKS}      TPU-LITE-PODSLICE-V5-per-project-region: [{{limit: {chips}}}]\n"
    rule = "tpu-flavor-topology" if slices[0] == "1x3" else "tpu-topology"

    assert one(build, limits(text), f"v5e: {V5E % slices}", rule).nearest == nearest


def test_regions_beyond_the_first_are_counted() -> None:
    rooms = [Room(f"{region}-a", 8, None) for region in ("us-central1", "us-east4", "us-east5", "us-west1")]

    assert named(rooms[:2], "GPUs", max_regions=1) == "us-central1-a (8 GPUs left) and 1 more region"
    assert (
        named(rooms, "GPUs", max_regions=2)
        == "us-central1-a (8 GPUs left), us-east4-a (8 GPUs left) and 2 more regions"
    )
    assert named(rooms[:1], "GPUs", max_regions=1) == "us-central1-a (8 GPUs left)"
