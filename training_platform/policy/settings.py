"""The pack's policies and their settings, and what is wrong with a config.

The engine checks the types of settings that a policy has, and passes over names that it has not: those are found here.
Without the SDK, so that ``check`` can look at the files in ``policies/config`` as well, and without the rules, which
take longer to load than all else at the pack's start: the facts about rule sets are data, ``rulesets.json``, which
``make reference`` writes from the rules.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from pathlib import Path as FilePath
from typing import Any, NamedTuple

from training_platform.catalog.nearest import find_nearest
from training_platform.config.reading.finding import Path

ADVISORY_RULES = "advisoryRules"
PRODUCTION = "production"
SNAPSHOT = "snapshot"
HOUSE_RULES = "houseRules"
LEVEL = "enforcementLevel"
LEVELS = ("advisory", "mandatory", "remediate", "disabled")
ADVICE, STACK_ADVICE, QUOTA = "advice", "stack-advice", "quota"
_OF_POLICIES: Mapping[str, dict[str, dict[str, Any]]] = {
    "labels": {
        "environment": {"type": "string", "description": "The environment of a program that has no stack file."},
        "team": {"type": "string", "description": "The team of a program that has no stack file."},
    },
    "protection": {
        PRODUCTION: {
            "type": "boolean",
            "description": "Whether a program that has no stack file is production: nothing in it that holds data or "
            "jobs may be deleted by one command.",
        }
    },
    QUOTA: {
        SNAPSHOT: {
            "type": ["string", "object"],
            "description": "Limits of the project for a program that has no stack file: the content of a file of "
            "stacks/quotas/, or its path from the pack's folder.",
        }
    },
}
_HOUSE: dict[str, Any] = {
    "type": "boolean",
    "description": "Whether house rules apply to a program of another project. Google Cloud accepts what they refuse: "
    "they are a platform team's rules for its own stacks. The settings environment and production turn them on too.",
}
_EVERYWHERE = "all"  # not a policy: its enforcement level is that of all policies
_TYPES: Mapping[str, tuple[type, str]] = {
    "string": (str, "a text"),
    "boolean": (bool, "true or false"),
    "array": (list, "a list"),
    "object": (dict, "limits"),
}
RULESETS_FILE = FilePath(__file__).parent / "rulesets.json"
CONFIGS = "policies/config"


class Ruleset(NamedTuple):
    """A rule set: the subject of its rules, and their ids.

    ``across`` says whether it needs the whole stack, ``house`` whether it has house rules, ``fixes`` whether it can
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
"""By name, in the order in which they are run; both ledgers, ``quota``, are the last."""


class SettingError(NamedTuple):
    """An error in a config, and its path."""

    path: Path
    message: str
    allowed: str
    nearest: str | None = None

    def __str__(self) -> str:
        """Return it as one sentence or two."""
        return f"{self.message}. Allowed: {self.allowed}." + (f" Nearest: {self.nearest}" if self.nearest else "")


@cache
def settings() -> Mapping[str, Mapping[str, dict[str, Any]]]:
    """Return the JSON schema of every setting, by policy: one for each rule set, both ledgers, and advice."""
    of_rulesets = {
        policy: {
            ADVISORY_RULES: {
                "type": "array",
                "items": {"type": "string", "enum": list(ruleset.rules)},
                "description": "Rules of this policy that advise and never stop a deployment.",
            },
            **_OF_POLICIES.get(policy, {}),
            **({HOUSE_RULES: _HOUSE} if ruleset.house else {}),
        }
        for policy, ruleset in RULESETS.items()
    }
    return {**of_rulesets, ADVICE: {}, STACK_ADVICE: {}}


def house_rules_hold(config: Mapping[str, Any]) -> bool:
    """Whether a policy's settings switch house rules on for a program of another project."""
    return bool(config.get(HOUSE_RULES, not config.keys().isdisjoint(("environment", PRODUCTION))))


