"""Jobs, and the ClusterQueues in which they wait and run, as Kueue models them.

Source: kubernetes-sigs/kueue v0.19.2, pkg/cache/queue, read 2026-11-23.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import permutations
from typing import Final, Literal, NamedTuple

from kueue_model.quotas import Json, Member, Quotas, flavors_of

PreemptionPolicy = Literal["Never", "LowerPriority", "LowerOrNewerEqualPriority", "Any"]


class Pods(NamedTuple):
    """A group of identical pods of a job: the total amount of a resource, and the flavors they may use (None: all).

    ``more`` contains the other resources of the same resource group, which get the same flavor. If the resources of a
    pod are in several resource groups, there is one ``Pods`` for each, since Kueue chooses a flavor for each resource
    group. All of these except the first have ``is_same_kind``.
    """

    resource: str
    amount: int
    flavors: frozenset[str] | None = None
    more: tuple[tuple[str, int], ...] = ()
    is_same_kind: bool = False


class Shape(NamedTuple):
    """The properties that decide how Kueue treats a job of a queue. Kueue treats jobs with the same shape alike."""

    priority: int
    pods: tuple[Pods, ...]


class Attempt(NamedTuple):
    """The last attempt to find flavors for a job. The next cycle continues with the flavors after the last tried ones.

    ``tried`` contains, for each kind of pods, the index of the last flavor that was tried, or -1 if all were tried.
    ``cycle`` and ``generation`` are the numbers of the cycle and of the queue's generation at the time of the attempt.
    """

    tried: tuple[int, ...] = ()
    cycle: int = 0
    generation: int = 0


NO_ATTEMPT: Final = Attempt()


@dataclass(slots=True, eq=False)
class Job:
    """A job: the request of its owner, and its state, which the methods change.

    ``tie`` orders jobs that Kueue orders only by a random id. A cell is the index of a flavor's resource in ``Quotas``.
    While the job holds quota, ``cells`` contains the cell of the first resource of each kind of pods, and ``usage``
    contains the amounts keyed by cell. Otherwise both are empty.
    """

    name: str
    queue: str
    pods: tuple[Pods, ...]
    priority: int = 0
    shape: Shape = field(init=False)
    member: Member = field(init=False)  # of the queue, once it is submitted
    created: float = field(init=False, default=0.0)
    tie: float = field(init=False, default=0.0)
    attempt: Attempt = field(init=False, default=NO_ATTEMPT)
    cells: tuple[int, ...] = field(init=False, default=())
    usage: Mapping[int, int] = field(init=False, default_factory=dict)
    reserved: float = field(init=False, default=0.0)  # the moment of its admission
    evicting: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        """Drop pods that need no quota."""
        self.pods = tuple(kind for kind in self.pods if kind.amount or kind.more)
        self.change_priority(self.priority)

    def change_priority(self, priority: int) -> None:
        """Change the priority and the shape, which depends on it."""
        self.priority = priority
        self.shape = Shape(priority, self.pods)

    def enter(self, queue: Queue, now: float, tie: float) -> None:
        """Add the job to a queue."""
        self.member = queue.member
        self.created = now
        self.tie = tie

    def hold_quota(self, cells: tuple[int, ...], usage: Mapping[int, int], now: float) -> None:
        """Record the quota that the job holds from now on."""
        self.cells = cells
        self.usage = usage
        self.reserved = now
        self.attempt = NO_ATTEMPT

    def release_quota(self) -> None:
        """Record that the job no longer holds quota."""
        self.cells = ()
        self.usage = {}
        self.evicting = False
        self.attempt = NO_ATTEMPT


@dataclass(frozen=True, slots=True)
class QueuePolicy:
    """The policies of a ClusterQueue.

    If ``takes_while_borrowing`` is set, a job that borrows quota may evict jobs of other queues whose priority is at
    most ``highest_taken_priority``.
    """

    within_queue: PreemptionPolicy
    reclaim: PreemptionPolicy
    takes_while_borrowing: bool
    highest_taken_priority: float
    next_if_borrowing: bool
    next_if_preempting: bool
    prefers_preemption: bool
    is_strict: bool

    @classmethod
    def parse(cls, spec: Json) -> QueuePolicy:
        """Return the policies of a ClusterQueue's spec, with Kueue's defaults."""
        preemption = spec.get("preemption", {})
        borrowing = preemption.get("borrowWithinCohort") or {}
        threshold = borrowing.get("maxPriorityThreshold")
        fungibility = spec.get("flavorFungibility", {})
        return cls(
            within_queue=preemption.get("withinClusterQueue", "Never"),
            reclaim=preemption.get("reclaimWithinCohort", "Never"),
            takes_while_borrowing=borrowing.get("policy", "Never") != "Never",
            highest_taken_priority=math.inf if threshold is None else threshold,
            next_if_borrowing=fungibility.get("whenCanBorrow", "MayStopSearch") == "TryNextFlavor",
            next_if_preempting=fungibility.get("whenCanPreempt", "TryNextFlavor") == "TryNextFlavor",
            prefers_preemption=fungibility.get("preference") == "PreemptionOverBorrowing",
            is_strict=spec.get("queueingStrategy") == "StrictFIFO",
        )


class Queue:
    """A ClusterQueue: its policies and its jobs.

    Waiting jobs are grouped by shape. The preemptor is the last job that evicted others; it is first in the queue until
    it is admitted. Jobs that were evicted to drain the queue wait until the queue is no longer held. ``aside`` contains
    the shapes of jobs that do not fit anywhere. ``generation`` counts the changes that may have freed quota.
    """

    def __init__(self, name: str, spec: Json, member: Member, quotas: Quotas) -> None:
        self.name = name
        self.member = member
        self.policy = QueuePolicy.parse(spec)
        self.cells = {
            resource: [quotas.cells[flavor, resource] for flavor in flavors]
            for resource, flavors in flavors_of(spec).items()
        }
        self.sibling_cells: dict[tuple[int, str], int] = {}  # the cell of another resource of the same flavor
        for group in spec.get("resourceGroups", ()):
            for resource, sibling in permutations(group["coveredResources"], 2):
                for cell in self.cells.get(resource, ()):
                    self.sibling_cells[cell, sibling] = quotas.cells[quotas.flavors[cell], sibling]
        self.held = spec.get("stopPolicy", "None") != "None"
        self._preemptor: Job | None = None
        self._first: Job | None = None
        self._drained: list[Job] = []
        self._waiting: dict[Shape, list[tuple[float, float, Job]]] = {}  # heaps, the oldest job first
        self.aside: set[Shape] = set()
        self.running: dict[Job, None] = {}
        self.generation = 0
        self._used: defaultdict[int, Counter[int]] = defaultdict(Counter)  # by cell and the priority of jobs

    def start(self, job: Job) -> None:
        """Mark a job as running. If it was the preemptor, the queue has no preemptor from now on."""
        if job is self._preemptor:
            self.prefer(None)
        self.generation += 1
        self.running[job] = None
        for cell, amount in job.usage.items():
            self._used[cell][job.priority] += amount

    def stop(self, job: Job) -> None:
        """Mark a job as no longer running."""
        self.generation += 1
        del self.running[job]
        for cell, amount in job.usage.items():
            self._used[cell][job.priority] -= amount

    def change_priority(self, job: Job, priority: int) -> None:
        """Change the priority of a waiting or running job."""
        if job in self.running:
            for cell, amount in job.usage.items():
                self._used[cell][job.priority] -= amount
                self._used[cell][priority] += amount
            job.change_priority(priority)
            return
        preemptor = self._preemptor
        self.remove(job)
        job.change_priority(priority)
        self._preemptor = preemptor
        self.push(job)

    def most_evictable(self, job: Job, policy: PreemptionPolicy, cell: int) -> int:
        """Return the most of a flavor's resource (``cell``) that evictions in this queue can free for a job."""
        if policy == "Never":
            return 0
        highest: float = job.priority
        if policy == "Any":
            highest = math.inf
        elif policy == "LowerPriority":
            highest = job.priority - 1
        return sum(amount for priority, amount in self._used[cell].items() if priority <= highest)

    def push(self, job: Job) -> None:
        """Add a waiting job."""
        if job is self._preemptor:
            self._first = job
            return
        heapq.heappush(self._waiting.setdefault(job.shape, []), (job.created, job.tie, job))

    def prefer(self, job: Job | None) -> None:
        """Move a job that evicts others to the front. None undoes this. A StrictFIFO queue keeps its order."""
        earlier_first = self._first
        self._first = None
        self._preemptor = None if self.policy.is_strict else job
        if earlier_first is not None:
            self.push(earlier_first)

    def push_evicted(self, eviction: Eviction) -> None:
        """Add a job whose eviction has ended. If this queue drained it and is still held, it joins the drained jobs."""
        if eviction.reason == "hold" and self.held:
            self._drained.append(eviction.job)
        else:
            self.push(eviction.job)

    def join_drained(self) -> None:
        """Add the jobs that were evicted to drain the queue to the waiting jobs."""
        for job in self._drained:
            self.push(job)
        self._drained.clear()

    def remove(self, job: Job) -> None:
        """Remove a waiting job."""
        if job is self._first:
            self._first = None
            self._preemptor = None
            return
        if job in self._drained:
            self._drained.remove(job)
            return
        for _, _, waiting_job in self._waiting.pop(job.shape):
            if waiting_job is not job:
                self.push(waiting_job)

    def pop(self) -> Job | None:
        """Remove and return the first job that was not set aside, or None if there is none or the queue is held."""
        if self.held:
            return None
        if self._first is not None and self._first.shape not in self.aside:
            job = self._first
            self._first = None
            return job
        shapes = [shape for shape in self._waiting if shape not in self.aside]
        if not shapes:
            return None
        shape = min(shapes, key=self._order)
        heap = self._waiting[shape]
        _, _, job = heapq.heappop(heap)
        if not heap:
            del self._waiting[shape]
        return job

    def _order(self, shape: Shape) -> tuple[int, float, float]:
        """Return a sorting key for a shape: its priority, highest first, then the age of its oldest job."""
        created, tie, _ = self._waiting[shape][0]
        return (-shape.priority, created, tie)


class Eviction(NamedTuple):
    """The eviction of a job so that the job ``by`` can run. If its queue is drained, ``by`` is the job itself."""

    job: Job
    cells: tuple[int, ...]
    by: Job
    reason: str
