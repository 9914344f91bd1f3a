"""A model server as Kubernetes objects: pods, a Service, a HorizontalPodAutoscaler, and collection of its metrics.

A replica on one VM is a pod of a Deployment; a replica on several VMs is a group of a LeaderWorkerSet. Kueue's
integrations gate each pod or group until the team's queue has room for it, and delete pods that it preempts. Managed
Prometheus collects the metric, and the adapter passes it from Cloud Monitoring to the autoscaler.

The first pod of a group responds to requests. The others find it through ``LWS_LEADER_ADDRESS``. The controller sets
this variable, ``LWS_GROUP_SIZE``, ``LWS_WORKER_INDEX``, and the variables that the TPU runtime reads. Kueue admits only
whole groups.

Sources: kubernetes-sigs/kueue v0.19.2, pkg/controller/jobs/deployment, pod and leaderworkerset; kubernetes-sigs/lws
v0.10.0, api/leaderworkerset/v1 and pkg/utils; GKE docs, configure autoscaling for LLM workloads; read 2026-11-22.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from training_platform.config.expansion import Flavor
from training_platform.config.model.node_pool import SLICE_LEVELS
from training_platform.config.model.team import Team
from training_platform.config.model.workloads import ServerSpec
from training_platform.resources.controllers import MONITORING_API
from training_platform.resources.kubernetes_objects import kubernetes_object, object_type
from training_platform.resources.kueue import (
    ANY_PLACE,
    PRIORITY_LABEL,
    QUEUE_LABEL,
    local_queue_names,
    resource_flavor,
)
from training_platform.resources.launcher import PLAN_VARIABLE, launcher
from training_platform.resources.plan import PLAIN, Component, Options
from training_platform.resources.pod_admission import CONFINED
from training_platform.resources.scope import MANAGED_BY, SERVICE_ACCOUNT, Scope, secret_id

SERVER_LABEL = f"{MANAGED_BY}/server"
LEADER_WORKER_SET = ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet")
# Pods start and end with quota, VMs and load, which no deployment waits for.
SKIP_AWAIT = {"pulumi.com/skipAwait": "true"}
_SHARED_MEMORY = {"name": "shared-memory", "mountPath": "/dev/shm"}  # noqa: S108 # the pod's own
# Weights of hundreds of GB take long to load, longer than Kueue's own time for ready pods.
_PROBE_SECONDS = 10
_START_PROBES = 360
_SCRAPE_SECONDS = 15  # as in GKE's tutorials: an autoscaler reads metrics every 15 seconds


def object_name(name: str) -> str:
    """Return the name of a server's objects. No job can have this name, because a job's Service has the job's name."""
    return f"serve-{name}"


def server_labels(team: str, server: ServerSpec) -> dict[str, str]:
    """Return the labels that Kueue reads from a Deployment: the team's queue, and the priority of model servers.

    This priority is higher than the priorities of training jobs.
    """
    queue, *_ = local_queue_names(team)
    return {QUEUE_LABEL: queue, PRIORITY_LABEL: server.priority}


def chips_of(server: ServerSpec, flavor: Flavor) -> int:
    """Return the number of chips or GPUs of one pod."""
    return server.chips or min(flavor.chips_per_slice, max(pool.machine.chips for pool in flavor.pools))


def vms_of(server: ServerSpec, flavor: Flavor) -> int:
    """Return the number of VMs of one replica, each with one pod: a TPU slice's VMs, or the server's own number."""
    return slice_vms(flavor) if flavor.accelerator.kind == "tpu" else server.vms or 1


def slice_vms(flavor: Flavor) -> int:
    """Return the number of VMs of one TPU slice; 1 for GPUs."""
    return max(pool.hosts for pool in flavor.pools)


def replica_chips(server: ServerSpec, flavor: Flavor) -> int:
    """Return the number of chips or GPUs of one replica."""
    return vms_of(server, flavor) * chips_of(server, flavor)


def most_chips(server: ServerSpec, flavor: Flavor) -> int:
    """Return the number of chips or GPUs that a server uses with its maximum number of replicas."""
    return server.max_replicas * replica_chips(server, flavor)


def gated_chips(team: Team, cluster: str, flavors: Mapping[str, Flavor]) -> Counter[str]:
    """Return the chips of each flavor that a team's servers may request in addition to the chips of admitted jobs.

    Pods of servers exist while they wait, so they can request more than the team's quota.
    """
    requested: Counter[str] = Counter()
    for server in team.serving.get(cluster, {}).values():
        requested[server.flavor] += most_chips(server, flavors[server.flavor])
    return requested


