"""``training-platform explain``: explains rules, findings, quotas and machines."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from training_platform.cli.shared import (
    PATH,
    Format,
    completion,
    example,
    fail,
    format_option,
    print_json,
    repository,
    say,
    say_beside,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from training_platform.catalog.types import Quota
    from training_platform.config.reading.finding import Finding
    from training_platform.rules.descriptions import RuleSheet

_PLACE = re.compile(r"(?P<file>.+\.(?:ya?ml|py)):(?P<line>\d{1,9})(?::\d+)?")


def _subjects() -> list[str]:
    """Return what shells can complete: the rules, and the names in the catalogue."""
    from training_platform.catalog.fact_sheets import sheets
    from training_platform.checks.every_rule import every_rule

    return [*(sheet.id for sheet in every_rule()), *(sheet.name for sheet in sheets())]


@click.command(epilog=example("training-platform explain tpu-topology"))
@click.argument(
    "subject",
    metavar="RULE|FILE:LINE|QUOTA|MACHINE",
    shell_complete=completion(_subjects),
    help="A rule, the place of a finding (FILE:LINE), a quota, or a name from the catalogue.",
)
@format_option
@click.option("--base", metavar="REF", help="For FILE:LINE, also explain the effect of the change since REF there.")
@click.option("--root", type=PATH, help="For FILE:LINE, the repository; default: the one that contains this folder.")
def explain(subject: str, output_format: Format, base: str | None, root: Path | None) -> None:
    """Explain a rule, a finding at a line, a quota or a machine: reason, source and fix.

    Exit code 2: unknown name, or no finding at that line.
    """
    from training_platform.checks.every_rule import every_rule
    from training_platform.cli import catalog

    rules = {sheet.id: sheet for sheet in every_rule()}
    if place := _PLACE.fullmatch(subject):
        findings = _findings_at(repository(root), place["file"], int(place["line"]), base)
        pairs = [(rules[finding.rule], finding) for finding, _ in findings if finding.rule in rules]
        _print_rules(pairs, output_format, {id(finding): why for finding, why in findings if why})
    elif subject in rules:
        _print_rules([(rules[subject], None)], output_format)
    elif sheets := catalog.sheets_of(subject):
        catalog.print_sheets(sheets, output_format)
    elif quotas := _quotas(subject):
        _print_quotas(quotas, output_format)
    else:
        _unknown(subject, rules)


def _findings_at(folder: Path, file: str, line: int, base: str | None) -> list[tuple[Finding, str]]:
    """Return the findings at a line, in the order of reports. If one is exempt or known, the reason is returned too."""
    from training_platform.checks import run
    from training_platform.checks.report import ordered
    from training_platform.checks.stacks import CheckOptions
    from training_platform.config.reading.clock import today
    from training_platform.rules.exemptions import LOSSES

    path = Path(file).resolve()
    name = path.relative_to(folder.resolve()).as_posix() if path.is_relative_to(folder.resolve()) else file
    report = run.run_check(folder, CheckOptions(today=today(folder, None)), base=base)
    if report.failures:
        fail(" ".join(report.failures))
    aside = {id(row.finding): str(row) for row in report.all_exempted()}
    aside |= {id(row.finding): str(row) for row in report.all_known()}
    every = report.all_findings()
    every += [row.finding for row in report.all_exempted()]
    every += [row.finding for row in report.all_known()]
    by_line: dict[int, list[tuple[Finding, str]]] = {}
    for finding in ordered(every):
        if finding.file == name and (finding.position or finding.rule in LOSSES):
            number = finding.position.line if finding.position else 1
            by_line.setdefault(number, []).append((finding, aside.get(id(finding), "")))
    if line not in by_line:
        places = ", ".join(f"{name}:{number}" for number in sorted(by_line))
        fail(f"There is no finding at {name}:{line}. {f'Findings are at {places}.' if places else f'{name} has none.'}")
    return by_line[line]


def _quotas(name: str) -> list[Quota]:
    """Return the quotas that have a name: the catalogue's, or the quota id, which may be shortened as in reports."""
    from training_platform.catalog import loader
    from training_platform.quota.charges import short_quota_id

    quotas = loader.default().quotas.values()
    name = name.partition(" ")[0]  # reports add unit and location: A2-CPUS (vCPUs)
    return [quota for quota in quotas if name in {quota.name, quota.id.quota_id, short_quota_id(quota.id.quota_id)}]


