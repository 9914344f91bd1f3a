"""Results of a simulation: figures by team and flavor, as sections of a report, and as text, Markdown and JSON.

Figures of several runs are medians, with minimum and maximum. A wait is the time from a job's submission to its first
machines; slowdown is the time from submission to end divided by the run time.
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
    "topologies, which VM has free resources, admission checks, VMs that are used again after a job, and failures that "
    "several jobs share"
)
Key = tuple[str, ...]
Row = dict[str, float | None]


def duration(seconds: float) -> str:
    """Return a time as text: ``40 min``, ``9.5 h``, ``3.0 d``."""
    if abs(seconds) < 90:
        return f"{seconds:.0f} s"
    if abs(seconds) < 90 * 60:
        return f"{seconds / 60:.0f} min"
    if abs(seconds) < 2 * DAY:
        return f"{seconds / HOUR:.1f} h"
    return f"{seconds / DAY:.1f} d"


class Table(NamedTuple):
    """A table: the names of its key columns, and the titles and formats of its figures by their names in JSON."""

    title: str
    keys: tuple[str, ...]
    figures: Mapping[str, tuple[str, Callable[[float], str]]]
    subject: int = 1
    unit: str = ""
    note: str = ""
    state: Fullness = "fits"


_whole: Final = "{:,.0f}".format
_EVICTIONS: Final = ("cluster", "team", "evicts", "on", "by the setting")
TABLES: Final[Mapping[str, Table]] = {
    "waits": Table(
        "waits", ("cluster", "team", "flavor"),
        {
            "jobs": ("jobs", _whole), "median_seconds": ("median wait", duration),
            "p90_seconds": ("90th percentile", duration), "longest_seconds": ("longest", duration),
            "slowdown": ("slowdown", "{:.2f}".format),
        },
        subject=2, unit="from submission to the first machines",
    ),
    "use": Table(
        "chip-hours", ("cluster", "team", "flavor"),
        {
            "held_chip_hours": ("held", _whole), "borrowed_chip_hours": ("borrowed", _whole),
            "lent_chip_hours": ("lent", _whole), "lost_by_eviction_chip_hours": ("lost to evictions", _whole),
            "lost_by_interruption_chip_hours": ("lost to interruptions", _whole),
        },
        subject=2, note="jobs without a checkpoint column are assumed to save each hour",
    ),
    "flavors": Table(
        "flavors", ("cluster", "flavor", "provisioning model"),
        {
            "chips": ("chips", _whole), "utilisation": ("in use", "{:.0%}".format),
            "idle_reserved_chip_hours": ("idle reserved chip-hours", _whole), "usd_a_day": ("USD a day", _whole),
        },
        note="list prices without discounts, - if unknown; a reservation costs the whole day, other machines only the "
        "hours in which jobs have them; a day of the time from the first submission to the last end",
    ),
    "never": Table(
        "jobs that never start or end", ("cluster", "team", "why"), {"jobs": ("jobs", _whole)}, state="over"
    ),
    "loops": Table(
        "preemption loops", _EVICTIONS, {"evictions": ("evictions", _whole)}, state="over",
        note="jobs that evict each other repeatedly at one moment; cut after a few rounds, endless in a cluster",
    ),
}  # fmt: skip


@dataclass
class Figures:
    """The figures of one run over all clusters: rows of ``TABLES`` by their keys.

    ``levels`` has the chips in use at ``POINTS`` regular moments of the run, by the keys of the table of flavors.
    ``courses`` has the median wait in hours of the jobs in each of the ``PARTS`` of the trace, by cluster and team, or
    None for a part without jobs. ``unpriced`` has the flavors in use without a price.
    """

    days: float
    rows: dict[str, dict[Key, Row]] = field(default_factory=lambda: {name: {} for name in (*TABLES, "evictions")})
    levels: dict[Key, list[float]] = field(default_factory=dict)
    courses: dict[Key, list[float | None]] = field(default_factory=dict)
    loop_moments: int = 0
    endless: int = 0
    unpriced: set[str] = field(default_factory=set)

    def usd(self) -> float:
        """Return the cost in USD a day."""
        return self.sum("flavors", "usd_a_day")

    def sum(self, table: str, figure: str) -> float:
        """Return the sum of a figure over a table; waits count only the rows of all flavors."""
        total = 0.0
        for key, row in self.rows[table].items():
            if table != "waits" or _is_of_all_flavors(key):
                total += row[figure] or 0
        return total

    def wait(self, key: Key, figure: str) -> float | None:
        """Return a figure of the waits of a cluster's team."""
        return self.rows["waits"].get((*key, ALL), {}).get(figure)


