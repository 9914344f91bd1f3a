"""Which findings follow from another: each names its cause and advises nothing, since what mends the cause mends it."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import replace
from functools import cache
from operator import itemgetter

from training_platform.catalog.nearest import find_nearest
from training_platform.checks.report import Report, ordered
from training_platform.checks.reports.wording import following
from training_platform.config.pools import cluster_pools, flavor_name
from training_platform.config.reading.finding import Finding
from training_platform.config.workspace import Workspace

_NO_SNAPSHOT = ("quota-no-snapshot", "job-quota-snapshot")
# A pool that breaks one of these is charged to another quota than is meant, or its flavor has another name.
_OF_POOLS = {"pool-zone", "tpu-flavor-topology", "tpu-topology"}
_SHARE = re.compile(r"shares\.(?P<cluster>[^.]+)\.(?P<flavor>[^.]+)(?P<field>\..+)?$")
_NO_SHARE = re.compile(
    r"'(?P<flavor>[^']+)' is not a flavor of which team (?P<team>\S+) has a share in (?P<cluster>[^\s:]+)"
)
_NO_CLUSTER = re.compile(r"'(?P<cluster>[^']+)' is not a cluster of \S+ in which team (?P<team>\S+) has a share$")
_SHORT_SHARE = re.compile(r".* of (?P<flavor>\S+) are .*, and team (?P<team>\S+) has ")
_POOL_TWICE = re.compile(r"config\.training-platform:environment\.clusters\.(?P<cluster>[^.]+)\.node_pools\.[^.]+$")
_TWICE = re.compile(r"'(?P<name>[^']+)' is also the name of the team at ")
_PROMISED = re.compile(r"\S+ in (?P<cluster>\S+) of (?P<environment>\S+) is promised ")
_PROMISED_TO = re.compile(
    r"\b(?=([\w-]+)[/ ])"
)  # every word before a slash or a space, and the ends of it after a dash
_STACK_FILE = re.compile(r"stacks/Pulumi\.(?P<stack>.+?)\.yaml:")
_NO_STACK = re.compile(r"'(?P<name>[^']+)' is not (an environment|a team of (?P<home>[^ ;]+))")


def with_causes(report: Report, workspace: Workspace) -> Report:
    """Return the report in which every finding that follows from another says so; linear in its findings."""
    report = _below_failures(report)
    errors = [finding for finding in report.all_findings() if finding.severity == "error"]
    every = _Causes(errors, workspace)  # only a finding that follows from none of them is named as a cause
    roots = _Causes([error for error in errors if not error.follows and every.of(error) is None], workspace)

    def settled(finding: Finding) -> Finding:
        cause = roots.of(finding)
        return replace(finding, follows=cause.place, allowed=None, nearest=None) if cause else finding

    stacks = tuple(replace(stack, findings=tuple(map(settled, stack.findings))) for stack in report.stacks)
    return replace(report, stacks=stacks, findings=tuple(map(settled, report.findings)))


def _below_failures(report: Report) -> Report:
    """Return the report in which what follows from a file that cannot be read is a part of the sentence about it."""
    unread: dict[str, str] = {}
    for failure in report.failures:
        if file := _STACK_FILE.match(failure):
            unread.setdefault(file["stack"], failure)
    behind: dict[str, list[Finding]] = {}
    for finding in ordered(report.all_findings()):
        if sentence := unread.get(_missed_stack(finding) or ""):
            behind.setdefault(sentence, []).append(finding)
    dropped = {finding for findings in behind.values() for finding in findings}

    def others(findings: Iterable[Finding]) -> tuple[Finding, ...]:
        return tuple(finding for finding in findings if finding not in dropped)

    stacks = tuple(replace(stack, findings=others(stack.findings)) for stack in report.stacks)
    failures = tuple(
        f"{failure.removesuffix('.')}, {following(behind[failure])}." if failure in behind else failure
        for failure in report.failures
    )
    return replace(report, stacks=stacks, findings=others(report.findings), failures=failures)


def _missed_stack(finding: Finding) -> str | None:
    """Return the name of the stack that a finding does not find."""
    unknown = _NO_STACK.match(finding.message)
    return "-".join(filter(None, (unknown["home"], unknown["name"]))) if unknown else None


class _Causes:
    """Errors by what the findings that follow from them have in common with them.

    Of several causes of a finding the first counts, so each table has the first error of its key, with its number.
    """

    def __init__(self, errors: Iterable[Finding], workspace: Workspace) -> None:
        self._workspace = workspace
        self._tables: dict[str, dict[Hashable, tuple[int, Finding]]] = defaultdict(dict)
        for number, error in enumerate(errors):
            for table, key in (*_keys(error), *self._shares(error)):
                self._tables[table].setdefault(key, (number, error))
        self._pools = cache(self._pools_of_flavors)

    def of(self, finding: Finding) -> Finding | None:
        """Return the error that a finding follows from: of limits, a pool, a flavor's pool, a stack, or a name."""
        if finding.rule in _NO_SNAPSHOT:
            named = self._first("file", finding.message.split(" ")[1:-1])
            same = self._first("snapshot", [finding.message.partition(":")[0]])
            return named or (same if same != finding else None)
        if finding.rule.startswith("quota-"):
            return self._first("pool", [(finding.stack, _pool(finding.path))])
        if finding.message == "is missing":
            return self._first("misspelt", [(finding.file, *finding.path.rpartition(".")[::2])])
        if finding.rule.endswith("capacity-exceeded"):
            names = Counter(_PROMISED_TO.findall(finding.message))
            line = _PROMISED.match(finding.message)
            return self._first("twice", [name for name, count in names.items() if count > 1]) or (
                self._first("pools", [(line["environment"], line["cluster"])]) if line else None
            )
        if share := _SHARE.match(finding.path):
            stack = self._workspace.stacks.get(finding.stack or "")
            if stack is None or share["field"]:  # of a flavor that is there
                return None
            cluster, flavor = share["cluster"], share["flavor"]
            likest = self._pools(stack.environment_name, cluster, flavor) if finding.nearest else []
            return self._first("pool", likest) or self._first("pools", [(stack.environment_name, cluster)])
        if share := _NO_SHARE.match(finding.message):
            homes = [home.name for home, _ in self._workspace.environments()]
            pools = [key for home in homes for key in self._pools(home, share["cluster"], share["flavor"])]
            return (
                self._first("pool", pools)
                or self._first("share", [(share["team"], share["flavor"])])
                or self._first("pools", [(home, share["cluster"]) for home in homes])
            )
        if share := _NO_CLUSTER.match(finding.message):
            return self._first("share", [(share["team"], share["cluster"])])
        if finding.rule == "job-fits-share" and (share := _SHORT_SHARE.match(finding.message)):
            return self._first("share", [(share["team"], share["flavor"])])
        missed = _missed_stack(finding)
        return self._first("stack", [missed]) if missed else None

    def _shares(self, error: Finding) -> Iterator[tuple[str, Hashable]]:
        """Yield the table and key of an error about a team's share, by the flavor or cluster that is meant."""
        stack = self._workspace.stacks.get(error.stack or "")
        team = (stack.team or stack.rest) if stack else None
        if team and error.path.startswith("shares."):
            share = _SHARE.match(error.path)
            yield "share", (team.name, share["flavor"] if share and share["field"] else error.nearest)

    def _first(self, table: str, keys: Iterable[Hashable]) -> Finding | None:
        numbered = [self._tables[table][key] for key in keys if key in self._tables[table]]
        return min(numbered, key=itemgetter(0))[1] if numbered else None

    def _pools_of_flavors(self, environment: str, cluster: str, flavor: str) -> list[Hashable]:
        """Return the keys of the pools of the flavor that an unknown one is likest."""
        stack = self._workspace.stacks.get(environment)
        home = stack.environment if stack else None
        if home is None or cluster not in home.clusters:
            return []
        names = {pool.path: flavor_name(pool) for pool in cluster_pools(cluster, home.clusters[cluster])}
        nearest = find_nearest(flavor, names.values())
        return [(environment, path) for path, name in names.items() if name == nearest]


def _keys(error: Finding) -> Iterator[tuple[str, Hashable]]:
    """Yield by which tables an error is looked up, and its key in each."""
    if error.file:
        yield "file", error.file
    if error.rule in _NO_SNAPSHOT:
        yield "snapshot", error.message.partition(":")[0]
    if error.rule in _OF_POOLS:
        yield "pool", (error.stack, _pool(error.path))
    if error.nearest:
        yield "misspelt", (error.file, error.path.rpartition(".")[0], error.nearest)
    if twice := _POOL_TWICE.match(error.path):
        yield "pools", (_stack_of(error.file), twice["cluster"])
    if twice := _TWICE.match(error.message):
        yield "twice", twice["name"]
    if error.rule.startswith("stack-"):
        yield "stack", error.stack


def _stack_of(file: str | None) -> str | None:
    """Return the stack of a file, which what is wrong with its YAML does not name."""
    stack = _STACK_FILE.match(f"{file}:")
    return stack["stack"] if stack else None


def _pool(path: str) -> tuple[str, ...]:
    """Return the path down to a pool: clusters.NAME.node_pools.NAME."""
    return tuple(path.split(".")[:4])
