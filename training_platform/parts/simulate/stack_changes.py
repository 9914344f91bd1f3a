"""Single changes of stack files that may shorten waits or lower costs: limits, quotas, reservations and new shares."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from training_platform.config.expansion import Flavor
from training_platform.config.lent_quota import unpromised
from training_platform.config.model.environment import Environment
from training_platform.config.model.queues import Share
from training_platform.config.reading.editing import with_entry, with_number
from training_platform.config.workspace import Workspace

Texts = Mapping[str, str]
"""Texts of stack files, keyed by file name."""
_TEAM: Final = ("config", "training-platform:team")
_ENVIRONMENT: Final = ("config", "training-platform:environment")


class Holding(NamedTuple):
    """A team's share of a flavor in a cluster, with its stack file."""

    file: str
    team: str
    cluster: str
    flavor: Flavor
    share: Share

    def with_number(self, texts: Texts, field_name: str, number: int) -> dict[str, str]:
        """Return the file with another number in a field of the share."""
        path = (*_TEAM, "shares", self.cluster, self.flavor.name, field_name)
        return {self.file: with_number(texts[self.file], self.file, path, number)}

    def with_quota(self, texts: Texts, quota: int) -> dict[str, str]:
        """Return the file with another nominal quota for the share."""
        return self.with_number(texts, "nominal_quota", quota)


