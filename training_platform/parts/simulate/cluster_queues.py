"""Jobs, and the cluster queues in which they wait and run, as Kueue models them.

Source: kubernetes-sigs/kueue v0.19.2, pkg/cache/queue, read 2026-11-23.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any, NamedTuple

from training_platform.parts.simulate.quotas import Json, Member, Quotas, flavors_of

Shape = tuple[Any, ...]


class Pods(NamedTuple):
    """One kind of pods of a job: the total amount of a resource, and the flavors that it may use (None: all).

    ``more`` are the other resources of the same resource group, of the same flavor. Pods whose resources are in several
    groups are several kinds here, since Kueue chooses a flavor for each group; those after the first have
    ``is_same_kind``.
    """

    resource: str
    amount: int
    flavors: frozenset[str] | None = None
    more: tuple[tuple[str, int], ...] = ()
    is_same_kind: bool = False


@dataclass(slots=True, eq=False)
class Job:
    """A job in a queue. ``flavors`` are those of its pods while it holds quota, otherwise empty.

    ``tie`` orders jobs that Kueue orders only by a random id. ``tried`` has the last flavor that was tried for each
    kind of pods, or -1 for all; the next cycle continues with the one after it. ``tried_at`` has the cycle and the
    queue's generation of that attempt.
    """

    name: str
    queue: str
    pods: tuple[Pods, ...]
    priority: int = 0
    member: Member = field(init=False)  # of the queue, once it is submitted
    shape: Shape = ()
    created: float = 0.0
    tie: float = 0.0
    flavors: tuple[int, ...] = ()
    usage: dict[int, int] = field(default_factory=dict)
    reserved: float = 0.0
    evicting: bool = False
    tried: tuple[int, ...] = ()
    tried_at: tuple[int, int] = (0, 0)

    def __post_init__(self) -> None:
        """Drop pods that need no quota."""
        self.pods = tuple(kind for kind in self.pods if kind.amount or kind.more)
        self.shape = (self.priority, self.pods)

    def change_priority(self, priority: int) -> None:
        """Change the priority, and with it the shape."""
        self.priority = priority
        self.shape = (self.priority, self.pods)


class Queue:
    """A ClusterQueue: its policies, and its jobs; waiting jobs are kept by shape."""

    def __init__(self, name: str, spec: Json, member: Member, quotas: Quotas) -> None:
        preemption = spec.get("preemption", {})
        fungibility = spec.get("flavorFungibility", {})
        self.name = name
        self.member = member
        self.flavors = {
            resource: [quotas.number[flavor, resource] for flavor in flavors]
            for resource, flavors in flavors_of(spec).items()
        }
        self.beside: dict[tuple[int, str], int] = {}  # the cell of another resource of the same flavor
        for group in spec.get("resourceGroups", ()):
            for resource, other in permutations(group["coveredResources"], 2):
                for cell in self.flavors.get(resource, ()):
                    self.beside[cell, other] = quotas.number[quotas.flavors[cell], other]
        self.within: str = preemption.get("withinClusterQueue", "Never")
        self.reclaim: str = preemption.get("reclaimWithinCohort", "Never")
        borrowing = preemption.get("borrowWithinCohort") or {}
        self.takes_while_borrowing = borrowing.get("policy", "Never") != "Never"
        threshold = borrowing.get("maxPriorityThreshold")
        self.most_priority = math.inf if threshold is None else threshold  # of jobs that it takes while borrowing
        self.next_if_borrowing = fungibility.get("whenCanBorrow", "MayStopSearch") == "TryNextFlavor"
        self.next_if_preempting = fungibility.get("whenCanPreempt", "TryNextFlavor") == "TryNextFlavor"
        self.prefers_preemption = fungibility.get("preference") == "PreemptionOverBorrowing"
        self.strict = spec.get("queueingStrategy") == "StrictFIFO"
        self.held = spec.get("stopPolicy", "None") != "None"
        self.preemptor: Job | None = None  # the last that evicted others; first in the queue until it is admitted
        self.first: Job | None = None  # the preemptor while it waits
        self.drained: list[Job] = []  # wait until the queue is no longer held
        self.waiting: dict[Shape, list[tuple[float, float, Job]]] = {}
        self.aside: set[Shape] = set()
        self.running: dict[Job, None] = {}
        self.used: defaultdict[int, Counter[int]] = defaultdict(Counter)  # by flavor, what jobs of each priority use
        self.generation = 0  # of changes that may have made room

    def count(self, job: Job, sign: int) -> None:
        """Count a job as running (1), or as no longer running (-1)."""
        self.generation += 1
        if sign > 0:
            self.running[job] = None
        else:
            del self.running[job]
        for flavor, amount in job.usage.items():
            self.used[flavor][job.priority] += sign * amount

    def may_give(self, job: Job, policy: str, flavor: int) -> int:
        """Return the most of a flavor that another job can get by evicting jobs here under a policy."""
        if policy == "Never":
            return 0
        most = {"Any": math.inf, "LowerPriority": job.priority - 1}.get(policy, job.priority)
        return sum(amount for priority, amount in self.used[flavor].items() if priority <= most)

    def push(self, job: Job) -> None:
        """Add a waiting job."""
        if job is self.preemptor:
            self.first = job
            return
        heapq.heappush(self.waiting.setdefault(job.shape, []), (job.created, job.tie, job))

    def prefer(self, job: Job | None) -> None:
        """Put a job that evicts others first; None once it is admitted. A strict queue keeps its order."""
        earlier_first = self.first
        self.first = None
        self.preemptor = None if self.strict else job
        if earlier_first is not None:
            self.push(earlier_first)

    def join_drained(self) -> None:
        """Add the drained jobs to the waiting ones."""
        for job in self.drained:
            self.push(job)
        self.drained.clear()

    def remove(self, job: Job) -> None:
        """Remove a waiting job."""
        if job is self.first:
            self.first = self.preemptor = None
            return
        if job in self.drained:
            self.drained.remove(job)
            return
        rows = self.waiting.pop(job.shape)
        for row in rows:
            if row[2] is not job:
                self.push(row[2])

    def pop(self) -> Job | None:
        """Remove and return the first job that was not put aside."""
        if self.first is not None and self.first.shape not in self.aside:
            job = self.first
            self.first = None
            return job
        shapes = [shape for shape in self.waiting if shape not in self.aside]
        if not shapes:
            return None
        rows = self.waiting[min(shapes, key=lambda shape: (-shape[0], self.waiting[shape][0][:2]))]
        job = heapq.heappop(rows)[2]
        if not rows:
            del self.waiting[job.shape]
        return job


class Eviction(NamedTuple):
    """An eviction of ``job`` from its flavors for ``by``, with the reason; ``by`` is itself if its queue is drained."""

    job: Job
    flavors: tuple[int, ...]
    by: Job
    reason: str
