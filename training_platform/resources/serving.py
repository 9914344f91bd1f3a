"""A model server as Kubernetes' objects: its pods, a Service, a HorizontalPodAutoscaler, and the scrape of its metrics.

Replicas of one VM are pods of a Deployment, those of several VMs are groups of a LeaderWorkerSet. Kueue's integrations
gate each pod or group until the team's queue has room for it, and delete pods that it preempts. Managed Prometheus
scrapes the metric, and the adapter gives it from Cloud Monitoring to the autoscaler.

The first pod of a group answers requests. The others find it by ``LWS_LEADER_ADDRESS``, which the controller sets,
beside ``LWS_GROUP_SIZE``, ``LWS_WORKER_INDEX`` and what the TPU runtime reads of its slice. Kueue admits whole groups.

Sources: kubernetes-sigs/kueue v0.19.2, pkg/controller/jobs/deployment, pod and leaderworkerset; kubernetes-sigs/lws
v0.10.0, api/leaderworkerset/v1 and pkg/utils; GKE docs, configure autoscaling for LLM workloads; read 2026-11-22.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from training_platform.config.model.cluster import ClusterSpec
from training_platform.config.model.environment import Environment
from training_platform.config.model.node_pool import SLICE_LEVELS
from training_platform.config.model.stack import Stack
from training_platform.config.model.team import Team
from training_platform.config.model.workloads import ServerSpec
from training_platform.config.pools import Flavor
from training_platform.config.reading.finding import Finding, Path, Severity
from training_platform.config.reading.section import enumeration
from training_platform.config.workspace import Workspace
from training_platform.resources.controllers import MONITORING_API
from training_platform.resources.kubernetes_objects import kubernetes_object, object_type
from training_platform.resources.kueue import (
    ANY_PLACE,
    PRIORITY_LABEL,
    QUEUE_LABEL,
    local_queue_names,
    priorities,
    resource_flavor,
)
from training_platform.resources.launcher import PLAN_VARIABLE, launcher
from training_platform.resources.plan import PLAIN, Component, Options
from training_platform.resources.scope import MANAGED_BY, SERVICE_ACCOUNT, Scope, secret_id

SERVER_LABEL = f"{MANAGED_BY}/server"
LEADER_WORKER_SET = ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet")
# Pods start and end with quota, VMs and load, which no deployment waits for.
SKIP_AWAIT = {"pulumi.com/skipAwait": "true"}
_SHARED_MEMORY = {"name": "shared-memory", "mountPath": "/dev/shm"}  # noqa: S108 # the pod's own
# Weights of hundreds of GB take long to load; Kueue's own time for ready pods is over before.
_PROBE_SECONDS, _START_PROBES = 10, 360
_SCRAPE_SECONDS = 15  # as GKE's tutorials have it: an autoscaler looks every 15 seconds


def object_name(name: str) -> str:
    """Return the name of a server's objects, of which no job's can be: jobs have Services of their names, too."""
    return f"serve-{name}"


def server_labels(team: str, server: ServerSpec) -> dict[str, str]:
    """Return the labels that Kueue reads of a Deployment: the team's queue, and a priority above training."""
    queue, *_ = local_queue_names(team)
    return {QUEUE_LABEL: queue, PRIORITY_LABEL: server.priority}


def chips_of(server: ServerSpec, flavor: Flavor) -> int:
    """Return the chips or GPUs of one pod."""
    return server.chips or min(flavor.chips_per_slice, max(pool.machine.chips for pool in flavor.pools))


def vms_of(server: ServerSpec, flavor: Flavor) -> int:
    """Return the VMs of one replica, each with a pod: those of a TPU slice, or the server's own number."""
    return slice_vms(flavor) if flavor.accelerator.kind == "tpu" else server.vms or 1


def slice_vms(flavor: Flavor) -> int:
    """Return the VMs of one TPU slice, 1 for GPUs."""
    return max(pool.hosts for pool in flavor.pools)


def replica_chips(server: ServerSpec, flavor: Flavor) -> int:
    """Return the chips or GPUs of one replica."""
    return vms_of(server, flavor) * chips_of(server, flavor)


def most_chips(server: ServerSpec, flavor: Flavor) -> int:
    """Return the chips or GPUs of all replicas that a server can have."""
    return server.max_replicas * replica_chips(server, flavor)


