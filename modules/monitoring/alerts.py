"""Alerts of Cloud Monitoring on an environment's clusters, and whom they reach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
from pulumi_gcp import monitoring

from training_platform.config.spec import environment
from training_platform.resources.cloud_names import slug
from training_platform.resources.monitoring.alert_rules import AlertRule, alert_rules
from training_platform.resources.scope import Scope

EVALUATION = "60s"  # as often as GKE's system metrics come


@dataclass(frozen=True, kw_only=True)
class AlertsArgs:
    """``clusters`` are names in GKE, of all clusters of the environment."""

    scope: Scope
    spec: environment.AlertsSpec
    clusters: Sequence[str]


class Alerts(pulumi.ComponentResource):
    """One AlertPolicy per rule, which tells every address; without addresses, incidents show in the console alone.

    Nothing exists where alerts are not enabled, or where there is no cluster to watch.
    """

    def __init__(self, name: str, args: AlertsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:monitoring:Alerts", name, {}, opts)
        scope = args.scope
        if args.spec.enabled and args.clusters:
            channels = [self._channel(name, scope, address).name for address in args.spec.emails]
            for rule_name, rule in alert_rules().items():
                monitoring.AlertPolicy(
                    f"{name}-{rule_name}",
                    display_name=f"{scope.environment}: {rule.title}",
                    project=scope.project,
                    combiner="OR",
                    conditions=[condition(rule_name, rule, args.clusters)],
                    severity=rule.severity,
                    documentation=monitoring.AlertPolicyDocumentationArgs(
                        content=rule.documentation, mime_type="text/markdown"
                    ),
                    notification_channels=channels,
                    user_labels=scope.labels,
                    opts=pulumi.ResourceOptions(parent=self),
                )
        self.register_outputs({})

    def _channel(self, name: str, scope: Scope, address: str) -> monitoring.NotificationChannel:
        return monitoring.NotificationChannel(
            f"{name}-{slug(address)}",
            type="email",
            display_name=f"{scope.environment}: {address}",
            project=scope.project,
            labels={"email_address": address},
            user_labels=scope.labels,
            opts=pulumi.ResourceOptions(parent=self),
        )


def condition(name: str, rule: AlertRule, clusters: Sequence[str]) -> monitoring.AlertPolicyConditionArgs:
    """Return a rule as the one condition of its policy."""
    return monitoring.AlertPolicyConditionArgs(
        display_name=rule.title,
        condition_prometheus_query_language=monitoring.AlertPolicyConditionConditionPrometheusQueryLanguageArgs(
            query=rule.query(clusters),
            alert_rule=name,
            duration=f"{rule.for_seconds}s",
            evaluation_interval=EVALUATION,
            # A metric comes into being with its first value: most do not exist when the policy is made.
            disable_metric_validation=True,
        ),
    )
