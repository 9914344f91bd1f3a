"""Kueue as plain data: its objects in ``kueue.x-k8s.io/v1beta2``, and the values and configuration of its controller.

Quantities are strings, as the server returns them, so a refresh shows no difference. Some rules are enforced only by
Kueue's webhooks (the same order of resources everywhere, limits only in a cohort). The code below always follows them.

A queued flavor has an AdmissionCheck and a ProvisioningRequestConfig with its name. After Kueue has reserved quota for
a job, the check holds the job back until GKE has provided all of its VMs. Without the check, a queued pool would never
scale up.

The chart takes the controller's configuration as one string. Fields that are left out have Kueue's defaults, including
the webhook's certificates, which the chart fills in. An unknown field or a repeated framework makes the controller fail
at startup.

Sources: kubernetes-sigs/kueue v0.19.2, CRDs, pkg/webhooks, apis/config/v1beta2, pkg/config and ProvisioningRequest
admission check, read 2026-11-21; GKE docs, flex-start with queued provisioning; xpk 367c838 for the node selector.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from math import ceil
from typing import Any

import yaml

from training_platform.config.expansion import SYSTEM_PRIORITY, SYSTEM_TOLERATIONS, Flavor, cluster_pools
from training_platform.config.gpu_fabric import claims_devices
from training_platform.config.model.capacity import Capacity
from training_platform.config.model.cluster import ClusterSpec
from training_platform.config.model.environment import Environment
from training_platform.config.model.queues import ROOT_COHORT, CohortSpec, Preemption, Share
from training_platform.config.model.team import Team
from training_platform.config.model.workloads import NOTEBOOK_PRIORITY, SERVING_PRIORITY
from training_platform.resources.scope import TEAM_LABEL

API_VERSION = "kueue.x-k8s.io/v1beta2"
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"  # on jobs and pods: the LocalQueue that they wait in
PRIORITY_LABEL = "kueue.x-k8s.io/priority-class"
RUN_LABEL = "kueue.x-k8s.io/max-exec-time-seconds"  # on jobs: Kueue deactivates a job this long after its admission
DEFAULT_QUEUE = "default"  # Kueue puts jobs without the label kueue.x-k8s.io/queue-name into a queue of this name

# A pod that requests no topology gets no flavor that has one, if its queue also has a flavor without: Kueue implies the
# request only if all have one (seen with 0.19.2).
ANY_PLACE = {"kueue.x-k8s.io/podset-unconstrained-topology": "true"}


def resource_flavor(flavor: Flavor) -> dict[str, Any]:
    """Return the spec of a ResourceFlavor: its node labels, and tolerations for the taints of its nodes.

    Kueue adds both to the pods of an admitted job. GKE itself taints nodes with accelerators and queued nodes.
    """
    tolerations = [
        {"key": key, "operator": "Equal", "value": value, "effect": "NoSchedule"}
        for key, value in flavor.tolerated.items()
    ]
    topology = {"topologyName": flavor.topology_name} if flavor.topology_name else {}
    return {"nodeLabels": flavor.node_labels, "tolerations": [*tolerations, *_own_taints(flavor)], **topology}


def _own_taints(flavor: Flavor) -> list[dict[str, str]]:
    """Return tolerations for the taints that the stack file sets on the flavor's pools."""
    return [
        {"key": key, "operator": "Equal", "value": value, "effect": effect.title().replace("_", "")}
        for key, value, effect in flavor.own_taints
    ]


def cluster_queue(team: Team, cluster: str, flavors: Mapping[str, Flavor]) -> dict[str, Any]:
    """Return the spec of a team's ClusterQueue in one cluster, for the jobs in the team's namespace.

    ``flavors`` are all flavors of the cluster, in the order of the environment; the team's own order takes precedence.
    Raises KeyError for a share of a flavor that the cluster does not have.
    """
    shares = team.shares[cluster]
    ordered = team.fallback.ordered(cluster, flavors)
    return {
        "cohortName": team.cohort or ROOT_COHORT,
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": team.name}},
        "queueingStrategy": "BestEffortFIFO",  # a job that waits for a large slice does not hold back small ones
        "resourceGroups": _resource_groups(shares, ordered),
        "preemption": _preemption(team.preemption),
        # First use idle machines that are paid for, then the next flavor, and only then preempt a job.
        "flavorFungibility": {
            "whenCanBorrow": team.fallback.when_can_borrow,
            "whenCanPreempt": team.fallback.when_can_preempt,
        },
        "fairSharing": {"weight": str(team.weight)},
        "stopPolicy": team.hold.get(cluster, "None"),
        **admission_checks(flavor for name, flavor in ordered.items() if name in shares),
    }


