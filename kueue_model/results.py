"""Results of a simulation: figures for each team and flavor, as sections of a report, and as text, Markdown and JSON.

Figures of several runs are medians, with minimum and maximum. A wait is the time from a job's submission to its first
machines. Slowdown is the time from submission to end divided by the run time.
"""

from __future__ import annotations

import statistics
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from kueue_model.cluster import Cluster
from kueue_model.machines import CapacityTimes
from kueue_model.replay import EvictionKey, Played, Run, play
from kueue_model.traces import Trace
from training_platform.checks.reports.tables import Fullness, ReportRow, ReportSection

ALL: Final = "all flavors"
DAY: Final = 86_400.0
HOUR: Final = 3600.0
POINTS: Final = 240  # of a plot
PARTS: Final = 30  # of a trace: a plot of waits has a median for each
LEFT_OUT: Final = (
    "topologies, the placement of pods on VMs, admission checks, the reuse of VMs after a job, and failures that "
    "affect several jobs"
)
Key = tuple[str, ...]
Row = dict[str, float | None]
Rows = Mapping[Any, Row]
"""The rows of a table, keyed by the values of its key columns."""


def duration(seconds: float) -> str:
    """Return a duration as text: ``40 min``, ``9.5 h``, ``3.0 d``."""
    if abs(seconds) < 90:
        return f"{seconds:.0f} s"
    if abs(seconds) < 90 * 60:
        return f"{seconds / 60:.0f} min"
    if abs(seconds) < 2 * DAY:
        return f"{seconds / HOUR:.1f} h"
    return f"{seconds / DAY:.1f} d"


class TeamFlavor(NamedTuple):
    """The key of the jobs of one team that use one flavor, or use any flavor if it is ``ALL``."""

    cluster: str
    team: str
    flavor: str


class ClusterFlavor(NamedTuple):
    """The key of a flavor in a cluster."""

    cluster: str
    flavor: str
    provisioning_model: str


class TeamReason(NamedTuple):
    """The key of a team's jobs that never start or never end for the same reason."""

    cluster: str
    team: str
    why: str


class TeamEvictions(NamedTuple):
    """The key of evictions: the team that evicts, the evicted team, the flavors, and the setting that allows them."""

    cluster: str
    team: str
    evicts: str
    on: str
    by_the_setting: str


class Table(NamedTuple):
    """A table: the names of its key columns, and the title and format of each figure, keyed by its name in JSON."""

    title: str
    keys: tuple[str, ...]
    figures: Mapping[str, tuple[str, Callable[[float], str]]]
    subject: int = 1
    unit: str = ""
    note: str = ""
    state: Fullness = "fits"


_whole: Final = "{:,.0f}".format
TABLES: Final[Mapping[str, Table]] = {
    "waits": Table(
        "waits", TeamFlavor._fields,
        figures={
            "jobs": ("jobs", _whole), "median_seconds": ("median wait", duration),
            "p90_seconds": ("90th percentile", duration), "longest_seconds": ("longest", duration),
            "slowdown": ("slowdown", "{:.2f}".format),
        },
        subject=2, unit="from submission to the first machines",
    ),
    "use": Table(
        "chip-hours", TeamFlavor._fields,
        figures={
            "held_chip_hours": ("held", _whole), "borrowed_chip_hours": ("borrowed", _whole),
            "lent_chip_hours": ("lent", _whole), "lost_by_eviction_chip_hours": ("lost to evictions", _whole),
            "lost_by_interruption_chip_hours": ("lost to interruptions", _whole),
        },
        subject=2, note="jobs without a checkpoint column are assumed to save a checkpoint every hour",
    ),
    "flavors": Table(
        "flavors", ClusterFlavor._fields,
        figures={
            "chips": ("chips", _whole), "utilisation": ("in use", "{:.0%}".format),
            "idle_reserved_chip_hours": ("idle reserved chip-hours", _whole), "usd_a_day": ("USD a day", _whole),
        },
        note="average per day, from the first submission to the last end, at list prices without discounts (- if "
            "unknown); a reservation is charged all day, other machines only while jobs have them",
    ),
    "never": Table(
        "jobs that never start or end", TeamReason._fields, figures={"jobs": ("jobs", _whole)}, state="over"
    ),
    "loops": Table(
        "preemption loops", TeamEvictions._fields, figures={"evictions": ("evictions", _whole)}, state="over",
        note="jobs that evict each other repeatedly at one time; the simulation stops them after a few rounds, but "
            "in a cluster they would continue endlessly",
    ),
}  # fmt: skip


