"""The network, for programs in any language."""

from typing import TypedDict

import pulumi

from components.given import read
from components.models import NetworkSpec, Place
from components.specs import of_models
from modules import network as modules


@of_models
class NetworkArgs(TypedDict):
    """What a network is."""

    place: Place
    """Where it stands."""

    spec: NetworkSpec
    """What it spans."""


class Network(pulumi.ComponentResource):
    """A VPC without subnets of its own, and one NAT gateway per region. Clusters bring their subnets."""

    network_id: pulumi.Output[str]
    """The VPC, as projects/PROJECT/global/networks/NAME."""

    network_name: pulumi.Output[str]
    """The VPC's name."""

    def __init__(self, name: str, args: NetworkArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:index:Network", name, {}, opts)
        scope, spec = read(name, args, NetworkSpec)
        network = modules.Network(
            name,
            modules.NetworkArgs(
                scope=scope,
                regions=spec.regions,
                nat_addresses=spec.nat_addresses,
                services_range=spec.services_range,
            ),
            pulumi.ResourceOptions(parent=self),
        )
        self.network_id, self.network_name = network.network_id, network.network_name
        self.register_outputs({"networkId": self.network_id, "networkName": self.network_name})
