"""What a simulation says: figures by team and flavor, sections of a report, and one page with plots.

Figures of several runs are medians, with the least and the most behind them. Waits are from a job's submission to its
first machines; slowdown is the time from submission to end by the seconds that the job needs.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from training_platform.checks.reports.sections import ReportRow, ReportSection
from training_platform.config.model.capacity import Capacity
from training_platform.simulate.machines import CapacityTimes
from training_platform.simulate.replay import NEVER, Played, Run, Use, play
from training_platform.simulate.stacks import Cluster
from training_platform.simulate.traces import Trace

ALL: Final = "all"
DAY: Final = 86_400.0
POINTS: Final = 240  # of a plot
LEFT_OUT: Final = (
    "topologies, admission checks, VMs that are used again after a job, and failures that several jobs share"
)
_HOURS: Final = 3600.0


class Waits(NamedTuple):
    """Waits of the jobs of a team, of those that started on one flavor or of all; in seconds."""

    jobs: int
    median: float
    p90: float
    longest: float
    slowdown: float


@dataclass
class Figures:
    """The figures of one run over all clusters; keys are cluster, team and flavor, or cluster and flavor.

    ``usd`` are dollars a day by cluster and flavor, of which ``unpriced`` have none. ``levels`` are chips in use at
    even moments of the run.
    """

    days: float
    waits: dict[tuple[str, str, str], Waits] = field(default_factory=dict)
    use: dict[tuple[str, str, str], Use] = field(default_factory=dict)
    never: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    usd: dict[tuple[str, str], float] = field(default_factory=dict)
    unpriced: set[str] = field(default_factory=set)
    utilisation: dict[tuple[str, str], float] = field(default_factory=dict)
    idle_hours: dict[tuple[str, str], float] = field(default_factory=dict)
    capacity: dict[tuple[str, str], tuple[str, int]] = field(default_factory=dict)
    levels: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    loops: Counter[tuple[str, str, str, str, str]] = field(default_factory=Counter)
    loop_moments: int = 0
    evictions: Counter[tuple[str, str, str, str]] = field(default_factory=Counter)


def play_trace(
    clusters: Sequence[Cluster], trace: Trace, times: Mapping[Capacity, CapacityTimes], seeds: Iterable[int]
) -> list[Figures]:
    """Play a trace that has jobs, in every cluster and once for each seed."""
    days = max(trace.jobs[-1].submitted / DAY, 1 / 24)
    jobs = {cluster.name: [job for job in trace.jobs if job.cluster == cluster.name] for cluster in clusters}
    return [figures([play(part, jobs[part.name], times, seed) for part in clusters], days) for seed in seeds]


def figures(played: Iterable[Played], days: float) -> Figures:
    """Return the figures of one run; ``days`` are those of the trace, by which costs are shared out."""
    found = Figures(days)
    parts = list(played)
    span = max([1.0, *(part.seconds for part in parts)])
    for part in parts:
        name = part.cluster.name
        _waits(found, name, part.runs)
        found.never.update((name, run.of.team, run.why) for run in part.runs if run.started == NEVER)
        found.use.update({(name, team, flavor): use for (team, flavor), use in part.use.items()})
        found.loops.update({(name, *key): count for key, count in part.loops.items()})
        found.evictions.update({(name, *key): count for key, count in part.evictions.items()})
        found.loop_moments += part.loop_moments
        for flavor, (moments, totals) in part.levels.items():
            _flavor(found, part, flavor, [*moments, span], totals)
    return found


def _waits(found: Figures, cluster: str, runs: Iterable[Run]) -> None:
    groups: dict[tuple[str, str, str], list[Run]] = {}
    for run in runs:
        if run.started != NEVER:
            for flavor in (ALL, run.flavors):
                groups.setdefault((cluster, run.of.team, flavor), []).append(run)
    for key, group in groups.items():
        waits = sorted(run.started - run.of.submitted for run in group)
        slow = statistics.median((run.ended - run.of.submitted) / run.of.seconds for run in group)
        found.waits[key] = Waits(len(group), statistics.median(waits), _at(waits, 0.9), waits[-1], slow)


def _at(ordered: Sequence[float], share: float) -> float:
    """Return the smallest value that at least a share of them do not exceed."""
    return ordered[min(len(ordered) - 1, max(0, -int(-share * len(ordered) // 1) - 1))]


def _flavor(found: Figures, part: Played, flavor: str, moments: Sequence[float], totals: Sequence[float]) -> None:
    key, machines = (part.cluster.name, flavor), part.cluster.flavors[flavor]
    span = moments[-1]
    width = span / POINTS
    levels = [0.0] * POINTS
    for start, end, total in zip(moments, moments[1:], totals, strict=False):
        for index in range(int(start / width), min(POINTS - 1, int(end / width)) + 1) if total else ():
            seconds = min(end, (index + 1) * width) - max(start, index * width)
            levels[index] += total * max(0.0, seconds) / width
    held = sum(levels) * width
    ran = sum(use.ran for (_, name), use in part.use.items() if name == flavor)
    reserved = machines.capacity == "reservation"
    found.levels[key] = levels
    found.capacity[key] = (machines.capacity, machines.chips)
    found.utilisation[key] = held / span / machines.chips if machines.chips else 0.0
    if reserved:
        found.idle_hours[key] = max(0.0, machines.chips * span - held) / _HOURS
    if machines.usd is None:
        found.unpriced.add(flavor)
    else:
        hours = machines.chips * 24 if reserved else ran / _HOURS / max(found.days, 1 / 24)
        found.usd[key] = hours * machines.usd


@dataclass
class Result:
    """Runs of a simulation, and of its base where there is one; ``ref`` is the base's name."""

    runs: Sequence[Figures]
    base: Sequence[Figures] = ()
    ref: str = ""
    notes: Sequence[str] = ()


