"""Inputs under ``provider_inputs`` in a stack file, which are passed to a resource unchanged."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from training_platform.config.reading.finding import Path, dotted
from training_platform.resources.plan import PlanError, Resource
from training_platform.resources.spelling import map_inputs, python_name

PROVIDER_INPUTS: Final = "provider_inputs"


def add_provider_inputs(
    resource: Resource,
    further: Mapping[str, Any],
    section: Path,
    taken_over: Mapping[str, str],
    defaults: Collection[str] = (),
) -> None:
    """Add a stack file's raw inputs to a resource; ``section`` is the path of its section.

    Entries of a list are merged by position. Raises PlanError for inputs that the platform sets itself. This includes
    inputs that it leaves out of this resource (None), because readers of the stack file would still rely on its fields.

    - ``defaults`` are planned inputs that have no field in the stack file. They may be replaced.
    - ``taken_over`` are inputs that have become fields (``Section.TAKEN_OVER``). They are used unless the stack
      file sets the field.

    Each input has only one accepted name, because two names of a block would become one when sent to the provider.
    """
    if not further:
        return
    addition = _Addition(map_inputs(resource.type), taken_over, defaults=defaults)
    inputs = addition.block(resource.inputs, further, ())
    if addition.refused:
        paths = {(*section, PROVIDER_INPUTS, *path): reason for path, reason in addition.refused.items()}
        reasons = "; ".join(f"{dotted(path[len(section) :])} {reason}" for path, reason in paths.items())
        raise PlanError(f"{section[-1]}: {reasons}", next(iter(paths)))
    resource.inputs = inputs


@dataclass
class _Addition:
    """Adds inputs to planned inputs. ``refused`` contains the reasons for refused inputs, keyed by their path.

    ``maps`` are the inputs whose keys the user chooses. They are planned as a whole.
    """

    maps: Collection[str]
    taken_over: Mapping[str, str]
    defaults: Collection[str]
    refused: dict[Path, str] = field(default_factory=dict)

    def block(self, planned: Mapping[str, Any], raw_inputs: Mapping[str, Any], path: Path) -> dict[str, Any]:
        """Return a planned block with the raw inputs added to it."""
        both = dict(planned)
        for name, value in raw_inputs.items():
            place = (*path, name)
            is_free = name not in both or _named(place) in self.defaults
            new_field = self.taken_over.get(_named(place))
            if name != python_name(name):
                self.refused[place] = f"is not the Python name of the input in pulumi-gcp, which is {python_name(name)}"
            elif is_free or (new_field and both[name] is None):
                both[name] = value
            elif new_field:
                self.refused[place] = f"is also set by the field {new_field}: delete it here"
            else:
                both[name] = self._value(both[name], value, place)
        return both

    def _value(self, planned: Any, raw_value: Any, path: Path) -> Any:
        if isinstance(planned, Mapping) and isinstance(raw_value, Mapping) and _named(path) not in self.maps:
            return self.block(planned, raw_value, path)
        if not (_is_list_of_blocks(planned) and _is_list_of_blocks(raw_value)):
            self.refused[path] = "is planned by the platform: use the fields of the section"
        elif len(planned) != len(raw_value):
            self.refused[path] = f"has {len(raw_value)} entries, but the platform plans {len(planned)}"
        else:
            pairs = enumerate(zip(planned, raw_value, strict=True))
            return [self.block(entry, further, (*path, number)) for number, (entry, further) in pairs]
        return planned


def _named(path: Path) -> str:
    """Return a path as text, leaving out positions in lists."""
    return ".".join(part for part in path if isinstance(part, str))


def _is_list_of_blocks(value: Any) -> bool:
    is_list = isinstance(value, Sequence) and not isinstance(value, str)
    return is_list and bool(value) and all(isinstance(entry, Mapping) for entry in value)
