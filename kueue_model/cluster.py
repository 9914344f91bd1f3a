"""Kueue's configuration in one cluster, as the model simulates it: the specs of queues, and the machines of flavors."""

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
"""For each eviction reason, the field of a ClusterQueue that allows such evictions."""


class FlavorMachines(NamedTuple):
    """A flavor: its machines, and their price in USD per chip and hour, or None if the price is not known.

    ``chips`` is the number of chips of all machines. A job gets multiples of ``per_slice`` chips (1 for GPUs, since
    pods can share a VM). Reports divide amounts by ``unit``. ``capacity`` is the key into the table of arrival and loss
    times. ``largest_request`` is the maximum number of chips whose machines one job can request, or None without a
    limit.
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
    """How Kueue counts a job's requests, and which ClusterQueue each LocalQueue (``namespace/name``) leads to.

    A transformation says whether Kueue still counts a resource itself, and how much of other resources it counts for
    each unit.
    """

    excluded: tuple[str, ...] = ()
    transformations: Mapping[str, tuple[bool, Mapping[str, object]]] = {}
    ignores_undeclared: bool = False
    local_queues: Mapping[str, str] = {}


class Cluster(NamedTuple):
    """Kueue's configuration in one cluster: the specs of its ClusterQueues, Cohorts and flavors, keyed by name.

    ``fair_sharing`` contains the preemption strategies, or is None without fair sharing. ``counting`` is set if traces
    name resources instead of accelerators. ``settings`` maps each eviction reason to the name of the setting that
    allows such evictions; users change the setting under this name.
    """

    name: str
    queues: Mapping[str, Json]
    cohorts: Mapping[str, Json]
    flavors: Mapping[str, FlavorMachines]
    priorities: Mapping[str, int]
    fair_sharing: tuple[str, ...] | None
    counting: Counting | None = None
    settings: Mapping[str, str] = KUEUE_SETTINGS
