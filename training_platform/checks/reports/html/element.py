"""HTML by construction: whatever is not an element already is text, and escaped."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

_VOID = frozenset({"meta", "link", "br", "col", "line", "path", "rect"})


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


Child = str | Iterable[str]


def el(tag: str, /, *children: Child, **attributes: str | int | bool | None) -> Html:
    """Return an element. ``cls`` is its class; an underscore in an attribute's name is a dash; None leaves one out."""
    given = "".join(
        f" {_attribute(key)}" + ("" if value is True else f'="{escape(str(value))}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if tag in _VOID:
        return Html(f"<{tag}{given}/>")
    return Html(f"<{tag}{given}>{joined(*children)}</{tag}>")


def joined(*children: Child) -> Html:
    """Return elements and texts one after another."""
    return Html("".join(_one(child) for child in children))


def _one(child: Child) -> str:
    if isinstance(child, Html):
        return child
    return escape(child, quote=False) if isinstance(child, str) else joined(*child)


def _attribute(key: str) -> str:
    return "class" if key == "cls" else key.rstrip("_").replace("_", "-")