def cohort(name: str, spec: CohortSpec, cluster: str, flavors: Mapping[str, Flavor]) -> dict[str, Any]:
    """Return the spec of a Cohort in one cluster. Members can use its quota of a flavor if they list the flavor.

    Quota 0 is enough for this. Source: Kueue v0.19.2 cohort_types.go and the page on cohorts, read 2026-11-22.
    """
    parent = {} if name == ROOT_COHORT else {"parentName": spec.parent or ROOT_COHORT}
    groups = _resource_groups(spec.shares.get(cluster, {}), flavors)
    return {**parent, "resourceGroups": groups, "fairSharing": {"weight": str(spec.weight)}}


def priorities(environment: Environment) -> dict[str, int]:
    """Return an environment's priorities, including those of model servers and notebooks if it has any.

    By default, model servers have the highest priority. Notebooks have the lowest, even below jobs without a priority.
    The file can set both.
    """
    clusters = environment.clusters.values()
    values = [0, *environment.priorities.values()]
    defaults: dict[str, int] = {}
    if any(cluster.serving for cluster in clusters):
        defaults[SERVING_PRIORITY] = max(values) + 1
    if any(cluster.notebooks and cluster.notebooks.teams for cluster in clusters):
        defaults[NOTEBOOK_PRIORITY] = min(values) - 1
    return {**defaults, **environment.priorities}


def _preemption(policy: Preemption) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "withinClusterQueue": policy.within_queue,
        "reclaimWithinCohort": policy.reclaim,
    }
    if policy.borrow_within_cohort != "Never":
        spec["borrowWithinCohort"] = {"policy": policy.borrow_within_cohort}
    return spec


def _resource_groups(shares: Mapping[str, Share], flavors: Mapping[str, Flavor]) -> list[dict[str, Any]]:
    """Return a resource group for each resource in the shares, with its flavors in the order of ``flavors``."""
    order = {name: index for index, name in enumerate(flavors)}
    shared_flavors = [flavors[name] for name in sorted(shares, key=order.__getitem__)]
    resources = dict.fromkeys(flavor.accelerator.resource for flavor in shared_flavors)
    return [_resource_group(resource, shared_flavors, shares) for resource in resources]


def local_queue(cluster_queue: str) -> dict[str, Any]:
    """Return the spec of a LocalQueue. Its ClusterQueue is immutable."""
    return {"clusterQueue": cluster_queue}


def local_queue_names(team: str) -> tuple[str, ...]:
    """Return the queues in a team's namespace: the queue that jobs name, and the default for jobs that name none."""
    return tuple(dict.fromkeys((team, DEFAULT_QUEUE)))


def _resource_group(resource: str, flavors: list[Flavor], shares: Mapping[str, Share]) -> dict[str, Any]:
    """Return the group of one resource. A flavor may be in only one group, because no flavor has both TPUs and GPUs."""
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
    finite = {name: str(limit) for name, limit in limits.items() if limit is not None}
    return {"name": resource, "nominalQuota": str(share.nominal_quota), **finite}


CONTROLLER = "kueue.x-k8s.io/provisioning-request"  # of Kueue; a check can never be given another
CLASS = "queued-provisioning.gke.io"  # the only one that GKE's autoscaler serves
CONFIG = "ProvisioningRequestConfig"
# On a job: Kueue hands it to GKE as the request's parameter.
MAX_RUN_ANNOTATION = "provreq.kueue.x-k8s.io/maxRunDurationSeconds"
# GKE labels the nodes of one request by it, so that a job gets the nodes that were created for it.
_REQUEST_LABEL = {
    "key": "autoscaling.gke.io/provisioning-request",
    "valueFromProvisioningClassDetail": "ResizeRequestName",
}


def admission_check(flavor: Flavor) -> dict[str, Any]:
    """Return the spec of a flavor's AdmissionCheck."""
    group = "kueue.x-k8s.io"
    return {"controllerName": CONTROLLER, "parameters": {"apiGroup": group, "kind": CONFIG, "name": flavor.name}}


def provisioning_request_config(flavor: Flavor) -> dict[str, Any]:
    """Return the spec of a flavor's ProvisioningRequestConfig.

    It has no parameters. If a parameter differed from a job's annotation, Kueue would delete and recreate the request
    in each pass (v0.19.2, provReqSyncedWithConfig; tried with its controller). The maximum duration is therefore set
    only in the job.

    Kueue retries a failed request ten times, after 1, 2, 4, 8 and 16 minutes and then every 30 minutes: for three hours
    in total. The quota is free again when the previous job ends. That job's VMs, however, count against the pool's
    maximum for ten minutes after they were provisioned, and then until the autoscaler finds them unneeded. Upstream
    recommends no numbers, and its default gives up after seven minutes. Source: Kueue v0.19.2, ``retryStrategy``;
    kueue#5129; GKE's published cluster-autoscaler 7d25050, read 2026-11-28.
    """
    return {
        "provisioningClassName": CLASS,
        "managedResources": [flavor.accelerator.resource],  # a job that requests none of it needs no nodes of ours
        "podSetUpdates": {"nodeSelector": [dict(_REQUEST_LABEL)]},
        "retryStrategy": {"backoffLimitCount": 10, "backoffBaseSeconds": 60, "backoffMaxSeconds": 1800},
    }


