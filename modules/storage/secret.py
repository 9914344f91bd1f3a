"""A team's secret in Secret Manager, and who reads it."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
from pulumi_gcp import secretmanager

from modules.register import register
from training_platform.resources.scope import Scope
from training_platform.resources.storage.secret import ACCESS_ROLE, team_secret


@dataclass(frozen=True, kw_only=True)
class SecretArgs:
    """``key`` is its name in the stack file, ``reader`` the IAM member that jobs run as."""

    scope: Scope
    key: str
    reader: pulumi.Input[str]


class Secret(pulumi.ComponentResource):
    """A secret without a version; the team's jobs may read those that people add."""

    def __init__(self, name: str, args: SecretArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:storage:Secret", name, {}, opts)
        secret = register(secretmanager.Secret, team_secret(args.key, args.scope), self)
        secretmanager.SecretIamMember(
            f"{name}-jobs",
            project=args.scope.project,
            secret_id=secret.secret_id,
            role=ACCESS_ROLE,
            member=args.reader,
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.register_outputs({})
