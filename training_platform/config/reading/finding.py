"""Findings, errors that end a command, and functions to print text from untrusted files safely.

A finding states the error, its position, the allowed values, and the nearest valid value.
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
"""The keys and list indices that lead from the top of a section to a value."""
Place = tuple[str, ...]
"""A file, and the keys from its top to a value. ``(file,)`` is the whole file."""


class Position(NamedTuple):
    """A position in a file. Both numbers start at 1."""

    line: int
    column: int


class Anchor(NamedTuple):
    """Where the field of a subject is: its file and position, if known, and its path in the section.

    An anchor can itself be the subject of a finding, if there is no other subject.
    """

    stack: str | None = None
    file: str | None = None
    position: Position | None = None
    path: str = ""
    resource: str | None = None

    def locate(self, field: Path) -> Anchor:
        """Return this anchor, with the path of a field if there is one."""
        return self._replace(path=dotted(field)) if field else self


@dataclass(frozen=True, kw_only=True)
class Finding:
    """An error in a file, or with severity ``note`` a question that could not be decided.

    - ``path`` is dotted and relative to a section of ``config:``, such as
      ``clusters.us-central1.node_pools.h100.machine_type``.
    - ``file`` is relative to the repository, with forward slashes.
    - ``resource`` is ``<type> <logical name>``.
    - ``follows`` is the ``place`` of the finding that caused this one and should be fixed instead. ``root`` is its
      ``mark``, since a place can have several findings.
    - ``spoils`` contains the places that are unreliable until the finding is fixed. ``rests_on`` contains the places
      that the finding depends on, the likeliest cause first. Causes are found by comparing these places.
    - ``failed`` means that a rule ended because of a bug in this program. Its subject is unchecked, so no exemption
      or level applies.
    - If a change loses something, ``first`` is the step to take before the change, and ``becomes`` is the field's new
      value. An acknowledgement of the loss repeats this value and ``takes``, the kinds of losses in each stack.
    - ``about`` is the limit that a field exceeds, since a field can exceed several. ``amount`` is the sum that all
      ``holders`` of the limit need. Each holder is a pair of stack and path.
    - ``unjudged`` is a noun for the things that could not be checked, if the finding is about them.
    - ``draft`` is the finding as its rule created it, with typed values.
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
        """The position of the finding as text: file, line and column, then the path."""
        place = ":".join(str(part) for part in (self.file or self.stack, *(self.position or ())) if part)
        return ": ".join(part for part in (place, self.path) if part)

    @property
    def mark(self) -> str:
        """A text that distinguishes the finding from others at its place: rule, resource and limit."""
        return " ".join((self.place, self.rule, self.resource or "", self.about))

    def __str__(self) -> str:
        """Return the finding for people: place and message on one line, and the allowed values below."""
        subject = ": ".join(part for part in (self.place, self.message) if part).replace("\n", "\\n")
        return f"{subject}\n  {self.advice}" if self.advice else subject

    @property
    def advice(self) -> str:
        """The finding to correct first, if there is one, else the allowed and the nearest valid value."""
        if self.follows:
            return f"This follows from {self.follows}: correct that first."
        parts = [f"First: {self.first}."] if self.first else []
        if self.allowed:
            parts.append(f"Allowed: {self.allowed}.")
        return " ".join([*parts, f"Nearest: {self.nearest}"] if self.nearest else parts)

    @property
    def shown(self) -> str:
        """The parts of the finding that may contain a resource's value."""
        return f"{self.message} {self.allowed} {self.nearest}"

    def without_values(self) -> Finding:
        """Return the finding without the parts that may contain a resource's value."""
        return replace(self, message=f"a value that may be secret is invalid: {self.rule}", allowed=None, nearest=None)

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
    """Raised for a request that cannot be carried out. The message is one sentence; the exit code is 2."""


TRACEBACK = "TRAINING_PLATFORM_TRACEBACK"
_PACKAGE = "training_platform/"


def bug(subject: str, error: Exception) -> str:
    """Return a sentence about a failure caused by a bug in this program, with the error's type and line.

    The error's own text may contain a value of a user's file, even a secret. So it is only in the traceback, which is
    printed on request.
    """
    if os.environ.get(TRACEBACK):
        traceback.print_exception(error)
    lines = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    file, line = next((frame for frame in reversed(lines) if _PACKAGE in frame[0]), lines[-1])
    module = f"{_PACKAGE}{file.rpartition(_PACKAGE)[2]}" if _PACKAGE in file else PurePath(file).name
    cause = type(error).__name__
    if isinstance(error, OSError):
        cause += f" ({error.strerror})"
    return f"{subject} because of a bug in training-platform: {cause} in {module}:{line}. {TRACEBACK}=1 shows more."


@contextmanager
def others_go_on(subject: str, failures: list[str]) -> Iterator[None]:
    """Run one of several checks. If a bug makes it fail, add a sentence to ``failures``, and let the others run.

    Raises UserError unchanged.
    """
    try:
        yield
    except UserError:
        raise
    except Exception as error:  # noqa: BLE001 # any error here is a bug, and nothing about the file
        failures.append(bug(f"{subject} was not checked", error))


def install(extra: str) -> str:
    """Return the commands that install an extra of this package. The package is not on any package index."""
    return f"run `make setup` in the clone, or {shlex.quote(sys.executable)} -m pip install '.[{extra}]'"


# Control characters except tab and line feed, marks of text direction, and other line ends.
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
# GitHub reads `::` at the start of a line and `##[` anywhere in it: actions/runner 079cdb1, ActionCommand.cs, read
# 2026-11-22. That Azure reads `##vso[` and `##[`, and TeamCity `##teamcity[`, is (unverified).
_COMMAND = re.compile(r"^(\s*:)(?=:)|(#)(?=#(?:\[|vso\[|teamcity\[))", re.MULTILINE | re.IGNORECASE)


def printable(text: str) -> str:
    r"""Return text with control characters and the start of pipeline commands escaped.

    A control character becomes ``\x1b``. A ``\`` is inserted into the start of a pipeline command.
    """
    return _COMMAND.sub(lambda match: f"{match[0]}\\", _UNSEEN.sub(_escape, text))


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"  # two hexadecimal digits
