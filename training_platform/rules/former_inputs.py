"""Inputs in ``provider_inputs`` that became fields in the last release. They cause warnings, but plans still work."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from training_platform.config.model.stack import Stack
from training_platform.config.reading.declaration import Draft, declare, finding
from training_platform.config.reading.finding import Path, dotted
from training_platform.config.reading.section import Section
from training_platform.resources.provider_inputs import PROVIDER_INPUTS

FORMER_INPUT = declare(
    "former-input",
    "Find an input below provider_inputs that has had its own field since the last release.",
    ruleset="files",
    severity="warning",
)


def former_inputs(stack: Stack) -> Iterator[Draft]:
    """Yield a warning for each input that has become a field of its section."""
    if stack.section is None:
        return
    for path, section in _sections(stack.section, ()):
        for name, field in section.TAKEN_OVER.items():
            place = (*path, PROVIDER_INPUTS, *name.split("."))
            if stack.says(place):
                message = (
                    f"has its own field as of this release: the next release refuses {name} below {PROVIDER_INPUTS}"
                )
                new_place = dotted((*path, *field.split(".")))
                yield finding(stack, place, message, rule=FORMER_INPUT, allowed=new_place)


def _sections(section: Section, path: Path) -> Iterator[tuple[Path, Section]]:
    """Yield a section and all sections in it, with their paths."""
    yield path, section
    for name, value in section:
        entries = value.items() if isinstance(value, Mapping) else ((None, value),)
        for key, entry in entries:
            if isinstance(entry, Section):
                yield from _sections(entry, (*path, name) if key is None else (*path, name, key))
