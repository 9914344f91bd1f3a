"""Which findings follow from another: each names its cause and advises nothing, since what mends the cause mends it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice

from training_platform.catalog.nearest import find_nearest
from training_platform.checks.report import Report, ordered
from training_platform.checks.reports.wording import following
from training_platform.config.pools import cluster_pools, flavor_name
from training_platform.config.reading.finding import Finding
from training_platform.config.workspace import Workspace

_POOL = 4  # parts of a path down to a pool: clusters.NAME.node_pools.NAME
_NO_SNAPSHOT = ("quota-no-snapshot", "job-quota-snapshot")
_OF_POOLS = {"pool-zone", "tpu-topology"}  # by which what a pool is charged to, and what its flavor is called, is wrong
_NO_SHARE = re.compile(r"'(?P<flavor>[^']+)' is not a flavor of which team \S+ has a share in (?P<cluster>\S+)$")
_TWICE = re.compile(r"'(?P<name>[^']+)' is also the name of the team at ")
_NO_STACK = re.compile(r"'(?P<name>[^']+)' is not (an environment|a team of (?P<home>[^ ;]+))")


def with_causes(report: Report, workspace: Workspace) -> Report:
    """Return the report in which every finding that follows from another says so."""
    report = _below_failures(report)
    errors = [each for each in report.all_findings() if each.severity == "error"]
    errors = [each for each in errors if next(_causes(each, errors, workspace), None) is None]  # no cause has another

    def settled(findings: Iterable[Finding]) -> tuple[Finding, ...]:
        return tuple(_settled(each, errors, workspace) for each in findings)

    stacks = tuple(replace(stack, findings=settled(stack.findings)) for stack in report.stacks)
    return replace(report, stacks=stacks, findings=settled(report.findings))


def _below_failures(report: Report) -> Report:
    """Return the report in which what follows from a file that cannot be read is a part of the sentence about it."""
    behind = {each: _unread(each, report.failures) for each in report.all_findings()}

    def kept(findings: Iterable[Finding]) -> tuple[Finding, ...]:
        return tuple(each for each in findings if not behind[each])

    stacks = tuple(replace(stack, findings=kept(stack.findings)) for stack in report.stacks)
    more = ((each, [found for found in ordered(behind) if behind[found] == each]) for each in report.failures)
    failures = tuple(f"{each.removesuffix('.')}, {following(found)}." if found else each for each, found in more)
    return replace(report, stacks=stacks, findings=kept(report.findings), failures=failures)


def _unread(finding: Finding, failures: Iterable[str]) -> str | None:
    """Return the sentence about the stack file that cannot be read and that a finding misses, None for any other."""
    missed = _missed_stack(finding)
    return next((each for each in failures if each.startswith(f"stacks/Pulumi.{missed}.yaml:")), None)


def _missed_stack(finding: Finding) -> str | None:
    """Return the stack that a finding does not find, by its name."""
    unknown = _NO_STACK.match(finding.message)
    return "-".join(filter(None, (unknown["home"], unknown["name"]))) if unknown else None


def _settled(finding: Finding, errors: Iterable[Finding], workspace: Workspace) -> Finding:
    cause = next(_causes(finding, errors, workspace), None)
    return replace(finding, follows=cause.place, allowed=None, nearest=None) if cause else finding


def _causes(finding: Finding, errors: Iterable[Finding], workspace: Workspace) -> Iterator[Finding]:
    """Yield the findings that one follows from: of limits, a pool, a flavor's pool, a stack, or a name."""
    if finding.rule in _NO_SNAPSHOT:
        yield from (each for each in errors if each.file and f" {each.file} " in finding.message)
        yield from _said_before(finding, errors)
    elif finding.rule.startswith("quota-"):
        pool = finding.path.split(".")[:_POOL]
        same = (each for each in errors if each.stack == finding.stack and each.rule in _OF_POOLS)
        yield from (each for each in same if each.path.split(".")[:_POOL] == pool)
    elif finding.message == "is missing":
        section, _, field = finding.path.rpartition(".")
        beside = (each for each in errors if each.file == finding.file and each.nearest == field)
        yield from (each for each in beside if each.path.rpartition(".")[0] == section)
    elif finding.rule.endswith("capacity-exceeded"):
        yield from (each for each in errors if _promises_twice(each, finding))
    elif finding.path.startswith("shares."):
        yield from (each for each in errors if each.rule in _OF_POOLS and _is_flavor_of(finding, each, workspace))
    elif share := _NO_SHARE.match(finding.message):
        of_pools = (each for each in errors if each.rule in _OF_POOLS)
        yield from (each for each in of_pools if _is_pool_of(share["flavor"], share["cluster"], each, workspace))
    elif stack := _missed_stack(finding):
        yield from (each for each in errors if each.stack == stack and each.rule.startswith("stack-"))


def _said_before(finding: Finding, errors: Iterable[Finding]) -> Iterator[Finding]:
    """Yield the first finding that a project has no snapshot, of which every stack and job of it has one."""
    said = finding.message.partition(":")[0]
    same = (each for each in errors if each.rule in _NO_SNAPSHOT and each.message.partition(":")[0] == said)
    yield from (each for each in islice(same, 1) if each != finding)


def _promises_twice(cause: Finding, exceeded: Finding) -> bool:
    """Return whether two teams of one name are among those that were promised too much, so that one may be a slip."""
    twice = _TWICE.match(cause.message)
    return bool(twice and len(re.findall(rf"\b{re.escape(twice['name'])}[/ ]", exceeded.message)) > 1)


def _is_flavor_of(share: Finding, cause: Finding, workspace: Workspace) -> bool:
    """Return whether a share's flavor is likest that of the pool that a finding is about."""
    stack = workspace.stacks.get(share.stack or "")
    _, cluster, flavor = share.path.split(".", 2)
    return (
        stack is not None
        and stack.environment_name == cause.stack
        and share.nearest is not None
        and _is_pool_of(flavor, cluster, cause, workspace)
    )


def _is_pool_of(flavor: str, cluster: str, cause: Finding, workspace: Workspace) -> bool:
    """Return whether an unknown flavor is likest that of the pool of the cluster that a finding is about."""
    stack = workspace.stacks.get(cause.stack or "")
    home = stack.environment if stack else None
    if home is None or cluster not in home.clusters:
        return False
    names = {each.path: flavor_name(each) for each in cluster_pools(cluster, home.clusters[cluster])}
    return names.get(tuple(cause.path.split(".")[:_POOL])) == find_nearest(flavor, names.values())
