"""A Managed Lustre instance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
from pulumi_gcp import lustre

from modules.register import register
from training_platform.config.model.storage import LustreSpec
from training_platform.resources.scope import Scope
from training_platform.resources.storage.lustre import address, instance_id, lustre_instance


@dataclass(frozen=True, kw_only=True)
class LustreInstanceArgs:
    """``key`` and ``spec`` are the stack file's; ``services`` is what gives it addresses in the VPC."""

    scope: Scope
    key: str
    spec: LustreSpec
    network: pulumi.Input[str]
    services: Sequence[pulumi.Resource]


class LustreInstance(pulumi.ComponentResource):
    """A Managed Lustre instance; all of its data is lost when location, throughput, file system or key change."""

    ip: pulumi.Output[str]
    instance: str

    def __init__(self, name: str, args: LustreInstanceArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:storage:LustreInstance", name, {}, opts)
        self.instance = instance_id(args.key, args.scope)
        declared = lustre_instance(args.key, args.spec, args.scope, args.network)
        self.ip = register(lustre.Instance, declared, self, args.services).mount_point.apply(address)
        self.register_outputs({"ip": self.ip, "instance": self.instance})
