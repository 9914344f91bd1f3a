"""The changes that a plan would make to an existing resource, field by field."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from training_platform.catalog.reading import table
from training_platform.catalog.types import Json
from training_platform.resources.api_fields import LOCATION_INPUTS, DocumentField, Key, body_of, field_of, leaves, root
from training_platform.resources.resource_types import DASHBOARD, RESOURCE_TYPES, covers, forces_replacement
from training_platform.resources.stack_resource import UNKNOWN, StackResource
from training_platform.rules.documents.api_defaults import fill_in

_IDENTITIES = ("key", "id", "name", "rangeName", "resourceType", "type", "IPProtocol")
GONE = "not there"  # a list entry that the update removes
_LONGEST = 120  # characters of a value in a sentence
TABLE: dict[str, Any] = table(__file__, "unsaid.yaml")


class Difference(NamedTuple):
    """A field that differs from a stack file, with its name in the API.

    ``planned`` is None if the stack file has no such field. The value then stays, or the provider resets it.
    ``replaces`` is True if the change would replace the resource.
    """

    path: str
    current: Any
    planned: Any
    replaces: bool

    def __str__(self) -> str:
        """Return the current and the planned value, on one line."""
        if self.planned is None:
            return f"{self.path} is {_shown(self.current)}"
        return f"{self.path} is {_shown(self.current)}, planned {_shown(self.planned)}"


def differences(planned: StackResource, body: Mapping[str, Any]) -> list[Difference]:
    """Return the fields of a body that an update to ``planned`` would change, then fields that no stack file has.

    Inputs whose changes the program ignores are left out, and so are output-only fields.
    """
    if planned.type == DASHBOARD:  # its only input is the whole body, as a string
        dashboard = json.loads(planned.inputs["dashboardJson"])
        return [
            Difference(_text(path), current, planned=value, replaces=False)
            for path, current, value in _changes(dashboard, body, ())
        ]
    ignored = planned.options.get("ignoreChanges", ())
    compared = [
        leaf
        for leaf in leaves(planned.type, {k: v for k, v in planned.inputs.items() if k not in LOCATION_INPUTS})
        if not any(covers(pattern, leaf.name) for pattern in ignored)
    ]
    names = {leaf.path: leaf.name for leaf in compared}
    replacing = planned.options.get("replaceOnChanges", ())
    updates = []
    for path, current, value in _changes(body_of(compared), body, ()):
        name = names.get(path) or next((leaf_name for p, leaf_name in names.items() if p[: len(path)] == path), "")
        updates.append(
            Difference(
                _text(path), current, planned=value, replaces=forces_replacement(planned.type, name, also=replacing)
            )
        )
    return [*updates, *_unsaid(planned, body)]


def same(planned: Any, current: Any) -> bool:
    """Return True if an API treats two values as equal: numbers and strings, links and names, empty and false."""
    if planned is UNKNOWN:
        return True
    if _is_list(planned) or _is_list(current):
        ours, theirs = (list(side) if _is_list(side) else [] for side in (planned, current))
        return len(ours) == len(theirs) and all(any(same(value, other) for other in theirs) for value in ours)
    name = _plain(planned)
    other = _plain(current)
    if "/" in name or "/" in other:
        return bool(name and other) and (f"/{name}".endswith(f"/{other}") or f"/{other}".endswith(f"/{name}"))
    return name == other


def _changes(planned: Any, current: Any, path: tuple[Key, ...]) -> Iterator[tuple[tuple[Key, ...], Any, Any]]:
    if isinstance(planned, Mapping):
        below = current if isinstance(current, Mapping) else {}
        for key, value in planned.items():
            yield from _changes(value, below.get(key), (*path, key))
    elif _is_list(planned) and any(isinstance(item, Mapping) for item in planned):
        unmatched_entries = list(current or ())
        for index, entry in enumerate(planned):
            counterpart = _counterpart(entry, unmatched_entries, single=len(planned) == 1 == len(unmatched_entries))
            if counterpart is not None:
                unmatched_entries.remove(counterpart)
            yield from _changes(entry, counterpart, (*path, index))
        for extra in unmatched_entries:
            yield path, extra, GONE
    elif not same(planned, current):
        yield path, current, planned


def _counterpart(entry: Json, candidates: Sequence[Json], *, single: bool) -> Json | None:
    """Return the entry of ``candidates`` that corresponds to ``entry``: it has the same key, or is the only one."""
    key = next((identity for identity in _IDENTITIES if identity in entry), None)
    if key is None or single:
        return next(
            (item for item in candidates if not list(_changes(entry, item, ()))), candidates[0] if candidates else None
        )
    return next((item for item in candidates if same(entry[key], item.get(key))), None)


def _unsaid(planned: StackResource, body: Mapping[str, Any]) -> Iterator[Difference]:
    """Yield the fields of a body that are neither in the plan nor defaults of the API."""
    field = root(planned.type)
    if field is None:
        return
    about = RESOURCE_TYPES[planned.type]
    ignored_patterns = [name for row in TABLE["unmodelled"] for name in row["fields"]]
    ignored_patterns += [name for row in about.unmodelled for name in row.fields]
    ignored = [field_of(name, field) for name in planned.options.get("ignoreChanges", ())]
    ignored_patterns += [_text(place.path) for place in ignored if place]
    expected = copy.deepcopy(body_of(leaves(planned.type, planned.inputs)))
    fill_in(expected, about.defaults)
    for path, value in _extra(expected, body, field, ()):
        text = _text(path)
        if not any(
            fnmatchcase(text, pattern) or text.startswith((f"{pattern}.", f"{pattern}["))
            for pattern in ignored_patterns
        ):
            yield Difference(text, value, planned=None, replaces=False)


def _extra(
    expected: Any, body: Any, field: DocumentField | None, path: tuple[Key, ...]
) -> Iterator[tuple[tuple[Key, ...], Any]]:
    if field is not None and field.output_only:
        return
    if isinstance(body, Mapping):
        below = expected if isinstance(expected, Mapping) else {}
        for key, value in body.items():
            inner = field.below(key) if field else None
            yield from _extra(below.get(key), value, inner[1] if inner else None, (*path, key))
    elif expected is None and not _is_nothing(body):
        yield path, body


def _is_nothing(value: Any) -> bool:
    if isinstance(value, Mapping):
        return all(_is_nothing(item) for item in value.values())
    return _plain(value) == "" if not _is_list(value) else not value


def _plain(value: Any) -> str:
    """Return a scalar as a string. False, zero and empty values become "", since bodies omit them."""
    if value in (None, False, 0, "", "0"):
        return ""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).lower() if isinstance(value, bool) else str(value).removeprefix("https://").removeprefix("//")


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


def _text(path: tuple[Key, ...]) -> str:
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path).removeprefix(".")


def _shown(value: Any) -> str:
    text = "not set" if _is_nothing(value) else json.dumps(value, default=str).strip('"')
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
