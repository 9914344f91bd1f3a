"""Losses of a report, and changes that are in its base."""

from __future__ import annotations

from tests.training_platform.checks.repository import Repository
from training_platform.checks.effect_kinds import EFFECT_OF_RULE
from training_platform.checks.report import Report
from training_platform.config.reading.finding import Finding

CAPACITY = "            capacity: on-demand\n"
SPOT = "            capacity: spot\n"
BUCKET = "    buckets:\n      data: {location: us-central1, delete_after_days: 90}\n"
TEAM_HEAD = "    name: vision\n"


def losses(report: Report) -> list[Finding]:
    """Return the unacknowledged losses of a report."""
    assert report.failures == ()
    return [finding for finding in report.all_findings() if finding.rule in EFFECT_OF_RULE]


def committed(repository: Repository, stack: str, old: str, new: str) -> None:
    """Commit the replacement of a text to the base."""
    repository.git("switch", "--quiet", "main")
    repository.edit(stack, old, new)
    repository.commit()
    repository.git("switch", "--quiet", "--create", "next")
