"""Shares and cohorts from Kueue's objects, by cluster; nothing where no cluster was asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from training_platform.adopt.sections.values import Json, at
from training_platform.config.model.queues import ROOT_COHORT

QUEUES, COHORTS, PRIORITIES = "clusterqueues", "cohorts", "workloadpriorityclasses"


@dataclass(frozen=True)
class Queues:
    """Kueue's objects by the cluster's key in the stack file and by plural; ``order`` has each cluster's flavors."""

    objects: Mapping[str, Mapping[str, list[Json]]] = field(default_factory=dict)
    order: Mapping[str, list[str]] = field(default_factory=dict)

    def of(self, plural: str, name: str) -> Iterator[tuple[str, Json]]:
        """Yield the cluster and spec of the objects of a kind that have a name."""
        for cluster, kinds in self.objects.items():
            yield from ((cluster, each["spec"]) for each in kinds.get(plural, ()) if each["metadata"]["name"] == name)

    def names(self, plural: str) -> set[str]:
        """Return the names of a kind's objects in all clusters."""
        return {each["metadata"]["name"] for kinds in self.objects.values() for each in kinds.get(plural, ())}

    def teams(self) -> set[str]:
        """Return the teams that have queues: a team's is called as it is."""
        return self.names(QUEUES)


def queue_fields(team: str, queues: Queues) -> dict[str, Any]:
    """Return the fields of a team's section that its ClusterQueues say; what is one for all clusters by the first."""
    found = dict(queues.of(QUEUES, team))
    if not found:
        return {}
    spec = next(iter(found.values()))
    cohort = spec.get("cohortName")
    return {
        "shares": {cluster: _shares(each) for cluster, each in found.items()},
        "cohort": None if cohort == ROOT_COHORT else cohort,
        "weight": int(float(at(spec, "fairSharing.weight") or 1)),
        "preemption": {
            "within_queue": at(spec, "preemption.withinClusterQueue"),
            "reclaim": at(spec, "preemption.reclaimWithinCohort"),
            "borrow_within_cohort": at(spec, "preemption.borrowWithinCohort.policy"),
        },
        "fallback": {
            "when_can_borrow": at(spec, "flavorFungibility.whenCanBorrow"),
            "when_can_preempt": at(spec, "flavorFungibility.whenCanPreempt"),
            "order": dict(_orders(found, queues)),
        },
        "hold": {c: each["stopPolicy"] for c, each in found.items() if each.get("stopPolicy") not in (None, "None")},
    }


def environment_fields(queues: Queues) -> dict[str, Any]:
    """Return what an environment says of its queues: priorities, and cohorts with what they hold."""
    if not queues.objects:
        return {}
    every = [each for kinds in queues.objects.values() for each in kinds.get(PRIORITIES, ())]
    cohorts = {name: _cohort(dict(queues.of(COHORTS, name))) for name in sorted(queues.names(COHORTS))}
    return {"priorities": {each["metadata"]["name"]: each["value"] for each in every}, "cohorts": cohorts}


def _cohort(found: Mapping[str, Json]) -> dict[str, Any]:
    spec = next(iter(found.values()))
    parent = spec.get("parentName")
    section = {
        "parent": None if parent == ROOT_COHORT else parent,
        "weight": int(float(at(spec, "fairSharing.weight") or 1)),
        "shares": {cluster: shares for cluster, each in found.items() if (shares := _shares(each))},
    }
    return {key: value for key, value in section.items() if value not in (None, {}, 1)}


def _shares(spec: Json) -> dict[str, dict[str, int]]:
    limits = {"nominalQuota": "nominal_quota", "borrowingLimit": "borrowing_limit", "lendingLimit": "lending_limit"}
    return {
        flavor["name"]: {ours: int(quota[theirs]) for theirs, ours in limits.items() if quota.get(theirs) is not None}
        for group in spec.get("resourceGroups") or ()
        for flavor in group["flavors"]
        for quota in flavor["resources"][:1]
    }


def _orders(found: Mapping[str, Json], queues: Queues) -> Iterator[tuple[str, list[str]]]:
    """Yield the order of a team's flavors where it is not that of its environment."""
    for cluster, spec in found.items():
        own = list(_shares(spec))
        ordered = [name for name in queues.order.get(cluster, own) if name in own]
        if ordered != own and set(ordered) == set(own):
            yield cluster, own
