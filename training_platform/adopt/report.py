"""What an adoption says: what is written, what is left out and why, and what a first update would do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from training_platform.adopt.adoption import AdoptedStack
from training_platform.adopt.comparison import Difference
from training_platform.resources.planned import Planned
from training_platform.resources.register import KUBERNETES, REGISTER


def lines(stacks: Sequence[AdoptedStack], unread: Mapping[str, str]) -> Iterator[str]:
    """Yield the report, a line at a time; ``unread`` says which lists could not be had."""
    yield from (f"could not be listed, so that all of its kind is planned as new: {why}" for why in unread.values())
    for stack in stacks:
        yield from _lines(stack)


def _lines(stack: AdoptedStack) -> Iterator[str]:
    yield f"{stack.name}: {len(stack.found)} resources to import, {len(stack.new)} new"
    yield from _section("left out, and stays as it is", (f"{_short(p)}: {why}" for p, why in stack.left_out.items()))
    yield from _section("the first update changes", _fields(stack.changes))
    yield from _section("is there, and no stack file can say it", _fields(stack.unsaid))
    yield from _section("new, since nothing in the project matches it", _new(stack.new))


def as_json(stack: AdoptedStack) -> dict[str, Any]:
    """Return the report of a stack for programs."""
    return {
        "stack": stack.name,
        "imported": len(stack.found),
        "left_out": stack.left_out,
        "changes": _rows(stack.changes),
        "unsaid": _rows(stack.unsaid),
        "new": [{"type": each.type, "name": each.name} for each in stack.new],
    }


def _section(title: str, rows: Any) -> Iterator[str]:
    said = list(rows)
    if said:
        yield f"  {title}:"
        yield from (f"    {row}" for row in said)


def _fields(by_path: Mapping[str, Sequence[Difference]]) -> Iterator[str]:
    for path, found in by_path.items():
        yield _short(path)
        yield from (f"  {each}{' (replaces it)' if each.replaces else ''}" for each in found)


def _rows(by_path: Mapping[str, Sequence[Difference]]) -> list[dict[str, Any]]:
    return [
        {
            "resource": path,
            "field": each.path,
            "stands": each.stands,
            "planned": each.planned,
            "replaces": each.replaces,
        }
        for path, found in by_path.items()
        for each in found
    ]


def _new(resources: Sequence[Planned]) -> Iterator[str]:
    """Yield counts by kind; what only adds to something is there already, or comes to be with nothing lost."""
    adding = [each for each in resources if each.type in REGISTER and REGISTER[each.type].adds]
    objects = [each for each in resources if each.type.startswith(KUBERNETES)]
    others = [each for each in resources if each not in adding and each not in objects]
    for each in others:
        yield f"{_kind(each.type)} {each.name}"
    if adding:
        yield f"{_counted(adding)}, which only add: where one is there already, nothing changes"
    if objects:
        yield f"{_counted(objects)}: an object that is in its cluster is taken over as it is planned"


def _counted(resources: Sequence[Planned]) -> str:
    counts = Counter(_kind(each.type) for each in resources)
    return ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))


def _kind(token: str) -> str:
    row = REGISTER.get(token)
    return row.kind if row else token.rpartition(":")[2]


def _short(path: str) -> str:
    """Return a path without its project."""
    return path.split("/", 2)[-1] if path.startswith("projects/") else path
