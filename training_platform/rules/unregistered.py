"""What findings mean that no registered rule makes: of the model, the snapshots, the ledgers, the exemptions.

``describe`` says of any rule id what it is about; reports show it beside what was found.
"""

from __future__ import annotations

from typing import NamedTuple

from training_platform.config.reading.finding import Severity
from training_platform.rules.registry import RULES


class Description(NamedTuple):
    """What a rule looks for, the group that it belongs to, and where its facts come from."""

    id: str
    group: str
    summary: str
    severity: Severity = "error"
    source: str | None = None


LEDGER = (
    Description("quota-exceeded", "quota", "Find a quota of which all stacks of a project together ask too much."),
    Description("quota-unknown", "quota", "Find a quota that the snapshot of the project's limits does not list."),
    Description("quota-no-snapshot", "quota", "Find a project without a snapshot of its limits."),
    Description("quota-request", "quota", "Find a request for a limit that Google would refuse or that is too little."),
    Description("capacity-exceeded", "capacity", "Find teams that are promised more than the pools of a cluster hold."),
    Description(
        "share-not-whole-slices", "capacity", "Find a nominal quota that is not a whole number of slices or VMs."
    ),
    Description("file-capacity-exceeded", "capacity", "Find directories promised more than an instance holds."),
)
"""What the ledgers find; an exemption may name these and registered rules, and nothing else."""

FILES = (
    Description("stack-yaml", "files", "Find YAML that two readers would read differently."),
    Description("stack-model", "files", "Find a field or value that a stack file cannot have."),
    Description("quota-snapshot", "files", "Find what is wrong in a snapshot of a project's limits."),
    Description("quota-snapshot-age", "files", "Find a snapshot of limits that is old.", "warning"),
    Description("exemption-expired", "exemptions", "Find an exemption whose last day is over."),
    Description("exemption-unused", "exemptions", "Find an exemption that no finding needs.", "warning"),
    Description("baseline-stale", "exemptions", "Find an entry of the baseline that is found no more.", "warning"),
)

CHANGES = (
    Description("replacement", "changes", "Find capacity or data that a change replaces, with what forces it."),
    Description("recreated-nodes", "changes", "Find pools whose VMs a change makes anew under their jobs.", "warning"),
    Description("protected-removal", "changes", "Find what a change removes and the engine protects.", "warning"),
    Description("filestore-growth", "changes", "Find a capacity that an instance cannot change to."),
    Description("removed-flavor", "changes", "Find a flavor that goes in one change with a team's share.", "warning"),
    Description("protection-left-off", "changes", "Find protection that was lifted and is not needed off.", "warning"),
    Description("quota-request-moved", "changes", "Find a quota request that becomes one for another limit."),
    Description("base-not-planned", "changes", "Find what cannot be compared with the base of a change.", "warning"),
)
"""What a change does that it must not do in silence; only ``check --base`` sees it."""

_UNREGISTERED = {each.id: each for each in (*LEDGER, *FILES, *CHANGES)}


def describe(rule_id: str) -> Description:
    """Return what a rule is about; one that nobody described has its id for a summary."""
    rule = RULES.get(rule_id)
    if rule is None:
        return _UNREGISTERED.get(rule_id, Description(rule_id, "other", rule_id))
    return Description(rule.id, rule.ruleset, rule.summary, rule.severity, rule.source)
