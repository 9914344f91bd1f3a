"""Traces: the jobs of a simulation, read from a CSV file row by row, or generated at random from a few rates.

A trace has a header and a row for each job, with these columns:

- ``submitted``: the time of submission, as ISO 8601 (``2026-11-01T09:30:00Z``) or in seconds since any start that all
  rows share
- ``needs``: a number and an accelerator or a flavor of the cluster, such as ``16 h100`` or ``64 tpu-v5e-4x4``; ``+``
  joins several kinds of pods
- ``seconds``: the run time without interruptions

Other columns may be missing or empty: ``cluster``, required only if the team has a share of several clusters;
``priority``, a name of the environment or a number; ``checkpoint``, in seconds; and ``job``, a name.
"""

from __future__ import annotations

import csv
import io
import math
import random
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from kueue_model.cluster import Cluster, Counting, FlavorMachines
from kueue_model.cluster_queues import Pods
from kueue_model.quotas import amount, flavors_of, units
from training_platform.catalog.nearest import find_nearest
from training_platform.config.reading.declaration import declare, finding, located
from training_platform.config.reading.finding import Anchor, Finding, Position, UserError
from training_platform.config.reading.section import enumeration

TRACE = declare(
    "trace",
    "Find a row of a trace that cannot be read.",
    ruleset="traces",
)
REQUIRED: Final = ("submitted", "team", "needs", "seconds")
COLUMNS: Final = (*REQUIRED, "cluster", "priority", "checkpoint", "job")
CHANGE_COLUMNS: Final = ("moment", "team", "cluster", "hold", "job", "priority")
STOP_POLICIES: Final = ("None", "Hold", "HoldAndDrain")
CHECKPOINT_SECONDS: Final = 3600.0
"""Seconds between two checkpoints of a job if the trace does not set it. This value is an assumption."""
MOST_SECONDS: Final = 10 * 366 * 86_400.0
LEAST_SECONDS: Final = 0.001
MOST_MOMENT: Final = 1e12
_NUMBER: Final = re.compile(r"-?[0-9]{1,10}")


class TraceJob(NamedTuple):
    """A job of a trace. Times are in seconds; ``submitted`` is relative to the first job's submission."""

    name: str
    submitted: float
    team: str
    cluster: str
    pods: tuple[Pods, ...]
    seconds: float
    priority: int = 0
    checkpoint: float = CHECKPOINT_SECONDS

    @property
    def chips(self) -> int:
        """The number of chips or GPUs of all of its pods."""
        return sum(pods.amount for pods in self.pods)


class Change(NamedTuple):
    """A new stop policy of a team's queue, or a new priority of a job. The fields of the other kind are None."""

    moment: float
    cluster: str
    team: str
    hold: str | None
    job: str
    priority: int | None


class Trace(NamedTuple):
    """The jobs of a file in the order of submission, the findings about its rows, and the number of unusable rows.

    Each cause has one finding, at the first affected row. ``start`` is the submission time of the first job in the
    file. If ``has_dates`` is set, times are dates, otherwise seconds.
    """

    jobs: tuple[TraceJob, ...]
    findings: tuple[Finding, ...]
    unusable: int
    start: float = 0.0
    changes: tuple[Change, ...] = ()
    has_dates: bool = False


class _CellError(Exception):
    """An invalid cell: what is wrong, what is allowed, and the nearest valid value."""

    def __init__(self, column: str, message: str, allowed: str, nearest: str | None = None) -> None:
        super().__init__(message)
        self.column = column
        self.message = message
        self.allowed = allowed
        self.nearest = nearest

    @property
    def cause(self) -> tuple[str, ...]:
        """What identifies the mistake: rows with the same mistake have equal values."""
        return (self.column, self.message, self.allowed)

    def copy(self) -> _CellError:
        """Return the error without its traceback, which would otherwise grow each time the same error is raised."""
        return _CellError(self.column, self.message, self.allowed, self.nearest)


class _UnknownNeedError(_CellError):
    """An accelerator or flavor that none of a team's shares contains. ``allowed_names`` lists those in its shares."""

    def __init__(self, name: str, team: str, cluster: str, allowed_names: Sequence[str]) -> None:
        super().__init__("needs", name, "")
        self.name = name
        self.team = team
        self.cluster = cluster
        self.allowed_names = allowed_names


