"""The report as one page of HTML: nothing is fetched, no script runs, light and dark follow the reader's system.

Elements are made by ``el``, and whatever is not an element already is text, and escaped.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files
from itertools import groupby
from operator import attrgetter

from markupsafe import Markup

from training_platform.checks.comparison.comparison import Comparison, StackChange
from training_platform.checks.planning.outcome import Resource
from training_platform.checks.report import Report, StackReport, folded, ordered
from training_platform.checks.reports.sections import (
    SECTIONS,
    Section,
    amounts,
    change_summary,
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
)
from training_platform.checks.reports.wording import advice, counted, more_about, place, verdict
from training_platform.config.reading.finding import Finding
from training_platform.quota.charges import shown
from training_platform.quota.ledger import CapacityLine, FileLine, Line, ProjectLedger
from training_platform.rules.descriptions import describe

_SEVERITIES = ("error", "warning", "note")
# Whatever a stack file says, the page cannot load or run anything.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


def html_report(report: Report, links: str = "") -> str:
    """Return the page; ``links`` goes before the paths of files, which are plain text without it."""
    sections = list(_sections(report, links))
    body = joined(
        _header(report, [(anchor, title) for anchor, title, _ in sections]),
        el("main", (_section(*section) for section in sections)),
        el(
            "footer", f"Checked for {report.today}. Quotas are charged at the most machines that autoscaling may start."
        ),
    )
    return f"<!DOCTYPE html>\n{el('html', _head(report), el('body', body), lang='en')}\n"


def _head(report: Report) -> Markup:
    style = files("training_platform.checks.reports").joinpath("page.css").read_text(encoding="utf-8")
    return el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="color-scheme", content="light dark"),
        el("link", rel="icon", href="data:,"),  # a browser asks a server for one otherwise
        el("title", f"training-platform check: {verdict(report)}"),
        el("style", Markup(style)),  # noqa: S704 # our own file
    )


def _header(report: Report, anchors: Iterable[tuple[str, str]]) -> Markup:
    found = verdict(report)
    links = (el("a", title, href=f"#{anchor}") for anchor, title in anchors)
    return el(
        "header",
        el("h1", "training-platform check"),
        el("p", str(found), cls=f"verdict {found.state}"),
        el("nav", links, aria_label="Parts of this report"),
    )


def _section(anchor: str, title: str, body: Markup) -> Markup:
    return el("section", el("h2", title), body, id=anchor)


def _sections(report: Report, links: str) -> Iterator[tuple[str, str, Markup]]:
    """Yield the parts of the page: the anchor, the title, and the body of each."""
    if report.failures:
        yield "unchecked", "Not checked", el("ul", (el("li", failure) for failure in report.failures), cls="failures")
    yield "findings", "Findings", _findings(ordered(report.all_findings()), links)
    if report.comparison:
        yield "changes", "Changes", _changes(report.comparison)
    for anchor, title, aside in (
        ("known", "Known", [(known.finding, str(known)) for known in report.all_known()]),
        ("exempt", "Exempt", [(exempted.finding, str(exempted)) for exempted in report.all_exempted()]),
    ):
        if aside:
            items = (_finding(finding, links, el("p", reason, cls="reason")) for finding, reason in aside)
            yield anchor, title, el("ul", items, cls="findings")
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
                yield anchor, title, joined(_section_table(title, section), note)
    if report.stacks:
        yield "stacks", "Stacks", joined(stack_graph(report), stack_trees(report))


def _findings(found: Sequence[Finding], links: str) -> Markup:
    if not found:
        return el("p", "Nothing was found.")
    groups: dict[str, list[Markup]] = {}
    for finding, more in sorted(folded(found), key=lambda each: _SEVERITIES.index(each[0].severity)):
        groups.setdefault(place(finding).file, []).append(_finding(finding, links, _following(more, links)))
    parts = (joined(el("h3", el("code", file)), el("ul", cards, cls="findings")) for file, cards in groups.items())
    return joined(*parts)


def _following(more: Sequence[Finding], links: str) -> Markup | str:
    """Return what follows from a finding, a line each, or nothing."""
    lines = (el("li", _linked_place(each, links), " ", el("code", each.path), " ", each.message) for each in more)
    return joined(el("p", "What follows from it:"), el("ul", lines, cls="following")) if more else ""


def _finding(finding: Finding, links: str, more: Markup | str = "") -> Markup:
    rule = describe(finding.rule)
    source = f"Source: {rule.source}." if rule.source else ""
    help_text = " ".join(part for part in (rule.summary, source, f"{more_about(finding)}.") if part)
    return el(
        "li",
        el("p", el("span", finding.severity, cls="severity"), " ", _linked_place(finding, links)),
        el("p", el("code", finding.path), " " if finding.path else "", finding.message, cls="said"),
        el("p", advice(finding)) if advice(finding) else "",
        more,
        el("details", el("summary", finding.rule), el("p", help_text), cls="rule"),
        cls=finding.severity,
    )


def _linked_place(finding: Finding, links: str) -> Markup:
    at = place(finding)
    label = f"{at.file}:{at.line}:{at.column}" if finding.position else at.file
    if not links:
        return el("code", label)
    line = f"#L{at.line}" if finding.position else ""
    return el("a", el("code", label), href=f"{links}{at.file}{line}")


def _changes(comparison: Comparison) -> Markup:
    stacks = (_changed(stack) for stack in comparison.stacks if not stack.empty)
    tables = (joined(el("h3", each.title), _section_table(each.title, each)) for each in amounts(comparison))
    unknown = el("p", comparison.unknown) if comparison.unknown else ""
    return joined(el("p", change_summary(comparison)), unknown, stacks, tables)


def _changed(stack: StackChange) -> Markup:
    title = el("strong", stack_title(stack))
    rows = [
        (el("span", kind, cls=kind), name, joined(el("div", each) for each in inputs))
        for kind, name, inputs in resource_rows(stack)
    ]
    if not rows:
        return el("p", title, cls="plain")
    columns = ("what", "resource", "inputs: before → after")
    table = _table(f"Resources of {stack.name}", columns, rows)
    return el("details", el("summary", title), table, open=len(stack.resources) < 50)


def _section_table(label: str, section: Section) -> Markup:
    return _table(label, section.columns, (row.cells for row in section.rows))


def _table(label: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Markup:
    """Return a table that scrolls in itself where it is too wide; a column that starts with ``>`` is set right.

    On a narrow screen a row is a paragraph, in which a number stands after the name of its column.
    """
    names = [(each.lstrip(">"), "number" if each.startswith(">") else None) for each in columns]
    head = el("tr", (el("th", name, scope="col", cls=side) for name, side in names))
    body = (
        el(
            "tr",
            (el("td", cell, cls=side, data_name=side and name) for cell, (name, side) in zip(row, names, strict=True)),
        )
        for row in rows
    )
    table = el("table", el("thead", head), el("tbody", body))
    return el("div", table, cls="scroll", tabindex="0", role="region", aria_label=label)


_VOID = frozenset({"meta", "link", "br", "col", "line", "path", "rect"})


Child = str | Iterable[str]


def el(tag: str, /, *children: Child, **attributes: str | int | bool | None) -> Markup:
    """Return an element. ``cls`` is its class; an underscore in an attribute's name is a dash; None leaves one out."""
    given = Markup()
    for key, value in attributes.items():
        name = "class" if key == "cls" else key.rstrip("_").replace("_", "-")
        if value is True:
            given += f" {name}"
        elif value is not None and value is not False:
            given += Markup(' {}="{}"').format(name, value)
    if tag in _VOID:
        return Markup("<{}{}/>").format(tag, given)
    return Markup("<{0}{1}>{2}</{0}>").format(tag, given, joined(*children))


