"""What the pack's config may say, policy by policy, and what is wrong with a config.

The engine checks the types of settings that a policy has, and passes over names that it has not: those are found here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from pulumi_policy import Policy, PolicyConfigSchema

from modules.catalog.nearest import find_nearest
from modules.config.section import enumeration
from modules.rules import PRODUCTION
from policies.alone import SnapshotError, given_snapshot

ADVISORY_RULES = "advisoryRules"
PRODUCTION_ENVIRONMENTS = "productionEnvironments"
SNAPSHOT = "snapshot"

_OF_POLICIES: Mapping[str, dict[str, dict[str, Any]]] = {
    "labels": {
        "environment": {"type": "string", "description": "The environment of a program that has no stack file."},
        "team": {"type": "string", "description": "The team of a program that has no stack file."},
    },
    "protection": {
        PRODUCTION_ENVIRONMENTS: {
            "type": "array",
            "items": {"type": "string"},
            "default": list(PRODUCTION),
            "description": "Environments in which nothing that holds data or jobs may be deleted by one command.",
        }
    },
    "quota": {
        SNAPSHOT: {
            "type": ["string", "object"],
            "description": "Limits of the project for a program that has no stack file: what a file of stacks/quotas/ "
            "holds, or the path of one from the pack's folder.",
        }
    },
}
_EVERYWHERE = "all"  # not a policy: its enforcement level is that of all policies
_NO_POLICIES = frozenset({_EVERYWHERE})


def schema(policy: str, rules: Iterable[str]) -> PolicyConfigSchema:
    """Return the settings of a policy; every policy takes the names of rules that shall only advise."""
    advisory = {
        "type": "array",
        "items": {"type": "string", "enum": sorted(rules)},
        "description": "Rules of this policy that advise and never stop a deployment.",
    }
    return PolicyConfigSchema(properties={ADVISORY_RULES: advisory, **_OF_POLICIES.get(policy, {})})


def wrong_settings(policies: Iterable[Policy], config: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return a sentence for each policy and setting that the pack has not, and for a snapshot that cannot be used."""
    known = {each.name: tuple(each.config_schema.properties) if each.config_schema else () for each in policies}
    found: list[str] = []
    for policy, settings in config.items():
        if policy not in known.keys() | _NO_POLICIES:
            found.append(f"there is no policy {policy!r}.{_hint(policy, known)}")
        else:
            found += _wrong_names(policy, settings, known.get(policy, ()))
    if SNAPSHOT in config.get("quota", {}):
        try:
            given_snapshot(config["quota"][SNAPSHOT])
        except SnapshotError as error:
            found.append(f"quota.{SNAPSHOT}: {error}")
    return found


def _wrong_names(policy: str, settings: Mapping[str, Any], known: Collection[str]) -> Iterator[str]:
    for name in settings:
        if name not in known:
            yield f"{policy} has no setting {name!r}.{_hint(name, (*known, 'enforcementLevel'))}"


def _hint(name: str, allowed: Collection[str]) -> str:
    nearest = find_nearest(name, allowed)
    return f" Allowed: {enumeration(allowed, most=40)}." + (f" Nearest: {nearest}" if nearest else "")