def wrong_configs(root: FilePath) -> Iterator[str]:
    """Yield a sentence for everything in a repository's configs that the pack does not take, with file and line."""
    from training_platform.config.reading.source import UnreadableError  # noqa: PLC0415 # the pack starts without it

    for path in sorted((root / CONFIGS).glob("*.json")):
        try:
            yield from _wrong_config(path, f"{CONFIGS}/{path.name}")
        except UnreadableError as error:
            yield str(error)


def _wrong_config(path: FilePath, file: str) -> Iterator[str]:
    from training_platform.config.reading.source import UnreadableError, read_source  # noqa: PLC0415 # see above

    source = read_source(path, file)  # a reader of YAML knows the line of each key of JSON, too
    try:
        config = json.loads(path.read_bytes())
    except ValueError as error:
        place = f":{error.lineno}:{error.colno}" if isinstance(error, json.JSONDecodeError) else ""
        raise UnreadableError(f"{file}{place}: is not JSON: {error}.") from error
    yield from (finding.one_line for finding in source.findings)
    if not isinstance(config, dict):
        raise UnreadableError(f"{file}:1:1: is not a mapping of policies to levels or settings.")
    for wrong in wrong_settings(config, path.parents[1]):
        finding = source.finding(
            "policy-config", wrong.path, wrong.message, allowed=wrong.allowed, nearest=wrong.nearest
        )
        yield finding.one_line


def wrong_settings(config: Mapping[str, Any], folder: FilePath = FilePath()) -> Iterator[SettingError]:
    """Yield errors in policies, levels and settings, and in a snapshot that cannot be used.

    ``folder`` is the pack's, in which the engine starts it: a snapshot's path is relative to it.
    """
    for policy, setting in config.items():
        known = settings().get(policy, {} if policy == _EVERYWHERE else None)
        if known is None:
            yield _unknown((policy,), policy, f"there is no policy {policy!r}", settings().keys(), most=40)
        elif isinstance(setting, Mapping):
            yield from _wrong_values(policy, setting, known, folder)
        else:
            yield from _wrong_level((policy,), setting)


def _wrong_values(
    policy: str, values: Mapping[str, Any], known: Mapping[str, dict[str, Any]], folder: FilePath
) -> Iterator[SettingError]:
    for name, value in values.items():
        if name == LEVEL:
            yield from _wrong_level((policy, LEVEL), value)
        elif name not in known:
            yield _unknown((policy, name), name, f"{policy} has no setting {name!r}", (*known, LEVEL))
        else:
            wrong = list(_wrong_type((policy, name), value, known[name]))
            yield from wrong or (_wrong_snapshot(value, folder) if name == SNAPSHOT else ())


def _wrong_level(path: Path, value: object) -> Iterator[SettingError]:
    if value not in LEVELS:
        message = f"{value!r} is not an enforcement level"
        yield SettingError(path, message, ", ".join(LEVELS), find_nearest(str(value), LEVELS))


def _wrong_type(path: Path, value: Any, schema: Mapping[str, Any]) -> Iterator[SettingError]:
    types = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
    if not isinstance(value, tuple(_TYPES[name][0] for name in types)):
        yield SettingError(path, f"{value!r} has the wrong type", " or ".join(_TYPES[name][1] for name in types))
    elif "enum" in schema and value not in schema["enum"]:
        yield _unknown(path, str(value), f"{value!r} is not a rule of {path[0]}", schema["enum"], most=40)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _wrong_type((*path, index), item, schema["items"])


def _unknown(path: Path, name: str, message: str, names: Collection[str], most: int = 12) -> SettingError:
    from training_platform.config.reading.section import enumeration  # noqa: PLC0415 # it loads pydantic

    return SettingError(path, message, enumeration(names, most), find_nearest(name, names))


def _wrong_snapshot(setting: str | Mapping[str, Any], folder: FilePath) -> Iterator[SettingError]:
    from training_platform.policy.single_stack import (  # noqa: PLC0415 # it loads the rules
        SnapshotError,
        snapshot_of,
    )

    try:
        snapshot_of(str(folder / setting) if isinstance(setting, str) else setting)
    except SnapshotError as error:
        message = f"{QUOTA}.{SNAPSHOT}: {error}"
        yield SettingError((QUOTA, SNAPSHOT), message, "limits as a file of stacks/quotas/ has them")
