"""The ledgers of pools and of Filestore: capacity, and what teams, cohorts and directories are promised of it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.places import ORGANISATION
from tests.training_platform.quota.file_systems import workspace
from training_platform.config.workspace import Workspace, read_workspace
from training_platform.quota.charges import Charge, Holder, QuotaKey
from training_platform.quota.ledger import CapacityLine, FileLine, Line, capacity_ledger, file_ledger, project_ledgers
from training_platform.quota.ledger_findings import capacity_findings, file_findings
from training_platform.quota.snapshot import Snapshots

Build = Callable[..., Workspace]
Limits = Callable[[str], Snapshots]
Key = Callable[..., QuotaKey]
TWO_LIMITS = """
    compute.googleapis.com:
      PREEMPTIBLE: [{limit: %d, region: us-central1}]
      STANDARD: [{limit: 40, region: us-central1}]
"""


def charge(amount: float, *keys: QuotaKey, stack: str = "dev", label: str = "h100") -> Charge:
    return Charge(keys, amount, "GPUs", Holder(stack, ("clusters", label), label))


def one_line(charges: list[Charge], snapshots: Snapshots) -> Line:
    (ledger,) = project_ledgers(charges, snapshots).values()
    (line,) = ledger.lines
    return line


@pytest.mark.parametrize(("preemptible", "charged"), [(0, "STANDARD"), (1, "PREEMPTIBLE")])
def test_charge_falls_back_where_the_first_limit_is_0(key: Key, limits: Limits, preemptible: int, charged: str) -> None:
    line = one_line([charge(8, key("PREEMPTIBLE"), key("STANDARD"))], limits(TWO_LIMITS % preemptible))

    assert line.key.quota_id == charged


def test_charge_stays_with_its_first_key_where_none_has_a_limit(key: Key, limits: Limits) -> None:
    line = one_line([charge(8, key("PREEMPTIBLE", "us-west4"), key("STANDARD", "us-west4"))], limits(TWO_LIMITS % 8))

    assert (line.key.quota_id, line.limit, line.over) == ("PREEMPTIBLE", 0, True)


def line(loaded: Workspace, instance: str = "data") -> FileLine:
    return next(file_line for file_line in file_ledger(loaded) if file_line.instance == instance)


def test_homes_of_notebooks_count(tmp_path: Path) -> None:
    homes_line = line(workspace(tmp_path, capacity=2560, one_gib=1, other_gib=1), "homes")

    assert (homes_line.promised, homes_line.shares[0].holder.label) == (2048, "homes of c")


def test_directories_may_be_promised_all_of_an_instance_and_no_gib_more(tmp_path: Path) -> None:
    full = workspace(tmp_path, capacity=1024, one_gib=1000, other_gib=24)
    assert file_findings(file_ledger(full), full) == []

    over = workspace(tmp_path, capacity=1024, one_gib=1000, other_gib=25)
    first, second = file_findings(file_ledger(over), over)

    assert (first.rule, first.severity, first.path) == ("file-capacity-exceeded", "error", "directories.sets.size_gib")
    assert first.position is not None
    assert (first.stack, first.nearest, second.stack, second.nearest) == (
        "env-one", str(1024 - 25), "env-other", str(1024 - 1000),
    )  # fmt: skip
    assert "has 1,024 GiB, but 1,025 are promised" in first.message
    assert "or a larger capacity_gib of data, up to 9,984" in (first.allowed or "")


def test_beside_directories_that_each_fill_an_instance_nothing_fits(tmp_path: Path) -> None:
    over = workspace(tmp_path, capacity=1024, one_gib=2000, other_gib=2000)

    fitting = {(finding.allowed or "").partition(";")[0] for finding in file_findings(file_ledger(over), over)}

    assert fitting == {"at most 0 in addition to the others"}


def test_after_a_change_the_instance_that_shrank_is_at_fault_or_the_directory_that_grew(tmp_path: Path) -> None:
    before = workspace(tmp_path, capacity=2048, one_gib=1000, other_gib=500)
    shrunk = workspace(tmp_path, capacity=1024, one_gib=1000, other_gib=500)
    grown = workspace(tmp_path, capacity=2048, one_gib=1000, other_gib=1500)

    (at_instance,) = file_findings(file_ledger(shrunk), shrunk, before)
    (at_directory,) = file_findings(file_ledger(grown), grown, before)

    assert (at_instance.stack, at_instance.path) == ("env", "filestore.data.capacity_gib")
    assert "has 1,024 GiB (2,048 before this change), but 1,500 are promised" in at_instance.message
    assert (at_directory.stack, at_directory.path) == ("env-other", "directories.sets.size_gib")


@pytest.mark.parametrize(
    ("other_gib", "allowed"), [(984, "; or a larger capacity_gib of data, up to 9,984"), (985, "")], ids=["just", "not"]
)
def test_an_instance_that_can_grow_to_what_is_promised_is_offered_as_the_way_out(
    tmp_path: Path, other_gib: int, allowed: str
) -> None:
    over = workspace(tmp_path, capacity=9728, one_gib=9000, other_gib=other_gib)
    first, _ = file_findings(file_ledger(over), over)

    assert first.allowed == f"at most {9728 - other_gib:,} in addition to the others{allowed}"


@pytest.mark.parametrize(
    ("tier", "capacity", "read", "write"),
    [
        ("ZONAL", 1024, 260, 88),
        ("ZONAL", 10240, 2600, 880),
        ("REGIONAL", 2048, 240, 200),
        ("REGIONAL", 10240, 2600, 880),
        ("BASIC_HDD", 1024, 100, 100),
        ("BASIC_HDD", 10240, 180, 120),
        ("BASIC_SSD", 2560, 1200, 350),
        ("ENTERPRISE", 10240, 1200, 1000),
    ],
)
def test_throughput_follows_tier_and_capacity(tmp_path: Path, tier: str, capacity: int, read: int, write: int) -> None:
    data_line = line(workspace(tmp_path, capacity=capacity, one_gib=1, other_gib=1, tier=tier))

    assert data_line.throughput is not None
    assert (data_line.throughput.read_mibps, data_line.throughput.write_mibps) == (read, write)


def test_of_iops_that_are_set_no_throughput_is_told(tmp_path: Path) -> None:
    data_line = line(workspace(tmp_path, capacity=1024, one_gib=1, other_gib=1, extra="iops: 4000"))

    assert data_line.throughput is None


HOLDS = 8 * 8  # GPUs of prod's reserved H100
PATH = "cohorts.research.shares.us-central1.h100-reservation.nominal_quota"


def with_cohort(root: Path, quota: int) -> Workspace:
    shutil.copytree(ORGANISATION / "stacks", root / "stacks")
    path = root / "stacks" / "Pulumi.prod.yaml"
    share = f"{{us-central1: {{h100-reservation: {{nominal_quota: {quota}}}}}}}"
    start = "    project: example-train-prod\n"
    text = path.read_text(encoding="utf-8")
    path.write_text(
        text.replace(start, f"{start}    cohorts: {{research: {{shares: {share}}}}}\n", 1), encoding="utf-8"
    )
    return read_workspace(root)


def line_of(workspace: Workspace) -> CapacityLine:
    lines = (
        line for line in capacity_ledger(workspace) if line.environment == "prod" and line.cluster == "us-central1"
    )
    return next(line for line in lines if line.flavor.name == "h100-reservation")


def test_quota_of_a_cohort_is_promised_beside_that_of_teams(tmp_path: Path) -> None:
    before = line_of(read_workspace(ORGANISATION))
    after = line_of(with_cohort(tmp_path, 16))

    assert before.capacity == HOLDS
    assert after.promised == before.promised + 16
    assert after.headroom == before.headroom - 16


@pytest.mark.parametrize(
    ("more", "rules"), [(0, []), (8, ["capacity-exceeded"]), (4, ["share-not-whole-slices", "capacity-exceeded"])]
)
def test_quota_of_a_cohort_that_pools_do_not_hold_whole_is_found_at_its_line(
    tmp_path: Path, more: int, rules: list[str]
) -> None:
    headroom = int(line_of(read_workspace(ORGANISATION)).headroom)
    workspace = with_cohort(tmp_path, headroom + more)

    findings = [
        finding for finding in capacity_findings(capacity_ledger(workspace), workspace) if finding.stack == "prod"
    ]

    assert [finding.rule for finding in findings] == rules
    assert {finding.path for finding in findings} == ({PATH} if rules else set())
    assert all(finding.position and finding.position.line == 6 for finding in findings)