def read_trace(path: Path, clusters: Iterable[Cluster]) -> Trace:
    """Read a trace for clusters. Raises UserError if the file is unreadable or does not have a trace's columns."""
    reader = _TraceReader(path, tuple(clusters))
    try:
        with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
            return reader.read(file)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from error


def read_rows(path: Path, rows: Iterable[Mapping[str, object]], clusters: Iterable[Cluster]) -> Trace:
    """Read rows that do not come from a file. Findings name ``path`` as their file."""
    return _TraceReader(path, tuple(clusters)).read(trace_text(rows).splitlines(keepends=True))


def read_changes(path: Path, trace: Trace, clusters: Sequence[Cluster]) -> tuple[Change, ...]:
    """Read a CSV file of changes during a trace. Raises UserError with every error in it."""
    try:
        with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
            rows = [[cell.strip() for cell in _cells(line)] for line in file]
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from error
    header = rows[0] if rows else []
    if set(header) - set(CHANGE_COLUMNS) or "moment" not in header or len(set(header)) < len(header):
        columns = ", ".join(CHANGE_COLUMNS)
        raise UserError(
            f"{path}:1: the header needs the column moment, and may have only these columns, each once: {columns}."
        )
    changes: list[Change] = []
    errors: list[str] = []
    for number, row in enumerate(rows[1:], 2):
        if not any(row):
            continue
        try:
            changes += _changes(dict(zip(header, row, strict=False)), trace, clusters)
        except _CellError as error:
            nearest = f" Nearest: {error.nearest}." if error.nearest else ""
            errors.append(f"{path}:{number}: {error.column}: {error.message}. Allowed: {error.allowed}.{nearest}")
    if errors:
        raise UserError("\n".join(errors))
    return tuple(changes)


def _changes(cells: Mapping[str, str], trace: Trace, clusters: Sequence[Cluster]) -> Iterator[Change]:
    """Yield the changes of a row: one for a job, or one for each cluster (all if the row names none)."""
    text = cells.get("moment", "")
    moment = _moment("moment", text) - trace.start
    if _is_date(text) != trace.has_dates:
        raise _clock_error("moment", "the trace has", has_dates=trace.has_dates)
    team = cells.get("team", "")
    job = cells.get("job", "")
    if bool(job) == bool(team):
        allowed = "a team and hold, or a job and priority"
        raise _CellError("team", "a change applies either to a team's queue or to a job", allowed)
    if job:
        yield from _priority_changes(moment, job, cells.get("priority", ""), trace, clusters)
    else:
        yield from _hold_changes(moment, team, cells, clusters)


def _priority_changes(
    moment: float, name: str, priority: str, trace: Trace, clusters: Sequence[Cluster]
) -> Iterator[Change]:
    jobs = [job for job in trace.jobs if job.name == name]
    if not jobs:
        nearest = find_nearest(name, {job.name for job in trace.jobs})
        raise _CellError("job", f"{name!r} is not a job of the trace", "its names", nearest)
    if len(jobs) > 1:
        raise _CellError("job", f"{name!r} is the name of {len(jobs)} jobs of the trace", "the name of one job")
    (job,) = jobs
    priorities = {cluster.name: cluster.priorities for cluster in clusters}
    yield Change(
        moment, job.cluster, team=job.team, hold=None, job=name, priority=_priority(priority, priorities[job.cluster])
    )


def _hold_changes(moment: float, team: str, cells: Mapping[str, str], clusters: Sequence[Cluster]) -> Iterator[Change]:
    hold = cells.get("hold", "")
    if hold not in STOP_POLICIES:
        nearest = find_nearest(hold, STOP_POLICIES)
        raise _CellError("hold", f"{hold!r} is not a stop policy", ", ".join(STOP_POLICIES), nearest)
    chosen = [cluster for cluster in clusters if cells.get("cluster") in ("", None, cluster.name)]
    if not chosen:
        allowed = enumeration([cluster.name for cluster in clusters])
        raise _CellError("cluster", f"{cells['cluster']!r} is not a cluster", allowed)
    with_team = [cluster for cluster in chosen if team in cluster.queues]
    if not with_team:
        teams = sorted({name for cluster in chosen for name in cluster.queues})
        message = f"{team!r} is not a team with a share"
        raise _CellError("team", message, enumeration(teams), find_nearest(team, teams))
    for cluster in with_team:
        yield Change(moment, cluster.name, team=team, hold=hold, job="", priority=None)


