"""The pack's policies and their settings, and checks of a config.

The engine checks the types of a policy's settings, but ignores unknown names, so this module rejects those. It does not
load the SDK, so that ``check`` can also check the files in ``policies/config``. It does not load the rules either,
which take most of the pack's start-up time. Facts about rule sets are in ``rulesets.json``, which ``make reference``
generates from the rules.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from pathlib import Path as FilePath
from typing import Any, NamedTuple

from training_platform.catalog.nearest import find_nearest
from training_platform.config.reading.finding import Path, dotted

ADVISORY_RULES = "advisoryRules"
PRODUCTION = "production"
SNAPSHOT = "snapshot"
HOUSE_RULES = "houseRules"
LEVEL = "enforcementLevel"
LEVELS = ("advisory", "mandatory", "remediate", "disabled")
ADVICE = "advice"
STACK_ADVICE = "stack-advice"
QUOTA = "quota"
_OF_POLICIES: Mapping[str, dict[str, dict[str, Any]]] = {
    "labels": {
        "environment": {"type": "string", "description": "The environment of a program that has no stack file."},
        "team": {"type": "string", "description": "The team of a program that has no stack file."},
    },
    "protection": {
        PRODUCTION: {
            "type": "boolean",
            "description": "Whether a program that has no stack file is production. If so, its resources with data "
            "or jobs must not be deletable with one command.",
        }
    },
    QUOTA: {
        SNAPSHOT: {
            "type": ["string", "object"],
            "description": "Limits of the project for a program that has no stack file: the content of a file in "
            "stacks/quotas/, or its path relative to the pack's folder.",
        }
    },
}
_HOUSE: dict[str, Any] = {
    "type": "boolean",
    "description": "Whether house rules apply to a program of another project. Google Cloud accepts what these rules "
    "refuse: they are a platform team's rules for its own stacks. The settings environment and production also turn "
    "them on.",
}
_EVERYWHERE = "all"  # not a policy: the enforcement level of all policies
_TYPES: Mapping[str, tuple[type, str]] = {
    "string": (str, "a string"),
    "boolean": (bool, "true or false"),
    "array": (list, "a list"),
    "object": (dict, "limits"),
}
RULESETS_FILE = FilePath(__file__).parent / "rulesets.json"
CONFIGS = "policies/config"


class Ruleset(NamedTuple):
    """A rule set: what its rules are about, and their ids.

    ``across`` is True if it needs the whole stack, ``house`` if it contains house rules, and ``fixes`` if it can
    correct a resource.
    """

    title: str
    rules: tuple[str, ...]
    across: bool = False
    house: bool = False
    fixes: bool = False


RULESETS: Mapping[str, Ruleset] = {
    name: Ruleset(**row) for name, row in json.loads(RULESETS_FILE.read_text(encoding="utf-8")).items()
}
"""The rule sets, keyed by name, in the order in which they run. The last is ``quota``, for limits and capacity."""


class SettingError(NamedTuple):
    """An error in a config, and where it is in the config."""

    path: Path
    message: str
    allowed: str
    nearest: str | None = None

    def __str__(self) -> str:
        """Return the error as one or two sentences."""
        return f"{self.message}. Allowed: {self.allowed}." + (f" Nearest: {self.nearest}" if self.nearest else "")


@cache
def settings() -> Mapping[str, Mapping[str, dict[str, Any]]]:
    """Return the JSON schema of every setting, keyed by policy: one per rule set, one for quotas, and advisory ones."""
    schemas: dict[str, dict[str, dict[str, Any]]] = {}
    for policy, ruleset in RULESETS.items():
        advisory = {
            "type": "array",
            "items": {"type": "string", "enum": list(ruleset.rules)},
            "description": "Rules of this policy that only advise and never stop a deployment.",
        }
        schemas[policy] = {ADVISORY_RULES: advisory, **_OF_POLICIES.get(policy, {})}
        if ruleset.house:
            schemas[policy][HOUSE_RULES] = _HOUSE
    return {**schemas, ADVICE: {}, STACK_ADVICE: {}}


def house_rules_hold(config: Mapping[str, Any]) -> bool:
    """Return True if a policy's settings enable our house rules for a program of another project."""
    return bool(config.get(HOUSE_RULES, not config.keys().isdisjoint(("environment", PRODUCTION))))


