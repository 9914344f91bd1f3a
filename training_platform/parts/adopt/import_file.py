"""The file for ``pulumi import --file``: a project's resources with their names and parents in the program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from importlib.metadata import requires
from typing import Any

from training_platform.catalog.types import Json
from training_platform.parts.adopt.matches import Match, current_inputs
from training_platform.resources.api_fields import LOCATION_INPUTS, field_of, root
from training_platform.resources.resource_types import KUBERNETES, NODE_POOL, labels_path
from training_platform.resources.stack_resource import KUBERNETES_PROVIDER, UNKNOWN, StackResource

Key = tuple[str, str]


def import_file(resources: Iterable[StackResource], matched: Mapping[Key, Match], below: Iterable[Key] = ()) -> Json:
    """Return the file's content: parent components first, then every resource with its id.

    It also contains the parents of the resources in ``below``, for files that are imported later.
    """
    plan = {resource.key: resource for resource in resources}
    importable = {key: plan[key] for key in plan if key in matched or not plan[key].custom}
    above = {resource.key: resource.parent for resource in plan.values()}
    parents = _parents(above, [*matched, *below])
    rows = [row for row in importable.values() if row.custom or row.key in parents]
    often = Counter(row.name for row in rows)
    names = {row.key: row.name if often[row.name] == 1 else f"{row.type}::{row.name}" for row in rows}
    return {"resources": [_entry(row, names, matched) for row in rows]}


def _parents(above: Mapping[Key, Key | None], keys: Iterable[Key]) -> set[Key]:
    """Return all ancestor components of the given resources."""
    parents: set[Key] = set()
    for key in keys:
        parent = above.get(key)
        while parent is not None and parent not in parents:
            parents.add(parent)
            parent = above.get(parent)
    return parents


def _entry(planned: StackResource, names: Mapping[Key, str], matched: Mapping[Key, Match]) -> dict[str, Any]:
    entry: dict[str, Any] = {"type": planned.type, "name": names[planned.key]}
    if names[planned.key] != planned.name:
        entry["logicalName"] = planned.name
    if planned.type == KUBERNETES_PROVIDER:
        entry |= {"inputs": matched[planned.key].planned.inputs, "version": _pinned("pulumi-kubernetes")}
    elif planned.custom:
        entry["id"] = matched[planned.key].id
    else:
        entry["component"] = True
    if planned.parent is not None and planned.parent in names:
        entry["parent"] = names[planned.parent]
    if planned.type.startswith(KUBERNETES):
        match = matched[planned.key]
        provider = (KUBERNETES_PROVIDER, str(planned.options["provider"]))
        return {**entry, "provider": names[provider], "inputs": current_inputs(match)}
    if properties := _properties(planned):
        entry["properties"] = properties
    if inputs := untold(planned):
        entry["inputs"] = inputs
    return entry


def _pinned(package: str) -> str:
    """Return the pinned version of a package. Only deployments need the package, so it may not be installed here."""
    pins = (requirement.partition(";")[0].strip().split("==") for requirement in requires("training-platform") or ())
    return next(pin[1] for pin in pins if pin[0] == package)


def untold(planned: StackResource) -> dict[str, Any]:
    """Return the inputs that no API returns: settings of the provider, and the labels and taints to manage.

    The API returns more labels and taints. The provider manages only those in the import file.
    """
    field = root(planned.type)
    labels = labels_path(planned.type) or ()
    if field is None or not planned.custom:
        return {}
    program_inputs = {
        key: value
        for key, value in planned.inputs.items()
        if key not in LOCATION_INPUTS and value is not UNKNOWN and (labels == (key,) or field_of(key, field) is None)
    }
    taints = planned.inputs.get("nodeConfig", {}).get("taints") if planned.type == NODE_POOL else None
    if taints:
        program_inputs["nodeConfig"] = {"taints": taints}
    return program_inputs


def _properties(planned: StackResource) -> list[str]:
    """Return the inputs to import for a resource for which the program ignores changes of some inputs.

    By default, an import includes everything that the API returns. An input with ignored changes would keep this value
    permanently, although the provider refuses some values. Inputs that the import leaves out count as never set.
    """
    ignored = {path.partition(".")[0] for path in planned.options.get("ignoreChanges", ())}
    whole = {path for path in ignored if "[" not in path}
    return sorted(key for key in planned.inputs if key not in whole) if whole else []


_MARK = {"goog-pulumi-provisioned": "true"}  # the label with which the provider marks resources of Pulumi
_DELTA = "__pulumi_raw_state_delta"  # the provider requires its removal if outputs are edited
_INPUTS = "__inputs"  # where the Kubernetes provider keeps the program's inputs (source of 2026-07-01)
_LABELS = ("labels", "resourceLabels", "userLabels")


def is_import_file(document: object) -> bool:
    """Return True if a JSON document is a list of resources for ``pulumi import``."""
    return isinstance(document, dict) and _are_rows(document.get("resources"), ("type", "name"))


def is_export(document: object) -> bool:
    """Return True if a JSON document is a stack's state in the format of ``pulumi stack export``."""
    deployment = document.get("deployment") if isinstance(document, dict) else None
    return isinstance(deployment, dict) and _are_rows(deployment.get("resources", []), ("type", "urn"))


