"""References to resources of other programs: what rules would compare with them is said once not to be judged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from training_platform.config.reading.declaration import Draft, finding, rule
from training_platform.views.access import AccountView
from training_platform.views.cluster import ClusterView, ComputeClassView, ReservationView, ResourcePolicyView
from training_platform.views.kueue import FlavorQuotaView, FlavorView
from training_platform.views.network import AttachmentView, ExistingSubnetView, NetworkView, SubnetView
from training_platform.views.node_pool import NodePoolView
from training_platform.views.storage import FilestoreView, LustreView
from training_platform.views.view import View
from training_platform.views.whole_stack import Program

_ALLOWED: Final = "a resource of this program, or a look at both by hand"
_UNJUDGED: Final = "reference to a resource of another program"
# A view and its field; the view that it names and the field with that one's name in Google Cloud or Kubernetes.
_REFERENCES: Final[tuple[tuple[type[View], str, type[View], str], ...]] = (
    (NodePoolView, "cluster", ClusterView, "cluster"),
    (NodePoolView, "policy", ResourcePolicyView, "policy"),
    (NodePoolView, "reservation", ReservationView, "reservation"),
    (NodePoolView, "service_account", AccountView, "email"),
    (ClusterView, "network", NetworkView, "network"),
    (ClusterView, "subnetwork", SubnetView, "subnetwork"),
    (SubnetView, "network", NetworkView, "network"),
    (FilestoreView, "network", NetworkView, "network"),
    (LustreView, "network", NetworkView, "network"),
    (AttachmentView, "subnet", SubnetView, "subnetwork"),
    (FlavorQuotaView, "flavor", FlavorView, "flavor"),
)


@rule(
    "elsewhere-not-judged",
    ruleset="together",
    across=True,
    severity="note",
    owner="catalogue",
    source="what another program or stack creates is not in this plan",
)
def elsewhere(program: Program) -> Iterator[Draft]:
    """Find a resource that refers to a cluster, a network or an account of another program, which no rule compares.

    What a stack file declares is left out: other rules judge it by the file, or say what is not known of it.
    """
    for kind, field, target_kind, target_field in _REFERENCES:
        targets = program.all(target_kind)
        for view in program.all(kind):
            if view.origin or isinstance(view, ExistingSubnetView) or not view.known(field):
                continue
            name = getattr(view, field)
            if name not in (None, "", "default") and not any(target.is_meant(name, target_field) for target in targets):
                message = f"{name} is not in this program: rules on both together do not judge {view.name}"
                yield finding(view, field, message, allowed=_ALLOWED, unjudged=_UNJUDGED)
    clusters = program.all(ClusterView)
    for view in program.all(ComputeClassView):
        if not view.origin and len(clusters) != 1:
            message = f"this program has {len(clusters)} clusters: rules on both together do not judge {view.name}"
            yield finding(view, "", message, allowed=_ALLOWED, unjudged=_UNJUDGED)
