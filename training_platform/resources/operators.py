"""Operators from Helm charts, and the kinds of jobs that they run in Kueue's queues.

Kueue counts Ray clusters, Ray jobs, TrainJobs and LeaderWorkerSets in the queue that their label names. Kueue never
suspends a LeaderWorkerSet but gates its pods. Source: kubernetes-sigs/kueue v0.19.2, pkg/controller/jobs; charts and
controllers of ray-project/kuberay v1.7.0, kubeflow/trainer v2.3.0 and kubernetes-sigs/lws v0.10.0, 2026-11-22. Their
controllers were run against an API server; no chart was installed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from training_platform.catalog import CHARTS
from training_platform.config.expansion import SYSTEM_PRIORITY, SYSTEM_TOLERATIONS
from training_platform.config.model.cluster import ClusterSpec
from training_platform.resources.admission import OperatorJob, templates_in


class OperatorChart(NamedTuple):
    """An operator's chart values, the kinds of jobs that it runs, and the pods and the port that it connects to."""

    values: dict[str, Any]
    kinds: tuple[OperatorJob, ...]
    connects_to: tuple[Mapping[str, str], int] | None = None


_ON_SYSTEM_POOL = {"tolerations": list(SYSTEM_TOLERATIONS), "priorityClassName": SYSTEM_PRIORITY}
_MOST_OBJECTS = 500  # of a kind, in a team's namespace, as of JobSets


def _ray_templates(cluster: str) -> str:
    """Return the CEL expression for the pod templates in a Ray cluster's spec."""
    return f"[{cluster}.headGroupSpec.template] + {cluster}.?workerGroupSpecs.orValue([]).map(g, g.template)"


def _ray_job_templates(job: str) -> str:
    cluster = f"{job}.spec.rayClusterSpec"
    submitter = f"{job}.spec.submitterPodTemplate"
    return f"(has({cluster}) ? {_ray_templates(cluster)} : []) + (has({submitter}) ? [{submitter}] : [])"


def _group_templates(group: str) -> str:
    """Return the CEL expression for the pod templates of a LeaderWorkerSet."""
    spec = f"{group}.spec.leaderWorkerTemplate"
    return f"[{spec}.workerTemplate] + (has({spec}.leaderTemplate) ? [{spec}.leaderTemplate] : [])"


def _has_replicated(runtime: str, condition: str) -> str:
    """Return CEL that is true if a template ``t`` of a runtime's replicated jobs meets a condition."""
    jobs = f"{runtime}.?template.?spec.?replicatedJobs.orValue([])"
    return f"{jobs}.exists(r, [r.?template.?spec.?template].exists(t, {condition}))"


def _has_patched(job: str, condition: str) -> str:
    """Return CEL that is true if a template ``t`` in a TrainJob's patches of its runtime meets a condition."""
    return f"{job}.spec.?runtimePatches.orValue([]).exists(p, {_has_replicated('p.?trainingRuntimeSpec', condition)})"


def _ray_refuses(cluster: str) -> dict[str, str]:
    """Return CEL conditions that refuse parts of a Ray cluster's spec, keyed by message.

    These parts would give members more than their roles allow. ``cluster`` is the CEL expression for the spec.
    """
    return {
        # KubeRay gives the head's account the right to patch pods, which takes Kueue's gate away, and images with it.
        "Ray cannot scale its cluster here: its head would get rights to change pods": (
            f"!{cluster}.?enableInTreeAutoscaling.orValue(false)"
        ),
        # Whoever reaches a dashboard runs programs as the team's account.
        "a Ray dashboard cannot have an Ingress: use kubectl port-forward": (
            f"!{cluster}.?headGroupSpec.?enableIngress.orValue(false)"
        ),
    }


OPERATORS: Final = {
    "ray": OperatorChart(
        _ON_SYSTEM_POOL,
        (
            OperatorJob(
                "ray.io",
                "v1",
                resource="rayclusters",
                templates=templates_in(lambda cluster: _ray_templates(f"{cluster}.spec")),
                sizes=("spec.headGroupSpec", "spec.?workerGroupSpecs"),
                refuses=_ray_refuses("object.spec"),
            ),
            OperatorJob(
                "ray.io",
                "v1",
                resource="rayjobs",
                templates=templates_in(_ray_job_templates),
                sizes=("spec.?rayClusterSpec", "spec.?submitterPodTemplate"),
                refuses=_ray_refuses("object.spec.?rayClusterSpec"),
            ),
        ),
        # The dashboard, which KubeRay asks for the state of a RayJob; a job that it cannot ask about fails.
        connects_to=({"ray.io/node-type": "head"}, 8265),
    ),
    "trainer": OperatorChart(
        {
            "jobset": {"install": False},  # the platform has installed JobSet, of the version that it wants
            "manager": {"tolerations": list(SYSTEM_TOLERATIONS)},
            "runtimes": {"installer": {"tolerations": list(SYSTEM_TOLERATIONS)}},
        },
        (
            OperatorJob(
                "trainer.kubeflow.org",
                "v1alpha1",
                resource="trainjobs",
                templates=_has_patched,
                sizes=("spec.?runtimePatches",),
                refuses={
                    # Kueue 0.19.2 knows the fields of Trainer 2.2; JobSet refuses what is lost (seen 2026-11-22).
                    "Kueue drops terminationGracePeriodSeconds of runtimePatches, so the job occupies its quota and "
                    "never starts: set it in the runtime": (
                        f"!{_has_patched('object', 't.?spec.?terminationGracePeriodSeconds.hasValue()')}"
                    )
                },
            ),
            OperatorJob(
                "trainer.kubeflow.org",
                "v1alpha1",
                resource="trainingruntimes",
                templates=lambda runtime, condition: _has_replicated(f"{runtime}.spec", condition),
                queued=False,
                refuses={
                    # Of a job that waits, Trainer keeps the pods of its first reading, and Kueue counts the new ones:
                    # 2 GPUs for pods that held 16 (Kueue 0.19.2, Trainer 2.3.0, seen 2026-11-23).
                    "the spec of a runtime cannot change, because Kueue counts jobs by it: create another runtime": (
                        "request.operation == 'CREATE' || object.spec == oldObject.spec"
                    ),
                },
            ),
        ),
    ),
    "leader-worker-set": OperatorChart(
        _ON_SYSTEM_POOL,
        (
            OperatorJob(
                "leaderworkerset.x-k8s.io",
                "v1",
                resource="leaderworkersets",
                templates=templates_in(_group_templates),
                suspends=False,
            ),
        ),
    ),
}


def charted(spec: ClusterSpec) -> Iterator[str]:
    """Yield the operators of a cluster that are installed from a chart, by their names in the catalogue."""
    yield from (name for name in spec.operators if name in OPERATORS)


def job_kinds(spec: ClusterSpec) -> tuple[OperatorJob, ...]:
    """Return the kinds of jobs that a cluster's operators run."""
    return tuple(kind for name in charted(spec) for kind in OPERATORS[name].kinds)


def network_policies(spec: ClusterSpec) -> dict[str, dict[str, Any]]:
    """Return the spec of a NetworkPolicy for each operator, which allows it to reach pods in a team's namespace."""
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
    """Return limits for a team's ResourceQuota: the number of objects of each kind that operators manage."""
    return {f"count/{kind.resource}.{kind.group}": str(_MOST_OBJECTS) for kind in job_kinds(spec)}
