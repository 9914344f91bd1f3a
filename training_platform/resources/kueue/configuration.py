"""The configuration of Kueue's controller (``config.kueue.x-k8s.io/v1beta2``), whole: the chart takes it as one text.

What is left out stands at Kueue's own default, the webhook's certificates among it, which the chart fills in. A field
that Kueue does not know, or a framework named twice, stops the controller at its start.
Source: kubernetes-sigs/kueue v0.19.2, apis/config/v1beta2 and pkg/config, read 2026-11-21.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import yaml

from training_platform.config.model.capacity import Capacity
from training_platform.resources.scope import TEAM_LABEL

# A kind that is not listed starts without asking for quota. `pod`, whose webhook fails closed before every pod, and
# what switches it on, come only where pods are queued, and there for namespaces of teams alone.
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
OF_TEAMS = {"matchExpressions": [{"key": TEAM_LABEL, "operator": "Exists"}]}

# Accelerators are what is scarce, and queues count them alone. A pod that also asks for one of these, in a queue that
# does not cover it, would never be admitted; Kueue's IgnoreUndeclared would also let GPUs through a queue for TPUs.
UNCOUNTED = ("cpu", "memory", "ephemeral-storage")

# How long a job may hold its quota until all of its pods are ready: VMs, drivers, images of tens of GB. Ours, not
# measured. Kueue itself gives 30 minutes. Flex-start VMs come when Google Cloud finds them, and whoever gives up early
# loses the place; those of queued provisioning are there before the time begins to run.
PODS_READY_MINUTES: dict[Capacity, int] = {
    "reservation": 30,
    "on-demand": 60,
    "spot": 60,
    "queued-provisioning": 60,
    "flex-start": 24 * 60,
}

# How long a finished job and its workload can still be looked at; without a limit they pile up for ever.
KEPT_HOURS = 168

_STRATEGIES = ("LessThanOrEqualToFinalShare", "LessThanInitialShare")
_CONCURRENCY = {
    "Job.batch": 5,
    "Workload.kueue.x-k8s.io": 10,
    "LocalQueue.kueue.x-k8s.io": 5,
    "ClusterQueue.kueue.x-k8s.io": 5,
    "ResourceFlavor.kueue.x-k8s.io": 1,
}


def configuration(capacities: Iterable[Capacity], *, fair_sharing: bool = True, pods: bool = False) -> dict[str, Any]:
    """Return the configuration for a cluster whose pools have these capacities; Kueue has one time-out for all.

    With ``pods`` it queues those of model servers and notebooks, and looks at namespaces of teams alone: the chart
    gives the same selector to its webhooks.

    With a pool of flex-start, jobs that never get ready hold their machines for its 24 hours; an alert says so after
    one. Jobs that were ready once get the longest time of the other pools to recover.
    """
    minutes = {capacity: PODS_READY_MINUTES[capacity] for capacity in capacities}
    ready = f"{max(minutes.values(), default=30)}m"
    others = [most for capacity, most in minutes.items() if capacity != "flex-start"]
    recovered = f"{max(others)}m" if others else ready
    return {
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
        "integrations": {"frameworks": [*FRAMEWORKS, *(POD_FRAMEWORKS if pods else ())]},
        **({"managedJobsNamespaceSelector": OF_TEAMS} if pods else {}),
        "waitForPodsReady": {
            "timeout": ready,
            "recoveryTimeout": recovered,
            "blockAdmission": False,  # one team's slow start would hold back all others
            # A job that never gets ready is put aside after five tries, rather than take scarce machines for ever.
            "requeuingStrategy": {"timestamp": "Eviction", "backoffLimitCount": 5, "backoffBaseSeconds": 60},
        },
        # What teams leave idle goes to the team that borrows least so far. Excludes borrowWithinCohort in queues.
        **({"fairSharing": {"preemptionStrategies": list(_STRATEGIES)}} if fair_sharing else {}),
        "resources": {"excludeResourcePrefixes": list(UNCOUNTED)},
        "objectRetentionPolicies": {"workloads": {"afterFinished": f"{KEPT_HOURS}h"}},
    }


def configuration_text(capacities: Iterable[Capacity], *, fair_sharing: bool = True, pods: bool = False) -> str:
    """Return the configuration as the chart's value ``controllerManagerConfigYaml``."""
    return yaml.safe_dump(configuration(capacities, fair_sharing=fair_sharing, pods=pods), sort_keys=False)
