"""Finds what differs between base and head: resources and inputs, quotas, promised capacity, accelerators, cost."""

from __future__ import annotations

import math
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from graphlib import TopologicalSorter
from itertools import chain
from typing import Any, NamedTuple

from training_platform.checks.change_report import (
    KINDS,
    AcceleratorChange,
    Amount,
    CapacityChange,
    InputChange,
    QuotaChange,
    ResourceChange,
    ResourceChangeKind,
)
from training_platform.checks.comparison.effects import (
    effect_of_addition,
    effect_of_input,
    effect_of_loss,
    effect_of_replacement,
)
from training_platform.checks.outcome import LATER, OPTIONS, TRIGGER, FlatResource
from training_platform.checks.report import StackReport
from training_platform.checks.stacks import CheckResult, Ledgers
from training_platform.config.reading.secrets import HIDDEN
from training_platform.config.reading.section import counted
from training_platform.config.workspace import Workspace
from training_platform.quota.charges import QuotaKey
from training_platform.quota.ledger import CapacityLine, FlavorKey, Held, ProjectLedger, shares_by_flavor
from training_platform.resources import resource_types
from training_platform.resources.stack_resource import ResourceKey

_ITEM = re.compile(r"\[(\d+)\]")
_ITEM_KEYS = ("name", "action.type", "rangeName", "exclusionName", "id", "key")
REPLACED_SOURCE = "its replacement"
"""The new value of an input that refers to a replaced resource. The old value is that resource's name."""


class LimitUse(NamedTuple):
    """How much of a limit all stacks use, and the limit; None if unknown. The limit is also None if unlimited."""

    unit: str
    used: float | None
    limit: float | None


class CapacityUse(NamedTuple):
    """The capacity of a flavor's node pools in a cluster, and the amount promised to teams; None if unknown."""

    capacity: float | None = 0
    promised: float | None = 0


LineKey = QuotaKey | FlavorKey


@dataclass(frozen=True, kw_only=True)
class Side:
    """One side of a comparison: its files, the stacks that were checked, and how much of each limit all stacks use.

    - ``resources`` are the resources of the stacks that were planned.
    - ``unknown`` are the stacks about which nothing is known on this side.
    - ``holders`` are, for each limit or flavor, the stacks that use a part of it.
    """

    workspace: Workspace
    stacks: Mapping[str, StackReport]
    resources: Mapping[str, tuple[FlatResource, ...]]
    quotas: Mapping[QuotaKey, LimitUse]
    capacity: Mapping[FlavorKey, CapacityUse]
    unknown: frozenset[str]
    holders: Mapping[LineKey, frozenset[str]]


def side_of(check: CheckResult) -> Side:
    """Return the result of a check as one side of a comparison."""
    return Side(
        workspace=check.files.workspace,
        stacks={stack.name: stack for stack in check.report.stacks},
        resources={
            name: outcome.inputs for name, outcome in check.plans.outcomes.items() if outcome.inputs is not None
        },
        quotas=_quota_uses(check.ledgers.projects.values()),
        capacity={_flavor_key(line): CapacityUse(line.capacity, line.promised) for line in check.ledgers.capacity},
        unknown=check.files.workspace.unknown_stacks | check.plans.unplanned,
        holders=_holders(check.ledgers),
    )


def _holders(ledgers: Ledgers) -> dict[LineKey, frozenset[str]]:
    """Return the stacks that use a part of each limit, and the stacks to which a part of each flavor is promised."""
    holders: dict[LineKey, frozenset[str]] = {}
    for ledger in ledgers.projects.values():
        for line in ledger.lines:
            holders[line.key] = frozenset(held.holder.stack for held in line.holders)
    for capacity_line in ledgers.capacity:
        holders[_flavor_key(capacity_line)] = frozenset(share.holder.stack for share in capacity_line.shares)
    return holders


def with_unknown_lines(side: Side, other: Side) -> Side:
    """Return a side in which a sum is unknown if one of the side's ``unknown`` stacks adds to it on the other side."""
    held_by_unknown = {key for key, stacks in other.holders.items() if stacks & side.unknown}
    quotas = dict(side.quotas)
    for key, use in other.quotas.items():
        if key in held_by_unknown:
            quotas[key] = side.quotas.get(key, use)._replace(used=None)
    capacity = dict(side.capacity)
    for flavor_key in other.capacity:
        if flavor_key[0] in side.unknown:
            capacity[flavor_key] = CapacityUse(None, None)
        elif flavor_key in held_by_unknown:
            capacity[flavor_key] = side.capacity.get(flavor_key, CapacityUse())._replace(promised=None)
    return replace(side, quotas=quotas, capacity=capacity)


