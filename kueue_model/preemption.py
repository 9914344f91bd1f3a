"""Finds the jobs that a waiting job evicts: Kueue's preemption, with and without fair sharing.

In both modes, the scheduler removes candidates in order until the job fits, and then restores those that are not
necessary.

With fair sharing, the next candidate belongs to the queue or cohort that borrows the most. A rule compares its share
with the share of the waiting job's queue, unless the latter is within its own quota. Without fair sharing, the first
candidates are jobs that use quota to which the waiting job's queue or its cohorts have a claim.

Source: kubernetes-sigs/kueue v0.19.2, pkg/scheduler/preemption, read 2026-11-23; its KEP 1714 for the two rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, takewhile
from typing import Any, NamedTuple

from kueue_model.cluster_queues import Job, PreemptionPolicy, Queue
from kueue_model.quotas import Member, Usage, Weighed

FINAL_SHARE = "LessThanOrEqualToFinalShare"
NOTHING: Weighed = (0, -1.0)  # less than every share
Needed = frozenset[int]


class Target(NamedTuple):
    """A running job that may be evicted, and the reason: ``queue``, ``reclaim``, ``share`` or ``borrowing``.

    Without fair sharing, ``shared_cohort`` is the lowest cohort that contains both the running and the waiting job's
    queue, or None if both jobs are in the same queue.
    """

    job: Job
    reason: str
    shared_cohort: Member | None = None
    if_not_borrowing: bool = False


class Waiting(NamedTuple):
    """A job that does not fit, the amounts that it requests, and the flavors and resources that lack free quota."""

    job: Job
    queue: Queue
    usage: Usage
    needed: Needed
    queues: list[Queue]  # with quota of one of these cells
    strategies: tuple[str, ...] | None  # of fair sharing

    def fits(self, *, borrowing: bool = True) -> bool:
        """Return True if enough quota is free for the job. Without ``borrowing``, only its queue's own quota counts."""
        member = self.queue.member
        return all(
            (borrowing or not member.borrows_with(cell, amount)) and amount <= max(0, member.available(cell))
            for cell, amount in self.usage.items()
        )

    def rank(self, job: Job) -> tuple[Any, ...]:
        """Return a sorting key: jobs already evicted come first, then other queues, low priority, the newest."""
        return (not job.evicting, job.queue == self.queue.name, job.priority, -job.reserved, job.tie)

    def candidates(self, queue: Queue) -> list[Job]:
        """Return a queue's running jobs that use the needed quota and that the policies let the job evict."""
        policy = self.queue.policy.reclaim
        if queue is self.queue:
            policy = self.queue.policy.within_queue
        if policy == "Never":
            return []
        in_use = (job for job in queue.running if not self.needed.isdisjoint(job.usage))
        return [job for job in in_use if self._may_evict(job, policy)]

    def _may_evict(self, job: Job, policy: PreemptionPolicy) -> bool:
        if policy == "Any" or job.priority < self.job.priority:
            return True
        is_newer_equal = job.priority == self.job.priority and self.job.created < job.created
        return policy == "LowerOrNewerEqualPriority" and is_newer_equal

    def take(self, chosen: Iterable[Target], *, borrowing: bool = True) -> list[Target]:
        """Remove jobs until the waiting job fits, restore those that are not necessary, and return the removed ones.

        Returns an empty list if the job never fits. At the end, the usage of all jobs is restored.
        """
        taken: list[Target] = []
        for target in chosen:
            target.job.member.remove(target.job.usage)
            taken.append(target)
            if self.fits(borrowing=borrowing):
                break
        else:
            self._restored(taken)
            return []
        for index in range(len(taken) - 2, -1, -1):
            taken[index].job.member.add(taken[index].job.usage)
            if self.fits(borrowing=borrowing):
                taken[index] = taken[-1]
                taken.pop()
            else:
                taken[index].job.member.remove(taken[index].job.usage)
        return self._restored(taken)

    def _restored(self, taken: list[Target]) -> list[Target]:
        for target in taken:
            target.job.member.add(target.job.usage)
        return taken


def targets(waiting: Waiting) -> list[Target]:
    """Return the jobs that a job has to evict. The list is empty if evictions do not help or are not allowed."""
    if _is_hopeless(waiting):
        return []
    if waiting.strategies is None:
        return _classical_targets(waiting)
    return waiting.take(_fair_targets(waiting, waiting.strategies))