class _TraceReader:
    """Reads one file. The column of a finding is the position of its cell's first character, counted from 1."""

    def __init__(self, path: Path, clusters: Sequence[Cluster]) -> None:
        self.path = path
        self.clusters = {cluster.name: cluster for cluster in clusters}
        self.teams = sorted({team for cluster in clusters for team in cluster.queues})
        self.local_queues: dict[str, str] = {}
        for cluster in clusters:
            if cluster.counting is not None:
                for name, queue in cluster.counting.local_queues.items():
                    if queue in cluster.queues:
                        self.local_queues[name] = queue
        self.pods = cache(self._pods)  # a trace has many rows, and few needs

    def read(self, lines: Iterable[str]) -> Trace:
        """Read a header, and parse each line separately as a row, so that an unclosed quote affects only one row."""
        rows = (_cells(line) for line in lines)
        header = [cell.strip() for cell in next(rows, [])]
        self._check_header(header)
        lines_of_jobs: list[tuple[TraceJob, int, list[str]]] = []
        dated_lines: set[int] = set()
        causes: dict[tuple[str, ...], list[tuple[int, Finding]]] = defaultdict(list)
        for number, row in enumerate(rows, 2):
            if not any(cell.strip() for cell in row):
                continue
            cells = dict(zip(header, (cell.strip() for cell in row), strict=False))
            try:
                job = self._job(cells, number, extra=len(row) - len(header))
            except _CellError as error:
                causes[error.cause].append((number, self._finding(error, number, header, row)))
            else:
                lines_of_jobs.append((job, number, row))
                if _is_date(cells["submitted"]):
                    dated_lines.add(number)
        has_dates = 2 * len(dated_lines) >= len(lines_of_jobs) > 0
        jobs: list[TraceJob] = []
        for job, number, row in lines_of_jobs:
            if (number in dated_lines) == has_dates:
                jobs.append(job)
            else:
                wrong_clock = _clock_error("submitted", "most rows have", has_dates=has_dates)
                causes[wrong_clock.cause].append((number, self._finding(wrong_clock, number, header, row)))
        start = min((job.submitted for job in jobs), default=0.0)
        moved = [job._replace(submitted=job.submitted - start) for job in jobs]
        return Trace(
            jobs=tuple(sorted(moved, key=lambda job: job.submitted)),
            findings=tuple(_summed_up(rows) for rows in causes.values()),
            unusable=sum(map(len, causes.values())),
            start=start,
            has_dates=has_dates,
        )

    def _check_header(self, header: Sequence[str]) -> None:
        for name in header:
            if header.count(name) > 1:
                raise UserError(f"{self.path}:1: the header of a trace has {name!r} more than once.")
            if name not in COLUMNS:
                nearest = find_nearest(name, COLUMNS)
                hint = f" Nearest: {nearest}." if nearest else ""
                raise UserError(f"{self.path}:1: {name!r} is not a column of a trace: {', '.join(COLUMNS)}.{hint}")
        missing = [name for name in REQUIRED if name not in header]
        if missing:
            raise UserError(f"{self.path}:1: the header of a trace needs {enumeration(missing)}.")

    def _finding(self, error: _CellError, line: int, header: Sequence[str], row: Sequence[str]) -> Finding:
        before = row[: header.index(error.column)] if error.column in header else ()
        column = 1 + sum(len(cell) + 1 for cell in before)
        place = Anchor(file=str(self.path), position=Position(line, column))
        draft = finding(place, (error.column,), error.message, rule=TRACE, allowed=error.allowed, nearest=error.nearest)
        return located([draft])[0]

    def _job(self, cells: Mapping[str, str], line: int, extra: int) -> TraceJob:
        if extra > 0:
            raise _CellError("", f"has {extra} more cells than the header", "a cell for each column of the header")
        team = cells.get("team", "")
        team = self.local_queues.get(team, team)
        if team not in self.teams:
            raise _CellError(
                "team", f"{team!r} is not a team with a share", enumeration(self.teams), find_nearest(team, self.teams)
            )
        errors: list[_CellError] = []
        for cluster in self._clusters(cells, team):
            pods = self.pods(cells.get("needs", ""), cluster.name, team)
            if not isinstance(pods, _CellError):
                break
            errors.append(pods)
        else:
            raise _no_cluster_error(errors)
        return TraceJob(
            name=cells.get("job") or f"line-{line}",
            submitted=_moment("submitted", cells.get("submitted", "")),
            team=team,
            cluster=cluster.name,
            pods=pods,
            seconds=_seconds("seconds", cells.get("seconds", "")),
            priority=_priority(cells.get("priority", ""), cluster.priorities),
            checkpoint=_seconds("checkpoint", cells.get("checkpoint") or str(CHECKPOINT_SECONDS)),
        )

    def _pods(self, needs: str, cluster: str, team: str) -> tuple[Pods, ...] | _CellError:
        """Return the pods that a team requests in a cluster, or the error in ``needs``."""
        queues = self.clusters[cluster]
        pods: list[Pods] = []
        try:
            for part in needs.split("+"):
                if queues.counting is None:
                    pods.append(_accelerator_pods(part.strip(), queues, team))
                else:
                    pods.extend(_resource_pods(part.split(), queues, queues.counting, team))
        except _CellError as error:
            return error
        return tuple(pods)

    def _clusters(self, cells: Mapping[str, str], team: str) -> Iterator[Cluster]:
        team_clusters = {name: cluster for name, cluster in self.clusters.items() if team in cluster.queues}
        name = cells.get("cluster")
        if not name:
            yield from team_clusters.values()
        elif name in team_clusters:
            yield team_clusters[name]
        else:
            message = f"{name!r} is not a cluster in which {team} has a share"
            raise _CellError("cluster", message, enumeration(team_clusters), find_nearest(name, team_clusters))


