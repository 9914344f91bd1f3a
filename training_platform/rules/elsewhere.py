"""Resources that rules cannot check: those of other programs, and those whose quota is not counted.

Both are reported as not checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from training_platform.config.reading.declaration import Draft, finding, rule
from training_platform.resources.resource_types import UNCOUNTED
from training_platform.rules.network import network_of
from training_platform.views.access import AccountView
from training_platform.views.cluster import ClusterView, ComputeClassView, ReservationView, ResourcePolicyView
from training_platform.views.inputs import as_name
from training_platform.views.kueue import FlavorQuotaView, FlavorView
from training_platform.views.network import (
    AttachmentView,
    ExistingSubnetView,
    FirewallView,
    NetworkView,
    ServicesRangeView,
    SubnetView,
)
from training_platform.views.node_pool import NodePoolView
from training_platform.views.storage import FilestoreView, LustreView, SnapshotView
from training_platform.views.view import View
from training_platform.views.whole_stack import ObjectView, Program

_ALLOWED: Final = "a resource of this program; otherwise compare the two by hand"
_UNJUDGED: Final = "reference to a resource of another program"
_OTHER_PROJECT: Final = "project of no stack"
_JUDGED: Final = {"service_account": "default"}  # by another rule
# A view and its field; the view that it names and the field with that one's name in Google Cloud or Kubernetes.
_REFERENCES: Final[tuple[tuple[type[View], str, type[View], str], ...]] = (
    (NodePoolView, "cluster", ClusterView, "cluster"),
    (NodePoolView, "policy", ResourcePolicyView, "policy"),
    (NodePoolView, "reservation", ReservationView, "reservation"),
    (NodePoolView, "service_account", AccountView, "email"),
    (ClusterView, "network", NetworkView, "network"),
    (ClusterView, "subnetwork", SubnetView, "subnetwork"),
    (SubnetView, "network", NetworkView, "network"),
    (ServicesRangeView, "network", NetworkView, "network"),
    (FirewallView, "network", NetworkView, "network"),
    (FilestoreView, "network", NetworkView, "network"),
    (FilestoreView, "reserved_range", ServicesRangeView, "range_name"),
    (SnapshotView, "instance", FilestoreView, "instance"),
    (LustreView, "network", NetworkView, "network"),
    (AttachmentView, "subnet", SubnetView, "subnetwork"),
    (FlavorQuotaView, "flavor", FlavorView, "flavor"),
)


@rule(
    "quota-uncounted",
    ruleset="together",
    severity="note",
    owner="catalogue",
    source="the ledgers, which count node pools, persistent resources, Filestore, Lustre and parts of networks",
)
def quota_uncounted(resource: ObjectView) -> Iterator[Draft]:
    """Find a resource with its own VMs, accelerators or disks whose quota demand is not counted."""
    if resource.type in UNCOUNTED:
        message = f"{resource.name} has its own VMs, accelerators or disks, which no ledger counts"
        yield finding(resource, "", message, unjudged="resource with an uncounted quota")


@rule(
    "elsewhere-not-judged",
    ruleset="together",
    across=True,
    severity="note",
    owner="catalogue",
    source="resources that another program or stack creates are not in this plan",
)
def elsewhere(program: Program) -> Iterator[Draft]:
    """Find a reference to a cluster, a network or an account of another program. No rule can check it.

    References that a stack file declares are left out: other rules check them, or report what is unknown about them.
    """
    yield from _references(program)
    for pool in program.all(NodePoolView, "nics"):
        if not pool.origin and pool.known("nics"):
            yield from _interfaces(pool, program)
    clusters = program.all(ClusterView)
    for cluster in clusters:
        if not cluster.origin and cluster.known("subnetwork") and not cluster.subnetwork:
            message = (
                f"names no subnet, so no rule checks whether the ranges that Google Cloud chooses are large enough "
                f"for {cluster.name}"
            )
            yield finding(cluster, "subnetwork", message, allowed=_ALLOWED, unjudged=_UNJUDGED)
    yield from _other_projects(program)
    for view in program.all(ComputeClassView):
        if not view.origin and len(clusters) != 1:
            message = (
                f"this program has {len(clusters)} clusters, so rules that compare a cluster with {view.name} do not "
                f"run"
            )
            yield finding(view, "", message, allowed=_ALLOWED, unjudged=_UNJUDGED)


def _references(program: Program) -> Iterator[Draft]:
    """Find a field that contains the name of a resource that is not in the program."""
    for kind, field, target_kind, target_field in _REFERENCES:
        targets = program.all(target_kind)
        for view in program.all(kind):
            if view.origin or isinstance(view, ExistingSubnetView) or not view.known(field):
                continue
            name = as_name(getattr(view, field))
            is_addresses = field == "reserved_range" and network_of(getattr(view, field)) is not None
            if name and not is_addresses and name != _JUDGED.get(field) and not _is_in(name, targets, target_field):
                yield _not_judged(view, field, name)


def _other_projects(program: Program) -> Iterator[Draft]:
    """Find a project that is used only by the organisation's own resources. Each project is reported once."""
    resources = program.all(ObjectView)
    projects = {str(resource.inputs.get("project")) for resource in resources if resource.own_line is None}
    for resource in resources:
        project = resource.inputs.get("project")
        if resource.own_line is not None and isinstance(project, str) and project not in projects:
            projects.add(project)
            message = (
                f"{resource.name} is in {project}, which no stack file names, so the limits and grants there are "
                f"unknown"
            )
            yield finding(resource, "project", message, allowed="a project of a stack", unjudged=_OTHER_PROJECT)


def _interfaces(pool: NodePoolView, program: Program) -> Iterator[Draft]:
    """Find a network or subnet of another program in a pool's additional interfaces. Each is reported once."""
    reported: set[object] = {None}
    for nic in pool.nics:
        places: tuple[tuple[object, str, Sequence[View]], ...] = (
            (nic.network, "network", program.all(NetworkView)),
            (nic.subnetwork, "subnetwork", program.all(SubnetView)),
        )
        for name, field, targets in places:
            if name not in reported and not _is_in(str(name), targets, field):
                reported.add(name)
                yield _not_judged(pool, "nics", str(name))


def _is_in(name: str, targets: Iterable[View], field: str) -> bool:
    return any(target.is_meant(name, field) for target in targets)


def _not_judged(view: View, field: str, name: str) -> Draft:
    message = f"{name} is not in this program, so rules that compare it with {view.name} do not run"
    return finding(view, field, message, allowed=_ALLOWED, unjudged=_UNJUDGED)
