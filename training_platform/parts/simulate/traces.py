"""Traces: the jobs of a simulation as a CSV file, read row by row, and a month of them made from a few rates.

A trace has a header and a row for each job. ``submitted`` is a moment, as ISO 8601 (``2026-11-01T09:30:00Z``) or in
seconds from any beginning, but the same in all rows. ``needs`` is a number and an accelerator or a flavor of the
cluster: ``16 h100``, ``64 tpu-v5e-4x4``; several kinds of pods are joined by ``+``. ``seconds`` is how long the job
runs where nothing interrupts it. Other columns may be missing or empty: ``cluster``, if the team has a share of
several, ``priority``, a name of the environment or a number, ``checkpoint`` in seconds, and ``job``, a name.
"""

from __future__ import annotations

import csv
import io
import math
import random
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from training_platform.catalog.nearest import find_nearest
from training_platform.config.reading.finding import Finding, Position, UserError
from training_platform.config.reading.section import enumeration
from training_platform.parts.simulate.cluster_queues import Pods
from training_platform.parts.simulate.from_stacks import Cluster, Counting
from training_platform.parts.simulate.quotas import amount, flavors_of, units

RULE: Final = "trace"
REQUIRED: Final = ("submitted", "team", "needs", "seconds")
COLUMNS: Final = (*REQUIRED, "cluster", "priority", "checkpoint", "job")
CHANGE_COLUMNS: Final = ("moment", "team", "cluster", "hold", "job", "priority")
STOP_POLICIES: Final = ("None", "Hold", "HoldAndDrain")
CHECKPOINT_SECONDS: Final = 3600.0
"""How often a job saves its state where a trace does not say; invented."""
MOST_SECONDS: Final = 10 * 366 * 86_400.0
LEAST_SECONDS: Final = 0.001
MOST_MOMENT: Final = 1e12
_NUMBER: Final = re.compile(r"-?[0-9]{1,10}")


class TraceJob(NamedTuple):
    """A job of a trace. Times are in seconds, ``submitted`` from the first job's on."""

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
        """Chips or GPUs of all of its pods."""
        return sum(pods.amount for pods in self.pods)


class Change(NamedTuple):
    """A change while jobs run: the stop policy of a team's queue, or the priority of a job; the other is None."""

    moment: float
    cluster: str
    team: str
    hold: str | None
    job: str
    priority: int | None


class Trace(NamedTuple):
    """The jobs of a file in the order of their times, what is wrong with its rows, and how many could not be used.

    There is one finding for each cause, at the first row that has it. ``start`` is the first job's moment in the file.
    """

    jobs: tuple[TraceJob, ...]
    findings: tuple[Finding, ...]
    unusable: int
    start: float = 0.0
    changes: tuple[Change, ...] = ()


class _WrongError(Exception):
    """A cell that has no meaning: what is wrong, what is allowed, and the nearest value."""

    def __init__(self, column: str, message: str, allowed: str, nearest: str | None = None) -> None:
        super().__init__(message)
        self.column, self.message, self.allowed, self.nearest = column, message, allowed, nearest

    def copy(self) -> _WrongError:
        """Return it without a traceback; an error that is kept would grow with each row that raises it."""
        return _WrongError(self.column, self.message, self.allowed, self.nearest)


class _UnknownNeedError(_WrongError):
    """An accelerator or flavor that a team has no share of in a cluster; ``known`` are those that it has."""

    def __init__(self, name: str, team: str, cluster: str, known: Sequence[str]) -> None:
        super().__init__("needs", name, "")
        self.name, self.team, self.cluster, self.known = name, team, cluster, known


def read_trace(path: Path, clusters: Iterable[Cluster]) -> Trace:
    """Read a trace for clusters. UserError where the file cannot be read, or has not the columns of a trace."""
    reader = _Reader(path, tuple(clusters))
    try:
        with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
            return reader.read(file)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from error


def read_rows(path: Path, rows: Iterable[Mapping[str, object]], clusters: Iterable[Cluster]) -> Trace:
    """Read rows that something else than a trace gives; findings name ``path``."""
    return _Reader(path, tuple(clusters)).read(trace_text(rows).splitlines(keepends=True))


