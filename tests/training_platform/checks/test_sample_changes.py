"""Changes of the sample organisation: those that take something from somebody are reported, and few others."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from tests.support.places import ORGANISATION, ROOT
from tests.training_platform.checks.repository import signed
from tests.training_platform.checks.sample_changes import HARMLESS, LOSSES, YEAR, SampleChange
from training_platform.checks.change_report import Act
from training_platform.checks.comparison import against_base
from training_platform.checks.comparison.against_base import Affected
from training_platform.checks.comparison.base_files import BaseTree
from training_platform.checks.effect_kinds import EFFECT_OF_RULE, LOSS_RULES
from training_platform.checks.report import Report
from training_platform.checks.reports.markdown import markdown_report
from training_platform.checks.run import run_check
from training_platform.checks.stacks import CheckOptions, Files
from training_platform.rules.descriptions import acknowledgement

TODAY = date(2026, 11, 21)
EXPECTED_BESIDE = ("grants", "revokes", "unknown")
"""Effects that are lines of a report and no losses."""
MOST_WORDS = 270
"""Words of a comment with three findings; one act has about 150."""


def _git(root: Path, *arguments: str) -> None:
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@example.com", *arguments]
    subprocess.run(command, cwd=root, check=True, capture_output=True)


@pytest.fixture(scope="module")
def committed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the sample organisation under git."""
    root = tmp_path_factory.mktemp("samples")
    for folder in ("stacks", "jobs"):
        shutil.copytree(ORGANISATION / folder, root / folder)
    shutil.copy(ROOT / "Pulumi.yaml", root)
    _git(root, "init", "--quiet", "--initial-branch", "main")
    _git(root, "add", "--all")
    _git(root, "commit", "--quiet", "--message", "samples")
    _git(root, "tag", "samples")
    return root


@pytest.fixture(scope="module", autouse=True)
def _each_base_is_planned_once() -> Iterator[None]:
    plan_base = against_base._check_base
    planned: dict[tuple[str, tuple[str, ...]], Any] = {}

    def plan_once(tree: BaseTree, files: Files, scope: Affected, options: CheckOptions) -> Any:
        key = tree.commit, scope.base
        if key not in planned:
            planned[key] = plan_base(tree, files, scope, options)
        return planned[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(against_base, "_check_base", plan_once)
        yield


@pytest.fixture
def samples(committed: Path) -> Iterator[Path]:
    """Return the sample organisation as committed; every test's changes are undone."""
    yield committed
    _git(committed, "reset", "--quiet", "--hard", "samples")
    _git(committed, "clean", "--quiet", "-fd")


def judged(change: SampleChange, samples: Path) -> Report:
    """Return the report of a check of a change."""
    if change.before:
        change.before(samples)
        _git(samples, "commit", "--quiet", "--all", "--message", "before")
    change.edit(samples)
    return checked(samples)


def checked(samples: Path) -> Report:
    """Return the report of a check against the last commit."""
    return run_check(samples, CheckOptions(today=TODAY), base="HEAD", new_only=True)


def felt(report: Report) -> dict[str, str]:
    """Return the subjects of a report's effects, by kind."""
    assert report.comparison is not None
    rows = [row for act in report.comparison.acts for row in act.consequences]
    return {row.kind: ", ".join(row.subjects) for row in rows}


def words_of_first_screen(report: Report) -> int:
    """Return the number of words of a comment that are not folded, without the targets of links."""
    text = markdown_report(report).partition("<details>")[0]
    return len(re.sub(r"\]\([^)]*\)", "]", text).split())


def acts_of(report: Report) -> list[Act]:
    """Return the acts of a report that take something."""
    assert report.comparison is not None
    return [act for act in report.comparison.acts if act.is_loss]


@pytest.mark.parametrize("change", [*LOSSES, *YEAR], ids=lambda change: change.name)
def test_a_change_that_takes_something_is_one_act_with_one_acknowledgement(change: SampleChange, samples: Path) -> None:
    report = judged(change, samples)

    told = felt(report)
    assert change.effects <= told.keys(), told
    assert told.keys() <= {*change.effects, *EXPECTED_BESIDE}, told
    assert "VPC" not in told.get("jobs", "") or "data" in told  # networks of GPUs go with their pools
    losses = [finding for finding in report.all_findings() if finding.rule in EFFECT_OF_RULE]
    assert [loss.path for loss in losses] == [act.finding.path for act in acts_of(report)]
    assert len(losses) == (1 if change.effects & LOSS_RULES.keys() else 0)
    assert all(finding.file and finding.first and finding.takes for finding in losses)
    assert report.exit_code(strict=True) != 0 or not losses
    assert words_of_first_screen(report) <= MOST_WORDS
    if not losses:
        return

    entry = signed(acknowledgement(losses[0]))
    (samples / "stacks" / "exemptions.yaml").write_text(entry, encoding="utf-8")
    later = checked(samples)

    assert felt(later) == told  # still shown
    assert [act.acknowledged is not None for act in acts_of(later)] == [True]
    assert not [finding for finding in later.all_findings() if finding.rule in EFFECT_OF_RULE]


@pytest.mark.parametrize("change", HARMLESS, ids=lambda change: change.name)
def test_a_change_that_takes_nothing_is_no_loss(change: SampleChange, samples: Path) -> None:
    report = judged(change, samples)

    told = felt(report)
    assert words_of_first_screen(report) < 80

    assert change.effects <= told.keys(), told
    assert told.keys() <= {"grants"}, told


def test_a_change_of_a_job_alone_affects_no_stack(samples: Path) -> None:
    (change,) = [change for change in YEAR if change.name == "the job gets more time"]

    assert "### no stack is affected: clean\n" in markdown_report(judged(change, samples))
