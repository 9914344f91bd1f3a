"""Software for jobs beside Kueue, from Helm charts: operators and their kinds of jobs, JobSet, and W&B Launch.

Kueue counts Ray's clusters and jobs, TrainJobs and LeaderWorkerSets, in the queue whose label they carry. Of these the
last is never suspended: its pods are gated. Source: kubernetes-sigs/kueue v0.19.2, pkg/controller/jobs; charts and
controllers of ray-project/kuberay v1.7.0, kubeflow/trainer v2.3.0 and kubernetes-sigs/lws v0.10.0, 2026-11-22. Their
controllers were run beside an API server; no chart was installed.

The agent of W&B Launch has a namespace of its own, which members have no rights in. Its chart would let it make pods in
the team's, which Kueue does not count, so the chart is told of no other namespace, and its rights there are these. What
W&B's queues say of a namespace is not ours: in its own, where no policy holds jobs in queues, a quota leaves room for
the agent alone. Sources: wandb/helm-charts 82d5626, charts/launch-agent; wandb/wandb, kubernetes_runner.py, read
2026-11-22; not run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import yaml

from training_platform.catalog import CHARTS, IMAGES
from training_platform.config.expansion import SYSTEM_PRIORITY, SYSTEM_TOLERATIONS
from training_platform.config.model.cluster import ClusterSpec
from training_platform.config.model.environment import ChartOverride
from training_platform.config.model.workloads import AGENT_BEGINNING, LaunchSpec
from training_platform.resources.admission import JobKind, templates_in
from training_platform.resources.kubernetes_objects import (
    RESOURCE_QUOTA,
    ROLE,
    ROLE_BINDING,
    account_subject,
    binding,
    kubernetes_object,
    release,
    rules_of_role,
)
from training_platform.resources.plan import Component
from training_platform.resources.pod_admission import ACCELERATORS
from training_platform.resources.resource_types import NAMESPACE
from training_platform.resources.scope import Scope
from training_platform.resources.tenancy import POD_SECURITY


class OperatorChart(NamedTuple):
    """The values of an operator's chart, the kinds of jobs that it runs, and the pods and port that it connects to."""

    values: dict[str, Any]
    kinds: tuple[JobKind, ...]
    connects_to: tuple[Mapping[str, str], int] | None = None


_ON_SYSTEM_POOL = {"tolerations": list(SYSTEM_TOLERATIONS), "priorityClassName": SYSTEM_PRIORITY}
_MOST_OBJECTS = 500  # of a kind, in a team's namespace, as of JobSets


def _ray_templates(cluster: str) -> str:
    """Return CEL for the pod templates of a Ray cluster's spec."""
    return f"[{cluster}.headGroupSpec.template] + {cluster}.?workerGroupSpecs.orValue([]).map(g, g.template)"


def _ray_job_templates(job: str) -> str:
    cluster = f"{job}.spec.rayClusterSpec"
    submitter = f"{job}.spec.submitterPodTemplate"
    return f"(has({cluster}) ? {_ray_templates(cluster)} : []) + (has({submitter}) ? [{submitter}] : [])"


def _group_templates(group: str) -> str:
    """Return CEL for the pod templates of a LeaderWorkerSet."""
    spec = f"{group}.spec.leaderWorkerTemplate"
    return f"[{spec}.workerTemplate] + (has({spec}.leaderTemplate) ? [{spec}.leaderTemplate] : [])"


def _has_replicated(runtime: str, condition: str) -> str:
    """Return CEL that is true if a condition is true of a template ``t`` of a runtime's replicated jobs."""
    jobs = f"{runtime}.?template.?spec.?replicatedJobs.orValue([])"
    return f"{jobs}.exists(r, [r.?template.?spec.?template].exists(t, {condition}))"


def _has_patched(job: str, condition: str) -> str:
    """Return CEL that is true if a condition is true of a template ``t`` of a TrainJob's patches of its runtime."""
    return f"{job}.spec.?runtimePatches.orValue([]).exists(p, {_has_replicated('p.?trainingRuntimeSpec', condition)})"


def _ray_refuses(cluster: str) -> dict[str, str]:
    """Return the parts of a Ray cluster's spec that would exceed members' roles; ``cluster`` is CEL for it."""
    return {
        # KubeRay gives the head's account the right to patch pods, which takes Kueue's gate away, and images with it.
        "Ray does not scale its cluster here: its head would get rights to change pods": (
            f"!{cluster}.?enableInTreeAutoscaling.orValue(false)"
        ),
        # Whoever reaches a dashboard runs programs as the team's account.
        "a Ray dashboard has no Ingress: reach it by kubectl port-forward": (
            f"!{cluster}.?headGroupSpec.?enableIngress.orValue(false)"
        ),
    }


