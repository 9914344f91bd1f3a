"""What one provider resource was configured with, and what a change of it means.

Source of the rules: pulumi/pulumi-kubernetes 9497796 provider/pkg/provider/provider.go, read 2026-11-21.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

import yaml

from training_platform.checks.planning.wire import readable
from training_platform.resources.planned import UNKNOWN
from training_platform.sandbox.kubernetes.changes import changes
from training_platform.sandbox.kubernetes.values import Json, dig

_CLUSTER: Final = ("kubeconfig", "context", "cluster")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """A configured provider; ``cluster`` says which cluster's objects it sees."""

    cluster: str
    default_namespace: str = "default"
    forces_namespace: bool = False  # the provider names a namespace, so inputs without one are given it
    secret_mutable: bool = False
    config_map_mutable: bool = False


def configured(urn: str, args: Json) -> Settings:
    """Read the arguments of ``Configure``.

    A cluster is known by ``clusterIdentifier``, else by the server that the kubeconfig points to, so that several
    stacks see one cluster; without either it is the provider's own.
    """
    given = readable(args)
    namespace = given.get("namespace")
    active = _active_cluster(given)
    server = active.get("server") if isinstance(active, dict) else None
    return Settings(
        cluster=given.get("clusterIdentifier") or server or urn,
        default_namespace=namespace or "default",
        forces_namespace=bool(namespace),
        secret_mutable=_true(given.get("enableSecretMutable")),
        config_map_mutable=_true(given.get("enableConfigMapMutable")),
    )


def refused_settings(args: Json) -> list[tuple[str, str]]:
    """Property and reason of settings that the provider refuses, or that this stand-in does not have."""
    given = readable(args)
    if not given.get("renderYamlToDirectory"):
        return []
    clash = [name for name in _CLUSTER if given.get(name)]
    found = [(name, f'"{name}" arg is not compatible with "renderYamlToDirectory" arg') for name in clash]
    return found or [("renderYamlToDirectory", "the stand-in provider renders no YAML")]


def changed_settings(old: Json, new: Json) -> tuple[list[str], list[str]]:
    """Changed properties, and those of them that replace the provider and with it all of its resources.

    With an unchanged ``clusterIdentifier`` nothing does; a changed one does; without, another active cluster in the
    kubeconfig does, and so does a kubeconfig that is not known yet.
    """
    before, after = readable(old), readable(new)
    changed = sorted({str(change.path[0]) for change in changes(before, after)})
    old_id, new_id = before.get("clusterIdentifier"), after.get("clusterIdentifier")
    if old_id and new_id:
        return changed, ["clusterIdentifier"] if old_id != new_id else []
    unknown = [name for name in _CLUSTER if after.get(name) is UNKNOWN]
    if unknown:
        return changed, unknown[:1]
    old_cluster, new_cluster = _active_cluster(before), _active_cluster(after)
    if old_cluster is None or new_cluster is None or old_cluster == new_cluster:
        return changed, []
    return changed, [name for name in _CLUSTER if name in changed]


def _active_cluster(given: Json) -> Any:
    """The cluster entry that a kubeconfig, as text or as a map, points to; ``None`` where it names none."""
    config = given.get("kubeconfig")
    if isinstance(config, str):
        try:
            config = yaml.safe_load(config)
        except yaml.YAMLError:
            return None
    if not isinstance(config, dict):
        return None
    context = _named(config, "contexts", given.get("context") or config.get("current-context"), "context")
    return _named(config, "clusters", given.get("cluster") or dig(context, "cluster"), "cluster")


def _named(config: Json, section: str, name: Any, field: str) -> Any:
    entries = config.get(section)
    found = entries if isinstance(entries, list) else []
    return next((dig(entry, field) for entry in found if dig(entry, "name") == name), None)


def _true(value: Any) -> bool:
    """SDKs send a provider's booleans as JSON text."""
    return value is True or (isinstance(value, str) and json.loads(value or "false") is True)
