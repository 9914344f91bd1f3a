"""A planned resource with its inputs by path, as one plan is compared with another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict

from training_platform.resources.planned import PROVIDER_TYPES, UNKNOWN, Planned

LATER = "(known after deployment)"
TRIGGER = "replacementTrigger"
"""What a program registers beside the inputs, so that a change of it replaces the resource; here it is an input."""


class FlatResource(BaseModel):
    """A planned resource: its inputs by path (``nodeConfig.guestAccelerators[0].type``), a list of values as one.

    ``ignored`` and ``replacing`` are the paths that the program registers so; ``protected`` resources the engine
    neither deletes nor replaces. ``inputs_from`` are the resources, by type and name, that an input has outputs of,
    ``provider`` the one that the program registers it with: None for the default one.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: str
    name: str
    inputs: dict[str, Any]
    protected: bool = False
    ignored: tuple[str, ...] = ()
    replacing: tuple[str, ...] = ()
    inputs_from: dict[str, tuple[tuple[str, str], ...]] = {}
    provider: tuple[str, str] | None = None


def flat_resource(planned: Planned) -> FlatResource:
    """Return a planned resource as a comparison looks at it."""
    trigger = {TRIGGER: planned.options[TRIGGER]} if TRIGGER in planned.options else {}
    return FlatResource(
        type=planned.type,
        name=planned.name,
        inputs=leaves({**planned.inputs, **trigger}),
        protected=bool(planned.options.get("protect")),
        ignored=tuple(planned.options.get("ignoreChanges", ())),
        replacing=(*planned.options.get("replaceOnChanges", ()), *trigger),
        inputs_from=dict(planned.inputs_from),
        provider=_provider(planned),
    )


def _provider(planned: Planned) -> tuple[str, str] | None:
    name = planned.options.get("provider")
    return (f"{PROVIDER_TYPES}{planned.type.partition(':')[0]}", name) if name else None


def leaves(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return every value of a resource's inputs by its path; an empty mapping is no value, an unknown one ``LATER``."""
    return dict(_leaves(inputs, ""))


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list) and any(isinstance(item, (Mapping, list)) for item in value):
        for index, item in enumerate(value):
            yield from _leaves(item, f"{path}[{index}]")
    elif isinstance(value, list):
        yield path, [LATER if item is UNKNOWN else item for item in value]
    elif value is not None:
        yield path, LATER if value is UNKNOWN else value
