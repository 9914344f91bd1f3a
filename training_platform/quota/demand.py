"""What resources charge to a project's quotas with all node pools at their maximum size, calculated from views."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from functools import cached_property

from training_platform.catalog import BOOT_DISK_LIMITS, GENERAL_QUOTAS
from training_platform.catalog.locations import region_of
from training_platform.config.model.environment import Environment
from training_platform.config.model.stack import Stack
from training_platform.config.names import Locator
from training_platform.config.reading.declaration import Draft, declare, finding, located
from training_platform.config.reading.finding import Finding, Path, others_go_on
from training_platform.config.workspace import Workspace
from training_platform.quota.charges import (
    VERTEX_DEFAULT_DISK,
    Charge,
    Holder,
    VmUsage,
    accelerator_usage,
    class_usage,
    filestore_usage,
    lustre_usage,
    nat_addresses,
    nat_usage,
    network_usage,
    upgrade_label,
    upgrade_vms,
    vertex_usage,
    vm_usage,
)
from training_platform.resources.environment import add_environment
from training_platform.resources.plan import Plan, PlanError
from training_platform.resources.resource_types import ADDRESS, ROUTER
from training_platform.resources.team import add_team
from training_platform.views.adapters import views_of_plan
from training_platform.views.cluster import AutoProvisioningView, ClusterView
from training_platform.views.network import CountedView, GatewayView
from training_platform.views.node_pool import NodePoolView
from training_platform.views.storage import FilestoreView, LustreView, StorageClassView
from training_platform.views.vertex import PersistentPoolView
from training_platform.views.view import NeedsUnknown, View

QUOTA_NOT_COUNTED = declare(
    "quota-not-counted",
    "Find a resource whose demand for a quota is unknown before deployment.",
    ruleset="quota",
    severity="note",
    unjudged="resource with an uncounted quota",
)


_CPU_POOLS = ("system_pool", "pathways", "cpu_pools")  # of a cluster's section: clusters, its key, the field
_VIEWS: tuple[type[View], ...] = (
    AutoProvisioningView, ClusterView, CountedView, FilestoreView, GatewayView, LustreView, NodePoolView,
    PersistentPoolView, StorageClassView,
)  # fmt: skip
_TYPES = frozenset(token for view in _VIEWS for token in view.TYPES)


def workspace_demand(workspace: Workspace, *, failures: list[str] | None = None) -> list[Charge]:
    """Return all charges of all stacks. If a bug in this program affects a stack, ``failures`` gets a sentence."""
    charges: list[Charge] = []
    for stack in workspace.stacks.values():
        with nullcontext() if failures is None else others_go_on(f"the demand of {stack.source.file}", failures):
            charges += stack_demand(stack, workspace)
    return charges


def stack_demand(stack: Stack, workspace: Workspace, views: Iterable[View] | None = None) -> list[Charge]:
    """Return all charges of a stack; empty if its file is rejected or cannot be planned, which findings report.

    ``views`` are the stack's views if the caller has already built them.
    """
    project = workspace.project_of(stack)
    if project is None or stack.section is None:
        return []
    return demand_of_views(charged_views(stack, workspace) if views is None else views, project)[0]


def charged_views(stack: Stack, workspace: Workspace) -> list[View]:
    """Return the views of a stack that have charges; empty if its file is rejected or cannot be planned."""
    project = workspace.project_of(stack)
    if project is None or stack.section is None:
        return []
    try:
        plan = _charged(stack, workspace, project)
    except PlanError:
        return []
    return list(views_of_plan(plan.planned(_TYPES), Locator(stack.section)))


def _charged(stack: Stack, workspace: Workspace, project: str) -> Plan:
    """Return a stack's plan without queues, flavors and alerts, which have no charges.

    A file may name flavors that do not exist. That is a finding and must not hide other findings.
    """
    plan = Plan(stack.name)
    if stack.environment:
        silent = stack.environment.alerts.model_copy(update={"enabled": False})
        environment = stack.environment.model_copy(update={"cohorts": {}, "alerts": silent})
        add_environment(plan, environment, {cluster: {} for cluster in environment.clusters})
    elif stack.team:
        home = workspace.environment_of(stack) or Environment(project=project)
        add_team(plan, stack.team.model_copy(update={"shares": {}}), home, {})
    return plan


def demand_of_views(views: Iterable[View], project: str = "") -> tuple[list[Charge], list[Finding]]:
    """Return all charges of a stack's views, and a note for each charge that is unknown before deployment.

    ``project`` is charged if a resource names no project. A machine type outside the catalogue charges nothing; other
    rules report it.
    """
    counted = _Stack(views, project)
    charges: list[Charge] = []
    notes: list[Finding] = []
    for view in counted.views:
        try:
            charges.extend(counted.charges(view))
        except NeedsUnknown as unknown:
            notes += located([_not_counted(unknown.view, unknown.field)])
    return charges, notes


def vms_behind(gateway: GatewayView, views: Iterable[View]) -> int:
    """Return the maximum number of VMs that a program's pools can have in the region of a gateway."""
    pools = (view for view in views if isinstance(view, NodePoolView))
    return sum(pool.most_vms for pool in pools if region_of(pool.location) == gateway.region)


