"""Other versions of charts and clusters in a change: what each touches, beside what is planned of it."""

from __future__ import annotations

from collections.abc import Iterator

from training_platform.catalog import CHARTS, REGIONS
from training_platform.checks.comparison.comparison import Comparison, InputChange, ResourceChange, StackChange
from training_platform.config.model.environment import Environment
from training_platform.config.model.stack import Stack
from training_platform.config.names import Locator
from training_platform.config.reading.finding import Finding
from training_platform.config.reading.section import enumeration
from training_platform.config.workspace import Workspace
from training_platform.resources.gke.cluster import is_frozen
from training_platform.resources.register import CLUSTER, RELEASE

RULE = "upgrade"
_STEPS = "the steps of docs/upgrade.md"
_VERSIONS = {RELEASE: "version", CLUSTER: "minMasterVersion"}


def upgrades(comparison: Comparison, head: Workspace) -> Iterator[Finding]:
    """Yield a warning for each chart of an environment that gets another version, and for each such cluster."""
    for change in comparison.stacks:
        stack = head.stacks.get(change.name)
        if stack and stack.environment:
            yield from _of_charts(change, stack, stack.environment, head)
            yield from _of_clusters(change, stack, stack.environment)


def _of_charts(change: StackChange, stack: Stack, environment: Environment, head: Workspace) -> Iterator[Finding]:
    found: dict[tuple[str, InputChange], list[str]] = {}
    for resource, version in _changed(change, RELEASE):
        cluster, chart = resource.name.removesuffix("-release").rpartition("-")[::2]
        found.setdefault((chart, version), []).append(cluster)
    for (chart, version), clusters in found.items():
        row = CHARTS.get(chart)
        touched = f": {row.upgrade}" if row and row.upgrade else ""
        yield stack.finding(
            RULE,
            ("charts", chart, "version") if chart in environment.charts else (),
            f"takes {chart} from {version.old} to {version.new} in {enumeration(clusters)}{touched}"
            f"{_queues(stack.name, clusters, head) if chart == 'kueue' else ''}",
            severity="warning",
            allowed=_STEPS,
        )


def _queues(environment: str, clusters: list[str], head: Workspace) -> str:
    """Say whose queues are in clusters."""
    teams = [team for _, team, _ in head.teams() if team.environment == environment]
    counts = {team.name: len(team.shares.keys() & {*clusters}) for team in teams}
    holders = [team for team, count in counts.items() if count]
    return f"; {sum(counts.values())} ClusterQueues are there, of {enumeration(holders)}" if holders else ""


def _of_clusters(change: StackChange, stack: Stack, environment: Environment) -> Iterator[Finding]:
    for resource, version in _changed(change, CLUSTER):
        path = Locator(environment).path(resource.name) or ()
        cluster = environment.clusters[str(path[-1])]
        regional = cluster.location in REGIONS
        api = "its API answers all the time" if regional else "its API does not answer for minutes"
        stay, follow = "nodes stay until their support ends", "nodes follow, VM by VM, and the jobs on them end"
        nodes = stay if is_frozen(cluster) else follow
        yield stack.finding(
            RULE,
            (*path, "version"),
            f"takes the control plane of {path[-1]} from {version.old} to {version.new}, never back: {api}; {nodes}",
            severity="warning",
            allowed=_STEPS,
        )


def _changed(change: StackChange, kind: str) -> Iterator[tuple[ResourceChange, InputChange]]:
    """Yield what stays and gets another version."""
    for resource in change.resources:
        for each in resource.inputs:
            if resource.type == kind and resource.kind == "changed" and each.path == _VERSIONS[kind]:
                yield resource, each