def read_changes(path: Path, trace: Trace, clusters: Sequence[Cluster]) -> tuple[Change, ...]:
    """Read a CSV of changes for a trace, in its time. UserError names all that is wrong."""
    found: list[Change] = []
    wrong: list[str] = []
    try:
        with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
            rows = [[cell.strip() for cell in _cells(line)] for line in file]
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from error
    header = rows[0] if rows else []
    if set(header) - set(CHANGE_COLUMNS) or "moment" not in header or len(set(header)) < len(header):
        raise UserError(f"{path}:1: the header has moment, and of these each once: {', '.join(CHANGE_COLUMNS)}.")
    for number, row in enumerate(rows[1:], 2):
        if any(row):
            try:
                found += _changes(dict(zip(header, row, strict=False)), trace, clusters)
            except _WrongError as error:
                nearest = f" Nearest: {error.nearest}." if error.nearest else ""
                wrong.append(f"{path}:{number}: {error.column}: {error.message}. Allowed: {error.allowed}.{nearest}")
    if wrong:
        raise UserError("\n".join(wrong))
    return tuple(found)


def _changes(cells: Mapping[str, str], trace: Trace, clusters: Sequence[Cluster]) -> Iterator[Change]:
    """Yield the changes of a row: in each cluster that it names or all, or of each job of a name."""
    moment = _moment(cells.get("moment", "")) - trace.start
    team, job, hold = (cells.get(name, "") for name in ("team", "job", "hold"))
    if bool(job) == bool(team):
        raise _WrongError("team", "a change is of a team's queue or of a job", "a team and hold, or a job and priority")
    if job:
        jobs = [row for row in trace.jobs if row.name == job]
        if not jobs:
            names = {row.name for row in trace.jobs}
            raise _WrongError("job", f"{job!r} is not a job of the trace", "its names", find_nearest(job, names))
        priorities = {cluster.name: cluster.priorities for cluster in clusters}
        for row in jobs:
            priority = _priority(cells.get("priority", ""), priorities[row.cluster])
            yield Change(moment, row.cluster, row.team, None, job, priority)
        return
    if hold not in STOP_POLICIES:
        raise _WrongError(
            "hold", f"{hold!r} is not a stop policy", ", ".join(STOP_POLICIES), find_nearest(hold, STOP_POLICIES)
        )
    chosen = [cluster for cluster in clusters if cells.get("cluster") in ("", None, cluster.name)]
    if not chosen:
        allowed = enumeration([cluster.name for cluster in clusters])
        raise _WrongError("cluster", f"{cells['cluster']!r} is not a cluster", allowed)
    having = [cluster for cluster in chosen if team in cluster.queues]
    if not having:
        teams = sorted({name for cluster in chosen for name in cluster.queues})
        message = f"{team!r} is not a team with a share"
        raise _WrongError("team", message, enumeration(teams), find_nearest(team, teams))
    for cluster in having:
        yield Change(moment, cluster.name, team, hold, "", None)


