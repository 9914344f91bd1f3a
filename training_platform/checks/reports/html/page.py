"""The report as one page of HTML: nothing is fetched, no script runs, light and dark follow the reader's system."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files

from training_platform.catalog.prices import LEFT_OUT, Cost
from training_platform.checks.comparison.comparison import Comparison, StackChange
from training_platform.checks.report import Report, folded, ordered
from training_platform.checks.reports.changes import resource_rows, stack_title, summary, tables
from training_platform.checks.reports.html.bars import capacity_bars, file_bars, quota_bars
from training_platform.checks.reports.html.element import Html, el, joined
from training_platform.checks.reports.html.stacks import stack_graph, stack_trees
from training_platform.checks.reports.wording import advice, counted, more_about, place, price, price_note, verdict
from training_platform.config.reading.finding import Finding
from training_platform.rules.descriptions import describe
from training_platform.rules.exemptions import Exempted

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


def _head(report: Report) -> Html:
    return el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="color-scheme", content="light dark"),
        el("link", rel="icon", href="data:,"),  # a browser asks a server for one otherwise
        el("title", f"training-platform check: {verdict(report)}"),
        el(
            "style",
            Html(files("training_platform.checks.reports.html").joinpath("page.css").read_text(encoding="utf-8")),
        ),
    )


def _header(report: Report, anchors: Iterable[tuple[str, str]]) -> Html:
    found = verdict(report)
    links = (el("a", title, href=f"#{anchor}") for anchor, title in anchors)
    return el(
        "header",
        el("h1", "training-platform check"),
        el("p", str(found), cls=f"verdict {found.state}"),
        el("nav", links, aria_label="Parts of this report"),
    )


def _section(anchor: str, title: str, body: Html) -> Html:
    return el("section", el("h2", title), body, id=anchor)


def _sections(report: Report, links: str) -> Iterator[tuple[str, str, Html]]:
    if report.failures:
        yield "unchecked", "Not checked", el("ul", (el("li", failure) for failure in report.failures), cls="failures")
    yield "findings", "Findings", _findings(ordered(report.all_findings()), links)
    if report.comparison:
        yield "changes", "Changes", _changes(report.comparison)
    if known := report.all_known():
        items = (_finding(each.finding, links, el("p", str(each), cls="reason")) for each in known)
        yield "known", "Known", el("ul", items, cls="findings")
    if exempted := report.all_exempted():
        yield "exempt", "Exempt", el("ul", (_exempted(each, links) for each in exempted), cls="findings")
    yield from _ledgers(report)
    if any(stack.accelerators for stack in report.stacks):
        yield "accelerators", "Accelerators", _accelerators(report)
    if any(stack.cost.most or stack.cost.unpriced for stack in report.stacks):
        yield "cost", "Cost", _cost(report)
    if report.stacks:
        yield "stacks", "Stacks", joined(stack_graph(report), stack_trees(report))


def _ledgers(report: Report) -> Iterator[tuple[str, str, Html]]:
    if report.ledgers:
        yield "quotas", "Quota headroom", quota_bars(report)
    if report.capacity:
        yield "capacity", "Capacity promised to teams", capacity_bars(report)
    if report.files:
        yield "files", "File capacity", file_bars(report)


def _findings(found: Sequence[Finding], links: str) -> Html:
    if not found:
        return el("p", "Nothing was found.")
    groups: dict[str, list[Html]] = {}
    for finding, more in sorted(folded(found), key=lambda each: _SEVERITIES.index(each[0].severity)):
        groups.setdefault(place(finding).file, []).append(_finding(finding, links, _following(more, links)))
    parts = (joined(el("h3", el("code", file)), el("ul", cards, cls="findings")) for file, cards in groups.items())
    return joined(*parts)


def _following(more: Sequence[Finding], links: str) -> Html | str:
    """Return what follows from a finding, a line each, or nothing."""
    lines = (el("li", _place(each, links), " ", el("code", each.path), " ", each.message) for each in more)
    return joined(el("p", "What follows from it:"), el("ul", lines, cls="following")) if more else ""


def _finding(finding: Finding, links: str, more: Html | str = "") -> Html:
    rule = describe(finding.rule)
    source = f"Source: {rule.source}." if rule.source else ""
    help_text = " ".join(part for part in (rule.summary, source, f"{more_about(finding)}.") if part)
    return el(
        "li",
        el("p", el("span", finding.severity, cls="severity"), " ", _place(finding, links)),
        el("p", el("code", finding.path), " " if finding.path else "", finding.message, cls="said"),
        el("p", advice(finding)) if advice(finding) else "",
        more,
        el("details", el("summary", finding.rule), el("p", help_text), cls="rule"),
        cls=finding.severity,
    )


def _exempted(exempted: Exempted, links: str) -> Html:
    return _finding(exempted.finding, links, el("p", str(exempted), cls="reason"))


def _place(finding: Finding, links: str) -> Html:
    at = place(finding)
    label = f"{at.file}:{at.line}:{at.column}" if finding.position else at.file
    if not links:
        return el("code", label)
    line = f"#L{at.line}" if finding.position else ""
    return el("a", el("code", label), href=f"{links}{at.file}{line}")


def _changes(comparison: Comparison) -> Html:
    stacks = (_changed(stack) for stack in comparison.stacks if not stack.empty)
    amounts = (joined(el("h3", each.title), _table(each.title, each.columns, each.rows)) for each in tables(comparison))
    unknown = el("p", comparison.unknown) if comparison.unknown else ""
    return joined(el("p", summary(comparison)), unknown, stacks, amounts)


def _changed(stack: StackChange) -> Html:
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


def _accelerators(report: Report) -> Html:
    rows = [
        (stack.name, row.region, row.flavor, f"{row.least:,}", f"{row.most:,}", row.unit)
        for stack in report.stacks
        for row in stack.accelerators
    ]
    return _table("Accelerators", ("stack", "region", "flavor", ">fewest", ">most", "unit"), rows)


def _cost(report: Report) -> Html:
    rows = [
        (stack.name, price(stack.cost) or "not known", price_note(stack.cost))
        for stack in report.stacks
        if stack.cost.most or stack.cost.unpriced
    ]
    total = sum((stack.cost for stack in report.stacks), Cost())
    if len(rows) > 1 and price(total):
        rows.append((f"{counted(len(rows), 'stack')} together", price(total), ""))
    note = f"Estimates, from list prices, without {', '.join(LEFT_OUT)}."
    return joined(_table("Cost", ("stack", "cost", "what it rests on"), rows), el("p", note, cls="note"))


def _table(label: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Html:
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
