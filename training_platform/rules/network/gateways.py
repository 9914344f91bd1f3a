"""NAT gateways, beside the VMs that reach the internet through them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from training_platform.catalog.locations import region_of
from training_platform.quota.charges import nat_addresses
from training_platform.rules.registry import Draft, finding, rule
from training_platform.views.network import GatewayView
from training_platform.views.node_pool import NodePoolView
from training_platform.views.program import Program
from training_platform.views.view import View


@rule(
    "nat-addresses",
    ruleset="addresses",
    severity="warning",
    across=True,
    owner="house",
    source="house rule: at its maximum every VM finds the ports that its gateway promises; arithmetic of Cloud NAT",
)
def nat_addresses_enough(gateway: GatewayView, program: Program) -> Iterator[Draft]:
    """Find reserved addresses that are too few for the ports that VMs may open: further connections fail."""
    if not gateway.addresses:
        return
    vms = vms_behind(gateway, program.all(NodePoolView))
    wanted = nat_addresses(vms, gateway.most_ports)
    if wanted > gateway.addresses:
        message = (
            f"{vms:,} VMs of {gateway.most_ports:,} ports need {wanted} addresses, but {gateway.addresses} are reserved"
        )
        yield finding(
            gateway, "addresses", message, allowed=f"at least {wanted}, or 0: Google Cloud takes them", nearest=wanted
        )


def vms_behind(gateway: GatewayView, views: Iterable[View]) -> int:
    """Return the VMs that a program's pools have at most in a gateway's region."""
    pools = (view for view in views if isinstance(view, NodePoolView))
    return sum(pool.most_vms for pool in pools if region_of(pool.location) == gateway.region)