def duration(seconds: float) -> str:
    """Return a time as people say it: ``40 min``, ``9.5 h``, ``3 d``."""
    if abs(seconds) < 90:
        return f"{seconds:.0f} s"
    if abs(seconds) < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if abs(seconds) < 2 * DAY else f"{seconds / DAY:.1f} d"


def median(values: Iterable[float | None]) -> float | None:
    """Return the median of the values that are known, None where none is."""
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def _shown(result: Result, read: Any, show: Any) -> str:
    """Return a figure with its spread, and what it was in the base."""
    now = [value for run in result.runs if (value := read(run)) is not None]
    text = show(statistics.median(now)) if now else "-"
    if len(now) > 1 and show(min(now)) != show(max(now)):
        text += f" ({show(min(now))} to {show(max(now))})"
    before = median(read(run) for run in result.base)
    if result.base:
        was = "-" if before is None else show(before)
        text = text if was == text else f"{was} → {text}"
    return text


def _keys(result: Result, name: str) -> list[Any]:
    return sorted({key for run in (*result.runs, *result.base) for key in getattr(run, name)})


def waits_section(result: Result) -> ReportSection:
    """Return how long the jobs of each team waited, by the flavor on which they started."""

    def row(key: tuple[str, str, str]) -> ReportRow:
        def of(name: str, show: Any) -> str:
            return _shown(result, lambda run: getattr(run.waits[key], name) if key in run.waits else None, show)

        times = (of(name, duration) for name in ("median", "p90", "longest"))
        return ReportRow((*key, of("jobs", "{:,.0f}".format), *times, of("slowdown", "{:.2f}".format)))

    columns = ("cluster", "team", "flavor", ">jobs", ">median wait", ">90th percentile", ">longest", ">slowdown")
    rows = [row(key) for key in _keys(result, "waits")]
    return ReportSection(title="waits", unit="from submission to the first machines", columns=columns, rows=rows,
                         subject=2)  # fmt: skip


def use_section(result: Result) -> ReportSection:
    """Return what teams used, borrowed, lent and lost of each flavor."""

    def row(key: tuple[str, str, str]) -> ReportRow:
        def of(name: str) -> str:
            return _shown(
                result, lambda run: getattr(run.use[key], name) / _HOURS if key in run.use else None, "{:,.0f}".format
            )

        names = ("held", "borrowed", "lent", "lost_by_eviction", "lost_by_interruption")
        return ReportRow((*key, *map(of, names)))

    columns = ("cluster", "team", "flavor", ">held", ">borrowed", ">lent", ">lost to evictions", ">to interruptions")
    every = (*result.runs, *result.base)
    used = [
        key
        for key in _keys(result, "use")
        if any(run.use[key].held + run.use[key].lent for run in every if key in run.use)
    ]
    return ReportSection(title="use", unit="chip-hours", columns=columns, rows=[row(key) for key in used],
                         subject=2)  # fmt: skip