OPERATORS: Final = {
    "ray": OperatorChart(
        _ON_SYSTEM_POOL,
        (
            JobKind(
                "ray.io",
                "v1",
                "rayclusters",
                templates_in(lambda cluster: _ray_templates(f"{cluster}.spec")),
                sizes=("spec.headGroupSpec", "spec.?workerGroupSpecs"),
                refuses=_ray_refuses("object.spec"),
            ),
            JobKind(
                "ray.io",
                "v1",
                "rayjobs",
                templates_in(_ray_job_templates),
                sizes=("spec.?rayClusterSpec", "spec.?submitterPodTemplate"),
                refuses=_ray_refuses("object.spec.?rayClusterSpec"),
            ),
        ),
        # The dashboard, which KubeRay asks for the state of a RayJob; a job that it cannot ask about fails.
        ({"ray.io/node-type": "head"}, 8265),
    ),
    "trainer": OperatorChart(
        {
            "jobset": {"install": False},  # the platform has installed JobSet, of the version that it wants
            "manager": {"tolerations": list(SYSTEM_TOLERATIONS)},
            "runtimes": {"installer": {"tolerations": list(SYSTEM_TOLERATIONS)}},
        },
        (
            JobKind(
                "trainer.kubeflow.org",
                "v1alpha1",
                "trainjobs",
                _has_patched,
                sizes=("spec.?runtimePatches",),
                refuses={
                    # Kueue 0.19.2 knows the fields of Trainer 2.2; JobSet refuses what is lost (seen 2026-11-22).
                    "Kueue loses terminationGracePeriodSeconds of runtimePatches, and the job holds its quota and never"
                    " starts: say it in the runtime": (
                        f"!{_has_patched('object', 't.?spec.?terminationGracePeriodSeconds.hasValue()')}"
                    )
                },
            ),
            JobKind(
                "trainer.kubeflow.org",
                "v1alpha1",
                "trainingruntimes",
                lambda runtime, condition: _has_replicated(f"{runtime}.spec", condition),
                queued=False,
                refuses={
                    # Of a job that waits, Trainer keeps the pods of its first reading, and Kueue counts the new ones:
                    # 2 GPUs for pods that held 16 (Kueue 0.19.2, Trainer 2.3.0, seen 2026-11-23).
                    "a runtime keeps its spec, by which jobs are counted: make another": (
                        "request.operation == 'CREATE' || object.spec == oldObject.spec"
                    ),
                },
            ),
        ),
    ),
    "leader-worker-set": OperatorChart(
        _ON_SYSTEM_POOL,
        (
            JobKind(
                "leaderworkerset.x-k8s.io",
                "v1",
                "leaderworkersets",
                templates_in(_group_templates),
                suspends=False,
            ),
        ),
    ),
}


def charted(spec: ClusterSpec) -> Iterator[str]:
    """Yield the operators of a cluster that come from a chart, by their names in the catalogue."""
    yield from (name for name in spec.operators if name in OPERATORS)


def job_kinds(spec: ClusterSpec) -> tuple[JobKind, ...]:
    """Return the kinds of jobs that a cluster's operators run."""
    return tuple(kind for name in charted(spec) for kind in OPERATORS[name].kinds)


def network_policies(spec: ClusterSpec) -> dict[str, dict[str, Any]]:
    """Return by operator the spec of the NetworkPolicy that lets it reach pods in a team's namespace."""
    specs = {}
    for name in charted(spec):
        if (pods := OPERATORS[name].connects_to) is None:
            continue
        labels, port = pods
        home = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": CHARTS[name].namespace}}}
        specs[name] = {
            "podSelector": {"matchLabels": dict(labels)},
            "policyTypes": ["Ingress"],
            "ingress": [{"from": [home], "ports": [{"protocol": "TCP", "port": port}]}],
        }
    return specs


def object_limits(spec: ClusterSpec) -> dict[str, str]:
    """Return the limits of a team's ResourceQuota for the kinds that a cluster's operators run."""
    return {f"count/{kind.resource}.{kind.group}": str(_MOST_OBJECTS) for kind in job_kinds(spec)}


POD_LABELS = {
    "app.kubernetes.io/name": "jobset",
    "app.kubernetes.io/instance": "jobset",
    "app.kubernetes.io/component": "controller",
}


