"""Elements, tables and pages of HTML. A page loads no other files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.resources import files

from markupsafe import Markup

from training_platform.checks.reports.tables import ReportSection

# Whatever a stack file contains, the page cannot load or run anything.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
Child = str | Iterable[str]
_VOID = frozenset({"meta", "link", "br", "col", "line", "path", "polyline", "rect"})


def whole_page(
    title: str, verdict: Markup, sections: Sequence[tuple[str, str, Markup]], footer: str, more_title: str = ""
) -> str:
    """Return a page of sections, each with its anchor, title and body."""
    style = files("training_platform.checks.reports").joinpath("page.css").read_text(encoding="utf-8")
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="color-scheme", content="light dark"),
        el("link", rel="icon", href="data:,"),  # otherwise a browser requests one from a server
        el("title", f"{title}{more_title}"),
        el("style", Markup(style)),  # noqa: S704 # our own file
    )
    anchors = (el("a", name, href=f"#{anchor}") for anchor, name, _ in sections)
    header = el("header", el("h1", title), verdict, el("nav", anchors, aria_label="Parts of this report"))
    main = el("main", (el("section", el("h2", name), body, id=anchor) for anchor, name, body in sections))
    page = el("html", head, el("body", header, main, el("footer", footer)), lang="en")
    return f"<!DOCTYPE html>\n{page}\n"


def section_table(label: str, section: ReportSection) -> Markup:
    """Return a section's rows as a table."""
    return table(label, section.columns, (row.cells for row in section.rows))


def table(label: str, columns: Sequence[str], rows: Iterable[Sequence[str]], *, wraps: bool = False) -> Markup:
    """Return a table that scrolls if it is too wide. A column whose title starts with ``>`` is right-aligned.

    Only cells of the last column wrap, unless the table ``wraps``. On a narrow screen each row becomes a paragraph in
    which a number follows the name of its column.
    """
    names = [(column.lstrip(">"), "number" if column.startswith(">") else None) for column in columns]
    head = el("tr", (el("th", name, scope="col", cls=side) for name, side in names))
    body = (
        el(
            "tr",
            (el("td", cell, cls=side, data_name=side and name) for cell, (name, side) in zip(row, names, strict=True)),
        )
        for row in rows
    )
    table = el("table", el("thead", head), el("tbody", body), cls="wraps" if wraps else None)
    return el("div", table, cls="scroll", tabindex="0", role="region", aria_label=label)


def el(tag: str, /, *children: Child, **attributes: str | int | bool | None) -> Markup:
    """Return an element of class ``cls``. Underscores in attribute names become dashes; None omits an attribute."""
    text = Markup()
    for key, value in attributes.items():
        name = "class" if key == "cls" else key.rstrip("_").replace("_", "-")
        if value is True:
            text += f" {name}"
        elif value is not None and value is not False:
            text += Markup(' {}="{}"').format(name, value)
    if tag in _VOID:
        return Markup("<{}{}/>").format(tag, text)
    return Markup("<{0}{1}>{2}</{0}>").format(tag, text, joined(*children))


def joined(*children: Child) -> Markup:
    """Return elements and strings joined together."""
    return Markup().join(child if isinstance(child, str) else joined(*child) for child in children)