def _print_rules(
    pairs: Sequence[tuple[RuleSheet, Finding | None]], output_format: Format, aside: Mapping[int, str] | None = None
) -> None:
    """Print rules, each with its finding if there is one.

    ``aside`` contains, for each exempt or known finding, the reason why it does not count, keyed by the object's
    ``id``.
    """
    from training_platform.rules.descriptions import acknowledgement, exemption
    from training_platform.rules.exemptions import LOSSES

    if output_format == "json":
        print_json([_document(sheet) for sheet, _ in pairs])
        return
    for number, (sheet, finding) in enumerate(pairs):
        if number:
            say("")
        if finding:
            why = (aside or {}).get(id(finding), "")
            say(f"{finding.severity} {finding}\n" + (f"  {why}\n" if why else ""))
        say_beside("", f"{sheet.id}: {sheet.severity}, rule set {sheet.group}")
        say_beside("  ", f"Looks for {sheet.looks_for}")
        if sheet.details:
            say_beside("  ", sheet.details)
        say_beside("  ", f"Refused by {sheet.refused_by}.")
        if sheet.source:
            say_beside("  ", f"Source: {sheet.source}.")
        say_beside("  ", f"To fix it: {_fix(finding)}")
        if sheet.id in LOSSES and finding:
            say("  To allow it, write into stacks/exemptions.yaml:")
            say("    " + acknowledgement(finding).replace("\n", "\n    "))
        elif sheet.id in LOSSES:
            say("  `explain FILE:LINE --base REF` prints the acknowledgement that allows a loss.")
        elif sheet.exemptible:
            say("  To exempt one section, write into stacks/exemptions.yaml:")
            say("    " + exemption(sheet.id, finding).replace("\n", "\n    "))
        else:
            say("  It cannot be exempt.")


def _fix(finding: Finding | None) -> str:
    if finding is None:
        return "while a check reports it, `training-platform explain FILE:LINE` prints what to write at that line."
    if finding.first:
        return f"{finding.first}."
    if finding.follows:
        return f"correct {finding.follows}, which causes this finding."
    if finding.nearest and finding.nearest.startswith("training-platform "):
        return f"run {finding.nearest}."
    if finding.nearest:
        alternatives = f", or another allowed value: {finding.allowed}" if finding.allowed else ""
        return f"write {finding.nearest}{alternatives}."
    if finding.allowed:
        return f"write {finding.allowed}."
    named = "training-platform " in finding.message
    return "run the command that the finding names." if named else "change or remove the field that the finding names."


def _print_quotas(quotas: list[Quota], output_format: Format) -> None:
    from training_platform.catalog import loader

    if output_format == "json":
        print_json([asdict(quota) | {"id": quota.id._asdict()} for quota in quotas])
        return
    for number, quota in enumerate(quotas):
        dimensions = "".join(f", {name} {value}" for name, value in quota.id.dimensions)
        where = "the whole project" if quota.id.per == "project" else f"each {quota.id.per}"
        say_beside("\n" if number else "", f"{quota.id.quota_id}: quota of {quota.id.service}{dimensions}")
        say_beside("  ", f"Counts {quota.id.unit} for {where}.")
        users = [
            name
            for name, row in loader.default().accelerators.items()
            if quota.id in row.quotas.values() or (row.vertex and quota.id in row.vertex.quotas.values())
        ]
        if users:
            say_beside("  ", f"Used by {', '.join(users)}.")
        say_beside("  ", f"Source: {quota.source}.{' Not verified.' if quota.unverified else ''}")
        raising = "`quota_requests` in the environment's file, or `training-platform quota request`."
        say_beside("  ", f"To raise it: {raising}")


def _document(sheet: RuleSheet) -> dict[str, object]:
    return asdict(sheet) | {"facts": list(sheet.facts), "exemptible": sheet.exemptible}


def _unknown(subject: str, rules: Iterable[str]) -> None:
    from training_platform.catalog import loader
    from training_platform.catalog.fact_sheets import sheets
    from training_platform.catalog.nearest import find_nearest
    from training_platform.config.reading.section import enumeration
    from training_platform.quota.charges import short_quota_id

    quotas = (short_quota_id(quota.id.quota_id) for quota in loader.default().quotas.values())
    names = [sheet.name for sheet in sheets()]
    several = [name for name in names if name.startswith(f"{subject.casefold()}-")]  # a100: 40 and 80 GB
    same = [name for name in names if name.casefold() == subject.casefold()]  # H100
    nearest = enumeration(same or several) or find_nearest(subject, {*rules, *quotas, *names})
    hint = f"Nearest: {nearest}." if nearest else "See docs/reference/rules.md and `training-platform catalog list`."
    fail(f"No rule, quota or catalogue entry has the name {subject!r}. {hint}")