def _quota_uses(ledgers: Iterable[ProjectLedger]) -> dict[QuotaKey, LimitUse]:
    uses = {}
    for ledger in ledgers:
        for line in ledger.lines:
            limit = None if line.limit is None or math.isinf(line.limit) else line.limit
            uses[line.key] = LimitUse(unit=line.unit, used=line.used, limit=limit)
    return uses


def _flavor_key(line: CapacityLine) -> FlavorKey:
    return line.environment, line.cluster, line.flavor.name


def with_left_behind(head: Side, base: CheckResult, names: Container[str]) -> Side:
    """Return the head plus what base stacks use that no longer have a file and that no pipeline destroys."""
    quotas = dict(head.quotas)
    base_uses = _quota_uses(base.ledgers.projects.values())
    for ledger in base.ledgers.projects.values():
        for line in ledger.lines:
            held = sum(held.amount for held in line.holders if held.holder.stack in names)
            if held:
                use = quotas.get(line.key) or base_uses[line.key]._replace(used=0)
                quotas[line.key] = use._replace(used=(use.used or 0) + held)
    capacity = dict(head.capacity)
    for capacity_line in base.ledgers.capacity:
        promised = sum(share.amount for share in capacity_line.shares if share.holder.stack in names)
        held_capacity = capacity_line.capacity if capacity_line.environment in names else 0
        if promised or held_capacity:
            key = _flavor_key(capacity_line)
            present = capacity.get(key, CapacityUse())
            capacity[key] = CapacityUse((present.capacity or 0) + held_capacity, (present.promised or 0) + promised)
    return replace(head, quotas=quotas, capacity=capacity)


def resource_changes(before: Iterable[FlatResource], after: Iterable[FlatResource]) -> tuple[ResourceChange, ...]:
    """Return the change of every resource that differs, the most serious first."""
    old = {resource.key: resource for resource in before}
    new = {resource.key: resource for resource in after}
    graph = {  # a resource's provider, and those whose outputs it takes, are before it
        key: set(chain.from_iterable(resource.inputs_from.values())) for key, resource in new.items()
    }
    for key, resource in new.items():
        if resource.provider:
            graph[key].add(resource.provider)
    changes: list[ResourceChange] = []
    replaced: set[ResourceKey] = set()
    for key in TopologicalSorter(graph).static_order():
        if key in old and key in new and (change := _change(old[key], new[key], replaced)):
            if change.kind == "replaced":
                change = replace(change, within=_containers(old[key], old))
            changes.append(change)
            if change.kind == "replaced":
                replaced.add(key)
    changes += [removed(old[key], old) for key in old.keys() - new.keys()]
    changes += [added(new[key]) for key in new.keys() - old.keys()]
    return tuple(sorted(changes, key=lambda change: (KINDS.index(change.kind), change.type, change.name)))


def added(resource: FlatResource) -> ResourceChange:
    """Return the change that adds a resource."""
    return ResourceChange(
        kind="added",
        type=resource.type,
        name=resource.name,
        planned={path: _unhidden(value) for path, value in resource.inputs.items()},
        effect=effect_of_addition(resource.type, resource.inputs),
    )


def removed(resource: FlatResource, plan: Mapping[ResourceKey, FlatResource] | None = None) -> ResourceChange:
    """Return the change that removes a planned resource. Without the plan, its cluster and namespace are unknown."""
    return ResourceChange(
        kind="removed",
        type=resource.type,
        name=resource.name,
        protected=resource.protected,
        effect=effect_of_loss(resource.type),
        size=_size(resource),
        within=_containers(resource, plan or {}),
    )


def _containers(resource: FlatResource, plan: Mapping[ResourceKey, FlatResource]) -> tuple[ResourceKey, ...]:
    """Return the cluster of an object's provider and the namespace in its inputs, as far as the plan contains them."""
    provider = plan.get(resource.provider) if resource.provider else None
    clusters = chain.from_iterable(provider.inputs_from.values()) if provider else ()
    namespaces = [key for key in resource.inputs_from.get("metadata", ()) if key[0] == resource_types.NAMESPACE]
    return (*(key for key in clusters if key[0] == resource_types.CLUSTER), *namespaces)