@dataclass
class Figures:
    """The figures of one run in all clusters: the rows of ``TABLES``, and the evictions that are not part of loops.

    ``levels`` contains the chips in use at ``POINTS`` regular times of the run, keyed like the table of flavors.
    ``courses`` contains, for each cluster and team, the median wait in hours of the jobs in each of the ``PARTS`` of
    the trace, or None for a part without jobs. ``unpriced`` contains the flavors in use that have no price.
    """

    days: float
    waits: dict[TeamFlavor, Row] = field(default_factory=dict)
    use: dict[TeamFlavor, Row] = field(default_factory=dict)
    flavors: dict[ClusterFlavor, Row] = field(default_factory=dict)
    never: dict[TeamReason, Row] = field(default_factory=dict)
    loops: dict[TeamEvictions, Row] = field(default_factory=dict)
    evictions: dict[TeamEvictions, Row] = field(default_factory=dict)
    levels: dict[ClusterFlavor, list[float]] = field(default_factory=dict)
    courses: dict[tuple[str, str], list[float | None]] = field(default_factory=dict)
    loop_moments: int = 0
    endless: int = 0
    unpriced: set[str] = field(default_factory=set)

    @property
    def rows(self) -> dict[str, Rows]:
        """The rows of each table, keyed by the table's name."""
        return {
            "waits": self.waits,
            "use": self.use,
            "flavors": self.flavors,
            "never": self.never,
            "loops": self.loops,
            "evictions": self.evictions,
        }

    @property
    def usd(self) -> float:
        """The cost in USD per day."""
        return sum(row["usd_a_day"] or 0 for row in self.flavors.values())

    @property
    def started_jobs(self) -> float:
        """The number of jobs that start."""
        return sum(row["jobs"] or 0 for key, row in self.waits.items() if key.flavor == ALL)

    @property
    def never_ending_jobs(self) -> float:
        """The number of jobs that never start or end."""
        return sum(row["jobs"] or 0 for row in self.never.values())

    def wait(self, cluster: str, team: str) -> float | None:
        """Return the 90th percentile of the waits of a team's jobs in a cluster, in seconds."""
        return self.waits.get(TeamFlavor(cluster, team, flavor=ALL), {}).get("p90_seconds")


def play_trace(clusters: Sequence[Cluster], trace: Trace, times: Mapping[str, CapacityTimes], seed: int) -> Figures:
    """Simulate a trace in every cluster. The same seed gives the same figures."""
    days = max(trace.jobs[-1].submitted / DAY, 1 / 24)
    played: list[Played] = []
    for cluster in clusters:
        jobs = [job for job in trace.jobs if job.cluster == cluster.name]
        changes = [change for change in trace.changes if change.cluster == cluster.name]
        played.append(play(cluster, jobs, times, seed, changes))
    return figures(played, days)


def figures(played: Sequence[Played], days: float) -> Figures:
    """Return the figures of one run. ``days`` is the time from the first submission to the last."""
    run_figures = Figures(days)
    span = max([1.0, *(part.seconds for part in played)])
    for part in played:
        name = part.cluster.name
        run_figures.waits.update(_waits(name, part.runs))
        run_figures.courses.update(_courses(name, part.runs, days))
        for (team, flavor), use in part.use.items():
            chip_hour = HOUR * part.cluster.flavors[flavor].unit
            run_figures.use[TeamFlavor(name, team, flavor=flavor)] = {
                "held_chip_hours": use.held / chip_hour,
                "borrowed_chip_hours": use.borrowed / chip_hour,
                "lent_chip_hours": use.lent / chip_hour,
                "ran_chip_hours": use.ran / chip_hour,
                "lost_by_eviction_chip_hours": use.lost_by_eviction / chip_hour,
                "lost_by_interruption_chip_hours": use.lost_by_interruption / chip_hour,
            }
        for flavor in part.levels:
            _add_flavor(run_figures, part, flavor, span)
        run_figures.unpriced -= {
            machines.name for machines in part.cluster.flavors.values() if machines.usd is not None
        }
        never = Counter(TeamReason(name, run.of.team, why=run.why) for run in part.runs if run.why)
        run_figures.never.update({key: {"jobs": count} for key, count in never.items()})
        run_figures.loops.update(_evictions(part.cluster, part.loops))
        run_figures.evictions.update(_evictions(part.cluster, part.evictions))
        run_figures.loop_moments += part.loop_moments
        run_figures.endless += part.endless
    return run_figures