def deployment(
    name: str, server: ServerSpec, flavor: Flavor, scope: Scope, *, confined: bool = False
) -> dict[str, Any]:
    """Return the spec of a Deployment; the autoscaler sets the number of pods.

    Set ``confined`` if the namespace refuses pods without a seccomp profile.
    """
    labels = {SERVER_LABEL: name}
    metadata = {"annotations": dict(ANY_PLACE)} if flavor.topology_levels else {}
    return {
        "selector": {"matchLabels": labels},
        # Never more pods than the share is counted for, not even during updates.
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
        "template": {"metadata": {"labels": labels, **metadata}, "spec": pod(server, flavor, scope, confined=confined)},
    }


def pod(
    server: ServerSpec, flavor: Flavor, scope: Scope, *, answers: bool = True, confined: bool = False
) -> dict[str, Any]:
    """Return the spec of a pod. It responds to requests if ``answers`` is set, as one pod of each replica does."""
    nodes = resource_flavor(flavor)
    spec: dict[str, Any] = {
        "serviceAccountName": SERVICE_ACCOUNT,
        "nodeSelector": nodes["nodeLabels"],
        "tolerations": nodes["tolerations"],
        "containers": [_container(server, flavor, scope, answers)],
    }
    if confined:
        spec["containers"][0]["securityContext"] = dict(CONFINED)
    if chips_of(server, flavor) > 1:  # its processes communicate through shared memory
        spec["volumes"] = [{"name": _SHARED_MEMORY["name"], "emptyDir": {"medium": "Memory"}}]
    return spec


def _container(server: ServerSpec, flavor: Flavor, scope: Scope, answers: bool) -> dict[str, Any]:
    chips = chips_of(server, flavor)
    amount = {flavor.accelerator.resource: str(chips)}
    command = list(server.command)
    args = list(server.args)
    if server.worker_command and not answers:
        command = list(server.worker_command)
        args = []
    if server.secrets:
        args = [*command, *args]
        command = ["python3", "-c", launcher()]
    variables = {**server.env, **_launch_plan(server, scope)}
    container: dict[str, Any] = {"name": "server", "image": server.image}
    if command:
        container["command"] = command
    if args:
        container["args"] = args
    container["env"] = [{"name": name, "value": value} for name, value in variables.items()]
    container["ports"] = []
    if answers:
        container["ports"] = [{"name": "serve", "containerPort": _port(server)}]
    container["resources"] = {"requests": amount, "limits": amount}
    if answers:
        probe = {"httpGet": {"path": "/health", "port": "serve"}, "periodSeconds": _PROBE_SECONDS}
        container["startupProbe"] = {**probe, "failureThreshold": _START_PROBES}
        container["readinessProbe"] = probe
    if chips > 1:
        container["volumeMounts"] = [dict(_SHARED_MEMORY)]
    return container


def _launch_plan(server: ServerSpec, scope: Scope) -> dict[str, str]:
    """Return the environment variable with the launcher's instructions, if the server has secrets."""
    if not server.secrets:
        return {}
    parts = {variable: secret.partition(":") for variable, secret in server.secrets.items()}
    versions = {
        variable: f"projects/{scope.project}/secrets/{secret_id(scope, key)}/versions/{version or 'latest'}"
        for variable, (key, _, version) in parts.items()
    }
    return {PLAN_VARIABLE: json.dumps({"secrets": versions})}


def _port(server: ServerSpec) -> int:
    return server.port or server.known.port


def service(name: str, server: ServerSpec) -> dict[str, Any]:
    """Return the spec of a Service, through which the team's other pods reach the server's ready pods."""
    port = {"name": "serve", "port": _port(server), "targetPort": "serve"}
    return {"selector": {SERVER_LABEL: name}, "ports": [port]}


def pods_kind(server: ServerSpec, flavor: Flavor) -> tuple[str, str]:
    """Return the API version and the kind of the object that creates a server's pods."""
    return LEADER_WORKER_SET if vms_of(server, flavor) > 1 else ("apps/v1", "Deployment")


def autoscaler(name: str, server: ServerSpec, flavor: Flavor) -> dict[str, Any]:
    """Return the spec of a HorizontalPodAutoscaler. It names its metric as the adapter for Cloud Monitoring does.

    For a LeaderWorkerSet, it counts groups and reads the metric of their first pods.
    """
    metric = server.metric or server.known.metric
    target = server.target or server.known.target
    version, kind = pods_kind(server, flavor)
    return {
        "scaleTargetRef": {"apiVersion": version, "kind": kind, "name": object_name(name)},
        "minReplicas": server.min_replicas,
        "maxReplicas": server.max_replicas,
        "metrics": [
            {
                "type": "Pods",
                "pods": {
                    "metric": {"name": f"prometheus.googleapis.com|{metric}|gauge"},
                    "target": {"type": "AverageValue", "averageValue": str(target)},
                },
            }
        ],
    }


