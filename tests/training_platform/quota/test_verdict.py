from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.training_platform.quota.conftest import UNLIMITED
from training_platform.config.reading.finding import Finding
from training_platform.config.workspace import Workspace
from training_platform.quota.demand import workspace_demand
from training_platform.quota.ledger import capacity_ledger, project_ledgers
from training_platform.quota.ledger_findings import capacity_findings, quota_findings
from training_platform.quota.snapshot import Snapshots

Build = Callable[..., Workspace]
Limits = Callable[[str], Snapshots]
H100 = "GPUS-PER-GPU-FAMILY-per-project-region"
POOLS = """
    node_pools:
      h100: {machine_type: a3-highgpu-8g, zone: us-central1-a, max_nodes: 6}
      eval: {machine_type: a3-highgpu-8g, zone: us-central1-b, max_nodes: 2}
"""
LISTED = (
    UNLIMITED
    + """\
      SSD-TOTAL-GB-per-project-region: [{limit: -1}]
      LOCAL-SSD-TOTAL-STORAGE-PER-VM-FAMILY-per-project-region: [{limit: -1}]
      GPUS-ALL-REGIONS-per-project: [{limit: -1}]
      GPUS-PER-GPU-FAMILY-per-project-region: [{limit: %d, region: us-central1, gpu_family: NVIDIA_H100}]
"""
)


def verdict(workspace: Workspace, snapshots: Snapshots) -> list[Finding]:
    return quota_findings(project_ledgers(workspace_demand(workspace), snapshots).values(), workspace)


def test_demand_within_the_limit_is_no_finding(build: Build, limits: Limits) -> None:
    assert verdict(build(dev=POOLS), limits(LISTED % (8 * 8))) == []


def test_demand_over_the_limit_says_who_holds_what_and_what_fits(build: Build, limits: Limits) -> None:
    (finding,) = verdict(build(dev=POOLS), limits(LISTED % (8 * 8 - 1)))

    assert finding.rule == "quota-exceeded"
    assert finding.message == f"{H100} (NVIDIA_H100) in us-central1 needs 64, of which h100 48 and eval 16"
    assert finding.allowed == "63 GPUs"
    assert (
        finding.nearest
        == f"max_nodes {(63 - 16) // 8} for h100; or request {6 * 8 + 2 * 8} GPUs (training-platform quota plan)"
    )
    assert finding.path == "clusters.main.node_pools.h100.max_nodes"
    assert finding.file == "stacks/Pulumi.dev.yaml"
    assert finding.position is not None
    assert finding.position.line == 11


@pytest.mark.parametrize(
    ("limit", "nearest"),
    [
        (16 + 8, "max_nodes 1 for h100; or request 64 GPUs (training-platform quota plan)"),
        (16 + 7, "request 64 GPUs (training-platform quota plan)"),
    ],
)
def test_nothing_fits_where_others_hold_the_limit_alone(build: Build, limits: Limits, limit: int, nearest: str) -> None:
    (finding,) = verdict(build(dev=POOLS), limits(LISTED % limit))

    assert finding.nearest == nearest
    assert (finding.allowed == f"{limit} GPUs; no max_nodes of h100 fits") is nearest.startswith("request")


def test_nearest_never_falls_below_the_fields_own_minimum(build: Build, limits: Limits) -> None:
    pools = "node_pools: {h100: {machine_type: a3-highgpu-8g, zone: us-central1-a, min_nodes: 2, max_nodes: 3}}"

    (finding,) = verdict(build(dev=pools), limits(LISTED % 8))

    assert finding.nearest == f"request {3 * 8} GPUs (training-platform quota plan)"


def test_every_holding_stack_gets_its_own_finding_that_names_the_others(build: Build, limits: Limits) -> None:
    other = "node_pools: {big: {machine_type: a3-highgpu-8g, zone: us-central1-a, max_nodes: 4}}"

    found = verdict(build(dev=POOLS, stage=other), limits(LISTED % 64))

    assert [(finding.stack, finding.nearest) for finding in found] == [
        ("dev", "max_nodes 2 for h100; or request 96 GPUs (training-platform quota plan)"),
        ("stage", "request 96 GPUs (training-platform quota plan)"),
    ]
    assert found[0].message.endswith("needs 96, of which h100 48, big of stage 32 and eval 16")
    assert found[1].message.endswith("needs 96, of which h100 of dev 48, big 32 and eval of dev 16")


def test_unlisted_quota_is_an_error_once_for_each_id_and_stack(build: Build, limits: Limits) -> None:
    found = verdict(build(dev=POOLS), limits((LISTED % 64).replace(H100, "SOMETHING-ELSE")))

    assert [(finding.rule, finding.severity) for finding in found] == [("quota-unknown", "error")]
    assert H100 in found[0].message
    assert "stacks/quotas/example-train.yaml" in found[0].message
    assert found[0].path == "clusters.main.node_pools.h100.max_nodes"


