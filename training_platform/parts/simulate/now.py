"""Predicts when waiting jobs start: simulates the queues of a cluster from their current state in many runs.

Jobs with quota are submitted at the time of their admission, on their flavors, so that they hold the same quota now.
Waiting jobs are submitted now, in the order of creation. Run times are unknown. Each run draws them from ended jobs of
the queue, or of all queues, or from an assumed distribution, up to ``maximumExecutionTimeSeconds``. Jobs submitted
later are left out.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

from kueue_model import MOST_SECONDS, NEVER, Manifests, Trace, TraceJob, play, read_rows
from kueue_model.results import duration
from training_platform.checks.reports.tables import ReportRow, ReportSection
from training_platform.config.reading.section import enumeration
from training_platform.parts.jobs.runs.waits import Start, WaitingJob, Waits
from training_platform.parts.simulate.workloads import Workload, Workloads, read_workloads

INVENTED_SECONDS: Final = 4 * 3600.0
"""The median run time if no job in the file has ended. This value is an assumption."""
_MOST_NAMES: Final = 10  # of workloads that are not played
_ORDER_SECONDS: Final = 0.001  # between two waiting jobs, to keep their order


def predict(path: Path, manifests: Manifests, runs: Sequence[int], now: datetime) -> Waits:
    """Simulate a cluster from the workloads in a file, once for each seed. Raises UserError for an unreadable file."""
    workloads = read_workloads(path, manifests)
    moment = now.timestamp()
    trace = read_rows(path, _trace_rows(workloads, moment), [manifests.cluster])
    starts, why = _starts(workloads, trace, manifests, runs, moment)
    jobs = [
        _waiting_job(workload, starts[index], why.get(index, workload.why), moment)
        for index, workload in enumerate(workloads.waiting, start=len(workloads.running))
        if index in starts
    ]
    jobs.sort(key=lambda job: job.start.median if job.start else math.inf)
    notes = [*manifests.left_out, *map(str, trace.findings)]
    if not workloads.lengths:
        median = duration(INVENTED_SECONDS)
        notes.append(f"No job in {path} has ended, so run times are invented, with a median of {median}.")
    if workloads.left_out:
        names = enumeration(workloads.left_out, max_names=_MOST_NAMES)
        notes.append(f"Not simulated, because they are inactive, unreadable or in an unknown queue: {names}.")
    return Waits(moment=now, runs=len(runs), notes=tuple(notes), jobs=tuple(jobs))


def _trace_rows(workloads: Workloads, moment: float) -> Iterator[Mapping[str, object]]:
    """Yield a row for each workload that can start, named by its index. Run times are drawn later."""
    for index, workload in enumerate([*workloads.running, *workloads.waiting]):
        if workload.why:
            continue
        submitted = workload.admitted
        if submitted is None:
            submitted = moment + (index - len(workloads.running)) * _ORDER_SECONDS
        yield {
            "team": workload.queue,
            "needs": workload.needs,
            "priority": workload.priority,
            "submitted": submitted,
            "seconds": 1,
            "job": str(index),
        }


def _starts(
    workloads: Workloads, trace: Trace, manifests: Manifests, seeds: Iterable[int], moment: float
) -> tuple[dict[int, list[float]], dict[int, str]]:
    """Return the seconds until each workload starts in each run, and the reason if it never does, keyed by index."""
    every = [*workloads.running, *workloads.waiting]
    starts: dict[int, list[float]] = {index: [math.inf] for index, workload in enumerate(every) if workload.why}
    why: dict[int, str] = {}
    for seed in seeds:
        jobs = [_with_run_time(job, every[int(job.name)], workloads.lengths, moment, seed) for job in trace.jobs]
        for run in play(manifests.cluster, jobs, manifests.times, seed).runs:
            index = int(run.of.name)
            start = math.inf if run.started == NEVER else run.started + trace.start - moment
            starts.setdefault(index, []).append(max(0.0, start))
            if run.why:
                why[index] = run.why
    return starts, why


def _waiting_job(workload: Workload, starts: Iterable[float], why: str, moment: float) -> WaitingJob:
    ordered = sorted(starts)
    count = len(ordered)
    early, median, late = (ordered[min(count - 1, count * tenths // 10)] for tenths in (1, 5, 9))
    never_starts = math.isinf(median)
    start = None
    if not never_starts:
        start = Start(early, median, late=late if math.isfinite(late) else MOST_SECONDS)
    return WaitingJob(
        namespace=workload.namespace,
        job=workload.job,
        queue=workload.queue,
        needs=workload.needs,
        priority=workload.priority,
        waits_seconds=moment - workload.created,
        start=start,
        why=why if never_starts else "",
    )


def _with_run_time(
    job: TraceJob, workload: Workload, lengths: Mapping[str, list[float]], moment: float, seed: int
) -> TraceJob:
    """Return a job with a random run time. For a running job, it is longer than the job has already run."""
    draw = random.Random(f"{seed} {workload.namespace}/{workload.job}")
    age = 0.0 if workload.admitted is None else moment - workload.admitted
    ended = lengths.get(job.team) or lengths.get("") or ()
    longer = [seconds for seconds in ended if seconds > age]
    if longer:
        seconds = draw.choice(longer)
    elif ended:  # none ran as long as this one: the rest is like a new run
        seconds = age + draw.choice(ended)
    else:
        seconds = age + draw.lognormvariate(math.log(INVENTED_SECONDS), 1.0)
    return job._replace(seconds=max(age + 1.0, min(seconds, workload.most_seconds)))


def section(waits: Waits) -> ReportSection:
    """Return a prediction as a section of a report, with a table."""
    rows: list[ReportRow] = []
    for job in waits.jobs:
        identity = (job.queue, f"{job.namespace}/{job.job}", str(job.priority), duration(job.waits_seconds))
        if job.start:
            early, median, late = (duration(seconds) for seconds in job.start)
            rows.append(ReportRow((*identity, median, f"{early} to {late}")))
        else:
            rows.append(ReportRow((*identity, f"never: {job.why}", ""), "over"))
    return ReportSection(
        title="waiting jobs",
        unit=f"at {waits.moment:%Y-%m-%d %H:%M %Z}",
        subject=1,
        rows=rows,
        columns=("queue", "job", ">priority", ">has waited", ">starts in", ">8 of 10 runs"),
    )