class _Reader:
    """Reads one file; columns are numbered as an editor does, from 1, where the cell begins."""

    def __init__(self, path: Path, clusters: Sequence[Cluster]) -> None:
        self.path = path
        self.clusters = {cluster.name: cluster for cluster in clusters}
        self.teams = sorted({team for cluster in clusters for team in cluster.queues})
        self.local_queues = {
            name: queue
            for cluster in clusters
            if cluster.counting is not None
            for name, queue in cluster.counting.local_queues.items()
            if queue in cluster.queues
        }
        self.pods = cache(self._pods)  # a trace has many rows, and few needs

    def read(self, lines: Iterable[str]) -> Trace:
        """Read a header and a row for each line, so that a quote that never closes spoils one row alone."""
        rows = (_cells(line) for line in lines)
        header = [cell.strip() for cell in next(rows, [])]
        self._check(header)
        jobs: list[TraceJob] = []
        causes: dict[tuple[str, ...], list[tuple[int, Finding]]] = {}
        for number, row in enumerate(rows, 2):
            if not any(cell.strip() for cell in row):
                continue
            cells = dict(zip(header, (cell.strip() for cell in row), strict=False))
            try:
                jobs.append(self._job(cells, number, extra=len(row) - len(header)))
            except _WrongError as error:
                cause = (error.column, error.message, error.allowed)
                causes.setdefault(cause, []).append((number, self._finding(error, number, header, row)))
        start = min((job.submitted for job in jobs), default=0.0)
        moved = [job._replace(submitted=job.submitted - start) for job in jobs]
        return Trace(
            jobs=tuple(sorted(moved, key=lambda job: job.submitted)),
            findings=tuple(_summed_up(rows) for rows in causes.values()),
            unusable=sum(map(len, causes.values())),
            start=start,
        )

    def _check(self, header: Sequence[str]) -> None:
        for name in header:
            if header.count(name) > 1:
                raise UserError(f"{self.path}:1: the header of a trace has {name!r} more than once.")
            if name not in COLUMNS:
                nearest = find_nearest(name, COLUMNS)
                hint = f" Nearest: {nearest}." if nearest else ""
                raise UserError(f"{self.path}:1: {name!r} is not a column of a trace: {', '.join(COLUMNS)}.{hint}")
        if missing := [name for name in REQUIRED if name not in header]:
            raise UserError(f"{self.path}:1: the header of a trace needs {enumeration(missing)}.")

    def _finding(self, error: _WrongError, line: int, header: Sequence[str], row: Sequence[str]) -> Finding:
        before = row[: header.index(error.column)] if error.column in header else ()
        column = 1 + sum(len(cell) + 1 for cell in before)
        return Finding(
            rule=RULE, severity="error", message=error.message, file=str(self.path), path=error.column,
            position=Position(line, column), allowed=error.allowed, nearest=error.nearest,
        )  # fmt: skip

    def _job(self, cells: Mapping[str, str], line: int, extra: int) -> TraceJob:
        if extra > 0:
            raise _WrongError("", f"has {extra} cells more than the header", "a cell for each column of the header")
        team = cells.get("team", "")
        team = self.local_queues.get(team, team)
        if team not in self.teams:
            raise _WrongError(
                "team", f"{team!r} is not a team with a share", enumeration(self.teams), find_nearest(team, self.teams)
            )
        wrong: list[_WrongError] = []
        for cluster in self._clusters(cells, team):
            pods = self.pods(cells.get("needs", ""), cluster.name, team)
            if not isinstance(pods, _WrongError):
                break
            wrong.append(pods)
        else:
            raise _in_no_cluster(wrong)
        return TraceJob(
            name=cells.get("job") or f"line-{line}",
            submitted=_moment(cells.get("submitted", "")),
            team=team,
            cluster=cluster.name,
            pods=pods,
            seconds=_seconds("seconds", cells.get("seconds", "")),
            priority=_priority(cells.get("priority", ""), cluster.priorities),
            checkpoint=_seconds("checkpoint", cells.get("checkpoint") or str(CHECKPOINT_SECONDS)),
        )

    def _pods(self, needs: str, cluster: str, team: str) -> tuple[Pods, ...] | _WrongError:
        """Return the pods that a team asks of a cluster, or why there are none."""
        try:
            place = self.clusters[cluster]
            if place.counting is not None:
                parts = [part.split() for part in needs.split("+")]
                return tuple(pods for part in parts for pods in _counted(part, place, place.counting, team))
            return tuple(_kind(part.strip(), place, team) for part in needs.split("+"))
        except _WrongError as error:
            return error

    def _clusters(self, cells: Mapping[str, str], team: str) -> Iterator[Cluster]:
        of_team = {name: cluster for name, cluster in self.clusters.items() if team in cluster.queues}
        if name := cells.get("cluster"):
            if name not in of_team:
                message = f"{name!r} is not a cluster in which {team} has a share"
                raise _WrongError("cluster", message, enumeration(of_team), find_nearest(name, of_team))
            yield of_team[name]
        else:
            yield from of_team.values()


def _cells(line: str) -> list[str]:
    try:
        return next(csv.reader([line]), [])
    except csv.Error:  # a cell that is longer than the module's limit
        return [line.rstrip("\r\n")]


