"""Checks a whole repository, takes its baseline into account, and compares it with the base of a change."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from training_platform.checks.baseline import FILE, baseline_text, read_baseline
from training_platform.checks.output import write_files
from training_platform.checks.report import Report
from training_platform.checks.stacks import CheckOptions, check_stacks


def run_check(
    root: Path,
    options: CheckOptions,
    *,
    selected: Sequence[str] = (),
    base: str | None = None,
    new_only: bool = False,
    states: Sequence[Path] = (),
    previews: Sequence[Path] = (),
) -> Report:
    """Check all or the selected stacks; with ``base`` only those that the change since then can affect.

    Each file in ``states`` and ``previews`` contains the engine's output for one stack. Its stack is compared with this
    output instead of the base.

    Quotas and capacity are always summed over all stacks. Raises UserError for a stack without a file, and if the base
    cannot be read.
    """
    baseline = read_baseline(root)
    if base is None:
        return baseline.apply(check_stacks(root, selected or None, options).report)
    from training_platform.checks.comparison.against_base import BaseOptions, check_against  # noqa: PLC0415 # slow to import
    from training_platform.checks.comparison.deployed import once, read_preview, read_state  # noqa: PLC0415

    base_options = BaseOptions(
        ref=base,
        states=once(map(read_state, states), "--state"),
        previews=once(map(read_preview, previews), "--preview"),
    )
    return check_against(root, base_options, selected, options, baseline=baseline, new_only=new_only)


def write_baseline(root: Path, options: CheckOptions, *, selected: Sequence[str] = ()) -> Report:
    """Check stacks, write their findings to the baseline, and return the resulting report.

    Nothing is written if something could not be checked. Raises UserError.
    """
    baseline = read_baseline(root)
    report = check_stacks(root, selected or None, options).report
    if report.failures or baseline.unreadable:
        return baseline.apply(report)
    write_files({root / FILE: baseline_text(report, baseline, options.today)})
    return read_baseline(root).apply(report)
