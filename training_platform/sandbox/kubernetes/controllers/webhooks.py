"""The webhooks of controllers, by URL on the loopback.

Paths: Kueue 0.19.2, JobSet 0.12.0, LeaderWorkerSet 0.10.0 and Kubeflow Trainer 2.3.0, read 2026-11-22; all follow
controller-runtime's rule.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from training_platform.resources.kueue.configuration import OF_TEAMS
from training_platform.sandbox.kubernetes.values import Json

API: Final = "/apis/admissionregistration.k8s.io/v1"
CONFIGURATIONS: Final = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
_CREATED: Final = ("CREATE",)
_CHANGED: Final = ("CREATE", "UPDATE")


class Webhook(NamedTuple):
    """What a controller wants to see of a kind; the path follows from it."""

    group: str
    version: str
    plural: str
    kind: str
    mutates: bool
    selector: Mapping[str, Any] | None = None
    namespaces: Mapping[str, Any] | None = None
    changes: bool = False  # whether it mutates what is changed, too

    @property
    def path(self) -> str:
        """The path by controller-runtime's rule: ``/mutate-batch-v1-job``, dots as dashes."""
        verb = "mutate" if self.mutates else "validate"
        return f"/{verb}-{self.group.replace('.', '-')}-{self.version}-{self.kind.lower()}"


def _both(group: str, version: str, plural: str, kind: str) -> tuple[Webhook, Webhook]:
    return Webhook(group, version, plural, kind, True), Webhook(group, version, plural, kind, False)


_KUEUE_GROUP, _JOBSET_GROUP, _LWS_GROUP = "kueue.x-k8s.io", "jobset.x-k8s.io", "leaderworkerset.x-k8s.io"
_TRAINER_GROUP: Final = "trainer.kubeflow.org"
_OF_LWS: Final = {"matchExpressions": [{"key": "leaderworkerset.sigs.k8s.io/name", "operator": "Exists"}]}
_OF_JOBSETS: Final = {"matchExpressions": [{"key": "jobset.sigs.k8s.io/jobset-name", "operator": "Exists"}]}
KUEUE_WEBHOOKS: Final = (
    *_both(_KUEUE_GROUP, "v1beta2", "clusterqueues", "ClusterQueue"),
    *_both(_KUEUE_GROUP, "v1beta2", "resourceflavors", "ResourceFlavor"),
    *_both(_KUEUE_GROUP, "v1beta2", "workloads", "Workload"),
    Webhook(_KUEUE_GROUP, "v1beta2", "cohorts", "Cohort", False),
    *_both("batch", "v1", "jobs", "Job"),
    *_both(_JOBSET_GROUP, "v1alpha2", "jobsets", "JobSet"),
    *_both("ray.io", "v1", "rayclusters", "RayCluster"),
    *_both("ray.io", "v1", "rayjobs", "RayJob"),
    *_both(_TRAINER_GROUP, "v1alpha1", "trainjobs", "TrainJob"),
)
POD_WEBHOOKS: Final = tuple(
    hook._replace(namespaces=OF_TEAMS)
    for hook in (
        *_both("", "v1", "pods", "Pod"),
        *_both("apps", "v1", "deployments", "Deployment"),
        *_both(_LWS_GROUP, "v1", "leaderworkersets", "LeaderWorkerSet"),
    )
)
"""Those of Kueue where it queues pods, as its chart registers them with our configuration."""
JOBSET_WEBHOOKS: Final = (
    *_both(_JOBSET_GROUP, "v1alpha2", "jobsets", "JobSet"),
    Webhook("", "v1", "pods", "Pod", True, _OF_JOBSETS),
    Webhook("", "v1", "pods", "Pod", False, _OF_JOBSETS),
)
LWS_WEBHOOKS: Final = (
    *_both(_LWS_GROUP, "v1", "leaderworkersets", "LeaderWorkerSet"),
    Webhook("", "v1", "pods", "Pod", True, _OF_LWS),
    Webhook("", "v1", "pods", "Pod", False, _OF_LWS),
)
TRAINER_WEBHOOKS: Final = (
    Webhook(_TRAINER_GROUP, "v1alpha1", "trainjobs", "TrainJob", True, changes=True),
    Webhook(_TRAINER_GROUP, "v1alpha1", "trainjobs", "TrainJob", False),
    Webhook(_TRAINER_GROUP, "v1alpha1", "trainingruntimes", "TrainingRuntime", False),
    Webhook(_TRAINER_GROUP, "v1alpha1", "clustertrainingruntimes", "ClusterTrainingRuntime", False),
)


def webhook_configurations(name: str, hooks: Sequence[Webhook], port: int, certificate: bytes) -> Iterator[Json]:
    """Yield the two configurations of a controller's webhooks: one of those that mutate, one of those that validate."""
    bundle = base64.b64encode(certificate).decode("ascii")
    for kind, mutates in zip(CONFIGURATIONS, (True, False), strict=True):
        yield {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": kind,
            "metadata": {"name": name},
            "webhooks": [_webhook(name, hook, port, bundle) for hook in hooks if hook.mutates is mutates],
        }


def _webhook(name: str, hook: Webhook, port: int, bundle: str) -> Json:
    once = (hook.mutates and not hook.changes) or hook.kind == "Pod"
    return {
        "name": f"{'m' if hook.mutates else 'v'}-{hook.kind.lower()}.{name}.example.com",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Fail",
        "clientConfig": {"url": f"https://127.0.0.1:{port}{hook.path}", "caBundle": bundle},
        "rules": [
            {
                "apiGroups": [hook.group],
                "apiVersions": [hook.version],
                "resources": [hook.plural],
                "operations": list(_CREATED if once else _CHANGED),
            }
        ],
        **({"objectSelector": dict(hook.selector)} if hook.selector else {}),
        **({"namespaceSelector": dict(hook.namespaces)} if hook.namespaces else {}),
    }