def _cells(line: str) -> list[str]:
    try:
        return next(csv.reader([line]), [])
    except csv.Error:  # a cell that is longer than the module's limit
        return [line.rstrip("\r\n")]


def _summed_up(rows: Sequence[tuple[int, Finding]]) -> Finding:
    """Return the first of several findings with the same cause. Its message says how many others there are."""
    _, first = rows[0]
    if len(rows) == 1:
        return first
    other_rows = f"{len(rows) - 1:,} more row{'s' if len(rows) > 2 else ''}, the last in line {rows[-1][0]}"
    return replace(first, message=f"{first.message}; {other_rows}")


def _no_cluster_error(errors: Sequence[_CellError]) -> _CellError:
    """Return the reason why no cluster of a team accepts a job. If all clusters lack its flavor, this is one error."""
    first = errors[0]
    if not isinstance(first, _UnknownNeedError):
        return first.copy()
    unknown = [error for error in errors if isinstance(error, _UnknownNeedError)]
    if len(unknown) < len(errors):  # another cluster has the flavor, and refuses something else
        return next(error for error in errors if error not in unknown).copy()
    clusters = enumeration([error.cluster for error in unknown])
    names = sorted({name for error in unknown for name in error.allowed_names})
    message = f"{first.name!r} is not an accelerator or flavor of a share of {first.team} in {clusters}"
    return _CellError("needs", message, enumeration(names), find_nearest(first.name, names))


