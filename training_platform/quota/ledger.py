"""Three ledgers: what stacks ask of a project's quotas, teams of the pools' capacity, directories of Filestore."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, NamedTuple

from training_platform.catalog import FILESTORE_TIERS
from training_platform.catalog.types import FilestoreTier, Throughput
from training_platform.config.expansion import Flavor
from training_platform.config.model.environment import Environment
from training_platform.config.model.queues import Share
from training_platform.config.model.stack import Stack
from training_platform.config.model.storage import FilestoreSpec
from training_platform.config.reading.finding import Path
from training_platform.config.workspace import Workspace
from training_platform.quota.charges import Charge, Holder, QuotaKey
from training_platform.resources.filestore import kubernetes_class, most_gib

if TYPE_CHECKING:
    from training_platform.quota.snapshot import Snapshot, Snapshots


class Held(NamedTuple):
    """What one holder has of a line."""

    holder: Holder
    amount: float


@dataclass(frozen=True, kw_only=True)
class Line:
    """One limit of a project: who holds how much of it, largest first.

    ``limit`` is ``inf`` where the project has none, and None where the snapshot does not list the quota id or there
    is no snapshot; then it may be ``unread``, since Google Cloud was not asked yet. ``requested`` is what a stack file
    asks Google Cloud for: no limit until a snapshot shows it.
    """

    key: QuotaKey
    unit: str
    limit: float | None
    holders: tuple[Held, ...]
    requested: float | None = None
    unread: bool = False

    @property
    def used(self) -> float:
        """What all holders have together."""
        return sum(held.amount for held in self.holders)

    @property
    def headroom(self) -> float | None:
        """What is left, negative where too much is asked; None where the limit is not known."""
        return None if self.limit is None else self.limit - self.used

    @property
    def open_request(self) -> float | None:
        """What is requested beyond the limit; None where nothing is, or the snapshot shows it as granted."""
        granted = self.limit is not None and self.requested is not None and self.requested <= self.limit
        return None if granted else self.requested

    @property
    def over(self) -> bool:
        """Whether more is asked than the limit allows."""
        return self.limit is not None and self.used > self.limit


@dataclass(frozen=True, kw_only=True)
class ProjectLedger:
    """Every limit of one project that a stack draws on, in the order of service, quota id and place."""

    project: str
    snapshot: Snapshot | None
    lines: tuple[Line, ...]

    @property
    def taken(self) -> date | None:
        """The day on which the limits were read; None where they were not."""
        return None if self.snapshot is None or self.snapshot.placeholder else self.snapshot.taken

    @property
    def stacks(self) -> tuple[str, ...]:
        """The stacks that draw on the project, in order."""
        return tuple(sorted({held.holder.stack for line in self.lines for held in line.holders}))


@dataclass(frozen=True, kw_only=True)
class _Shared(ABC):
    """Something of an environment that teams and others are promised parts of."""

    environment: str
    shares: tuple[Held, ...]

    @property
    @abstractmethod
    def capacity(self) -> float:
        """What there is to promise."""

    @property
    def promised(self) -> float:
        """The sum of the shares."""
        return sum(share.amount for share in self.shares)

    @property
    def headroom(self) -> float:
        """What is not promised, negative where too much is."""
        return self.capacity - self.promised

    @property
    def over(self) -> bool:
        """Whether more is promised than there is."""
        return self.promised > self.capacity


@dataclass(frozen=True, kw_only=True)
class CapacityLine(_Shared):
    """Chips or GPUs of one flavor in one cluster: what its pools hold at most, and nominal quotas of teams, cohorts."""

    cluster: str
    flavor: Flavor
    lends: bool = False  # whether all may borrow what no team was promised
    uncounted: bool = False  # whether a file says nothing that may promise some of it

    @property
    def resource(self) -> str:
        """The Kubernetes extended resource that Kueue counts."""
        return self.flavor.accelerator.resource

    @property
    def unit(self) -> str:
        """What it counts."""
        return "chips" if self.flavor.accelerator.kind == "tpu" else "GPUs"

    @property
    def unpromised(self) -> int:
        """What neither a team nor a cohort was promised, in whole slices; 0 if unknown."""
        return 0 if self.uncounted else self.flavor.in_whole_slices(int(self.headroom))

    @property
    def lent(self) -> int:
        """What no team was promised and all may borrow."""
        return self.unpromised if self.lends else 0

    @property
    def capacity(self) -> int:
        """Chips or GPUs in whole slices, without what notebooks may take: a pool never holds part of one."""
        return self.flavor.queue_chips


@dataclass(frozen=True, kw_only=True)
class FileLine(_Shared):
    """A Filestore instance, in GiB: what it holds, and what directories and homes are promised of it."""

    instance: str
    spec: FilestoreSpec

    @property
    def capacity(self) -> float:
        """Its GiB."""
        return self.spec.capacity_gib

    @property
    def tier(self) -> FilestoreTier | None:
        """Its service tier, None where the catalogue does not know it."""
        return FILESTORE_TIERS.get(self.spec.tier)

    @property
    def custom(self) -> bool:
        """Whether its IOPS are set apart from capacity."""
        return self.spec.iops is not None or self.spec.iops_per_tib is not None

    @property
    def grows_to(self) -> int | None:
        """The most that it can become, which is its band's; None outside of all bands."""
        band = self.tier.band_of(self.spec.capacity_gib) if self.tier else None
        return band.high_gib if band else None

    @property
    def throughput(self) -> Throughput | None:
        """What it is expected to give at most, None where no source says so."""
        return self.tier.throughput(self.spec.capacity_gib) if self.tier and not self.custom else None


