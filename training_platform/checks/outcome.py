"""The result of planning a stack: the findings of the rules, and the resources that reports show."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from training_platform.config.model.stack import Stack
from training_platform.config.reading.declaration import located
from training_platform.config.reading.finding import Finding
from training_platform.config.reading.secrets import HIDDEN, can_be_secret, digest
from training_platform.resources.stack_resource import PROVIDER_TYPES, UNKNOWN, ResourceKey, StackResource
from training_platform.rules import Program, View, evaluate, program, view_rules
from training_platform.rules.former_inputs import former_inputs
from training_platform.views.adapters import views_of_created_pools
from training_platform.views.node_pool import NodePoolView

LATER = "(known after deployment)"
_KEY = re.compile(r"[.\[\]]")
TRIGGER = "replacementTrigger"
OPTIONS = ("protect", "retainOnDelete", TRIGGER)
"""Resource options that comparisons need. Here they are treated as additional inputs."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The findings of the rules about a plan, and the resources that the plan would create.

    ``inputs`` contains the resources with all of their inputs. It is None if nothing is compared, because it is many
    times larger than everything else together.
    """

    findings: tuple[Finding, ...]
    branches: tuple[Branch, ...]
    resources: tuple[ResourceTree, ...]
    inputs: tuple[FlatResource, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class Branch:
    """A part of a stack: a component with the number of resources of each kind at all levels below it."""

    name: str
    kinds: dict[str, int]

    @property
    def count(self) -> int:
        """The number of provider resources, without components."""
        return sum(self.kinds.values())


@dataclass(frozen=True, kw_only=True)
class ResourceTree:
    """A planned resource or component with its children; ``kind`` is the short name of its type."""

    name: str
    kind: str
    custom: bool
    protected: bool
    children: tuple[ResourceTree, ...] = ()


@dataclass(frozen=True, kw_only=True)
class FlatResource:
    """A planned resource with its inputs keyed by path (``nodeConfig.guestAccelerators[0].type``).

    A list of plain values is one input.

    - ``ignored`` and ``replacing`` are paths from the program's options ``ignoreChanges`` and
      ``replaceOnChanges``.
    - ``protected`` means that the engine neither deletes nor replaces the resource.
    - ``inputs_from`` contains, for each input, the type and name of the resources whose outputs it uses.
    - ``provider`` is the provider that the program passes, None for the default provider.
    """

    type: str
    name: str
    inputs: dict[str, Any]
    protected: bool = False
    ignored: tuple[str, ...] = ()
    replacing: tuple[str, ...] = ()
    inputs_from: Mapping[str, tuple[ResourceKey, ...]] = field(default_factory=dict)
    provider: ResourceKey | None = None

    @property
    def key(self) -> ResourceKey:
        """The type and the name of the resource, which are unique in its stack."""
        return self.type, self.name


def outcome_of(stack: Stack, planned: Iterable[StackResource], views: list[View], *, inputs: bool) -> Outcome:
    """Return the result of planning a stack, with its resources by name. Rules read the ``views`` of resources."""
    resources = sorted(planned, key=lambda resource: (resource.name, resource.type))
    return Outcome(
        findings=tuple(rule_findings(stack, views)),
        branches=branches(resources),
        resources=resource_tree(resources),
        inputs=tuple(flat_resource(resource) for resource in resources if resource.custom) if inputs else None,
    )


def rule_findings(stack: Stack, views: list[View]) -> list[Finding]:
    """Return the rules' findings about a stack's resources and the pools that GKE would create for compute classes."""
    findings = evaluate(_program(stack, views), file=stack)
    if created_pools := views_of_created_pools(stack):
        without_pools = [view for view in views if not isinstance(view, NodePoolView)]
        of_pools = [rule for rule in view_rules() if rule.reads is NodePoolView]
        findings += evaluate(_program(stack, [*without_pools, *created_pools]), of_pools, file=stack)
    return [*findings, *located(former_inputs(stack))]


def _program(stack: Stack, views: list[View]) -> Program:
    return program(
        views,
        stack=stack.name,
        environment=stack.environment_name,
        team=stack.team.name if stack.team else None,
        production=stack.production,
    )


def branches(resources: Sequence[StackResource]) -> tuple[Branch, ...]:
    """Return the top-level parts by name, each with the number of its resources of each kind."""
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


def resource_tree(resources: Sequence[StackResource]) -> tuple[ResourceTree, ...]:
    """Return planned resources, each below its parent, in the order of the program."""
    below: dict[tuple[str, str] | None, list[StackResource]] = {}
    keys = {resource.key for resource in resources}
    for resource in resources:
        below.setdefault(resource.parent if resource.parent in keys else None, []).append(resource)

    def children(parent: tuple[str, str] | None) -> tuple[ResourceTree, ...]:
        return tuple(
            ResourceTree(
                name=resource.name,
                kind=kind_of(resource.type),
                custom=resource.custom,
                protected=bool(resource.options.get("protect")),
                children=children(resource.key),
            )
            for resource in below.get(parent, ())
        )

    return children(None)


def kind_of(resource_type: str) -> str:
    """Return the short name of a resource type. For a provider, the name says that it is one."""
    name = resource_type.rpartition(":")[2]
    return f"Provider ({name})" if resource_type.startswith(PROVIDER_TYPES) else name


def flat_resource(planned: StackResource) -> FlatResource:
    """Return a planned resource in the form that comparisons use."""
    provider = planned.options.get("provider")
    options = {name: planned.options[name] for name in OPTIONS if planned.options.get(name)}
    trigger = (TRIGGER,) if TRIGGER in options else ()
    return FlatResource(
        type=planned.type,
        name=planned.name,
        inputs=_hidden(leaves({**planned.inputs, **options})),
        protected=bool(planned.options.get("protect")),
        ignored=tuple(planned.options.get("ignoreChanges", ())),
        replacing=(*planned.options.get("replaceOnChanges", ()), *trigger),
        inputs_from=planned.inputs_from,
        provider=(f"{PROVIDER_TYPES}{planned.type.partition(':')[0]}", provider) if provider else None,
    )


def _hidden(values: dict[str, Any]) -> dict[str, Any]:
    """Return values keyed by path, in which values that can be secret are replaced by digests."""
    for path, value in values.items():
        if _can_be_secret(path):
            values[path] = _digested(value)
    return values


@lru_cache(maxsize=100_000)  # resources of a type have the same paths
def _can_be_secret(path: str) -> bool:
    return can_be_secret([part for part in _KEY.split(path) if part])


def _digested(value: Any) -> Any:
    """Return the digest of a value, or of each item of a list; unknown values and digests are unchanged."""
    if isinstance(value, list):
        return [_digested(item) for item in value]
    if value in (LATER, None) or (isinstance(value, str) and value.startswith(HIDDEN)):
        return value
    return digest(value)


def leaves(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a resource's inputs, keyed by path. Empty mappings are left out; unknowns are ``LATER``."""
    return dict(_leaves(inputs, ""))


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, str):
        yield path, value  # most values; telling that they are no mapping takes much longer
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list) and any(isinstance(item, (Mapping, list)) for item in value):
        for index, item in enumerate(value):
            yield from _leaves(item, f"{path}[{index}]")
    elif isinstance(value, list):
        yield path, [LATER if item is UNKNOWN else item for item in value]
    elif value is not None:
        yield path, LATER if value is UNKNOWN else value