def _is_hopeless(waiting: Waiting) -> bool:
    """Return True if evicting all candidates would not free enough quota. This usually saves the search.

    If a queue directly below the root has no candidates of its own, evictions do not change its share. Queues with
    smaller shares then provide no candidates.
    """
    job, queue, usage, needed, queues, strategies = waiting
    member = queue.member
    within_queue = queue.policy.within_queue
    reclaim = queue.policy.reclaim
    missing = {
        cell: usage[cell] - max(0, member.available(cell)) - queue.most_evictable(job, within_queue, cell)
        for cell in needed
    }
    if max(missing.values()) <= 0:
        return False
    other_queues = []
    if reclaim != "Never":
        other_queues = [other for other in queues if other is not queue and other.member.borrows(needed)]
    higher = [*member.path()][1:]
    if other_queues and strategies and not higher:
        borrows = any(member.borrows_with(cell, usage[cell]) for cell in needed)
        if borrows and not any(queue.most_evictable(job, within_queue, cell) for cell in needed):
            member.add(usage)
            share = member.share()
            member.remove(usage)
            other_queues = [other for other in other_queues if share <= member.beside(other.member)[1].share()]
    return any(
        sum(other.most_evictable(job, reclaim, cell) for other in other_queues) < amount
        for cell, amount in missing.items()
    )


def _fair_targets(waiting: Waiting, strategies: tuple[str, ...]) -> Iterator[Target]:
    """Yield the jobs to remove by the first strategy, then by the second. Shares include the waiting job's usage."""
    own_queue = waiting.queue
    candidates = waiting.candidates(own_queue)
    for queue in waiting.queues:
        if queue is not own_queue and queue.member.borrows(waiting.needed):
            candidates += waiting.candidates(queue)
    candidates.sort(key=waiting.rank)
    protected: list[Job] = []
    own_queue.member.add(waiting.usage)
    chosen = _by_first_rule(waiting, candidates, protected, by_final_share=strategies[0] == FINAL_SHARE)
    if len(strategies) > 1:
        chosen = chain(chosen, _by_second_rule(waiting, protected))
    for target in chosen:
        own_queue.member.remove(waiting.usage)
        yield target
        own_queue.member.add(waiting.usage)
    own_queue.member.remove(waiting.usage)


def _by_first_rule(
    waiting: Waiting, candidates: Iterable[Job], protected: list[Job], *, by_final_share: bool
) -> Iterator[Target]:
    """Yield the candidates that the first strategy selects, and add those that it protects to ``protected``."""
    own_member = waiting.queue.member
    within_quota = not own_member.borrows(waiting.needed)
    for member, jobs in _Largest(waiting, candidates):
        if member is own_member or within_quota:
            yield Target(jobs.pop(0), "queue" if member is own_member else "reclaim")
            continue
        own_side, other_side = own_member.beside(member)
        own_share = own_side.share()
        initial_share = other_side.share()
        while jobs:
            job = jobs.pop(0)
            passed = own_share < initial_share
            if by_final_share:
                job.member.remove(job.usage)
                passed = own_share <= other_side.share()
                job.member.add(job.usage)
            if passed:
                yield Target(job, "share")
                break  # shares have changed, and perhaps the largest
            protected.append(job)


def _by_second_rule(waiting: Waiting, candidates: Iterable[Job]) -> Iterator[Target]:
    """Yield one more job of each queue whose share is larger than the share that the waiting job's queue would have."""
    largest = _Largest(waiting, candidates)
    for member, jobs in largest:
        own_side, other_side = waiting.queue.member.beside(member)
        job = jobs.pop(0)
        if own_side.share() < other_side.share():
            yield Target(job, "share")
        largest.done.add(member)