def _is_of_all_flavors(key: Key) -> bool:
    """Whether a row of waits covers all flavors."""
    _, _, flavor = key
    return flavor == ALL


def play_trace(clusters: Sequence[Cluster], trace: Trace, times: Mapping[str, CapacityTimes], seed: int) -> Figures:
    """Play a trace in every cluster; a seed repeats a run."""
    days = max(trace.jobs[-1].submitted / DAY, 1 / 24)
    played: list[Played] = []
    for cluster in clusters:
        jobs = [job for job in trace.jobs if job.cluster == cluster.name]
        changes = [change for change in trace.changes if change.cluster == cluster.name]
        played.append(play(cluster, jobs, times, seed, changes))
    return figures(played, days)


def figures(played: Sequence[Played], days: float) -> Figures:
    """Return the figures of one run; ``days`` is the time from the first submission to the last."""
    run_figures = Figures(days)
    rows = run_figures.rows
    span = max([1.0, *(part.seconds for part in played)])
    for part in played:
        name = part.cluster.name
        rows["waits"].update(_waits(name, part.runs))
        run_figures.courses.update(_courses(name, part.runs, days))
        for (team, flavor), use in part.use.items():
            chip_hour = HOUR * part.cluster.flavors[flavor].unit
            rows["use"][name, team, flavor] = {
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
        never = Counter((name, run.of.team, run.why) for run in part.runs if run.why)
        rows["never"].update({key: {"jobs": count} for key, count in never.items()})
        rows["loops"].update(_evictions(part.cluster, part.loops))
        rows["evictions"].update(_evictions(part.cluster, part.evictions))
        run_figures.loop_moments += part.loop_moments
        run_figures.endless += part.endless
    return run_figures


def _evictions(cluster: Cluster, counts: Mapping[EvictionKey, int]) -> Iterator[tuple[Key, Row]]:
    for key, count in counts.items():
        yield (cluster.name, key.team, key.victim, key.flavors, cluster.settings[key.reason]), {"evictions": count}


def _waits(cluster: str, runs: Iterable[Run]) -> Iterator[tuple[Key, Row]]:
    groups: dict[Key, list[Run]] = {}
    for run in runs:
        if not run.why:
            for flavor in (ALL, run.flavors):
                groups.setdefault((cluster, run.of.team, flavor), []).append(run)
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


def _courses(cluster: str, runs: Iterable[Run], days: float) -> Iterator[tuple[Key, list[float | None]]]:
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
    key = (part.cluster.name, flavor, machines.capacity)
    run_figures.levels[key] = levels
    flavors = part.cluster.flavors.values()
    has_price = any(other.usd is not None for other in flavors if other.name == machines.name)
    if chip_hours_a_day and not has_price:
        run_figures.unpriced.add(machines.name)
    run_figures.rows["flavors"][key] = {
        "chips": chips,
        "utilisation": held / span / chips if chips else 0.0,
        "idle_reserved_chip_hours": max(0.0, chips * span - held) / HOUR if is_reserved else None,
        "usd_a_day": None if machines.usd is None else chip_hours_a_day * machines.usd,
    }


def _levels(part: Played, flavor: str, span: float) -> list[float]:
    """Return the average chips in use in each of ``POINTS`` equal parts of a run."""
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
    """The runs of a simulation, and of its base, if any; ``ref`` is the base's name.

    With ``has_resources``, flavors have quota of any resource, such as CPU and memory, not only of chips.
    """

    runs: Sequence[Figures]
    base: Sequence[Figures] = ()
    ref: str = ""
    notes: Sequence[str] = ()
    has_resources: bool = False

    def words(self, title: str) -> str:
        """Return a title with quota in place of chips, if flavors have quota of any resource."""
        if not self.has_resources:
            return title
        return title.replace("chip-hours", "resource-hours").replace("chips", "quota").replace("Chips", "Quota")

    @property
    def remarks(self) -> tuple[str, ...]:
        """The number of runs if there are several, the notes, and what the simulator leaves out."""
        remarks = [*self.notes, f"Left out: {LEFT_OUT}."]
        sides = [side for side in (self.runs, self.base) if len(side) > 1]
        if sides:
            are_equal = all(run.rows == side[0].rows for side in sides for run in side)
            spread = "and all runs are equal" if are_equal else "with minimum and maximum in brackets if they differ"
            remarks.insert(0, f"Each figure is the median of {len(self.runs)} runs, {spread}.")
        return tuple(remarks)


def median(values: Iterable[float | None]) -> float | None:
    """Return the median of the values, ignoring None, or None if no value is left."""
    numbers = [value for value in values if value is not None]
    return statistics.median(numbers) if numbers else None


def sections(result: Result) -> Iterator[ReportSection]:
    """Yield the sections of a report with rows; rows of zeros are left out."""
    for name, table in TABLES.items():
        shown_keys = set()
        for run in (*result.runs, *result.base):
            for key, row in run.rows[name].items():
                if any(value for figure, value in row.items() if figure != "chips"):
                    shown_keys.add(key)
        if name == "waits":  # the row of a team's only flavor repeats the one of all flavors
            rows_of_team = Counter((cluster, team) for cluster, team, _ in shown_keys)
            shown_keys = {
                (cluster, team, flavor)
                for cluster, team, flavor in shown_keys
                if flavor == ALL or rows_of_team[cluster, team] > 2
            }
        keys = sorted(shown_keys, key=lambda key: [part for part in key if part != ALL])
        columns = (*table.keys, *(f">{result.words(title)}" for title, _ in table.figures.values()))
        rows = [
            ReportRow((*key, *(_shown(result, name, key, figure) for figure in table.figures)), table.state)
            for key in keys
        ]
        if rows:
            yield ReportSection(
                title=result.words(table.title),
                unit=table.unit,
                columns=columns,
                rows=rows,
                subject=table.subject,
                note=table.note,
            )


def _shown(result: Result, name: str, key: Key, figure: str) -> str:
    """Return a figure with its spread, preceded by its value in the base."""
    _, show = TABLES[name].figures[figure]
    missing = 0 if name in ("never", "loops") else None  # these count rows

    def values(runs: Sequence[Figures]) -> list[float]:
        figures_of_runs = (run.rows[name].get(key, {}).get(figure, missing) for run in runs)
        return [value for value in figures_of_runs if value is not None]

    def shown_median(numbers: Sequence[float]) -> str:
        return show(statistics.median(numbers)) if numbers else "-"

    current = values(result.runs)
    text = shown_median(current)
    if len(current) > 1 and show(min(current)) != show(max(current)):
        text += f" ({show(min(current))} to {show(max(current))})"
    if not result.base:
        return text
    base_text = shown_median(values(result.base))
    return text if base_text == text else f"{base_text} → {text}"


def headlines(result: Result) -> Iterator[str]:
    """Yield sentences about the effects of a change, or about the runs if there is no base."""
    usd = _median_of(Figures.usd, result.runs)
    if result.base:
        yield from _changed_waits(result)
        yield from _changed_cost(usd, _median_of(Figures.usd, result.base))
    else:
        jobs = _median_of(lambda run: run.sum("waits", "jobs"), result.runs)
        yield f"Jobs that start: {jobs:,.0f}."
        if usd:
            yield f"Reservations, and other machines with accelerators while jobs have them, cost ${usd:,.0f} a day."
    if usd or _median_of(Figures.usd, result.base):
        unpriced = sorted(set().union(*(run.unpriced for run in (*result.runs, *result.base))))
        if unpriced:
            yield f"Not counted, since they have no price: {', '.join(unpriced)}."
    never = _median_of(lambda run: run.sum("never", "jobs"), result.runs)
    if never:
        yield f"Jobs that never start or end: {never:,.0f}."
    loops = _median_of(lambda run: run.loop_moments, result.runs)
    if loops:
        yield f"Preemption loops that were cut: {loops:,.0f}."


def _median_of(read: Callable[[Figures], float | None], runs: Sequence[Figures]) -> float:
    return median(map(read, runs)) or 0.0


def _changed_waits(result: Result) -> Iterator[str]:
    """Yield a sentence for each team whose 90th percentile differs from the base by a minute and 5 %."""
    keys = {key for run in result.base for key in run.rows["waits"] if _is_of_all_flavors(key)}
    for cluster, team, _ in sorted(keys):
        earlier = median(run.wait((cluster, team), "p90_seconds") for run in result.base)
        current = median(run.wait((cluster, team), "p90_seconds") for run in result.runs)
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
    """Return a result for programs: every figure of every run, and of the base."""
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
        names = _names(table)
        body[table] = [{**dict(zip(names, key, strict=True)), **row} for key, row in rows.items()]
    return body


def _names(table: str) -> list[str]:
    keys = TABLES[table].keys if table in TABLES else _EVICTIONS
    return [name.replace(" ", "_") for name in keys]


def text(result: Result, width: int) -> str:
    """Return a result as text without colours, folded to a width."""
    from training_platform.checks.reports.terminal_tables import section_lines  # noqa: PLC0415 # loads rich

    tables = [section_lines(section, width) for section in sections(result)]
    sentences = (*headlines(result), *result.remarks)
    folded = [textwrap.fill(sentence, width, break_on_hyphens=False) for sentence in sentences]
    return "\n".join([*tables, *folded]) + "\n"


def markdown(result: Result) -> str:
    """Return a result as Markdown, for a pull request."""
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
