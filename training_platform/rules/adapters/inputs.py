"""Reading planned inputs: any depth, unknown anywhere, numbers as floats or texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from training_platform.config.reading.finding import Path
from training_platform.resources.planned import UNKNOWN, Planned
from training_platform.rules.views.view import View


@dataclass(frozen=True)
class Inputs:
    """A mapping of inputs that may be unknown itself; every reader answers ``UNKNOWN`` for what is not known yet.

    A value of the wrong type is one that no provider would take: it is read as ``UNKNOWN`` too, so that it shows as
    not decided rather than as an exception.
    """

    value: Any

    def get(self, *path: str | int) -> Any:
        """Return the value at a path, None where it or a part of the path is missing."""
        value = self.value
        for part in path:
            if value is UNKNOWN:
                return UNKNOWN
            if isinstance(value, Mapping):
                value = value.get(part)
            elif isinstance(value, Sequence) and not isinstance(value, str) and isinstance(part, int):
                value = value[part] if part < len(value) else None
            else:
                return None
        return value

    def text(self, *path: str | int) -> Any:
        """Return a text or None."""
        value = self.get(*path)
        return value if value is None or value is UNKNOWN or isinstance(value, str) else UNKNOWN

    def flag(self, *path: str | int, default: bool | None = None) -> Any:
        """Return a truth value, ``default`` where it is missing."""
        value = self.get(*path)
        if value is None:
            return default
        return value if isinstance(value, bool) else UNKNOWN

    def whole(self, *path: str | int) -> Any:
        """Return a whole number or None; the wire carries floats, and Vertex AI's replica counts are texts."""
        return whole(self.get(*path))

    def texts(self, *path: str | int) -> Any:
        """Return a list of texts as a tuple, empty where it is missing."""
        value = self.get(*path)
        if value is None:
            return ()
        if (
            not isinstance(value, Sequence)
            or isinstance(value, str)
            or not all(isinstance(item, str) for item in value)
        ):
            return UNKNOWN
        return tuple(value)

    def labels(self, *path: str | int) -> Any:
        """Return a mapping of texts, None where it is missing; unknown as a whole where one of its values is."""
        value = self.get(*path)
        if value is None:
            return None
        if not isinstance(value, Mapping) or not all(isinstance(item, str) for item in value.values()):
            return UNKNOWN
        return dict(value)

    def items(self, *path: str | int) -> Iterator[Inputs]:
        """Yield every mapping of a list; one that stands alone is read as a list of one, an unknown list as such."""
        value = self.get(*path)
        if value is None:
            return
        listed = isinstance(value, Sequence) and not isinstance(value, str)
        for item in value if listed else (value,):
            yield Inputs(item)

    def count(self, *path: str | int) -> Any:
        """Return how many entries a list or a mapping has, 0 where it is missing."""
        value = self.get(*path)
        if value is None or value is UNKNOWN:
            return 0 if value is None else UNKNOWN
        return len(value) if isinstance(value, (Mapping, Sequence)) and not isinstance(value, str) else UNKNOWN


class Resource:
    """A planned resource to make views of, with its section of the stack file; ``head`` starts every view."""

    def __init__(self, planned: Planned, origin: Path) -> None:
        self.inputs = Inputs(planned.inputs)
        self.options = planned.options
        self.head: dict[str, Any] = {
            "stack": planned.stack, "type": planned.type, "name": planned.name, "origin": origin,
        }  # fmt: skip

    @property
    def project(self) -> Any:
        """The project that the resource names itself; an empty text where it takes the provider's."""
        return either(self.inputs.text("project"), "")

    def place(self, *names: str) -> Any:
        """Return the region or zone that the resource names; the provider's own, which nobody here knows, if none."""
        found = next((text for text in map(self.inputs.text, names) if text is not None), UNKNOWN)
        return last_part(found)

    def reference(self, value: Any, kind: str) -> Any:
        """Return what names another resource: the last part of a name or path.

        Before deployment a path is often unknown while what the resource depends on is not: then the logical name of
        the one dependency of that type, which ``named`` tells from no other.
        """
        if value is not UNKNOWN:
            return last_part(value)
        after = [name for each, name in self.options.get("dependsOn", ()) if each == kind]
        return after[0] if len(after) == 1 else UNKNOWN


def named(reference: str | None, view: View, name: str) -> bool:
    """Whether a reference means a view, by its logical name or the name that its field says."""
    return reference is not None and (reference == view.name or (view.known(name) and reference == getattr(view, name)))


def whole(value: Any) -> Any:
    """Return a number of any spelling as an int, None as it is, and anything else as ``UNKNOWN``."""
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and value.removeprefix("-").isdecimal():
        return int(value)
    return UNKNOWN


def either(first: Any, second: Any) -> Any:
    """Return the first of two spellings that is given."""
    return second if first is None else first


def any_of(*flags: Any) -> Any:
    """Whether one of several flags is set; unknown where none is and one is not known."""
    if any(flag is True for flag in flags):
        return True
    return UNKNOWN if UNKNOWN in flags else False


def last_part(text: Any) -> Any:
    """Return the name at the end of a resource's path: some fields take a name and a path alike."""
    return text.rpartition("/")[2] if isinstance(text, str) else text
