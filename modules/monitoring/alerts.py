"""Alerts of Cloud Monitoring on an environment's clusters, and whom they reach."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
from pulumi_gcp import monitoring

from modules.register import register
from training_platform.config.model import environment
from training_platform.config.model.cluster import SoftwareSpec
from training_platform.resources.monitoring.alerts import alert_policies, email_channels
from training_platform.resources.scope import Scope


@dataclass(frozen=True, kw_only=True)
class AlertsArgs:
    """``clusters`` are names in GKE, of all clusters of the environment, with what is installed there."""

    scope: Scope
    spec: environment.AlertsSpec
    clusters: Mapping[str, SoftwareSpec]


class Alerts(pulumi.ComponentResource):
    """One AlertPolicy per rule, which tells every address; without addresses, incidents show in the console alone.

    Nothing exists where alerts are not enabled, or where there is no cluster to watch.
    """

    def __init__(self, name: str, args: AlertsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:monitoring:Alerts", name, {}, opts)
        if args.spec.enabled and args.clusters:
            told = [
                register(monitoring.NotificationChannel, channel, self).name
                for channel in email_channels(name, args.spec.emails, args.scope)
            ]
            for policy in alert_policies(name, args.scope, args.clusters, told):
                register(monitoring.AlertPolicy, policy, self)
        self.register_outputs({})
