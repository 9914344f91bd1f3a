"""What a plan would create, for people: its resources as a tree, and the top of it with resources counted by kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from training_platform.resources.planned import PROVIDER_TYPES, Planned


@dataclass(frozen=True, kw_only=True)
class Branch:
    """A part of a stack: a component with how many resources of each kind it holds, all levels down."""

    name: str
    kinds: dict[str, int]

    @property
    def count(self) -> int:
        """Resources that a provider makes; components are not counted."""
        return sum(self.kinds.values())


@dataclass(frozen=True, kw_only=True)
class Resource:
    """A planned resource or component and what is made below it; ``kind`` is the short name of its type."""

    name: str
    kind: str
    custom: bool
    protected: bool
    children: tuple[Resource, ...] = ()


def branches(resources: Sequence[Planned]) -> tuple[Branch, ...]:
    """Return the top-level parts by name, each with its resources counted by kind.

    By name, since the order of registration differs from run to run.
    """
    parents = {resource.key: resource.parent for resource in resources}
    kinds: dict[str, Counter[str]] = {}
    for resource in resources:
        top = resource.key
        while (above := parents.get(top)) is not None:
            top = above
        name = top[1] if top != resource.key or not resource.custom else "(stack)"
        counter = kinds.setdefault(name, Counter())
        if resource.custom:
            counter[kind_of(resource.type)] += 1
    return tuple(Branch(name=name, kinds=dict(sorted(kinds[name].items()))) for name in sorted(kinds) if kinds[name])


def resource_tree(resources: Sequence[Planned]) -> tuple[Resource, ...]:
    """Return planned resources, each below its parent, in the order of the program."""
    below: dict[tuple[str, str] | None, list[Planned]] = {}
    known = {resource.key for resource in resources}
    for resource in resources:
        below.setdefault(resource.parent if resource.parent in known else None, []).append(resource)
    return _children(below, None)


def _children(
    below: Mapping[tuple[str, str] | None, list[Planned]], key: tuple[str, str] | None
) -> tuple[Resource, ...]:
    return tuple(
        Resource(
            name=each.name,
            kind=kind_of(each.type),
            custom=each.custom,
            protected=bool(each.options.get("protect")),
            children=_children(below, each.key),
        )
        for each in below.get(key, ())
    )


def kind_of(resource_type: str) -> str:
    """Return the short name of a resource type, a Kubernetes provider's said to be one."""
    if resource_type.startswith(PROVIDER_TYPES):
        return f"Provider ({resource_type.rpartition(':')[2]})"
    return resource_type.rpartition(":")[2]