def pod_monitoring(name: str) -> dict[str, Any]:
    """Return the spec of a Managed Prometheus PodMonitoring."""
    return {
        "selector": {"matchLabels": {SERVER_LABEL: name}},
        "endpoints": [{"port": "serve", "interval": f"{_SCRAPE_SECONDS}s"}],
    }


OPERATOR = "leader-worker-set"
SIZE = "spec.leaderWorkerTemplate.size"
_TEMPLATES = ("leaderTemplate", "workerTemplate")
# Kueue's webhook refuses a change of a group's counted resources while it is in a queue. Source: as above,
# leaderworkerset_webhook.go, and pkg/util/pod, SpecShape.
REPLACED = [
    SIZE,
    *(
        f"spec.leaderWorkerTemplate.{template}.spec.{field}"
        for template in _TEMPLATES
        for field in ("nodeSelector", "tolerations", "containers[0].resources")
    ),
]
# A group has a node pool, which is one slice, for itself.
_EXCLUSIVE = {"leaderworkerset.sigs.k8s.io/exclusive-topology": SLICE_LEVELS[0]}
_GROUP, _REQUIRED, _PREFERRED = (
    f"kueue.x-k8s.io/podset-{name}" for name in ("group-name", "required-topology", "preferred-topology")
)


def leader_worker_set(
    name: str, server: ServerSpec, flavor: Flavor, scope: Scope, *, confined: bool = False
) -> dict[str, Any]:
    """Return the spec of a LeaderWorkerSet; the autoscaler sets the number of groups."""
    rolling = {"maxSurge": 0, "maxUnavailable": 1}  # no group more than the most that the share is counted for
    metadata = {"annotations": placement} if (placement := _placement(flavor)) else {}
    worker = {"metadata": metadata} if metadata else {}
    return {
        "leaderWorkerTemplate": {
            "size": vms_of(server, flavor),
            "restartPolicy": "RecreateGroupOnPodRestart",  # a model on several VMs does not run without one of them
            "leaderTemplate": {
                "metadata": {"labels": {SERVER_LABEL: name}, **metadata},
                "spec": pod(server, flavor, scope, confined=confined),
            },
            "workerTemplate": {**worker, "spec": pod(server, flavor, scope, answers=False, confined=confined)},
        },
        "rolloutStrategy": {"type": "RollingUpdate", "rollingUpdateConfiguration": rolling},
        "startupPolicy": "LeaderCreated",
    }


def set_annotations(flavor: Flavor) -> dict[str, str]:
    """Return the annotations with which the controller puts each group on one slice, unless Kueue places the pods."""
    return dict(_EXCLUSIVE) if flavor.slices_by_jobset else {}


def _placement(flavor: Flavor) -> dict[str, str]:
    """Return the annotations with which Kueue places a group's pods on one slice or as close together as possible."""
    if not flavor.topology_levels:
        return {}
    if flavor.topology_levels == SLICE_LEVELS:
        return {_GROUP: "replica", _REQUIRED: SLICE_LEVELS[0]}
    *_, narrowest, _ = flavor.topology_levels
    return {_GROUP: "replica", _PREFERRED: narrowest}


def model_server(
    into: Component,
    scope: Scope,
    key: str,
    spec: ServerSpec,
    *,
    team: str,
    flavor: Flavor,
    namespace: Any,
    confined: bool,
) -> None:
    """Add the pods of a model server behind one address, as many as the load needs and the team's queue admits.

    ``key`` is the server's key in the team's file. ``team`` is the name of the queue and of the namespace.
    """
    name = into.name
    if vms_of(spec, flavor) > 1:
        role = "groups"
        pods = leader_worker_set(key, spec, flavor, scope, confined=confined)
        annotations = {**SKIP_AWAIT, **set_annotations(flavor)}
        options = Options(replace_on_changes=tuple(REPLACED), delete_before_replace=True)
    else:
        role = "deployment"
        pods = deployment(key, spec, flavor, scope, confined=confined)
        annotations = SKIP_AWAIT
        options = PLAIN
    into.add(
        kubernetes_object(
            object_type(*pods_kind(spec, flavor)),
            f"{name}-{role}",
            scope,
            object_name(key),
            {"spec": pods},
            namespace=namespace,
            annotations=annotations,
            labels=server_labels(team, spec),
            options=options,
        )
    )
    for role, version, kind, object_spec in (
        ("service", "v1", "Service", service(key, spec)),
        ("metrics", MONITORING_API, "PodMonitoring", pod_monitoring(key)),
        ("autoscaler", "autoscaling/v2", "HorizontalPodAutoscaler", autoscaler(key, spec, flavor)),
    ):
        into.add(
            kubernetes_object(
                object_type(version, kind),
                f"{name}-{role}",
                scope,
                object_name(key),
                {"spec": object_spec},
                namespace=namespace,
                annotations=SKIP_AWAIT,
            )
        )
