"""The chip-hours of teams' queues in each month, and the budgets of teams: ``stacks/usage/<environment>.yaml``.

Kueue exports a metric of the resources that a queue uses, and managed Prometheus stores it. The chip-hours are its sum
over the month. A run therefore counts from its admission to its end, even if it has been deleted since. Model servers
and notebooks in a queue count as well; jobs on Vertex AI are in no queue. A new reading replaces the month's previous
values in the file, so nothing is lost if one night is skipped. Months are in UTC.

Sources: Kueue v0.19.2, pkg/metrics/metrics.go, cluster_queue_resource_usage; Google Cloud Managed Service for
Prometheus keeps samples for 24 months (docs, unverified here); PromQL's subqueries.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path as FilePath
from typing import Annotated, NamedTuple

from pydantic import AwareDatetime, Field

from training_platform.config.model.environment import Environment
from training_platform.config.model.stack import Stack
from training_platform.config.model.team import Team
from training_platform.config.reading.declaration import Draft, declare, finding, located
from training_platform.config.reading.editing import difference, with_entry, without_entry
from training_platform.config.reading.finding import Finding, UserError, others_go_on
from training_platform.config.reading.rejection import validated
from training_platform.config.reading.section import Name, Section, form
from training_platform.config.reading.source import Source, UnreadableError, parse_source, read_source
from training_platform.config.workspace import Workspace
from training_platform.resources.gke import cluster_name
from training_platform.resources.scope import environment_scope

FOLDER = "stacks/usage"
COMMAND = "training-platform job usage"
WARNED_AT = 0.8  # of a budget
FRESH_DAYS = 3  # the age of a ledger after a weekend
ACCELERATORS = ("nvidia.com/gpu", "google.com/tpu")
STEP_MINUTES = 5  # between two samples, each of which counts for this long
DISPUTED = (0.02, 10.0)  # part of a queue's monthly chip-hours, and chip-hours: a new leader explains less

Hours = dict[str, dict[str, dict[str, float]]]  # chip-hours by team, cluster and flavor
Month = Annotated[str, form(r"[0-9]{4}-(0[1-9]|1[0-2])", "a month", "YYYY-MM, such as 2026-11")]


class UsageFile(Section):
    """The content of a usage file."""

    read: AwareDatetime = Field(description="Time of the last reading.")
    months: dict[Month, dict[Name, dict[Name, dict[str, Annotated[float, Field(ge=0)]]]]] = Field(
        description="Chip-hours by month, team, cluster and flavor."
    )


@dataclass(frozen=True)
class Usages:
    """The usage of a repository's environments, keyed by environment. It is None if the usage file is invalid.

    ``findings`` and ``unreadable`` say why a file is invalid.
    """

    files: Mapping[str, UsageFile | None] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    unreadable: tuple[str, ...] = ()

    def hours(self, team: Team, month: str) -> Mapping[str, Mapping[str, float]]:
        """Return a team's chip-hours in a month, keyed by cluster and flavor; empty if unknown."""
        file = self.files.get(team.environment)
        return file.months.get(month, {}).get(team.name, {}) if file else {}

    def used(self, team: Team, cluster: str, month: str) -> float:
        """Return a team's chip-hours in a month and a cluster."""
        return sum(self.hours(team, month).get(cluster, {}).values())

    def with_text(self, environment: str, text: str) -> Usages:
        """Return the usage after the text of one file is replaced."""
        read, _ = _parsed(parse_source(text, f"{FOLDER}/{environment}.yaml"))
        return dataclasses.replace(self, files={**self.files, environment: read})


def read_usages(root: FilePath) -> Usages:
    """Read all usage files below ``root/stacks/usage``."""
    files: dict[str, UsageFile | None] = {}
    findings: list[Finding] = []
    unreadable: list[str] = []
    for path in sorted((root / FOLDER).glob("*.yaml")):
        file = f"{FOLDER}/{path.name}"
        files[path.stem] = None
        try:
            with others_go_on(file, unreadable):
                files[path.stem], mistakes = _parsed(read_source(path, file))
                findings += mistakes
        except UnreadableError as error:
            unreadable.append(str(error))
    return Usages(files, tuple(findings), unreadable=tuple(unreadable))


CHIP_HOURS_LEDGER = declare(
    "chip-hours-ledger",
    "Find errors in a ledger of chip-hours, and a budget without a recent ledger.",
    ruleset="files",
)


def _parsed(source: Source) -> tuple[UsageFile | None, list[Finding]]:
    file, rejected = validated(UsageFile, source.value, source, rule=CHIP_HOURS_LEDGER)
    return file, [*source.findings, *rejected]


def month_of(day: date) -> str:
    """Return a day's month, ``YYYY-MM``."""
    return f"{day:%Y-%m}"


