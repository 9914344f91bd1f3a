"""Operators for other kinds of jobs, from their Helm charts: what they install, and what their jobs are.

Kueue counts Ray's clusters and jobs, TrainJobs and LeaderWorkerSets, in the queue whose label they carry. Of these the
last is never suspended: its pods are gated. Source: kubernetes-sigs/kueue v0.19.2, pkg/controller/jobs; charts of
ray-project/kuberay v1.7.0, kubeflow/trainer v2.3.0 and kubernetes-sigs/lws v0.10.0, 2026-11-21; none was installed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from training_platform.config.spec.cluster import ClusterSpec
from training_platform.resources.admission.jobs import JobKind


class OperatorChart(NamedTuple):
    """What an operator's chart is told, and the kinds of jobs that it runs."""

    values: dict[str, Any]
    kinds: tuple[JobKind, ...]


_RAY_GROUPS = "[{0}.headGroupSpec.template] + {0}.?workerGroupSpecs.orValue([]).map(g, g.template)"
_RAY_JOB = f"(has({{0}}.spec.rayClusterSpec) ? {_RAY_GROUPS.replace('{0}', '{0}.spec.rayClusterSpec')} : [])"
_SUBMITTER = "(has({0}.spec.submitterPodTemplate) ? [{0}.spec.submitterPodTemplate] : [])"
_WORKERS = "{0}.spec.leaderWorkerTemplate"

OPERATORS: Final = {
    "ray": OperatorChart(
        {},
        (
            JobKind("ray.io", "v1", "rayclusters", f"({_RAY_GROUPS.replace('{0}', '{0}.spec')})"),
            JobKind("ray.io", "v1", "rayjobs", f"({_RAY_JOB} + {_SUBMITTER})"),
        ),
    ),
    "trainer": OperatorChart(
        {"jobset": {"install": False}},  # the platform has installed JobSet, of the version that it wants
        # What a TrainJob adds to its runtime's pods.
        (JobKind("trainer.kubeflow.org", "v1alpha1", "trainjobs", "{0}.spec.?podTemplateOverrides.orValue([])"),),
    ),
    "leader-worker-set": OperatorChart(
        {},
        (
            JobKind(
                "leaderworkerset.x-k8s.io",
                "v1",
                "leaderworkersets",
                f"([{_WORKERS}.workerTemplate] + (has({_WORKERS}.leaderTemplate) ? [{_WORKERS}.leaderTemplate] : []))",
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
