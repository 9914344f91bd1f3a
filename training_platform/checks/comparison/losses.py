"""The losses that a change causes: what is lost, who loses it, and the line that causes it.

A cause is a field of a stack file with its new value. One line may cause many resources in several stacks to be
replaced. ``acts`` groups the losses that have the same cause.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from training_platform.checks.change_report import (
    CapacityChange,
    Comparison,
    InputChange,
    ResourceChange,
    StackChange,
)
from training_platform.checks.comparison.acknowledged_values import AcknowledgedValue
from training_platform.checks.comparison.changed_fields import value_in_model, written
from training_platform.checks.comparison.changes import REPLACED_SOURCE
from training_platform.checks.comparison.deciding_fields import Cause, DecidingFields, cause_of
from training_platform.checks.comparison.effects import effects_of_field, kind_name, type_rank
from training_platform.checks.effect_kinds import Effect, EffectKind
from training_platform.config.expansion import Flavor
from training_platform.config.model.stack import Stack
from training_platform.config.model.team import Team
from training_platform.config.own_prices import FILE as PRICES
from training_platform.config.reading.finding import Path, dotted
from training_platform.config.reading.section import enumeration, listed
from training_platform.config.workspace import Workspace
from training_platform.resources.resource_types import CLUSTER, KUBERNETES, NAMESPACE, NODE_POOL
from training_platform.resources.stack_resource import ResourceKey
from training_platform.rules.foreign_access import kept_foreign_grants

_ALSO_ADDED: frozenset[EffectKind] = frozenset(("grants", "revokes", "opens"))
_MOST_PEOPLE = 4  # that a subject names
OF_FILE = -1
"""The rank of things that the stack file itself shows, such as a team's shares."""
_RETIRE = "mark the stack as retired, so that the pipeline destroys it: docs/lifecycle.md"


@dataclass(frozen=True, kw_only=True, order=True)
class LostSubject:
    """A thing that a change affects, such as a bucket. Reports list those of the same name once, with their number."""

    rank: int = 0
    kind: str = ""
    name: str
    stack: str = ""
    size: str = ""

    def text(self, count: int) -> str:
        """Return the noun for this thing, or for ``count`` of them."""
        words = (self.kind, self.name, f"of {self.stack}" if self.stack else "")
        size = self.size
        if count > 1:
            size = f"{count}, each {size}" if size else str(count)
        return " ".join(word for word in words if word) + (f" ({size})" if size else "")


@dataclass(frozen=True, kw_only=True)
class Loss:
    """One consequence of a change for one thing in a stack, such as a bucket, and what changes in the plan for it.

    The first cause is the decisive one. If a team loses something because of a removal in its environment,
    ``own_cause`` is the field of the team's own file. ``resource`` and ``input`` are None if nothing changes in the
    plan.
    """

    stack: str
    causes: tuple[Cause, ...]
    effect: Effect
    subject: LostSubject
    resource: ResourceChange | None = None
    input: InputChange | None = None
    own_cause: Cause | None = None


