"""Quota of cohorts beside that of teams: promised of the same pools, in whole slices, and found at its line."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.places import ORGANISATION
from training_platform.config.workspace import Workspace, read_workspace
from training_platform.quota.ledger import CapacityLine, capacity_ledger
from training_platform.quota.ledger_findings import capacity_findings

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
        each for each in capacity_ledger(workspace) if each.environment == "prod" and each.cluster == "us-central1"
    )
    return next(each for each in lines if each.flavor.name == "h100-reservation")


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
    left = int(line_of(read_workspace(ORGANISATION)).headroom)
    workspace = with_cohort(tmp_path, left + more)

    findings = [each for each in capacity_findings(capacity_ledger(workspace), workspace) if each.stack == "prod"]

    assert [each.rule for each in findings] == rules
    assert {each.path for each in findings} == ({PATH} if rules else set())
    assert all(each.position and each.position.line == 6 for each in findings)
