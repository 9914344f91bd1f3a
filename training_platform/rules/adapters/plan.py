"""Views from planned resources, as pulumi-gcp and pulumi-kubernetes name their inputs.

What the program leaves out is None, or the provider's own default where leaving it out decides something
(``auto_repair``). Every resource of a provider has a view of the whole; a type that no rule reads has no other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from training_platform.config.names import Locator
from training_platform.resources.planned import Planned
from training_platform.rules.views import (
    access,
    cluster,
    compute_class,
    kueue,
    network,
    node_pool,
    placement,
    storage,
    vertex,
)
from training_platform.rules.views.program import PACKAGES, ObjectView
from training_platform.rules.views.view import View

VIEWS: tuple[type[View], ...] = (
    cluster.ClusterView, cluster.AutoProvisioningView, node_pool.NodePoolView, node_pool.InlinePoolView,
    placement.ResourcePolicyView,
    placement.ReservationView, network.CountedView, network.NetworkView,
    network.SubnetView, network.FirewallView, network.GatewayView,
    network.InterfaceView, network.ServicesRangeView, access.AccountView, access.RoleGrantView, storage.FilestoreView,
    storage.LustreView, storage.SnapshotView, storage.BucketView, storage.EncryptedView, storage.StorageClassView,
    storage.VolumeClaimView,
    vertex.PersistentPoolView, vertex.WorkbenchView, kueue.FlavorView, kueue.FlavorQuotaView,
    compute_class.ComputeClassView, access.AlertPolicyView, access.ReleaseView, access.LabelledView,
)  # fmt: skip


def _by_type() -> Mapping[str, list[type[View]]]:
    found: dict[str, list[type[View]]] = defaultdict(list)
    for view in VIEWS:
        for token in view.TYPES:
            found[token].append(view)
    return dict(found)


VIEWS_OF = _by_type()
_PROVIDED: dict[str, Sequence[type[View]]] = {token: (ObjectView, *kinds) for token, kinds in VIEWS_OF.items()}


def views_of_plan(planned: Iterable[Planned], locator: Locator | None = None) -> list[View]:
    """Return the views of a stack's planned resources, each with its section of the stack file where one is given."""
    found: list[View] = []
    for each in planned:
        if kinds := kinds_of(each.type):
            origin = locator.path(each.name) if locator else ()
            for kind in kinds:
                if kind.SINGLE:
                    found.append(kind.made(each, origin, each.inputs))
                else:
                    found.extend(kind.of(each, origin))
    return found


def kinds_of(token: str) -> Sequence[type[View]]:
    """Return the views that a type of resource has."""
    return _PROVIDED.get(token) or ((ObjectView,) if token.startswith(PACKAGES) else ())