@dataclass(frozen=True, kw_only=True)
class LossFinder:
    """Finds the losses that a comparison shows, using the files of both sides.

    An increase in a stack's cost is a loss if it exceeds ``most_more`` USD per hour, the lower of both sides' limits.
    """

    comparison: Comparison
    head: Workspace
    base: Workspace
    fields: DecidingFields
    most_more: float | None = None

    def losses(self) -> Iterator[Loss]:
        """Yield everything that the change does to somebody, whether or not it is a loss, each with its cause."""
        for change in self.comparison.stacks:
            if change.kind == "left":
                yield self._left_behind(change)
            elif change.kind != "removed":
                containers = self._containers(change)
                for resource in change.resources:
                    if not self._goes_with_another(change, resource, containers):
                        yield from self._of_resource(change, resource)
                yield from self._of_fields(change)
                yield from self._of_foreign_grants(change)
            yield from self._of_cost(change)
        for line in self.comparison.capacity:
            yield from self._of_capacity(line)

    def _left_behind(self, change: StackChange) -> Loss:
        stack = change.base
        says = "its resources are not destroyed, and Google Cloud continues to bill them"
        if change.most_usd.before:
            says += f", up to ${change.most_usd.before:,.2f} per hour"
        if promised := _promised(stack.team if stack else None):
            says += f"; its queues still have {promised}"
        first = _RETIRE
        if stack and stack.retired:
            first = f"keep the file: from {stack.retired.since} on the pipeline needs it to destroy the stack"
        if new := [other.name for other in self.comparison.stacks if other.kind == "added"]:
            first += (
                f"; or, if {enumeration(new)} is the same stack under a new name, write `renamed_from: "
                f"{change.name}` there"
            )
        subject = LostSubject(name=f"{change.name} is still deployed")
        effect = Effect("stack", says, first=first)
        return Loss(stack=change.name, causes=(Cause(stack=change.name),), effect=effect, subject=subject)

    def _of_resource(self, change: StackChange, resource: ResourceChange) -> Iterator[Loss]:
        if not resource.inputs:
            if resource.effect.kind == "none" or (resource.kind == "added" and resource.effect.kind not in _ALSO_ADDED):
                return
            cause = self.fields.cause(change, resource, None)
            yield self._loss(change, resource, (cause,), resource.effect, None)
            return
        if resource.forcing:
            row = resource.forcing[0]
            granted_again = row.new == REPLACED_SOURCE and row.effect.kind == "revokes"  # on the replacement
            if row.effect.kind != "none" and not granted_again:
                yield self._loss(change, resource, self.fields.causes(change, resource), row.effect, row)
            return
        for row in resource.inputs:
            if row.effect.kind != "none":
                cause = self.fields.cause(change, resource, row)
                yield self._loss(change, resource, (cause,), row.effect, row)

    def _loss(
        self,
        change: StackChange,
        resource: ResourceChange,
        causes: tuple[Cause, ...],
        effect: Effect,
        changed: InputChange | None,
    ) -> Loss:
        """Return the loss of a resource. If a team only follows a removal in its environment, that is the cause."""
        if change.kind == "added" and effect.kind == "grants":
            causes = (Cause(stack=change.name, after=AcknowledgedValue("added")),)
        own_cause = None
        removal = self._removal_in_environment(change, resource, causes[0])
        if removal is not None:
            own_cause = causes[0]
            causes = (removal,)
        return Loss(
            stack=change.name,
            causes=causes,
            effect=effect,
            subject=self._subject(change, resource),
            resource=resource,
            input=changed,
            own_cause=own_cause,
        )

    def _removal_in_environment(self, change: StackChange, resource: ResourceChange, cause: Cause) -> Cause | None:
        """Return the removed field of the environment that causes a team's loss, or None.

        A share is lost if its cluster or the node pools of its flavor are removed, and a directory if its Filestore
        instance is removed.
        """
        new = change.head
        old = change.base
        if new is None or old is None or old.team is None or cause.stack != new.name or resource.at_end:
            return None
        home = self.head.stacks.get(new.environment_name)
        old_home = self.base.stacks.get(old.environment_name)
        if home is None or old_home is None or home.environment is None or old_home.environment is None:
            return None
        section = self.fields.section(old.team, resource.name)
        gone = self._removed_part(old.team, section, home, old_home)
        for row in self.fields.changed(home, old_home):
            if gone and row.now is None and row.path == gone[: len(row.path)]:
                return cause_of(home, row)
        flavor = str(cause.path[2]) if cause.path[:1] == ("shares",) and len(cause.path) > 2 else ""
        return self._removal_of_flavor(str(section[1]), flavor, home, old_home) if flavor else None

    def _removed_part(self, team: Team, section: Path, home: Stack, old_home: Stack) -> Path:
        """Return the path of the removed section of the environment that a team's section needs, or ()."""
        environment = home.environment
        former = old_home.environment
        if environment is None or former is None or len(section) < 2:
            return ()
        kind = section[0]
        name = str(section[1])
        if kind == "shares" and name in _missing(former.clusters, environment.clusters):
            return ("clusters", name)
        directory = team.directories.get(name) if kind == "directories" else None
        if directory and directory.filestore in _missing(former.filestore, environment.filestore):
            return ("filestore", directory.filestore)
        return ()

    def _removal_of_flavor(self, cluster: str, name: str, home: Stack, old_home: Stack) -> Cause | None:
        """Return the field of a node pool that causes a flavor to be lost; None if the flavor is not lost.

        If this field did not change, the environment would keep the flavor.
        """
        if home.environment is None or cluster not in home.environment.clusters:
            return None
        flavor = self.base.flavors(old_home.name, cluster).get(name)
        if flavor is None or name in self.head.flavors(home.name, cluster):
            return None
        pools = {("clusters", cluster, "node_pools", pool.name) for pool in flavor.pools}
        of_pools = [row for row in self.fields.changed(home, old_home) if row.path[:4] in pools]
        for row in of_pools:
            trial = self.fields.trials.with_old_value(row, home)
            if trial and name in trial.flavors(home.name, cluster):
                return cause_of(home, row)
        return cause_of(home, of_pools[0]) if of_pools else None

    def _subject(self, change: StackChange, resource: ResourceChange) -> LostSubject:
        """Return how reports name a resource: its kind, the key of its section, its size and its stack."""
        stack = change.base or change.head
        path = self.fields.section(stack.section, resource.name) if stack and stack.section else ()
        name = resource.name
        if path[:1] == ("shares",) and len(path) > 1:
            name = f"in {path[1]}"
        elif path and path[:1] != ("shares",):
            name = str(path[-1])
            if isinstance(path[-1], int) and stack:
                name = str(written(stack, path[:-1])[path[-1]])
            if path[0] == "clusters" and len(path) > 2:
                name += f" in {path[1]}"
        without_chips = resource.type == NODE_POOL and "node_pools" not in path
        rank = 2 * type_rank(resource.type) + without_chips
        return LostSubject(rank=rank, kind=kind_name(resource.type), name=name, stack=change.name, size=resource.size)

    def _of_fields(self, change: StackChange) -> Iterator[Loss]:
        new = change.head
        old = change.base
        if new is None or old is None or new.section is None or old.section is None:
            return
        section = "environment" if new.environment else "team"
        for row in self.fields.changed(new, old):
            path = row.path
            if path[-1:] == ("lending_limit",) and not self._borrowed(new, path):
                continue
            was = value_in_model(old, path, row.was)
            now = value_in_model(new, path, row.now)
            for effect in effects_of_field(section, dotted(path), was, now):
                who = _people(was, now) if effect.kind == "grants" else _people(now, was)
                name = new.team.name if new.team else new.name
                subject = LostSubject(rank=OF_FILE, kind=f"{who}{section}", name=name)
                if len(path) > 1 and path[0] != "retired":
                    subject = LostSubject(rank=OF_FILE, kind=f"{who}{dotted(path[:-1])}", name="", stack=new.name)
                yield Loss(stack=new.name, causes=(cause_of(new, row),), effect=effect, subject=subject)

    def _borrowed(self, stack: Stack, path: Path) -> bool:
        """Return True if another team may borrow the capacity that a share lends."""
        cluster, flavor = map(str, path[-3:-1])
        for other, team, _ in self.base.teams():
            share = team.shares.get(cluster, {}).get(flavor)
            beside = team.environment == stack.environment_name and other.name != stack.name
            if beside and share and share.borrowing_limit != 0:
                return True
        return False

    def _of_foreign_grants(self, change: StackChange) -> Iterator[Loss]:
        """Yield the roles that a change grants to one team on something that belongs to another team."""
        new = {(row.type, row.name): row for row in change.resources if _gives(row)}
        stack = change.head
        if not new or stack is None:
            return
        for grant in kept_foreign_grants(stack.name, self.head):
            if resource := new.get(grant.planned.key):
                says = f"{grant.principal} of {grant.team} gets {grant.role} on {grant.resource} of {grant.owner}"
                effect = Effect("opens", says, first=f"agree on the grant with the people of {grant.owner}")
                yield Loss(
                    stack=self._stack_of_team(grant.owner, stack) or stack.name,
                    causes=(self.fields.cause(change, resource, None),),
                    effect=effect,
                    subject=LostSubject(rank=OF_FILE, name=grant.resource, stack=grant.owner),
                    input=next(iter(resource.inputs), None),
                )

    def _stack_of_team(self, name: str, beside: Stack) -> str:
        """Return the stack of a team in the same environment as ``beside``; empty if it has none."""
        for stack, team, _ in self.head.teams():
            if team.name == name and team.environment == beside.environment_name:
                return stack.name
        return ""

    def _of_cost(self, change: StackChange) -> Iterator[Loss]:
        more = change.most_usd.delta
        if self.most_more is None or more is None or more <= self.most_more:
            return
        file = f"{PRICES}, here or in {self.comparison.ref},"
        says = f"costs up to ${more:,.2f} per hour more, and {file} allows ${self.most_more:,.2f} more"
        effect = Effect("cost", says, first="agree on the cost with whoever pays")
        cause = Cause(stack=change.name, after=AcknowledgedValue(f"{more:.2f}"))
        yield Loss(stack=change.name, causes=(cause,), effect=effect, subject=LostSubject(name=change.name))

    def _of_capacity(self, line: CapacityChange) -> Iterator[Loss]:
        """Yield a loss if node pools shrink below the amount promised to teams, at the line that shrinks them."""
        before, after = line.capacity
        promised = line.promised.after or 0
        stack = self.head.stacks.get(line.environment)
        if before is None or after is None or after >= before or after >= promised or stack is None:
            return
        if after == 0:
            return  # without a pool there is no such flavor, which is an error at each share
        says = f"its pools shrink from {before:,.0f} to {after:,.0f}, but teams are promised {promised:,.0f}"
        effect = Effect("promises", says, first="lower the shares of teams first, or keep the machines")
        subject = LostSubject(name=f"{line.flavor} in {line.cluster}", stack=line.environment)
        cause = self._shrinking_field(line, stack, after)
        yield Loss(stack=stack.name, causes=(cause,), effect=effect, subject=subject)

    def _shrinking_field(self, line: CapacityChange, stack: Stack, after: float) -> Cause:
        """Return the node pool's field that makes the flavor smaller, or all pools' section if no plan shows it."""
        section: Path = ("clusters", line.cluster, "node_pools")
        old = self.base.stacks.get(line.environment)
        changed = self.fields.changed(stack, old, section) if old else ()
        flavors = [_flavor(side, line) for side in (self.base, self.head)]
        pools = {pool.name for flavor in flavors if flavor for pool in flavor.pools}
        for row in changed:
            if row.path[3:4] and row.path[3] not in pools:
                continue
            trial = self.fields.trials.with_old_value(row, stack)
            flavor = _flavor(trial, line) if trial else None
            if trial is None or (flavor and flavor.queue_chips > after):
                return cause_of(stack, row)
        return Cause(stack=stack.name, path=section)

    def _containers(self, change: StackChange) -> LostContainers:
        """Return the lost resources of a stack, and which of them contain other resources."""
        lost = [resource for resource in change.resources if resource.kind in ("removed", "replaced")]
        stack = change.base or change.head
        sections: set[tuple[str, Path]] = set()
        if stack and stack.section:
            for resource in lost:
                if resource.type in (CLUSTER, NAMESPACE, NODE_POOL):
                    sections.add((resource.type, self.fields.section(stack.section, resource.name)))
        return LostContainers(frozenset(resource.key for resource in lost), frozenset(sections))

    def _goes_with_another(self, change: StackChange, resource: ResourceChange, lost: LostContainers) -> bool:
        """Return True if a resource is lost with its cluster, namespace or node pool, which is reported instead.

        GPU networks belong to the cluster's pools that use them. A plan shows which cluster and namespace contain an
        object. A deployed state does not show this, so the section of the object is used instead.
        """
        stack = change.base or change.head
        if resource.key not in lost.keys or stack is None or stack.section is None:
            return False
        section = self.fields.section(stack.section, resource.name)
        if section[2:3] == ("gpu_networks",):
            return any(kind == NODE_POOL and pool[:2] == section[:2] for kind, pool in lost.sections)
        if resource.within or not resource.type.startswith(KUBERNETES):
            return not lost.keys.isdisjoint(resource.within)
        namespaced = resource.type != NAMESPACE and not resource.type.endswith(_CLUSTER_SCOPED)
        return (namespaced and (NAMESPACE, section) in lost.sections) or (CLUSTER, section[:2]) in lost.sections


