"""The account that an environment's nodes run as."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
from pulumi_gcp import projects, serviceaccount

from modules.register import register
from training_platform.resources.gke.accounts import node_account, node_roles
from training_platform.resources.scope import Scope


@dataclass(frozen=True, kw_only=True)
class NodeServiceAccountArgs:
    """Which environment the nodes are of."""

    scope: Scope


class NodeServiceAccount(pulumi.ComponentResource):
    """The service account of all nodes of an environment, with no more than nodes need.

    A node that starts before ``bindings`` are there cannot join its cluster or pull an image: whatever starts nodes
    depends on them. They are not folded into ``email``, since a role added later would make that unknown during the
    preview, and every pool would look replaced.
    """

    email: pulumi.Output[str]
    bindings: list[projects.IAMMember]

    def __init__(self, name: str, args: NodeServiceAccountArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:gke:NodeServiceAccount", name, {}, opts)
        account = register(serviceaccount.Account, node_account(name, args.scope), self)
        self.email = account.email
        roles = node_roles(name, args.scope, account.member)
        self.bindings = [register(projects.IAMMember, role, self) for role in roles]
        self.register_outputs({"email": self.email})


@dataclass(frozen=True, kw_only=True)
class NodeIdentity:
    """An account of nodes that is somebody else's: its e-mail, and what has to be there before nodes start."""

    email: pulumi.Input[str]
    bindings: Sequence[pulumi.Resource] = ()


NodeAccount = NodeServiceAccount | NodeIdentity