def month_before(month: str) -> str:
    """Return the previous month."""
    return month_of(date.fromisoformat(f"{month}-01") - timedelta(days=1))


def month_after(month: str) -> str:
    """Return the next month."""
    return month_of(date.fromisoformat(f"{month}-28") + timedelta(days=4))


class Question(NamedTuple):
    """PromQL expressions, and the time at which they are evaluated.

    ``disputed`` returns the difference in chip-hours between several series of the same use.
    """

    expr: str
    disputed: str
    time: datetime


def question(environment: Environment, name: str, month: str, now: datetime) -> Question | None:
    """Return the queries for an environment's chip-hours in a month so far, or None in its first minutes.

    Only the metrics of the controller's leader count. For some minutes, a new leader's series exists in addition to the
    old leader's.
    """
    start = datetime.fromisoformat(f"{month}-01").replace(tzinfo=UTC)
    end = min(now, datetime.fromisoformat(f"{month_after(month)}-01").replace(tzinfo=UTC))
    seconds = int((end - start).total_seconds())
    if seconds < STEP_MINUTES * 60:
        return None
    scope = environment_scope(name, environment)
    clusters = "|".join(cluster_name(scope, key, spec) for key, spec in environment.clusters.items())
    only = f'replica_role!="follower",cluster=~"{clusters}",resource=~"{"|".join(ACCELERATORS)}"'
    held = f"kueue_cluster_queue_resource_usage{{{only}}}"
    maximum, minimum = (f"{pick} by (cluster, cluster_queue, flavor, resource) ({held})" for pick in ("max", "min"))

    def summed(chips: str) -> str:
        samples = f"sum by (cluster, cluster_queue, flavor) (sum_over_time({chips}[{seconds}s:{STEP_MINUTES}m]))"
        return f"{samples} / {60 // STEP_MINUTES}"

    return Question(summed(maximum), summed(f"({maximum} - {minimum})"), time=end)


def hours_of(result: Iterable[Mapping[str, object]], environment: Environment, name: str) -> Hours:
    """Return the result of a query, keyed by team, cluster and flavor, without queues that belong to no team.

    Raises UserError if the result is not a PromQL vector.
    """
    scope = environment_scope(name, environment)
    keys = {cluster_name(scope, key, spec): key for key, spec in environment.clusters.items()}
    hours: Hours = {}
    for row in result:
        try:
            labels = dict(row["metric"])  # type: ignore[call-overload]
            value = float(row["value"][1])  # type: ignore[index]
            cluster, team, flavor = (str(labels[key]) for key in ("cluster", "cluster_queue", "flavor"))
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise UserError(f"The answer of Cloud Monitoring does not contain chip-hours: {row}.") from error
        if cluster in keys and value > 0:
            hours.setdefault(team, {}).setdefault(keys[cluster], {})[flavor] = round(value, 1)
    return hours


def refuse_disputed(hours: Hours, disputed: Hours, month: str) -> None:
    """Raise UserError if a queue has several series that differ by more than a change of Kueue's leader can explain.

    Anybody who may write metrics in the project can write such a series, and no label proves who wrote it.
    """
    part, min_hours = DISPUTED
    for team, clusters in disputed.items():
        for cluster, flavors in clusters.items():
            for flavor, differ in flavors.items():
                counted = hours[team][cluster][flavor]
                if differ > max(part * counted, min_hours):
                    raise UserError(
                        f"Time series of the use of {flavor} by queue {team} in {cluster} differ by {differ:,.0f} of "
                        f"{counted:,.0f} chip-hours of {month}, so no ledger was written. Something other than Kueue "
                        f"writes Kueue's metric kueue_cluster_queue_resource_usage. Check who has "
                        f"roles/monitoring.metricWriter in the project, such as teams with writes_metrics."
                    )


def usage_text(file: UsageFile | None, months: Mapping[str, Hours], now: datetime) -> str:
    """Return the text of a usage file with new values for the months that were read."""
    head = f"# Chip-hours, keyed by month (UTC), team, cluster and flavor. Written by `{COMMAND}`.\n"
    text = f'{head}read: "{now.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"\nmonths:'
    rows = dict(file.months) if file else {}
    rows.update(months)
    for month, teams in sorted(rows.items()):
        text += f'\n  "{month}":' + ("" if teams else " {}")
        for team, clusters in sorted(teams.items()):
            text += f"\n    {team}:"
            for cluster, flavors in sorted(clusters.items()):
                inside = ", ".join(f"{flavor}: {hours}" for flavor, hours in sorted(flavors.items()))
                text += f"\n      {cluster}: {{{inside}}}"
    return text + "\n"


def budget_findings(workspace: Workspace, usages: Usages, today: date) -> list[Finding]:
    """Return findings about nearly or fully used budgets, holds, and missing or old usage files.

    A hold is reported if its budget no longer requires it.
    """
    return located(_drafts(workspace, usages, today))


