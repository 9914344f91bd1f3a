"""Findings of changes that replace capacity or data, or remove protected resources."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from training_platform.catalog import CHARTS, REGIONS
from training_platform.checks.comparison.comparison import Comparison, InputChange, Kind, ResourceChange, StackChange
from training_platform.checks.comparison.refusals import kept_instances, placed_flavors, removals
from training_platform.checks.outcome import leaves
from training_platform.config.model.environment import Environment
from training_platform.config.model.stack import Stack
from training_platform.config.model.team import Team
from training_platform.config.names import Locator, sections
from training_platform.config.reading.finding import Finding, Path, dotted
from training_platform.config.reading.section import enumeration, listed
from training_platform.config.reading.source import value_at
from training_platform.config.workspace import Workspace
from training_platform.resources.gke import is_frozen
from training_platform.resources.resource_types import (
    CLUSTER,
    QUOTA_PREFERENCE,
    RELEASE,
    RESOURCE_TYPES,
    general_path,
    recreating_inputs,
)

GUARDED = {token: row for token, row in RESOURCE_TYPES.items() if row.loses}
"""Resource types whose replacement loses data, running jobs, or capacity that may not be available again."""
LIFT = "deletion_protection: false"
_LIMIT_OF_REQUEST = ("service", "quotaId", "dimensions")
_MOST = 3  # inputs and resources that a finding names; the list of changes has all
_STEPS = "the steps of docs/upgrade.md"
_VERSIONS = {RELEASE: "version", CLUSTER: "minMasterVersion"}


def guard(comparison: Comparison, head: Workspace, base: Workspace) -> Iterator[Finding]:
    """Yield a finding for every section that the change replaces, removes against its protection, or leaves unguarded.

    An environment without protection has lifted the guard for all: there a replacement is a warning.
    """
    for change in comparison.stacks:
        new, old = _side(head, change.name), _side(base, change.was or change.name)
        if new is None or change.unknown:
            continue
        yield from _replaced(change, new, old)
        yield from _recreated(change, new, old)
        yield from _removed(change, new, old)
        yield from _moved(change, new)
        if old is not None and new.protects:
            yield from _left_off(change, new, old)
    yield from upgrades(comparison, head)
    yield from removals(head, base)
    yield from placed_flavors(head, base)
    yield from kept_instances(head, base)


class _Side(NamedTuple):
    """A stack on one side, and whether its environment protects."""

    stack: Stack
    protects: bool


def _side(workspace: Workspace, name: str) -> _Side | None:
    stack = workspace.stacks.get(name)
    home = workspace.environment_of(stack) if stack else None
    return _Side(stack, home.deletion_protection) if stack and stack.section and home else None


def _replaced(change: StackChange, new: _Side, old: _Side | None) -> Iterator[Finding]:
    for path, resources in _by_section(change, new.stack, "replaced").items():
        if new.protects and _lifted(new.stack, path):
            continue
        row = GUARDED[resources[0].type]
        inputs = {change.path: change for resource in resources for change in resource.forcing}
        count = f"{len(resources)} {row.kind}s" if len(resources) > 1 else f"the {row.kind} {resources[0].name}"
        yield new.stack.finding(
            "replacement", field_of(next(iter(inputs.values())), path, new.stack, old.stack if old else None),
            f"replaces {count}: {listed([_words(change) for change in inputs.values()], _MOST)}; {row.loses}",
            severity="error" if new.protects else "warning",
            resource=f"{resources[0].type} {resources[0].name}",
            allowed=f"{LIFT} in {dotted(path)}, if that is meant" if new.protects else "a replacement that is meant",
        )  # fmt: skip


def _recreated(change: StackChange, new: _Side, old: _Side | None) -> Iterator[Finding]:
    """Find pools that stay while GKE makes their VMs anew, which the provider calls a change in place."""
    for path, resources in _by_section(change, new.stack, "changed").items():
        anew = [
            change
            for resource in resources
            for change in resource.inputs
            if general_path(change.path) in recreating_inputs(resource.type)
        ]
        if anew:
            words = listed(list(dict.fromkeys(map(_words, anew))), _MOST)
            yield new.stack.finding(
                "recreated-nodes", field_of(anew[0], path, new.stack, old.stack if old else None),
                f"GKE makes the VMs of the pool anew, one after another: {words}; the jobs on them end",
                severity="warning", allowed="a change that is meant, after the pool's jobs",
            )  # fmt: skip


def _by_section(change: StackChange, stack: Stack, kind: Kind) -> dict[Path, list[ResourceChange]]:
    """Return the changed resources of guarded sections, of one kind of change, by section."""
    sections: dict[Path, list[ResourceChange]] = {}
    for resource in change.resources:
        if resource.kind == kind and (path := _guarded(stack, resource)) is not None:
            sections.setdefault(path, []).append(resource)
    return sections


def _removed(change: StackChange, new: _Side, old: _Side | None) -> Iterator[Finding]:
    """Find resources that the engine will refuse to delete until a deployment has lifted their protection."""
    gone = [resource for resource in change.resources if resource.kind == "removed" and resource.protected]
    if not gone:
        return
    section = old.stack.section if old else None
    path = Locator(section).path(gone[0].name) if section else ()
    names = listed([resource.name for resource in gone], _MOST)
    yield new.stack.finding(
        "protected-removal", path,
        f"removes {names}, which the engine refuses while the deployed stack protects it",
        severity="warning",
        resource=f"{gone[0].type} {gone[0].name}",
        allowed=f"a deployment with {LIFT} before this change",
    )  # fmt: skip


def _moved(change: StackChange, new: _Side) -> Iterator[Finding]:
    """Find a request that is to be one for another limit: Google takes a new amount for it, and nothing else.

    Source: Cloud Quotas API v1 protos, QuotaPreference, where dimensions are immutable, and the gcp provider, which
    sends the change as an update; read 2026-11-21. That service and quota id are so too is inferred.
    """
    assert new.stack.section is not None
    for resource in change.resources:
        moved = [change for change in resource.inputs if change.path.startswith(_LIMIT_OF_REQUEST)]
        if resource.type == QUOTA_PREFERENCE and resource.kind == "changed" and moved:
            path = Locator(new.stack.section).path(resource.name) or ()
            yield new.stack.finding(
                "quota-request-moved", path,
                f"is to ask for another limit: {', '.join(map(_words, moved))}; Google changes the amount alone",
                resource=f"{resource.type} {resource.name}", allowed="another name for the request",
            )  # fmt: skip


def _left_off(change: StackChange, new: _Side, old: _Side) -> Iterator[Finding]:
    """Find a guard that was lifted before this change, which needs it no more."""
    assert old.stack.section is not None
    needed = {
        path
        for stack in (new.stack, old.stack)
        for resource in change.resources
        if resource.kind in ("replaced", "removed") and (path := _guarded(stack, resource)) is not None
    }
    for path in _sections(new.stack.section):
        if _lifted(new.stack, path) and _lifted(old.stack, path) and path not in needed:
            yield new.stack.finding(
                "protection-left-off", (*path, "deletion_protection"), "is false, and nothing in this change needs it",
                severity="warning", allowed="true, once it is deployed", nearest="true",
            )  # fmt: skip


def _sections(section: Environment | Team | None) -> Iterator[Path]:
    """Yield the paths of every section that the guard is about."""
    if isinstance(section, Environment):
        for name, cluster in section.clusters.items():
            yield ("clusters", name)
            yield from (("clusters", name, "node_pools", pool) for pool in cluster.node_pools)
        yield from (("filestore", name) for name in section.filestore)
        yield from (("lustre", name) for name in section.lustre)
    elif section:
        yield from (("vertex", "persistent_resources", name) for name in section.vertex.persistent_resources)


def _guarded(stack: Stack, resource: ResourceChange) -> Path | None:
    """Return the guarded section that a resource belongs to; a system pool, which only takes time, is in none."""
    if resource.type not in GUARDED or stack.section is None:
        return None
    path = Locator(stack.section).path(resource.name)
    return path if path in set(_sections(stack.section)) else None


def _lifted(stack: Stack, path: Path) -> bool:
    value: Any = stack.section
    for part in path:
        value = value.get(part) if isinstance(value, dict) else getattr(value, str(part), None)
    return value is not None and not value.deletion_protection


def _words(change: InputChange) -> str:
    old, new = (
        "nothing" if value is None else json.dumps(value, ensure_ascii=False) for value in (change.old, change.new)
    )
    return f"{change.path} from {old} to {new}"


def field_of(change: InputChange, section: Path, new: Stack, old: Stack | None) -> Path:
    """Return the changed field of a section that causes a change of an input.

    Of several fields it is the one whose value is in the input, before or after. Where that decides nothing, the code
    may have changed and not the file: then the section itself is returned.
    """
    if old is None:
        return section
    changed = dict(_changed_fields(section, new, old))
    if len(changed) == 1:
        return next(iter(changed))
    inputs = {_text(value) for value in (change.old, change.new)} - {""}
    fitting = [path for path, values in changed.items() if inputs & values]
    return fitting[0] if fitting else section


def _changed_fields(section: Path, new: Stack, old: Stack) -> Iterator[tuple[Path, set[str]]]:
    """Yield the fields of a section that differ, each with its two values; sections inside it are left out."""
    was, now = (
        leaves(value) if isinstance(value := value_at(stack.source.value, (*stack.below, *section)), dict) else {}
        for stack in (old, new)
    )
    inner = {path for _, path in sections(new.section) if path[: len(section)] == section} if new.section else set()
    for name in {**now, **was}:
        path = (*section, *name.split("."))
        if was.get(name) == now.get(name) or any(path[: len(other)] == other != section for other in inner):
            continue
        yield path, {_text(was.get(name)), _text(now.get(name))}


def _text(value: Any) -> str:
    """Return a value as it may stand in a file and in an input alike: a list of one as the one."""
    if isinstance(value, list):
        return _text(value[0]) if len(value) == 1 else ",".join(map(_text, value))
    return "" if value is None else str(value)


def upgrades(comparison: Comparison, head: Workspace) -> Iterator[Finding]:
    """Yield a warning for each chart of an environment that gets another version, and for each such cluster."""
    for change in comparison.stacks:
        stack = head.stacks.get(change.name)
        if stack and stack.environment:
            yield from _of_charts(change, stack, stack.environment, head)
            yield from _of_clusters(change, stack, stack.environment)


def _of_charts(change: StackChange, stack: Stack, environment: Environment, head: Workspace) -> Iterator[Finding]:
    upgraded: dict[tuple[str, InputChange], list[str]] = {}
    for resource, version in _other_versions(change, RELEASE):
        cluster, chart = resource.name.removesuffix("-release").rpartition("-")[::2]
        upgraded.setdefault((chart, version), []).append(cluster)
    for (chart, version), clusters in upgraded.items():
        message = f"takes {chart} from {version.old} to {version.new} in {enumeration(clusters)}"
        if (row := CHARTS.get(chart)) and row.upgrade:
            message += f": {row.upgrade}"
        if chart == "kueue":
            teams = [team for _, team, _ in head.teams() if team.environment == stack.name]
            queues = {team.name: len(team.shares.keys() & {*clusters}) for team in teams}
            if holders := [team for team, count in queues.items() if count]:
                message += f"; {sum(queues.values())} ClusterQueues are there, of {enumeration(holders)}"
        path = ("charts", chart, "version") if chart in environment.charts else ()
        yield stack.finding("upgrade", path, message, severity="warning", allowed=_STEPS)


def _of_clusters(change: StackChange, stack: Stack, environment: Environment) -> Iterator[Finding]:
    for resource, version in _other_versions(change, CLUSTER):
        path = Locator(environment).path(resource.name) or ()
        cluster = environment.clusters[str(path[-1])]
        api = "its API does not answer for minutes"
        if cluster.location in REGIONS:
            api = "its API answers all the time"
        nodes = "nodes follow, VM by VM, and the jobs on them end"
        if is_frozen(cluster):
            nodes = "nodes stay until their support ends"
        yield stack.finding(
            "upgrade",
            (*path, "version"),
            f"takes the control plane of {path[-1]} from {version.old} to {version.new}, never back: {api}; {nodes}",
            severity="warning",
            allowed=_STEPS,
        )


def _other_versions(change: StackChange, kind: str) -> Iterator[tuple[ResourceChange, InputChange]]:
    """Yield the resources that get another version in place."""
    for resource in change.resources:
        for version in resource.inputs:
            if resource.type == kind and resource.kind == "changed" and version.path == _VERSIONS[kind]:
                yield resource, version
