"""Composite literals of Go source, as plain values: blocks are mappings, lists are lists, calls and names are kept."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple

_TOKEN: Final = re.compile(
    r"""\s+|//[^\n]*|/\*.*?\*/|(?P<raw>`[^`]*`)|(?P<text>"(?:\\.|[^"\\])*")|(?P<number>-?\d+(?:\.\d+)?)"""
    r"""|(?P<name>[A-Za-z_][\w.]*)|(?P<sign>:=|.)""",
    re.DOTALL,
)
_PAIRS: Final = {"(": ")", "{": "}", "[": "]"}


class Name(NamedTuple):
    """A name, of a constant, a variable or a function."""

    name: str


class Call(NamedTuple):
    """A call of a function with its arguments."""

    name: str
    arguments: list[Any]


class Literal:
    """Reads one value of a source from a place on."""

    def __init__(self, source: str, start: int) -> None:
        self._source = source
        self._place = start
        self._token: re.Match[str] | None = None
        self._next()

    def value(self) -> Any:
        """Return the value that stands here; what comes after it in an expression is passed over."""
        while self._is("&") or self._is("*"):
            self._next()
        found = self._operand()
        while self._token and not any(self._is(each) for each in ",)}]:"):
            if self._is("(") or self._is("{") or self._is("["):
                self._skip()
            else:
                self._next()
        return found

    def _operand(self) -> Any:
        if self._token is None:
            return None
        if self._token["raw"] or self._token["text"]:
            return self._text()
        if number := self._token["number"]:
            self._next()
            return float(number) if "." in number else int(number)
        if self._is("["):
            self._type()
        elif self._is("{"):
            return self._block()
        elif name := self._token["name"]:
            return self._named(name)
        if self._is("{"):
            return self._block()
        self._next()
        return None

    def _named(self, name: str) -> Any:
        self._next()
        if name == "map":
            self._type()
            return self._block()
        if name == "func":
            self._skip_function()
            return Name(name)
        if self._is("("):
            return Call(name, self._entries(")", self.value))
        if self._is("{"):
            return self._block()
        return {"true": True, "false": False}.get(name, Name(name))

    def _text(self) -> str:
        written = self._token[0] if self._token else ""
        self._next()
        return written[1:-1] if written.startswith("`") else str(json.loads(written))

    def _type(self) -> None:
        """Pass over the type before a literal: ``[]string``, ``[string]*schema.Schema``."""
        while self._token and not self._is("{"):
            self._next()

    def _block(self) -> Any:
        rows = self._entries("}", self._entry)
        return {key: value for key, value in rows if key is not None} if any(row[0] for row in rows) else [
            value for _, value in rows
        ]  # fmt: skip

    def _entry(self) -> tuple[Any, Any]:
        first = self.value()
        if not self._is(":"):
            return None, first
        self._next()
        return first.name if isinstance(first, Name) else first, self.value()

    def _entries(self, end: str, read: Callable[[], Any]) -> list[Any]:
        self._next()
        found = []
        while self._token and not self._is(end):
            found.append(read())
            if self._is(","):
                self._next()
        self._next()
        return found

    def _skip_function(self) -> None:
        while self._token and not self._is("{"):
            self._skip() if self._is("(") else self._next()
        self._skip()

    def _skip(self) -> None:
        """Pass over what stands in one pair of brackets."""
        opened = self._token[0] if self._token else ""
        depth = 0
        while self._token:
            depth += self._is(opened)
            depth -= self._is(_PAIRS.get(opened, ""))
            self._next()
            if not depth:
                return

    def _is(self, sign: str) -> bool:
        return self._token is not None and self._token["sign"] == sign

    def _next(self) -> None:
        while self._place < len(self._source):
            token = _TOKEN.match(self._source, self._place)
            assert token is not None
            self._place = token.end()
            if token.lastgroup:
                self._token = token
                return
        self._token = None
