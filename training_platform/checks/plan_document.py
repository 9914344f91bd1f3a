"""A plan as JSON, which other programs and this program at another commit can read. Secrets are not shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from training_platform.checks.outcome import LATER
from training_platform.config.model.stack import Stack
from training_platform.config.names import Locator
from training_platform.config.reading.secrets import can_be_secret, digest
from training_platform.resources.plan import OWN_RESOURCES, Plan, is_read
from training_platform.resources.stack_resource import UNKNOWN, ResourceKey, StackResource


class ResourceDocument(BaseModel):
    """A resource or component. Its inputs have the provider's field names, its options have Pulumi's names.

    ``place`` is the line of the stack file from which the resource comes. A value that is known only after deployment
    is ``(known after deployment)``. ``inputs_from`` names the resources whose outputs an input uses.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    type: str
    name: str
    place: str = ""
    custom: bool = True
    parent: ResourceKey | None = None
    inputs: dict[str, Any] = {}
    options: dict[str, Any] = {}
    inputs_from: dict[str, tuple[ResourceKey, ...]] = {}
    own_line: int | None = None


class ReadResource(BaseModel):
    """An existing resource that is only read and not managed."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    type: str
    name: str
    id: str


class PlanDocument(BaseModel):
    """The plan of a stack."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    stack: str
    resources: tuple[ResourceDocument, ...]
    reads: tuple[ReadResource, ...] = ()
    outputs: dict[str, Any] = {}


class PlanDocuments(BaseModel):
    """The plans of several stacks, and a sentence for each stack without a plan."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    version: Literal[1] = 1
    plans: tuple[PlanDocument, ...]
    failures: tuple[str, ...] = ()


def plan_document(stack: Stack, plan: Plan) -> PlanDocument:
    """Return a stack's plan as a document for JSON."""
    assert stack.section is not None  # a stack without one has no plan
    locator = Locator(stack.section)
    resources = [
        ResourceDocument(
            type=planned.type,
            name=planned.name,
            place=f"{OWN_RESOURCES}:{planned.own_line}"
            if planned.own_line
            else stack.place(locator.path(planned.name)),
            custom=planned.custom,
            parent=planned.parent,
            inputs=_shown(planned.inputs, ()),
            options=dict(planned.options),
            inputs_from=dict(planned.inputs_from),
            own_line=planned.own_line,
        )
        for planned in plan.planned()
    ]
    reads = [
        ReadResource(type=resource.type, name=resource.name, id=str(resource.read_id))
        for resource in plan.resources()
        if is_read(resource)
    ]
    return PlanDocument(
        stack=stack.name,
        resources=tuple(resources),
        reads=tuple(reads),
        outputs=_shown(plan.preview_outputs(), ()),
    )


def planned_of(document: PlanDocument) -> Iterator[StackResource]:
    """Yield the planned resources of a document."""
    for resource in document.resources:
        yield StackResource(
            stack=document.stack,
            type=resource.type,
            name=resource.name,
            inputs=_read(resource.inputs),
            custom=resource.custom,
            parent=resource.parent,
            options=resource.options,
            inputs_from=resource.inputs_from,
            own_line=resource.own_line,
        )


def _shown(value: Any, keys: tuple[object, ...]) -> Any:
    if isinstance(value, Mapping):
        return {key: _shown(item, (*keys, key)) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_shown(item, keys) for item in value]
    if value is UNKNOWN:
        return LATER
    return digest(value) if value is not None and can_be_secret(keys) else value


def _read(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _read(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_read(item) for item in value]
    return UNKNOWN if value == LATER else value
