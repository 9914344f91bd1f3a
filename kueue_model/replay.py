"""Simulates a trace in the queues and on the machines of a cluster, event by event, and records the history.

A job waits in its queue, is admitted, waits for its machines, runs, and ends after the run time in its trace. After an
eviction or an interruption, the job continues from its last checkpoint. An evicted job waits in its queue again; an
interrupted job keeps its quota and waits for new machines.
"""

from __future__ import annotations

import heapq
import math
from array import array
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from kueue_model.cluster import Cluster
from kueue_model.cluster_queues import Eviction, Job
from kueue_model.machines import CapacityTimes, draw_times, expected_losses
from kueue_model.quotas import Member, units
from kueue_model.scheduler import Scheduler
from kueue_model.traces import Change, TraceJob

NEVER: Final = -1.0
MOST_LOSSES: Final = 10_000
"""The average number of machine losses above which a job is considered to never end."""


@dataclass(slots=True, eq=False)
class Run:
    """The history of a job. Times are in seconds from the beginning, or ``NEVER``."""

    of: TraceJob
    job: Job
    remaining_seconds: float
    flavors: str = ""  # of its first start
    started: float = NEVER
    ended: float = NEVER
    running_since: float = NEVER
    evictions: int = 0
    interruptions: int = 0
    attempts: int = 0
    used: tuple[int, ...] = ()  # cells that it holds, or held last
    loss: float = math.inf  # seconds from the arrival of its machines to their loss
    why: str = ""  # the reason, if it never starts or never ends


@dataclass(slots=True)
class Use:
    """A team's use of a flavor in chip-seconds: how much quota it held, and how much of that it borrowed.

    ``ran`` is the part of the held quota for which machines existed; it includes work that was lost later. ``lent`` is
    the part of the team's quota that others borrowed. Borrowed quota is divided among the lending teams in proportion
    to their idle quota.
    """

    held: float = 0.0
    borrowed: float = 0.0
    lent: float = 0.0
    ran: float = 0.0
    lost_by_eviction: float = 0.0
    lost_by_interruption: float = 0.0


class EvictionKey(NamedTuple):
    """The team that evicts, the team whose jobs are evicted, the flavors, and the reason."""

    team: str
    victim: str
    flavors: str
    reason: str


@dataclass
class Played:
    """The history of a cluster: jobs in the order of the trace, usage by team and flavor, and preemption loops.

    ``levels`` contains, for each flavor, the times at which the number of chips in use changes, and the new number.
    """

    cluster: Cluster
    runs: list[Run] = field(default_factory=list)
    use: dict[tuple[str, str], Use] = field(default_factory=dict)
    levels: dict[str, tuple[array[float], array[float]]] = field(default_factory=dict)
    evictions: Counter[EvictionKey] = field(default_factory=Counter)
    loops: Counter[EvictionKey] = field(default_factory=Counter)
    loop_moments: int = 0
    endless: int = 0  # jobs that lose their machines too often to end
    seconds: float = 0.0


def play(
    cluster: Cluster,
    jobs: Iterable[TraceJob],
    times: Mapping[str, CapacityTimes],
    seed: int = 0,
    changes: Iterable[Change] = (),
) -> Played:
    """Simulate a cluster's jobs until no event is left. The same seed gives the same history.

    Changes after the end of the last job have no effect.
    """
    return _Replay(cluster, times, seed).play(jobs, changes)