@dataclass(frozen=True, kw_only=True)
class SingleChanges:
    """Iterates over single changes of an environment's stack files. Each change consists of the files' new texts.

    ``texts`` contains the texts of all files of the ``workspace``. ``reservations`` contains, for each cluster, the
    pools whose size may change, with the maximum number of machines. Only ``gaining`` teams get more quota or a new
    share. The shares of ``fixed`` teams are not changed.
    """

    workspace: Workspace
    texts: Texts
    environment: str
    reservations: Mapping[str, Mapping[str, int]]
    gaining: Collection[str]
    fixed: Collection[str]

    def __iter__(self) -> Iterator[Texts]:
        """Yield the changes for each flavor of each cluster."""
        unpromised_quota = unpromised(self.workspace, self.environment)
        for cluster in environment_spec(self.workspace, self.environment).clusters:
            for flavor in self.workspace.flavors(self.environment, cluster).values():
                free = unpromised_quota.get(cluster, {}).get(flavor.name, 0)
                yield from self._of_flavor(cluster, flavor, free)

    def _of_flavor(self, cluster: str, flavor: Flavor, free: int) -> Iterator[Texts]:
        holdings = self._holdings(cluster, flavor)
        total = sum(holding.share.nominal_quota for holding in holdings)
        changeable = [holding for holding in holdings if holding.team not in self.fixed]
        for holding in changeable:
            yield from self._raised_limits(holding, total)
            yield from self._reservation_sizes(holding)
            if holding.team in self.gaining:
                other_holdings = [other for other in changeable if other is not holding]
                yield from self._raised_quotas(holding, other_holdings, free)
        if free and flavor.capacity != "reservation":
            yield from self._new_shares(cluster, flavor, free)

    def _holdings(self, cluster: str, flavor: Flavor) -> list[Holding]:
        """Return each team's share of a flavor in a cluster."""
        holdings = []
        for stack, team, _ in self.workspace.teams():
            share = team.shares.get(cluster, {}).get(flavor.name)
            if team.environment == self.environment and share:
                holdings.append(
                    Holding(file=stack.source.file, team=team.name, cluster=cluster, flavor=flavor, share=share)
                )
        return holdings

    def _raised_limits(self, holding: Holding, total: int) -> Iterator[Texts]:
        """Yield changes that raise one limit until it no longer restricts anything. ``total`` is all teams' quota."""
        share = holding.share
        other_quota = total - share.nominal_quota
        if share.borrowing_limit is not None and share.borrowing_limit < other_quota:
            yield holding.with_number(self.texts, "borrowing_limit", other_quota)
        if share.lending_limit is not None and share.lending_limit < share.nominal_quota:
            yield holding.with_number(self.texts, "lending_limit", share.nominal_quota)

    def _raised_quotas(self, holding: Holding, other_holdings: Iterable[Holding], free: int) -> Iterator[Texts]:
        """Yield more quota for a team, taken from another team or from the unpromised (``free``) quota."""
        flavor = holding.flavor
        unit = flavor.chips_per_slice
        quota = holding.share.nominal_quota
        for other in other_holdings:
            available = other.share.nominal_quota
            for amount in sorted({unit, flavor.in_whole_slices(available // 2), available}):
                if 0 < amount <= available:
                    raised = holding.with_quota(self.texts, quota + amount)
                    lowered = other.with_quota({**self.texts, **raised}, available - amount)
                    yield raised | lowered
        for amount in sorted({unit, free}):
            if 0 < amount <= free:
                yield holding.with_quota(self.texts, quota + amount)

    def _new_shares(self, cluster: str, flavor: Flavor, free: int) -> Iterator[Texts]:
        """Yield changes that give a gaining team a new share, of a flavor with an accelerator that it uses already."""
        flavors = self.workspace.flavors(self.environment, cluster)
        for stack, team, _ in self.workspace.teams():
            if team.environment != self.environment or team.name not in self.gaining:
                continue
            shares = team.shares.get(cluster, {})
            accelerators = {flavors[name].accelerator.name for name in shares if name in flavors}
            if flavor.accelerator.name in accelerators and flavor.name not in shares:
                file = stack.source.file
                entry = f"{flavor.name}: {{nominal_quota: {free}}}"
                yield {file: with_entry(self.texts[file], file, (*_TEAM, "shares", cluster), [entry])}

    def _reservation_sizes(self, holding: Holding) -> Iterator[Texts]:
        """Yield changes of a reservation's size. The team loses the difference, or gets it if it is a gaining team."""
        file = self.workspace.stacks[self.environment].source.file
        cluster = holding.cluster
        for pool in holding.flavor.pools:
            max_size = self.reservations.get(cluster, {}).get(pool.name, 0)
            if pool.accelerator.kind == "tpu":
                size_field = "slices"
                minimum_field = "min_slices"
                unit = pool.machine.chips * pool.hosts
            else:
                size_field = "max_nodes"
                minimum_field = "min_nodes"
                unit = pool.machine.chips
            path = (*_ENVIRONMENT, "clusters", cluster, "node_pools", pool.name)
            current = int(getattr(pool.spec, size_field))
            minimum = int(getattr(pool.spec, minimum_field) or 0)
            has_minimum = minimum_field in pool.spec.model_fields_set
            for size in sorted({current - 1, current // 2, current + 1, current * 2, max_size} - {current}):
                quota = holding.share.nominal_quota + (size - current) * unit
                may_change = size < current or holding.team in self.gaining
                if not 1 <= size <= max_size or quota < 0 or not may_change:
                    continue
                text = with_number(self.texts[file], file, (*path, size_field), size)
                if has_minimum and (minimum == current or minimum > size):
                    text = with_number(text, file, (*path, minimum_field), size)
                yield {file: text, **holding.with_quota(self.texts, quota)}


def environment_spec(workspace: Workspace, name: str) -> Environment:
    """Return an environment from a workspace that has no errors."""
    spec = workspace.stacks[name].environment
    assert spec is not None
    return spec


def differences(before: Workspace, after: Workspace, environment: str) -> Iterator[str]:
    """Yield sentences about the numbers that differ between two versions of the stack files."""
    previous_numbers = _numbers(before, environment)
    for subject, numbers in _numbers(after, environment).items():
        if subject not in previous_numbers:
            yield f"{subject}: {numbers['']}, a new share"
            continue
        for verb, number in numbers.items():
            previous = previous_numbers[subject][verb]
            if number != previous:
                yield f"{subject}: {verb}{number}, not {previous}"


def _numbers(workspace: Workspace, environment: str) -> dict[str, dict[str, int | None]]:
    """Return the numbers that a change can modify, keyed by what they belong to and by the words before them."""
    numbers: dict[str, dict[str, int | None]] = {}
    for cluster, section in environment_spec(workspace, environment).clusters.items():
        for name, pool in section.node_pools.items():
            for field_name in ("max_nodes", "slices"):
                numbers[f"{field_name} of {name} in {cluster}"] = {"": getattr(pool, field_name)}
    for _, team, _ in workspace.teams():
        if team.environment != environment:
            continue
        for cluster, shares in team.shares.items():
            for flavor, share in shares.items():
                numbers[f"{team.name}'s {flavor} in {cluster}"] = {
                    "": share.nominal_quota,
                    "may borrow ": share.borrowing_limit,
                    "lends ": share.lending_limit,
                }
    return numbers