def longest_run_hours(flavor: Flavor) -> int | None:
    """Return the number of hours for which all pools of a flavor let VMs run, or None if there is no limit."""
    return min((pool.spec.max_run_hours for pool in flavor.pools if pool.spec.max_run_hours), default=None)


def run_limit_hours(team: Team, environment: Environment) -> int | None:
    """Return how many hours a team's jobs may run, or None if there is no limit."""
    return min((hours for hours in (team.max_run_hours, environment.max_run_hours) if hours), default=None)


def admission_checks(flavors: Iterable[Flavor]) -> dict[str, Any]:
    """Return the part of a ClusterQueue that makes jobs of queued flavors wait until their nodes exist."""
    checks = [{"name": flavor.name, "onFlavors": [flavor.name]} for flavor in flavors if flavor.by_request]
    return {"admissionChecksStrategy": {"admissionChecks": checks}} if checks else {}


POD_LABELS = {"app.kubernetes.io/name": "kueue", "app.kubernetes.io/instance": "kueue"}
REPLICAS = 2  # the webhooks fail closed, so that no Job starts while no replica answers


def kueue_values(cluster_name: str, cluster: ClusterSpec, *, fair_sharing: bool = True) -> dict[str, Any]:
    """Return the chart's values. Sizes depend on the maximum number of VMs in the cluster."""
    pools = list(cluster_pools(cluster_name, cluster))
    nodes = sum(pool.max_nodes for pool in cluster.pools_without_chips.values()) + sum(pool.max_nodes for pool in pools)
    return {
        # A ServiceMonitor needs the Prometheus operator, which no cluster here has; ClusterPodMonitoring replaces it.
        "enablePrometheus": False,
        "enableCertManager": False,
        "managerConfig": {
            "controllerManagerConfigYaml": configuration_text(
                frozenset(pool.spec.capacity for pool in pools),
                fair_sharing=fair_sharing,
                pods=cluster.queues_pods,
                claims=claims_devices(cluster_name, cluster),
            )
        },
        "controllerManager": {
            "replicas": REPLICAS,
            "podDisruptionBudget": {"enabled": True, "minAvailable": 1},
            "topologySpreadConstraints": [_SPREAD],
            "tolerations": list(SYSTEM_TOLERATIONS),
            "manager": {"priorityClassName": SYSTEM_PRIORITY, "resources": resources(nodes)},
        },
    }


def resources(nodes: int) -> dict[str, dict[str, str]]:
    """Return requests and limits of the controller. The chart's default of 512 MiB is for small clusters.

    Limits grow with the cluster as in xpk: 32 MiB and 0.004 cores per VM, with a minimum of 4 GiB and 2 cores. Source:
    AI-Hypercomputer/xpk 367c838 core/kueue_manager.py.
    """
    memory_mib = max(4096, 32 * nodes)
    return {
        "requests": {"cpu": "500m", "memory": "1Gi"},
        "limits": {"cpu": str(max(2, ceil(nodes * 4 / 1000))), "memory": f"{memory_mib}Mi"},
    }


_SPREAD = {
    "maxSkew": 1,
    "topologyKey": "kubernetes.io/hostname",
    "whenUnsatisfiable": "ScheduleAnyway",
    "labelSelector": {"matchLabels": POD_LABELS},
}


# A kind that is not listed starts without quota. The webhook of `pod` fails closed before every pod of a team, so it is
# used only if pods are queued.
FRAMEWORKS = (
    "batch/job",
    "jobset.x-k8s.io/jobset",
    "trainer.kubeflow.org/trainjob",
    "kubeflow.org/mpijob",
    "kubeflow.org/pytorchjob",
    "ray.io/rayjob",
    "ray.io/raycluster",
)

POD_FRAMEWORKS = ("pod", "deployment", "leaderworkerset.x-k8s.io/leaderworkerset")
# Kueue's webhooks fail closed. Its chart gives this selector to all webhooks on jobs and pods. Without it they except
# only kube-system and Kueue's own namespace, and no Job of other software starts while Kueue is down.
OF_TEAMS = {"matchExpressions": [{"key": TEAM_LABEL, "operator": "Exists"}]}

# Accelerators are scarce, and queues count only these. A pod that also requests one of the following, in a queue that
# does not cover it, would never be admitted; Kueue's IgnoreUndeclared would also let GPUs through a queue for TPUs.
UNCOUNTED = ("cpu", "memory", "ephemeral-storage")