@dataclass(frozen=True, kw_only=True)
class ClaimLine(FileLine):
    """Instances that claims on a StorageClass make while a cluster runs, of ``bound`` GiB together."""

    bound: int

    @property
    def capacity(self) -> float:
        """The GiB that claims come to at most."""
        return self.bound

    @property
    def grows_to(self) -> None:
        """Nothing: each claim makes what it asks for."""

    @property
    def throughput(self) -> None:
        """Nothing: it is that of each instance."""


def project_ledgers(
    charges: Iterable[Charge], snapshots: Snapshots, requests: Mapping[QuotaKey, float] | None = None
) -> dict[str, ProjectLedger]:
    """Return a ledger for every project that is charged, by project; ``requests`` are those of stack files."""
    units: dict[QuotaKey, str] = {}
    holders: dict[QuotaKey, dict[tuple[object, ...], Held]] = defaultdict(dict)
    for keys, amount, unit, holder in charges:
        key = next((key for key in keys if snapshots.limit(key)), keys[0])
        units.setdefault(key, unit)
        who = holder[:3]  # stack, path and label
        before = holders[key].get(who)
        holders[key][who] = Held(holder, amount + before.amount if before else amount)
    lines: dict[str, list[Line]] = defaultdict(list)
    for key in sorted(holders):
        snapshot = snapshots.get(key.project)
        line = Line(
            key=key,
            unit=units[key],
            limit=snapshots.limit(key),
            holders=_sorted(holders[key].values()),
            requested=(requests or {}).get(key),
            unread=snapshot is not None and snapshot.placeholder,
        )
        lines[key.project].append(line)
    return {
        project: ProjectLedger(project=project, snapshot=snapshots.get(project), lines=tuple(of_project))
        for project, of_project in lines.items()
    }


def capacity_ledger(workspace: Workspace) -> list[CapacityLine]:
    """Return a line for every flavor of every environment, clusters in the order of the file."""
    # The stack, name and path of each team and cohort, with its shares by cluster and flavor.
    promises: list[tuple[Stack, str, Path, Mapping[str, Mapping[str, Share]]]] = [
        *((stack, team.name, ("shares",), team.shares) for stack, team, _ in workspace.teams()),
        *(
            (stack, f"cohort {name}", ("cohorts", name, "shares"), cohort.shares)
            for stack, environment in workspace.environments()
            for name, cohort in environment.cohorts.items()
        ),
    ]
    shares: dict[tuple[str, str, str], list[Held]] = defaultdict(list)
    for stack, label, above, clusters in promises:
        for cluster, flavors in clusters.items():
            for flavor_name, share in flavors.items():
                path = (*above, cluster, flavor_name)
                holder = Holder(stack.name, path, label, (*path, "nominal_quota"), 1, 0)
                shares[stack.environment_name, cluster, flavor_name].append(Held(holder, share.nominal_quota))
    lines: list[CapacityLine] = []
    for stack, environment in workspace.environments():
        for cluster in environment.clusters:
            for name, flavor in workspace.flavors(stack.name, cluster).items():
                line = CapacityLine(
                    environment=stack.name,
                    cluster=cluster,
                    flavor=flavor,
                    shares=_sorted(shares[stack.name, cluster, name]),
                    lends=environment.lend_unpromised,
                    uncounted=workspace.uncounted > 0,
                )
                lines.append(line)
    return lines


def file_ledger(workspace: Workspace) -> list[FileLine]:
    """Return a line for every Filestore instance, in the order of the files."""
    shares: dict[tuple[str, str], list[Held]] = defaultdict(list)
    for stack, environment in workspace.environments():
        for cluster, spec in environment.clusters.items():
            if spec.notebooks:
                path: Path = ("clusters", cluster, "notebooks")
                holder = Holder(stack.name, path, f"homes of {cluster}", (*path, "home_gib"), 1, 1)
                shares[stack.name, spec.notebooks.filestore].append(Held(holder, spec.notebooks.home_gib))
    for stack, team, _ in workspace.teams():
        for name, directory in team.directories.items():
            path = ("directories", name)
            holder = Holder(stack.name, path, f"{team.name}/{name}", (*path, "size_gib"), 1, 1)
            shares[team.environment, directory.filestore].append(Held(holder, directory.size_gib))
    return [
        FileLine(environment=stack.name, instance=name, spec=spec, shares=_sorted(shares[stack.name, name]))
        for stack, environment in workspace.environments()
        for name, spec in environment.filestore.items()
    ] + [line for stack, environment in workspace.environments() for line in _claims(stack.name, environment)]


def _claims(stack: str, environment: Environment) -> Iterator[ClaimLine]:
    """Yield a line for every StorageClass of Filestore: teams may claim volumes of no other class."""
    for cluster, spec in environment.clusters.items():
        for key, storage in spec.storage_classes.items():
            path: Path = ("clusters", cluster, "storage_classes", key)
            teams = [(Holder(stack, path, team, (*path, "teams", team), 1), gib) for team, gib in storage.teams.items()]
            yield ClaimLine(
                environment=stack,
                instance=f"claims of {kubernetes_class(key)} in {cluster}",
                spec=FilestoreSpec(location=spec.location, tier=storage.tier, capacity_gib=most_gib(storage) or 1),
                bound=most_gib(storage),
                shares=_sorted(Held(*team) for team in teams),
            )


def _sorted(held: Iterable[Held]) -> tuple[Held, ...]:
    return tuple(sorted(held, key=lambda part: (-part.amount, *part.holder[:2])))  # stack and path
