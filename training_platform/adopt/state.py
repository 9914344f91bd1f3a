"""What an import leaves in a state, put right by the import file, so that the first preview compares what is there.

Offline, on what ``pulumi stack export`` prints. Seen with engine 3.260 and the provider of 2026-08-21: an import takes
all that the API answers for inputs, whatever ``properties`` its file lists, and nothing of ``inputs`` into the outputs,
which the provider compares with.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from training_platform.resources.register import KUBERNETES

_MARK = {"goog-pulumi-provisioned": "true"}  # the label by which the provider knows what Pulumi made
_DELTA = "__pulumi_raw_state_delta"  # of the outputs as they were; the provider says to remove it where they are edited
_INPUTS = "__inputs"  # where the Kubernetes provider keeps a program's own (source of 2026-07-01)
_LABELS = ("labels", "resourceLabels", "userLabels")
Json = dict[str, Any]


def settled(state: Mapping[str, Any], imports: Mapping[str, Any]) -> tuple[Json, list[str]]:
    """Return a state with what its import could not know, and the names of what was changed.

    Of inputs that the program ignores, the provider would be given values that it refuses, such as a cluster's
    ``nodeConfig.windowsNodeConfig``: they go. What no API tells, labels of ours and settings of the provider, is filled
    in: the first update would send it again as it is.
    """
    rows = {_key(row["type"], row.get("logicalName", row["name"])): row for row in imports["resources"]}
    changed: list[str] = []
    resources = []
    for each in state["deployment"].get("resources", ()):
        name = each["urn"].split("::", 3)[-1]
        row = rows.get(_key(each["type"], name))
        fixed = _settled(each, row) if row and row.keys() & {"properties", "inputs"} else each
        if fixed != each:
            changed.append(name)
        resources.append(fixed)
    return {**state, "deployment": {**state["deployment"], "resources": resources}}, changed


def _settled(resource: Json, row: Mapping[str, Any]) -> Json:
    if resource["type"].startswith(KUBERNETES):
        return _as_written(resource, row["inputs"])
    inputs, outputs = dict(resource.get("inputs", {})), dict(resource.get("outputs", {}))
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
    """Return an object as if the program had written it; the provider compares no fields but those of ``__inputs``."""
    outputs = dict(resource.get("outputs", {}))
    return {**resource, "inputs": written, "outputs": {**outputs, **({_INPUTS: written} if _INPUTS in outputs else {})}}


def _filled(outputs: Json, told: Mapping[str, Any]) -> Json:
    """Return outputs with what they lack; what the API did tell stays."""
    found = dict(outputs)
    for key, value in told.items():
        there = found.get(key)
        if isinstance(value, Mapping) and isinstance(there, Mapping) and there:
            found[key] = _filled(dict(there), value)
        elif there in (None, {}, []):
            found[key] = value
    return found


def _key(token: str, name: str) -> str:
    return f"{token}::{name}"