class _Stack:
    """The views of one stack's resources, with facts from some of them that the charges of others depend on."""

    def __init__(self, views: Iterable[View], project: str) -> None:
        self.views = list(views)
        self.project = project

    def charges(self, view: View) -> Iterator[Charge]:
        """Yield the charges of one resource, which is given as a view. Raises NeedsUnknown."""
        if isinstance(view, NodePoolView):
            yield from self._node_pool(view)
        elif isinstance(view, PersistentPoolView):
            yield from self._persistent_pool(view)
        elif isinstance(view, AutoProvisioningView):
            yield from self._auto_provisioning(view)
        elif isinstance(view, FilestoreView):
            holder = _holder(view, "capacity_gib", 1, view.capacity_gib)
            usages = filestore_usage(view.project or self.project, view.tier, view.capacity_gib, view.location)
            yield from (usage.by(holder) for usage in usages)
        elif isinstance(view, StorageClassView) and view.most_gib:
            usages = class_usage(self.project, view.tier or "", view.most_gib, view.location)
            yield from (usage.by(_holder(view, "most_gib", 0, 0)) for usage in usages)
        elif isinstance(view, LustreView):
            holder = _holder(view, "capacity_gib", 1, view.capacity_gib)
            usages = lustre_usage(view.project or self.project, view.mbps_per_tib, view.capacity_gib, view.location)
            yield from (usage.by(holder) for usage in usages)
        elif isinstance(view, CountedView) and view.quota:
            region = view.region if GENERAL_QUOTAS[view.quota].per == "region" else ""
            yield network_usage(view.project or self.project, view.quota, 1, region).by(self._network_holder(view))
        elif isinstance(view, GatewayView):
            # Ports grow by load, of which no file tells; each VM has the minimum from its start.
            addresses = view.addresses or nat_addresses(vms_behind(view, self.views), view.least_ports)
            label = f"NAT of {view.region}"
            holder = Holder(view.stack, self._gateway_origin(view), label=label, disputed=not view.addresses)
            usages = nat_usage(view.project or self.project, view.region, addresses)
            yield from (usage.by(holder) for usage in usages)

    def _node_pool(self, pool: NodePoolView) -> Iterator[Charge]:
        machine = pool.machine
        if machine is None:
            return
        vms = VmUsage(
            project=pool.project or self.project,
            machine_type=machine.name,
            nodes=pool.most_vms,
            capacity=pool.capacity,
            location=pool.zones[0] if len(pool.zones) == 1 else pool.location,
            disk_type=pool.disk_type or machine.boot_disk_types[0],
            disk_gb=BOOT_DISK_LIMITS["gke"].default_gb if pool.disk_gb is None else pool.disk_gb,
            local_ssd_count=pool.local_ssd_count,
            accelerator_type=pool.accelerator_type,
            accelerator_count=pool.accelerator_count,
        )
        slices = pool.hosts > 1  # the stack file counts slices, each a GKE node pool; elsewhere it counts VMs
        maximum = 1 if slices else pool.total_max_nodes or pool.max_nodes or 1
        minimum = self._running_slices[pool.origin] if slices else pool.total_min_nodes or pool.min_nodes or 0
        holder = _holder(pool, "max_nodes", 0, max(1, minimum))
        for usage in vm_usage(vms):
            yield usage.by(holder._replace(step=usage.amount / maximum))
        if slices or pool.capacity == "flex-start":
            return  # a slice is recreated as a whole, and flex-start VMs are replaced when they end
        more = upgrade_vms(
            pool.most_vms, blue_green=pool.upgrade_strategy == "BLUE_GREEN", max_surge=pool.surge_of_upgrades
        )
        if more:
            holder = _holder(pool, "upgrades", 0, 0)
            field = pool.origin if _without_chips(pool.origin) else (*pool.origin, "upgrades")
            holder = holder._replace(label=upgrade_label(holder.label), field=field)
            yield from (usage.by(holder) for usage in vm_usage(vms._replace(nodes=more)))

    @cached_property
    def _running_slices(self) -> Counter[Path]:
        """The multi-host slices that always run, keyed by the section of their pool."""
        pools = (view for view in self.views if isinstance(view, NodePoolView))
        return Counter(
            pool.origin
            for pool in pools
            if pool.known("hosts") and pool.hosts > 1 and pool.known("least_vms") and pool.least_vms
        )

    def _auto_provisioning(self, created: AutoProvisioningView) -> Iterator[Charge]:
        """Yield the charges that node auto-provisioning may cause in addition to the cluster's pools."""
        cluster = created.cluster
        names = {cluster.name, cluster.cluster if cluster.known("cluster") else None}
        pools = [
            pool
            for pool in self.views
            if isinstance(pool, NodePoolView) and pool.known("cluster") and pool.cluster in names
        ]
        label = f"auto-provisioning of {created.origin[-1] if created.origin else created.name}"
        location = created.zones[0] if len(created.zones) == 1 else cluster.location
        project = cluster.project or self.project
        vcpus = created.limit("cpu") or 0
        for limit in created.limits:
            in_pools = sum(
                pool.most_vms * pool.machine.chips
                for pool in pools
                if pool.machine and pool.machine.accelerator and pool.machine.accelerator.gke_label == limit.resource
            )
            chips = max(0, (limit.maximum or 0) - in_pools)
            holder = Holder(
                created.stack, created.path("limits"), label=label, field=created.path(limit.resource), step=1
            )
            usages = accelerator_usage(project, limit.resource, chips, location, vcpus) if chips else ()
            yield from (usage.by(holder) for usage in usages)

    def _persistent_pool(self, pool: PersistentPoolView) -> Iterator[Charge]:
        if pool.machine is None:
            return
        max_vms = pool.most_vms
        vms = VmUsage(
            project=pool.project or self.project,
            machine_type=pool.machine.name,
            nodes=max_vms,
            capacity="on-demand",
            location=pool.region,
            disk_type=pool.disk_type or VERTEX_DEFAULT_DISK,
            disk_gb=BOOT_DISK_LIMITS["vertex"].default_gb if pool.disk_gb is None else pool.disk_gb,
            accelerator_type=pool.accelerator_type,
            accelerator_count=pool.accelerator_count,
        )
        field = "replica_count"
        minimum = 1
        if pool.max_replicas is not None:
            field = "max_replicas"
            minimum = 1 if pool.min_replicas is None else pool.min_replicas
        for usage in vertex_usage(vms):
            yield usage.by(_holder(pool, field, usage.amount / max_vms if max_vms else 0, minimum))

    def _network_holder(self, part: CountedView) -> Holder:
        """Return what a network component is charged to: a cluster, its GPUs, a gateway, or the network itself."""
        path = part.origin
        label = str(path[-1]) if path else part.name
        if label == "gpu_networks":
            label = f"GPU networks of {part.origin[-2]}"
        elif not part.origin and part.name.startswith("network-"):  # the name of the environment's component
            label = "network"
            if part.type in (ADDRESS, ROUTER):
                path = self._gateway_origin(part)
                label = f"NAT of {part.region}"
        return Holder(part.stack, path, label=label)

    def _gateway_origin(self, part: CountedView | GatewayView) -> Path:
        """Return the path of a region's first cluster, because the region's NAT gateway has no line in the file."""
        return part.origin or self._first_clusters.get(part.region, ())

    @cached_property
    def _first_clusters(self) -> dict[str, Path]:
        clusters = [view for view in self.views if isinstance(view, ClusterView) and view.known("location")]
        return {region_of(cluster.location): cluster.origin for cluster in reversed(clusters)}


def _holder(view: View, field: str, step: float, base: int) -> Holder:
    """Return what a charge belongs to: its section of the stack file, or the resource's name if that is unknown."""
    label = str(view.origin[-1]) if view.origin else view.name
    if _without_chips(view.origin):
        label = view.name.removesuffix("-pool")
    if view.origin[-2:-1] == ("more_pools",):
        label = f"{view.origin[-3]}-{label}"
    return Holder(view.stack, view.origin, label=label, field=view.path(field), step=step, base=base)


def _without_chips(path: Path) -> bool:
    return len(path) > 2 and path[2] in _CPU_POOLS


def _not_counted(view: View, field: str) -> Draft:
    message = f"the quota that it needs is not counted: {field} is not known before deployment"
    return finding(view, field, message, rule=QUOTA_NOT_COUNTED)
