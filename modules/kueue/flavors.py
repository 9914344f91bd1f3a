"""What all queues of a cluster share: its ResourceFlavors, and the priorities of jobs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
from pulumi_kubernetes.apiextensions import CustomResource

from modules.kueue.priority import WorkloadPriorityClass
from modules.manifest import metadata, register_object
from training_platform.config.model.cluster import ClusterSpec
from training_platform.config.model.queues import CohortSpec
from training_platform.config.pools import Flavor, flavors
from training_platform.resources.kueue.objects import API_VERSION
from training_platform.resources.kueue.provisioning import CONFIG, admission_check, provisioning_request_config
from training_platform.resources.kueue.quota_objects import cohort_objects, flavor_object, topology_objects
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
        found = flavors(args.cluster_name, args.cluster)
        # A topology that flavors name is kept by its finalizer, so the flavors have to go first.
        placed = [register_object(each, self) for each in topology_objects(name, found, args.scope)]
        deployed = [register_object(flavor_object(name, each, args.scope), self, placed) for each in found.values()]
        # Known once they are there, so that a team is told of a flavor whose deployment failed.
        self.names = pulumi.Output.all(*(each.id for each in deployed)).apply(lambda _: sorted(found))
        for declared in cohort_objects(args.cluster_name, args.cohorts, found, args.scope):
            register_object(declared, self)
        for flavor in found.values():
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
