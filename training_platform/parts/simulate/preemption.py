"""Whom a waiting job evicts: Kueue's preemption, with fair sharing and without.

Both modes go through candidates in an order, take away one after another until the job fits, and then give back those
that need not go after all. With fair sharing the next candidate is of the member that borrows the most, and a rule
compares its share with that of the waiting job's queue; a queue within its own quota need not compare. Without fair
sharing, those come first whose quota the waiting job's part of the tree has a claim to.

Source: kubernetes-sigs/kueue v0.19.2, pkg/scheduler/preemption, read 2026-11-23; its KEP 1714 for the two rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, takewhile
from typing import Any, NamedTuple

from training_platform.parts.simulate.cluster_queues import Job, Queue
from training_platform.parts.simulate.quotas import Member, Usage, Weighed

FINAL_SHARE = "LessThanOrEqualToFinalShare"
NOTHING: Weighed = (0, -1.0)  # less than every share
Needed = frozenset[int]


class Target(NamedTuple):
    """A running job that is to be evicted, or could be, and why: ``queue``, ``reclaim``, ``share`` or ``borrowing``.

    Without fair sharing, ``apart`` is the cohort in which both queues are, None in the same queue.
    """

    job: Job
    reason: str
    apart: Member | None = None
    if_not_borrowing: bool = False


class Waiting(NamedTuple):
    """A job that does not fit, the amounts that it asks for, and the flavors in which others have to make room."""

    job: Job
    queue: Queue
    usage: Usage
    needed: Needed
    queues: list[Queue]  # with quota of one of these flavors
    strategies: tuple[str, ...] | None  # of fair sharing

    def fits(self, *, borrowing: bool = True) -> bool:
        """Whether there is room for the job, without borrowing only within its queue's own quota."""
        member = self.queue.member
        return all(
            (borrowing or not member.borrows_with(flavor, amount)) and amount <= max(0, member.available(flavor))
            for flavor, amount in self.usage.items()
        )

    def rank(self, job: Job) -> tuple[Any, ...]:
        """Return the key that orders candidates: those that go anyway, of other queues, of low priority, the newest."""
        return (not job.evicting, job.queue == self.queue.name, job.priority, -job.reserved, job.tie)

    def candidates(self, queue: Queue) -> list[Job]:
        """Return the running jobs of a queue that policies let the job evict, and that have what it needs."""
        policy = queue.within if queue is self.queue else self.queue.reclaim
        if policy == "Never":
            return []
        return [
            job
            for job in queue.running
            if not self.needed.isdisjoint(job.usage)
            and (
                policy == "Any"
                or job.priority < self.job.priority
                or (
                    policy == "LowerOrNewerEqualPriority"
                    and job.priority == self.job.priority
                    and self.job.created < job.created
                )
            )
        ]

    def take(self, chosen: Iterable[Target], *, borrowing: bool = True) -> list[Target]:
        """Take chosen jobs away until the job fits, and give back those without whom it fits as well.

        Returns whom it has to evict, none if it never fits. All usage is as before then.
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
    """Return whom a job has to evict; none where that would not make enough room, or is not allowed."""
    if _is_hopeless(waiting):
        return []
    if waiting.strategies is None:
        return _classical_targets(waiting)
    return waiting.take(_fair_targets(waiting, waiting.strategies))


def _is_hopeless(waiting: Waiting) -> bool:
    """Whether all that may be evicted would not make enough room; this spares going through candidates in most tries.

    Next to the root, a queue without candidates of its own has the same share whomever it evicts, so that queues with
    smaller shares give nothing.
    """
    job, queue, usage, needed, queues, strategies = waiting
    member = queue.member
    missing = {
        flavor: usage[flavor] - max(0, member.available(flavor)) - queue.may_give(job, queue.within, flavor)
        for flavor in needed
    }
    if max(missing.values()) <= 0:
        return False
    others = []
    if queue.reclaim != "Never":
        others = [other for other in queues if other is not queue and other.member.borrows(needed)]
    higher = [*member.path()][1:]
    alone = not any(queue.may_give(job, queue.within, flavor) for flavor in needed)
    borrows = any(member.borrows_with(flavor, usage[flavor]) for flavor in needed)
    if others and strategies and not higher and alone and borrows:
        member.add(usage)
        share = member.share()
        member.remove(usage)
        others = [other for other in others if share <= member.beside(other.member)[1].share()]
    return any(
        sum(other.may_give(job, queue.reclaim, flavor) for other in others) < amount
        for flavor, amount in missing.items()
    )


def _fair_targets(waiting: Waiting, strategies: tuple[str, ...]) -> Iterator[Target]:
    """Yield jobs to take, by the first strategy and then by the second; shares are compared as if the job ran."""
    own = waiting.queue
    found = waiting.candidates(own)
    for queue in waiting.queues:
        if queue is not own and queue.member.borrows(waiting.needed):
            found += waiting.candidates(queue)
    found.sort(key=waiting.rank)
    protected: list[Job] = []
    own.member.add(waiting.usage)
    chosen = _by_first_rule(waiting, found, protected, by_final_share=strategies[0] == FINAL_SHARE)
    if len(strategies) > 1:
        chosen = chain(chosen, _by_second_rule(waiting, protected))
    for target in chosen:
        own.member.remove(waiting.usage)
        yield target
        own.member.add(waiting.usage)
    own.member.remove(waiting.usage)


def _by_first_rule(
    waiting: Waiting, candidates: Iterable[Job], protected: list[Job], *, by_final_share: bool
) -> Iterator[Target]:
    """Yield candidates by the first strategy, and note those whom it protects."""
    own = waiting.queue.member
    within_quota = not own.borrows(waiting.needed)
    for member, jobs in _Largest(waiting, candidates):
        if member is own or within_quota:
            yield Target(jobs.pop(0), "queue" if member is own else "reclaim")
            continue
        own_side, other_side = own.beside(member)
        own_share, before = own_side.share(), other_side.share()
        while jobs:
            job = jobs.pop(0)
            passed = own_share < before
            if by_final_share:
                job.member.remove(job.usage)
                passed = own_share <= other_side.share()
                job.member.add(job.usage)
            if passed:
                yield Target(job, "share")
                break  # shares have changed, and with them who has the largest
            protected.append(job)


def _by_second_rule(waiting: Waiting, candidates: Iterable[Job]) -> Iterator[Target]:
    """Yield one more of each queue that has a larger share than the job's would have."""
    largest = _Largest(waiting, candidates)
    for member, jobs in largest:
        own_side, other_side = waiting.queue.member.beside(member)
        job = jobs.pop(0)
        if own_side.share() < other_side.share():
            yield Target(job, "share")
        largest.done.add(member)


