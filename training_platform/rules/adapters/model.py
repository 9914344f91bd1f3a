"""Views from the model of a stack file, without planning: what ``check --fast`` looks at.

They are what the components make of the file, worked out again; a test holds both equal for every stack. Kinds that
only a plan has (``Labelled``, ``ExternalAddress``) are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from training_platform.catalog import MACHINE_TYPES
from training_platform.catalog.locations import region_of
from training_platform.config import names
from training_platform.config.expansion.gpu_fabric import GpuFabric, gpu_fabrics
from training_platform.config.expansion.pools import cluster_pools
from training_platform.config.spec.cluster import ClusterSpec
from training_platform.config.spec.environment import Environment
from training_platform.config.spec.stack import Stack
from training_platform.config.spec.team import PersistentResourceSpec, Team
from training_platform.config.workspace import Workspace
from training_platform.resources import register as types
from training_platform.rules.adapters.model_pools import Maker, accelerator_pools, system_pool
from training_platform.rules.adapters.model_settings import (
    NETWORK,
    auto_provisioning,
    cluster_settings,
    compute_class,
    uncut,
)
from training_platform.rules.views.cluster import ClusterView
from training_platform.rules.views.kueue import FlavorQuotaView, FlavorView
from training_platform.rules.views.network import GatewayView, SubnetView
from training_platform.rules.views.storage import BucketView, FilestoreView
from training_platform.rules.views.vertex import PersistentPoolView
from training_platform.rules.views.view import View

COHORT = "training-platform"
PODS_RANGE = "pods"
SERVICES_RANGE = "services"


def views_of_model(stack: Stack, workspace: Workspace) -> list[View]:
    """Return the views of a stack; none for a file that the model rejects, or a team whose environment is missing."""
    home = workspace.environment_of(stack)
    if home is None or stack.section is None:
        return []
    make = Maker(stack, home)
    return list(_team(make, stack.team, workspace) if stack.team else _environment(make, home, workspace))


def _environment(make: Maker, environment: Environment, workspace: Workspace) -> Iterator[View]:
    for name, cluster in environment.clusters.items():
        view = ClusterView(
            **make.head(types.CLUSTER, f"{name}-cluster"),
            project=make.project,
            cluster=make.cluster(name),
            location=cluster.location,
            private_nodes=True,
            public_endpoint=False,
            deletion_protection=make.deletion_protection and cluster.deletion_protection,
            labels=make.labels,
            version=cluster.version,
            release_channel=cluster.release_channel,
            subnetwork=f"{name}-subnet",
            pods_range=PODS_RANGE,
            max_pods=None,
            **cluster_settings(make.project, cluster),
        )
        fabrics = gpu_fabrics(name, cluster)
        yield view
        yield from auto_provisioning(view, cluster)
        yield _subnet(make, name, cluster)
        yield from _gpu_subnets(make, name, fabrics.values())
        yield from system_pool(make, name, cluster)
        yield from accelerator_pools(make, name, cluster, fabrics)
        for key, spec in cluster.compute_classes.items():
            head = make.head(types.COMPUTE_CLASS, f"{names.compute_class_name(name, key)}-object")
            yield compute_class(head, key, spec, cluster_pools(name, cluster))
        for flavor in workspace.flavors(make.stack, name).values():
            head = make.head(types.RESOURCE_FLAVOR, f"{name}-flavors-{flavor.name}")
            yield FlavorView(
                **head,
                flavor=flavor.name,
                node_labels=flavor.node_labels,
                tolerated=(*flavor.tolerated, *(key for key, _, _ in flavor.own_taints)),
            )
    for region in sorted({region_of(cluster.location) for cluster in environment.clusters.values()}):
        head = make.head(types.ROUTER_NAT, f"network-{region}-nat")
        yield GatewayView(**head, project=make.project, region=region, addresses=0)
    yield from _filestores(make, environment)


def _subnet(make: Maker, name: str, cluster: ClusterSpec) -> SubnetView:
    return SubnetView(
        **make.head(types.SUBNETWORK, f"{name}-subnet"),
        project=make.project,
        region=region_of(cluster.location),
        subnetwork=None,
        network=NETWORK,
        cidr=cluster.subnet.nodes,
        ranges={PODS_RANGE: cluster.subnet.pods, SERVICES_RANGE: cluster.subnet.services},
    )


def _gpu_subnets(make: Maker, name: str, fabrics: Iterable[GpuFabric]) -> Iterator[SubnetView]:
    for fabric in fabrics:
        for vpc in fabric.vpcs:
            for nic in vpc.nics:
                called = f"{make.environment}-{name}-{nic.name}"
                yield SubnetView(
                    **make.head(types.SUBNETWORK, f"{fabric.component}{nic.name.removeprefix(fabric.name)}-subnet"),
                    project=make.project,
                    region=fabric.region,
                    subnetwork=uncut(called),
                    network=f"{fabric.component}{vpc.name.removeprefix(fabric.name)}-vpc",
                    cidr=nic.cidr,
                    ranges={},
                )


def _filestores(make: Maker, environment: Environment) -> Iterator[View]:
    for name, instance in environment.filestore.items():
        yield FilestoreView(
            **make.head(types.FILESTORE, f"{names.filestore_name(name)}-instance"),
            project=make.project,
            tier=instance.tier,
            location=instance.location,
            capacity_gib=instance.capacity_gib,
            protocol=instance.protocol,
            connect_mode="DIRECT_PEERING",
            reserved_range=instance.reserved_range,
            network_project=None,
            deletion_protection=make.deletion_protection and instance.deletion_protection,
            labels=make.labels,
        )


def _team(make: Maker, team: Team, workspace: Workspace) -> Iterator[View]:
    for name, bucket in team.buckets.items():
        head = make.head(types.BUCKET, f"{names.bucket_name(name)}-bucket")
        yield BucketView(**head, location=bucket.location, force_destroy=not make.deletion_protection)
    for cluster in team.shares:
        yield from _share(make, team, cluster, workspace)
    for name, resource in team.vertex.persistent_resources.items():
        yield from _persistent_resource(make, name, resource)


def _share(make: Maker, team: Team, cluster: str, workspace: Workspace) -> Iterator[View]:
    """Yield the flavors of a team's queue, in the order in which Kueue tries them."""
    for name, flavor in team.fallback.ordered(cluster, workspace.flavors(team.environment, cluster)).items():
        if (share := team.shares[cluster].get(name)) is not None:
            yield FlavorQuotaView(
                **make.head(types.CLUSTER_QUEUE, f"{names.share_name(cluster)}-queues-cluster-queue"),
                queue=team.name,
                cohort=COHORT,
                resource=flavor.accelerator.resource,
                flavor=name,
                nominal_quota=share.nominal_quota,
                borrowing_limit=share.borrowing_limit,
                lending_limit=share.lending_limit,
                checks=(name,) if flavor.by_request else (),
            )


def _persistent_resource(make: Maker, name: str, resource: PersistentResourceSpec) -> Iterator[View]:
    head = make.head(types.PERSISTENT_RESOURCE, f"{names.persistent_resource_name(name)}-persistent-resource")
    machine = MACHINE_TYPES[resource.machine_type]
    support = machine.accelerator.vertex if machine.accelerator and machine.kind == "gpu" else None
    accelerator = support.accelerator_type if support else None
    scales = resource.max_replicas is not None
    yield PersistentPoolView(
        **head,
        project=make.project,
        region=resource.region,
        resource_id=uncut(f"{make.prefix}-{name}"),
        machine_type=machine.name,
        accelerator_type=accelerator,
        accelerator_count=machine.chips if accelerator else None,
        replica_count=resource.replicas,
        min_replicas=resource.replicas if scales else None,
        max_replicas=resource.max_replicas,
        labels=make.labels,
        disk_gb=resource.boot_disk.size_gb,
        disk_type=resource.boot_disk.type,
    )
