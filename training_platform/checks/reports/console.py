"""A console that prints what stands in files of others without doing what it says."""

from __future__ import annotations

import os
from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from training_platform.config.reading.finding import printable


def plain_width(otherwise: int) -> int:
    """Return the columns of text that goes to no terminal: what COLUMNS says, as shells have it, or ``otherwise``."""
    said = os.environ.get("COLUMNS", "")
    return int(said) if said.isascii() and said.isdecimal() and int(said) else otherwise


class PrintableConsole(Console):
    """A console whose text is printable; its own colours stay."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield what is printed, made printable once it is laid out: a line may begin anywhere in a text."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)
