"""What the engine's preview has otherwise than ``check`` planned it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.engine.workspace import STACK, Json, Key, Preview, key_of
from tests.support.plans import PlannedStack
from training_platform.resources.stack_resource import UNKNOWN, StackResource

UNKNOWN_IN_PREVIEW = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
DEFAULT_PROVIDER = re.compile(r"default(_\d+)*\Z")
PROVIDER = "pulumi:providers:"
SERVICE_ACCOUNT = "gcp:serviceaccount/account:Account"
_ADDED_TO_PROVIDERS = {"__internal", "version"}
_SECONDS = {"s": 1, "m": 60, "h": 3600}

Known = Callable[[Any], bool]


def missing(plan: PlannedStack, preview: Preview) -> list[str]:
    """Return each resource that only one of both has; the engine's own default providers are not counted."""
    planned = {resource.key for resource in plan.resources}
    seen = {key for key in preview.resources if not _is_default_provider(key)}
    return [
        *(f"only planned: {' '.join(key)}" for key in sorted(planned - seen)),
        *(f"only in the preview: {' '.join(key)}" for key in sorted(seen - planned)),
    ]


def different_inputs(plan: PlannedStack, preview: Preview, *, deployed: bool = False) -> list[str]:
    """Return each input that differs in the preview, is missing from it, or is only in it without being a default.

    ``deployed`` says that the preview knows another stack's outputs, which the plan may not: anything may stand where
    the plan has an unknown value.
    """
    known_to_provider = _Known(preview.resources)
    comparison = _Comparison(lambda value: deployed or known_to_provider(value))
    for resource in plan.resources:
        state = preview.resources.get(resource.key)
        if state is not None:
            added = _ADDED_TO_PROVIDERS if resource.type.startswith(PROVIDER) else set()
            comparison.mapping(" ".join(resource.key), resource.inputs, state.get("inputs", {}), added)
    return comparison.differences


def different_options(plan: PlannedStack, preview: Preview) -> list[str]:
    """Return each option, parent included, that is another in the preview.

    Of the recorded options only ``deleteBeforeReplace`` cannot be compared: a preview does not say it.
    """
    differences = []
    for resource in plan.resources:
        state = preview.resources.get(resource.key)
        if state is not None:
            planned = _planned_options(resource)
            seen = _seen_options(state)
            different = [name for name in seen if planned[name] != seen[name]]
            differences += [f"{' '.join(resource.key)}: {name} {planned[name]} / {seen[name]}" for name in different]
    return differences


def different_outputs(plan: PlannedStack, preview: Preview) -> list[str]:
    """Return each export that is another in the preview."""
    comparison = _Comparison(_Known(preview.resources))
    comparison.mapping("outputs", plan.outputs, preview.outputs)
    return comparison.differences


@dataclass
class _Comparison:
    """Walks two values; ``may_be_unknown`` says which values of a preview the plan may have as unknown."""

    may_be_unknown: Known
    differences: list[str] = field(default_factory=list)

    def mapping(self, path: str, planned: Mapping[str, Any], seen: Json, added: set[str] | None = None) -> None:
        """Compare two mappings; what only the preview has must be a default that the provider says it filled in."""
        defaults = {"__defaults", *seen.get("__defaults", ()), *(added or ())}
        for name in (*planned, *(name for name in seen if name not in planned)):
            if name not in seen:
                self.differences.append(f"{path}.{name}: {planned[name]!r} / nothing")
            elif name in planned:
                self.value(f"{path}.{name}", planned[name], seen[name])
            elif name not in defaults:
                self.differences.append(f"{path}.{name}: nothing / {seen[name]!r}")

    def value(self, path: str, planned: Any, seen: Any) -> None:
        """Compare two values; numbers by value, and a boolean is no number."""
        if planned is UNKNOWN:
            same = seen == UNKNOWN_IN_PREVIEW or self.may_be_unknown(seen)
        elif isinstance(planned, Mapping) and isinstance(seen, dict):
            return self.mapping(path, planned, seen)
        elif isinstance(planned, list) and isinstance(seen, list) and len(planned) == len(seen):
            for index, pair in enumerate(zip(planned, seen, strict=True)):
                self.value(f"{path}[{index}]", *pair)
            return None
        else:
            is_known = planned != UNKNOWN_IN_PREVIEW  # a plan has its own mark for what is not known
            same = is_known and planned == seen and isinstance(planned, bool) is isinstance(seen, bool)
        if not same:
            self.differences.append(f"{path}: {planned!r} / {seen!r}")
        return None


class _Known:
    """Values that only the gcp provider knows during a preview, so that a plan without it has unknown values.

    These are the names that it makes up, and the email addresses of service accounts.
    """

    def __init__(self, resources: Mapping[Key, Json]) -> None:
        self._texts = set(_known_texts(resources))

    def __call__(self, value: Any) -> bool:
        return isinstance(value, str) and value.removeprefix("serviceAccount:") in self._texts


def _known_texts(resources: Mapping[Key, Json]) -> Iterator[str]:
    for (kind, _), state in resources.items():
        inputs = state.get("inputs", {})
        if "name" in inputs.get("__defaults", ()):
            yield inputs["name"]
        if kind == SERVICE_ACCOUNT:
            yield f"{inputs['accountId']}@{inputs['project']}.iam.gserviceaccount.com"


def _planned_options(resource: StackResource) -> Json:
    options = resource.options
    return {
        "parent": resource.parent,
        "provider": options.get("provider"),
        "protect": options.get("protect", False),
        "retainOnDelete": options.get("retainOnDelete", False),
        "ignoreChanges": options.get("ignoreChanges", []),
        "replaceOnChanges": options.get("replaceOnChanges", []),
        "replacementTrigger": options.get("replacementTrigger"),
        "dependsOn": sorted(options.get("dependsOn", [])),
        "customTimeouts": {name: _seconds(time) for name, time in options.get("customTimeouts", {}).items()},
    }


def _seen_options(state: Json) -> Json:
    parent = key_of(state["parent"])
    provider = state.get("provider")
    name = key_of(provider.rpartition("::")[0]) if provider else None
    return {
        "parent": None if parent[0] == STACK else parent,
        "provider": None if name is None or _is_default_provider(name) else name[1],
        "protect": state.get("protect", False),
        "retainOnDelete": state.get("retainOnDelete", False),
        "ignoreChanges": state.get("ignoreChanges", []),
        "replaceOnChanges": state.get("replaceOnChanges", []),
        "replacementTrigger": state.get("replacementTrigger"),
        "dependsOn": sorted({key_of(urn) for urn in state.get("dependencies", ())}),
        "customTimeouts": state.get("customTimeouts", {}),
    }


def _is_default_provider(key: Key) -> bool:
    return key[0].startswith(PROVIDER) and DEFAULT_PROVIDER.match(key[1]) is not None


def _seconds(text: str) -> int:
    return sum(int(number) * _SECONDS[unit] for number, unit in re.findall(r"(\d+)([smh])", text))
