"""Fields of a section that do not go together: each is found at its own line, and all of them at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, Self

from pydantic import model_validator
from pydantic_core import PydanticCustomError

from training_platform.config.reading.section import Section


class Conflict(NamedTuple):
    """A field, by its path below the section, that does not go with the others; what it takes instead."""

    at: tuple[str | int, ...]
    message: str
    allowed: str | None = None
    nearest: str | None = None


def above(least_name: str, least: int, most_name: str, most: int) -> Iterator[Conflict]:
    """Yield the least of something where it is more than the most."""
    if least > most:
        message = f"is {least}, which is more than {most_name} ({most})"
        yield Conflict((least_name,), message, f"at most {most}, or {most_name} of at least {least}", str(most))


def refuse_conflicts(conflicts: Iterable[Conflict]) -> None:
    """Raise one error for all conflicts, if there are any; its context holds the first, and the others as ``more``.

    Pydantic stops at the first error of a section, so several checks that raise would hide each other.
    """
    found = tuple(conflicts)
    if not found:
        return
    first, *more = found
    context = {"at": first.at, "allowed": first.allowed, "nearest": first.nearest, "more": tuple(more)}
    raise PydanticCustomError("conflict", first.message.replace("{", "{{"), context)


class Consistent(Section):
    """A section whose fields have to go together."""

    def conflicts(self) -> Iterable[Conflict]:
        """Return the fields that do not."""
        return ()

    @model_validator(mode="after")
    def _go_together(self) -> Self:
        refuse_conflicts(self.conflicts())
        return self
