"""Resources as a policy pack is given them, as planned resources."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from pulumi_policy import PolicyResource, ResourceValidationArgs
from pulumi_policy.proxy import (
    UNKNOWN_ARCHIVE_VALUE,
    UNKNOWN_ARRAY_VALUE,
    UNKNOWN_ASSET_VALUE,
    UNKNOWN_BOOLEAN_VALUE,
    UNKNOWN_NUMBER_VALUE,
    UNKNOWN_OBJECT_VALUE,
    UNKNOWN_STRING_VALUE,
    UnknownValueError,
)

from training_platform.resources.planned import UNKNOWN, Planned

_UNKNOWN_VALUES = frozenset(
    (
        UNKNOWN_ARCHIVE_VALUE, UNKNOWN_ARRAY_VALUE, UNKNOWN_ASSET_VALUE, UNKNOWN_BOOLEAN_VALUE, UNKNOWN_NUMBER_VALUE,
        UNKNOWN_OBJECT_VALUE, UNKNOWN_STRING_VALUE,
    )
)  # fmt: skip


class Urn(NamedTuple):
    """The parts of ``urn:pulumi:{stack}::{project}::{types}::{name}``; a name may hold ``::`` itself."""

    stack: str
    project: str
    type: str
    name: str


def parse_urn(urn: str) -> Urn:
    """Return the parts of a URN; of its types, which say the parents' too, the last."""
    head, project, types, name = urn.split("::", 3)
    return Urn(head.rpartition(":")[2], project, types.rpartition("$")[2], name)


def planned(resource: ResourceValidationArgs | PolicyResource) -> Planned:
    """Return a resource by its stack, type and name; what is not known yet is ``UNKNOWN``, field by field."""
    urn = parse_urn(resource.urn)
    return Planned(
        stack=urn.stack, type=urn.type, name=urn.name, inputs=plain(resource.props), options=options(resource)
    )


def options(resource: ResourceValidationArgs | PolicyResource) -> dict[str, Any]:
    """Return what was registered beside the inputs; what a resource depends on is told of a whole stack alone."""
    given = resource.opts
    known = {
        "protect": given.protect,
        "ignoreChanges": list(given.ignore_changes),
        "deleteBeforeReplace": given.delete_before_replace,
    }
    if isinstance(resource, PolicyResource):
        known["dependsOn"] = sorted((urn.type, urn.name) for urn in map(_urn, resource.dependencies))
    return {name: value for name, value in known.items() if value}


def _urn(resource: PolicyResource) -> Urn:
    return parse_urn(resource.urn)


def plain(value: Any) -> Any:
    """Return a value without the wrappers that raise where something unknown is read: they would end a whole policy.

    What the servicer reads, and what a remediation is given, has none of them, and the marks of unknown values instead.
    """
    kind = value.__class__
    if kind is dict:
        return {key: plain(each) for key, each in value.items()}
    if kind is list:
        return [plain(each) for each in value]
    if isinstance(value, Mapping):
        return {key: _read(value.__getitem__, key) for key in value}
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return [_read(value.__getitem__, index) for index in range(len(value))]
    return UNKNOWN if isinstance(value, str) and value in _UNKNOWN_VALUES else value


def _read(get: Callable[[Any], Any], key: Any) -> Any:
    try:
        return plain(get(key))
    except UnknownValueError:
        return UNKNOWN
