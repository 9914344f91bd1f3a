"""Jobs, and the cluster queues that they wait and run in, as Kueue keeps them.

Source: kubernetes-sigs/kueue v0.19.2, pkg/cache/queue, read 2026-11-23.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Iterable
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


class Job:
    """A job in a queue. ``flavors`` are those of its pods while it holds quota, else empty.

    ``tie`` decides between jobs that Kueue tells apart by a random id alone. ``tried`` has the last flavor that was
    tried for each kind of pods, -1 for all, where the next cycle goes on with the one after it.
    """

    __slots__ = (
        "created", "evicting", "flavors", "member", "name", "pods", "priority", "queue", "reserved", "shape", "tie",
        "tried", "tried_at", "usage",
    )  # fmt: skip

    def __init__(self, name: str, queue: str, pods: Iterable[Pods], priority: int = 0) -> None:
        self.name = name
        self.queue = queue
        self.member: Member  # of the queue, once it is submitted
        self.pods = tuple(each for each in pods if each.amount)  # others need no quota
        self.priority = priority
        self.shape: Shape = (priority, self.pods)
        self.created = 0.0
        self.tie = 0.0
        self.flavors: tuple[int, ...] = ()
        self.usage: dict[int, int] = {}
        self.reserved = 0.0
        self.evicting = False
        self.tried: tuple[int, ...] = ()
        self.tried_at = (0, 0)  # the cycle, and the generation of the queue


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
        self.used: dict[int, Counter[int]] = {}  # by flavor, what jobs of each priority use
        self.generation = 0  # of changes that may have made room

    def start(self, job: Job) -> None:
        """Count a job as running."""
        self.running[job] = None
        for flavor, amount in job.usage.items():
            self.used.setdefault(flavor, Counter())[job.priority] += amount

    def stop(self, job: Job) -> None:
        """Count a job as running no more."""
        del self.running[job]
        for flavor, amount in job.usage.items():
            self.used[flavor][job.priority] -= amount

    def may_give(self, job: Job, policy: str, flavor: int) -> int:
        """Return the most of a flavor that another job can get by evicting jobs here as a policy lets it."""
        if policy == "Never" or flavor not in self.used:
            return 0
        most = {"Any": math.inf, "LowerPriority": job.priority - 1}.get(policy, job.priority)
        return sum(amount for priority, amount in self.used[flavor].items() if priority <= most)

    def push(self, job: Job) -> None:
        """Let a job wait."""
        heapq.heappush(self.waiting.setdefault(job.shape, []), (job.created, job.tie, job))

    def remove(self, job: Job) -> None:
        """Take a job that waits out of the queue."""
        left = [row for row in self.waiting[job.shape] if row[2] is not job]
        heapq.heapify(left)
        self._keep(job.shape, left)

    def pop(self) -> Job | None:
        """Take the first job that was not put aside out of the queue."""
        best = None
        for shape, jobs in self.waiting.items():
            if shape not in self.aside:
                key = (-shape[0], jobs[0][:2])
                if best is None or key < best[0]:
                    best = (key, shape)
        if best is None:
            return None
        jobs = self.waiting[best[1]]
        job = heapq.heappop(jobs)[2]
        self._keep(best[1], jobs)
        return job

    def _keep(self, shape: Shape, jobs: list[tuple[float, float, Job]]) -> None:
        if jobs:
            self.waiting[shape] = jobs
        else:
            del self.waiting[shape]


class Target(NamedTuple):
    """A running job that is to be evicted, and why: ``queue``, ``reclaim``, ``share`` or ``borrowing``."""

    job: Job
    reason: str


class Eviction(NamedTuple):
    """An eviction: who, from which flavors, for whom, and why."""

    job: Job
    flavors: tuple[int, ...]
    by: Job
    reason: str