def _evictions(cluster: Cluster, counts: Mapping[EvictionKey, int]) -> Iterator[tuple[TeamEvictions, Row]]:
    for key, count in counts.items():
        setting = cluster.settings[key.reason]
        yield (
            TeamEvictions(cluster.name, key.team, evicts=key.victim, on=key.flavors, by_the_setting=setting),
            {"evictions": count},
        )


def _waits(cluster: str, runs: Iterable[Run]) -> Iterator[tuple[TeamFlavor, Row]]:
    groups: dict[TeamFlavor, list[Run]] = {}
    for run in runs:
        if not run.why:
            for flavor in (ALL, run.flavors):
                groups.setdefault(TeamFlavor(cluster, run.of.team, flavor=flavor), []).append(run)
    for key, group in groups.items():
        waits = sorted(run.started - run.of.submitted for run in group)
        nine_of_ten = waits[-(-len(waits) * 9 // 10) - 1]  # the smallest that nine of ten do not exceed
        slowdown = statistics.median((run.ended - run.of.submitted) / run.of.seconds for run in group)
        yield (
            key,
            {
                "jobs": len(group),
                "median_seconds": statistics.median(waits),
                "p90_seconds": nine_of_ten,
                "longest_seconds": waits[-1],
                "slowdown": slowdown,
            },
        )


def _courses(cluster: str, runs: Iterable[Run], days: float) -> Iterator[tuple[tuple[str, str], list[float | None]]]:
    parts: dict[str, list[list[float]]] = {}
    for run in runs:
        if not run.why:
            index = min(PARTS - 1, int(run.of.submitted / (days * DAY) * PARTS))
            waits = parts.setdefault(run.of.team, [[] for _ in range(PARTS)])[index]
            waits.append((run.started - run.of.submitted) / HOUR)
    for team, rows in parts.items():
        yield (cluster, team), [statistics.median(waits) if waits else None for waits in rows]


def _add_flavor(run_figures: Figures, part: Played, flavor: str, span: float) -> None:
    machines = part.cluster.flavors[flavor]
    levels = _levels(part, flavor, span)
    held = sum(levels) * span / POINTS
    chips = machines.chips / machines.unit
    ran = sum(use.ran for (_, name), use in part.use.items() if name == flavor) / machines.unit
    is_reserved = machines.capacity == "reservation"
    chip_hours_a_day = chips * 24 if is_reserved else ran / HOUR / (span / DAY)
    key = ClusterFlavor(part.cluster.name, flavor, provisioning_model=machines.capacity)
    run_figures.levels[key] = levels
    flavors = part.cluster.flavors.values()
    has_price = any(other.usd is not None for other in flavors if other.name == machines.name)
    if chip_hours_a_day and not has_price:
        run_figures.unpriced.add(machines.name)
    run_figures.flavors[key] = {
        "chips": chips,
        "utilisation": held / span / chips if chips else 0.0,
        "idle_reserved_chip_hours": max(0.0, chips * span - held) / HOUR if is_reserved else None,
        "usd_a_day": None if machines.usd is None else chip_hours_a_day * machines.usd,
    }


def _levels(part: Played, flavor: str, span: float) -> list[float]:
    """Return the average number of chips in use in each of ``POINTS`` equal intervals of a run."""
    unit = part.cluster.flavors[flavor].unit
    moments, totals = part.levels[flavor]
    width = span / POINTS
    levels = [0.0] * POINTS
    for start, end, total in zip(moments, [*moments[1:], span], totals, strict=True):
        if not total:
            continue
        for index in range(int(start / width), min(POINTS - 1, int(end / width)) + 1):
            seconds = min(end, (index + 1) * width) - max(start, index * width)
            levels[index] += total / unit * max(0.0, seconds) / width
    return levels


@dataclass
class Result:
    """The runs of a simulation, and the runs of the base it is compared with, if any. ``ref`` is the base's name.

    If ``has_resources`` is set, flavors have quota of any resource, such as CPU and memory, not only of chips.
    """

    runs: Sequence[Figures]
    base: Sequence[Figures] = ()
    ref: str = ""
    notes: Sequence[str] = ()
    has_resources: bool = False

    def words(self, title: str) -> str:
        """Return a title. If flavors have quota of any resource, replace "chips" in it by "quota"."""
        if not self.has_resources:
            return title
        return title.replace("chip-hours", "resource-hours").replace("chips", "quota").replace("Chips", "Quota")

    @property
    def remarks(self) -> tuple[str, ...]:
        """Remarks: the number of runs if there are several, the notes, and what the simulator does not model."""
        remarks = [*self.notes, f"Left out: {LEFT_OUT}."]
        sides = [side for side in (self.runs, self.base) if len(side) > 1]
        if sides:
            are_equal = all(run.rows == side[0].rows for side in sides for run in side)
            spread = "and all runs are equal" if are_equal else "with minimum and maximum in parentheses if they differ"
            remarks.insert(0, f"Each figure is the median of {len(self.runs)} runs, {spread}.")
        return tuple(remarks)


def median(values: Iterable[float | None]) -> float | None:
    """Return the median of the values that are not None, or None if there are none."""
    numbers = [value for value in values if value is not None]
    return statistics.median(numbers) if numbers else None


def sections(result: Result) -> Iterator[ReportSection]:
    """Yield the sections of a report that have rows. Rows that contain only zeros are left out."""
    for name, table in TABLES.items():
        runs = [run.rows[name] for run in result.runs]
        base = [run.rows[name] for run in result.base]
        rows = [
            ReportRow((*key, *_cells(table, key, runs, base)), table.state)
            for key in sorted(_shown_keys(runs + base), key=lambda key: [part for part in key if part != ALL])
        ]
        if rows:
            titles = [f">{result.words(title)}" for title, _ in table.figures.values()]
            yield ReportSection(
                title=result.words(table.title),
                unit=table.unit,
                columns=(*(key.replace("_", " ") for key in table.keys), *titles),
                rows=rows,
                subject=table.subject,
                note=table.note,
            )


def _shown_keys(runs: Iterable[Rows]) -> set[Key]:
    """Return the keys of the rows to show.

    Rows that contain only zeros are left out. If a team uses only one flavor, its row for this flavor is left out,
    since the row for all flavors contains the same.
    """
    keys: set[Key] = set()
    for rows in runs:
        for key, row in rows.items():
            if any(value for figure, value in row.items() if figure != "chips"):
                keys.add(key)
    rows_of_team = Counter(key[:-1] for key in keys)
    return {key for key in keys if (*key[:-1], ALL) not in keys or key[-1] == ALL or rows_of_team[key[:-1]] > 2}


def _cells(table: Table, key: Key, runs: Sequence[Rows], base: Sequence[Rows]) -> Iterator[str]:
    """Yield each figure of a row with its minimum and maximum, preceded by its value in the base."""
    for figure, (_, show) in table.figures.items():
        values = _values(table, key, figure, runs)
        text = show(statistics.median(values)) if values else "-"
        if len(values) > 1 and show(min(values)) != show(max(values)):
            text += f" ({show(min(values))} to {show(max(values))})"
        if base:
            base_values = _values(table, key, figure, base)
            base_text = show(statistics.median(base_values)) if base_values else "-"
            text = text if base_text == text else f"{base_text} → {text}"
        yield text


def _values(table: Table, key: Key, figure: str, runs: Iterable[Rows]) -> list[float]:
    """Return a figure of several runs. In tables of counts, a run without this row counts as 0; else it is skipped."""
    missing = 0 if table.state == "over" else None
    values = [rows.get(key, {}).get(figure, missing) for rows in runs]
    return [value for value in values if value is not None]


def headlines(result: Result) -> Iterator[str]:
    """Yield sentences about the effects of a change, or about the runs if there is no base."""
    usd = _median_usd(result.runs)
    base_usd = _median_usd(result.base)
    if result.base:
        yield from _changed_waits(result)
        yield from _changed_cost(usd, base_usd)
    else:
        jobs = median(run.started_jobs for run in result.runs) or 0
        yield f"Jobs that start: {jobs:,.0f}."
        if usd:
            yield f"Reservations, and other machines with accelerators while jobs use them, cost ${usd:,.0f} a day."
    if usd or base_usd:
        unpriced = sorted(set().union(*(run.unpriced for run in (*result.runs, *result.base))))
        if unpriced:
            yield f"Not included, because no price is known: {', '.join(unpriced)}."
    never = median(run.never_ending_jobs for run in result.runs)
    if never:
        yield f"Jobs that never start or end: {never:,.0f}."
    loops = median(run.loop_moments for run in result.runs)
    if loops:
        yield f"Preemption loops that were stopped: {loops:,.0f}."


def _median_usd(runs: Iterable[Figures]) -> float:
    return median(run.usd for run in runs) or 0.0


def _changed_waits(result: Result) -> Iterator[str]:
    """Yield a sentence for each team whose 90th percentile differs from the base by at least a minute and 5 %."""
    teams = {(key.cluster, key.team) for run in result.base for key in run.waits}
    for cluster, team in sorted(teams):
        earlier = median(run.wait(cluster, team) for run in result.base)
        current = median(run.wait(cluster, team) for run in result.runs)
        if earlier is None or current is None:
            continue
        if abs(current - earlier) >= max(60.0, 0.05 * max(earlier, current)):
            yield (
                f"Nine of ten jobs of {team} in {cluster} wait {duration(current)} at most; before, "
                f"{duration(earlier)}."
            )


def _changed_cost(usd: float, base_usd: float) -> Iterator[str]:
    change = usd - base_usd
    if not usd and not base_usd:
        return
    if abs(change) < 1:
        yield "The machines cost the same."
    elif change > 0:
        yield f"The machines cost ${change:,.0f} a day more."
    else:
        yield f"The machines cost ${-change:,.0f} a day less."


def document(result: Result) -> dict[str, Any]:
    """Return a result as JSON data: every figure of every run, and of the base."""
    body: dict[str, Any] = {
        "headlines": list(headlines(result)),
        "notes": list(result.notes),
        "left_out": LEFT_OUT,
        "runs": [_run_document(run) for run in result.runs],
    }
    if result.base:
        body["base"] = {"ref": result.ref, "runs": [_run_document(run) for run in result.base]}
    return body


def _run_document(run: Figures) -> dict[str, Any]:
    body: dict[str, Any] = {"days": run.days, "loop_moments": run.loop_moments, "endless": run.endless}
    for table, rows in run.rows.items():
        names = TABLES[table].keys if table in TABLES else TeamEvictions._fields
        body[table] = [{**dict(zip(names, key, strict=True)), **row} for key, row in rows.items()]
    return body


def text(result: Result, width: int) -> str:
    """Return a result as text without colours, wrapped to a width."""
    from training_platform.checks.reports.terminal_tables import section_lines  # noqa: PLC0415 # loads rich

    tables = [section_lines(section, width) for section in sections(result)]
    sentences = (*headlines(result), *result.remarks)
    folded = [textwrap.fill(sentence, width, break_on_hyphens=False) for sentence in sentences]
    return "\n".join([*tables, *folded]) + "\n"


def markdown(result: Result) -> str:
    """Return a result as Markdown for a pull request."""
    from training_platform.checks.reports.markdown_tables import escaped, section_table  # noqa: PLC0415 # used only here

    title = f"Effect of this change on waits, since {escaped(result.ref)}" if result.base else "Simulated queues"
    parts = [f"### {title}", "\n".join(f"- {escaped(line)}" for line in headlines(result))]
    for section in sections(result):
        unit = f" ({section.unit})" if section.unit else ""
        body = [section_table(section)]
        if section.note:
            body.append(section.note)
        parts += [f"<details><summary>{section.title}{unit}</summary>", *body, "</details>"]
    return "\n\n".join([*parts, escaped(" ".join(result.remarks))]) + "\n"