def _accelerator_pods(text: str, cluster: Cluster, team: str) -> Pods:
    """Return the pods for a number and an accelerator or flavor, such as ``8 h100``."""
    number, _, name = text.partition(" ")
    name = name.strip()
    team_flavors: list[FlavorMachines] = []
    for flavor_names in flavors_of(cluster.queues[team]).values():
        team_flavors.extend(cluster.flavors[flavor_name] for flavor_name in flavor_names)
    if not _NUMBER.fullmatch(number) or not 1 <= int(number) <= 1_000_000:
        message = f"{number!r} is not a number of chips or GPUs"
        raise _CellError("needs", message, "a number and an accelerator or a flavor, such as 8 h100")
    chips = int(number)
    matching = [flavor for flavor in team_flavors if name in (flavor.name, flavor.accelerator)]
    if not matching:
        names = {flavor.name for flavor in team_flavors} | {flavor.accelerator for flavor in team_flavors}
        raise _UnknownNeedError(name, team, cluster.name, sorted(names))
    fitting = [flavor for flavor in matching if chips % flavor.per_slice == 0]
    if not fitting:
        smallest_slice = min(flavor.per_slice for flavor in matching)
        message = f"{chips} chips are not whole slices of {enumeration([flavor.name for flavor in matching])}"
        raise _CellError(
            "needs", message, f"a multiple of {smallest_slice}", str(math.ceil(chips / smallest_slice) * smallest_slice)
        )
    resource = fitting[0].resource
    all_names = {flavor.name for flavor in team_flavors if flavor.resource == resource}
    fitting_names = frozenset(flavor.name for flavor in fitting if flavor.resource == resource)
    return Pods(resource, chips, flavors=None if fitting_names == all_names else fitting_names)


def _resource_pods(words: Sequence[str], cluster: Cluster, counting: Counting, queue: str) -> Iterator[Pods]:
    """Yield the pods for resources such as ``8 nvidia.com/gpu 64 cpu on spot``, grouped and counted as in a queue.

    A flavor may be named instead of a resource. It stands for the flavor's resource that is neither CPU nor memory, and
    the pods then use only this flavor.
    """
    groups = cluster.queues[queue].get("resourceGroups", ())
    flavors = {flavor["name"]: group["coveredResources"] for group in groups for flavor in group["flavors"]}
    covered = [resource for group in groups for resource in group["coveredResources"]]
    requests, requested_flavors = _requests(words, covered, flavors)
    unknown = sorted(requested_flavors - flavors.keys())
    if unknown:
        nearest = find_nearest(unknown[0], flavors)
        raise _CellError("needs", f"{unknown[0]!r} is not a flavor in {queue}", enumeration(flavors), nearest)
    counted = _transformed(requests, counting)
    if counting.ignores_undeclared:
        counted = {name: number for name, number in counted.items() if name in covered}
    for name in counted:
        if name not in covered:
            message = f"{name!r} is not a resource with quota in {queue}"
            raise _CellError("needs", message, enumeration(covered), find_nearest(name, covered))
    if not any(counted.values()):
        raise _CellError(
            "needs", f"{' '.join(words)!r} requests no resource with quota in {queue}", enumeration(covered)
        )
    is_same_kind = False
    for group in groups:
        in_group = [(name, number) for name, number in counted.items() if name in group["coveredResources"] and number]
        if in_group:
            (resource, number), *more = in_group
            flavors_in_group = frozenset(requested_flavors & {flavor["name"] for flavor in group["flavors"]})
            yield Pods(resource, number, flavors=flavors_in_group or None, more=tuple(more), is_same_kind=is_same_kind)
            is_same_kind = True


def _requests(
    words: Sequence[str], covered: Collection[str], flavors: Mapping[str, Sequence[str]]
) -> tuple[Mapping[str, int], set[str]]:
    """Return the requested amounts, keyed by resource, and the flavors that are named."""
    named_flavors: set[str] = set()
    if "on" in words:
        position = words.index("on")
        named_flavors = set(words[position + 1 :]) - {"or"}
        words = words[:position]
    if len(words) % 2 or not words:
        allowed = "quantities and resources, then on and a flavor, such as 8 nvidia.com/gpu 64 cpu on h100"
        raise _CellError("needs", f"{' '.join(words)!r} is not a request", allowed)
    requests: Counter[str] = Counter()
    for quantity, name in zip(words[::2], words[1::2], strict=True):
        resource = name
        if name not in covered and name in flavors:
            resource = next((other for other in flavors[name] if other not in ("cpu", "memory", "pods")), name)
            named_flavors.add(name)
        try:
            requests[resource] += amount(resource, quantity)
        except ValueError as error:
            raise _CellError("needs", str(error), "a quantity, such as 8, 500m or 64Gi") from None
    return requests, named_flavors


