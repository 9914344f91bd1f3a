"""The report as Markdown, for a comment on a pull request or a step's summary: the verdict first, what is long folded.

GitHub takes 65,536 characters in a comment; what does not fit is counted, and named as left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from training_platform.checks.comparison.comparison import Comparison
from training_platform.checks.report import Report, StackReport, folded, ordered
from training_platform.checks.reports.changes import resource_rows, stack_title, summary, tables
from training_platform.checks.reports.wording import (
    FILE_COLUMNS,
    FILE_NOTE,
    NEARLY_FULL,
    advice,
    counted,
    file_row,
    following,
    fullness,
    headroom,
    held_by,
    limit_and_request,
    location,
    more_about,
    place,
    price,
    price_note,
    quota_name,
    said,
    shares_of,
    verdict,
)
from training_platform.config.reading.finding import Finding, printable
from training_platform.quota.keys import shown
from training_platform.quota.ledger import FileLine

MARKER = "<!-- training-platform check -->"
"""The first line, by which a pipeline finds its own comment to keep it current."""
MOST_CHARACTERS = 60_000
_MOST_OF_FINDINGS = 40_000
_RULES = "docs/reference/rules.md"
_CHANGES = ("stack", "what", "resource", "inputs: before → after")
_LINK_SAFE = str.maketrans({" ": "%20", "(": "%28", ")": "%29", "<": "%3C", ">": "%3E"})
_ESCAPES = {character: f"\\{character}" for character in "\\`*_[]|~"}
# An @ that is no part of an address would call somebody; a comment after it ends the name.
_ESCAPES |= {"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "@<!-- -->", "\n": "<br>", "\r": ""}
_ESCAPE = str.maketrans(_ESCAPES)


def markdown_report(report: Report, links: str = "") -> str:
    """Return the report as Markdown; ``links`` goes before each file's path, which is relative without it."""
    text = "\n\n".join([MARKER, f"### {escaped(str(verdict(report)))}", *_main(report, links)])
    left_out = []
    for title, body in _folded(report):
        section = f"\n\n<details><summary>{title}</summary>\n\n{body}\n\n</details>"
        if len(text) + len(section) > MOST_CHARACTERS:
            left_out.append(title)
        else:
            text += section
    if left_out:
        text += f"\n\nLeft out for length: {'; '.join(left_out)}."
    return text + "\n"


def escaped(text: str) -> str:
    """Return plain text so that nothing in it is markup, a mention, or the end of a table's cell."""
    return printable(text).translate(_ESCAPE)


def _main(report: Report, links: str) -> Iterator[str]:
    if report.failures:
        yield "\n".join(f"- not checked: {escaped(failure)}" for failure in report.failures)
    if found := ordered(report.all_findings()):
        yield _findings(found, links)
    if report.comparison:
        yield escaped(summary(report.comparison)) + "."
        if replaced := _resources_that(report.comparison, "replaced"):
            yield table(_CHANGES, replaced)
    yield _quotas(report)
    if costs := [stack for stack in report.stacks if stack.cost.most or stack.cost.unpriced]:
        rows = [(stack.name, price(stack.cost) or "not known", price_note(stack.cost)) for stack in costs]
        yield table(("stack", "cost", ""), rows)


def _findings(found: Sequence[Finding], links: str) -> str:
    head = ["| severity | place | finding | allowed, nearest |", "| --- | --- | --- | --- |"]
    rows: list[str] = []
    length = 0
    groups = sorted(folded(found), key=lambda each: ("error", "warning", "note").index(each[0].severity))
    for finding, more in groups:
        help_text = escaped(" ".join(part for part in (advice(finding), following(more)) if part))
        row = f"| {finding.severity} | {_link(finding, links)} | {_what(finding, links)} | {help_text} |"
        length += len(row) + 1
        if length > _MOST_OF_FINDINGS:
            break
        rows.append(row)
    rest = len(groups) - len(rows)
    left = f"\n\nand {counted(rest, 'more finding')}" if rest else ""
    return "\n".join(head + rows) + f"{left}\n\n{more_about(groups[0][0])}"


def _what(finding: Finding, links: str) -> str:
    return f"{escaped(said(finding))} [`{finding.rule}`]({links.translate(_LINK_SAFE)}{_RULES}#{finding.rule})"


def _link(finding: Finding, links: str) -> str:
    at = place(finding)
    line = f"#L{at.line}" if finding.position else ""
    label = f"{at.file}:{at.line}" if finding.position else at.file
    return f"[{escaped(label)}]({(links + at.file).translate(_LINK_SAFE)}{line})"


