"""How VMs of Vertex AI reach an environment's VPC."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
from pulumi_gcp import compute

from modules.register import register
from training_platform.resources.network.vertex_attachment import attachment_subnet, network_attachment
from training_platform.resources.scope import Scope


@dataclass(frozen=True, kw_only=True)
class VertexAttachmentArgs:
    """``addresses`` are those of the subnet."""

    scope: Scope
    region: str
    addresses: str
    network: pulumi.Input[str]


class VertexAttachment(pulumi.ComponentResource):
    """A network attachment in a region, on a subnet of its own; teams name it by ``environment``."""

    def __init__(
        self,
        name: str,
        args: VertexAttachmentArgs,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("training-platform:network:VertexAttachment", name, {}, opts)
        declared = attachment_subnet(args.region, args.addresses, args.scope, args.network)
        subnet = register(compute.Subnetwork, declared, self)
        register(compute.NetworkAttachment, network_attachment(args.region, args.scope, subnet.id), self)
        self.register_outputs({})
