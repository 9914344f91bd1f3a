"""The engine's knowledge of stacks: their last deployed state, and the steps of a preview.

``pulumi stack export`` prints a state, and ``pulumi preview --json`` the steps of a preview with the old and the new
inputs of each resource, which no policy pack is given. Source: pulumi 3.260, pkg/backend/display/json.go and
sdk/go/common/apitype/core.go.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from training_platform.checks.change_report import ResourceChange
from training_platform.checks.comparison.changes import added, changed_by_engine, removed
from training_platform.checks.outcome import FlatResource, flat_resource
from training_platform.config.reading.finding import UserError
from training_platform.resources.stack_resource import UNKNOWN, StackResource

_SECRET = "4dabf18193072939515e22adb298388d"  # noqa: S105 # the key with which the engine marks special values
_UNKNOWN = ("04da6b54-80e4-46f7-96ec-b56ff0331ba9", "output<string>")
_DEFAULTS = "__defaults"
_REPLACING = ("replace", "create-replacement", "delete-replaced")
JsonMapping = Mapping[str, Any]


class DeployedStack(NamedTuple):
    """A stack as it is deployed: its resources, without components and providers."""

    stack: str
    resources: tuple[FlatResource, ...]


class Preview(NamedTuple):
    """A stack, with the engine's steps for its resources."""

    stack: str
    changes: tuple[ResourceChange, ...]


def read_state(path: Path) -> DeployedStack:
    """Read the output of ``pulumi stack export``. Raises UserError."""
    document = _document(path, "pulumi stack export")
    rows = document.get("deployment")
    resources = rows.get("resources", ()) if isinstance(rows, Mapping) else None
    if resources is None:
        raise UserError(f"{path}: has no deployment: write what `pulumi stack export --stack STACK` prints.")
    deployed = [row for row in resources if _is_deployed(row)]
    names = {_stack(str(row["urn"])) for row in resources}
    if len(names) != 1:
        raise UserError(f"{path}: is the state of no stack: its resources have {len(names)} stacks in their URNs.")
    return DeployedStack(names.pop(), tuple(_flat(row) for row in deployed))


def read_preview(path: Path) -> Preview:
    """Read the output of ``pulumi preview --json``. Raises UserError."""
    document = _document(path, "pulumi preview --json")
    steps = document.get("steps")
    if not isinstance(steps, list) or not steps:
        raise UserError(f"{path}: has no steps: write what `pulumi preview --json --stack STACK` prints.")
    names = {_stack(str(step["urn"])) for step in steps}
    if len(names) != 1:
        raise UserError(f"{path}: is the preview of no stack: its steps have {len(names)} stacks in their URNs.")
    by_urn = {str(step["urn"]): _change(step) for step in _gravest(steps)}
    return Preview(names.pop(), tuple(change for change in by_urn.values() if change))


def _document(path: Path, command: str) -> JsonMapping:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise UserError(f"{path}: is no JSON, as `{command}` prints it.") from error
    if not isinstance(document, dict):
        raise UserError(f"{path}: is no document, as `{command}` prints it.")
    return document


def _stack(urn: str) -> str:
    """Return the stack in ``urn:pulumi:<stack>::<project>::<types>::<name>``."""
    return urn.removeprefix("urn:pulumi:").partition("::")[0]


def _is_deployed(row: JsonMapping) -> bool:
    """Whether a resource of a state is a provider's, and neither only read nor to be deleted."""
    unowned = row.get("external") or row.get("delete")
    return bool(row.get("custom")) and not unowned and not str(row.get("type", "")).startswith("pulumi:")


def _flat(row: JsonMapping) -> FlatResource:
    planned = StackResource(
        stack="",
        type=str(row["type"]),
        name=str(row["urn"]).split("::", 3)[-1],
        inputs=_plain(row.get("inputs", {})),
        options={name: row.get(name) for name in ("protect", "retainOnDelete")},
    )
    return flat_resource(planned)


def _plain(value: Any) -> Any:
    """Return inputs without the provider's additions, and with markers for unknown values and secrets."""
    if isinstance(value, Mapping):
        if _SECRET in value:
            return UNKNOWN
        filled = {_DEFAULTS, *value.get(_DEFAULTS, ())}
        return {key: _plain(item) for key, item in value.items() if key not in filled}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return UNKNOWN if value in _UNKNOWN else value


def _gravest(steps: Iterable[JsonMapping]) -> Iterator[JsonMapping]:
    """Yield the steps, those of a replacement last, since the engine also notes its parts."""
    rows = [step for step in steps if _is_owned(step)]
    yield from (step for step in rows if step.get("op") not in _REPLACING)
    yield from (step for step in rows if step.get("op") in _REPLACING)


def _is_owned(step: JsonMapping) -> bool:
    state = step.get("newState") or step.get("oldState") or {}
    return bool(state.get("custom", True)) and "pulumi:" not in str(state.get("type", ""))[:7]


def _change(step: JsonMapping) -> ResourceChange | None:
    op = step.get("op")
    old = step.get("oldState")
    new = step.get("newState")
    if op in ("delete", "discard") and old:
        return removed(_flat(old))
    if op == "create" and new:
        return added(_flat(new))
    if not old or not new or op not in ("update", "same", *_REPLACING):
        return None
    if op == "same":  # also of a resource of which only options differ
        return changed_by_engine(_flat({**old, "inputs": {}}), _flat({**new, "inputs": {}}), None)
    forcing = None
    if op in _REPLACING:
        detailed = step.get("detailedDiff") or {}
        paths = [path for path, row in detailed.items() if str(row.get("kind", "")).endswith("-replace")]
        forcing = (*(step.get("replaceReasons") or ()), *paths)
    return changed_by_engine(_flat(old), _flat(new), forcing)
