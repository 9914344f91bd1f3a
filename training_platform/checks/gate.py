"""A check with what was known before it: the baseline of the repository, and the base of a change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

from training_platform.checks import baseline as known
from training_platform.checks.output import write_files
from training_platform.checks.planning.planner import DEFAULT, Planner
from training_platform.checks.progress import Progress, quiet
from training_platform.checks.report import Report
from training_platform.checks.run import run_check
from training_platform.policy.config_files import wrong_configs


def judge(
    root: Path,
    *,
    today: date,
    selected: Sequence[str] = (),
    fast: bool = False,
    base: str | None = None,
    new_only: bool = False,
    planner: Planner = DEFAULT,
    progress: Progress = quiet,
) -> Report:
    """Check stacks, all or the selected ones; with ``base`` those of them that the change since it can affect.

    Raises UnknownStackError, and BaseError where the base cannot be read.
    """
    baseline = known.read_baseline(root)
    if base is None:
        report = run_check(root, today=today, selected=selected, fast=fast, planner=planner, progress=progress)
        return _with_configs(root, baseline.apply(report))
    from training_platform.checks.comparison.compare import check_against  # noqa: PLC0415 # nobody else waits for it

    report = check_against(
        root,
        base,
        today=today,
        selected=selected,
        fast=fast,
        new_only=new_only,
        baseline=baseline,
        planner=planner,
        progress=progress,
    )
    return _with_configs(root, report)


def write_baseline(
    root: Path, *, today: date, selected: Sequence[str] = (), planner: Planner = DEFAULT, progress: Progress = quiet
) -> Report:
    """Check stacks, write what they have to the baseline, and return the report that then results.

    Where something could not be checked nothing is written. Raises UnknownStackError, and OutputError.
    """
    baseline = known.read_baseline(root)
    report = _with_configs(root, run_check(root, today=today, selected=selected, planner=planner, progress=progress))
    if report.failures or baseline.unreadable:
        return baseline.apply(report)
    write_files({root / known.FILE: known.baseline_text(report, baseline, today)})
    return known.read_baseline(root).apply(report)


def _with_configs(root: Path, report: Report) -> Report:
    """Return the report with what is wrong in the policy pack's configs: the deployment would end there."""
    return replace(report, failures=(*report.failures, *wrong_configs(root)))
