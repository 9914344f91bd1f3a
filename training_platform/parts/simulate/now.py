"""When will the jobs that wait now start: a cluster's queues played on from their state, in many runs.

The state is what ``kubectl get workloads -A -o json`` prints. Jobs that hold quota are submitted at their admissions on
their flavors, so that they hold the same quota now; those that wait are submitted now, in the order of their creation.
How long a job runs nobody knows: each run draws it from jobs of the queue that have ended, or of all queues, or from an
invented distribution, and ``maximumExecutionTimeSeconds`` bounds it. Jobs that are submitted later are not played.
"""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

from training_platform.checks.reports.sections import ReportRow, ReportSection
from training_platform.config.reading.finding import UserError
from training_platform.parts.jobs.runs.waits import Start, WaitingJob, Waits
from training_platform.parts.simulate.imports import MALFORMED, workload_items
from training_platform.parts.simulate.manifests import Manifests
from training_platform.parts.simulate.replay import NEVER, play
from training_platform.parts.simulate.results import duration
from training_platform.parts.simulate.traces import MOST_SECONDS, TraceJob, read_rows

INVENTED_SECONDS: Final = 4 * 3600.0
"""The median run of a job where no job of the file has ended; invented."""
_ORDER_SECONDS: Final = 0.001  # between two jobs that wait, which keep their order


class _State(NamedTuple):
    """A workload that has not ended: its row of a trace, when it was admitted, and the most seconds that it runs."""

    namespace: str
    job: str
    row: Mapping[str, object]
    created: float
    admitted: float | None
    most_seconds: float
    why: str = ""  # it never starts, if that is known beforehand


class _NoFlavorError(Exception):
    """No flavor of a queue has the labels that pods select."""


class _Read(NamedTuple):
    running: list[_State]
    waiting: list[_State]
    lengths: Mapping[str, list[float]]  # of jobs that have ended, by queue, and "" for all
    left_out: int


def predict(path: Path, manifests: Manifests, runs: Sequence[int], now: datetime) -> Waits:
    """Play a cluster on from the state in a file, once for each seed. UserError where the file cannot be read."""
    read = _read(path, manifests)
    states = [*read.running, *read.waiting]
    moment = now.timestamp()
    rows = [{**state.row, "submitted": state.admitted, "seconds": 1} for state in read.running]
    rows += [{**state.row, "submitted": moment + place * _ORDER_SECONDS, "seconds": 1}
             for place, state in enumerate(read.waiting)]  # fmt: skip
    played = [{**row, "job": str(index)} for index, row in enumerate(rows) if not states[index].why]
    trace = read_rows(path, played, [manifests.cluster])
    notes = [*manifests.left_out, *map(str, trace.findings)]
    if not read.lengths:
        notes.append(
            f"No job of {path} has ended, so run times are invented: {duration(INVENTED_SECONDS)} at the median."
        )
    if read.left_out:
        notes.append(f"{read.left_out} workloads are inactive, of no known queue, or cannot be read.")
    starts: dict[int, list[float]] = {}
    why: dict[int, str] = {}
    for index, state in enumerate(states):
        if state.why:
            starts[index] = [math.inf]
            why[index] = state.why
    for seed in runs:
        drawn = [_drawn(job, states[int(job.name)], read.lengths, moment, seed) for job in trace.jobs]
        for run in play(manifests.cluster, drawn, manifests.times, seed).runs:
            index = int(run.of.name)
            started = math.inf if run.started == NEVER else run.started + trace.start - moment
            starts.setdefault(index, []).append(max(0.0, started))
            if run.why:
                why[index] = run.why
    waiting = range(len(read.running), len(states))
    jobs = [_waiting(states[index], starts[index], why.get(index, ""), moment) for index in waiting if index in starts]
    jobs.sort(key=lambda job: job.start.median if job.start else math.inf)
    return Waits(moment=now, runs=len(runs), notes=tuple(notes), jobs=tuple(jobs))