def joined(*children: Child) -> Markup:
    """Return elements and texts one after another."""
    return Markup().join(child if isinstance(child, str) else joined(*child) for child in children)


_SAID = {"over": "over", "unknown": "limit not known", "nearly": "nearly full", "fits": ""}


def quota_bars(report: Report) -> Markup:
    """Return every quota that the stacks draw on, the fullest of each region first."""
    return joined(_ledger_bars(ledger) for ledger in report.ledgers)


def capacity_bars(report: Report) -> Markup:
    """Return what teams are promised of each flavor, by environment and cluster."""
    places = groupby(report.capacity, key=lambda line: (line.environment, line.cluster))
    return joined(
        el(
            "section",
            el("h3", f"{environment} {cluster}"),
            el("ul", map(_capacity_bar, lines), cls="bars"),
            cls="place",
        )
        for (environment, cluster), lines in places
    )


def file_bars(report: Report) -> Markup:
    """Return what directories and homes are promised of each Filestore instance, by environment."""
    places = groupby(sorted(report.files, key=attrgetter("environment")), key=attrgetter("environment"))
    return joined(
        el("section", el("h3", environment), el("ul", map(_file_bar, lines), cls="bars"), cls="place")
        for environment, lines in places
    )


def _file_bar(line: FileLine) -> Markup:
    grows = f", grows to {line.grows_to:,}" if line.grows_to else ""
    speed = f"{throughput} MiB/s read/write" if (throughput := file_throughput(line)) else ""
    held = "; ".join(part for part in (speed, shares_of(line)) if part)
    return _promised_bar(line, line.instance, f"{shown(line.capacity)} GiB", grows, held)


