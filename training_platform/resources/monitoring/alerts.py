"""Alerts of Cloud Monitoring on an environment's clusters, and whom they reach."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from training_platform.config.model.cluster import SoftwareSpec
from training_platform.resources import gcp
from training_platform.resources.cloud_names import slug
from training_platform.resources.declared import Alike, Declared, shared
from training_platform.resources.monitoring.alert_rules import AlertRule, alert_rules
from training_platform.resources.register import ALERT_POLICY, NOTIFICATION_CHANNEL
from training_platform.resources.scope import Scope

if TYPE_CHECKING:
    from pulumi_gcp.monitoring import AlertPolicyConditionArgsDict as Condition
    from pulumi_gcp.monitoring import AlertPolicyDocumentationArgsDict as Documentation

EVALUATION = "60s"  # as often as GKE's system metrics come


def email_channels(name: str, emails: Sequence[str], scope: Scope) -> Iterator[Declared]:
    """Yield a channel for each address; ``name`` is the component's."""
    for address in emails:
        inputs = gcp.notification_channel(
            type="email",
            display_name=f"{scope.prefix}: {address}",
            project=scope.project,
            labels={"email_address": address},
            user_labels=scope.labels,
        )
        yield Declared(type=NOTIFICATION_CHANNEL, name=f"{name}-{slug(address)}", inputs=inputs)


def alert_policies(
    name: str, scope: Scope, clusters: Mapping[str, SoftwareSpec], told: Sequence[Any]
) -> Iterator[Declared]:
    """Yield a policy for each rule that some cluster has series for.

    ``clusters`` are names in GKE with what is installed there, ``told`` the names of channels.
    """
    common = gcp.alert_policy(
        project=scope.project,
        combiner="OR",
        notification_channels=list(told),
        user_labels=scope.labels,
    )
    alike = Alike(common)
    for rule_name, rule in alert_rules().items():
        names = sorted(cluster for cluster, software in clusters.items() if _measured(rule, software))
        if not names:
            continue
        inputs = gcp.alert_policy(
            display_name=f"{scope.environment}: {rule.title}",
            conditions=[_condition(rule_name, rule, rule.query(names, scope.project))],
            severity=rule.severity,
            documentation=_documentation(rule.documentation),
        )
        yield Declared(type=ALERT_POLICY, name=f"{name}-{rule_name}", inputs=inputs, alike=alike)


@shared
def _documentation(content: str) -> Documentation:
    return {"content": content, "mime_type": "text/markdown"}


def _measured(rule: AlertRule, software: SoftwareSpec) -> bool:
    """Whether a cluster has the series that a rule needs: those of a controller are scraped where we installed it."""
    if rule.needs == "jobset":
        return software.jobset != "none"
    scraped = {"kueue": software.kueue, "jobset-controller": software.jobset}
    return rule.needs not in scraped or (software.metrics and scraped[rule.needs] == "installed")


def _condition(name: str, rule: AlertRule, query: str) -> Condition:
    """Return a rule as the one condition of its policy."""
    return {
        "display_name": rule.title,
        "condition_prometheus_query_language": {
            "query": query,
            "alert_rule": name,
            "duration": f"{rule.for_seconds}s",
            "evaluation_interval": EVALUATION,
            # A metric comes into being with its first value: most do not exist when the policy is made.
            "disable_metric_validation": True,
        },
    }