def flavors_section(result: Result) -> ReportSection:
    """Return how full each flavor was, what of a reservation was idle, and what a day cost."""

    def row(key: tuple[str, str]) -> ReportRow:
        def of(name: str, show: Any) -> str:
            return _shown(result, lambda run: getattr(run, name).get(key), show)

        capacity = next(run.capacity[key][0] for run in (*result.runs, *result.base) if key in run.capacity)
        chips = _shown(result, lambda run: run.capacity[key][1] if key in run.capacity else None, "{:,.0f}".format)
        figures = (of("utilisation", "{:.0%}".format), of("idle_hours", "{:,.0f}".format))
        return ReportRow((*key, capacity, chips, *figures, of("usd", "${:,.0f}".format)))

    columns = ("cluster", "flavor", "provisioning model", ">chips", ">in use", ">idle reserved chip-hours", ">a day")
    unpriced = sorted({name for run in result.runs for name in run.unpriced})
    note = f"without a price: {', '.join(unpriced)}" if unpriced else "list prices: a reservation costs its whole day"
    rows = [row(key) for key in _keys(result, "capacity")]
    return ReportSection(title="flavors", columns=columns, rows=rows, subject=1, note=note)


def never_section(result: Result) -> ReportSection:
    """Return the jobs that never started, and why."""
    rows = [
        ReportRow((*key, _shown(result, lambda run, key=key: run.never.get(key, 0), "{:,.0f}".format)), "over")
        for key in _keys(result, "never")
    ]
    return ReportSection(title="jobs that never start", columns=("cluster", "team", "why", ">jobs"), rows=rows,
                         subject=1)  # fmt: skip


_REASONS: Final[Mapping[str, str]] = {
    "queue": "preemption.within_queue of the team",
    "reclaim": "preemption.reclaim of the first team",
    "share": "weights and quota of both teams, preemption.reclaim of the first",
    "borrowing": "preemption.borrow_within_cohort of the first team",
}
"""The setting of a stack file that lets a job evict another, by the reason."""


def loops_section(result: Result) -> ReportSection:
    """Return who evicts whom in preemption loops."""
    rows = []
    for key in _keys(result, "loops"):
        count = _shown(result, lambda run, key=key: run.loops.get(key, 0), "{:,.0f}".format)
        rows.append(ReportRow((*key[:4], _REASONS[key[4]], count), "over"))
    columns = ("cluster", "team", "evicts", "on", "by the setting", ">evictions")
    note = "jobs that evict each other again and again at one moment; cut after a few rounds, endless in a cluster"
    return ReportSection(title="preemption loops", columns=columns, rows=rows, subject=1, note=note)


SECTIONS: Final = (waits_section, use_section, flavors_section, never_section, loops_section)


def sections(result: Result) -> Iterator[ReportSection]:
    """Yield the sections of a report that have rows."""
    yield from (section for build in SECTIONS if (section := build(result)).rows)


def headlines(result: Result) -> Iterator[str]:
    """Yield what a change does, in sentences: the waits of teams, and the cost."""
    if not result.base:
        loops = [run.loop_moments for run in result.runs]
        jobs = [sum(waits.jobs for key, waits in run.waits.items() if key[2] == ALL) for run in result.runs]
        never = [sum(run.never.values()) for run in result.runs]
        yield f"{statistics.median(jobs):,.0f} jobs started, {statistics.median(never):,.0f} never do."
        if any(loops):
            yield f"{statistics.median(loops):,.0f} preemption loops were cut."
        return
    teams = sorted({key[:2] for key in _keys(result, "waits") if key[2] == ALL})
    for cluster, team in teams:
        key = (cluster, team, ALL)
        before, after = (
            median(run.waits[key].p90 for run in runs if key in run.waits) for runs in (result.base, result.runs)
        )
        if before is None or after is None or abs(after - before) < max(60.0, 0.05 * max(before, after)):
            continue
        yield f"{team} in {cluster}: nine of ten jobs wait {duration(after)} at most, before {duration(before)}."
    before, after = (median(sum(run.usd.values()) for run in runs) for runs in (result.base, result.runs))
    if before is not None and after is not None:
        change = after - before
        if abs(change) >= 1:
            yield f"It costs ${abs(change):,.0f} a day {'more' if change > 0 else 'less'}."
        else:
            yield "It costs the same."


