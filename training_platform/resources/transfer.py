"""A plan as JSON. A process can read it from another process without running any of that process's code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from training_platform.resources.filestore import filestore_address
from training_platform.resources.gke import dns_endpoint, existing_endpoint, kubeconfig
from training_platform.resources.plan import (
    Component,
    Computed,
    Node,
    Options,
    Plan,
    PlanError,
    Reference,
    Resource,
    first,
)
from training_platform.resources.project import project_number
from training_platform.resources.storage import lustre_address
from training_platform.resources.team import cluster_endpoint, filestore_ip, lustre_ip

_REFERENCE = "training-platform:reference"
_COMPUTED = "training-platform:computed"
_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "cluster_endpoint": cluster_endpoint,
    "dns_endpoint": dns_endpoint,
    "existing_endpoint": existing_endpoint,
    "filestore_address": filestore_address,
    "filestore_ip": filestore_ip,
    "first": first,
    "format": str.format,
    "kubeconfig": kubeconfig,
    "lustre_address": lustre_address,
    "lustre_ip": lustre_ip,
    "project_number": project_number,
}
_NAMES = {function: name for name, function in _FUNCTIONS.items()}
_OPTIONS = [field.name for field in fields(Options)]


def document_of_plan(plan: Plan) -> dict[str, Any]:
    """Return a checked plan as JSON values, in which nodes refer to each other by index.

    Raises PlanError for an input that is not a JSON value, and for a function that plans do not support.
    """
    nodes = list(plan.nodes())
    indices = {node: index for index, node in enumerate(nodes)}
    return {
        "stack": plan.name,
        "nodes": [_document_of_node(node, indices) for node in nodes],
        "outputs": _document_of_value(plan.outputs, indices, plan.name),
    }


def _document_of_node(node: Node, indices: Mapping[Node, int]) -> dict[str, Any]:
    document: dict[str, Any] = {
        "type": node.type,
        "name": node.name,
        "parent": indices.get(node.parent) if node.parent else None,  # the plan itself has no index
        "after": [indices[other] for other in node.after],
    }
    if isinstance(node, Component):
        return {**document, "provider": indices[node.provider] if node.provider else None}
    return {
        **document,
        "inputs": _document_of_value(node.inputs, indices, node.name),
        "options": {name: getattr(node.options, name) for name in _OPTIONS},
        "own_provider": indices[node.own_provider] if node.own_provider else None,
        "read_id": node.read_id,
        "own_line": node.own_line,
    }


def _document_of_value(value: Any, indices: Mapping[Node, int], owner: str) -> Any:
    if isinstance(value, Reference):
        return {_REFERENCE: [indices[value.resource], *value.path]}
    if isinstance(value, Computed):
        if value.function not in _NAMES:
            functions = ", ".join(_FUNCTIONS)
            raise PlanError(f"{owner} computes a value with its own function; plans support {functions}.")
        arguments = [_document_of_value(argument, indices, owner) for argument in value.arguments]
        return {_COMPUTED: [_NAMES[value.function], *arguments]}
    if isinstance(value, Mapping):
        unnamed = [key for key in value if not isinstance(key, str)]
        if unnamed:
            raise PlanError(f"{owner} has an input with a key of type {type(unnamed[0]).__name__}; keys are strings.")
        return {str(key): _document_of_value(item, indices, owner) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_document_of_value(item, indices, owner) for item in value]
    if value is None or isinstance(value, str | int | float):
        return value
    kind = type(value).__name__
    raise PlanError(f"{owner} has an input of type {kind}; inputs are strings, numbers, booleans, lists and mappings.")


def plan_of_document(document: Mapping[str, Any]) -> Plan:
    """Return the plan that a document describes. Raises one of Python's own exceptions if it describes no plan."""
    plan = Plan(document["stack"])
    nodes: list[Node] = []
    for row in document["nodes"]:
        parent = plan if row["parent"] is None else nodes[row["parent"]]
        if not isinstance(parent, Component):
            raise TypeError(f"the parent of {row['name']} is no component")
        nodes.append(_node_of_document(row, parent))
    for row, node in zip(document["nodes"], nodes, strict=True):
        node.after = [nodes[index] for index in row["after"]]
        if isinstance(node, Component):
            node.provider = _resource_at(row["provider"], nodes)
        else:
            node.own_provider = _resource_at(row["own_provider"], nodes)
            node.inputs = _value_of_document(row["inputs"], nodes)
    plan.outputs = _value_of_document(document["outputs"], nodes)
    return plan


def _node_of_document(row: Mapping[str, Any], parent: Component) -> Node:
    if "inputs" not in row:
        return parent.component(row["type"], row["name"])
    options: dict[str, Any] = {}
    for name, value in row["options"].items():
        options[name] = tuple(value) if isinstance(value, list) else value
    resource = Resource(
        type=row["type"], name=row["name"], inputs={}, options=Options(**options), read_id=row["read_id"]
    )
    parent.add(resource)
    resource.own_line = row["own_line"]
    return resource


def _resource_at(index: int | None, nodes: Sequence[Node]) -> Resource | None:
    if index is None:
        return None
    node = nodes[index]
    if not isinstance(node, Resource):
        raise TypeError(f"{node.name} is a component, not a resource")
    return node


def _value_of_document(value: Any, nodes: Sequence[Node]) -> Any:
    if isinstance(value, list):
        return [_value_of_document(item, nodes) for item in value]
    if not isinstance(value, dict):
        return value
    if _REFERENCE in value:
        index, *path = value[_REFERENCE]
        resource = _resource_at(index, nodes)
        if resource is None:
            raise ValueError("a reference to no resource")
        return Reference(resource, tuple(path))
    if _COMPUTED in value:
        name, *arguments = value[_COMPUTED]
        return Computed(_FUNCTIONS[name], tuple(_value_of_document(argument, nodes) for argument in arguments))
    return {key: _value_of_document(item, nodes) for key, item in value.items()}
