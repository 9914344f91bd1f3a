"""Finds new versions of charts and clusters, with their effects, and quota requests that are moved to another quota."""

from __future__ import annotations

import re
from collections.abc import Iterator

from training_platform.catalog import CHARTS, REGIONS, RELEASES
from training_platform.checks.change_report import VERSION_INPUTS, Comparison, InputChange, ResourceChange, StackChange
from training_platform.config.model.environment import Environment
from training_platform.config.model.stack import Stack
from training_platform.config.names import Locator
from training_platform.config.reading.declaration import Draft, declare, finding
from training_platform.config.reading.section import enumeration
from training_platform.config.workspace import Workspace
from training_platform.resources.gke import is_frozen
from training_platform.resources.resource_types import CLUSTER, QUOTA_PREFERENCE, RELEASE

_LIMIT_OF_REQUEST = ("service", "quotaId", "dimensions")
_STEPS = "the steps of docs/upgrade.md"
_NUMBER = re.compile(r"\d+")


def upgrades(comparison: Comparison, head: Workspace) -> Iterator[Draft]:
    """Yield a warning for each chart and cluster of an environment whose version changes."""
    for change in comparison.stacks:
        stack = change.head
        if stack and stack.environment:
            yield from _of_charts(change, stack, stack.environment, head)
            yield from _of_clusters(change, stack, stack.environment)


UPGRADE = declare(
    "upgrade",
    "Find a new version of a chart or a cluster, and report what the upgrade affects.",
    ruleset="changes",
    severity="warning",
)


def _of_charts(change: StackChange, stack: Stack, environment: Environment, head: Workspace) -> Iterator[Draft]:
    upgraded: dict[tuple[str, InputChange], list[str]] = {}
    for resource, version in _other_versions(change, RELEASE):
        cluster, chart = resource.name.removesuffix("-release").rpartition("-")[::2]
        upgraded.setdefault((chart, version), []).append(cluster)
    for (chart, version), clusters in upgraded.items():
        message = f"upgrades {chart}{_from(version)} to {version.new} in {enumeration(clusters)}"
        if (row := CHARTS.get(chart)) and row.upgrade:
            message += f": {row.upgrade}"
        message += "".join(f"; {removal}" for removal in _removals(chart, version))
        if chart == "kueue":
            teams = [team for _, team, _ in head.teams() if team.environment == stack.name]
            queues = {team.name: len(team.shares.keys() & {*clusters}) for team in teams}
            if holders := [team for team, count in queues.items() if count]:
                message += f"; ClusterQueues that exist: {sum(queues.values())}, of {enumeration(holders)}"
        path = ("charts", chart, "version") if chart in environment.charts else ()
        yield finding(stack, path, message, rule=UPGRADE, allowed=_STEPS)


def _of_clusters(change: StackChange, stack: Stack, environment: Environment) -> Iterator[Draft]:
    for resource, version in _other_versions(change, CLUSTER):
        path = Locator(environment).path(resource.name) or ()
        cluster = environment.clusters[str(path[-1])]
        api = "its API is unavailable for minutes"
        if cluster.location in REGIONS:
            api = "its API stays available"
        nodes = "GKE then upgrades the nodes one VM after another, and the jobs on them end"
        if is_frozen(cluster):
            nodes = "nodes keep their version until its support ends"
        yield finding(
            stack,
            (*path, "version"),
            f"upgrades the control plane of {path[-1]}{_from(version)} to {version.new}, which cannot be undone: "
            f"{api}; {nodes}",
            rule=UPGRADE,
            allowed=_STEPS,
        )


def _from(version: InputChange) -> str:
    """Return the previous version as part of a sentence; empty if the file named none, so that GKE chose one."""
    return f" from {version.old}" if version.old else ""


def _removals(chart: str, version: InputChange) -> Iterator[str]:
    """Yield what the minor versions of a chart no longer have, for each that an upgrade passes or reaches."""
    old = _minor(str(version.old))
    new = _minor(str(version.new))
    for release in RELEASES.values():
        if release.chart == chart and release.removes and old < _minor(release.minor) <= new:
            yield f"{release.minor} {release.removes}"


def _minor(version: str) -> tuple[int, ...]:
    """Return the first two numbers of a version. Without numbers, the empty tuple sorts before any version."""
    return tuple(map(int, _NUMBER.findall(version)[:2]))


def _other_versions(change: StackChange, kind: str) -> Iterator[tuple[ResourceChange, InputChange]]:
    """Yield the resources whose version changes in place."""
    for resource in change.resources:
        for version in resource.inputs:
            if resource.type == kind and resource.kind == "changed" and version.path == VERSION_INPUTS[kind]:
                yield resource, version


QUOTA_REQUEST_MOVED = declare(
    "quota-request-moved",
    "Find a quota request that changes to another limit.",
    ruleset="changes",
)


def moved_requests(comparison: Comparison) -> Iterator[Draft]:
    """Yield a finding for each quota request that changes more than its amount, which is all that Google allows.

    Source: Cloud Quotas API v1 protos, QuotaPreference, where dimensions are immutable, and the gcp provider, which
    sends the change as an update; read 2026-11-21. It is inferred that the service and the quota id are immutable as
    well.
    """
    for change in comparison.stacks:
        stack = change.head
        if stack is None or stack.section is None:
            continue
        for resource in change.resources:
            moved = [change for change in resource.inputs if change.path.startswith(_LIMIT_OF_REQUEST)]
            if resource.type == QUOTA_PREFERENCE and resource.kind == "changed" and moved:
                limits = ", ".join(map(str, moved))
                yield finding(
                    stack,
                    Locator(stack.section).path(resource.name),
                    f"requests another limit: {limits}; Google Cloud can change only the amount of a request",
                    rule=QUOTA_REQUEST_MOVED,
                    resource=f"{resource.type} {resource.name}",
                    allowed="a new request under another name",
                )