def _summed_up(rows: Sequence[tuple[int, Finding]]) -> Finding:
    """Return the first of findings that have one cause, with the number of the others."""
    _, first = rows[0]
    if len(rows) == 1:
        return first
    others = f"{len(rows) - 1:,} more row{'s' if len(rows) > 2 else ''}, the last in line {rows[-1][0]}"
    return replace(first, message=f"{first.message}; {others}")


def _in_no_cluster(wrong: Sequence[_WrongError]) -> _WrongError:
    """Return why a job can be in none of a team's clusters, in one sentence where the cause is the same in all."""
    first = wrong[0]
    if not isinstance(first, _UnknownNeedError):
        return first.copy()
    unknown = [error for error in wrong if isinstance(error, _UnknownNeedError)]
    if len(unknown) < len(wrong):  # another cluster has it, and refuses something else
        return next(error for error in wrong if error not in unknown).copy()
    where = enumeration([error.cluster for error in unknown])
    names = sorted({name for error in unknown for name in error.known})
    message = f"{first.name!r} is not an accelerator or flavor that {first.team} has a share of in {where}"
    return _WrongError("needs", message, enumeration(names), find_nearest(first.name, names))


def _kind(text: str, cluster: Cluster, team: str) -> Pods:
    number, _, name = text.partition(" ")
    name = name.strip()
    own = [cluster.flavors[flavor] for flavors in flavors_of(cluster.queues[team]).values() for flavor in flavors]
    if not _NUMBER.fullmatch(number) or not 1 <= int(number) <= 1_000_000:
        message = f"{number!r} is not a number of chips or GPUs"
        raise _WrongError("needs", message, "a number and an accelerator or a flavor, such as 8 h100")
    amount = int(number)
    meant = [flavor for flavor in own if name in (flavor.name, flavor.accelerator)]
    if not meant:
        known = sorted({name for flavor in own for name in (flavor.accelerator, flavor.name)})
        raise _UnknownNeedError(name, team, cluster.name, known)
    whole = [flavor for flavor in meant if amount % flavor.per_slice == 0]
    if not whole:
        least = min(flavor.per_slice for flavor in meant)
        message = f"{amount} chips are not whole slices of {enumeration([flavor.name for flavor in meant])}"
        raise _WrongError("needs", message, f"a multiple of {least}", str(math.ceil(amount / least) * least))
    every = {flavor.name for flavor in own if flavor.resource == whole[0].resource}
    names = frozenset(flavor.name for flavor in whole if flavor.resource == whole[0].resource)
    return Pods(whole[0].resource, amount, None if names == every else names)


def _counted(words: Sequence[str], cluster: Cluster, counting: Counting, queue: str) -> Iterator[Pods]:
    """Yield pods of resources (``8 nvidia.com/gpu 64 cpu on spot``) as a queue counts them, for each resource group.

    A flavor in place of a resource is that one alone, of the resource that is neither CPU nor memory.
    """
    spec = cluster.queues[queue]
    groups = spec.get("resourceGroups", ())
    flavors = {flavor["name"]: group["coveredResources"] for group in groups for flavor in group["flavors"]}
    covered = [resource for group in groups for resource in group["coveredResources"]]
    requests, wanted = _requests(words, covered, flavors)
    if unknown := sorted(wanted - flavors.keys()):
        nearest = find_nearest(unknown[0], flavors)
        raise _WrongError("needs", f"{unknown[0]!r} is not a flavor of {queue}", enumeration(flavors), nearest)
    counted = _transformed(requests, counting)
    if counting.ignores_undeclared:
        counted = {name: number for name, number in counted.items() if name in covered}
    for name in counted:
        if name not in covered:
            message = f"{name!r} is not a resource that {queue} has quota of"
            raise _WrongError("needs", message, enumeration(covered), find_nearest(name, covered))
    if not any(counted.values()):
        raise _WrongError("needs", f"{' '.join(words)!r} has nothing that {queue} counts", enumeration(covered))
    is_same_kind = False
    for group in groups:
        rows = [(name, number) for name, number in counted.items() if name in group["coveredResources"] and number]
        named = frozenset(wanted & {flavor["name"] for flavor in group["flavors"]})
        if rows:
            yield Pods(*rows[0], named or None, tuple(rows[1:]), is_same_kind)
            is_same_kind = True


