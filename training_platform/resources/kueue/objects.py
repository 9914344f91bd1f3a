"""Kueue's objects as plain data: ``kueue.x-k8s.io/v1beta2``, the only version to write.

Quantities are texts, as the server gives them back, so that a refresh shows no difference. Rules that only Kueue's
webhooks hold (the same order of resources everywhere, limits only in a cohort) follow from how these are built.
Source: kubernetes-sigs/kueue v0.19.2 CRDs and pkg/webhooks, read 2026-11-21.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from training_platform.config.expansion.flavors import Flavor
from training_platform.config.spec.fallback import Fallback
from training_platform.config.spec.team import Share
from training_platform.resources.kueue.provisioning import admission_checks

API_VERSION = "kueue.x-k8s.io/v1beta2"
COHORT = "training-platform"  # one per cluster; it has no object of its own, since it has no quota of its own
_AS_IT_IS = Fallback()
DEFAULT_QUEUE = "default"  # Kueue puts jobs without the label kueue.x-k8s.io/queue-name into a queue of this name


def resource_flavor(flavor: Flavor) -> dict[str, Any]:
    """Return the spec of a ResourceFlavor: the nodes that it stands for, and what their pods tolerate.

    Kueue adds both to the pods of an admitted job. GKE taints nodes with accelerators by itself, and queued ones.
    """
    tolerations = [
        {"key": key, "operator": "Equal", "value": value, "effect": "NoSchedule"}
        for key, value in flavor.tolerated.items()
    ]
    return {"nodeLabels": flavor.node_labels, "tolerations": [*tolerations, *_own_taints(flavor)]}


def _own_taints(flavor: Flavor) -> list[dict[str, str]]:
    """Return tolerations of the taints that the stack file gives to the flavor's pools."""
    return [
        {"key": key, "operator": "Equal", "value": value, "effect": effect.title().replace("_", "")}
        for key, value, effect in flavor.own_taints
    ]


def cluster_queue(
    namespace: str,
    shares: Mapping[str, Share],
    flavors: Mapping[str, Flavor],
    fallback: Fallback = _AS_IT_IS,
) -> dict[str, Any]:
    """Return the spec of a team's ClusterQueue in one cluster, for the jobs of one namespace.

    ``flavors`` are all of the cluster's, in the order in which Kueue is to try them; ``shares`` names some of them.
    ``fallback`` says when it goes on to the next. KeyError for a share of a flavor that the cluster has not got.
    """
    order = {name: place for place, name in enumerate(flavors)}
    wanted = [flavors[name] for name in sorted(shares, key=order.__getitem__)]
    resources = dict.fromkeys(flavor.accelerator.resource for flavor in wanted)
    return {
        "cohortName": COHORT,
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "queueingStrategy": "BestEffortFIFO",  # a job that waits for a large slice does not hold back small ones
        "resourceGroups": [_resource_group(resource, wanted, shares) for resource in resources],
        # A team takes back what it lent. borrowWithinCohort is not for fair sharing, which Kueue is configured for.
        "preemption": {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"},
        # Idle machines that are paid for come before the next flavor, and the next flavor before somebody's job ends.
        "flavorFungibility": {
            "whenCanBorrow": fallback.when_can_borrow,
            "whenCanPreempt": fallback.when_can_preempt,
        },
        **admission_checks(wanted),
    }


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
