"""Queues in one cluster: its flavors, priorities and cohorts, teams' queues, and compute classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from modules.kubernetes_objects import metadata, objects_of, register_object
from training_platform.config.model.cluster import ClusterSpec
from training_platform.config.model.queues import CohortSpec
from training_platform.config.model.team import Team
from training_platform.config.pools import Flavor, flavors
from training_platform.resources.compute_classes import compute_classes
from training_platform.resources.kueue import (
    API_VERSION,
    CONFIG,
    admission_check,
    local_queue,
    local_queue_names,
    provisioning_request_config,
)
from training_platform.resources.queues import flavor_resources, queue_object
from training_platform.resources.scope import Scope


@dataclass(frozen=True, kw_only=True)
class FlavorsArgs:
    """``priorities`` and ``cohorts`` are the environment's: name and value, where a higher value goes first."""

    scope: Scope
    cluster_name: str
    cluster: ClusterSpec
    priorities: Mapping[str, int]
    cohorts: Mapping[str, CohortSpec]


class Flavors(pulumi.ComponentResource):
    """A cluster's Topologies, ResourceFlavors with their checks, WorkloadPriorityClasses and Cohorts; depends on Kueue.

    A cohort that the file does not list has no object: Kueue makes one up from its name in the ClusterQueues. What no
    share of a team or a cohort holds is thus nobody's to borrow.
    """

    names: pulumi.Output[list[str]]  # of the flavors

    def __init__(self, name: str, args: FlavorsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:kueue:Flavors", name, {}, opts)
        child = pulumi.ResourceOptions(parent=self)
        cluster_flavors = flavors(args.cluster_name, args.cluster)
        deployed = flavor_resources(
            name, args.cluster_name, cluster_flavors, args.cohorts, scope=args.scope, register=objects_of(self)
        )
        # Known once they are there, so that a team is told of a flavor whose deployment failed.
        self.names = pulumi.Output.all(*(flavor.id for flavor in deployed)).apply(lambda _: sorted(cluster_flavors))
        for flavor in cluster_flavors.values():
            if flavor.by_request:
                _check(name, flavor, args.scope, child)
        for priority, value in args.priorities.items():
            WorkloadPriorityClass(
                f"{name}-priority-{priority}", metadata=metadata(args.scope, priority), value=value, opts=child
            )
        self.register_outputs({})


def _check(name: str, flavor: Flavor, scope: Scope, opts: pulumi.ResourceOptions) -> None:
    """Create what holds a queued flavor's jobs back; the queues of teams name the check, which is active with both."""
    for kind, spec in (
        (CONFIG, provisioning_request_config(flavor)),
        ("AdmissionCheck", admission_check(flavor)),
    ):
        CustomResource(
            f"{name}-{flavor.name}-{kind.lower()}",
            api_version=API_VERSION,
            kind=kind,
            metadata=metadata(scope, flavor.name),
            spec=spec,
            opts=opts,
        )


class WorkloadPriorityClass(pulumi.CustomResource):
    """A priority that jobs name by the label ``kueue.x-k8s.io/priority-class``; without one, a job has priority 0.

    A class of ours, since its ``value`` stands beside ``metadata``, and in Python the provider's own resource for
    custom kinds takes ``spec`` alone (pulumi-kubernetes 4.34).
    """

    def __init__(
        self, name: str, *, metadata: ObjectMetaArgs, value: int, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        kind = "WorkloadPriorityClass"
        inputs = {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "value": value}
        super().__init__(f"kubernetes:{API_VERSION}:{kind}", name, inputs, opts)


@dataclass(frozen=True, kw_only=True)
class TeamQueuesArgs:
    """``flavors`` are all of the cluster's, in their order; ``namespace`` is the team's, and bears its name."""

    scope: Scope
    team: Team
    cluster: str
    flavors: Mapping[str, Flavor]
    namespace: pulumi.Input[str]


class TeamQueues(pulumi.ComponentResource):
    """A ClusterQueue with the team's share, and the LocalQueues through which its namespace reaches it."""

    def __init__(self, name: str, args: TeamQueuesArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:kueue:TeamQueues", name, {}, opts)
        queue = register_object(queue_object(name, args.team, args.cluster, args.flavors, args.scope), self)
        for local in local_queue_names(args.team.name):
            CustomResource(
                f"{name}-local-queue-{local}",
                api_version=API_VERSION,
                kind="LocalQueue",
                metadata=metadata(args.scope, local, args.namespace),
                spec=local_queue(args.team.name),
                # Kueue's finalizer keeps a ClusterQueue for as long as jobs reach it, so this one has to go first.
                opts=pulumi.ResourceOptions(parent=self, depends_on=[queue]),
            )
        self.register_outputs({})


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