def _size(resource: FlatResource) -> str:
    """Return the maximum number of VMs of a node pool or persistent resource as text; empty for any other type."""
    inputs = resource.inputs
    if resource.type == resource_types.NODE_POOL:
        zones = inputs.get("nodeLocations") or [inputs.get("location", "")]
        max_vms = inputs.get("autoscaling.totalMaxNodeCount")
        if max_vms is None:
            max_vms = int(inputs.get("autoscaling.maxNodeCount") or inputs.get("nodeCount") or 0) * len(zones)
        machine_type = inputs.get("nodeConfig.machineType")
        return f"{counted(int(max_vms), 'VM')} of {machine_type} in {', '.join(map(str, zones))}"
    if resource.type == resource_types.PERSISTENT_RESOURCE:
        return f"VMs of {inputs.get('resourcePools[0].machineSpec.machineType')} in {inputs.get('location')}"
    return ""


def accelerator_changes(base: StackAmounts, head: StackAmounts) -> tuple[AcceleratorChange, ...]:
    """Return the accelerators that a stack gains or loses. A side without the stack has none."""
    changes = []
    for key in sorted({*base.accelerators, *head.accelerators}):
        maximum = Amount(*(None if side.unknown else side.accelerators.get(key, 0) for side in (base, head)))
        if maximum.before != maximum.after:
            region, flavor, unit = key
            changes.append(AcceleratorChange(region=region, flavor=flavor, unit=unit, maximum=maximum))
    return tuple(changes)


def cost_changes(base: StackAmounts, head: StackAmounts) -> tuple[Amount, Amount]:
    """Return the changes of a stack's minimum and maximum cost in USD per hour; without the stack the cost is zero."""
    minimum, maximum = zip(base.usd, head.usd, strict=True)
    return Amount(*minimum), Amount(*maximum)


class StackAmounts(NamedTuple):
    """What is known about a stack on one side: None if the stack does not exist, ``unknown`` if nothing is known."""

    report: StackReport | None
    unknown: bool

    @property
    def accelerators(self) -> Mapping[tuple[str, str, str], int]:
        """The maximum number of chips or GPUs, keyed by region, flavor and unit."""
        rows = self.report.accelerators if self.report else ()
        return {(row.region, row.flavor, row.unit): row.maximum for row in rows}

    @property
    def unpriced(self) -> int | None:
        """The number of VMs without a price, or None if the file is unknown."""
        if self.unknown:
            return None
        return self.report.cost.vms_without if self.report else 0

    @property
    def usd(self) -> tuple[float | None, float | None]:
        """The minimum and the maximum cost in USD per hour; None if too many VMs have no price."""
        if self.unknown:
            return None, None
        if self.report is None:
            return 0.0, 0.0
        cost = self.report.cost
        priced = cost.sums_up and (cost.read is not None or not cost.unpriced)
        return (cost.minimum, cost.maximum) if priced else (None, None)


def quota_changes(base: Side, head: Side) -> tuple[QuotaChange, ...]:
    """Return the quotas whose limit or used amount changes."""
    changes = []
    for key in sorted({*base.quotas, *head.quotas}):
        # A side that holds nothing of a limit does not list it.
        old = base.quotas.get(key) or head.quotas[key]._replace(used=0)
        new = head.quotas.get(key) or old._replace(used=0)
        if old != new:
            used = Amount(old.used, new.used)
            changes.append(QuotaChange(key=key, unit=new.unit, used=used, limit=Amount(old.limit, new.limit)))
    return tuple(changes)


def capacity_changes(base: Side, head: Side) -> tuple[CapacityChange, ...]:
    """Return the flavors of clusters whose capacity or promised amount changes."""
    changes = []
    base_shares = shares_by_flavor(base.workspace)
    head_shares = shares_by_flavor(head.workspace)
    for key in sorted({*base.capacity, *head.capacity}):
        # Shares that name a flavor still promise it when its last pool is gone, which is an error at each of them.
        old = base.capacity.get(key) or CapacityUse(0, _promised(base_shares[key]))
        new = head.capacity.get(key) or CapacityUse(0, _promised(head_shares[key]))
        if old != new:
            environment, cluster, flavor = key
            changes.append(
                CapacityChange(
                    environment=environment,
                    cluster=cluster,
                    flavor=flavor,
                    capacity=Amount(old.capacity, new.capacity),
                    promised=Amount(old.promised, new.promised),
                )
            )
    return tuple(changes)


def _promised(shares: Iterable[Held]) -> float:
    return sum(share.amount for share in shares)


