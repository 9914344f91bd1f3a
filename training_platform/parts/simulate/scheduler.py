"""Who is admitted, on which flavor, and who is evicted for whom: Kueue's scheduler as a model.

``Scheduler`` is one cluster's Kueue. Jobs are submitted to it and ended, and
``settle`` does what Kueue does until nothing moves at that instant. A cycle takes the first job of every queue, finds
flavors for each, and goes through them in the order of fair sharing, or of borrowing, priority and age without it. A
job that found nothing is put aside with all of its shape, until quota becomes free or a job is taken away; then all are
tried again, a second later, since Kueue gathers such changes for so long. Below an object of a cohort that is not the
root, Kueue does so as well when the status of a queue has changed, and it updates statuses a second after they change.

A job that evicts others is the first in its queue until it is admitted, or another job of the queue evicts some. Jobs
of a queue that is drained wait until it is held no more, and join it after those that waited there.

Modelled with the default feature gates of Kueue 0.19: FlavorFungibility, FlavorFungibilityPreserveScanProgress,
FairSharingPreemptWithinNominal, FairSharingPrioritizeNonBorrowing, PrioritySortingWithinCohort and
SchedulingEquivalenceHashing are on; PrioritizePreemptorWorkloads, RecomputeAssignmentUponPreemptionTargetsOverlap,
SchedulerTimestampPreemptionBuffer and SchedulerLongRequeueInterval are off. Left out: topologies, admission checks,
partial admission, elastic jobs and admission fair sharing.

An eviction takes effect once no other job can move, since other cycles take milliseconds and an eviction several calls;
with some seeds it does after the cycle that decides it, as on a busy machine.

Source: kubernetes-sigs/kueue v0.19.2, pkg/scheduler, pkg/cache/queue, pkg/controller/core (cohorts, queues, workloads)
and pkg/features, read 2026-11-23.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from training_platform.parts.simulate.cluster_queues import Eviction, Job, Pods, Queue, Shape
from training_platform.parts.simulate.preemption import Target, Waiting, targets
from training_platform.parts.simulate.quotas import Json, Member, Quotas, Usage

REQUEUE_SECONDS: Final = 1.0
"""How long Kueue gathers changes before it tries again those who were put aside."""
NO_FIT, NO_CANDIDATES, PREEMPT, RECLAIM, FIT = range(5)  # how a flavor can be assigned, the worst first
TRUCE_SECONDS: Final = 6 * 3600.0
"""How long jobs of a queue and shape evict nobody after one was in a loop; in a cluster the loop would go on."""


@dataclass(slots=True)
class Entry:
    """What a cycle found for the first job of a queue."""

    job: Job
    queue: Queue
    mode: int = FIT  # NO_FIT, PREEMPT or FIT
    flavors: tuple[int, ...] = ()
    usage: dict[int, int] = field(default_factory=dict)
    level: int = 0  # of the tree that it borrows from
    needed: frozenset[int] = frozenset()  # flavors in which others have to make room
    tried: tuple[int, ...] = ()
    targets: list[Target] = field(default_factory=list)


class Assignable(NamedTuple):
    """How a flavor can be assigned, the level of the tree that it would borrow from, and whom to evict for it."""

    mode: int
    level: int
    targets: list[Target]


class Admission(NamedTuple):
    """An admitted job, and the flavors assigned to its pods."""

    job: Job
    flavors: tuple[int, ...]


class Moves(NamedTuple):
    """What happened at an instant, in its order; ``loops`` are evictions among jobs that would go on without end."""

    made: list[Admission | Eviction]
    loops: list[Eviction]


class Scheduler:
    """One cluster's Kueue. ``fair_sharing`` has the strategies of preemption, or is None for the classical mode.

    ``seed`` decides ties, which Kueue decides by random ids, and an odd one whose eviction is over first, which in a
    cluster depends on how long each takes; with an even one all are over together. With every second odd one, Kueue
    tries those again that were put aside before the next eviction is over. With 4 to 7 of every eight, evictions are
    over before the next cycle. With the last of every eight, those put aside are tried again in the cycle in which an
    eviction is over.
    """

    def __init__(
        self, queues: Mapping[str, Json], cohorts: Mapping[str, Json], fair_sharing: Iterable[str] | None, seed: int = 0
    ) -> None:
        self.order = random.Random(seed)
        self.one_by_one = bool(seed % 2)
        self.slowly = seed % 4 == 3
        self.promptly = bool(seed // 4 % 2)
        self.together = seed % 8 == 7
        self.quotas = Quotas(queues, cohorts, self.order)
        self.strategies = tuple(fair_sharing or ()) or None
        self.queues = {name: Queue(name, spec, self.quotas.queues[name], self.quotas) for name, spec in queues.items()}
        self.nested = any(member.parent for member in self.quotas.cohorts.values())
        self.watched = {
            name
            for name, member in self.quotas.queues.items()
            if any(above.parent and above.name in cohorts for above in member.path())
        }
        self._requeue_at = self._status_at = math.inf
        self._truces: dict[tuple[str, Shape], float] = {}  # by queue and shape, until when they evict nobody
        self._now = 0.0
        self._cycle = 0
        self._evicting: list[Eviction] = []
        self._released: list[Queue] = []
        self._states: dict[object, int] = {}  # how many evictions before each
        self._known: list[dict[object, Assignable]] = [{} for _ in self.quotas.flavors]  # until what they read changes
        self._users: dict[tuple[Member, frozenset[int]], list[Queue]] = {}
        self._recent: list[Eviction] = []  # since a job was submitted or ended

    @property
    def next_at(self) -> float:
        """When jobs that were put aside are tried again, endless where none are."""
        return min(self._requeue_at, self._status_at)

    def submit(self, job: Job, now: float) -> None:
        """Put a job into its queue."""
        self._now, queue = now, self.queues[job.queue]
        job.created, job.tie, job.member = now, self.order.random(), queue.member
        queue.push(job)
        self._forget_states(job)

    def end(self, job: Job, now: float) -> None:
        """Take a job away that has ended, or that nobody wants any more, and free its quota."""
        self._now = now
        if job.flavors:
            self._evicting = [row for row in self._evicting if row.job is not job]
            self._free(job)
        else:
            self.queues[job.queue].remove(job)
            self._try_again()
        self._forget_states(job)

    def hold(self, name: str, policy: str, now: float) -> None:
        """Hold a queue, drain it, or let it start jobs again: its stop policy."""
        self._now, queue = now, self.queues[name]
        queue.held = policy != "None"
        if policy == "HoldAndDrain":
            for job in queue.running:
                if not job.evicting:
                    job.evicting = True
                    self._evicting.append(Eviction(job, job.flavors, job, "hold"))
        elif not queue.held:
            self._released.append(queue)
            self._try_again()
        for known in self._known:
            known.clear()
        self._states.clear()
        self._recent.clear()

    def set_priority(self, job: Job, priority: int, now: float) -> None:
        """Change the priority of a job that waits or runs."""
        self._now, queue = now, self.queues[job.queue]
        if job.flavors:
            for flavor, amount in job.usage.items():
                queue.used[flavor][job.priority] -= amount
                queue.used[flavor][priority] += amount
                self._known[flavor].clear()
            job.change_priority(priority)
            self._try_again()
        else:
            preemptor = queue.preemptor
            queue.remove(job)
            job.change_priority(priority)
            queue.preemptor = preemptor
            queue.push(job)
        self._forget_states(job)

    def settle(self, now: float) -> Moves:
        """Do what Kueue does until nothing moves any more; those put aside are tried again once their time is there."""
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
            if self._released:  # those that were drained join after those that waited
                self._released.pop().join_drained()
            elif not self._evicting:
                return moves
            elif self.slowly and self._requeue_at < math.inf:
                self._requeue_at = now
            else:
                self._finish_evictions(moves)

    def _finish_evictions(self, moves: Moves) -> None:
        """Let jobs that are evicted wait again, one of them or all."""
        if self.one_by_one:
            self.order.shuffle(self._evicting)
        done = self._evicting[:1] if self.one_by_one else self._evicting
        self._evicting = self._evicting[len(done) :]
        for eviction in done:
            self._free(eviction.job)
            if self.together:
                self._requeue_at = self._now
            queue = self.queues[eviction.job.queue]
            if eviction.reason == "hold" and queue.held:
                queue.drained.append(eviction.job)
            else:
                queue.push(eviction.job)
            self._changed(eviction.job)
        moves.made.extend(done)
        self._recent.extend(done)
        self._count_state(moves)

    def _forget_states(self, job: Job) -> None:
        self._states.clear()
        self._recent.clear()
        self._changed(job)

    def _count_state(self, moves: Moves) -> None:
        """Cut a loop: jobs that evict each other come back to the same state."""
        queues = self.queues.values()
        running = frozenset((job, job.flavors) for queue in queues for job in queue.running)
        state = running, tuple(frozenset(queue.aside) for queue in queues)
        loop = self._recent[self._states.get(state, len(self._recent)) :]
        self._states[state] = len(self._recent)
        for eviction in loop:
            if eviction.reason == "hold":
                continue
            self._truces[eviction.by.queue, eviction.by.shape] = self._now + TRUCE_SECONDS
        moves.loops.extend(loop)

    def _free(self, job: Job) -> None:
        self._count(job, -1)
        job.flavors, job.usage, job.evicting, job.tried = (), {}, False, ()
        self._try_again()

    def _changed(self, job: Job) -> None:
        """Note that the status of a job's queue changes."""
        if job.queue in self.watched:
            self._status_at = min(self._status_at, self._now + REQUEUE_SECONDS)

    def _try_again(self) -> None:
        self._requeue_at = min(self._requeue_at, self._now + REQUEUE_SECONDS)

    def _run_cycles(self, moves: Moves) -> None:
        """Run cycles until nothing moves."""
        seen: list[object] = []
        while (state := self._run_cycle(moves)) is not None and state not in seen:
            seen = [*seen, state] if state else []
            if self.promptly and self._evicting:
                return
        if state in seen and len(seen) > 1:  # jobs take turns in trying flavors, and any of them may be next
            for _ in range(self.order.randrange(len(seen))):
                self._run_cycle(moves)

    def _run_cycle(self, moves: Moves) -> list[tuple[Job, tuple[int, ...]]] | None:
        """Run a cycle; return what it leaves for the next, nothing if it moved something, None if all is quiet."""
        self._cycle += 1
        if self.nested:
            self.quotas.shuffle(self.order)
        queues = [queue for queue in self.queues.values() if (queue.waiting or queue.first) and not queue.held]
        heads = [(job, queue) for queue in queues if (job := queue.pop())]
        if not heads:
            return None
        places = [job.tried for job, _ in heads]
        entries = [self._nominate(job, queue) for job, queue in heads]
        before = len(moves.made) + len(self._evicting)
        self._process([entry for entry in entries if entry.mode == FIT or self._counts(entry)], moves)
        moved = len(moves.made) + len(self._evicting) > before
        for entry in entries:
            if entry.mode == NO_FIT or (entry.mode == PREEMPT and not entry.targets):
                pending = any(place != -1 for place in entry.tried)  # flavors that were not tried yet
                self._tried(entry)
                if not pending and not entry.queue.strict:
                    entry.queue.aside.add(entry.job.shape)
                    moved = True
                entry.queue.push(entry.job)
        if moved:
            return []
        if places == [job.tried for job, _ in heads]:
            return None  # the next cycle would be the same
        return [(entry.job, entry.job.tried) for entry in entries]

    def _counts(self, entry: Entry) -> bool:
        """Whether an entry that does not fit changes what others get: where cohorts are nested, also by its place."""
        if entry.mode == NO_FIT:
            return self.nested
        return bool(entry.targets or entry.queue.reclaim != "Any" or self.nested)

    def _tried(self, entry: Entry) -> None:
        entry.job.tried = entry.tried
        entry.job.tried_at = (self._cycle, entry.queue.generation)

    def _process(self, entries: list[Entry], moves: Moves) -> None:
        """Go through the entries of a cycle: admit, evict, or leave for the next cycle."""
        counted: list[tuple[Member, Usage]] = []  # for this cycle alone
        evicted: set[Job] = set()
        ordered = self._in_fair_order(entries) if self.strategies else sorted(entries, key=_by_level)
        for entry in (entry for entry in ordered if entry.mode != NO_FIT):
            job, queue = entry.job, entry.queue
            if entry.mode == PREEMPT and not entry.targets:
                if queue.reclaim != "Any":  # it could not get back what others would borrow before it
                    counted.append((queue.member, self._reserved(entry)))
                    queue.member.add(counted[-1][1])
                continue
            overlap = any(target.job in evicted for target in entry.targets)
            if overlap or not self._fits(entry, evicted):
                self._tried(entry)
                queue.push(job)
                continue
            if entry.mode == FIT:
                self._admit(entry, moves)
                continue
            evicted.update(target.job for target in entry.targets)
            counted.append((queue.member, entry.usage))
            queue.member.add(entry.usage)
            for target in entry.targets:
                if not target.job.evicting:
                    target.job.evicting = True
                    for flavor in target.job.usage:
                        self._known[flavor].clear()
                    self._evicting.append(Eviction(target.job, target.job.flavors, job, target.reason))
            job.tried = ()
            queue.prefer(job)
            queue.push(job)
        for member, usage in counted:
            member.remove(usage)

    def _admit(self, entry: Entry, moves: Moves) -> None:
        job = entry.job
        job.flavors, job.usage, job.reserved, job.tried = entry.flavors, entry.usage, self._now, ()
        if job is entry.queue.preemptor:
            entry.queue.prefer(None)
        self._count(job, 1)
        moves.made.append(Admission(job, entry.flavors))
        self._changed(job)

    def _fits(self, entry: Entry, evicted: set[Job]) -> bool:
        """Whether there is room once all that this cycle evicts are gone."""
        gone = evicted.union(target.job for target in entry.targets)
        self._without(gone)
        member = entry.queue.member
        fits = all(max(0, member.available(flavor)) >= amount for flavor, amount in entry.usage.items())
        self._with(gone)
        return fits

    def _reserved(self, entry: Entry) -> dict[int, int]:
        """Return what is kept for a job that would have to preempt and cannot."""
        kept = {}
        member = entry.queue.member
        for flavor, amount in entry.usage.items():
            left, limit = member.subtree[flavor] - member.usage[flavor], member.borrowing[flavor]
            if not entry.level:
                kept[flavor] = max(0, min(amount, left))
            else:
                kept[flavor] = amount if limit is None else min(amount, left + limit)
        return kept

    def _in_fair_order(self, entries: list[Entry]) -> Iterable[Entry]:
        """Yield entries in the order of fair sharing, which what happens to each changes for others of its cohorts."""
        left = {entry.queue.member: entry for entry in entries}
        keys: dict[tuple[Member, Job], tuple[Any, ...]] = {}
        changed = list(left)
        while len(left) > 1:
            for member in changed:
                entry = left[member]
                member.add(entry.usage)
                own = member
                for above in member.path():
                    borrows = own.borrows(entry.usage)
                    keys[above, entry.job] = (borrows, own.share(), -entry.job.priority, entry.job.created)
                    own = above
                member.remove(entry.usage)
            first = next(iter(left))
            if first.parent is None:
                changed = []
                yield left.pop(first)
                continue
            root = first.root
            winner = _winner(root, left, keys)
            assert winner is not None
            del left[winner.queue.member]
            yield winner
            *below_root, _ = winner.queue.member.path()  # members of other roots are as they were
            changed = [member for member in left if not set(below_root).isdisjoint(member.path())] if below_root else []
        yield from left.values()

    def _nominate(self, job: Job, queue: Queue) -> Entry:
        """Find flavors for a job, and whom it has to evict for them."""
        if job.tried and self._cycle - job.tried_at[0] > 1 and queue.generation > job.tried_at[1]:
            job.tried = ()
        entry = Entry(job, queue)
        tried: list[int] = []
        of_others: tuple[int, ...] = ()  # what was tried for the kinds before this one
        for index, pods in enumerate(job.pods):
            if not pods.is_same_kind:
                of_others = tuple(tried)
            start = job.tried[index] + 1 if index < len(job.tried) else 0
            flavor, best, last = self._find_flavor(entry, pods, start)
            if best.mode == NO_FIT:
                entry.mode, entry.tried = NO_FIT, of_others  # this kind begins at its first flavors again
                return entry
            tried.append(last)
            parts = [(flavor, pods.amount, best)]
            if pods.more:
                cells = self._cells(queue, pods, flavor)
                parts = [(cell, amount, self._how(entry, cell, amount)) for cell, amount in cells]
            for cell, amount, how in parts:
                if how.mode != FIT:
                    entry.mode, entry.needed, entry.targets = PREEMPT, entry.needed | {cell}, how.targets
                entry.level = max(entry.level, how.level)
                entry.usage[cell] = entry.usage.get(cell, 0) + amount
            entry.flavors += (flavor,)
        entry.tried = tuple(tried)
        if entry.mode == PREEMPT and (len(job.pods) > 1 or job.pods[0].more):  # for all of its pods together
            entry.targets = self._targets(job, queue, entry.usage, entry.needed)
        return entry

    def _find_flavor(self, entry: Entry, pods: Pods, start: int) -> tuple[int, Assignable, int]:
        """Return the best flavor for pods, how it can be assigned, and the place that was tried last, -1 for all."""
        queue, best, best_flavor = entry.queue, Assignable(NO_FIT, 0, []), -1
        flavors = queue.flavors.get(pods.resource, [])
        last = start - 1
        for last in range(start, len(flavors)):
            flavor = flavors[last]
            if pods.flavors is not None and self.quotas.flavors[flavor] not in pods.flavors:
                continue
            found = self._how(entry, flavor, pods.amount)
            if pods.more:
                found = self._worst(entry, pods, flavor)
            if found.mode > NO_CANDIDATES and not (
                (found.mode < FIT and queue.next_if_preempting) or (found.level and queue.next_if_borrowing)
            ):
                best, best_flavor = found, flavor
                break
            better = (found.mode, -found.level) > (best.mode, -best.level)
            if queue.prefers_preemption:
                better = _by_borrowing(found) > _by_borrowing(best)
            if better:
                best, best_flavor = found, flavor
        return best_flavor, best, -1 if last == len(flavors) - 1 else last

    def _cells(self, queue: Queue, pods: Pods, flavor: int) -> list[tuple[int, int]]:
        """Return the cells of a flavor that pods use, and the amounts; none where the flavor lacks a resource."""
        others = [(queue.beside.get((flavor, resource), -1), amount) for resource, amount in pods.more]
        return [] if any(cell < 0 for cell, _ in others) else [(flavor, pods.amount), *others]

    def _worst(self, entry: Entry, pods: Pods, flavor: int) -> Assignable:
        """Return how a flavor can be assigned to pods with several resources: as the resource that fits worst."""
        every = [self._how(entry, cell, amount) for cell, amount in self._cells(entry.queue, pods, flavor)]
        rank = _by_borrowing if entry.queue.prefers_preemption else _by_mode
        return min(every, key=rank, default=Assignable(NO_FIT, 0, []))

    def _how(self, entry: Entry, flavor: int, amount: int) -> Assignable:
        """Return how a flavor can be assigned, as it was found before where nothing that this reads has changed."""
        job, queue = entry.job, entry.queue
        amount += entry.usage.get(flavor, 0)
        age = job.created if queue.within == "LowerOrNewerEqualPriority" else 0.0
        key = (queue.name, job.priority, amount, age, self._has_truce(job))
        if (found := self._known[flavor].get(key)) is None:
            found = self._known[flavor][key] = self._assignable(job, queue, flavor, amount)
        return found

    def _assignable(self, job: Job, queue: Queue, flavor: int, amount: int) -> Assignable:
        member = queue.member
        if amount > member.potential[flavor]:
            return Assignable(NO_FIT, 0, [])
        level, below_root = member.lowest_fit(flavor, amount)
        if amount <= max(0, member.available(flavor)):
            return Assignable(FIT, level, [])
        may_borrow = queue.takes_while_borrowing or (self.strategies and queue.reclaim != "Never")
        if not (amount <= member.subtree[flavor] or below_root or may_borrow):
            return Assignable(NO_FIT, level, [])
        found = self._targets(job, queue, {flavor: amount}, frozenset((flavor,)))
        if not found:
            return Assignable(NO_CANDIDATES, level, found)
        gone = [target.job for target in found]
        self._without(gone)
        level, _ = member.lowest_fit(flavor, amount)
        self._with(gone)
        return Assignable(PREEMPT if any(job.queue == queue.name for job in gone) else RECLAIM, level, found)

    def _has_truce(self, job: Job) -> bool:
        return self._truces.get((job.queue, job.shape), 0.0) > self._now

    def _targets(self, job: Job, queue: Queue, usage: Usage, needed: frozenset[int]) -> list[Target]:
        """Return whom a job has to evict to get ``usage``; ``needed`` are the flavors without enough room."""
        if self._has_truce(job):
            return []
        root = queue.member.root
        if (root, needed) not in self._users:
            beside = [row for row in self.queues.values() if row.member.root is root]
            self._users[root, needed] = [row for row in beside if not needed.isdisjoint(row.member.flavors)]
        return targets(Waiting(job, queue, usage, needed, self._users[root, needed], self.strategies))

    def _count(self, job: Job, sign: int) -> None:
        """Count what a job takes (1) or frees (-1), and forget what was found with other usage or shares."""
        queue, member = self.queues[job.queue], job.member
        queue.count(job, sign)
        below_root = [member, *member.path()][:-1] or [member]
        if sign > 0:
            member.add(job.usage)
        borrows = any(above.borrows(job.usage) for above in below_root)
        if sign < 0:
            member.remove(job.usage)
        for flavor in below_root[-1].flavors if borrows else job.usage:
            self._known[flavor].clear()

    def _without(self, jobs: Iterable[Job]) -> None:
        for job in jobs:
            job.member.remove(job.usage)

    def _with(self, jobs: Iterable[Job]) -> None:
        for job in jobs:
            job.member.add(job.usage)


def _by_mode(how: Assignable) -> tuple[int, ...]:
    return (how.mode, -how.level)


def _by_borrowing(how: Assignable) -> tuple[int, ...]:
    """Return the key of the preference PreemptionOverBorrowing."""
    return (min(how.mode, PREEMPT), -how.level, how.mode)


def _by_level(entry: Entry) -> tuple[float, ...]:
    """Return the key that orders entries without fair sharing: who borrows from nearest, then by priority and age."""
    return (entry.level, -entry.job.priority, entry.job.created, entry.job.tie)


def _winner(
    cohort: Member, left: Mapping[Member, Entry], keys: Mapping[tuple[Member, Job], tuple[Any, ...]]
) -> Entry | None:
    """Return the entry that is first among those of a cohort, each member naming its best."""
    best: Entry | None = None
    for child in cohort.children:
        found = left.get(child) or (_winner(child, left, keys) if child.children else None)
        if found is not None and (best is None or keys[cohort, found.job] < keys[cohort, best.job]):
            best = found
    return best
