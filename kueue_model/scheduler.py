"""A model of Kueue's scheduler: which jobs it admits, on which flavors, and which jobs it evicts for them.

``Scheduler`` models Kueue in one cluster. Callers submit jobs and end them, and ``settle`` runs Kueue until nothing
more happens at that instant. A cycle takes the first job of every queue, finds flavors for each, and processes them in
the order of fair sharing. Without fair sharing, the order depends on borrowing, priority and age.

A job that fits nowhere is set aside with all jobs of its shape until quota becomes free or a job is removed. After a
second, all of them are tried again, since Kueue collects changes for a second before it acts on them. If a Cohort
object has a parent cohort, Kueue also tries them again when the status of a queue has changed; Kueue updates this
status a second after the change.

A job that evicts others stays first in its queue until it is admitted, or until another job of the queue evicts jobs.
Jobs evicted from a drained queue wait until the queue is released, and then line up behind the jobs that waited in it.

Modelled with the default feature gates of Kueue 0.19: FlavorFungibility, FlavorFungibilityPreserveScanProgress,
FairSharingPreemptWithinNominal, FairSharingPrioritizeNonBorrowing, PrioritySortingWithinCohort and
SchedulingEquivalenceHashing are on; PrioritizePreemptorWorkloads, RecomputeAssignmentUponPreemptionTargetsOverlap,
SchedulerTimestampPreemptionBuffer and SchedulerLongRequeueInterval are off. Left out: topologies, admission checks,
partial admission, elastic jobs and admission fair sharing.

An eviction takes effect once no other job can move, since a cycle takes milliseconds and an eviction several requests.
With some seeds, it takes effect right after the cycle that decides it, as on a busy machine.

Source: kubernetes-sigs/kueue v0.19.2, pkg/scheduler, pkg/cache/queue, pkg/controller/core (cohorts, queues, workloads)
and pkg/features, read 2026-11-23.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from kueue_model.cluster_queues import NO_ATTEMPT, Attempt, Eviction, Job, Pods, Queue, Shape
from kueue_model.preemption import Target, Waiting, targets
from kueue_model.quotas import Json, Member, Quotas, Usage

REQUEUE_SECONDS: Final = 1.0
"""How long Kueue collects changes before it retries jobs that were set aside."""
NO_FIT, NO_CANDIDATES, PREEMPT, RECLAIM, FIT = range(5)  # how a flavor can be assigned, the worst first
TRUCE_SECONDS: Final = 6 * 3600.0
"""How long jobs of the same queue and shape do not evict others after a loop. In a cluster the loop would continue."""


@dataclass(slots=True)
class Entry:
    """The assignment that a cycle finds for the first job of a queue."""

    job: Job
    queue: Queue
    mode: int = FIT  # NO_FIT, PREEMPT or FIT
    cells: tuple[int, ...] = ()
    usage: dict[int, int] = field(default_factory=dict)
    level: int = 0  # of the subtree from which it borrows
    needed: frozenset[int] = frozenset()  # cells in which others have to make room
    tried: tuple[int, ...] = ()
    targets: list[Target] = field(default_factory=list)


class Assignable(NamedTuple):
    """How a flavor can be assigned, from which level of the cohort tree it borrows, and which jobs it has to evict."""

    mode: int
    level: int
    targets: list[Target]


class Admission(NamedTuple):
    """An admitted job, and the flavors and resources (as cells) assigned to its pods."""

    job: Job
    cells: tuple[int, ...]


class Moves(NamedTuple):
    """The admissions and evictions at an instant, in order. ``loops`` has the evictions that would repeat endlessly."""

    steps: list[Admission | Eviction]
    loops: list[Eviction]


class Timing(NamedTuple):
    """When evictions end, and when jobs that were set aside are retried. In a cluster these times vary.

    Evictions end all at the same time, or ``one_by_one`` in random order. With ``before_next_cycle`` they end right
    after the cycle that decides them, otherwise once no other job can move. Jobs that were set aside may be retried
    before the next eviction ends (``retry_before``), or in the cycle in which one ends (``retry_with``).
    """

    one_by_one: bool
    before_next_cycle: bool
    retry_before: bool
    retry_with: bool

    @classmethod
    def of_seed(cls, seed: int) -> Timing:
        """Return the timing that belongs to a seed. Eight successive seeds cover all modelled timings."""
        return cls(
            one_by_one=seed % 2 == 1,
            before_next_cycle=seed % 8 >= 4,
            retry_before=seed % 4 == 3,
            retry_with=seed % 8 == 7,
        )


class _CycleState:
    """The quota that the entries of a cycle hold until the cycle ends, and the jobs that the cycle evicts."""

    def __init__(self) -> None:
        self.evicted: set[Job] = set()
        self._held: list[tuple[Member, Usage]] = []

    def hold(self, member: Member, usage: Usage) -> None:
        """Count usage until the end of the cycle."""
        member.add(usage)
        self._held.append((member, usage))

    def release(self) -> None:
        """Stop counting all usage that was held."""
        for member, usage in self._held:
            member.remove(usage)


class Scheduler:
    """Kueue in one cluster. ``fair_sharing`` contains the preemption strategies, or is None without fair sharing.

    ``seed`` determines the timing of evictions, and the ties that Kueue breaks by random ids.
    """

    def __init__(
        self, queues: Mapping[str, Json], cohorts: Mapping[str, Json], fair_sharing: Iterable[str] | None, seed: int = 0
    ) -> None:
        self.order = random.Random(seed)
        self.timing = Timing.of_seed(seed)
        self.quotas = Quotas(queues, cohorts, self.order)
        self.strategies = tuple(fair_sharing or ()) or None
        self.queues = {name: Queue(name, spec, self.quotas.queues[name], self.quotas) for name, spec in queues.items()}
        self.nested = any(member.parent for member in self.quotas.cohorts.values())
        self.watched: set[str] = set()  # queues whose status makes Kueue retry jobs
        for name, member in self.quotas.queues.items():
            if any(above.parent and above.name in cohorts for above in member.path()):
                self.watched.add(name)
        self._requeue_at = math.inf
        self._status_at = math.inf
        self._truces: dict[tuple[str, Shape], float] = {}  # by queue and shape, the end of the truce
        self._now = 0.0
        self._cycle = 0
        self._evicting: list[Eviction] = []
        self._released: list[Queue] = []
        self._states: dict[object, int] = {}  # the number of evictions before each
        self._cached: list[dict[object, Assignable]] = [{} for _ in self.quotas.flavors]  # until their inputs change
        self._users: dict[tuple[Member, frozenset[int]], list[Queue]] = {}
        self._recent: list[Eviction] = []  # since a job was submitted or ended

    @property
    def next_at(self) -> float:
        """The time of the next retry of jobs that were set aside, or infinity if there are none."""
        return min(self._requeue_at, self._status_at)

    def submit(self, job: Job, now: float) -> None:
        """Put a job into its queue."""
        self._now = now
        queue = self.queues[job.queue]
        job.enter(queue, now, self.order.random())
        queue.push(job)
        self._forget_states(job)

    def end(self, job: Job, now: float) -> None:
        """Remove a job that has ended or was cancelled, and free its quota."""
        self._now = now
        if job.cells:
            self._evicting = [eviction for eviction in self._evicting if eviction.job is not job]
            self._free(job)
        else:
            self.queues[job.queue].remove(job)
            self._try_again()
        self._forget_states(job)

    def hold(self, name: str, policy: str, now: float) -> None:
        """Set the stop policy of a queue, which holds it, drains it, or releases it."""
        self._now = now
        queue = self.queues[name]
        queue.held = policy != "None"
        if policy == "HoldAndDrain":
            for job in queue.running:
                if not job.evicting:
                    job.evicting = True
                    self._evicting.append(Eviction(job, job.cells, by=job, reason="hold"))
        elif not queue.held:
            self._released.append(queue)
            self._try_again()
        for cache in self._cached:
            cache.clear()
        self._states.clear()
        self._recent.clear()

    def set_priority(self, job: Job, priority: int, now: float) -> None:
        """Change the priority of a waiting or running job."""
        self._now = now
        self.queues[job.queue].change_priority(job, priority)
        if job.cells:
            for cell in job.usage:
                self._cached[cell].clear()
            self._try_again()
        self._forget_states(job)

    def settle(self, now: float) -> Moves:
        """Run Kueue until nothing more happens at this instant. Jobs set aside are retried when they are due."""
        moves = Moves([], [])
        self._now = now
        while True:
            if self._status_at <= now:
                self._status_at = math.inf
                self._try_again()
            if self._requeue_at <= now:
                self._requeue_at = math.inf
                for queue in self.queues.values():
                    queue.aside.clear()
            self._run_cycles(moves)
            if self._released:  # drained jobs join behind those that waited
                self._released.pop().join_drained()
            elif not self._evicting:
                return moves
            elif self.timing.retry_before and self._requeue_at < math.inf:
                self._requeue_at = now
            else:
                self._finish_evictions(moves)

    def _finish_evictions(self, moves: Moves) -> None:
        """Return the next evicted job, or all evicted jobs, to their queues, depending on the timing."""
        finished = self._evicting
        self._evicting = []
        if self.timing.one_by_one:
            self.order.shuffle(finished)
            self._evicting = finished[1:]
            finished = finished[:1]
        for eviction in finished:
            self._free(eviction.job)
            if self.timing.retry_with:
                self._requeue_at = self._now
            queue = self.queues[eviction.job.queue]
            queue.push_evicted(eviction)
            self._note_status_change(eviction.job)
        moves.steps.extend(finished)
        self._recent.extend(finished)
        self._count_state(moves)

    def _forget_states(self, job: Job) -> None:
        self._states.clear()
        self._recent.clear()
        self._note_status_change(job)

    def _count_state(self, moves: Moves) -> None:
        """Detect and stop a loop, in which jobs evict each other and always return to the same state."""
        queues = self.queues.values()
        running = frozenset((job, job.cells) for queue in queues for job in queue.running)
        state = running, tuple(frozenset(queue.aside) for queue in queues)
        loop = self._recent[self._states.get(state, len(self._recent)) :]
        self._states[state] = len(self._recent)
        for eviction in loop:
            if eviction.reason == "hold":
                continue
            self._truces[eviction.by.queue, eviction.by.shape] = self._now + TRUCE_SECONDS
        moves.loops.extend(loop)

    def _free(self, job: Job) -> None:
        borrows = self._borrows_below_root(job)
        self.queues[job.queue].stop(job)
        job.member.remove(job.usage)
        self._clear_caches(job, every_cell=borrows)
        job.release_quota()
        self._try_again()

    def _note_status_change(self, job: Job) -> None:
        """Schedule a retry for the moment when the status of the job's queue will have changed."""
        if job.queue in self.watched:
            self._status_at = min(self._status_at, self._now + REQUEUE_SECONDS)

    def _try_again(self) -> None:
        self._requeue_at = min(self._requeue_at, self._now + REQUEUE_SECONDS)

    def _run_cycles(self, moves: Moves) -> None:
        """Run cycles until nothing more happens."""
        earlier_states: list[object] = []
        while (state := self._run_cycle(moves)) is not None and state not in earlier_states:
            if state:
                earlier_states.append(state)
            else:
                earlier_states.clear()
            if self.timing.before_next_cycle and self._evicting:
                return
        if state in earlier_states and len(earlier_states) > 1:
            # Jobs take turns in trying flavors, and any of them may be next.
            for _ in range(self.order.randrange(len(earlier_states))):
                self._run_cycle(moves)

    def _run_cycle(self, moves: Moves) -> list[tuple[Job, tuple[int, ...]]] | None:
        """Run a cycle, and return its jobs with their last tried flavors.

        Returns [] if the cycle moved a job, and None if further cycles would change nothing.
        """
        self._cycle += 1
        if self.nested:
            self.quotas.shuffle(self.order)
        heads = list(self._heads())
        if not heads:
            return None
        tried_before = [job.attempt.tried for job, _ in heads]
        entries = [self._nominate(job, queue) for job, queue in heads]
        count_before = len(moves.steps) + len(self._evicting)
        self._process([entry for entry in entries if entry.mode == FIT or self._counts(entry)], moves)
        moved = len(moves.steps) + len(self._evicting) > count_before
        for entry in entries:
            if entry.mode == NO_FIT or (entry.mode == PREEMPT and not entry.targets):
                has_untried = any(index != -1 for index in entry.tried)
                self._note_tried(entry)
                if not has_untried and not entry.queue.policy.is_strict:
                    entry.queue.aside.add(entry.job.shape)
                    moved = True
                entry.queue.push(entry.job)
        if moved:
            return []
        if tried_before == [job.attempt.tried for job, _ in heads]:
            return None  # the next cycle would be the same
        return [(entry.job, entry.job.attempt.tried) for entry in entries]

    def _heads(self) -> Iterator[tuple[Job, Queue]]:
        """Remove and yield the first waiting job of each queue that is not held."""
        for queue in self.queues.values():
            job = queue.pop()
            if job:
                yield job, queue

    def _counts(self, entry: Entry) -> bool:
        """Return True if an entry that does not fit affects others, as it always does in nested cohorts."""
        if entry.mode == NO_FIT:
            return self.nested
        return bool(entry.targets or entry.queue.policy.reclaim != "Any" or self.nested)

    def _note_tried(self, entry: Entry) -> None:
        entry.job.attempt = Attempt(entry.tried, self._cycle, generation=entry.queue.generation)

    def _process(self, entries: list[Entry], moves: Moves) -> None:
        """Process the entries of a cycle. Each one is admitted, evicts other jobs, or is left for the next cycle."""
        state = _CycleState()
        ordered: Iterable[Entry] = sorted(entries, key=_by_level)
        if self.strategies:
            ordered = self._in_fair_order(entries)
        for entry in ordered:
            if entry.mode == NO_FIT:
                continue
            if entry.mode == PREEMPT and not entry.targets:
                if entry.queue.policy.reclaim != "Any":  # it could not reclaim what others would borrow before it
                    state.hold(entry.queue.member, self._reserved(entry))
            elif not self._fits(entry, state.evicted):
                self._note_tried(entry)
                entry.queue.push(entry.job)
            elif entry.mode == FIT:
                self._admit(entry, moves)
            else:
                self._preempt(entry, state)
        state.release()

    def _preempt(self, entry: Entry, state: _CycleState) -> None:
        """Evict an entry's targets. Its job moves to the front of its queue, and holds quota until the cycle ends."""
        job = entry.job
        state.evicted.update(target.job for target in entry.targets)
        state.hold(entry.queue.member, entry.usage)
        for target in entry.targets:
            self._evict(target, job)
        job.attempt = NO_ATTEMPT
        entry.queue.prefer(job)
        entry.queue.push(job)

    def _evict(self, target: Target, by: Job) -> None:
        if target.job.evicting:
            return
        target.job.evicting = True
        for cell in target.job.usage:
            self._cached[cell].clear()
        self._evicting.append(Eviction(target.job, target.job.cells, by=by, reason=target.reason))

    def _admit(self, entry: Entry, moves: Moves) -> None:
        job = entry.job
        job.hold_quota(entry.cells, entry.usage, self._now)
        entry.queue.start(job)
        job.member.add(job.usage)
        self._clear_caches(job, every_cell=self._borrows_below_root(job))
        moves.steps.append(Admission(job, entry.cells))
        self._note_status_change(job)

    def _fits(self, entry: Entry, evicted: set[Job]) -> bool:
        """Return True if the entry fits once all jobs that this cycle evicts are gone.

        It does not fit if another entry already evicts one of its targets.
        """
        if any(target.job in evicted for target in entry.targets):
            return False
        gone = evicted.union(target.job for target in entry.targets)
        self._without(gone)
        member = entry.queue.member
        fits = all(max(0, member.available(cell)) >= amount for cell, amount in entry.usage.items())
        self._with(gone)
        return fits

    def _reserved(self, entry: Entry) -> dict[int, int]:
        """Return the quota to reserve for a job that needs evictions but may not evict any job."""
        reserved = {}
        member = entry.queue.member
        for cell, amount in entry.usage.items():
            unused = member.subtree[cell] - member.usage[cell]
            limit = member.borrowing[cell]
            if not entry.level:
                reserved[cell] = max(0, min(amount, unused))
            else:
                reserved[cell] = amount if limit is None else min(amount, unused + limit)
        return reserved

    def _in_fair_order(self, entries: list[Entry]) -> Iterable[Entry]:
        """Yield entries in the order of fair sharing. Each entry changes the order of the others in its cohorts."""
        remaining = {entry.queue.member: entry for entry in entries}
        keys: dict[tuple[Member, Job], tuple[Any, ...]] = {}
        changed = list(remaining)
        while len(remaining) > 1:
            for member in changed:
                entry = remaining[member]
                member.add(entry.usage)
                below = member
                for cohort in member.path():
                    borrows = below.borrows(entry.usage)
                    keys[cohort, entry.job] = (borrows, below.share(), -entry.job.priority, entry.job.created)
                    below = cohort
                member.remove(entry.usage)
            first = next(iter(remaining))
            if first.parent is None:
                changed = []
                yield remaining.pop(first)
                continue
            root = first.root
            winner = _winner(root, remaining, keys)
            assert winner is not None
            del remaining[winner.queue.member]
            yield winner
            *below_root, _ = winner.queue.member.path()  # members of other roots keep their keys
            changed = [member for member in remaining if not set(below_root).isdisjoint(member.path())]
        yield from remaining.values()

    def _nominate(self, job: Job, queue: Queue) -> Entry:
        """Find flavors for a job, and the jobs that it has to evict for them."""
        attempt = job.attempt
        if attempt.tried and self._cycle - attempt.cycle > 1 and queue.generation > attempt.generation:
            job.attempt = NO_ATTEMPT
        entry = Entry(job, queue)
        tried: list[int] = []
        of_others: tuple[int, ...] = ()  # what was tried for the kinds before this one
        for index, pods in enumerate(job.pods):
            if not pods.is_same_kind:
                of_others = tuple(tried)
            last_tried = job.attempt.tried
            start = last_tried[index] + 1 if index < len(last_tried) else 0
            first_cell, best, last = self._find_flavor(entry, pods, start)
            if best.mode == NO_FIT:
                entry.mode = NO_FIT
                entry.tried = of_others  # this kind begins at its first flavors again
                return entry
            tried.append(last)
            parts = [(first_cell, pods.amount, best)]
            if pods.more:
                cells = self._cells(queue, pods, first_cell)
                parts = [(cell, amount, self._assignment(entry, cell, amount)) for cell, amount in cells]
            for cell, amount, assignment in parts:
                if assignment.mode != FIT:
                    entry.mode = PREEMPT
                    entry.needed |= {cell}
                    entry.targets = assignment.targets
                entry.level = max(entry.level, assignment.level)
                entry.usage[cell] = entry.usage.get(cell, 0) + amount
            entry.cells += (first_cell,)
        entry.tried = tuple(tried)
        if entry.mode == PREEMPT and (len(job.pods) > 1 or job.pods[0].more):  # for all of its pods together
            entry.targets = self._targets(job, queue, entry.usage, entry.needed)
        return entry

    def _find_flavor(self, entry: Entry, pods: Pods, start: int) -> tuple[int, Assignable, int]:
        """Return the best flavor for pods, its assignment, and the index of the last tried flavor (-1: all)."""
        queue = entry.queue
        policy = queue.policy
        rank = _by_borrowing if policy.prefers_preemption else _by_mode
        best = Assignable(NO_FIT, 0, targets=[])
        best_cell = -1
        cells = queue.cells.get(pods.resource, [])
        last = start - 1
        for last in range(start, len(cells)):
            cell = cells[last]
            if pods.flavors is not None and self.quotas.flavors[cell] not in pods.flavors:
                continue
            assignment = self._assignment(entry, cell, pods.amount)
            if pods.more:
                assignment = self._worst(entry, pods, cell)
            try_next = (assignment.mode < FIT and policy.next_if_preempting) or (
                assignment.level and policy.next_if_borrowing
            )
            if assignment.mode > NO_CANDIDATES and not try_next:
                best = assignment
                best_cell = cell
                break
            if rank(assignment) > rank(best):
                best = assignment
                best_cell = cell
        return best_cell, best, -1 if last == len(cells) - 1 else last

    def _cells(self, queue: Queue, pods: Pods, cell: int) -> list[tuple[int, int]]:
        """Return the pods' resources in a cell's flavor, as pairs of cell and amount; empty if one is missing."""
        cells = [(cell, pods.amount)]
        for resource, amount in pods.more:
            sibling = queue.sibling_cells.get((cell, resource))
            if sibling is None:
                return []
            cells.append((sibling, amount))
        return cells

    def _worst(self, entry: Entry, pods: Pods, cell: int) -> Assignable:
        """Return how a flavor can be assigned to pods with several resources. The resource that fits worst decides."""
        cells = self._cells(entry.queue, pods, cell)
        assignments = [self._assignment(entry, cell, amount) for cell, amount in cells]
        rank = _by_borrowing if entry.queue.policy.prefers_preemption else _by_mode
        return min(assignments, key=rank, default=Assignable(NO_FIT, 0, targets=[]))

    def _assignment(self, entry: Entry, cell: int, amount: int) -> Assignable:
        """Return how a flavor's resource can be assigned. The result is cached until one of its inputs changes."""
        job = entry.job
        queue = entry.queue
        amount += entry.usage.get(cell, 0)
        age = job.created if queue.policy.within_queue == "LowerOrNewerEqualPriority" else 0.0
        key = (queue.name, job.priority, amount, age, self._has_truce(job))
        cache = self._cached[cell]
        assignment = cache.get(key)
        if assignment is None:
            assignment = self._assignable(job, queue, cell, amount)
            cache[key] = assignment
        return assignment

    def _assignable(self, job: Job, queue: Queue, cell: int, amount: int) -> Assignable:
        member = queue.member
        policy = queue.policy
        if amount > member.potential[cell]:
            return Assignable(NO_FIT, 0, targets=[])
        level, below_root = member.lowest_fit(cell, amount)
        if amount <= max(0, member.available(cell)):
            return Assignable(FIT, level, targets=[])
        may_borrow = policy.takes_while_borrowing or (self.strategies and policy.reclaim != "Never")
        if not (amount <= member.subtree[cell] or below_root or may_borrow):
            return Assignable(NO_FIT, level, targets=[])
        evictable = self._targets(job, queue, {cell: amount}, frozenset((cell,)))
        if not evictable:
            return Assignable(NO_CANDIDATES, level, targets=[])
        gone = [target.job for target in evictable]
        self._without(gone)
        level, _ = member.lowest_fit(cell, amount)
        self._with(gone)
        in_same_queue = any(job.queue == queue.name for job in gone)
        return Assignable(PREEMPT if in_same_queue else RECLAIM, level, targets=evictable)

    def _has_truce(self, job: Job) -> bool:
        return self._truces.get((job.queue, job.shape), 0.0) > self._now

    def _targets(self, job: Job, queue: Queue, usage: Usage, needed: frozenset[int]) -> list[Target]:
        """Return the jobs that a job has to evict for ``usage``. ``needed`` contains the cells without enough quota."""
        if self._has_truce(job):
            return []
        root = queue.member.root
        if (root, needed) not in self._users:
            in_tree = [other for other in self.queues.values() if other.member.root is root]
            self._users[root, needed] = [other for other in in_tree if not needed.isdisjoint(other.member.cells)]
        return targets(
            Waiting(
                job, queue, usage=usage, needed=needed, queues=self._users[root, needed], strategies=self.strategies
            )
        )

    def _borrows_below_root(self, job: Job) -> bool:
        """Return True if a running job's queue, or a cohort above it except the root, borrows what the job uses."""
        return any(member.borrows(job.usage) for member in _below_root(job.member))

    def _clear_caches(self, job: Job, *, every_cell: bool) -> None:
        """Delete the cached assignments that depend on a job's usage.

        If the job borrows, set ``every_cell`` to delete the assignments of all flavors, since its usage changes shares.
        """
        changed = _below_root(job.member)[-1].cells if every_cell else job.usage
        for cell in changed:
            self._cached[cell].clear()

    def _without(self, jobs: Iterable[Job]) -> None:
        for job in jobs:
            job.member.remove(job.usage)

    def _with(self, jobs: Iterable[Job]) -> None:
        for job in jobs:
            job.member.add(job.usage)