def _change(old: FlatResource, new: FlatResource, replaced: Container[ResourceKey]) -> ResourceChange | None:
    inputs = (*_inputs(old, new), *_redirected(old, new))
    if not any(change.forces for change in inputs):
        inputs += tuple(_followed(new, replaced))
    if not inputs:
        return None
    kind: ResourceChangeKind = "replaced" if any(change.forces for change in inputs) else "changed"
    documented = resource_types.has_known_replacements(new.type) or new.type.startswith("pulumi:")
    return ResourceChange(
        kind=kind,
        type=new.type,
        name=new.name,
        inputs=_with_openings(new, inputs),
        undecided=not (documented or all(change.path in OPTIONS for change in inputs)),
        protected=old.protected,
        size=_size(old),
    )


def _with_openings(new: FlatResource, inputs: Iterable[InputChange]) -> tuple[InputChange, ...]:
    """Return the changes of inputs. If they replace a grant by one that is open to everybody, its effect is ``opens``.

    A grant that is only created again on a replaced bucket opens nothing that was not open before.
    """
    effect = effect_of_addition(new.type, new.inputs)
    if effect.kind != "opens":
        return tuple(inputs)
    return tuple(
        change._replace(effect=effect) if change.forces and change.new != REPLACED_SOURCE else change
        for change in inputs
    )


def changed_by_engine(old: FlatResource, new: FlatResource, forcing: Iterable[str] | None) -> ResourceChange | None:
    """Return a change as the engine decided it: an update, or a replacement if ``forcing`` names the reasons for it."""
    inputs = []
    reasons = None if forcing is None else tuple(forcing)
    for change in _inputs(old, new):
        forces = reasons is not None and any(resource_types.covers(reason, change.path) for reason in reasons)
        effect = effect_of_input(new.type, change.path, change.old, change.new)
        if forces:
            effect = effect_of_replacement(new.type)
        inputs.append(change._replace(forces=forces, effect=effect))
    if reasons is not None and not any(change.forces for change in inputs):
        # An output of another resource, with values that are not known yet.
        reason = next(iter(reasons), "provider")
        inputs.append(
            InputChange(path=reason, old=LATER, new=LATER, forces=True, effect=effect_of_replacement(new.type))
        )
    if not inputs:
        return None
    kind: ResourceChangeKind = "changed" if reasons is None else "replaced"
    return ResourceChange(
        kind=kind, type=new.type, name=new.name, inputs=_with_openings(new, inputs), protected=old.protected,
        size=_size(old),
    )  # fmt: skip


def against_state(old: Iterable[FlatResource], new: Iterable[FlatResource]) -> tuple[ResourceChange, ...]:
    """Return how a plan differs from a deployed state. A value that is unknown on either side counts as equal."""
    planned = {resource.key: resource for resource in new if not resource.type.startswith("pulumi:")}
    deployed = [_as_planned(resource, planned.get(resource.key)) for resource in old]
    return resource_changes(deployed, planned.values())


def _as_planned(deployed: FlatResource, plan: FlatResource | None) -> FlatResource:
    """Return a deployed resource in which every value that is unknown on either side is the plan's value."""
    if plan is None:
        return deployed
    inputs = dict(deployed.inputs)
    for path, value in plan.inputs.items():
        if _is_unknown(value) or _is_unknown(inputs.get(path)):
            inputs[path] = value
    return replace(deployed, inputs=inputs)


def _is_unknown(value: Any) -> bool:
    return value == LATER or (isinstance(value, list) and LATER in value)


def _inputs(old: FlatResource, new: FlatResource) -> Iterator[InputChange]:
    before, after = _aligned(old.inputs, new.inputs)
    for path in sorted({*before, *after}):
        was = before.get(path)
        now = after.get(path)
        if was == now or any(resource_types.covers(ignored, path) for ignored in new.ignored):
            continue
        if path == TRIGGER and None in (was, now):  # adding or removing one triggers nothing
            continue
        outermost = None
        if None in (was, now):
            outermost = _only_on_one_side(path, before if was is None else after)
        on = resource_types.is_turned_on(new.type, path, now)
        forces = not on and resource_types.forces_replacement(new.type, path, outermost, also=new.replacing)
        effect = effect_of_replacement(new.type) if forces else effect_of_input(new.type, path, was, now)
        yield InputChange(path=path, old=_unhidden(was), new=_unhidden(now), forces=forces, effect=effect)


