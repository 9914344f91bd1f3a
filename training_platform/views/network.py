"""Views of networks, firewall rules, NAT gateways, and public addresses."""

from __future__ import annotations

from typing import ClassVar

from training_platform.config.reading.finding import Path
from training_platform.resources import resource_types
from training_platform.views import fields
from training_platform.views import inputs as of
from training_platform.views.inputs import at, rows
from training_platform.views.view import Settings, View

EVERY_PORT = "0-65535"
_TCP = ("tcp", "all", "6")
_RANGES = "secondaryIpRanges"
_RANGE = ("rangeName", "ipCidrRange")


class NetworkView(Settings):
    """A VPC; ``profile`` is the name of a network profile for RDMA."""

    TYPES = (resource_types.NETWORK,)

    project = fields.project()
    network = fields.text("name")
    mtu = fields.whole("mtu")
    profile = fields.name("networkProfile")


class CountedView(Settings):
    """A network component that counts towards a quota of its project. Only addresses have a ``kind``."""

    TYPES = (
        resource_types.ADDRESS,
        resource_types.FIREWALL,
        resource_types.NETWORK,
        resource_types.ROUTER,
        resource_types.SUBNETWORK,
    )

    project = fields.project()
    region = fields.located("region")
    kind = fields.text("addressType")

    @property
    def quota(self) -> str | None:
        """The quota's name in the catalogue, or None for addresses that no quota counts."""
        return _QUOTAS.get((self.type, self.kind if self.type == resource_types.ADDRESS else None))


_QUOTAS = {
    (resource_types.ADDRESS, None): "static-addresses",
    (resource_types.ADDRESS, "EXTERNAL"): "static-addresses",
    (resource_types.FIREWALL, None): "firewalls",
    (resource_types.NETWORK, None): "networks",
    (resource_types.ROUTER, None): "routers",
    (resource_types.SUBNETWORK, None): "subnetworks",
}


class SubnetView(Settings):
    """A subnet with its primary range, and its secondary ranges keyed by name. ``network`` is the name of the VPC."""

    TYPES = (resource_types.SUBNETWORK,)

    project = fields.project()
    region = fields.located("region")
    subnetwork = fields.text("name")
    network = fields.reference("network", resource_types.NETWORK)
    cidr = fields.text("ipCidrRange", place="subnet.nodes")

    @fields.field(_RANGES, place="subnet")
    def ranges(self) -> dict[str, str]:
        """The secondary ranges, keyed by name."""
        blocks = rows(self.read(_RANGES))
        names, ranges = ([of.known(of.as_text(at(row, (key,)))) for row in blocks] for key in _RANGE)
        return dict(zip(names, ranges, strict=True))

    @property
    def is_of_nodes(self) -> bool:
        """Return True if the primary range is for a cluster's nodes: the subnet then also has ranges for pods."""
        return self.known("ranges") and bool(self.ranges)

    def path(self, name: str) -> Path:
        """Return the path of a range in the stack file. ``name`` may be ``pods`` or ``services``."""
        if self.origin[-1:] == ("gpu_networks",):
            return (*self.origin, "range")
        if self.origin[:1] == ("network_attachments",):
            return self.origin
        return (*self.origin, "subnet", name) if name in ("pods", "services") else super().path(name)


class ExistingSubnetView(SubnetView):
    """An existing subnet, with the ranges that a stack file gives. It is not a resource of any stack."""


class AttachmentView(Settings):
    """A network attachment, through which Vertex AI reaches a VPC. ``subnet`` is the name of its first subnet."""

    TYPES = (resource_types.NETWORK_ATTACHMENT,)

    subnet = fields.reference("subnetworks.0", resource_types.SUBNETWORK)


class ServicesRangeView(Settings):
    """Addresses reserved in a VPC, for example for Google's services that are peered with it (``VPC_PEERING``)."""

    TYPES = (resource_types.GLOBAL_ADDRESS,)

    range_name = fields.text("name")
    purpose = fields.text("purpose")
    prefix = fields.whole("prefixLength")
    network = fields.reference("network", resource_types.NETWORK)
    ranges: ClassVar[dict[str, str]] = {}

    @fields.field("address", place="private_services_range")
    def cidr(self) -> str | None:
        """The range, or None if Google Cloud chooses it."""
        address = of.known(of.as_text(self.read("address")))
        return f"{address}/{self.prefix or 32}" if address else None

    @property
    def addresses(self) -> int:
        """The number of addresses."""
        return 1 if self.prefix is None else 2 ** (32 - self.prefix)


class FirewallView(Settings):
    """A firewall rule. ``ports`` are the allowed TCP ports: ``0-65535`` for all, empty for a deny rule."""

    TYPES = (resource_types.FIREWALL,)

    network = fields.reference("network", resource_types.NETWORK)

    @fields.field("allows")
    def ports(self) -> tuple[str, ...]:
        """The allowed TCP ports."""
        inward = self.read("direction") in (None, "INGRESS") and not of.as_flag(self.read("disabled"))
        ports: list[str] = []
        if not inward:
            return ()
        for allow in rows(self.read("allows")):
            if of.as_text(at(allow, ("protocol",))) in _TCP:
                ports.extend(of.known(of.as_texts(at(allow, ("ports",)))) or (EVERY_PORT,))
        return tuple(ports)

    def opens(self, port: int) -> bool:
        """Return True if the rule allows a port, for example as ``8443`` or in ``8000-9000``."""
        ranges = (ports.partition("-") for ports in self.ports)
        return any(low.isdecimal() and int(low) <= port <= int(high or low) for low, _, high in ranges)


class GatewayView(View):
    """A region's NAT gateway. ``addresses`` is the number of reserved addresses, 0 if Google Cloud allocates them.

    The numbers of ports are per VM.
    """

    TYPES = (resource_types.ROUTER_NAT,)

    project = fields.project()
    region = fields.located("region")
    addresses = fields.count("natIps")
    dynamic_ports = fields.flag("enableDynamicPortAllocation", default=False, place="")
    min_ports = fields.whole("minPortsPerVm", place="")
    max_ports = fields.whole("maxPortsPerVm", place="")

    @property
    def least_ports(self) -> int:
        """The number of ports that each VM always has. The defaults are those of Cloud NAT, read 2026-11-28."""
        return self.min_ports or (32 if self.dynamic_ports else 64)

    @property
    def most_ports(self) -> int:
        """The maximum number of ports of a VM to one destination. The defaults are Cloud NAT's (general knowledge)."""
        if self.dynamic_ports:
            return self.max_ports or 65_536
        return self.min_ports or 64


class InterfaceView(View):
    """A network interface of a VM or an instance template. ``public`` is the number of its public addresses."""

    TYPES = (resource_types.INSTANCE, resource_types.INSTANCE_TEMPLATE)
    EACH = ("networkInterfaces",)

    @fields.field("networkInterfaces.accessConfigs", "networkInterfaces.ipv6AccessConfigs", place="")
    def public(self) -> int:
        """The number of the interface's public addresses."""
        kinds = ("accessConfigs", "ipv6AccessConfigs")
        return sum(len(rows(self.read(f"networkInterfaces.{kind}"))) for kind in kinds)
