"""Every rule, of stacks, changes and parts: modules declare rules when they are imported, and here all are."""

from __future__ import annotations

from training_platform.checks import baseline, stacks  # noqa: F401 # imported since they declare rules, as below
from training_platform.checks.comparison import against_base, losses, refusals, upgrades  # noqa: F401
from training_platform.checks.parts import declare_rules_of_parts
from training_platform.rules.descriptions import RuleSheet, rule_sheets


def every_rule() -> tuple[RuleSheet, ...]:
    """Return every rule as users read it, those of installed parts too, sorted by group and name."""
    declare_rules_of_parts()
    return rule_sheets()