def _redirected(old: FlatResource, new: FlatResource) -> Iterator[InputChange]:
    """Yield inputs that are unknown on both sides, but now come from the output of a different resource."""
    for name, sources in new.inputs_from.items():
        before = old.inputs_from.get(name, ())
        removed_sources = [key[1] for key in before if key not in sources]
        joined = [key[1] for key in sources if key not in before]
        if not removed_sources or not joined:
            continue
        unknown = [path for path in _paths_below(name, new) if _is_unknown(new.inputs[path])]
        redirected = [path for path in unknown if new.inputs[path] == old.inputs.get(path)]
        if not redirected:
            continue
        was = ", ".join(removed_sources)
        now = ", ".join(joined)
        forces = any(resource_types.forces_replacement(new.type, path, also=new.replacing) for path in redirected)
        effect = effect_of_replacement(new.type) if forces else effect_of_input(new.type, redirected[0], was, now)
        yield InputChange(path=name, old=was, new=now, forces=forces, effect=effect)


def _paths_below(name: str, resource: FlatResource) -> Iterator[str]:
    """Yield the path of an input and all paths below it."""
    for path in resource.inputs:
        if path == name or path.startswith((f"{name}.", f"{name}[")):
            yield path


def _aligned(old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return both sides' inputs. If a list has different lengths, its items are identified by key in both.

    By position, a removed item would change all items after it. By key, ``rules[Delete].age`` is the same on both
    sides.
    """
    lists = {path[: match.start()] for path in (*old, *new) for match in _ITEM.finditer(path)}
    for name in sorted(lists, key=len):
        keys = [_item_keys(name, side) for side in (old, new)]
        if None not in keys and len(keys[0] or ()) != len(keys[1] or ()):
            old, new = (_keyed(name, side, names or {}) for side, names in zip((old, new), keys, strict=True))
    return old, new


def _item_keys(name: str, inputs: Mapping[str, Any]) -> dict[str, str] | None:
    """Return the key of each list item by its position; None if items have no keys or two items have the same key."""
    matches = [_ITEM.match(path, len(name)) for path in inputs if path.startswith(name)]
    positions = {match[1] for match in matches if match}
    for key in _ITEM_KEYS:
        names = {position: inputs.get(f"{name}[{position}].{key}") for position in positions}
        if all(isinstance(value, str) for value in names.values()) and len({*names.values()}) == len(positions):
            return {position: str(value) for position, value in names.items()}
    return None


def _keyed(name: str, inputs: Mapping[str, Any], keys: Mapping[str, str]) -> Mapping[str, Any]:
    keyed = {}
    for path, value in inputs.items():
        match = _ITEM.match(path, len(name)) if path.startswith(name) else None
        keyed[f"{name}[{keys[match[1]]}]{path[match.end() :]}" if match else path] = value
    return keyed


def _unhidden(value: Any) -> Any:
    """Return a value as reports show it, in which a secret has no digest."""
    if isinstance(value, list):
        return [_unhidden(item) for item in value]
    return HIDDEN if isinstance(value, str) and value.startswith(HIDDEN) else value


def _only_on_one_side(path: str, other: Mapping[str, Any]) -> str:
    """Return the outermost part of a path that the other side lacks: ``a`` or ``a[0]`` for the path ``a[0].b``."""
    while True:
        above = path[: path.rindex("[")] if path.endswith("]") else path.rpartition(".")[0]
        if not above or any(resource_types.covers(above, name) for name in other):
            return path
        path = above


def _followed(new: FlatResource, replaced: Container[ResourceKey]) -> Iterator[InputChange]:
    """Yield the inputs that force a replacement because another resource is replaced, even if their values are equal.

    A resource is replaced if its provider is replaced. If any part of an input comes from a replaced resource, the
    engine treats the whole input as unknown, so one path of each input is enough.
    """
    if new.provider and new.provider in replaced:
        yield _with_replaced(new, "provider", new.provider)
    for name, sources in new.inputs_from.items():
        source = next((key for key in sources if key in replaced), None)
        if source is None:
            continue
        forcing = [
            path
            for path in _paths_below(name, new)
            if resource_types.forces_replacement(new.type, path, also=new.replacing)
        ]
        if forcing:
            path = next((path for path in forcing if new.inputs[path] == LATER), forcing[0])
            yield _with_replaced(new, path, source)


def _with_replaced(new: FlatResource, path: str, source: ResourceKey) -> InputChange:
    """Return the change of an input that refers to a replaced resource and therefore forces a replacement."""
    effect = effect_of_replacement(new.type)
    return InputChange(path=path, old=source[1], new=REPLACED_SOURCE, forces=True, effect=effect)