def gated_chips(team: Team, cluster: str, flavors: Mapping[str, Flavor]) -> Counter[str]:
    """Return chips by flavor that a team's pods in a cluster may ask for beside those of jobs that Kueue has admitted.

    These pods exist while they wait, so they can ask for more than the team has.
    """
    asked: Counter[str] = Counter()
    for server in team.serving.get(cluster, {}).values():
        asked[server.flavor] += most_chips(server, flavors[server.flavor])
    return asked


def deployment(name: str, server: ServerSpec, flavor: Flavor, scope: Scope) -> dict[str, Any]:
    """Return the spec of a Deployment; the autoscaler decides how many pods it has."""
    labels = {SERVER_LABEL: name}
    metadata = {"annotations": dict(ANY_PLACE)} if flavor.topology_levels else {}
    return {
        "selector": {"matchLabels": labels},
        # No pod more than the most that the share is counted for, during updates either.
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
        "template": {"metadata": {"labels": labels, **metadata}, "spec": pod(server, flavor, scope)},
    }


def pod(server: ServerSpec, flavor: Flavor, scope: Scope, *, answers: bool = True) -> dict[str, Any]:
    """Return the spec of a pod that ``answers`` requests, or of another pod of its replica."""
    nodes = resource_flavor(flavor)
    shared = chips_of(server, flavor) > 1  # whose processes speak to each other through it
    volume = {"name": _SHARED_MEMORY["name"], "emptyDir": {"medium": "Memory"}}
    return {
        "serviceAccountName": SERVICE_ACCOUNT,
        "nodeSelector": nodes["nodeLabels"],
        "tolerations": nodes["tolerations"],
        "containers": [_container(server, flavor, scope, answers)],
        **({"volumes": [volume]} if shared else {}),
    }


def _container(server: ServerSpec, flavor: Flavor, scope: Scope, answers: bool) -> dict[str, Any]:
    chips = chips_of(server, flavor)
    amount = {flavor.accelerator.resource: str(chips)}
    own = server.command, server.args
    program, arguments = own if answers or not server.worker_command else (server.worker_command, ())
    command = ["python3", "-c", launcher()] if server.secrets else list(program)
    args = [*program, *arguments] if server.secrets else list(arguments)
    asked = {"startupProbe": {**_probe(server), "failureThreshold": _START_PROBES}, "readinessProbe": _probe(server)}
    return {
        "name": "server",
        "image": server.image,
        **({"command": command} if command else {}),
        **({"args": args} if args else {}),
        "env": [{"name": key, "value": value} for key, value in {**server.env, **_orders(server, scope)}.items()],
        "ports": [{"name": key, "containerPort": port} for key, port in _ports(server).items()] if answers else [],
        "resources": {"requests": amount, "limits": amount},
        **(asked if answers else {}),
        **({"volumeMounts": [dict(_SHARED_MEMORY)]} if chips > 1 else {}),
    }


def _orders(server: ServerSpec, scope: Scope) -> dict[str, str]:
    if not server.secrets:
        return {}
    parts = {variable: secret.partition(":") for variable, secret in server.secrets.items()}
    versions = {
        variable: f"projects/{scope.project}/secrets/{secret_id(scope, key)}/versions/{version or 'latest'}"
        for variable, (key, _, version) in parts.items()
    }
    return {PLAN_VARIABLE: json.dumps({"secrets": versions})}


def _ports(server: ServerSpec) -> dict[str, int]:
    port = server.port or server.known.port
    return {"serve": port} if server.metrics_port == port else {"serve": port, "metrics": server.metrics_port}


def _probe(server: ServerSpec) -> dict[str, Any]:
    path = server.known.health_path
    how = {"httpGet": {"path": path, "port": "serve"}} if path else {"tcpSocket": {"port": "serve"}}
    return {**how, "periodSeconds": _PROBE_SECONDS}


def service(name: str, server: ServerSpec) -> dict[str, Any]:
    """Return the spec of a Service, by which the team's other pods reach the server's ready ones."""
    port = server.port or server.known.port
    return {"selector": {SERVER_LABEL: name}, "ports": [{"name": "serve", "port": port, "targetPort": "serve"}]}


def pods_kind(server: ServerSpec, flavor: Flavor) -> tuple[str, str]:
    """Return API version and kind of the object that creates a server's pods."""
    return LEADER_WORKER_SET if vms_of(server, flavor) > 1 else ("apps/v1", "Deployment")


