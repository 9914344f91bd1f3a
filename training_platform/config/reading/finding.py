"""A finding: what is wrong, where, what is allowed, and the nearest value that would pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

Severity = Literal["error", "warning", "note"]
Path = tuple[str | int, ...]
"""Where a value stands in a stack file: the keys and list positions from the top of its section."""


class Position(NamedTuple):
    """A place in a file, both counted from 1."""

    line: int
    column: int


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that is wrong, or (``note``) that could not be decided.

    ``path`` is dotted and starts below ``config:``'s section (``clusters.us-central1.node_pools.h100.machine_type``).
    ``file`` is relative to the repository, with forward slashes. ``resource`` is ``<type> <logical name>``.
    ``follows`` is the ``place`` of the finding that it follows from, which is to be mended instead.
    """

    rule: str
    severity: Severity
    message: str
    stack: str | None = None
    file: str | None = None
    position: Position | None = None
    path: str = ""
    resource: str | None = None
    allowed: str | None = None
    nearest: str | None = None
    source: str | None = None
    follows: str | None = None

    @property
    def place(self) -> str:
        """File, line and column, and the path there."""
        place = ":".join(str(part) for part in (self.file or self.stack, *(self.position or ())) if part)
        return ": ".join(part for part in (place, self.path) if part)

    def __str__(self) -> str:
        """Return the finding as people read it: place and message on one line, what is allowed below."""
        subject = ": ".join(part for part in (self.place, self.message) if part).replace("\n", "\\n")
        help_parts = []
        if self.allowed:
            help_parts.append(f"Allowed: {self.allowed}.")
        if self.nearest:
            help_parts.append(f"Nearest: {self.nearest}")
        return f"{subject}\n  {' '.join(help_parts)}" if help_parts else subject

    @property
    def one_line(self) -> str:
        """The finding where there is room for one line alone."""
        subject, _, help_text = str(self).partition("\n  ")
        return ". ".join(" ".join(part.split()) for part in (subject, help_text) if part)


def dotted(path: Path) -> str:
    """Return a path as people write it: ``node_pools.h100.labels[0]``."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text