def _transformed(requests: Mapping[str, int], counting: Counting) -> dict[str, int]:
    """Return the amounts that Kueue counts for a request, after it excludes and transforms resources."""
    counted: Counter[str] = Counter()
    for name, number in requests.items():
        if counting.excluded and name.startswith(counting.excluded):
            continue
        keeps, outputs = counting.transformations.get(name, (True, {}))
        if keeps:
            counted[name] += number
        for output, quantity in outputs.items():
            counted[output] += math.ceil(number * amount(output, quantity) / units(name))
    return counted


def _is_date(text: str) -> bool:
    """Return True if a time is written as a date, not as a number of seconds."""
    try:
        float(text)
    except ValueError:
        return True
    return False


def _clock_error(column: str, other_rows: str, *, has_dates: bool) -> _CellError:
    """Return the error for a date among seconds, or for seconds among dates."""
    if has_dates:
        return _CellError(
            column, f"a number of seconds, but {other_rows} dates", "a date, such as 2026-11-01T09:30:00Z"
        )
    return _CellError(column, f"a date, but {other_rows} seconds", "a number of seconds")


def _moment(column: str, text: str) -> float:
    """Return seconds since 1970 for a date. For a number of seconds, return the number."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
        with suppress(ValueError):  # nan is refused below
            moment = datetime.fromisoformat(text)
            seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    if not abs(seconds) <= MOST_MOMENT:  # nor nan
        raise _CellError(column, f"{text!r} is not a point in time", "2026-11-01T09:30:00Z, or a number of seconds")
    return seconds


def _seconds(column: str, text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not LEAST_SECONDS <= seconds <= MOST_SECONDS:
        allowed = f"at least {LEAST_SECONDS} and up to ten years"
        raise _CellError(column, f"{text!r} is not a number of seconds", allowed)
    return seconds


def _priority(text: str, priorities: Mapping[str, int]) -> int:
    if not text:
        return 0
    if text in priorities:
        return priorities[text]
    if _NUMBER.fullmatch(text) and abs(int(text)) <= 1_000_000_000:
        return int(text)
    allowed = ", ".join([*priorities, "a number"])
    raise _CellError("priority", f"{text!r} is not a priority", allowed, find_nearest(text, priorities))


def trace_text(rows: Iterable[Mapping[str, object]]) -> str:
    """Return rows as the text of a trace, with every column that appears in any row."""
    all_rows = list(rows)
    columns = [name for name in COLUMNS if any(row.get(name) not in (None, "") for row in all_rows)] or list(REQUIRED)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([" ".join(str(row.get(name, "")).split()) for name in columns] for row in all_rows)
    return text.getvalue()


class JobKind(NamedTuple):
    """A kind of job that a team submits repeatedly. ``seconds`` is the median run time."""

    team: str
    needs: str
    per_week: float
    seconds: float
    priority: str = ""


def invented(kinds: Collection[JobKind], days: int, seed: int) -> Iterator[dict[str, object]]:
    """Yield random rows of a trace in the order of submission. The rate doubles between 8:00 and 20:00.

    Run times are log-normal around the median: a tenth of the jobs run 3.6 times as long or longer.
    """
    draw = random.Random(seed)
    rows = []
    for kind in kinds:
        moment = 0.0
        while True:
            moment += draw.expovariate(kind.per_week * 4 / 3 / (7 * 86_400))
            if moment >= days * 86_400:
                break
            if 8 <= moment % 86_400 / 3600 < 20 or draw.random() < 0.5:
                seconds = max(60, round(draw.lognormvariate(math.log(kind.seconds), 1.0)))
                rows.append((round(moment), kind, seconds))
    for number, (moment, kind, seconds) in enumerate(sorted(rows, key=lambda row: row[0])):
        yield {
            "submitted": moment,
            "team": kind.team,
            "needs": kind.needs,
            "seconds": seconds,
            "priority": kind.priority,
            "job": f"{kind.team}-{number}",
        }
