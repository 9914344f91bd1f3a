"""The report as one HTML page. It loads nothing, runs no script, and follows the system's light or dark mode.

``el`` creates elements. Anything that is not already an element is text and is escaped.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter

from markupsafe import Markup

from training_platform.checks.change_report import Comparison, StackChange
from training_platform.checks.outcome import ResourceTree
from training_platform.checks.report import Report, StackReport, effect_rank, folded, ordered
from training_platform.checks.reports.conclusion import more_about
from training_platform.checks.reports.markup import Child, el, joined, section_table, table, whole_page
from training_platform.checks.reports.sections import (
    SECTIONS,
    amounts,
    change_summary,
    effects,
    file_throughput,
    fullness,
    headroom,
    held_by,
    limit,
    location,
    parts,
    quota_name,
    resource_rows,
    shares_of,
    stack_title,
    taken,
    unfelt,
)
from training_platform.checks.reports.wording import conclusion, place
from training_platform.config.reading.finding import Finding
from training_platform.config.reading.section import counted
from training_platform.quota.charges import shown
from training_platform.quota.ledger import CapacityLine, FileLine, Line, ProjectLedger
from training_platform.rules.descriptions import describe

_SEVERITIES = ("error", "warning", "note")


def html_report(report: Report, links: str = "") -> str:
    """Return the page. ``links`` is the prefix of links to files; without it, their paths are plain text."""
    result = conclusion(report)
    verdict = joined(el("p", str(result), cls=f"verdict {result.state}"), el("p", _origin(report), cls="note"))
    footer = "Quotas are charged for the maximum number of machines that autoscaling can start."
    return whole_page("training-platform check", verdict, list(_sections(report, links)), footer, f": {result}")


def _origin(report: Report) -> str:
    """Return what was checked and when, as far as the report contains it."""
    commit = f"Commit {report.commit}. " if report.commit else ""
    checked = f"Checked on {report.checked:%Y-%m-%d at %H:%M} UTC. " if report.checked else ""
    return f"{commit}{checked}Quota limits, exemptions and prices are as of {report.today}."


def _sections(report: Report, links: str) -> Iterator[tuple[str, str, Markup]]:
    """Yield the anchor, the title and the body of each section of the page."""
    if report.failures:
        label = el("p", el("span", "not checked", cls="severity"))
        cards = (el("li", label, el("p", failure), cls="unchecked") for failure in report.failures)
        yield "unchecked", "Not checked", el("ul", cards, cls="findings")
    changes = report.comparison
    if changes:
        yield "effects", "What the change does", _effects(changes)
    yield "findings", "Findings", _findings(ordered(report.all_findings()), links)
    if changes:
        yield "changes", "Changes", _changes(changes)
    yield from _aside(report, links)
    yield from _amounts(report)
    if report.stacks:
        yield "stacks", "Stacks", joined(stack_graph(report), stack_trees(report))


def _aside(report: Report, links: str) -> Iterator[tuple[str, str, Markup]]:
    """Yield a section with the findings that do not count, and the reason for each."""
    for anchor, title, aside in (
        ("known", "Known", [(row.finding, str(row)) for row in report.all_known()]),
        ("exempt", "Exempt", [(exempted.finding, str(exempted)) for exempted in report.all_exempted()]),
    ):
        if aside:
            items = (_finding(finding, links, el("p", reason, cls="reason")) for finding, reason in aside)
            yield anchor, title, el("ul", items, cls="findings")


def _amounts(report: Report) -> Iterator[tuple[str, str, Markup]]:
    """Yield two sections: how much of each limit the stacks use, and what they cost."""
    bars = {
        "quotas": ("Quota headroom", report.ledgers, quota_bars),
        "capacity": ("Capacity promised to teams", report.capacity, capacity_bars),
        "files": ("File capacity", report.files, file_bars),
    }
    for anchor, sections in SECTIONS.items():
        if anchor in bars:
            title, lines, draw = bars[anchor]
            if lines:
                yield anchor, title, draw(report)
        else:
            for section in sections(report):
                note = el("p", section.note, cls="note") if section.note else ""
                title = section.title[:1].upper() + section.title[1:]
                yield anchor, title, joined(section_table(title, section), note)


def _findings(findings: Sequence[Finding], links: str) -> Markup:
    if not findings:
        return el("p", "Nothing was found.")
    files: dict[str, list[Markup]] = {}
    groups = sorted(folded(findings), key=lambda group: (effect_rank(group[0]), _SEVERITIES.index(group[0].severity)))
    for finding, more in groups:
        lines = (
            el("li", _linked_place(other, links), " ", el("code", other.path), " ", other.message) for other in more
        )
        following = joined(el("p", "What follows from it:"), el("ul", lines, cls="following")) if more else ""
        files.setdefault(place(finding).file, []).append(_finding(finding, links, following))
    return joined(joined(el("h3", el("code", file)), el("ul", cards, cls="findings")) for file, cards in files.items())


def _finding(finding: Finding, links: str, more: Markup | str) -> Markup:
    rule = describe(finding.rule)
    source = f"Source: {rule.source}." if rule.source else ""
    help_text = " ".join(part for part in (rule.title, source, f"{more_about(finding)}.") if part)
    return el(
        "li",
        el("p", el("span", finding.severity, cls="severity"), " ", _linked_place(finding, links)),
        el("p", el("code", finding.path), " " if finding.path else "", _with_code(finding.message), cls="said"),
        el("p", _with_code(finding.advice)) if finding.advice else "",
        more,
        el("details", el("summary", finding.rule), el("p", help_text), cls="rule"),
        cls=finding.severity,
    )


def _with_code(sentence: str) -> Markup:
    """Return a sentence in which text between backticks is formatted as code."""
    parts = sentence.split("`")
    if len(parts) % 2 == 0:
        return joined(sentence)
    return joined(el("code", part) if index % 2 else part for index, part in enumerate(parts))


def _linked_place(finding: Finding, links: str) -> Markup:
    position = place(finding)
    label = f"{position.file}:{position.line}:{position.column}" if finding.position else position.file
    if not links:
        return el("code", label)
    line = f"#L{position.line}" if finding.position else ""
    return el("a", el("code", label), href=f"{links}{position.file}{line}")


def _changes(comparison: Comparison) -> Markup:
    stacks = (_stack_change(stack) for stack in comparison.stacks if not stack.empty)
    tables = (joined(el("h3", section.title), section_table(section.title, section)) for section in amounts(comparison))
    unknown = el("p", comparison.unknown) if comparison.unknown else ""
    return joined(el("p", change_summary(comparison)), unknown, stacks, tables)


def _effects(comparison: Comparison) -> Markup:
    """Return the effects of the change as a table with highlighted losses and a note below it."""
    parts: list[Markup] = []
    for section in effects(comparison):
        rows = [
            (el("strong", row.cells[0], cls="over") if row.state == "over" else row.cells[0], *row.cells[1:])
            for row in section.rows
        ]
        if rows:
            parts.append(table(section.title, section.columns, rows, wraps=True))
        parts.append(el("p", section.note, cls="note"))
    return joined(*parts)


def _stack_change(stack: StackChange) -> Markup:
    title = el("strong", stack_title(stack))
    rows = [
        (el("span", kind, cls=kind), name, joined(el("div", line) for line in inputs))
        for kind, name, inputs in resource_rows(stack, felt=True)
    ]
    if unfelt_changes := unfelt(stack):
        rows.append((Markup(), unfelt_changes, Markup()))
    if not rows:
        return el("p", title, cls="plain")
    resources = table(f"Resources of {stack.name}", ("what", "resource", "inputs: before → after"), rows)
    return el("details", el("summary", title), resources, open=len(stack.resources) < 50)


_STATES = {"over": "over", "unknown": "limit not known", "nearly": "nearly full", "fits": ""}


def quota_bars(report: Report) -> Markup:
    """Return a bar for every quota that the stacks use, sorted by region, the fullest first."""

    def share(line: Line) -> float:
        if line.limit is None:
            return math.inf
        if line.limit:
            return line.used / line.limit
        return math.inf if line.used else 0.0

    parts: list[Markup] = []
    for ledger in report.ledgers:
        parts.append(el("h3", ledger.project, " ", el("small", taken(ledger))))
        if all(line.unread for line in ledger.lines):  # a bar without a limit is empty
            parts.append(_needs(ledger))
            continue
        by_place = sorted(ledger.lines, key=lambda line: (line.key.location or "~", -share(line), line.key))
        for name, group in groupby(by_place, key=lambda line: location(line.key)):
            lines = list(group)
            short = sum(fullness(line) in ("over", "unknown") for line in lines)
            note = el("small", f"{counted(short, 'quota')} short", cls="over") if short else ""
            parts.append(_bars(joined(el("h4", name, " ", note)), map(_quota_bar, lines)))
    return joined(*parts)


def _needs(ledger: ProjectLedger) -> Markup:
    """Return the amounts that stacks need in a project whose limits have not been read yet."""
    command = el("code", f"training-platform quota pull {ledger.project}")
    rows = [(location(line.key), f"{quota_name(line.key)} ({line.unit})", shown(line.used)) for line in ledger.lines]
    summary = el("summary", f"what stacks need of {counted(len(rows), 'quota')}")
    needs = table(f"quotas of {ledger.project}", ("location", "quota", ">needs"), rows)
    return joined(el("p", command, " reads the limits.", cls="note"), el("details", summary, needs))


def _bars(title: Markup, bars: Iterable[Markup]) -> Markup:
    return el("section", title, el("ul", bars, cls="bars"), cls="place")


def capacity_bars(report: Report) -> Markup:
    """Return bars that show how much of each flavor is promised, for each environment and cluster."""

    def bar(line: CapacityLine) -> Markup:
        return _promised_bar(line, line.flavor.name, f"{line.capacity:,}", "", shares_of(line))

    places = groupby(report.capacity, key=lambda line: (line.environment, line.cluster))
    return joined(_bars(el("h3", " ".join(names)), map(bar, lines)) for names, lines in places)


def file_bars(report: Report) -> Markup:
    """Return bars that show how much of each Filestore instance is promised, for each environment."""

    def bar(line: FileLine) -> Markup:
        grows = f", grows to {line.grows_to:,}" if line.grows_to else ""
        speed = f"{throughput} MiB/s read/write" if (throughput := file_throughput(line)) else ""
        held = "; ".join(part for part in (speed, shares_of(line)) if part)
        return _promised_bar(line, line.instance, f"{shown(line.capacity)} GiB", grows, held)

    environments = groupby(sorted(report.files, key=attrgetter("environment")), key=attrgetter("environment"))
    return joined(_bars(el("h3", environment), map(bar, lines)) for environment, lines in environments)


def _promised_bar(line: CapacityLine | FileLine, name: str, capacity: str, more: str, held: str) -> Markup:
    free = f"{shown(-line.headroom)} too many" if line.over else f"{shown(line.headroom)} free"
    return el(
        "li",
        el("span", name, " ", el("em", "over") if line.over else "", cls="name"),
        _bar([(share.holder.label, share.amount) for share in line.shares], line.capacity),
        el("span", f"{shown(line.promised)} of {capacity} promised, {free}{more}", cls="numbers"),
        el("span", held, cls="held"),
        cls="over" if line.over else "fits",
    )


def _quota_bar(line: Line) -> Markup:
    full = fullness(line)
    state = "full" if full == "nearly" and line.used == line.limit else _STATES[full]
    headroom_text = f"{shown(line.used - (line.limit or 0))} too many" if line.over else f"{headroom(line)} left"
    numbers = f"{shown(line.used)} of {limit(line)} {line.unit}, {headroom_text}"
    if line.limit is not None and math.isinf(line.limit):
        numbers = f"{shown(line.used)} {line.unit}, unlimited"
    requested = line.open_request
    holders = [(f"{held.holder.stack}/{held.holder.label}", held.amount) for held in line.holders]
    return el(
        "li",
        el("span", quota_name(line.key), " ", el("em", state) if state else "", cls="name"),
        _bar(holders, line.limit, requested),
        el(
            "span",
            numbers,
            " ",
            "" if requested is None else el("small", f"{shown(requested)} requested"),
            cls="numbers",
        ),
        el("span", held_by(line), cls="held"),
        cls=full,
    )


def _bar(holders: Sequence[tuple[str, float]], maximum: float | None, requested: float | None = None) -> Markup:
    """Return a bar with a part for each stack that uses the limit. Its length is the largest of limit, use and request.

    If the bar is longer than the limit, a mark shows the limit and an outline shows the request. The numbers next to
    the bar have the same content, so the bar itself is hidden from screen readers.
    """
    if maximum is None or math.isinf(maximum):
        return el("span", cls="bar", aria_hidden="true")
    scale = max(sum(amount for _, amount in holders), maximum, requested or 0) or 1

    def percent(amount: float) -> str:
        return f"{100 * amount / scale:.2f}%"

    drawn = (
        el("i", style=f"width:{percent(amount)}", title=f"{name} {shown(amount)}") for name, amount in holders if amount
    )
    outline: Child = ""
    if requested is not None:
        style = f"left:{percent(maximum)};width:{percent(requested - maximum)}"
        outline = el("u", style=style, title=f"{shown(requested)} requested")
    mark = el("b", style=f"left:{percent(maximum)}") if scale > maximum else ""
    return el("span", drawn, outline, mark, cls="bar", aria_hidden="true")


MOST_RESOURCES = 5_000
"""The maximum number of resources that the page lists one by one. Otherwise it shows the number of each kind.

