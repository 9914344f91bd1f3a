"""The comparison of a change as plain data, which every format of a report renders."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from training_platform.checks.effect_kinds import EFFECT_KINDS, LOSS_RULES, Effect, EffectKind
from training_platform.config.model.stack import Stack
from training_platform.config.reading.finding import Finding
from training_platform.quota.charges import QuotaKey
from training_platform.resources.resource_types import CLUSTER, RELEASE
from training_platform.resources.stack_resource import ResourceKey
from training_platform.rules.exemptions import Exempted

ResourceChangeKind = Literal["replaced", "removed", "changed", "added"]
KINDS: tuple[ResourceChangeKind, ...] = ("replaced", "removed", "changed", "added")
"""What can happen to a resource, the worst first."""


NEW = Effect("none", "it is new")
VERSION_INPUTS: Mapping[str, str] = {RELEASE: "version", CLUSTER: "minMasterVersion"}
"""The inputs with the version of a chart or a cluster, by type; a finding says what an upgrade does."""


class InputChange(NamedTuple):
    """One input that differs; ``old`` or ``new`` is None where a side lacks it. ``forces`` a replacement or not.

    ``effect`` is that of the input alone: of one that forces a replacement, what deleting the resource does.
    """

    path: str
    old: Any
    new: Any
    forces: bool
    effect: Effect = NEW

    def __str__(self) -> str:
        """Return the change as part of a sentence."""
        return f"{self.path} from {_shown(self.old)} to {_shown(self.new)}"


def _shown(value: Any) -> str:
    return "nothing" if value is None else json.dumps(value, ensure_ascii=False)


@dataclass(frozen=True, kw_only=True)
class ResourceChange:
    """The change of one resource.

    ``undecided`` is a change of a type of which it is not known which fields replace it. ``protected`` says whether the
    base's resource refuses to be deleted. ``effect`` is that of a resource that is removed or added. ``size`` says how
    much the base's has, where its type has a size: ``8 VMs of a3-highgpu-8g in us-central1-a``. ``planned`` are the
    inputs of one that is added, without secrets. ``within`` are the cluster and the namespace of an object that is
    removed or replaced, as far as the plan tells. ``at_end`` is one that the end of its retired stack destroys.
    """

    kind: ResourceChangeKind
    type: str
    name: str
    inputs: tuple[InputChange, ...] = ()
    undecided: bool = False
    protected: bool = False
    effect: Effect = NEW
    size: str = ""
    planned: Mapping[str, Any] = field(default_factory=dict)
    within: tuple[ResourceKey, ...] = ()
    at_end: bool = False

    @property
    def key(self) -> ResourceKey:
        """Its type and name, unique in its stack."""
        return self.type, self.name

    @property
    def is_upgrade(self) -> bool:
        """Whether it is another version of a chart or a cluster."""
        return any(change.path == VERSION_INPUTS.get(self.type) for change in self.inputs)

    @property
    def effects(self) -> tuple[Effect, ...]:
        """The effects of the change, each once, the worst first."""
        effects = dict.fromkeys(change.effect for change in self.inputs) if self.inputs else (self.effect,)
        return tuple(sorted(effects, key=lambda effect: EFFECT_KINDS.index(effect.kind)))

    @property
    def forcing(self) -> tuple[InputChange, ...]:
        """The changes of inputs that replace it."""
        return tuple(change for change in self.inputs if change.forces)


class Amount(NamedTuple):
    """A quantity before and after; None if a side does not know it."""

    before: float | None
    after: float | None

    @property
    def delta(self) -> float | None:
        """The increase."""
        return None if self.before is None or self.after is None else self.after - self.before


class AcceleratorChange(NamedTuple):
    """Chips or GPUs at the autoscaling maximum."""

    region: str
    flavor: str
    unit: str
    maximum: Amount


class QuotaChange(NamedTuple):
    """The use of a limit by all stacks of a project, and the limit in the work tree."""

    key: QuotaKey
    unit: str
    used: Amount
    limit: Amount


class CapacityChange(NamedTuple):
    """A flavor of a cluster: the capacity of its pools, and the amount that teams are promised."""

    environment: str
    cluster: str
    flavor: str
    capacity: Amount
    promised: Amount


@dataclass(frozen=True, kw_only=True)
class Consequence:
    """One kind of effect of an act: who loses or gains what, such as ``bucket checkpoints of prod-vision``.

    ``acknowledged`` is a loss that somebody answers for, in all of the stacks that have it.
    """

    kind: EffectKind
    subjects: tuple[str, ...]
    acknowledged: bool = False


ActVerb = Literal["left", "retired", "removed", "added", "changed", "costs more"]


@dataclass(frozen=True, kw_only=True)
class Act:
    """What a change does by one decision, in all files, with every effect on somebody, the gravest first.

    ``finding`` is at the changed line of a stack file, also where no effect counts as a finding, and has the gravest
    effect's rule. ``was`` is the value before, ``also`` are the lines of other files that are part of it: the shares of
    a cluster that is removed. ``acknowledged`` says who answers for all of its losses.
    """

    verb: ActVerb
    finding: Finding
    consequences: tuple[Consequence, ...]
    was: str = ""
    also: tuple[str, ...] = ()
    acknowledged: Exempted | None = None

    @property
    def is_loss(self) -> bool:
        """Whether somebody loses something, acknowledged or not."""
        return any(row.kind in LOSS_RULES for row in self.consequences)


NOTHING = Amount(0, 0)


StackChangeKind = Literal["added", "removed", "renamed", "changed", "left", "retired"]
"""What can happen to a stack; one that is ``left`` no longer has a file and is still deployed.

Of one that is ``retired`` the resources include those that are destroyed from its day on.
"""


@dataclass(frozen=True, kw_only=True)
class StackChange:
    """One stack that the change touches.

    ``unpriced`` is the number of VMs that no cost includes, on each side. ``was`` is its name in the base, if that is
    another one. ``unknown`` says why its resources were not compared. ``head`` and ``base`` are its files, None if a
    side has none.
    """

    name: str
    kind: StackChangeKind
    was: str | None = None
    resources: tuple[ResourceChange, ...] = ()
    accelerators: tuple[AcceleratorChange, ...] = ()
    least_usd: Amount = NOTHING
    most_usd: Amount = NOTHING
    unpriced: Amount = NOTHING
    unknown: str | None = None
    head: Stack | None = field(default=None, repr=False)
    base: Stack | None = field(default=None, repr=False)

    @property
    def empty(self) -> bool:
        """Whether no deployed resource differs."""
        same_cost = self.least_usd.before == self.least_usd.after and self.most_usd.before == self.most_usd.after
        nothing = not (self.resources or self.accelerators or self.unknown)
        return self.kind == "changed" and nothing and same_cost


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The work tree against ``commit``, which it has in common with ``ref``.

    ``stacks`` are those that the change can affect, ``other_stacks`` is how many there are beside. ``own_program`` says
    that the base was planned by its own program. ``unknown`` says why nothing of the base is known, where that is so.
    ``deployed`` are the stacks whose base is their last deployed state, or a preview.
    """

    ref: str
    commit: str = ""
    acts: tuple[Act, ...] = ()
    deployed: tuple[str, ...] = ()
    stacks: tuple[StackChange, ...] = ()
    other_stacks: int = 0
    quotas: tuple[QuotaChange, ...] = ()
    capacity: tuple[CapacityChange, ...] = ()
    own_program: bool = False
    unknown: str | None = field(default=None)
