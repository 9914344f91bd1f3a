"""All rules about stacks, changes and parts. A module declares its rules when it is imported; this one imports all."""

from __future__ import annotations

from training_platform.checks import baseline, stacks  # noqa: F401 # imported since they declare rules, as below
from training_platform.checks.comparison import against_base, losses, refusals, upgrades  # noqa: F401
from training_platform.checks.parts import declare_rules_of_parts
from training_platform.rules.descriptions import RuleSheet, rule_sheets


def every_rule() -> tuple[RuleSheet, ...]:
    """Return all rules in the form shown to users, including those of installed parts, sorted by group and name."""
    declare_rules_of_parts()
    return rule_sheets()