def _are_rows(rows: object, keys: tuple[str, str]) -> bool:
    if not isinstance(rows, list):
        return False
    return all(isinstance(row, dict) and all(isinstance(row.get(key), str) for key in keys) for row in rows)


def settled(state: Mapping[str, Any], imports: Mapping[str, Any]) -> tuple[Json, list[str]]:
    """Return a state with the values that the import did not set, and the names of changed resources.

    Inputs with ignored changes are removed if their values would be refused by the provider, such as a cluster's
    ``nodeConfig.windowsNodeConfig``. Values that no API returns, such as settings of the provider, are filled in, since
    the first update would otherwise send them again unchanged.
    """
    rows = {_key(row["type"], row.get("logicalName", row["name"])): row for row in imports["resources"]}
    changed: list[str] = []
    resources = []
    for resource in state["deployment"].get("resources", ()):
        name = resource["urn"].split("::", 3)[-1]
        row = rows.get(_key(resource["type"], name))
        fixed = _settled(resource, row) if row and row.keys() & {"properties", "inputs"} else resource
        if fixed != resource:
            changed.append(name)
        resources.append(fixed)
    return {**state, "deployment": {**state["deployment"], "resources": resources}}, changed


def _settled(resource: Json, row: Mapping[str, Any]) -> Json:
    if resource["type"].startswith(KUBERNETES):
        return _as_written(resource, row["inputs"])
    inputs = dict(resource.get("inputs", {}))
    outputs = dict(resource.get("outputs", {}))
    if "properties" in row:
        inputs = {key: value for key, value in inputs.items() if key in {*row["properties"], "__defaults"}}
    told = row.get("inputs", {})
    outputs = _filled(outputs, told)
    labels = next((told[key] for key in _LABELS if key in told), None)
    if labels and not outputs.get("pulumiLabels") and "pulumiLabels" in outputs:
        marked = _MARK if _MARK.items() <= dict(outputs.get("effectiveLabels") or {}).items() else {}
        outputs["pulumiLabels"] = {**labels, **marked}
    if outputs != resource.get("outputs"):
        outputs.pop(_DELTA, None)
    return {**resource, "inputs": inputs, "outputs": outputs}


def _as_written(resource: Json, written: Mapping[str, Any]) -> Json:
    """Return an object as if the program had created it. The provider compares only the fields in ``__inputs``."""
    outputs = dict(resource.get("outputs", {}))
    if _INPUTS in outputs:
        outputs[_INPUTS] = written
    return {**resource, "inputs": written, "outputs": outputs}


def _filled(outputs: Json, told: Mapping[str, Any]) -> Json:
    """Return outputs with missing values filled in. Values from the API are kept."""
    filled = dict(outputs)
    for key, value in told.items():
        there = filled.get(key)
        if isinstance(value, Mapping) and isinstance(there, Mapping) and there:
            filled[key] = _filled(dict(there), value)
        elif there in (None, {}, []):
            filled[key] = value
    return filled


def _key(token: str, name: str) -> str:
    return f"{token}::{name}"
