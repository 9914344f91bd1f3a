"""A team's model server in one cluster."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi

from modules.manifest import metadata, plain_object
from modules.prometheus.monitoring import API_VERSION
from training_platform.config.expansion.flavors import Flavor
from training_platform.config.spec.workloads.serving import ServerSpec
from training_platform.resources.scope import Scope
from training_platform.resources.serving.server import (
    SKIP_AWAIT,
    autoscaler,
    deployment,
    object_name,
    pod_monitoring,
    server_labels,
    service,
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
        queued = server_labels(args.team, spec)
        for role, version, kind, what, labels in (
            ("deployment", "apps/v1", "Deployment", deployment(key, spec, args.flavor, args.scope), queued),
            ("service", "v1", "Service", service(key, spec), {}),
            ("metrics", API_VERSION, "PodMonitoring", pod_monitoring(key, spec), {}),
            ("autoscaler", "autoscaling/v2", "HorizontalPodAutoscaler", autoscaler(key, spec), {}),
        ):
            about = metadata(args.scope, object_name(key), args.namespace, SKIP_AWAIT, labels)
            plain_object(f"{name}-{role}", (version, kind), about, what, pulumi.ResourceOptions(parent=self))
        self.register_outputs({})
