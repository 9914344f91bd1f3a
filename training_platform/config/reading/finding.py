"""Findings, errors that end a command, and text of other people's files that is safe to print.

A finding says what is wrong, where, what is allowed, and the nearest valid value.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Any, Literal, NamedTuple

Severity = Literal["error", "warning", "note"]
Path = tuple[str | int, ...]
"""Keys and list indices from the top of a section to a value."""
Place = tuple[str, ...]
"""A file, and the keys from its top to a value; ``(file,)`` is the whole file."""


class Position(NamedTuple):
    """A position in a file; both numbers start at 1."""

    line: int
    column: int


class Anchor(NamedTuple):
    """The place of a subject's field: its file and position as far as they are known, and its path below the section.

    An anchor can be a subject itself, of something that no other subject knows.
    """

    stack: str | None = None
    file: str | None = None
    position: Position | None = None
    path: str = ""
    resource: str | None = None

    def locate(self, field: Path) -> Anchor:
        """Return this anchor, with a field's path if there is one."""
        return self._replace(path=dotted(field)) if field else self


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Something wrong in a file, or with severity ``note`` something that could not be decided.

    ``path`` is dotted and starts below ``config:``'s section (``clusters.us-central1.node_pools.h100.machine_type``).
    ``file`` is relative to the repository, with forward slashes. ``resource`` is ``<type> <logical name>``.
    ``follows`` is the ``place`` of the finding that caused this one and is to be fixed instead, ``root`` its ``mark``,
    since a place can have several. Causes are found by
    places: a finding ``spoils`` the places that are unreliable until it is fixed, and ``rests_on`` the places that it
    read, the likeliest cause first. ``failed`` means that a rule ended in a bug of ours: what it reads is unchecked, so
    no exemption or level applies. For a loss, ``first`` is what to do before the change, and ``becomes`` the new value
    of the field, which an acknowledgement names with what the change ``takes``: kinds of losses by stack.
    ``about`` is the limit that a field exceeds, if it is about one: a
    field can exceed several; ``amount`` is what all ``holders`` of that limit need together, each its stack and path.
    ``unjudged`` is the noun for what could not be judged, if the finding is about that.
    ``draft`` is the finding as its rule wrote it, with typed values.
    """

    rule: str
    severity: Severity
    message: str
    stack: str | None = None
    file: str | None = None
    position: Position | None = None
    path: str = ""
    about: str = ""
    resource: str | None = None
    allowed: str | None = None
    nearest: str | None = None
    source: str | None = None
    first: str | None = None
    becomes: str | None = None
    follows: str | None = None
    root: str = ""
    failed: bool = False
    spoils: tuple[Place, ...] = ()
    rests_on: tuple[Place, ...] = ()
    unjudged: str = ""
    amount: float | None = None
    holders: tuple[tuple[str, str], ...] = ()
    takes: tuple[tuple[str, tuple[str, ...]], ...] = ()
    draft: Any = field(default=None, repr=False, compare=False)

    @property
    def place(self) -> str:
        """File, line and column, and the path."""
        place = ":".join(str(part) for part in (self.file or self.stack, *(self.position or ())) if part)
        return ": ".join(part for part in (place, self.path) if part)

    @property
    def mark(self) -> str:
        """What tells it from other findings at its place: rule, resource and limit."""
        return " ".join((self.place, self.rule, self.resource or "", self.about))

    def __str__(self) -> str:
        """Return the finding for people: place and message on one line, what is allowed below."""
        subject = ": ".join(part for part in (self.place, self.message) if part).replace("\n", "\\n")
        return f"{subject}\n  {self.advice}" if self.advice else subject

    @property
    def advice(self) -> str:
        """The finding to correct first, if any, else what is allowed and the nearest valid value."""
        if self.follows:
            return f"This follows from {self.follows}: correct that first."
        parts = [f"First: {self.first}."] if self.first else []
        if self.allowed:
            parts.append(f"Allowed: {self.allowed}.")
        return " ".join([*parts, f"Nearest: {self.nearest}"] if self.nearest else parts)

    @property
    def shown(self) -> str:
        """The parts that may contain a resource's value."""
        return f"{self.message} {self.allowed} {self.nearest}"

    def without_values(self) -> Finding:
        """Return the finding without the parts that may contain a resource's value."""
        return replace(self, message=f"a value that can be secret is refused: {self.rule}", allowed=None, nearest=None)

    @property
    def one_line(self) -> str:
        """The finding as a single line."""
        subject, _, help_text = str(self).partition("\n  ")
        return ". ".join(" ".join(part.split()) for part in (subject, help_text) if part)


def dotted(path: Path) -> str:
    """Return a path as text: ``node_pools.h100.labels[0]``."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif text:
            text += f".{part}"
        else:
            text = part
    return text


class UserError(Exception):
    """A request that cannot be carried out; the message is one sentence. The command ends with exit code 2."""


TRACEBACK = "TRAINING_PLATFORM_TRACEBACK"
_PACKAGE = "training_platform/"


def bug(subject: str, error: Exception) -> str:
    """Return the sentence that something failed because of a bug in this program, with the error's type and line.

    The error's own text may have a value of a user's file, even a secret, so only a traceback shows it, on request.
    """
    if os.environ.get(TRACEBACK):
        traceback.print_exception(error)
    lines = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    file, line = next((frame for frame in reversed(lines) if _PACKAGE in frame[0]), lines[-1])
    module = f"{_PACKAGE}{file.rpartition(_PACKAGE)[2]}" if _PACKAGE in file else PurePath(file).name
    cause = type(error).__name__
    if isinstance(error, OSError):
        cause += f" ({error.strerror})"
    return f"{subject} because of a bug of its own: {cause} in {module}:{line}. {TRACEBACK}=1 shows more."


@contextmanager
def others_go_on(subject: str, failures: list[str]) -> Iterator[None]:
    """Run one of several checks; if it ends in a bug of ours, add a sentence to ``failures``, so that others run.

    Raises UserError unchanged.
    """
    try:
        yield
    except UserError:
        raise
    except Exception as error:  # noqa: BLE001 # any error here is a bug, and nothing about the file
        failures.append(bug(f"{subject} was not checked", error))


def install(extra: str) -> str:
    """Return the commands that install one of this package's extras, which is on no index."""
    return f"run `make setup` in the clone, or {shlex.quote(sys.executable)} -m pip install '.[{extra}]'"


# Control characters except tab and line feed, marks of text direction, and other line ends.
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
# GitHub reads `::` at the start of a line and `##[` anywhere in it: actions/runner 079cdb1, ActionCommand.cs, read
# 2026-11-22. That Azure reads `##vso[` and `##[`, and TeamCity `##teamcity[`, is (unverified).
_COMMAND = re.compile(r"^(\s*:)(?=:)|(#)(?=#(?:\[|vso\[|teamcity\[))", re.MULTILINE | re.IGNORECASE)


def printable(text: str) -> str:
    r"""Return text with control characters escaped (``\x1b``), and ``\`` inside the start of a pipeline command."""
    return _COMMAND.sub(lambda match: f"{match[0]}\\", _UNSEEN.sub(_escape, text))


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"  # two hexadecimal digits