CHIP_HOURS = declare(
    "chip-hours",
    "Find a team's budget of chip-hours that is nearly used up (a note) or fully used, and a hold on a team that has "
    "budget left.",
    ruleset="files",
    severity="warning",
)


def _drafts(workspace: Workspace, usages: Usages, today: date) -> Iterator[Draft]:
    month = month_of(today)
    for stack, team, _ in workspace.teams():
        ours = _held_by_budget(workspace, stack, team)
        file = usages.files.get(team.environment)
        wrong = file is None and team.environment in usages.files
        if team.monthly_chip_hours and not wrong and (file is None or (today - file.read.date()).days > FRESH_DAYS):
            last = f"were last read on {file.read.date()}" if file else "were never read"
            message = f"the chip-hours of {team.environment} {last}, so it is not known how much of this budget is left"
            allowed = f"a reading every night; the last one at most {FRESH_DAYS} days old"
            path = ("monthly_chip_hours",)
            yield finding(
                stack, path, message, rule=CHIP_HOURS_LEDGER, severity="warning", allowed=allowed, nearest=COMMAND
            )
        for cluster, budget in team.monthly_chip_hours.items():
            used = usages.used(team, cluster, month)
            if used >= WARNED_AT * budget:
                yield _used(stack, team, cluster, used, month, ours=cluster in ours)
        for cluster in _outlived(team, ours, usages, month):
            used = usages.used(team, cluster, month)
            of = "chip-hours, without a budget,"
            if cluster in team.monthly_chip_hours:
                of = f"of its {team.monthly_chip_hours[cluster]:,} chip-hours"
            message = (
                f"holds team {team.name} because of its chip-hours, but the team has used only {used:,.0f} {of} of "
                f"{month}"
            )
            allowed = f"no hold; {COMMAND} prints the change"
            yield finding(stack, ("hold", cluster), message, rule=CHIP_HOURS, allowed=allowed)


def _used(stack: Stack, team: Team, cluster: str, used: float, month: str, *, ours: bool) -> Draft:
    budget = team.monthly_chip_hours[cluster]
    message = f"team {team.name} has used {used:,.0f} of its {budget:,} chip-hours of {month} ({used / budget:.0%})"
    allowed = f"less than {WARNED_AT:.0%} of a month's budget, or a larger budget"
    path = ("monthly_chip_hours", cluster)
    until = f"until {month_after(month)}-01"
    if used >= budget and cluster not in team.hold:
        nearest = f"hold: {{{cluster}: Hold}} {until}; {COMMAND} prints the change"
        return finding(stack, path, message, rule=CHIP_HOURS, allowed=allowed, nearest=nearest)
    if used >= budget:
        message += f", and is held {until}" if ours else ", and is held"
    # A warning would fail the strict check of the change that adds the ledger and the hold together.
    return finding(stack, path, message, rule=CHIP_HOURS, severity="note", allowed=allowed)


def _held_by_budget(workspace: Workspace, stack: Stack, team: Team) -> list[str]:
    """Return the clusters in which a team's hold was set because of a budget: it has the comment of ``proposal``.

    A person set all other holds.
    """
    if not team.hold:
        return []
    rows = (workspace.root / stack.source.file).read_text(encoding="utf-8-sig").splitlines()
    return [
        cluster for cluster in team.hold
        if re.search(rf"#.*\b{re.escape(cluster)}: chip-hours\b", rows[stack.position(("hold", cluster)).line - 1])
    ]  # fmt: skip


def _outlived(team: Team, ours: Iterable[str], usages: Usages, month: str) -> list[str]:
    """Return the clusters in ``ours`` in which a team has budget left this month or no longer has a budget."""
    budgets = team.monthly_chip_hours
    return [name for name in ours if name not in budgets or usages.used(team, name, month) < budgets[name]]


def proposal(workspace: Workspace, usages: Usages, today: date) -> str:
    """Return a patch for ``git apply`` that adds the holds that budgets require, and removes those no longer required.

    Raises UserError for a file into which the tool cannot insert a line.
    """
    month = month_of(today)
    changes = ""
    for stack, team, _ in workspace.teams():
        file = stack.source.file
        before = after = (workspace.root / file).read_bytes().decode("utf-8-sig")
        for cluster, budget in team.monthly_chip_hours.items():
            if usages.used(team, cluster, month) >= budget and cluster not in team.hold:
                line = f"{cluster}: Hold  # {cluster}: chip-hours of {month} are used up"
                after = with_entry(after, file, (*stack.below, "hold"), [line])
        for cluster in _outlived(team, _held_by_budget(workspace, stack, team), usages, month):
            after = without_entry(after, file, (*stack.below, "hold", cluster))
        changes += difference(file, before, after)
    return changes
