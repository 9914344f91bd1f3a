"""What a change would do, as plain data from which every report format is rendered."""

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
"""What can happen to a resource, the most serious first."""


NEW = Effect("none", "it is new")
VERSION_INPUTS: Mapping[str, str] = {RELEASE: "version", CLUSTER: "minMasterVersion"}
"""The inputs that contain the version of a chart or a cluster, keyed by resource type.

The effects of an upgrade are described by another finding.
"""


class InputChange(NamedTuple):
    """One input that differs. ``old`` or ``new`` is None if the input exists on only one side.

    ``forces`` says whether the change forces a replacement. ``effect`` is what the change causes, such as lost data; if
    it forces a replacement, that is the effect of deleting the resource.
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
    """How one resource changes.

    - ``undecided``: it is not known which fields of this type force a replacement.
    - ``protected``: before the change, the resource is protected from deletion.
    - ``effect``: the effect of removing or adding the resource.
    - ``size``: the size of the resource before the change, if its type has one: ``8 VMs of a3-highgpu-8g in
      us-central1-a``.
    - ``planned``: the inputs of an added resource, without secrets.
    - ``within``: the cluster and the namespace of a removed or replaced object, as far as the plan contains them.
    - ``at_end``: the resource is destroyed when its stack, which is retired, ends.
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
        """The type and the name of the resource, which are unique in its stack."""
        return self.type, self.name

    @property
    def is_upgrade(self) -> bool:
        """Return True if the version of a chart or a cluster changes."""
        return any(change.path == VERSION_INPUTS.get(self.type) for change in self.inputs)

    @property
    def effects(self) -> tuple[Effect, ...]:
        """The distinct effects of the change, the most serious first."""
        effects = dict.fromkeys(change.effect for change in self.inputs) if self.inputs else (self.effect,)
        return tuple(sorted(effects, key=lambda effect: EFFECT_KINDS.index(effect.kind)))

    @property
    def forcing(self) -> tuple[InputChange, ...]:
        """The changes of inputs that force the resource to be replaced."""
        return tuple(change for change in self.inputs if change.forces)


class Amount(NamedTuple):
    """A quantity before and after the change; None if it is unknown on that side."""

    before: float | None
    after: float | None

    @property
    def delta(self) -> float | None:
        """The increase from before to after; None if one of them is unknown."""
        return None if self.before is None or self.after is None else self.after - self.before


class AcceleratorChange(NamedTuple):
    """How the maximum number of chips or GPUs changes, counted with all node pools scaled up."""

    region: str
    flavor: str
    unit: str
    maximum: Amount


class QuotaChange(NamedTuple):
    """How much of a quota all stacks of a project use, before and after, and its limit according to the work tree."""

    key: QuotaKey
    unit: str
    used: Amount
    limit: Amount


class CapacityChange(NamedTuple):
    """A flavor of a cluster: how the capacity of its node pools and the amount promised to teams change."""

    environment: str
    cluster: str
    flavor: str
    capacity: Amount
    promised: Amount


@dataclass(frozen=True, kw_only=True)
class Consequence:
    """One kind of effect that a decision has: who loses or gains what, such as ``bucket checkpoints of prod-vision``.

    ``acknowledged`` means that every loss of this kind is acknowledged, in every affected stack.
    """

    kind: EffectKind
    subjects: tuple[str, ...]
    acknowledged: bool = False


ActVerb = Literal["left", "retired", "removed", "added", "changed", "costs more"]


@dataclass(frozen=True, kw_only=True)
class Act:
    """One decision that a change contains, across all files, with all its effects, the most serious first.

    - ``finding`` is at the changed line of a stack file and belongs to the rule of the most serious effect. It exists
      even if no effect counts as a finding.
    - ``was`` is the value before the change.
    - ``also`` lists the lines of other files that belong to the decision, for example the shares of a removed
      cluster.
    - ``acknowledged`` says who acknowledged its losses, if all of them are acknowledged.
    """

    verb: ActVerb
    finding: Finding
    consequences: tuple[Consequence, ...]
    was: str = ""
    also: tuple[str, ...] = ()
    acknowledged: Exempted | None = None

    @property
    def is_loss(self) -> bool:
        """Return True if somebody loses something, acknowledged or not."""
        return any(row.kind in LOSS_RULES for row in self.consequences)


NOTHING = Amount(0, 0)


StackChangeKind = Literal["added", "removed", "renamed", "changed", "left", "retired"]
"""What can happen to a stack. A stack that is ``left`` no longer has a file, but is still deployed.

The changes of a ``retired`` stack include the resources that are deleted on or after its retirement date.
"""


@dataclass(frozen=True, kw_only=True)
class StackChange:
    """One stack that the change affects.

    - ``unpriced`` is the number of VMs that the cost does not include, before and after the change.
    - ``was`` is the stack's name in the base, if it differs.
    - ``unknown`` is the reason why its resources were not compared.
    - ``head`` and ``base`` are its files after and before the change, None if the stack does not exist there.
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
        """Return True if no deployed resource differs."""
        same_cost = self.least_usd.before == self.least_usd.after and self.most_usd.before == self.most_usd.after
        nothing = not (self.resources or self.accelerators or self.unknown)
        return self.kind == "changed" and nothing and same_cost


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The comparison of the work tree with ``commit``, the last commit that it has in common with ``ref``.

    - ``stacks`` are the stacks that the change can affect.
    - ``other_stacks`` is the number of all other stacks.
    - ``own_program`` says that the base was planned by the version of the program that the base contains.
    - ``unknown`` is the reason why nothing is known about the base, if that is the case.
    - ``deployed`` are the stacks whose base is their last deployed state or a preview.
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
