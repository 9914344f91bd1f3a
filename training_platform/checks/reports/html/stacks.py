"""The stacks of a report as a graph of which belongs to which, and as trees of what each would create."""

from __future__ import annotations

from collections.abc import Iterator

from training_platform.checks.planning.outcome import Resource
from training_platform.checks.report import Report, StackReport
from training_platform.checks.reports.html.element import Html, el, joined
from training_platform.checks.reports.wording import counted

MOST_RESOURCES = 5_000
"""Resources that trees show one by one; beyond it, counts by kind: a page of more is slow to open."""
MOST_IN_GRAPH = 60
_WIDTH, _HEIGHT, _GAP, _COLUMN = 200, 34, 12, 290


def stack_graph(report: Report) -> Html:
    """Return projects, the environments in them and the teams of those as a picture; the trees say the same."""
    columns = _columns(report)
    if not report.stacks or len(report.stacks) > MOST_IN_GRAPH:
        return Html("")
    rows = max(map(len, columns))
    width, height = _WIDTH + 2 * _COLUMN + 2, rows * (_HEIGHT + _GAP)
    places = {name: _place(column, row) for column, names in enumerate(columns) for row, name in enumerate(names)}
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


def stack_trees(report: Report) -> Html:
    """Return what each stack would create, folded: its parts, and in them each resource unless there are too many."""
    resources = sum(branch.count for stack in report.stacks for branch in stack.branches)
    return joined(_stack(stack, whole=resources <= MOST_RESOURCES) for stack in report.stacks)


def _stack(stack: StackReport, *, whole: bool) -> Html:
    kind = f"team in {stack.environment}" if stack.kind == "team" else stack.kind
    count = counted(sum(branch.count for branch in stack.branches), "resource") if stack.planned else "not planned"
    summary = el("summary", el("strong", stack.name), f" {kind}, {count}")
    if not stack.planned:
        return el("p", el("strong", stack.name), f" {kind}, not planned", cls="plain")
    if whole:
        return el("details", summary, el("ul", map(_resource, stack.resources), cls="tree"))
    parts = (
        el("li", el("strong", branch.name), " ", ", ".join(f"{count} {kind}" for kind, count in branch.kinds.items()))
        for branch in stack.branches
    )
    return el("details", summary, el("ul", parts, cls="tree"))


def _resource(resource: Resource) -> Html:
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


def _place(column: int, row: int) -> tuple[int, int]:
    return 1 + column * _COLUMN, 1 + row * (_HEIGHT + _GAP)


def _edge(above: tuple[int, int], below: tuple[int, int]) -> Html:
    x1, y1 = above[0] + _WIDTH, above[1] + _HEIGHT // 2
    x2, y2 = below[0], below[1] + _HEIGHT // 2
    middle = (x1 + x2) // 2
    return el("path", d=f"M{x1} {y1}C{middle} {y1} {middle} {y2} {x2} {y2}", cls="edge")


def _node(name: str, x: int, y: int, *, wrong: bool) -> Html:
    box = el("rect", x=x, y=y, width=_WIDTH, height=_HEIGHT - 2, rx=6, cls="node wrong" if wrong else "node")
    shown = name.removeprefix("project ")
    label = shown if len(shown) <= 26 else f"{shown[:25]}…"
    return el("g", el("title", f"{name}{': errors' if wrong else ''}"), box, el("text", label, x=x + 12, y=y + 21))
