"""A Vertex AI Workbench instance of a team."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
from pulumi_gcp import workbench as notebooks

from modules.register import register
from training_platform.config.model.team import WorkbenchSpec
from training_platform.resources.environment_outputs import SubnetOutputs
from training_platform.resources.scope import Scope
from training_platform.resources.vertex.workbench import workbench


@dataclass(frozen=True, kw_only=True)
class WorkbenchArgs:
    """``key`` and ``spec`` are the stack file's; ``account`` is whom it acts as."""

    scope: Scope
    key: str
    spec: WorkbenchSpec
    near: pulumi.Output[SubnetOutputs] | None  # the environment's subnet, where ``spec`` names none
    account: Sequence[pulumi.Resource]


class Workbench(pulumi.ComponentResource):
    """A VM with JupyterLab; what is on its disks is lost when its zone, owner, type of disk or key changes."""

    def __init__(self, name: str, args: WorkbenchArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:vertex:Workbench", name, {}, opts)
        network, subnet = (args.near.network, args.near.subnet) if args.near is not None else (None, None)
        declared = workbench(args.key, args.spec, args.scope, network, subnet)
        register(notebooks.Instance, declared, self, args.account)
        self.register_outputs({})