A page with more resources would open slowly.
"""
MOST_IN_GRAPH = 60
_WIDTH = 200
_HEIGHT = 34
_GAP = 12
_COLUMN = 290


def stack_graph(report: Report) -> Markup:
    """Return a picture of projects, their environments and their teams. The trees have the same content as text."""
    if not report.stacks or len(report.stacks) > MOST_IN_GRAPH:
        return Markup("")
    columns = _columns(report)
    width = _WIDTH + 2 * _COLUMN + 2
    height = max(map(len, columns)) * (_HEIGHT + _GAP)
    corners = {
        name: (1 + column * _COLUMN, 1 + row * (_HEIGHT + _GAP))
        for column, names in enumerate(columns)
        for row, name in enumerate(names)
    }
    edges = []
    for above, below in _edges(report):
        if above in corners:
            x1, top = corners[above]
            x2, other_top = corners[below]
            x1 += _WIDTH
            y1 = top + _HEIGHT // 2
            y2 = other_top + _HEIGHT // 2
            middle = (x1 + x2) // 2
            edges.append(el("path", d=f"M{x1} {y1}C{middle} {y1} {middle} {y2} {x2} {y2}", cls="edge"))
    errors = {stack.name for stack in report.stacks if any(finding.severity == "error" for finding in stack.findings)}
    nodes = []
    for name, (x, y) in corners.items():
        wrong = name in errors
        box = el("rect", x=x, y=y, width=_WIDTH, height=_HEIGHT - 2, rx=6, cls="node wrong" if wrong else "node")
        label = name.removeprefix("project ")
        label = label if len(label) <= 26 else f"{label[:25]}…"
        tip = el("title", f"{name}{': errors' if wrong else ''}")
        nodes.append(el("g", tip, box, el("text", label, x=x + 12, y=y + 21)))
    title = "The project of each environment, and the environment of each team"
    picture = el(
        "svg", el("title", title), edges, nodes,
        viewBox=f"0 0 {width} {height}", width=width, height=height, role="img", aria_label=title,
    )  # fmt: skip
    return el("div", picture, cls="scroll", tabindex="0", role="region", aria_label=title)


def stack_trees(report: Report) -> Markup:
    """Return the parts of each stack, which can be collapsed, with their resources unless there are too many."""
    resources = sum(branch.count for stack in report.stacks for branch in stack.branches)
    return joined(_stack(stack, whole=resources <= MOST_RESOURCES) for stack in report.stacks)


def _stack(stack: StackReport, *, whole: bool) -> Markup:
    kind = f"team in {stack.environment}" if stack.kind == "team" else stack.kind
    name = el("strong", stack.name)
    if not stack.planned:
        return el("p", name, f" {kind}, not planned", cls="plain")
    count = counted(sum(branch.count for branch in stack.branches), "resource")
    items: Iterable[Markup] = map(_resource, stack.resources)
    if not whole:
        items = (
            el("li", el("strong", part), " ", kinds) for part, _, kinds in (row.cells for row in parts(stack).rows)
        )
    return el("details", el("summary", name, f" {kind}, {count}"), el("ul", items, cls="tree"))


def _resource(resource: ResourceTree) -> Markup:
    protected = el("small", " protected") if resource.protected else ""
    label = joined(el("code", resource.name), " ", el("span", resource.kind, cls="kind"), protected)
    if not resource.children:
        return el("li", label)
    count = el("span", f" {_count(resource):,}", cls="kind")
    return el("li", el("details", el("summary", label, count), el("ul", map(_resource, resource.children))))


def _count(resource: ResourceTree) -> int:
    return sum(child.custom + _count(child) for child in resource.children)


def _columns(report: Report) -> list[list[str]]:
    """Return the names of projects, environments and teams. A project gets a prefix that stack names cannot have."""
    homes = [stack for stack in report.stacks if stack.kind != "team"]
    names = {stack.name for stack in homes}
    away = [stack.environment for stack in report.stacks if stack.environment and stack.environment not in names]
    environments = [*(stack.name for stack in homes), *dict.fromkeys(away)]
    teams = [stack for stack in report.stacks if stack.kind == "team"]
    teams.sort(key=lambda stack: environments.index(stack.environment or ""))
    projects = dict.fromkeys(f"project {stack.project}" for stack in (*homes, *teams) if stack.project)
    return [list(projects), environments, [stack.name for stack in teams]]


def _edges(report: Report) -> Iterator[tuple[str, str]]:
    for stack in report.stacks:
        if stack.kind == "team" and stack.environment:
            yield stack.environment, stack.name
        elif stack.project:
            yield f"project {stack.project}", stack.name