def _requests(
    words: Sequence[str], covered: Collection[str], flavors: Mapping[str, Sequence[str]]
) -> tuple[Mapping[str, int], set[str]]:
    """Return what words ask for by resource, and the flavors that they name."""
    wanted: set[str] = set()
    if "on" in words:
        at = words.index("on")
        words, wanted = words[:at], set(words[at + 1 :]) - {"or"}
    if len(words) % 2 or not words:
        allowed = "quantities and resources, such as 8 nvidia.com/gpu 64 cpu 512Gi memory, then on and a flavor"
        raise _WrongError("needs", f"{' '.join(words)!r} is not a request", allowed)
    requests: Counter[str] = Counter()
    for text, name in zip(words[::2], words[1::2], strict=True):
        resource = name
        if name not in covered and name in flavors:
            resource = next((other for other in flavors[name] if other not in ("cpu", "memory", "pods")), name)
            wanted.add(name)
        try:
            requests[resource] += amount(resource, text)
        except ValueError as error:
            raise _WrongError("needs", str(error), "a quantity, such as 8, 500m or 64Gi") from None
    return requests, wanted


def _transformed(requests: Mapping[str, int], counting: Counting) -> dict[str, int]:
    """Return what Kueue counts of a request: without excluded resources, and with transformations."""
    found: Counter[str] = Counter()
    for name, number in requests.items():
        if name.startswith(counting.excluded or ("\0",)):
            continue
        keeps, outputs = counting.transformations.get(name, (True, {}))
        if keeps:
            found[name] += number
        for output, quantity in outputs.items():
            found[output] += math.ceil(number * amount(output, quantity) / units(name))
    return found


def _moment(text: str) -> float:
    """Return seconds: since 1970, or since whatever a trace counts from."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
        with suppress(ValueError):
            moment = datetime.fromisoformat(text)
            seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    if not abs(seconds) <= MOST_MOMENT:  # nor nan
        raise _WrongError("submitted", f"{text!r} is not a moment", "2026-11-01T09:30:00Z, or a number of seconds")
    return seconds


def _seconds(column: str, text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not LEAST_SECONDS <= seconds <= MOST_SECONDS:
        allowed = f"seconds, at least {LEAST_SECONDS} and up to ten years"
        raise _WrongError(column, f"{text!r} is not a time", allowed)
    return seconds


def _priority(text: str, known: Mapping[str, int]) -> int:
    if not text:
        return 0
    if text in known:
        return known[text]
    if _NUMBER.fullmatch(text) and abs(int(text)) <= 1_000_000_000:
        return int(text)
    allowed = ", ".join([*known, "a number"])
    raise _WrongError("priority", f"{text!r} is not a priority", allowed, find_nearest(text, known))


def trace_text(rows: Iterable[Mapping[str, object]]) -> str:
    """Return rows as a trace; all have the columns of the first."""
    every = list(rows)
    columns = [name for name in COLUMNS if any(row.get(name) not in (None, "") for row in every)] or list(REQUIRED)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([" ".join(str(row.get(name, "")).split()) for name in columns] for row in every)
    return text.getvalue()


class JobKind(NamedTuple):
    """A kind of job that a team submits again and again; ``seconds`` is the median of its run."""

    team: str
    needs: str
    per_week: float
    seconds: float
    priority: str = ""


def invented(kinds: Collection[JobKind], days: int, seed: int) -> Iterator[dict[str, object]]:
    """Yield rows of an invented trace in the order of time: arrivals at random, twice as many between 8 and 20 o'clock.

    Run times are log-normal around the median: a tenth runs 3.6 times as long or longer.
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
            "submitted": moment, "team": kind.team, "needs": kind.needs, "seconds": seconds,
            "priority": kind.priority, "job": f"{kind.team}-{number}",
        }  # fmt: skip