@pytest.mark.parametrize("spelling", ["quota_id", "dimensions"])
def test_a_spelling_that_nobody_has_verified_is_a_warning(build: Build, limits: Limits, spelling: str) -> None:
    disk = "LOCAL-SSD-TOTAL-STORAGE-PER-VM-FAMILY-per-project-region"  # of which A3's id and dimension are inferred
    row = f"{disk}: [{{limit: 100, vm_family: A3X, region: us-central1}}]" if spelling == "dimensions" else ""
    text = (LISTED % 64).replace(f"{disk}: [{{limit: -1}}]", row)

    (finding,) = verdict(build(dev=POOLS), limits(text))

    assert finding.severity == "warning"
    assert finding.rule == {"quota_id": "quota-unknown", "dimensions": "quota-exceeded"}[spelling]
    assert "the catalogue's spelling of it is not verified" in finding.message


def test_a_limit_that_the_snapshot_has_for_such_a_quota_is_held(build: Build, limits: Limits) -> None:
    disk = "LOCAL-SSD-TOTAL-STORAGE-PER-VM-FAMILY-per-project-region"
    row = f"{disk}: [{{limit: 100, vm_family: A3, region: us-central1}}]"

    (finding,) = verdict(build(dev=POOLS), limits((LISTED % 64).replace(f"{disk}: [{{limit: -1}}]", row)))

    assert (finding.rule, finding.severity) == ("quota-exceeded", "error")


def test_project_without_a_snapshot_is_one_error_for_each_stack(build: Build) -> None:
    team = "vertex: {persistent_resources: {t: {region: us-central1, machine_type: a2-highgpu-1g}}}"

    found = verdict(build(dev=POOLS, dev_vision=team), Snapshots())

    assert [(finding.rule, finding.stack, finding.path) for finding in found] == [
        ("quota-no-snapshot", "dev", "project"),
        ("quota-no-snapshot", "dev-vision", "environment"),
    ]
    assert [finding.position.line for finding in found if finding.position] == [3, 3]


def capacity(build: Build, vision: int, nlp: int) -> list[Finding]:
    workspace = build(
        dev="node_pools: {v5e: {machine_type: ct5lp-hightpu-4t, zone: us-central1-a, topology: 4x8, slices: 3}}",
        dev_vision=f"shares: {{main: {{tpu-v5e-4x8: {{nominal_quota: {vision}}}}}}}",
        dev_nlp=f"shares: {{main: {{tpu-v5e-4x8: {{nominal_quota: {nlp}}}}}}}",
    )
    return capacity_findings(capacity_ledger(workspace), workspace)


def test_shares_that_the_pools_hold_are_no_finding(build: Build) -> None:
    assert capacity(build, 2 * 32, 32) == []


def test_shares_over_capacity_are_found_at_every_team_that_could_lower_its(build: Build) -> None:
    found = capacity(build, 2 * 32, 2 * 32)

    assert [(finding.rule, finding.stack) for finding in found] == [
        ("capacity-exceeded", "dev-nlp"),
        ("capacity-exceeded", "dev-vision"),
    ]
    assert "is promised 128 google.com/tpu, of which nlp 64 and vision 64; its pools hold 96" in found[0].message
    assert found[0].path == "shares.main.tpu-v5e-4x8.nominal_quota"
    assert found[0].nearest == str(3 * 32 - 2 * 32)
    assert found[0].position is not None


def test_what_fits_is_in_whole_slices(build: Build) -> None:
    over = [finding for finding in capacity(build, 96, 40) if finding.rule == "capacity-exceeded"]

    assert [finding.nearest for finding in over] == ["32", None]


def test_a_share_without_which_the_others_still_do_not_fit_is_not_said_to_be_too_large(build: Build) -> None:
    (finding,) = [each for each in capacity(build, 320, 32) if each.rule == "capacity-exceeded"]

    assert (finding.stack, finding.nearest) == ("dev-vision", str(3 * 32 - 32))


@pytest.mark.parametrize(("share", "nearest"), [(33, "32"), (48, "32"), (63, "32"), (31, "32"), (16, "32"), (65, "64")])
def test_share_that_is_no_whole_number_of_slices_is_found(build: Build, share: int, nearest: str) -> None:
    (finding,) = capacity(build, share, 0)

    assert (finding.rule, finding.nearest) == ("share-not-whole-slices", nearest)
    assert finding.allowed == "a multiple of 32"
