"""Quotas, counted a second time: from planned resources, and with what all other stacks ask."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from training_platform.catalog import BOOT_DISK_LIMITS, GENERAL_QUOTAS
from training_platform.config.data_sets import far_data_sets
from training_platform.config.names import Locator, cpu_pool_name
from training_platform.config.reading.finding import Finding, dotted
from training_platform.config.workspace import Workspace
from training_platform.quota.charges import (
    VERTEX_DEFAULT_DISK,
    VertexUsage,
    VmUsage,
    accelerator_usage,
    class_usage,
    filestore_usage,
    lustre_usage,
    nat_addresses,
    nat_usage,
    network_usage,
    upgrade_vms,
    vertex_usage,
    vm_usage,
)
from training_platform.quota.keys import Charge, Holder, upgrade_label
from training_platform.quota.ledger import CapacityLine, ProjectLedger, file_ledger
from training_platform.quota.ledger_findings import capacity_findings, file_findings, quota_findings
from training_platform.quota.requests import request_findings
from training_platform.resources.jupyterhub.findings import notebook_findings
from training_platform.resources.planned import Planned
from training_platform.resources.serving.findings import serving_findings
from training_platform.rules.gke.provisioning import SURGE_BY_DEFAULT
from training_platform.rules.network import vms_behind
from training_platform.views.adapters import views_of_plan
from training_platform.views.cluster import AutoProvisioningView
from training_platform.views.network import CountedView, GatewayView
from training_platform.views.node_pool import NodePoolView
from training_platform.views.storage import FilestoreView, LustreView, StorageClassView
from training_platform.views.vertex import PersistentPoolView, WorkbenchView
from training_platform.views.view import NeedsUnknown, View


def ledger_findings(
    workspace: Workspace, ledgers: Iterable[ProjectLedger], capacity: Iterable[CapacityLine]
) -> list[Finding]:
    """Return what ledgers, requests for larger limits and data sets say is wrong, for every stack of the workspace."""
    projects = list(ledgers)
    return [
        *quota_findings(projects, workspace),
        *request_findings(projects, workspace),
        *capacity_findings(capacity, workspace),
        *file_findings(file_ledger(workspace), workspace),
        *far_data_sets(workspace),
        *serving_findings(workspace),
        *notebook_findings(workspace),
    ]


def planned_demand(planned: Iterable[Planned], locator: Locator | None = None) -> list[Charge]:
    """Return what planned resources charge; see ``demand_of_views`` for what cannot be counted."""
    return demand_of_views(views_of_plan(planned, locator))[0]


def demand_of_views(views: Iterable[View], project: str = "") -> tuple[list[Charge], list[Finding]]:
    """Return every charge of a stack's views, and a note for each that cannot be counted before deployment.

    ``project`` is charged where a resource names none. A machine type outside the catalogue charges nothing; rules of
    its own find it.
    """
    listed = list(views)
    charges: list[Charge] = []
    notes: list[Finding] = []
    for view in listed:
        try:
            charges.extend(_charges(view, listed, project))
        except NeedsUnknown as unknown:
            notes.append(_not_counted(unknown.view, unknown.field, f"{unknown.field} is not known before deployment"))
    return charges, notes


def _charges(view: View, views: list[View], project: str) -> Iterator[Charge]:
    if isinstance(view, NodePoolView):
        yield from _node_pool(view, view.project or project)
    elif isinstance(view, PersistentPoolView):
        yield from _persistent_pool(view, view.project or project)
    elif isinstance(view, WorkbenchView):
        yield from _workbench(view, view.project or project)
    elif isinstance(view, AutoProvisioningView):
        yield from _auto_provisioning(view, views, view.cluster.project or project)
    elif isinstance(view, FilestoreView):
        holder = _holder(view, "capacity_gib", 1, view.capacity_gib)
        usages = filestore_usage(view.project or project, view.tier, view.capacity_gib, view.location)
        yield from (usage.by(holder) for usage in usages)
    elif isinstance(view, StorageClassView) and view.most_gib:
        usages = class_usage(project, view.tier or "", view.most_gib, view.location)
        yield from (usage.by(_holder(view, "most_gib", 0, 0)) for usage in usages)
    elif isinstance(view, LustreView):
        holder = _holder(view, "capacity_gib", 1, view.capacity_gib)
        used = lustre_usage(view.project or project, view.mbps_per_tib, view.capacity_gib, view.location)
        yield from (usage.by(holder) for usage in used)
    elif isinstance(view, CountedView) and view.quota:
        region = view.region if GENERAL_QUOTAS[view.quota].per == "region" else ""
        yield network_usage(view.project or project, view.quota, 1, region).by(
            Holder(view.stack, view.origin, view.name)
        )
    elif isinstance(view, GatewayView):
        holder = Holder(view.stack, view.origin, f"NAT of {view.region}")
        addresses = view.addresses or nat_addresses(vms_behind(view, views), view.most_ports)
        usages = nat_usage(view.project or project, view.region, addresses)
        yield from (usage.by(holder) for usage in usages)


def _node_pool(pool: NodePoolView, project: str) -> Iterator[Charge]:
    machine = pool.machine
    if machine is None:
        return
    vms = VmUsage(
        project=project,
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
    # The stack file counts slices where a slice is a GKE node pool of its own, and VMs or one-host slices elsewhere.
    most = 1 if pool.hosts > 1 else pool.total_max_nodes or pool.max_nodes or 1
    least = max(1, 0 if pool.hosts > 1 else pool.total_min_nodes or pool.min_nodes or 0)
    yield from (usage.by(_holder(pool, "max_nodes", usage.amount / most, least)) for usage in vm_usage(vms))
    if pool.hosts > 1 or pool.capacity == "flex-start":
        return  # a slice is recreated as one, and flex-start VMs are replaced as they end
    blue_green = pool.upgrade_strategy == "BLUE_GREEN"
    surge = pool.max_surge if pool.upgrades else SURGE_BY_DEFAULT
    if more := upgrade_vms(pool.most_vms, blue_green=blue_green, max_surge=surge or 0):
        holder = _holder(pool, "upgrade_strategy", 0, 0)
        holder = holder._replace(label=upgrade_label(holder.label))
        yield from (usage.by(holder) for usage in vm_usage(vms._replace(nodes=more)))


def _auto_provisioning(each: AutoProvisioningView, views: Iterable[View], project: str) -> Iterator[Charge]:
    """Yield what auto-provisioning may add to the pools of its cluster that the program makes."""
    names = {each.cluster.name, each.cluster.cluster if each.cluster.known("cluster") else None}
    pools = [
        pool for pool in views if isinstance(pool, NodePoolView) and pool.known("cluster") and pool.cluster in names
    ]
    label = f"auto-provisioning of {each.origin[-1] if each.origin else each.name}"
    location = each.zones[0] if len(each.zones) == 1 else each.cluster.location
    vcpus = each.limit("cpu") or 0
    for limit in each.limits:
        own = sum(pool.most_vms * pool.machine.chips for pool in pools if pool.machine and _is_of(pool, limit.resource))
        chips = max(0, (limit.maximum or 0) - own)
        for usage in accelerator_usage(project, limit.resource, chips, location, vcpus) if chips else ():
            yield usage.by(Holder(each.stack, each.path("limits"), label, each.path(limit.resource), 1))


def _is_of(pool: NodePoolView, gke_label: str) -> bool:
    return bool(pool.machine and pool.machine.accelerator and pool.machine.accelerator.gke_label == gke_label)


def _persistent_pool(pool: PersistentPoolView, project: str) -> Iterator[Charge]:
    if pool.machine is None:
        return
    most = pool.most_vms
    usages = vertex_usage(
        VertexUsage(
            project=project,
            machine_type=pool.machine.name,
            replicas=most,
            capacity="on-demand",
            region=pool.region,
            disk_type=pool.disk_type or VERTEX_DEFAULT_DISK,
            disk_gb=BOOT_DISK_LIMITS["vertex"].default_gb if pool.disk_gb is None else pool.disk_gb,
            accelerator_type=pool.accelerator_type,
            accelerator_count=pool.accelerator_count,
        )
    )
    scales, fewest = pool.max_replicas is not None, 1 if pool.min_replicas is None else pool.min_replicas
    field, least = ("max_replicas", fewest) if scales else ("replica_count", 1)
    yield from (usage.by(_holder(pool, field, usage.amount / most if most else 0, least)) for usage in usages)


def _workbench(instance: WorkbenchView, project: str) -> Iterator[Charge]:
    if instance.machine is None:
        return
    vm = VmUsage(
        project=project,
        machine_type=instance.machine.name,
        nodes=1,
        capacity="on-demand",
        location=instance.zone,
        disk_type=instance.disk_type,
        disk_gb=instance.boot_disk_gb + instance.data_disk_gb,
        accelerator_type=instance.gke_label,
        accelerator_count=instance.gpus,
    )
    yield from (usage.by(_holder(instance, "machine_type", 0, 0)) for usage in vm_usage(vm))


def _holder(view: View, field: str, step: float, least: int) -> Holder:
    """Return who makes a charge, by the section of the stack file where it is known, else by the resource's name."""
    label = str(view.origin[-1]) if view.origin else view.name
    if label in ("system_pool", "pathways"):
        label = cpu_pool_name(str(view.origin[-2]), label)
    if view.origin[-2:-1] == ("more_pools",):
        label = f"{view.origin[-3]}-{label}"
    return Holder(view.stack, view.origin, label, view.path(field), step, least)


def _not_counted(view: View, field: str, reason: str) -> Finding:
    path = view.path(field)
    return Finding(
        rule="quota-not-counted",
        severity="note",
        message=f"its quota is not counted: {reason}",
        stack=view.stack,
        path=dotted(path),
        resource=f"{view.type} {view.name}",
    )
