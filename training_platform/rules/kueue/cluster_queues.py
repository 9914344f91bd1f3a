"""Kueue's ClusterQueues, as its webhooks take them."""

from __future__ import annotations

from collections.abc import Iterator

from training_platform.rules.registry import Draft, finding, rule
from training_platform.views.kueue import FlavorQuotaView

_WEBHOOK = "Kueue ff69552, clusterqueue_webhook.go, read 2026-08-22"


@rule("kueue-limits-need-cohort", ruleset="kueue", owner="kueue", facts=("KUE-02",), source=_WEBHOOK)
def kueue_limits_need_cohort(quota: FlavorQuotaView) -> Iterator[Draft]:
    """Find a borrowing or lending limit of a ClusterQueue without a cohort."""
    if quota.cohort:
        return
    for field in ("borrowing_limit", "lending_limit"):
        if getattr(quota, field) is not None:
            yield finding(quota, field, f"ClusterQueue {quota.queue} has no cohort", allowed="none without a cohort")


@rule("kueue-lending-limit", ruleset="kueue", owner="kueue", facts=("KUE-02",), source=_WEBHOOK)
def kueue_lending_limit(quota: FlavorQuotaView) -> Iterator[Draft]:
    """Find a team that would lend more than it has."""
    lent, own = quota.lending_limit, quota.nominal_quota
    if lent is not None and lent > own:
        yield finding(quota, "lending_limit", f"is {lent}", allowed=f"at most the nominal quota, {own}", nearest=own)


@rule("kueue-quantities", ruleset="kueue", owner="kueue", facts=("KUE-02",), source=_WEBHOOK)
def kueue_quantities(quota: FlavorQuotaView) -> Iterator[Draft]:
    """Find a quantity below 0."""
    for field in ("nominal_quota", "borrowing_limit", "lending_limit"):
        amount = getattr(quota, field)
        if amount is not None and amount < 0:
            yield finding(quota, field, f"is {amount}", allowed="at least 0", nearest=0)
