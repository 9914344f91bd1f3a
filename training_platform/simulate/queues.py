"""Jobs, and the cluster queues that they wait and run in, as Kueue keeps them.

Source: kubernetes-sigs/kueue v0.19.2, pkg/cache/queue, read 2026-11-23.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from training_platform.simulate.quotas import Json, Member, Quotas, flavors_of

Shape = tuple[Any, ...]


class Pods(NamedTuple):
    """One kind of pods of a job: chips or GPUs of all of them together, and the flavors that may be used for them.

    Without ``flavors`` these are all of the resource.
    """

    resource: str
    amount: int
    flavors: frozenset[str] | None = None


@dataclass(slots=True, eq=False)
class Job:
    """A job in a queue. ``flavors`` are those of its pods while it holds quota, else empty.

    ``tie`` decides between jobs that Kueue tells apart by a random id alone. ``tried`` has the last flavor that was
    tried for each kind of pods, -1 for all, where the next cycle goes on with the one after it; ``tried_at`` the cycle
    and the queue's generation of that.
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
        """Leave out pods that need no quota."""
        self.pods = tuple(kind for kind in self.pods if kind.amount)
        self.shape = (self.priority, self.pods)


class Queue:
    """A ClusterQueue: its policies, and its jobs, those that wait by shape."""

    def __init__(self, name: str, spec: Json, member: Member, quotas: Quotas) -> None:
        preemption, fungibility = spec.get("preemption", {}), spec.get("flavorFungibility", {})
        self.name = name
        self.member = member
        self.flavors = {
            resource: [quotas.number[flavor] for flavor in flavors] for resource, flavors in flavors_of(spec).items()
        }
        self.within: str = preemption.get("withinClusterQueue", "Never")
        self.reclaim: str = preemption.get("reclaimWithinCohort", "Never")
        borrowing = preemption.get("borrowWithinCohort") or {}
        self.takes_while_borrowing = borrowing.get("policy", "Never") != "Never"
        self.next_if_borrowing = fungibility.get("whenCanBorrow", "MayStopSearch") == "TryNextFlavor"
        self.next_if_preempting = fungibility.get("whenCanPreempt", "TryNextFlavor") == "TryNextFlavor"
        self.held = spec.get("stopPolicy", "None") != "None"
        self.waiting: dict[Shape, list[tuple[float, float, Job]]] = {}
        self.aside: set[Shape] = set()
        self.running: dict[Job, None] = {}
        self.used: defaultdict[int, Counter[int]] = defaultdict(Counter)  # by flavor, what jobs of each priority use
        self.generation = 0  # of changes that may have made room

    def count(self, job: Job, sign: int) -> None:
        """Count a job as running (1), or as running no more (-1)."""
        self.generation += 1
        if sign > 0:
            self.running[job] = None
        else:
            del self.running[job]
        for flavor, amount in job.usage.items():
            self.used[flavor][job.priority] += sign * amount

    def may_give(self, job: Job, policy: str, flavor: int) -> int:
        """Return the most of a flavor that another job can get by evicting jobs here as a policy lets it."""
        if policy == "Never":
            return 0
        most = {"Any": math.inf, "LowerPriority": job.priority - 1}.get(policy, job.priority)
        return sum(amount for priority, amount in self.used[flavor].items() if priority <= most)

    def push(self, job: Job) -> None:
        """Let a job wait."""
        heapq.heappush(self.waiting.setdefault(job.shape, []), (job.created, job.tie, job))

    def remove(self, job: Job) -> None:
        """Take a job that waits out of the queue."""
        rows = self.waiting.pop(job.shape)
        for row in rows:
            if row[2] is not job:
                self.push(row[2])

    def pop(self) -> Job | None:
        """Take the first job that was not put aside out of the queue."""
        shapes = [shape for shape in self.waiting if shape not in self.aside]
        if not shapes:
            return None
        rows = self.waiting[min(shapes, key=lambda shape: (-shape[0], self.waiting[shape][0][:2]))]
        job = heapq.heappop(rows)[2]
        if not rows:
            del self.waiting[job.shape]
        return job


class Eviction(NamedTuple):
    """An eviction: who, from which flavors, for whom, and why."""

    job: Job
    flavors: tuple[int, ...]
    by: Job
    reason: str
