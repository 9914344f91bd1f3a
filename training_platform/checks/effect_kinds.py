"""The kinds of effects that a change can have: their order, their headlines, and the rules that report losses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple, get_args

from training_platform.config.reading.declaration import Rule
from training_platform.rules import losses

EffectKind = Literal[
    "data", "jobs", "stack", "promises", "protection", "opens", "cost", "revokes", "grants", "unknown", "none"
]  # fmt: skip
EFFECT_KINDS: tuple[EffectKind, ...] = get_args(EffectKind)
"""All kinds of effects, the most serious first."""
HEADLINES: Mapping[EffectKind, str] = {
    "data": "loses data",
    "jobs": "stops jobs",
    "stack": "leaves a stack behind",
    "promises": "takes promised capacity",
    "protection": "lifts protection",
    "opens": "opens access",
    "cost": "costs more",
    "revokes": "revokes rights",
    "grants": "grants rights",
    "unknown": "effect unknown",
    "none": "no effect on people",
}
LOSS_RULES: Mapping[EffectKind, Rule] = {kind: rule for kind, rule in losses.LOSS_RULES.items()}  # noqa: C416 # of more kinds
"""The rule that reports each kind of effect as a finding. Kinds without a rule are only lines of a report."""
EFFECT_OF_RULE: Mapping[str, EffectKind] = {rule.id: kind for kind, rule in LOSS_RULES.items()}


class Effect(NamedTuple):
    """An effect. ``says`` is the predicate of a sentence about the change; ``first`` says what to do beforehand."""

    kind: EffectKind
    says: str
    first: str = ""
    source: str = ""
