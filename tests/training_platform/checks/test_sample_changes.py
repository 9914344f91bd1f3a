"""Changes of the sample organisation: those that take something from somebody are reported, and few others."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest

from tests.places import ORGANISATION, ROOT
from tests.training_platform.checks.sample_changes import HARMLESS, LOSSES, SampleChange
from training_platform.checks.effect_kinds import EFFECT_OF_RULE
from training_platform.checks.report import Report
from training_platform.checks.run import run_check
from training_platform.checks.stacks import CheckOptions

TODAY = date(2026, 11, 21)


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
    return root


@pytest.fixture
def samples(committed: Path) -> Iterator[Path]:
    """Return the sample organisation as committed; every test's changes are undone."""
    yield committed
    _git(committed, "reset", "--quiet", "--hard")
    _git(committed, "clean", "--quiet", "-fd")


def judged(change: SampleChange, samples: Path) -> Report:
    """Return the report of a check of a change."""
    change.edit(samples)
    return run_check(samples, CheckOptions(today=TODAY), base="main", new_only=True)


def felt(report: Report) -> dict[str, str]:
    """Return the messages of a report's effects, by kind."""
    assert report.comparison is not None
    return {consequence.kind: consequence.finding.message for consequence in report.comparison.consequences}


@pytest.mark.parametrize("change", LOSSES, ids=lambda change: change.name)
def test_a_change_that_takes_something_says_what_and_from_whom(change: SampleChange, samples: Path) -> None:
    report = judged(change, samples)

    told = felt(report)
    assert change.effects <= told.keys(), told
    losses = [finding for finding in report.all_findings() if finding.rule in EFFECT_OF_RULE]
    assert change.effects <= {EFFECT_OF_RULE[finding.rule] for finding in losses}
    assert all(finding.file and finding.first and finding.becomes for finding in losses)
    assert len({(finding.rule, finding.place) for finding in losses}) == len(losses)  # one for each line and effect
    assert report.exit_code(strict=True) != 0


@pytest.mark.parametrize("change", HARMLESS, ids=lambda change: change.name)
def test_a_change_that_takes_nothing_is_no_loss(change: SampleChange, samples: Path) -> None:
    told = felt(judged(change, samples))

    assert change.effects <= told.keys(), told
    assert told.keys() <= {"grants"}, told