def _capacity_bar(line: CapacityLine) -> Markup:
    return _promised_bar(line, line.flavor.name, f"{line.capacity:,}", "", shares_of(line))


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


def _ledger_bars(ledger: ProjectLedger) -> Markup:
    title = el("h3", ledger.project, " ", el("small", taken(ledger)))
    by_place = sorted(ledger.lines, key=lambda line: (line.key.location or "~", -_share(line), line.key))
    return joined(title, (_bars_of_place(name, list(lines)) for name, lines in groupby(by_place, key=location)))


def _bars_of_place(name: str, lines: list[Line]) -> Markup:
    short = sum(line.over or line.limit is None for line in lines)
    note = el("small", f"{counted(short, 'quota')} short", cls="over") if short else ""
    return el("section", el("h4", name, " ", note), el("ul", map(_quota, lines), cls="bars"), cls="place")


def _quota(line: Line) -> Markup:
    full = fullness(line)
    state = "full" if full == "nearly" and line.used == line.limit else _SAID[full]
    left = f"{shown(line.used - (line.limit or 0))} too many" if line.over else f"{headroom(line)} left"
    numbers = f"{shown(line.used)} of {limit(line)} {line.unit}, {left}"
    if line.limit is not None and math.isinf(line.limit):
        numbers = f"{shown(line.used)} {line.unit}, unlimited"
    asked = line.open_request
    request = el("small", f"{shown(asked)} requested") if asked is not None else ""
    holders = [(f"{held.holder.stack}/{held.holder.label}", held.amount) for held in line.holders]
    return el(
        "li",
        el("span", quota_name(line), " ", el("em", state) if state else "", cls="name"),
        _bar(holders, line.limit, asked),
        el("span", numbers, " ", request, cls="numbers"),
        el("span", held_by(line), cls="held"),
        cls=full,
    )


def _bar(holders: Iterable[tuple[str, float]], most: float | None, asked: float | None = None) -> Markup:
    """Return a bar with a part for each holder, as long as what may be held, is held, or is asked for.

    Where it is longer than what may be held a mark stands there, and from there an outline to what is asked for. The
    numbers beside it say the same, so the bar itself is hidden from who cannot see it.
    """
    held = list(holders)
    used = sum(amount for _, amount in held)
    if most is None or math.isinf(most):
        return el("span", cls="bar", aria_hidden="true")
    scale = max(used, most, asked or 0) or 1
    drawn = (
        el("i", style=f"width:{_percent(amount / scale)}", title=f"{name} {shown(amount)}")
        for name, amount in held
        if amount
    )
    outline: Child = ""
    if asked is not None:
        style = f"left:{_percent(most / scale)};width:{_percent((asked - most) / scale)}"
        outline = el("u", style=style, title=f"{shown(asked)} requested")
    mark = el("b", style=f"left:{_percent(most / scale)}") if scale > most else ""
    return el("span", drawn, outline, mark, cls="bar", aria_hidden="true")


def _percent(share: float) -> str:
    return f"{100 * share:.2f}%"