class _Largest:
    """An iterator that always yields the queue with the largest share among those that still have candidates."""

    def __init__(self, waiting: Waiting, candidates: Iterable[Job]) -> None:
        self.own = waiting.queue.member
        self.above = list(self.own.path())
        self.rank: Callable[[Job], tuple[Any, ...]] = waiting.rank
        self.jobs: dict[Member, list[Job]] = {}
        for job in candidates:
            self.jobs.setdefault(job.member, []).append(job)
        self.done: set[Member] = set()

    def __iter__(self) -> Iterator[tuple[Member, list[Job]]]:
        """Yield a queue and its candidates. The caller removes one candidate, or adds the queue to ``done``."""
        while not self.above and self.own not in self.done and self.jobs.get(self.own):
            yield self.own, self.jobs[self.own]
        if not self.above:
            return
        while self.above[-1] not in self.done:
            member = self._next(self.above[-1])
            if member is not None:
                yield member, self.jobs[member]

    def _has_nothing(self, member: Member) -> bool:
        """Return True if a member has no candidates left: either it does not borrow, or all were removed."""
        if member.children:
            return member not in self.above and not member.borrows(member.cells)
        return not self.jobs.get(member) or (member is not self.own and not member.borrows(member.cells))

    def _next(self, cohort: Member) -> Member | None:
        """Return the queue with the largest share, or None if no member of the cohort has candidates."""
        queue: Member | None = None
        queue_share = NOTHING
        cohort_below: Member | None = None
        cohort_share = NOTHING
        for child in cohort.children:
            if child in self.done:
                continue
            if self._has_nothing(child):
                self.done.add(child)
                continue
            share = child.share()
            if child.children:
                if share >= cohort_share:
                    cohort_below = child
                    cohort_share = share
            elif share > queue_share:
                queue = child
                queue_share = share
            elif share == queue_share and queue and self.rank(self.jobs[child][0]) < self.rank(self.jobs[queue][0]):
                queue = child
        if queue is None and cohort_below is None:
            self.done.add(cohort)
            return None
        if cohort_below is not None and cohort_share >= queue_share:
            return self._next(cohort_below)
        return queue


def _classical_targets(waiting: Waiting) -> list[Target]:
    queue = waiting.queue
    in_queue = [Target(job, "queue") for job in waiting.candidates(queue)]
    claimed, other_targets = _in_cohorts(waiting)
    ordered: list[Target] = []
    for group in (claimed, other_targets, in_queue):
        ordered += sorted(group, key=lambda target: waiting.rank(target.job))
    ordered.sort(key=lambda target: not target.job.evicting)  # stable: the groups keep their order
    under_quota = all(queue.member.subtree[cell] > queue.member.usage[cell] for cell in waiting.needed)
    may_not_borrow = not queue.policy.takes_while_borrowing
    if not (claimed or other_targets) or (may_not_borrow and not under_quota):
        attempts = [True]
    elif may_not_borrow and not claimed:
        attempts = [False, True]
    else:
        attempts = [True, False]
    for borrowing in attempts:
        chosen = (target for target in ordered if _still_a_candidate(waiting, target, borrowing=borrowing))
        taken = waiting.take(chosen, borrowing=borrowing)
        if taken:
            return taken
    return []


def _still_a_candidate(waiting: Waiting, target: Target, *, borrowing: bool) -> bool:
    """Return True if the candidate's queue still borrows, and so do its cohorts below the one shared with the job."""
    if borrowing and target.if_not_borrowing:
        return False
    return target.shared_cohort is None or _borrows_below(waiting, target.job.member, target.shared_cohort)


def _borrows_below(waiting: Waiting, member: Member, cohort: Member) -> bool:
    below = takewhile(lambda above: above is not cohort, (member, *member.path()))
    return all(above.borrows(waiting.needed) for above in below)


def _in_cohorts(waiting: Waiting) -> tuple[list[Target], list[Target]]:
    """Return the candidates of other queues in two lists.

    The first list has the jobs that use quota to which the waiting job's queue or its cohorts have a claim. The second
    list has the others.
    """
    queue = waiting.queue
    has_claim = False
    uncovered = waiting.usage
    claims: dict[Member, bool] = {}
    for member in (queue.member, *queue.member.path()):
        claims[member] = has_claim
        has_claim = has_claim or not any(member.borrows_with(cell, amount) for cell, amount in uncovered.items())
        uncovered = {cell: max(0, amount - member.local_available(cell)) for cell, amount in uncovered.items()}
    claimed: list[Target] = []
    other_targets: list[Target] = []
    for other in waiting.queues:
        cohort = queue.member.beside(other.member)[1].parent
        if other is queue or cohort is None or not _borrows_below(waiting, other.member, cohort):
            continue
        for job in waiting.candidates(other):
            too_high = job.priority >= waiting.job.priority or job.priority > queue.policy.highest_taken_priority
            if claims[cohort]:
                claimed.append(Target(job, "reclaim", shared_cohort=cohort))
            elif queue.policy.takes_while_borrowing and not too_high:
                other_targets.append(Target(job, "borrowing", shared_cohort=cohort))
            else:
                other_targets.append(Target(job, "reclaim", shared_cohort=cohort, if_not_borrowing=True))
    return claimed, other_targets