# How long a job may hold its quota until all of its pods are ready: VMs, drivers, images of tens of GB. Estimates, not
# measured. Kueue's default is 30 minutes. Flex-start VMs come when Google Cloud finds them, and a job that gives up
# early loses its turn; those of queued provisioning exist before the time starts.
PODS_READY_MINUTES: dict[Capacity, int] = {
    "reservation": 30,
    "on-demand": 60,
    "spot": 60,
    "queued-provisioning": 60,
    "flex-start": 24 * 60,
}

# How long a finished job and its workload are kept; without a limit they would accumulate.
KEPT_HOURS = 168

_STRATEGIES = ("LessThanOrEqualToFinalShare", "LessThanInitialShare")
_CONCURRENCY = {
    "Job.batch": 5,
    "Workload.kueue.x-k8s.io": 10,
    "LocalQueue.kueue.x-k8s.io": 5,
    "ClusterQueue.kueue.x-k8s.io": 5,
    "ResourceFlavor.kueue.x-k8s.io": 1,
}


# Kueue neither counts claims of devices nor refuses jobs with them: a claim of network devices is for a whole VM, which
# its GPUs or TPUs count already, and admission lets teams claim nothing else. Kueue's own way, a mapping of device
# classes, counts them as a further resource of every queue and excludes topologies, by Kueue's page on DRA.
# docs/development/decisions/0029-dranet-by-machine.md
UNCOUNTED_CLAIMS = {
    "KueueDRAIntegration": False,
    "KueueDRAIntegrationExtendedResource": False,
    "KueueDRAIntegrationPartitionableDevices": False,
    "KueueDRARejectWorkloadsWhenDRADisabled": False,
}


def configuration(
    capacities: Iterable[Capacity], *, fair_sharing: bool = True, pods: bool = False, claims: bool = False
) -> dict[str, Any]:
    """Return the configuration for a cluster whose pools have these capacity types.

    It applies only to namespaces of teams, and so do the webhooks that the chart registers. With ``pods``, Kueue queues
    the pods of model servers and notebooks. With ``claims``, jobs may claim network devices.

    Kueue has one time-out for all pools. If there is a flex-start pool, jobs that never become ready keep their
    machines for 24 hours, which is the time-out for flex-start; an alert fires after one hour. Jobs that were ready
    once have the longest time-out of the other pools to recover.
    """
    minutes = {capacity: PODS_READY_MINUTES[capacity] for capacity in capacities}
    ready = f"{max(minutes.values(), default=30)}m"
    other_limits = [limit for capacity, limit in minutes.items() if capacity != "flex-start"]
    recovered = f"{max(other_limits)}m" if other_limits else ready
    frameworks = list(FRAMEWORKS)
    if pods:
        frameworks += POD_FRAMEWORKS
    manager: dict[str, Any] = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "health": {"healthProbeBindAddress": ":8081"},
        "metrics": {"bindAddress": ":8443", "enableClusterQueueResources": True},
        "webhook": {"port": 9443},
        "leaderElection": {"leaderElect": True, "resourceName": "c1f6bfd2.kueue.x-k8s.io"},
        "controller": {"groupKindConcurrency": dict(_CONCURRENCY)},
        "clientConnection": {"qps": 300, "burst": 500},
        # True would also hold back Jobs of other software; every team's namespace has a default queue instead.
        "manageJobsWithoutQueueName": False,
        "integrations": {"frameworks": frameworks},
        "managedJobsNamespaceSelector": OF_TEAMS,
        "waitForPodsReady": {
            "timeout": ready,
            "recoveryTimeout": recovered,
            "blockAdmission": False,  # one team's slow start would hold back all others
            # A job that never becomes ready is deactivated after five tries, rather than take scarce machines for ever.
            "requeuingStrategy": {"timestamp": "Eviction", "backoffLimitCount": 5, "backoffBaseSeconds": 60},
        },
    }
    if fair_sharing:
        # The team that borrows least so far gets idle quota of other teams. Excludes borrowWithinCohort in queues.
        manager["fairSharing"] = {"preemptionStrategies": list(_STRATEGIES)}
    manager["resources"] = {"excludeResourcePrefixes": list(UNCOUNTED)}
    manager["objectRetentionPolicies"] = {"workloads": {"afterFinished": f"{KEPT_HOURS}h"}}
    if claims:
        manager["featureGates"] = dict(UNCOUNTED_CLAIMS)
    return manager


@cache  # many clusters have the same text, and writing it is slow
def configuration_text(
    capacities: frozenset[Capacity], *, fair_sharing: bool = True, pods: bool = False, claims: bool = False
) -> str:
    """Return the configuration as text for the chart's value ``controllerManagerConfigYaml``."""
    manager = configuration(capacities, fair_sharing=fair_sharing, pods=pods, claims=claims)
    return yaml.safe_dump(manager, sort_keys=False)
