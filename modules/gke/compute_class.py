"""Custom compute classes of a cluster."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi

from modules.manifest import register_object
from training_platform.config.model.cluster import ClusterSpec
from training_platform.resources.gke.compute_class import compute_classes
from training_platform.resources.scope import Scope


@dataclass(frozen=True, kw_only=True)
class ComputeClassesArgs:
    """A cluster's spec, and its key in the stack file."""

    scope: Scope
    cluster_name: str
    cluster: ClusterSpec
    service_account: pulumi.Input[str]  # of the nodes that GKE makes by itself


class ComputeClasses(pulumi.ComponentResource):
    """The compute classes of a cluster. A class that is changed or taken away leaves the nodes that it brought."""

    def __init__(self, name: str, args: ComputeClassesArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:gke:ComputeClasses", name, {}, opts)
        for declared in compute_classes(args.cluster_name, args.cluster, args.scope, args.service_account):
            register_object(declared, self)
        self.register_outputs({})