def _below_root(member: Member) -> list[Member]:
    """Return a queue and the cohorts above it without the root. A queue without a cohort is its own root."""
    return [member, *member.path()][:-1] or [member]


def _by_mode(assignment: Assignable) -> tuple[int, ...]:
    return (assignment.mode, -assignment.level)


def _by_borrowing(assignment: Assignable) -> tuple[int, ...]:
    """Return the sorting key of assignments under the preference PreemptionOverBorrowing."""
    return (min(assignment.mode, PREEMPT), -assignment.level, assignment.mode)


def _by_level(entry: Entry) -> tuple[float, ...]:
    """Return the sorting key of entries without fair sharing: nearest lender first, then priority, then age."""
    return (entry.level, -entry.job.priority, entry.job.created, entry.job.tie)


def _winner(
    cohort: Member, remaining: Mapping[Member, Entry], keys: Mapping[tuple[Member, Job], tuple[Any, ...]]
) -> Entry | None:
    """Return the entry of a cohort that is processed first: the best among the first entries of its members."""
    best: Entry | None = None
    for child in cohort.children:
        entry = remaining.get(child)
        if entry is None and child.children:
            entry = _winner(child, remaining, keys)
        if entry is not None and (best is None or keys[cohort, entry.job] < keys[cohort, best.job]):
            best = entry
    return best
