"""Declared resources: a component registers each, and ``check --fast`` reads the same without Pulumi.

Inputs have the names of pulumi-gcp's Python. On the wire, ``node_config`` is ``nodeConfig``, but keys of users stay as
they are: ``MAP_FIELDS`` names the inputs that hold those. A test holds both against pulumi_gcp, for every type that
components register.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from training_platform.resources.planned import UNKNOWN, Planned
from training_platform.resources.resource_types import KUBERNETES
from training_platform.resources.scope import Scope
from training_platform.resources.spelling import camel_case


@dataclass(frozen=True)
class Later:
    """A value that only the deployment of another resource tells, by that resource's type and logical name."""

    type: str
    name: str


@dataclass(frozen=True, kw_only=True)
class ResourceOptions:
    """How a resource is treated, as Pulumi's resource options name it; ``timeouts`` are ``create``, ``update``..."""

    protect: bool = False
    retain_on_delete: bool = False
    delete_before_replace: bool = False
    ignore_changes: tuple[str, ...] = ()
    replace_on_changes: tuple[str, ...] = ()
    replacement_trigger: str | None = None
    timeouts: Mapping[str, str] = field(default_factory=dict)

    @property
    def planned(self) -> dict[str, Any]:
        """The options as ``Planned`` has them: those that are set."""
        every = {
            "protect": self.protect,
            "retainOnDelete": self.retain_on_delete,
            "deleteBeforeReplace": self.delete_before_replace,
            "ignoreChanges": list(self.ignore_changes),
            "replaceOnChanges": list(self.replace_on_changes),
            "replacementTrigger": self.replacement_trigger,
            "customTimeouts": dict(self.timeouts),
        }
        return {name: value for name, value in every.items() if value}


PLAIN = ResourceOptions()


@dataclass(frozen=True, kw_only=True)
class Declared:
    """A resource before it is registered.

    ``inputs`` are spelt as the provider's Python spells them, and a None in them is left out. A value that only a
    deployment tells is an output of Pulumi, or ``Later`` where nothing is deployed. A Kubernetes object is its inputs,
    with ``UNKNOWN`` for such a value, and without any None.
    """

    type: str
    name: str
    inputs: Mapping[str, Any]
    options: ResourceOptions = PLAIN

    def planned(self, stack: str) -> Planned:
        """Return the resource as a plan has it, without parent, and with the dependencies that inputs make."""
        inputs, options = self.inputs, self.options.planned
        if not self.type.startswith(KUBERNETES):
            after: set[tuple[str, str]] = set()
            inputs = _wire(inputs, after)
            options = {**options, "dependsOn": sorted(after)} if after else options
        return Planned(stack=stack, type=self.type, name=self.name, inputs=inputs, options=options)


class Register(Protocol):
    """Registers a resource after others and returns it; its attributes are the resource's outputs.

    Functions that take one compose the resources of environments and teams: a component passes one that registers
    its children with Pulumi, ``check --fast`` passes a ``ModelPlan``.
    """

    def __call__(self, declared: Declared, depends_on: Sequence[Any] = (), /) -> Any:
        """Register a resource."""


class ModelPlan:
    """Registers with nobody: collects resources, whose outputs are known as far as a preview knows them."""

    def __init__(self) -> None:
        self.resources: list[Declared] = []

    def __call__(self, declared: Declared, _depends_on: Sequence[Any] = (), /) -> _Outputs:
        """Collect a resource."""
        self.resources.append(declared)
        return _Outputs(declared)


class _Outputs:
    """The outputs of a resource that is not deployed: its inputs, and ``Later`` for everything else."""

    def __init__(self, declared: Declared) -> None:
        self._declared = declared

    def __getattr__(self, name: str) -> Any:
        declared = self._declared
        return declared.inputs.get(name) or Later(declared.type, declared.name)


def without_none(value: Any) -> Any:
    """Return inputs without any None, at any depth: the provider would be sent a null, and take it for a value."""
    if isinstance(value, Mapping):
        return {key: without_none(item) for key, item in value.items() if item is not None}
    if isinstance(value, list | tuple):
        return [without_none(item) for item in value]
    return value


def _wire(value: Any, after: set[tuple[str, str]]) -> Any:
    """Return a value as the wire has it, its keys respelt; ``after`` gets what it waits for."""
    if isinstance(value, dict):
        return {
            camel_case(key): _map(item, after) if key in MAP_FIELDS else _wire(item, after)
            for key, item in value.items()
            if item is not None
        }
    if isinstance(value, list | tuple):
        return [_wire(item, after) for item in value]
    if isinstance(value, Later):
        after.add((value.type, value.name))
        return UNKNOWN
    return value


def _map(value: Any, after: set[tuple[str, str]]) -> Any:
    """Return the value of a map field as the wire has it: its keys are users' and stay."""
    if isinstance(value, dict):
        return {key: _wire(item, after) for key, item in value.items() if item is not None}
    return _wire(value, after)


# Inputs that are maps: their keys are users' and keep their spelling.
MAP_FIELDS = frozenset(
    {
        "dimensions",
        "label_extractors",
        "labels",
        "metadata",
        "resource_labels",
        "resource_manager_tags",
        "sysctls",
        "user_labels",
    }
)


def kubernetes_object(type_: str, logical_name: str, scope: Scope, name: str, spec: dict[str, Any]) -> Declared:
    """Return an object; its name is explicit, since people, jobs or other objects refer to it."""
    _, api_version, kind = type_.split(":")
    metadata = {"name": name, "labels": scope.kubernetes_labels}
    inputs = {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}
    return Declared(type=type_, name=logical_name, inputs=inputs)