class LostContainers(NamedTuple):
    """The removed or replaced resources of a stack, and the type and section of those that contain other resources."""

    keys: frozenset[ResourceKey]
    sections: frozenset[tuple[str, Path]]


_CLUSTER_SCOPED = (
    ":ClusterQueue", ":ClusterRole", ":ClusterRoleBinding", ":Cohort", ":PersistentVolume", ":StorageClass",
)  # fmt: skip
"""The last parts of resource types that do not belong to a namespace."""


def _missing(before: Mapping[str, Any], after: Mapping[str, Any]) -> set[str]:
    return before.keys() - after.keys()


def _gives(resource: ResourceChange) -> bool:
    """Return True if a resource grants access that it did not grant before."""
    if not resource.inputs:
        return resource.kind == "added"
    forcing = any(row.new != REPLACED_SOURCE for row in resource.forcing)
    return any(row.effect.kind == "grants" for row in resource.inputs) or forcing


def _flavor(workspace: Workspace, line: CapacityChange) -> Flavor | None:
    """Return the flavor of a cluster, or None if it does not exist."""
    stack = workspace.stacks.get(line.environment)
    if stack is None or stack.environment is None or line.cluster not in stack.environment.clusters:
        return None
    return workspace.flavors(line.environment, line.cluster).get(line.flavor)


def _people(without: Any, having: Any) -> str:
    """Return the people who are in ``having`` but not in ``without``, as the beginning of a sentence; empty if none."""
    before, after = (side if isinstance(side, list) else [] for side in (without, having))
    added = [item for item in after if item not in before and isinstance(item, str) and "@" in item]
    people = [item.rpartition(":")[2] for item in added]
    return f"{listed(people, _MOST_PEOPLE)} in " if people else ""


def _promised(team: Team | None) -> str:
    """Return the nominal quotas of a team's queues, keyed by flavor."""
    amounts: dict[str, int] = {}
    clusters = team.shares.values() if team else ()
    for shares in clusters:
        for flavor, share in shares.items():
            amounts[flavor] = amounts.get(flavor, 0) + share.nominal_quota
    return enumeration([f"{amount} {flavor}" for flavor, amount in amounts.items()])