def wrong_configs(root: FilePath) -> Iterator[str]:
    """Yield a sentence for each error in a repository's configs, with file and line."""
    from training_platform.config.reading.source import UnreadableError  # noqa: PLC0415 # the pack starts without it

    for path in sorted((root / CONFIGS).glob("*.json")):
        try:
            yield from _wrong_config(path, f"{CONFIGS}/{path.name}")
        except UnreadableError as error:
            yield str(error)


def _wrong_config(path: FilePath, file: str) -> Iterator[str]:
    from training_platform.config.reading.source import UnreadableError, read_source  # noqa: PLC0415 # see above

    source = read_source(path, file)  # JSON is YAML, whose reader has positions
    try:
        config = json.loads(path.read_bytes())
    except ValueError as error:
        place = f":{error.lineno}:{error.colno}" if isinstance(error, json.JSONDecodeError) else ""
        raise UnreadableError(f"{file}{place}: is not JSON: {error}.") from error
    yield from (finding.one_line for finding in source.findings)
    if not isinstance(config, dict):
        raise UnreadableError(f"{file}:1:1: is not a mapping of policies to levels or settings.")
    for wrong in wrong_settings(config, path.parents[1]):
        yield f"{file}:{':'.join(map(str, source.position(wrong.path)))}: {dotted(wrong.path)}: {wrong}"


def wrong_settings(config: Mapping[str, Any], folder: FilePath = FilePath()) -> Iterator[SettingError]:
    """Yield errors in a config's policies, levels and settings, and in snapshots that cannot be used.

    ``folder`` is the pack's folder, in which the engine starts the pack. A snapshot's path is relative to it.
    """
    for policy, setting in config.items():
        schema = settings().get(policy, {} if policy == _EVERYWHERE else None)
        if schema is None:
            yield _unknown_name((policy,), policy, f"policy {policy!r} does not exist", settings().keys(), max_names=40)
        elif isinstance(setting, Mapping):
            yield from _wrong_values(policy, setting, schema, folder)
        else:
            yield from _wrong_level((policy,), setting)


def _wrong_values(
    policy: str, values: Mapping[str, Any], schema: Mapping[str, dict[str, Any]], folder: FilePath
) -> Iterator[SettingError]:
    for name, value in values.items():
        if name == LEVEL:
            yield from _wrong_level((policy, LEVEL), value)
        elif name not in schema:
            yield _unknown_name((policy, name), name, f"{policy} has no setting {name!r}", (*schema, LEVEL))
        else:
            errors = list(_wrong_type((policy, name), value, schema[name]))
            if not errors and name == SNAPSHOT:
                errors = list(_wrong_snapshot(value, folder))
            yield from errors


def _wrong_level(path: Path, value: object) -> Iterator[SettingError]:
    if value not in LEVELS:
        message = f"{value!r} is not an enforcement level"
        yield SettingError(path, message, allowed=", ".join(LEVELS), nearest=find_nearest(str(value), LEVELS))


def _wrong_type(path: Path, value: Any, schema: Mapping[str, Any]) -> Iterator[SettingError]:
    types = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
    if not isinstance(value, tuple(_TYPES[name][0] for name in types)):
        yield SettingError(
            path, f"{value!r} has the wrong type", allowed=" or ".join(_TYPES[name][1] for name in types)
        )
    elif "enum" in schema and value not in schema["enum"]:
        yield _unknown_name(path, str(value), f"{value!r} is not a rule of {path[0]}", schema["enum"], max_names=40)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _wrong_type((*path, index), item, schema["items"])


def _unknown_name(path: Path, name: str, message: str, names: Collection[str], max_names: int = 12) -> SettingError:
    from training_platform.config.reading.section import enumeration  # noqa: PLC0415 # loads pydantic

    return SettingError(path, message, allowed=enumeration(names, max_names), nearest=find_nearest(name, names))


def _wrong_snapshot(setting: str | Mapping[str, Any], folder: FilePath) -> Iterator[SettingError]:
    from training_platform.policy.single_stack import (  # noqa: PLC0415 # loads the rules
        SnapshotError,
        snapshot_of,
    )

    try:
        snapshot_of(str(folder / setting) if isinstance(setting, str) else setting)
    except SnapshotError as error:
        message = f"{QUOTA}.{SNAPSHOT}: {error}"
        yield SettingError((QUOTA, SNAPSHOT), message, allowed="limits in the format of stacks/quotas/")