class _Largest:
    """Gives the queue with the largest share that still has candidates, and these; again and again."""

    def __init__(self, waiting: Waiting, candidates: Iterable[Job]) -> None:
        self.own = waiting.queue.member
        self.above = list(self.own.path())
        self.rank: Callable[[Job], tuple[Any, ...]] = waiting.rank
        self.jobs: dict[Member, list[Job]] = {}
        for job in candidates:
            self.jobs.setdefault(job.member, []).append(job)
        self.done: set[Member] = set()

    def __iter__(self) -> Iterator[tuple[Member, list[Job]]]:
        """Yield queue and candidates; who gets them takes one, or adds the queue to ``done``."""
        while not self.above and self.own not in self.done and self.jobs.get(self.own):
            yield self.own, self.jobs[self.own]
        if not self.above:
            return
        while self.above[-1] not in self.done:
            if (member := self._next(self.above[-1])) is not None:
                yield member, self.jobs[member]

    def _has_nothing(self, member: Member) -> bool:
        """Whether a member can never give a candidate again: it does not borrow, or its own are all taken."""
        if member.children:
            return member not in self.above and not member.borrows(member.flavors)
        return not self.jobs.get(member) or (member is not self.own and not member.borrows(member.flavors))

    def _next(self, cohort: Member) -> Member | None:
        """Return the queue of the largest share; None where this only found members that have no candidates."""
        queue, cohort_below = None, None
        of_queue = of_cohort = NOTHING
        for child in cohort.children:
            if child in self.done:
                continue
            if self._has_nothing(child):
                self.done.add(child)
                continue
            share = child.share()
            if child.children:
                if share >= of_cohort:
                    cohort_below, of_cohort = child, share
            elif share > of_queue:
                queue, of_queue = child, share
            elif share == of_queue and queue and self.rank(self.jobs[child][0]) < self.rank(self.jobs[queue][0]):
                queue = child
        if queue is None and cohort_below is None:
            self.done.add(cohort)
            return None
        if cohort_below is not None and of_cohort >= of_queue:
            return self._next(cohort_below)
        return queue


