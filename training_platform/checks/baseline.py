"""The baseline: findings that existed when checks were introduced, and that therefore do not make a check fail.

``check --write-baseline`` writes ``stacks/baseline.yaml``, which lists findings by fingerprint. Unlike an exemption, an
entry needs no reason, owner or expiry date. It applies to exactly one finding and contains no pattern.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Annotated

import yaml
from pydantic import Field

from training_platform.checks.report import Report, fingerprinted, set_aside
from training_platform.config.reading.declaration import Draft, declare, finding, located
from training_platform.config.reading.finding import Anchor, Position
from training_platform.config.reading.rejection import validated
from training_platform.config.reading.section import OneOf, Section
from training_platform.config.reading.source import UnreadableError, read_source
from training_platform.rules.exemptions import EXEMPTIBLE

FILE = "stacks/baseline.yaml"
_HEAD = """\
# Findings that existed when this file was written. A check reports them and does not fail because of them.
# `training-platform check --write-baseline` writes this file, and removes findings that are fixed. To excuse a finding
# for a reason and until a date, add an exemption to exemptions.yaml instead.
"""


class BaselineEntry(Section):
    """One known finding. All fields except ``fingerprint`` and ``since`` are for readers of the file."""

    fingerprint: str = Field(pattern=r"^[0-9a-f]{64}$")
    rule: Annotated[str, OneOf("rule whose findings a baseline may list", EXEMPTIBLE)]
    stack: str | None = None
    path: str | None = None
    resource: str | None = None
    since: date


class BaselineFile(Section):
    """The content of the baseline file."""

    findings: tuple[BaselineEntry, ...] = ()


BASELINE_STALE = declare(
    "baseline-stale",
    "Find a baseline entry whose finding no longer occurs.",
    ruleset="exemptions",
    severity="warning",
)


@dataclass(frozen=True)
class Baseline:
    """The entries of the baseline, each with its position; ``unreadable`` contains all errors of the file."""

    entries: tuple[BaselineEntry, ...] = ()
    places: Mapping[str, Position] | None = None
    unreadable: tuple[str, ...] = ()

    def apply(self, report: Report) -> Report:
        """Return the report without the findings in the baseline, and with a warning for each stale entry.

        An entry is stale if its stack was planned without the finding, or if its stack no longer exists.
        """
        if self.unreadable:
            return replace(report, failures=(*report.failures, *self.unreadable))
        marks = {mark for _, mark in fingerprinted(report.all_findings())}
        report = set_aside(report, {entry.fingerprint: f"in {FILE} since {entry.since}" for entry in self.entries})
        stale = located(self._stale(entry) for entry in self._unneeded(report, marks))
        return replace(report, findings=(*report.findings, *stale))

    def undecided(self, report: Report, marks: Collection[str]) -> list[BaselineEntry]:
        """Return the entries that match no finding but may still be valid, because their stack was not planned."""
        unneeded = self._unneeded(report, marks)
        return [entry for entry in self.entries if entry.fingerprint not in marks and entry not in unneeded]

    def _unneeded(self, report: Report, marks: Collection[str]) -> list[BaselineEntry]:
        decided = {stack.name for stack in report.stacks if stack.planned}
        return [
            entry
            for entry in self.entries
            if entry.fingerprint not in marks
            and (entry.stack in decided or (entry.stack is not None and entry.stack not in report.known_stacks))
        ]

    def _stale(self, entry: BaselineEntry) -> Draft:
        subject = entry.path or entry.resource or entry.stack
        place = Anchor(stack=entry.stack, file=FILE, position=(self.places or {}).get(entry.fingerprint))
        message = f"{entry.rule} of {subject}: the finding no longer occurs"
        return finding(place, (), message, rule=BASELINE_STALE, allowed="delete the entry, or write the baseline again")


def read_baseline(root: Path) -> Baseline:
    """Read ``stacks/baseline.yaml``. If the file does not exist, the baseline is empty."""
    path = root / FILE
    if not path.exists():
        return Baseline()
    try:
        source = read_source(path, FILE)
    except UnreadableError as error:
        return Baseline(unreadable=(str(error),))
    value = source.value if source.value is not None else {}
    file, rejected = validated(BaselineFile, value, source)
    wrong = [*source.findings, *rejected]
    if file is None or wrong:
        return Baseline(unreadable=tuple(finding.one_line for finding in wrong))
    places = {row.fingerprint: source.position(("findings", index)) for index, row in enumerate(file.findings)}
    return Baseline(file.findings, places)


def baseline_text(report: Report, before: Baseline, today: date) -> str:
    """Return the text of a baseline with all errors and warnings of a report that are allowed in a baseline.

    No baseline may have been applied to ``report`` before. A finding that is already in the baseline keeps its date. An
    entry about which the report says nothing is kept.
    """
    since = {entry.fingerprint: entry.since for entry in before.entries}
    marked = [(finding, mark) for finding, mark in fingerprinted(report.all_findings())]
    entries = [
        BaselineEntry(
            fingerprint=mark,
            rule=finding.rule,
            stack=finding.stack,
            path=finding.path or None,
            resource=finding.resource,
            since=since.get(mark, today),
        )
        for finding, mark in marked
        if finding.rule in EXEMPTIBLE and finding.severity != "note"
    ]
    entries += before.undecided(report, {mark for _, mark in marked})
    entries.sort(key=lambda row: (row.stack or "", row.path or "", row.rule, row.resource or "", row.fingerprint))
    rows = [{**entry.model_dump(exclude_none=True), "since": entry.since.isoformat()} for entry in entries]
    document = {"findings": rows}
    return _HEAD + str(yaml.safe_dump(document, sort_keys=False, width=120, allow_unicode=True))