def autoscaler(name: str, server: ServerSpec, flavor: Flavor) -> dict[str, Any]:
    """Return the spec of a HorizontalPodAutoscaler, on a metric as the adapter of Cloud Monitoring calls it.

    Of a LeaderWorkerSet it counts groups, and asks their first pods for the metric.
    """
    metric, target = server.metric or server.known.metric, server.target or server.known.target
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


def pod_monitoring(name: str, server: ServerSpec) -> dict[str, Any]:
    """Return the spec of a PodMonitoring of Managed Prometheus."""
    port = "metrics" if "metrics" in _ports(server) else "serve"
    return {
        "selector": {"matchLabels": {SERVER_LABEL: name}},
        "endpoints": [{"port": port, "interval": f"{_SCRAPE_SECONDS}s"}],
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


def leader_worker_set(name: str, server: ServerSpec, flavor: Flavor, scope: Scope) -> dict[str, Any]:
    """Return the spec of a LeaderWorkerSet; the autoscaler decides how many groups it has."""
    rolling = {"maxSurge": 0, "maxUnavailable": 1}  # no group more than the most that the share is counted for
    metadata = {"annotations": placement} if (placement := _placement(flavor)) else {}
    worker = {"metadata": metadata} if metadata else {}
    return {
        "leaderWorkerTemplate": {
            "size": vms_of(server, flavor),
            "restartPolicy": "RecreateGroupOnPodRestart",  # a model on several VMs does not run without one of them
            "leaderTemplate": {
                "metadata": {"labels": {SERVER_LABEL: name}, **metadata},
                "spec": pod(server, flavor, scope),
            },
            "workerTemplate": {**worker, "spec": pod(server, flavor, scope, answers=False)},
        },
        "rolloutStrategy": {"type": "RollingUpdate", "rollingUpdateConfiguration": rolling},
        "startupPolicy": "LeaderCreated",
    }


def set_annotations(flavor: Flavor) -> dict[str, str]:
    """Return the annotations that the controller reads: where Kueue does not place pods, a group takes a slice."""
    return dict(_EXCLUSIVE) if slice_vms(flavor) > 1 and not flavor.topology_levels else {}


def _placement(flavor: Flavor) -> dict[str, str]:
    """Return the annotations that ask Kueue to place a group's pods together: on one slice, or as near as possible."""
    if not flavor.topology_levels:
        return {}
    if flavor.topology_levels == SLICE_LEVELS:
        return {_GROUP: "replica", _REQUIRED: SLICE_LEVELS[0]}
    *_, narrowest, _ = flavor.topology_levels
    return {_GROUP: "replica", _PREFERRED: narrowest}


def serving_findings(workspace: Workspace) -> Iterator[Finding]:
    """Find servers that the share or the machines of their flavor do not hold, and those that no training yields to."""
    for stack, team, home in workspace.teams():
        for cluster, servers in team.serving.items():
            known = workspace.flavors(team.environment, cluster) if cluster in home.clusters else {}
            by_flavor: dict[str, dict[str, ServerSpec]] = defaultdict(dict)
            for name, server in servers.items():
                if server.flavor in known and server.flavor in team.shares.get(cluster, ()):
                    path: Path = ("serving", cluster, name)
                    yield from _unfit(stack, path, server, known[server.flavor])
                    yield from _several(stack, (*path, "vms"), server, known[server.flavor], home.clusters[cluster])
                    yield from _elsewhere(stack, path, server, home)
                    yield from _yields_nothing(stack, path, server, team, home)
                    by_flavor[server.flavor][name] = server
            for flavor, on_flavor in by_flavor.items():
                nominal = team.shares[cluster][flavor].nominal_quota
                yield from _over_share(stack, ("serving", cluster), nominal, known[flavor], on_flavor)


def _over_share(
    stack: Stack, path: Path, nominal: int, flavor: Flavor, servers: Mapping[str, ServerSpec]
) -> Iterator[Finding]:
    """Find servers that at their most ask for more than the team can always get back."""
    asked = {name: most_chips(server, flavor) for name, server in servers.items()}
    total = sum(asked.values())
    for name, server in servers.items() if total > nominal else ():
        fits = max(0, nominal - (total - asked[name])) // replica_chips(server, flavor)
        parts = ", ".join(f"{other} {chips}" for other, chips in asked.items())
        message = f"model servers on {flavor.name} can have {total} {flavor.accelerator.resource} ({parts})"
        yield stack.finding(
            "serving-over-share", (*path, name, "max_replicas"), f"{message}; the team's share is {nominal}",
            allowed=f"at most {fits} besides the others" if fits else "a larger share",
            nearest=fits if fits >= server.min_replicas else None,
        )  # fmt: skip


def _unfit(stack: Stack, path: Path, server: ServerSpec, flavor: Flavor) -> Iterator[Finding]:
    """Find a flavor whose VMs are one job's, and chips that no VM gives a pod."""
    if flavor.by_request:
        message = f"VMs of {flavor.name} come for one job and are deleted after its longest run"
        yield _wrong(stack, (*path, "flavor"), message, "a flavor without queued provisioning")
    places = min(pool.machine.chips * pool.places_per_gpu for pool in flavor.pools)
    chips = chips_of(server, flavor)
    whole = flavor.accelerator.kind == "tpu" or vms_of(server, flavor) > 1
    if chips > places or (whole and chips != places):
        message = f"is {chips}, and a VM of {flavor.name} has {places}"
        message += ", all of which a pod takes" if whole else ""
        yield _wrong(stack, (*path, "chips"), message, str(places) if whole else f"at most {places}", places)


def _several(stack: Stack, path: Path, server: ServerSpec, flavor: Flavor, spec: ClusterSpec) -> Iterator[Finding]:
    """Find VMs that are no slice, and replicas of several VMs where nothing makes their pods."""
    vms, own = vms_of(server, flavor), slice_vms(flavor)
    if flavor.accelerator.kind == "tpu" and (server.vms or own) != own:
        yield _wrong(stack, path, f"is {server.vms}, and a slice of {flavor.name} has {own}", str(own), own)
    elif vms > 1 and OPERATOR not in spec.operators:
        message = f"a replica on {flavor.name} is of {vms} VMs, for which its cluster has no {OPERATOR}"
        yield _wrong(stack, (*path[:-1], "flavor"), message, f"a cluster with {OPERATOR} among its operators")
    elif vms == 1 and server.worker_command:
        message = f"has no effect: a replica on {flavor.name} is of one VM"
        yield _wrong(stack, (*path[:-1], "worker_command"), message, "vms of at least 2, or the field left out")


def _elsewhere(stack: Stack, path: Path, server: ServerSpec, home: Environment) -> Iterator[Finding]:
    """Find an image that the cluster's admission policy refuses."""
    sources = home.image_sources
    if sources and not server.image.startswith(sources):
        message = f"{server.image} comes from elsewhere than image_sources of {stack.environment_name} say"
        yield _wrong(stack, (*path, "image"), message, f"images of {enumeration(sources)}")


def _yields_nothing(stack: Stack, path: Path, server: ServerSpec, team: Team, home: Environment) -> Iterator[Finding]:
    """Find a server that waits behind running training, though pods of it are asked for by load."""
    values = priorities(home)
    if team.preemption.within_queue == "Never":
        message = "no job of the team is stopped for its model servers, which wait until one ends"
        yield _wrong(
            stack, ("preemption", "within_queue"), message, "LowerPriority", "LowerPriority", severity="warning"
        )
    above = [other for other, value in values.items() if value > values.get(server.priority, 0)]
    if above:
        message = f"{server.priority} is below {enumeration(above)}, jobs of which are not stopped for it"
        nearest = max(values, key=values.__getitem__)
        yield _wrong(stack, (*path, "priority"), message, "the highest priority", nearest, severity="warning")


def _wrong(
    stack: Stack, path: Path, message: str, allowed: str, nearest: object = None, *, severity: Severity = "error"
) -> Finding:
    return stack.finding("serving-fits", path, message, severity=severity, allowed=allowed, nearest=nearest)


def model_server(
    into: Component, scope: Scope, key: str, spec: ServerSpec, *, team: str, flavor: Flavor, namespace: Any
) -> None:
    """Add pods of a model server behind one address, as many as their load asks for and the team's queue admits.

    ``key`` is the server's in the team's file, and ``team`` the name of queue and namespace.
    """
    name = into.name
    several = vms_of(spec, flavor) > 1
    if several:
        role, pods = "groups", leader_worker_set(key, spec, flavor, scope)
        annotations = {**SKIP_AWAIT, **set_annotations(flavor)}
        options = Options(replace_on_changes=tuple(REPLACED), delete_before_replace=True)
    else:
        role, pods = "deployment", deployment(key, spec, flavor, scope)
        annotations, options = SKIP_AWAIT, PLAIN
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
        ("metrics", MONITORING_API, "PodMonitoring", pod_monitoring(key, spec)),
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
