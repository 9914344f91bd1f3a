"""The rules about losses that a change causes. ``check --base`` reports them, and acknowledgements permit them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from training_platform.config.reading.declaration import Rule, declare

LEAVES_STACK = declare(
    "leaves-stack",
    "Find a stack whose file is removed while it is deployed, or renamed without its old name.",
    ruleset="changes",
    excuse="acknowledgement",
)
LOSES_DATA = declare(
    "loses-data",
    "Find data that a change deletes, or lets others delete.",
    ruleset="changes",
    excuse="acknowledgement",
)
STOPS_JOBS = declare(
    "stops-jobs",
    "Find running jobs that a change stops by deleting their machines.",
    ruleset="changes",
    excuse="acknowledgement",
)
TAKES_PROMISE = declare(
    "takes-promise",
    "Find promised capacity that a change takes from a team.",
    ruleset="changes",
    excuse="acknowledgement",
)
LIFTS_PROTECTION = declare(
    "lifts-protection",
    "Find protection of data, jobs or people that a change removes.",
    ruleset="changes",
    excuse="acknowledgement",
)
OPENS_ACCESS = declare(
    "opens-access",
    "Find access that a change opens to everybody, to all pods of a node, or to another team.",
    ruleset="changes",
    excuse="acknowledgement",
)
COSTS_MORE = declare(
    "costs-more",
    "Find a stack whose cost a change raises by more than stacks/prices.yaml allows.",
    ruleset="changes",
    severity="warning",
    excuse="acknowledgement",
)

LossKind = Literal["data", "jobs", "stack", "promises", "protection", "opens", "cost"]
LOSS_RULES: Mapping[LossKind, Rule] = {
    "data": LOSES_DATA,
    "jobs": STOPS_JOBS,
    "stack": LEAVES_STACK,
    "promises": TAKES_PROMISE,
    "protection": LIFTS_PROTECTION,
    "opens": OPENS_ACCESS,
    "cost": COSTS_MORE,
}
"""The rule for each kind of loss, the most serious first."""


class LossPlace(NamedTuple):
    """The cause of a loss: the dotted path of a field, or a resource, and its new value.

    The path ``.`` is the whole stack.
    """

    stack: str
    path: str | None
    resource: str | None
    becomes: str
