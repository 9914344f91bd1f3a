"""Whether anybody hears of what goes wrong."""

from __future__ import annotations

from collections.abc import Iterator

from training_platform.rules.registry import Draft, finding, rule
from training_platform.views.access import AlertPolicyView


@rule(
    "alerts-reach-nobody",
    ruleset="alerts",
    severity="warning",
    owner="house",
    source="house rule: an alert is for somebody",
)
def alerts_reach_nobody(policy: AlertPolicyView) -> Iterator[Draft]:
    """Find alert policies that open incidents and tell nobody."""
    if not policy.channels:
        message = "alerts reach nobody: their incidents show in the console alone"
        allowed = "addresses, or alerts that are not enabled"
        yield finding(policy, "channels", message, allowed=allowed, nearest="emails: [ml-platform@example.com]")
