"""A console that prints what stands in files of others without doing what it says."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from training_platform.config.reading.printable import printable


class PrintableConsole(Console):
    """A console whose text is printable; its own colours stay."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield what is printed, made printable once it is laid out: a line may begin anywhere in a text."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)