def jobset_values() -> dict[str, Any]:
    """Return the chart's values: two replicas, since JobSets and their pods are refused while no webhook answers."""
    return {
        "certManager": {"enable": False},
        "prometheus": {"enable": False},  # of the Prometheus operator; ClusterPodMonitoring instead
        "controller": {
            "replicas": 2,
            "leaderElection": {"enable": True},
            "podDisruptionBudget": {"enabled": True, "minAvailable": 1},
            "tolerations": list(SYSTEM_TOLERATIONS),  # the chart takes no class of priority
            "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [_APART]}},
            "resources": {
                "requests": {"cpu": "500m", "memory": "256Mi"},
                "limits": {"cpu": "2", "memory": "4Gi"},
            },
        },
    }


_APART = {
    "weight": 100,
    "podAffinityTerm": {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": POD_LABELS}},
}


CHART: Final = "wandb-launch"
AGENT_LABELS: Final = {f"{POD_SECURITY}{mode}": "restricted" for mode in ("enforce", "warn")}
AGENT_QUOTA: Final = {
    "pods": "2",  # itself, and the one before it that is ending
    "count/jobs.batch": "0",
    **{f"requests.{resource}": "0" for resource in ACCELERATORS},
}


def agent_namespace(team: str) -> str:
    """Return the namespace of a team's agent; no team can have it."""
    return f"{AGENT_BEGINNING}{team}"


def agent_account(team: str) -> str:
    """Return the service account of a team's agent, as its chart calls it after the release, which the team names."""
    return f"wandb-launch-serviceaccount-{team}"


def key_secret(team: str) -> str:
    """Return the Secret with the agent's key, under ``password``: the chart reads it, and the agent copies it."""
    return f"wandb-api-key-{team}"


def chart_values(team: str, spec: LaunchSpec) -> dict[str, Any]:
    """Return the values of the chart; the key is in none of them, and so in no state."""
    config = {
        "entity": spec.entity,
        "queues": list(spec.queues),
        "max_jobs": spec.max_jobs,
        "builder": {"type": "noop"},  # jobs name an image; the platform builds them from commits
    }
    return {
        "agent": {"useExternalWandbSecret": True, "image": spec.image or IMAGES["wandb-launch-agent"]},
        "namespace": agent_namespace(team),
        "additionalTargetNamespaces": [],
        "baseUrl": spec.base_url,
        "launchConfig": yaml.safe_dump(config, sort_keys=False),
        "volcano": False,  # a scheduler for the whole cluster, which older charts bring
    }


def agent_rules(team: str) -> list[dict[str, list[str]]]:
    """Return the rules of the agent's Role in the team's namespace: jobs in, what they do out, and the copied key."""
    see = ["get", "list", "watch"]
    return [
        _rule("batch", ["jobs"], [*see, "create", "delete"]),
        _rule("batch", ["jobs/status"], see),
        _rule("jobset.x-k8s.io", ["jobsets"], [*see, "create", "delete"]),
        _rule("jobset.x-k8s.io", ["jobsets/status"], see),
        _rule("", ["pods", "pods/log"], see),
        # To create cannot be held to a name; to read can.
        _rule("", ["secrets"], ["create"]),
        {**_rule("", ["secrets"], ["get"]), "resourceNames": [key_secret(team)]},
    ]


def _rule(group: str, resources: list[str], verbs: list[str]) -> dict[str, list[str]]:
    return {"apiGroups": [group], "resources": resources, "verbs": verbs}


_ROLE_NAME = "wandb-launch-agent"


def launch_agent(
    into: Component, scope: Scope, team: str, spec: LaunchSpec, *, namespace: Any, chart: ChartOverride | None
) -> None:
    """Add the agent in a namespace of its own, and its rights in the team's. Its pod waits for the Secret with its key.

    ``namespace`` is the team's, known once it exists; ``chart`` the environment's override of the chart.
    """
    name = into.name
    created = into.add(
        kubernetes_object(NAMESPACE, f"{name}-namespace", scope, agent_namespace(team), {}, labels=AGENT_LABELS)
    )
    own_namespace = created.output("metadata", "name")
    fields = {"spec": {"hard": AGENT_QUOTA}}
    quota = into.add(
        kubernetes_object(RESOURCE_QUOTA, f"{name}-quota", scope, "agent", fields, namespace=own_namespace)
    )
    rules = rules_of_role(*agent_rules(team))
    role = into.add(kubernetes_object(ROLE, f"{name}-role", scope, _ROLE_NAME, rules, namespace=namespace))
    bound = binding("Role", _ROLE_NAME, [account_subject(agent_account(team), agent_namespace(team))])
    into.add(
        kubernetes_object(ROLE_BINDING, f"{name}-role-binding", scope, _ROLE_NAME, bound, namespace=namespace), [role]
    )
    # People add the key, and cannot before the namespace exists, so nothing waits for the release's pods.
    release(
        into,
        CHARTS[CHART],
        chart,
        chart_values(team, spec),
        after=[created, quota],
        called=team,
        prepared=agent_namespace(team),
    )