def _share(line: Line) -> float:
    if line.limit is None:
        return math.inf
    return line.used / line.limit if line.limit else math.inf if line.used else 0.0


MOST_RESOURCES = 5_000
"""Resources that trees show one by one; beyond it, counts by kind: a page of more is slow to open."""
MOST_IN_GRAPH = 60
_WIDTH, _HEIGHT, _GAP, _COLUMN = 200, 34, 12, 290


def stack_graph(report: Report) -> Markup:
    """Return projects, the environments in them and the teams of those as a picture; the trees say the same."""
    columns = _columns(report)
    if not report.stacks or len(report.stacks) > MOST_IN_GRAPH:
        return Markup("")
    rows = max(map(len, columns))
    width, height = _WIDTH + 2 * _COLUMN + 2, rows * (_HEIGHT + _GAP)
    places = {name: _box_at(column, row) for column, names in enumerate(columns) for row, name in enumerate(names)}
    wrong = {stack.name for stack in report.stacks if any(each.severity == "error" for each in stack.findings)}
    title = "Which project each environment is in, and which environment each team is in"
    picture = el(
        "svg",
        el("title", title),
        (_edge(places[above], places[below]) for above, below in _edges(report) if above in places),
        (_node(name, *places[name], wrong=name in wrong) for name in places),
        viewBox=f"0 0 {width} {height}", width=width, height=height, role="img", aria_label=title,
    )  # fmt: skip
    return el("div", picture, cls="scroll", tabindex="0", role="region", aria_label=title)


def stack_trees(report: Report) -> Markup:
    """Return what each stack would create, folded: its parts, and in them each resource unless there are too many."""
    resources = sum(branch.count for stack in report.stacks for branch in stack.branches)
    return joined(_stack(stack, whole=resources <= MOST_RESOURCES) for stack in report.stacks)


def _stack(stack: StackReport, *, whole: bool) -> Markup:
    kind = f"team in {stack.environment}" if stack.kind == "team" else stack.kind
    count = counted(sum(branch.count for branch in stack.branches), "resource") if stack.planned else "not planned"
    summary = el("summary", el("strong", stack.name), f" {kind}, {count}")
    if not stack.planned:
        return el("p", el("strong", stack.name), f" {kind}, not planned", cls="plain")
    if whole:
        return el("details", summary, el("ul", map(_resource, stack.resources), cls="tree"))
    items = (el("li", el("strong", name), " ", kinds) for name, _, kinds in (row.cells for row in parts(stack).rows))
    return el("details", summary, el("ul", items, cls="tree"))


def _resource(resource: Resource) -> Markup:
    protected = el("small", " protected") if resource.protected else ""
    label = joined(el("code", resource.name), " ", el("span", resource.kind, cls="kind"), protected)
    if not resource.children:
        return el("li", label)
    count = el("span", f" {_count(resource):,}", cls="kind")
    return el("li", el("details", el("summary", label, count), el("ul", map(_resource, resource.children))))


def _count(resource: Resource) -> int:
    return sum(child.custom + _count(child) for child in resource.children)


def _columns(report: Report) -> list[list[str]]:
    """Return projects, environments and teams, each below what it hangs on; projects bear a mark that no stack can."""
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


def _box_at(column: int, row: int) -> tuple[int, int]:
    return 1 + column * _COLUMN, 1 + row * (_HEIGHT + _GAP)


def _edge(above: tuple[int, int], below: tuple[int, int]) -> Markup:
    x1, y1 = above[0] + _WIDTH, above[1] + _HEIGHT // 2
    x2, y2 = below[0], below[1] + _HEIGHT // 2
    middle = (x1 + x2) // 2
    return el("path", d=f"M{x1} {y1}C{middle} {y1} {middle} {y2} {x2} {y2}", cls="edge")


def _node(name: str, x: int, y: int, *, wrong: bool) -> Markup:
    box = el("rect", x=x, y=y, width=_WIDTH, height=_HEIGHT - 2, rx=6, cls="node wrong" if wrong else "node")
    shown = name.removeprefix("project ")
    label = shown if len(shown) <= 26 else f"{shown[:25]}…"
    return el("g", el("title", f"{name}{': errors' if wrong else ''}"), box, el("text", label, x=x + 12, y=y + 21))
