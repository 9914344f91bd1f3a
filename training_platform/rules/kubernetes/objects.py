"""Rules about Kubernetes objects that read them as they are: what an API server or a webhook compares in one object."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from training_platform.resources.planned import UNKNOWN
from training_platform.rules.registry import Draft, Owner, finding, rule
from training_platform.views.inputs import is_list
from training_platform.views.program import ObjectView, Program

Json = Mapping[str, Any]


class Wrong(NamedTuple):
    """What is wrong with one input of an object, at its path as the program writes it."""

    path: str
    message: str
    allowed: str
    nearest: str | None = None


Check = Callable[[Json], Iterator[Wrong]]


def object_rule(
    rule_id: str, *kinds: str, ruleset: str, source: str, owner: Owner = "kubernetes", facts: tuple[str, ...] = ()
) -> Callable[[Check], Check]:
    """Register a rule about single objects of some kinds, ``kueue.x-k8s.io:ClusterQueue``, in every version."""

    def register(check: Check) -> Check:
        def over(program: Program) -> Iterator[Draft]:
            found = program.once(_by_kind)
            for view in (view for kind in kinds for view in found.get(kind, ())):
                for wrong in check(view.inputs):
                    yield finding(view, wrong.path, wrong.message, allowed=wrong.allowed, nearest=wrong.nearest)

        over.__doc__, over.__module__ = check.__doc__, check.__module__
        rule(rule_id, ruleset=ruleset, source=source, owner=owner, facts=facts)(over)
        return check

    return register


def _is_block(value: Any) -> bool:
    return value.__class__ is dict or isinstance(value, Mapping)  # most are, and fleets have many


def block(value: Any, *names: str) -> Json:
    """Return a block within a block, empty where a part of the way is missing, unknown or of another type."""
    for name in names:
        value = value.get(name) if _is_block(value) else None
    return value if _is_block(value) else {}


def entries(value: Any, name: str) -> list[tuple[int, Json]]:
    """Return the blocks in a list of a block, each with its place; none where the list is not known."""
    return [(index, row) for index, row in enumerate(_rows(value, name)) if _is_block(row)]


def texts(value: Any, name: str) -> list[str]:
    """Return the texts of a list in a block."""
    return [row for row in _rows(value, name) if isinstance(row, str)]


def text(value: Any, name: str) -> str | None:
    """Return a text of a block."""
    found = value.get(name) if _is_block(value) else None
    return found if isinstance(found, str) else None


def whole(value: Any, name: str) -> int | None:
    """Return a whole number of a block."""
    found = value.get(name) if _is_block(value) else None
    return int(found) if isinstance(found, (int, float)) and not isinstance(found, bool) else None


def is_unknown(value: Any, name: str) -> bool:
    """Whether only a deployment tells an input."""
    return _is_block(value) and value.get(name) is UNKNOWN


def twice(names: Sequence[str | None]) -> Iterator[tuple[int, str]]:
    """Yield each name that was there before, with its place."""
    seen: set[str] = set()
    for index, name in enumerate(names):
        if name is not None and name in seen:
            yield index, name
        seen.add(name or "")


def _rows(value: Any, name: str) -> Sequence[Any]:
    rows: Any = value.get(name) if _is_block(value) else None
    return rows if is_list(rows) else ()


def _by_kind(program: Program) -> Mapping[str, list[ObjectView]]:
    found: dict[str, list[ObjectView]] = defaultdict(list)
    for view in program.all(ObjectView):
        if view.type.startswith("kubernetes:"):
            _, version, kind = view.type.split(":")
            found[f"{version.partition('/')[0]}:{kind}"].append(view)
    return found
