"""One cluster's Kueue, as the model plays it: the specs of its queues, and the machines of its flavors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from kueue_model.quotas import Json

KUEUE_SETTINGS: Final[Mapping[str, str]] = {
    "queue": "preemption.withinClusterQueue of the queue",
    "reclaim": "preemption.reclaimWithinCohort of the first queue",
    "share": "weights and quota of both queues, preemption.reclaimWithinCohort of the first",
    "borrowing": "preemption.borrowWithinCohort of the first queue",
    "hold": "stopPolicy of the queue",
}
"""The field of a ClusterQueue that lets a job evict another, by the reason of the eviction."""


class FlavorMachines(NamedTuple):
    """A flavor: its machines, and their price in USD per chip and hour, or None if the price is not known.

    ``chips`` are those of all machines. A job gets multiples of ``per_slice`` chips (1 for GPUs, since pods can share a
    VM). Reports show ``unit`` chips as one. ``capacity`` is the key of the times when machines come and go.
    ``largest_request`` is the most chips whose machines one job can request, None without such a limit.
    """

    name: str
    resource: str
    accelerator: str
    capacity: str
    chips: int
    per_slice: int
    usd: float | None
    unit: int = 1
    largest_request: int | None = None


class Counting(NamedTuple):
    """How Kueue counts a request, and the ClusterQueue of each LocalQueue, ``namespace/name``.

    A transformation says whether a resource is kept, and which others one unit of it counts as.
    """

    excluded: tuple[str, ...] = ()
    transformations: Mapping[str, tuple[bool, Mapping[str, object]]] = {}
    ignores_undeclared: bool = False
    local_queues: Mapping[str, str] = {}


class Cluster(NamedTuple):
    """One cluster's Kueue: the specs of its ClusterQueues, Cohorts and flavors by name.

    ``fair_sharing`` has the preemption strategies, or is None without fair sharing. ``counting`` is set if traces name
    resources instead of accelerators. ``settings`` names what lets a job evict another, by the reason of the eviction,
    in the words of those who change it.
    """

    name: str
    queues: Mapping[str, Json]
    cohorts: Mapping[str, Json]
    flavors: Mapping[str, FlavorMachines]
    priorities: Mapping[str, int]
    fair_sharing: tuple[str, ...] | None
    counting: Counting | None = None
    settings: Mapping[str, str] = KUEUE_SETTINGS