class _Replay:
    def __init__(self, cluster: Cluster, times: Mapping[str, CapacityTimes], seed: int) -> None:
        self.scheduler = Scheduler(cluster.queues, cluster.cohorts, cluster.fair_sharing, seed)
        self.labels = self.scheduler.quotas.labels
        self.capacities = [cluster.flavors[name].capacity for name in self.labels]
        self.times = times
        self.seed = seed
        self.events: list[tuple[float, int, Callable[[Run], None], Run, int]] = []
        self.number = 0
        self.now = 0.0
        self.played = Played(cluster)
        self.run_of: dict[Job, Run] = {}
        self.changes: deque[tuple[Change, list[Run]]] = deque()
        self.unfinished = 0
        self.endless: list[Run] = []  # to be removed: machines never come, or are lost too often
        self.flavor_use = [_FlavorUse(self.scheduler, index) for index in range(len(self.labels))]

    def play(self, jobs: Iterable[TraceJob], changes: Iterable[Change]) -> Played:
        self._prepare(jobs, changes)
        events = self.events
        played = self.played
        while (moment := self._next_moment()) < math.inf:
            self.now = max(self.now, moment)
            while self._next_change <= self.now:
                self._change(*self.changes.popleft())
            while events and events[0][0] <= self.now:
                _, _, act, run, attempt = heapq.heappop(events)
                if attempt == run.attempts:
                    act(run)
            while not self._settle():
                pass
        for run in played.runs:
            if run.started == NEVER and not run.why:
                run.why = self._why(run)
        played.seconds = self.now
        for name, flavor_use in zip(self.labels, self.flavor_use, strict=True):
            flavor_use.advance(self.now)
            played.levels[name] = (flavor_use.moments, flavor_use.totals)
            played.use.update({(team, name): use for team, use in flavor_use.use.items()})
        return played

    def _prepare(self, jobs: Iterable[TraceJob], changes: Iterable[Change]) -> None:
        for trace_job in jobs:
            job = Job(trace_job.name, trace_job.team, pods=trace_job.pods, priority=trace_job.priority)
            run = Run(trace_job, job, remaining_seconds=trace_job.seconds)
            self.run_of[job] = run
            self.played.runs.append(run)
            self._schedule(trace_job.submitted, self._submit, run)
        self.unfinished = len(self.played.runs)
        for change in sorted(changes, key=lambda change: change.moment):
            runs = [run for run in self.played.runs if run.of.name == change.job and change.priority is not None]
            self.changes.append((change, runs))

    def _next_moment(self) -> float:
        event = self.events[0][0] if self.events else math.inf
        return min(event, self.scheduler.next_at, self._next_change)

    def _schedule(self, moment: float, act: Callable[[Run], None], run: Run) -> None:
        self.number += 1
        heapq.heappush(self.events, (moment, self.number, act, run, run.attempts))

    @property
    def _next_change(self) -> float:
        """The time of the next change, or infinity if all jobs end before it."""
        if not self.changes or not self.unfinished:
            return math.inf
        return self.changes[0][0].moment

    def _change(self, change: Change, runs: list[Run]) -> None:
        if change.hold is not None:
            self.scheduler.hold(change.team, change.hold, self.now)
        for run in runs:
            if change.priority is None or run.ended != NEVER or run.why:
                continue
            if run.of.submitted >= self.now:
                run.job.change_priority(change.priority)
            else:
                self.scheduler.set_priority(run.job, change.priority, self.now)

    def _submit(self, run: Run) -> None:
        self.scheduler.submit(run.job, self.now)

    def _interrupt(self, run: Run) -> None:
        self._stop(run, evicted=False)
        run.interruptions += 1
        self._request_machines(run)

    def _end(self, run: Run) -> None:
        self._count_ran(run)
        run.ended = self.now
        self.unfinished -= 1
        self._hold(run, -1)
        self.scheduler.end(run.job, self.now)

    def _settle(self) -> bool:
        """Apply the scheduler's decisions. Return False if it has to run again without jobs that never end."""
        moves = self.scheduler.settle(self.now)
        for move in moves.steps:
            run = self.run_of[move.job]
            if isinstance(move, Eviction):
                if run.running_since != NEVER:
                    self._stop(run, evicted=True)
                run.evictions += 1
                run.attempts += 1
                self._hold(run, -1)
                self.played.evictions[self._key(move)] += 1
            else:
                run.used = move.cells
                self._hold(run, 1)
                self._request_machines(run)
        self.played.loops.update(map(self._key, moves.loops))
        self.played.loop_moments += bool(moves.loops)
        endless = self.endless
        self.endless = []
        for run in endless:
            self.unfinished -= 1
            if run.job.cells:
                self._hold(run, -1)
            self.scheduler.end(run.job, self.now)
        self.played.endless += len(endless)
        return not endless

    def _key(self, eviction: Eviction) -> EvictionKey:
        return EvictionKey(
            eviction.by.queue, eviction.job.queue, flavors=self._flavor_names(eviction.cells), reason=eviction.reason
        )

    def _flavor_names(self, cells: Iterable[int]) -> str:
        return "+".join(dict.fromkeys(self.labels[cell] for cell in cells))

    def _request_machines(self, run: Run) -> None:
        run.attempts += 1
        if too_large := self._too_large(run):
            if not run.why:
                self.endless.append(run)
            run.why = too_large
            return
        capacities = frozenset(self.capacities[cell] for cell in run.used)
        if expected_losses(self.times, capacities, run.remaining_seconds, run.of.checkpoint) > MOST_LOSSES:
            if not run.why:
                self.endless.append(run)
            hours = min(run.of.checkpoint, run.remaining_seconds) / 3600
            run.why = f"never ends: it would need its machines for {hours:,.1f} hours without an interruption"
            return
        key = f"{self.seed} {run.of.name} {run.evictions} {run.interruptions}"
        arrival, run.loss = draw_times(self.times, capacities, key)
        if arrival:
            self._schedule(self.now + arrival, self._start, run)
        else:
            self._start(run)

    def _too_large(self, run: Run) -> str:
        """Return the reason why an admitted job can never get all of its machines together, or "" if it can."""
        amounts: Counter[str] = Counter()
        for pods, cell in zip(run.job.pods, run.used, strict=True):
            amounts[self.labels[cell]] += pods.amount
        for name, amount in amounts.items():
            maximum = self.played.cluster.flavors[name].largest_request
            if maximum is not None and amount > maximum:
                return f"needs {amount:,} of {name}, but one provisioning request gets at most {maximum:,}"
        return ""

    def _start(self, run: Run) -> None:
        if run.started == NEVER:
            run.started = self.now
            run.flavors = self._flavor_names(run.used)
        run.running_since = self.now
        if run.loss < run.remaining_seconds:
            self._schedule(self.now + run.loss, self._interrupt, run)
        else:
            self._schedule(self.now + run.remaining_seconds, self._end, run)

    def _stop(self, run: Run, *, evicted: bool) -> None:
        """Stop a job. The work since its last checkpoint is lost."""
        done = self.now - run.running_since
        lost = done % run.of.checkpoint
        run.remaining_seconds -= done - lost
        self._count_ran(run, lost, evicted=evicted)

    def _count_ran(self, run: Run, lost: float = 0.0, *, evicted: bool = False) -> None:
        for cell, amount in self._amounts(run):
            use = self.flavor_use[cell].use[run.job.queue]
            use.ran += (self.now - run.running_since) * amount
            if evicted:
                use.lost_by_eviction += lost * amount
            else:
                use.lost_by_interruption += lost * amount
        run.running_since = NEVER

    def _hold(self, run: Run, sign: int) -> None:
        for cell, amount in self._amounts(run):
            self.flavor_use[cell].change(run.job.queue, sign * amount, self.now)

    def _amounts(self, run: Run) -> Iterator[tuple[int, int]]:
        """Yield what a job uses, or used when it last ran: the index of a flavor and resource, and the amount."""
        for pods, cell in zip(run.job.pods, run.used, strict=True):
            yield cell, pods.amount
            for resource, amount in pods.more:
                yield self.scheduler.queues[run.job.queue].sibling_cells[cell, resource], amount

    def _why(self, run: Run) -> str:
        """Return the reason why a job never started."""
        queue = self.scheduler.queues[run.job.queue]
        if queue.held:
            return "the queue is held"
        for pods in run.job.pods:
            cells = queue.cells.get(pods.resource, ())
            names = self.scheduler.quotas.flavors
            possible = [cell for cell in cells if pods.flavors is None or names[cell] in pods.flavors]
            for resource, amount in ((pods.resource, pods.amount), *pods.more):
                resource_cells = [queue.sibling_cells.get((cell, resource), cell) for cell in possible]
                maximum = max((queue.member.potential[cell] for cell in resource_cells), default=0)
                if amount > maximum:
                    unit = units(resource)
                    return f"needs {amount / unit:,.12g}, but the queue can use at most {maximum / unit:,.12g}"
        return "was never admitted before the simulation ended"


