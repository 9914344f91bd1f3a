"""Limits that an environment asks Google Cloud for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
from pulumi_gcp import cloudquota

from training_platform.config.model.environment import QuotaRequest
from training_platform.config.names import declared_name
from training_platform.resources.cloud_names import short_name
from training_platform.resources.scope import Scope


@dataclass(frozen=True, kw_only=True)
class QuotaRequestsArgs:
    """``requests`` are the stack file's, by key."""

    scope: Scope
    requests: Mapping[str, QuotaRequest]


class QuotaRequests(pulumi.ComponentResource):
    """Quota preferences of the environment's project, one per request.

    Google decides on them in its own time, so nothing waits for them. A preference cannot be deleted, and the API has
    one for each quota and its dimensions: where somebody made it by hand, it has to be imported.
    """

    def __init__(self, name: str, args: QuotaRequestsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:cloudquota:QuotaRequests", name, {}, opts)
        for key, request in args.requests.items():
            cloudquota.SQuotaPreference(
                declared_name("quota_requests", key),
                parent=f"projects/{args.scope.project}",
                name=short_name(f"{args.scope.prefix}-{key}", 63),
                service=request.service,
                quota_id=request.quota_id,
                dimensions=request.dimensions or None,
                quota_config=cloudquota.SQuotaPreferenceQuotaConfigArgs(preferred_value=str(request.value)),
                justification=request.justification,
                contact_email=request.contact,
                ignore_safety_checks=request.ignore_safety_check,
                opts=pulumi.ResourceOptions(
                    parent=self,
                    # Says what a deletion comes to: the provider would only forget it.
                    retain_on_delete=True,
                    # An environment under another name keeps its preferences: Google takes no second one for a quota.
                    ignore_changes=["name"],
                ),
            )
        self.register_outputs({})
