"""The report as Markdown for a pull request comment or a step summary: conclusion first, long parts collapsed.

GitHub accepts 65,536 characters in a comment. Parts that do not fit are left out; the report names and counts them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from training_platform.checks.change_report import KINDS, Comparison
from training_platform.checks.effect_kinds import EFFECT_OF_RULE
from training_platform.checks.report import Report, effect_rank, folded, following
from training_platform.checks.reports.conclusion import more_about
from training_platform.checks.reports.markdown_tables import escaped, section_table, table
from training_platform.checks.reports.sections import (
    NEARLY_FULL,
    SECTIONS,
    amounts,
    change_summary,
    effects,
    full_quotas,
    parts,
    quota_row,
    resource_rows,
    stack_title,
)
from training_platform.checks.reports.tables import ReportRow, ReportSection
from training_platform.checks.reports.wording import conclusion, field_message, place
from training_platform.config.reading.finding import Finding
from training_platform.config.reading.section import counted
from training_platform.rules.descriptions import rule_link

MARKER = "<!-- training-platform check -->"
"""The first line, by which a pipeline finds its own comment in order to update it."""
MOST_CHARACTERS = 60_000
_MOST_OF_FINDINGS = 40_000
_REFERENCE = "docs/reference/"
_CHANGES = ("stack", "what", "resource", "inputs: before → after")
_OPEN = ("quotas", "cost")  # sections that are not folded
_MOST_FIRST = 3  # findings of a change that are not folded
_MOST_CHANGES = 200
_MOST_QUOTAS = 60
_LINK_SAFE = str.maketrans({" ": "%20", "(": "%28", ")": "%29", "<": "%3C", ">": "%3E"})


def markdown_report(report: Report, links: str = "") -> str:
    """Return the report as Markdown. ``links`` is the prefix of links to files; without it, links are relative."""
    text = "\n\n".join([MARKER, f"### {escaped(str(conclusion(report)))}", *_main(report, links)])
    left_out = []
    for title, body in _folded(report, links):
        section = f"\n\n<details><summary>{title}</summary>\n\n{body}\n\n</details>"
        if len(text) + len(section) > MOST_CHARACTERS:
            left_out.append(title)
        else:
            text += section
    if left_out:
        text += f"\n\nLeft out because this comment would be too long: {'; '.join(left_out)}."
    return text + "\n"


def _main(report: Report, links: str) -> Iterator[str]:
    """Yield the visible part: only the findings if a change is checked, otherwise also full quotas and the cost."""
    if report.failures:
        yield "\n".join(f"- not checked: {escaped(failure)}" for failure in report.failures)
    first, _ = _groups(report)
    if first:
        yield f"{_findings(first, links)}\n\n{_more_about(first[0][0], report)}"
    if report.comparison:
        yield f"{escaped(change_summary(report.comparison))}."
    else:
        yield _quotas(report)
        yield from map(section_table, SECTIONS["cost"](report))


def _more_about(finding: Finding, report: Report) -> str:
    """Return the command that explains a finding. For a loss, also return the entry that acknowledges it."""
    if report.comparison is None or finding.rule not in EFFECT_OF_RULE or finding.position is None:
        return more_about(finding)
    return f"To acknowledge it: training-platform explain {_label(finding)} --base {report.comparison.ref}"


def _label(finding: Finding) -> str:
    position = place(finding)
    return f"{position.file}:{position.line}" if finding.position else position.file


_Group = tuple[Finding, tuple[Finding, ...]]


def _groups(report: Report) -> tuple[list[_Group], list[_Group]]:
    """Return visible and collapsed findings with their consequences. Refused changes and losses come first.

    If a change is checked, a few findings are visible, but no notes. In a check of all stacks, all are visible.
    """
    severities = ("error", "warning", "note")
    groups = folded(report.all_findings())
    groups.sort(key=lambda group: (effect_rank(group[0]), severities.index(group[0].severity)))
    if report.comparison is None:
        return groups, []
    first = [group for group in groups if group[0].severity != "note"][:_MOST_FIRST]
    return first, [group for group in groups if group not in first]


def _findings(groups: Sequence[_Group], links: str) -> str:
    """Return a list of findings. In a table, line numbers would be broken on a narrow screen."""
    items: list[str] = []
    length = 0
    for finding, more in groups:
        position = place(finding)
        target = (links + position.file).translate(_LINK_SAFE)
        if finding.position:
            target += f"#L{position.line}"
        rule = f"[`{finding.rule}`]({links.translate(_LINK_SAFE)}{_REFERENCE}{rule_link(finding.rule)})"
        item = (
            f"- **{finding.severity}** [{escaped(_label(finding))}]({target}) {escaped(field_message(finding))} {rule}"
        )
        for sentence in (finding.advice, following(more)):
            if sentence:
                item += f"<br>{escaped(sentence)}"
        length += len(item) + 1
        if length > _MOST_OF_FINDINGS:
            break
        items.append(item)
    omitted_count = len(groups) - len(items)
    left_out = f"\n\nand {counted(omitted_count, 'more finding')}" if omitted_count else ""
    return "\n".join(items) + left_out


def _quotas(report: Report) -> str:
    """Return the quotas that are nearly full or have requests; quotas over their limit are first."""
    if not (full := full_quotas(report, requested=True)):
        if any(line.unread for ledger in report.ledgers for line in ledger.lines):
            return f"No quota with a known limit is more than {NEARLY_FULL:.0%} full."
        return f"No quota is more than {NEARLY_FULL:.0%} full." if report.ledgers else "No quotas were counted."
    projects = {ledger.project: number for number, ledger in enumerate(report.ledgers)}
    full.sort(key=lambda item: (projects[item[0]], not item[1].over, item[1].key.location or "~", item[1].key))
    rows = []
    for project, line in full:
        cells, state = quota_row(line)
        rows.append(ReportRow((project, *cells), state))
    quotas = f"quota above {NEARLY_FULL:.0%} or requested"
    columns = ("project", "location", quotas, ">needs", ">limit", ">left", "held by")
    omitted_quotas = f"\n\nand {len(rows) - _MOST_QUOTAS:,} more quotas" if len(rows) > _MOST_QUOTAS else ""
    return (
        section_table(ReportSection(title="", columns=columns, rows=rows[:_MOST_QUOTAS], stressed=3)) + omitted_quotas
    )


def _folded(report: Report, links: str) -> Iterator[tuple[str, str]]:
    """Yield the collapsed sections: what a change makes different, or the content of a whole check."""
    if report.comparison:
        _, other_findings = _groups(report)
        if other_findings:
            yield counted(len(other_findings), "more finding"), _findings(other_findings, links)
        yield from _changes(report.comparison)
    yield from _set_aside(report)
    if report.comparison is None:
        yield from _content(report)


def _set_aside(report: Report) -> Iterator[tuple[str, str]]:
    """Yield the findings that do not count."""
    for kind, aside, why in (
        ("known", [(row.finding, row.why) for row in report.all_known()], "known from"),
        ("exempt", [(exempted.finding, str(exempted)) for exempted in report.all_exempted()], "exemption"),
    ):
        rows = []
        for finding, reason in aside:
            position = place(finding)
            rows.append((f"{position.file}:{position.line}", f"{field_message(finding)} ({finding.rule})", reason))
        if rows:
            yield counted(len(rows), f"{kind} finding"), table(("place", "finding", why), rows)


def _content(report: Report) -> Iterator[tuple[str, str]]:
    """Yield the collapsed sections of a whole check and the parts of each stack."""
    for name, sections in SECTIONS.items():
        if name in _OPEN:
            continue
        for section in sections(report):
            title = section.title[:1].upper() + section.title[1:]
            parts_of_title = (title, section.unit, section.note and f"in {section.note}")
            yield escaped(", ".join(part for part in parts_of_title if part)), section_table(section)
    for stack in report.stacks:
        if stack.branches:
            section = parts(stack)
            yield escaped(section.title), section_table(section)


def _changes(comparison: Comparison) -> Iterator[tuple[str, str]]:
    """Yield the collapsed sections of a change: its effects, resources and amounts."""
    for section in effects(comparison):
        parts_of_body = [section_table(section)] if section.rows else []
        yield section.title, "\n\n".join([*parts_of_body, escaped(section.note)])
    titles = [escaped(stack_title(stack)) for stack in comparison.stacks if stack_title(stack) != stack.name]
    change_rows = _resources_that(comparison, *KINDS)
    if change_rows or titles:
        omitted_rows = f"\n\nand {len(change_rows) - _MOST_CHANGES:,} more" if len(change_rows) > _MOST_CHANGES else ""
        lines = "".join(f"- {title}\n" for title in titles) + ("\n" if titles else "")
        yield (
            "Changed resources",
            lines + (table(_CHANGES, change_rows[:_MOST_CHANGES]) + omitted_rows if change_rows else ""),
        )
    for section in amounts(comparison):
        yield f"{section.title}: before → after", section_table(section)


def _resources_that(comparison: Comparison, *kinds: str) -> list[tuple[str, str, str, str]]:
    return [
        (stack.name, kind, name, "\n".join(inputs))
        for stack in comparison.stacks
        for kind, name, inputs in resource_rows(stack)
        if kind in kinds
    ]
