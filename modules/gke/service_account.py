"""The account that an environment's nodes run as."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
from pulumi_gcp import projects, serviceaccount

from training_platform.resources.cloud_names import account_id
from training_platform.resources.scope import Scope

# What a node needs to join, log and report (the first), and to pull images from the project's repositories. Pods have
# accounts of their own by Workload Identity. Source: GKE docs on hardening, least-privilege node accounts.
NODE_ROLES = ("roles/artifactregistry.reader", "roles/container.defaultNodeServiceAccount")


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
        account = serviceaccount.Account(
            f"{name}-account",
            project=args.scope.project,
            account_id=account_id(args.scope.environment, "gke-nodes"),
            display_name=f"GKE nodes of {args.scope.environment}",
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.email = account.email
        self.bindings = [
            projects.IAMMember(
                f"{name}-{role.removeprefix('roles/')}",
                project=args.scope.project,
                role=role,
                member=account.member,
                opts=pulumi.ResourceOptions(parent=self),
            )
            for role in NODE_ROLES
        ]
        self.register_outputs({"email": self.email})