def document(result: Result) -> dict[str, Any]:
    """Return a result for programs: every figure of every run, and of the base."""
    return {
        "headlines": list(headlines(result)),
        "notes": list(result.notes),
        "left_out": LEFT_OUT,
        "runs": [_run_document(run) for run in result.runs],
        **({"base": {"ref": result.ref, "runs": [_run_document(run) for run in result.base]}} if result.base else {}),
    }


def _run_document(run: Figures) -> dict[str, Any]:
    def keyed(names: Sequence[str], key: Sequence[str]) -> dict[str, str]:
        return dict(zip(names, key, strict=True))

    team, flavor = ("cluster", "team", "flavor"), ("cluster", "flavor")
    return {
        "days": run.days,
        "waits": [{**keyed(team, key), **waits._asdict()} for key, waits in run.waits.items()],
        "use": [
            {**keyed(team, key), **{f"{name}_chip_hours": getattr(use, name) / _HOURS for name in Use.__slots__}}
            for key, use in run.use.items()
        ],
        "flavors": [
            {
                **keyed(flavor, key), "capacity": capacity, "chips": chips, "utilisation": run.utilisation[key],
                "idle_reserved_chip_hours": run.idle_hours.get(key), "usd_a_day": run.usd.get(key),
            }
            for key, (capacity, chips) in run.capacity.items()
        ],
        "never": [
            {**keyed(("cluster", "team", "why"), key), "jobs": count} for key, count in run.never.items()
        ],
        "evictions": [
            {**keyed(("cluster", "by", "team", "reason"), key), "count": count}
            for key, count in run.evictions.items()
        ],
        "loops": {
            "moments": run.loop_moments,
            "evictions": [
                {**keyed(("cluster", "by", "team", "flavors", "reason"), key), "count": count}
                for key, count in run.loops.items()
            ],
        },
    }  # fmt: skip


def text(result: Result) -> str:
    """Return a result as text without colours, as wide as the terminal or COLUMNS say."""
    import io  # noqa: PLC0415

    from training_platform.checks.reports.text import (  # noqa: PLC0415 # it loads rich
        PrintableConsole,
        plain_width,
        section_text,
    )

    terminal, endless = PrintableConsole(), 10_000
    width = terminal.width if terminal.is_terminal else plain_width(endless)
    plain = io.StringIO()
    console = PrintableConsole(highlight=False, width=width, file=plain)
    for section in sections(result):
        console.print(section_text(section, min(width, 120)), width=min(width, 120))
        console.print()
    for line in (*headlines(result), *result.notes, f"Left out: {LEFT_OUT}."):
        console.print(line)
    return "\n".join(line.rstrip() for line in plain.getvalue().splitlines()) + "\n"


def markdown(result: Result) -> str:
    """Return a result as Markdown, for a pull request."""
    from training_platform.checks.reports.markdown import escaped, section_table  # noqa: PLC0415

    title = (
        f"### What this change does to waits, since {escaped(result.ref)}" if result.base else "### Simulated queues"
    )
    parts = [title, "\n".join(f"- {escaped(line)}" for line in headlines(result))]
    for section in sections(result):
        unit = f" ({section.unit})" if section.unit else ""
        table = section_table(section)
        parts.append(f"<details><summary>{section.title}{unit}</summary>\n\n{table}\n\n{section.note}\n\n</details>")
    notes = [*result.notes, f"Left out: {LEFT_OUT}."]
    return "\n\n".join([*parts, " ".join(escaped(note) for note in notes)]) + "\n"
