"""A team's model server in one cluster."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi

from modules.manifest import metadata, plain_object
from modules.prometheus.monitoring import API_VERSION
from training_platform.config.model.workloads import ServerSpec
from training_platform.config.pools import Flavor
from training_platform.resources.scope import Scope
from training_platform.resources.serving.leader_worker_set import REPLACED, leader_worker_set, set_annotations
from training_platform.resources.serving.server import (
    SKIP_AWAIT,
    autoscaler,
    deployment,
    object_name,
    pod_monitoring,
    pods_kind,
    server_labels,
    service,
    vms_of,
)


@dataclass(frozen=True, kw_only=True)
class ModelServerArgs:
    """``key`` is the server's in the team's file, and ``team`` the name of queue and namespace."""

    scope: Scope
    key: str
    team: str
    spec: ServerSpec
    flavor: Flavor
    namespace: pulumi.Input[str]


class ModelServer(pulumi.ComponentResource):
    """Pods of a model server behind one address, as many as their load asks for and the team's queue admits."""

    def __init__(self, name: str, args: ModelServerArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:serving:ModelServer", name, {}, opts)
        key, spec = args.key, args.spec
        self._pods(name, args)
        for role, version, kind, what in (
            ("service", "v1", "Service", service(key, spec)),
            ("metrics", API_VERSION, "PodMonitoring", pod_monitoring(key, spec)),
            ("autoscaler", "autoscaling/v2", "HorizontalPodAutoscaler", autoscaler(key, spec, args.flavor)),
        ):
            about = metadata(args.scope, object_name(key), args.namespace, SKIP_AWAIT)
            plain_object(f"{name}-{role}", (version, kind), about, what, pulumi.ResourceOptions(parent=self))
        self.register_outputs({})

    def _pods(self, name: str, args: ModelServerArgs) -> None:
        """Register what makes the pods: a Deployment, or a LeaderWorkerSet where a replica is of several VMs."""
        spec, flavor = args.spec, args.flavor
        several = vms_of(spec, flavor) > 1
        role, pods = ("groups", leader_worker_set) if several else ("deployment", deployment)
        annotations = {**SKIP_AWAIT, **(set_annotations(flavor) if several else {})}
        labels = server_labels(args.team, spec)
        about = metadata(args.scope, object_name(args.key), args.namespace, annotations, labels)
        replaced = REPLACED if several else None
        opts = pulumi.ResourceOptions(parent=self, replace_on_changes=replaced, delete_before_replace=several)
        plain_object(f"{name}-{role}", pods_kind(spec, flavor), about, pods(args.key, spec, flavor, args.scope), opts)