def _classical_targets(waiting: Waiting) -> list[Target]:
    own = waiting.queue
    in_queue = [Target(job, "queue") for job in waiting.candidates(own)]
    claimed, others = _in_cohorts(waiting)
    groups = [sorted(group, key=lambda row: waiting.rank(row.job)) for group in (claimed, others, in_queue)]
    ordered = [row for group in groups for row in group if row.job.evicting]
    ordered += [row for group in groups for row in group if not row.job.evicting]
    under_quota = all(own.member.subtree[flavor] > own.member.usage[flavor] for flavor in waiting.needed)
    may_not_borrow = not own.takes_while_borrowing
    if not (claimed or others) or (may_not_borrow and not under_quota):
        attempts = [True]
    elif may_not_borrow and not claimed:
        attempts = [False, True]
    else:
        attempts = [True, False]
    for borrowing in attempts:
        chosen = (row for row in ordered if _still_a_candidate(waiting, row, borrowing=borrowing))
        if found := waiting.take(chosen, borrowing=borrowing):
            return found
    return []


def _still_a_candidate(waiting: Waiting, row: Target, *, borrowing: bool) -> bool:
    """Whether a candidate's queue, and the cohorts up to the one shared with the job, still use what is not theirs."""
    if borrowing and row.if_not_borrowing:
        return False
    return row.apart is None or _borrows_below(waiting, row.job.member, row.apart)


def _borrows_below(waiting: Waiting, member: Member, cohort: Member) -> bool:
    below = takewhile(lambda above: above is not cohort, (member, *member.path()))
    return all(above.borrows(waiting.needed) for above in below)


def _in_cohorts(waiting: Waiting) -> tuple[list[Target], list[Target]]:
    """Return the candidates of other queues: those whose quota the job has a claim to by its place, and the others."""
    own = waiting.queue
    claims: dict[Member, bool] = {}
    claim, rest = False, waiting.usage
    for member in (own.member, *own.member.path()):
        claims[member] = claim
        claim = claim or not any(member.borrows_with(flavor, amount) for flavor, amount in rest.items())
        rest = {flavor: max(0, amount - member.local_available(flavor)) for flavor, amount in rest.items()}
    claimed: list[Target] = []
    others: list[Target] = []
    for queue in waiting.queues:
        apart = own.member.beside(queue.member)[1].parent
        if queue is own or apart is None or not _borrows_below(waiting, queue.member, apart):
            continue
        for job in waiting.candidates(queue):
            too_high = job.priority >= waiting.job.priority or job.priority > own.most_priority
            if claims[apart]:
                claimed.append(Target(job, "reclaim", apart))
            elif own.takes_while_borrowing and not too_high:
                others.append(Target(job, "borrowing", apart))
            else:
                others.append(Target(job, "reclaim", apart, if_not_borrowing=True))
    return claimed, others
