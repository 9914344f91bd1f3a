"""Who administers an environment's clusters."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

import pulumi
from pulumi_gcp import projects

from training_platform.resources.scope import Scope

# Everything in the clusters, and the right to connect to their DNS-based endpoints.
ADMIN_ROLE = "roles/container.admin"


@dataclass(frozen=True, kw_only=True)
class ClusterAccessArgs:
    """Who administers what."""

    scope: Scope
    admins: tuple[str, ...]  # IAM members; one that is named twice counts once


class ClusterAccess(pulumi.ComponentResource):
    """The administrators of all clusters in an environment's project."""

    def __init__(self, name: str, args: ClusterAccessArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:gke:ClusterAccess", name, {}, opts)
        for member in sorted(set(args.admins)):
            projects.IAMMember(
                f"{name}-{member_key(member)}",
                project=args.scope.project,
                role=ADMIN_ROLE,
                member=member,
                opts=pulumi.ResourceOptions(parent=self),
            )
        self.register_outputs({})


def member_key(member: str) -> str:
    """Return a name for an IAM member that depends on nothing else, so that no other member's coming moves it.

    ``group:ml-platform@example.com`` is ``ml-platform-`` and 8 digits of a hash of the whole.
    """
    readable = re.sub(r"[^a-z0-9]+", "-", member.partition(":")[2].partition("@")[0].lower()).strip("-")
    return f"{readable}-{hashlib.sha256(member.encode()).hexdigest()[:8]}"