def _quotas(report: Report) -> str:
    rows = [
        (
            ledger.project,
            location(line),
            f"{quota_name(line)} ({line.unit})",
            f"**{shown(line.used)}**" if line.over else shown(line.used),
            limit_and_request(line),
            headroom(line),
            held_by(line),
        )
        for ledger in report.ledgers
        for line in sorted(ledger.lines, key=lambda each: (not each.over, each.key.location or "~", each.key))
        if fullness(line) != "fits" or line.open_request is not None
    ]
    if not rows:
        return f"No quota is more than {NEARLY_FULL:.0%} full." if report.ledgers else "No quotas were counted."
    most = 60
    rest = f"\n\nand {len(rows) - most:,} more quotas" if len(rows) > most else ""
    quotas = f"quota above {NEARLY_FULL:.0%} or requested"
    return table(("project", "location", quotas, ">needs", ">limit", ">left", "held by"), rows[:most]) + rest


def _folded(report: Report) -> Iterator[tuple[str, str]]:
    if report.comparison:
        yield from _changes(report.comparison)
    if known := report.all_known():
        listed = [(_where(each.finding), f"{said(each.finding)} ({each.finding.rule})", each.why) for each in known]
        yield counted(len(known), "known finding"), table(("place", "finding", "known from"), listed)
    if exempted := report.all_exempted():
        exempt = [(_where(each.finding), f"{said(each.finding)} ({each.finding.rule})", str(each)) for each in exempted]
        yield counted(len(exempted), "exempt finding"), table(("place", "finding", "exemption"), exempt)
    rows = [
        (stack.name, row.region, row.flavor, f"{row.least:,}", f"{row.most:,}", row.unit)
        for stack in report.stacks
        for row in stack.accelerators
    ]
    if rows:
        yield "Accelerators", table(("stack", "region", "flavor", ">min", ">max", ""), rows)
    if report.capacity:
        yield "Capacity that teams are promised", _capacity(report)
    if report.files:
        yield f"File capacity, in {FILE_NOTE}", file_table_markdown(report.files)
    for stack in report.stacks:
        if stack.branches:
            yield f"{escaped(stack.name)}: {counted(_resources(stack), 'resource')}", _branches(stack)


def _changes(comparison: Comparison) -> Iterator[tuple[str, str]]:
    """Yield what a change does beside what it replaces, which stands open above."""
    titles = [escaped(stack_title(stack)) for stack in comparison.stacks if stack_title(stack) != stack.name]
    rest = _resources_that(comparison, "removed", "changed", "added")
    if rest or titles:
        most = 200
        left = f"\n\nand {len(rest) - most:,} more" if len(rest) > most else ""
        lines = "".join(f"- {title}\n" for title in titles) + ("\n" if titles else "")
        yield "Changed resources", lines + (table(_CHANGES, rest[:most]) + left if rest else "")
    for each in tables(comparison):
        yield f"{each.title}: before → after", table(each.columns, each.rows)


def _resources_that(comparison: Comparison, *kinds: str) -> list[tuple[str, str, str, str]]:
    return [
        (stack.name, kind, name, "\n".join(inputs))
        for stack in comparison.stacks
        for kind, name, inputs in resource_rows(stack)
        if kind in kinds
    ]


def _capacity(report: Report) -> str:
    rows = [
        (
            line.environment,
            line.cluster,
            line.flavor.name,
            f"{line.capacity:,}",
            f"**{shown(line.promised)}**" if line.over else shown(line.promised),
            shown(line.headroom),
            shares_of(line),
        )
        for line in report.capacity
    ]
    return table(("environment", "cluster", "flavor", ">holds", ">promised", ">free", "teams"), rows)


def file_table_markdown(lines: Iterable[FileLine]) -> str:
    """Return the ledger of files as a table."""
    rows = []
    for line in lines:
        cells = list(file_row(line))
        cells[2] = f"**{cells[2]}**" if line.over else cells[2]
        rows.append(cells)
    return table(FILE_COLUMNS, rows)


def _branches(stack: StackReport) -> str:
    rows = [
        (
            branch.name,
            f"{branch.count:,}",
            ", ".join(kind if count == 1 else f"{count} {kind}" for kind, count in sorted(branch.kinds.items())),
        )
        for branch in stack.branches
    ]
    return table(("part", ">resources", "of which"), rows)


def _resources(stack: StackReport) -> int:
    return sum(branch.count for branch in stack.branches)


def _where(finding: Finding) -> str:
    at = place(finding)
    return f"{at.file}:{at.line}"


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; a column whose head starts with ``>`` is set to the right, a cell in ``**`` stays bold."""
    heads = [column.removeprefix(">") for column in columns]
    rules = ["---:" if column.startswith(">") else "---" for column in columns]
    lines = [heads, rules, *([_cell(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(text: str) -> str:
    if text.startswith("**") and text.endswith("**"):
        return f"**{escaped(text[2:-2])}**"
    return escaped(text)
