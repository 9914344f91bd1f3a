"""Resources as a policy pack is given them, as planned resources."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from pulumi_policy import PolicyResource, ResourceValidationArgs
from pulumi_policy.proxy import UnknownValueError

from modules.rules.planned import UNKNOWN, Planned


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
    return Planned(stack=urn.stack, type=urn.type, name=urn.name, inputs=plain(resource.props))


def plain(value: Any) -> Any:
    """Return a value without the wrappers that raise where something unknown is read: they would end a whole policy."""
    if isinstance(value, Mapping):
        return {key: _read(value.__getitem__, key) for key in value}
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return [_read(value.__getitem__, index) for index in range(len(value))]
    return value


def _read(get: Callable[[Any], Any], key: Any) -> Any:
    try:
        return plain(get(key))
    except UnknownValueError:
        return UNKNOWN