class _FlavorUse:
    """How much of one flavor each team holds, borrows and lends, summed over time."""

    def __init__(self, scheduler: Scheduler, cell: int) -> None:
        teams = {name: queue.member for name, queue in scheduler.queues.items() if cell in queue.member.cells}
        self.quotas = {name: member.subtree[cell] for name, member in teams.items()}
        self.roots = {name: member.root for name, member in teams.items()}
        self.lendable = dict.fromkeys(teams, 0)
        for name, member in teams.items():
            if member.parent is not None:
                self.lendable[name] = member.subtree[cell] - member.local[cell]
        self.held = dict.fromkeys(teams, 0)
        self.use = {name: Use() for name in teams}
        self.moments = array("d", [0.0])
        self.totals = array("d", [0.0])
        self.since = 0.0
        self.quota_of_cohorts: Counter[Member] = Counter()  # below each root
        for member in scheduler.quotas.cohorts.values():
            from_children = sum(child.subtree[cell] - child.local[cell] for child in member.children)
            self.quota_of_cohorts[member.root] += member.subtree[cell] - from_children

    def change(self, team: str, amount: int, now: float) -> None:
        """Change the amount that a team holds. ``amount`` may be negative."""
        self.advance(now)
        self.held[team] += amount
        total = self.totals[-1] + amount
        if self.moments[-1] == now:
            self.totals[-1] = total
        else:
            self.moments.append(now)
            self.totals.append(total)

    def advance(self, now: float) -> None:
        """Add the time since the last change to the sums."""
        seconds = now - self.since
        self.since = now
        if seconds <= 0:
            return
        borrowed: Counter[Member] = Counter()
        for team, held in self.held.items():
            use = self.use[team]
            over_quota = held - self.quotas[team]
            use.held += held * seconds
            if over_quota > 0:
                borrowed[self.roots[team]] += over_quota
                use.borrowed += over_quota * seconds
        for root, amount in borrowed.items():
            self._lend(root, amount * seconds)

    def _lend(self, root: Member, borrowed: float) -> None:
        """Attribute quota borrowed below a root to teams with idle quota, in proportion, up to lending limits."""
        idle = {
            team: min(quota - self.held[team], self.lendable[team])
            for team, quota in self.quotas.items()
            if self.roots[team] is root and self.held[team] < quota and self.lendable[team]
        }
        all_idle = self.quota_of_cohorts[root] + sum(idle.values())
        for team, amount in idle.items():
            self.use[team].lent += borrowed * amount / all_idle
