"""Kueue's objects as plain data: ``kueue.x-k8s.io/v1beta2``, the only version to write.

Quantities are texts, as the server gives them back, so that a refresh shows no difference. Rules that only Kueue's
webhooks hold (the same order of resources everywhere, limits only in a cohort) follow from how these are built.
Source: kubernetes-sigs/kueue v0.19.2 CRDs and pkg/webhooks, read 2026-11-21.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from training_platform.config.model.environment import Environment
from training_platform.config.model.queues import ROOT_COHORT, CohortSpec, Preemption, Share
from training_platform.config.model.team import Team
from training_platform.config.model.workloads import NOTEBOOK_PRIORITY, SERVING_PRIORITY
from training_platform.config.pools import Flavor
from training_platform.resources.kueue.provisioning import admission_checks

API_VERSION = "kueue.x-k8s.io/v1beta2"
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"  # on jobs and pods: the LocalQueue that they wait in
PRIORITY_LABEL = "kueue.x-k8s.io/priority-class"
DEFAULT_QUEUE = "default"  # Kueue puts jobs without the label kueue.x-k8s.io/queue-name into a queue of this name

# Whoever asks for no topology gets no flavor that has one, where the queue has a flavor without beside it: Kueue takes
# the wish as given only if all have one (seen with 0.19.2).
ANY_PLACE = {"kueue.x-k8s.io/podset-unconstrained-topology": "true"}


def resource_flavor(flavor: Flavor) -> dict[str, Any]:
    """Return the spec of a ResourceFlavor: the nodes that it stands for, and what their pods tolerate.

    Kueue adds both to the pods of an admitted job. GKE taints nodes with accelerators by itself, and queued ones.
    """
    tolerations = [
        {"key": key, "operator": "Equal", "value": value, "effect": "NoSchedule"}
        for key, value in flavor.tolerated.items()
    ]
    topology = {"topologyName": flavor.topology_name} if flavor.topology_name else {}
    return {"nodeLabels": flavor.node_labels, "tolerations": [*tolerations, *_own_taints(flavor)], **topology}


def _own_taints(flavor: Flavor) -> list[dict[str, str]]:
    """Return tolerations of the taints that the stack file gives to the flavor's pools."""
    return [
        {"key": key, "operator": "Equal", "value": value, "effect": effect.title().replace("_", "")}
        for key, value, effect in flavor.own_taints
    ]


def cluster_queue(team: Team, cluster: str, flavors: Mapping[str, Flavor]) -> dict[str, Any]:
    """Return the spec of a team's ClusterQueue in one cluster, for the jobs of the team's namespace.

    ``flavors`` are all of the cluster's, in the order of the environment; the team's own order goes before it.
    KeyError for a share of a flavor that the cluster has not got.
    """
    shares = team.shares[cluster]
    ordered = team.fallback.ordered(cluster, flavors)
    return {
        "cohortName": team.cohort or ROOT_COHORT,
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": team.name}},
        "queueingStrategy": "BestEffortFIFO",  # a job that waits for a large slice does not hold back small ones
        "resourceGroups": _resource_groups(shares, ordered),
        "preemption": _preemption(team.preemption),
        # Idle machines that are paid for come before the next flavor, and the next flavor before somebody's job ends.
        "flavorFungibility": {
            "whenCanBorrow": team.fallback.when_can_borrow,
            "whenCanPreempt": team.fallback.when_can_preempt,
        },
        "fairSharing": {"weight": str(team.weight)},
        "stopPolicy": team.hold.get(cluster, "None"),
        **admission_checks(flavor for name, flavor in ordered.items() if name in shares),
    }


def cohort(name: str, spec: CohortSpec, cluster: str, flavors: Mapping[str, Flavor]) -> dict[str, Any]:
    """Return the spec of a Cohort in one cluster; what it has is for whoever in it lists the flavor, with 0 if need be.

    Source: Kueue v0.19.2 cohort_types.go and the page on cohorts, read 2026-11-22.
    """
    parent = {} if name == ROOT_COHORT else {"parentName": spec.parent or ROOT_COHORT}
    groups = _resource_groups(spec.shares.get(cluster, {}), flavors)
    return {**parent, "resourceGroups": groups, "fairSharing": {"weight": str(spec.weight)}}


def priorities(environment: Environment) -> dict[str, int]:
    """Return an environment's priorities, with those of model servers and notebooks where it has any.

    Unless the file names them, the first is above all others, and the last below all, jobs without priority as well.
    """
    own, clusters = environment.priorities, environment.clusters.values()
    values = [0, *own.values()]
    above = {SERVING_PRIORITY: max(values) + 1} if any(each.serving for each in clusters) else {}
    below = any(each.notebooks and each.notebooks.teams for each in clusters)
    return {**above, **({NOTEBOOK_PRIORITY: min(values) - 1} if below else {}), **own}


def _preemption(policy: Preemption) -> dict[str, Any]:
    borrowing = {"borrowWithinCohort": {"policy": policy.borrow_within_cohort}}
    return {
        "withinClusterQueue": policy.within_queue,
        "reclaimWithinCohort": policy.reclaim,
        **(borrowing if policy.borrow_within_cohort != "Never" else {}),
    }


def _resource_groups(shares: Mapping[str, Share], flavors: Mapping[str, Flavor]) -> list[dict[str, Any]]:
    """Return a group for each resource of the shares, its flavors in the order of ``flavors``."""
    order = {name: place for place, name in enumerate(flavors)}
    wanted = [flavors[name] for name in sorted(shares, key=order.__getitem__)]
    resources = dict.fromkeys(flavor.accelerator.resource for flavor in wanted)
    return [_resource_group(resource, wanted, shares) for resource in resources]


def local_queue(cluster_queue: str) -> dict[str, Any]:
    """Return the spec of a LocalQueue; it can never be pointed to another ClusterQueue."""
    return {"clusterQueue": cluster_queue}


def local_queue_names(team: str) -> tuple[str, ...]:
    """Return the queues of a team's namespace: the team's own, which jobs name, and the one for jobs that name none."""
    return tuple(dict.fromkeys((team, DEFAULT_QUEUE)))


def _resource_group(resource: str, flavors: list[Flavor], shares: Mapping[str, Share]) -> dict[str, Any]:
    """One resource a group: no flavor has both TPUs and GPUs, and a flavor may be in one group only."""
    return {
        "coveredResources": [resource],
        "flavors": [
            {"name": flavor.name, "resources": [_quota(resource, shares[flavor.name])]}
            for flavor in flavors
            if flavor.accelerator.resource == resource
        ],
    }


def _quota(resource: str, share: Share) -> dict[str, str]:
    limits = {"borrowingLimit": share.borrowing_limit, "lendingLimit": share.lending_limit}
    given = {name: str(limit) for name, limit in limits.items() if limit is not None}
    return {"name": resource, "nominalQuota": str(share.nominal_quota), **given}
