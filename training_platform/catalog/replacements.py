"""Which changes of a resource's inputs make another resource in its place: the table ``replacements.yaml``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

from training_platform.catalog.reading import FilePlace, known_keys, mapping, read_file

FILE = Path(__file__).parent / "replacements.yaml"
_ANY_KUBERNETES = "kubernetes:*"
_HELM = "kubernetes:helm.sh/"  # a release is no object: its name stands at the top of its inputs
_INDEX = re.compile(r"\[\d+\]")


def known(resource_type: str) -> bool:
    """Whether the table covers a resource type; a provider's own settings are not a resource."""
    return resource_type in _section("types") or resource_type.startswith("kubernetes:")


def types() -> frozenset[str]:
    """Return the resource types that the table names."""
    return frozenset({*_section("types"), *_section("sometimes")} - {_ANY_KUBERNETES})


def fields(resource_type: str, *, sometimes: bool = True) -> frozenset[str]:
    """Return the fields whose change replaces a resource, as the table writes them; none of a type it does not have.

    ``sometimes`` takes in those that do so for some values only.
    """
    always = _section("types").get(resource_type, frozenset())
    if resource_type.startswith("kubernetes:") and not resource_type.startswith(_HELM):
        always |= _section("types")[_ANY_KUBERNETES]
    return always | _section("sometimes").get(resource_type, frozenset()) if sometimes else always


def recreating(resource_type: str) -> frozenset[str]:
    """Return the fields whose change leaves a resource in its place, and makes its VMs anew: what runs on them ends."""
    return _section("recreates").get(resource_type, frozenset())


def forces(resource_type: str, path: str, came_or_went: str | None = None, *, also: Iterable[str] = ()) -> bool:
    """Whether the change of one input replaces its resource.

    ``path`` is an input as ``nodeConfig.guestAccelerators[0].type``. ``came_or_went`` is the outermost part of it that
    only one side has, None where both have the input. ``also`` are paths that a program registers as replacing
    (``replaceOnChanges``): each stands for everything below it.
    """
    forcing, plain = fields(resource_type), general(path)
    patterns = (*also, *(field.removesuffix(".*") for field in forcing if field.endswith(".*")))
    if plain in forcing or any(covers(pattern, plain) for pattern in patterns):
        return True
    return came_or_went is not None and not forcing.isdisjoint(_between(general(came_or_went), plain))


def turned_on(resource_type: str, path: str, value: object) -> bool:
    """Whether an input is a switch that only turning off replaces its resource for, and is being turned on."""
    return value is True and general(path) in _section("sometimes").get(resource_type, frozenset())


def general(path: str) -> str:
    """Return a path with ``[*]`` for every position in a list."""
    return _INDEX.sub("[*]", path)


def covers(pattern: str, path: str) -> bool:
    """Whether a path is what a pattern such as ``resourcePools[*].replicaCount`` names, or stands below it."""
    pattern, path = general(pattern), general(path)
    return path == pattern or path.startswith((f"{pattern}.", f"{pattern}["))


def _between(outer: str, inner: str) -> Iterator[str]:
    """Yield every part of a path from an outer one to the whole; a list counts where one of its items does."""
    part = inner
    while part.startswith(outer):
        yield part
        yield part.removesuffix("[*]")
        part = part.rpartition(".")[0]


@cache
def _section(name: str) -> Mapping[str, frozenset[str]]:
    content, place = read_file(FILE), FilePlace(FILE)
    known_keys(content, ("types", "sometimes", "recreates"), place)
    rows = mapping(content[name], place.at(name))
    return {token: frozenset(_fields(parts, place.at(name).at(token))) for token, parts in rows.items()}


def _fields(parts: object, place: FilePlace) -> Iterator[str]:
    for part, names in mapping(parts, place).items():
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise place.at(part).error("is not a list of fields")
        for name in names:
            yield part.removesuffix("[*]") if name == "." else name if part == "." else f"{part}.{name}"