def _waiting(state: _State, starts: Iterable[float], why: str, moment: float) -> WaitingJob:
    ordered = sorted(starts)
    early, median, late = (ordered[min(len(ordered) - 1, len(ordered) * tenths // 10)] for tenths in (1, 5, 9))
    return WaitingJob(
        namespace=state.namespace, job=state.job, queue=str(state.row["team"]), needs=str(state.row["needs"]),
        priority=int(str(state.row["priority"])), waits_seconds=moment - state.created,
        start=None if math.isinf(median) else Start(early, median, late if math.isfinite(late) else MOST_SECONDS),
        why=why if math.isinf(median) else "",
    )  # fmt: skip


def _drawn(job: TraceJob, state: _State, lengths: Mapping[str, list[float]], moment: float, seed: int) -> TraceJob:
    """Return a job with a run time: of one that runs already, that of jobs which ran for as long as it has."""
    draw = random.Random(f"{seed} {state.namespace}/{state.job}")
    age = 0.0 if state.admitted is None else moment - state.admitted
    ended = lengths.get(job.team) or lengths.get("") or ()
    longer = [seconds for seconds in ended if seconds > age]
    if longer:
        seconds = draw.choice(longer)
    else:  # none ran for so long: what is left is as a new run
        seconds = age + (draw.choice(ended) if ended else draw.lognormvariate(math.log(INVENTED_SECONDS), 1.0))
    return job._replace(seconds=max(age + 1.0, min(seconds, state.most_seconds)))


def _read(path: Path, manifests: Manifests) -> _Read:
    try:
        text = path.read_text(encoding="utf-8-sig", errors="replace")
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from error
    running: list[_State] = []
    waiting: list[_State] = []
    lengths: dict[str, list[float]] = {}
    left_out = 0
    for item, _ in workload_items(path, text):
        try:
            state = _state(item, manifests, lengths)
        except MALFORMED:
            state = None
        if state is None:
            left_out += 1
        elif isinstance(state, _State):
            (waiting if state.admitted is None else running).append(state)
    waiting.sort(key=lambda state: state.created)
    return _Read(running, waiting, lengths, left_out)


def _state(item: Any, manifests: Manifests, lengths: dict[str, list[float]]) -> _State | bool | None:
    """Return a workload that has not ended; True for one that has, whose length is added, None if it is left out."""
    metadata = item["metadata"]
    spec = item["spec"]
    status = item.get("status") or {}
    namespace = metadata.get("namespace", "default")
    met = {row["type"]: _seconds(row["lastTransitionTime"]) for row in status.get("conditions") or ()
           if row["status"] == "True"}  # fmt: skip
    admission = status.get("admission") or {}
    queue = admission.get("clusterQueue") or _queue_of(f"{namespace}/{spec.get('queueName')}", manifests)
    if "Finished" in met:
        if "Admitted" in met:
            for name in (queue, ""):
                lengths.setdefault(str(name), []).append(max(1.0, met["Finished"] - met["Admitted"]))
        return True
    if queue not in manifests.cluster.queues or spec.get("active") is False:
        return None
    admitted = met.get("QuotaReserved") if admission else None
    why = ""
    try:
        needs = list(_held(admission) if admission else _asked(spec, status, manifests, str(queue)))
    except _NoFlavorError:
        needs = []
        why = f"no flavor of {queue} has the labels that its pods select"
    owners = [row["name"] for row in metadata.get("ownerReferences") or () if row.get("controller")]
    row = {"team": queue, "needs": " + ".join(needs), "priority": int(spec.get("priority") or 0)}
    job = str(owners[0] if owners else metadata["name"])
    most = float(spec.get("maximumExecutionTimeSeconds") or MOST_SECONDS)
    return _State(namespace, job, row, _seconds(metadata["creationTimestamp"]), admitted, most, why)


def _queue_of(local: str, manifests: Manifests) -> str | None:
    counting = manifests.cluster.counting
    return counting.local_queues.get(local) if counting else None


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).astimezone(UTC).timestamp()


def _held(admission: Any) -> Iterator[str]:
    """Yield what each kind of pods of an admitted job holds, on its flavors."""
    for row in admission["podSetAssignments"]:
        usage = row.get("resourceUsage") or {}
        flavors = set((row.get("flavors") or {}).values())
        if usage and flavors:
            yield f"{_words(usage)} on {' or '.join(sorted(flavors))}"


def _asked(spec: Any, status: Any, manifests: Manifests, queue: str) -> Iterator[str]:
    """Yield what each kind of pods of a waiting job asks for, on the flavors that its node selector lets it use."""
    requests = {row["name"]: row.get("resources") or {} for row in status.get("resourceRequests") or ()}
    for pods in spec["podSets"]:
        template = pods["template"]["spec"]
        amounts = requests.get(pods.get("name", "main"))
        if amounts is None:  # Kueue has not looked at it yet
            containers = template["containers"]
            if len(containers) != 1:
                raise ValueError(queue)
            of_a_pod = (containers[0].get("resources") or {}).get("requests") or {}
            amounts = {name: _times(quantity, pods.get("count", 1)) for name, quantity in of_a_pod.items()}
        flavors = _flavors(manifests, queue, template.get("nodeSelector") or {}, amounts)
        if amounts:
            yield _words(amounts) + (f" on {' or '.join(flavors)}" if flavors else "")


def _times(quantity: object, count: int) -> str:
    number = str(quantity).rstrip("kMGTPEinum")
    return f"{float(number) * count:.12g}{str(quantity)[len(number) :]}"


def _words(resources: Mapping[str, object]) -> str:
    return " ".join(f"{quantity} {name}" for name, quantity in resources.items())


def _flavors(manifests: Manifests, queue: str, selector: Mapping[str, str], resources: Collection[str]) -> list[str]:
    """Return the flavors of resources whose labels a selector fits; none where it fits all of them.

    Kueue compares the labels that a flavor has itself, and no others. Raises _NoFlavorError.
    """
    fitting: list[str] = []
    excluded = False
    for group in manifests.cluster.queues[queue].get("resourceGroups", ()):
        if not set(group["coveredResources"]) & set(resources):
            continue
        labels = {flavor["name"]: manifests.labels.get(flavor["name"], {}) for flavor in group["flavors"]}
        of_group = [
            name for name, own_labels in labels.items()
            if all(selector.get(key, value) == value for key, value in own_labels.items())
        ]  # fmt: skip
        if not of_group:
            raise _NoFlavorError
        fitting += of_group
        excluded = excluded or len(of_group) < len(labels)
    return fitting if excluded else []


def section(waits: Waits) -> ReportSection:
    """Return the table of a prediction."""
    rows = []
    for job in waits.jobs:
        start = f"never: {job.why}"
        between = ""
        if job.start:
            early, start, late = (duration(seconds) for seconds in job.start)
            between = f"{early} to {late}"
        rows.append(ReportRow((job.queue, f"{job.namespace}/{job.job}", str(job.priority), duration(job.waits_seconds),
                               start, between), "fits" if job.start else "over"))  # fmt: skip
    return ReportSection(
        title="waiting jobs", unit=f"at {waits.moment:%Y-%m-%d %H:%M %Z}", subject=1, rows=rows,
        columns=("queue", "job", ">priority", ">has waited", ">starts in", ">8 of 10 runs"),
    )  # fmt: skip
