"""Three ledgers: project quotas that stacks use, pool capacity that teams use, Filestore that directories use."""

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


FlavorKey = tuple[str, str, str]
"""Environment, cluster and flavor."""


class Held(NamedTuple):
    """How much of a limit or a capacity is used by one holder, such as a pool or a team."""

    holder: Holder
    amount: float


@dataclass(frozen=True, kw_only=True)
class Line:
    """One limit of a project, and everything that uses a part of it (its holders), the largest part first.

    - ``limit`` is ``inf`` if the project has no limit. It is None if there is no snapshot or if the snapshot does
      not list the quota id.
    - ``unread`` means that the limits were not read from Google Cloud yet.
    - ``requested`` is the limit that a stack file requests from Google Cloud. It does not count as the limit
      until a snapshot contains it.
    """

    key: QuotaKey
    unit: str
    limit: float | None
    holders: tuple[Held, ...]
    requested: float | None = None
    unread: bool = False

    @property
    def used(self) -> float:
        """The sum of what all holders use."""
        return sum(held.amount for held in self.holders)

    @property
    def disputed(self) -> bool:
        """Return True if the limit is exceeded only because of charges on which Google's pages disagree."""
        certain = sum(held.amount for held in self.holders if not held.holder.disputed)
        return self.limit is not None and certain <= self.limit < self.used

    @property
    def headroom(self) -> float | None:
        """The unused amount, negative if holders need more than the limit; None if the limit is unknown."""
        return None if self.limit is None else self.limit - self.used

    @property
    def open_request(self) -> float | None:
        """The requested limit if it is higher than the current limit, otherwise None."""
        granted = self.limit is not None and self.requested is not None and self.requested <= self.limit
        return None if granted else self.requested

    @property
    def over(self) -> bool:
        """Return True if the holders need more than the limit."""
        return self.limit is not None and self.used > self.limit


@dataclass(frozen=True, kw_only=True)
class ProjectLedger:
    """All limits of one project that stacks use, sorted by service, quota id and location."""

    project: str
    snapshot: Snapshot | None
    lines: tuple[Line, ...]

    @property
    def taken(self) -> date | None:
        """The day on which the limits were read, or None."""
        return None if self.snapshot is None or self.snapshot.placeholder else self.snapshot.taken

    @property
    def stacks(self) -> tuple[str, ...]:
        """The stacks that use the project, sorted."""
        return tuple(sorted({held.holder.stack for line in self.lines for held in line.holders}))


@dataclass(frozen=True, kw_only=True)
class _Shared(ABC):
    """A capacity of an environment and the parts of it that are promised to teams and others."""

    environment: str
    shares: tuple[Held, ...]

    @property
    @abstractmethod
    def capacity(self) -> float:
        """The amount that can be promised."""

    @property
    def promised(self) -> float:
        """The promised amount."""
        return sum(share.amount for share in self.shares)

    @property
    def headroom(self) -> float:
        """The amount that is not promised, negative if too much is promised."""
        return self.capacity - self.promised

    @property
    def over(self) -> bool:
        """Return True if more than the capacity is promised."""
        return self.promised > self.capacity


@dataclass(frozen=True, kw_only=True)
class CapacityLine(_Shared):
    """The chips or GPUs of one flavor in one cluster: the maximum of its pools, and the quotas of teams and cohorts."""

    cluster: str
    flavor: Flavor
    lends: bool = False  # whether all may borrow the unpromised amount
    uncounted: bool = False  # whether an unreadable file may promise a part of it

    @property
    def resource(self) -> str:
        """The Kubernetes extended resource that Kueue counts."""
        return self.flavor.accelerator.resource

    @property
    def unit(self) -> str:
        """The unit in which the amounts are counted."""
        return "chips" if self.flavor.accelerator.kind == "tpu" else "GPUs"

    @property
    def unpromised(self) -> int:
        """The amount in whole slices that is promised to neither a team nor a cohort; 0 if unknown."""
        return 0 if self.uncounted else self.flavor.in_whole_slices(int(self.headroom))

    @property
    def lent(self) -> int:
        """The amount that is promised to no team and that all teams may borrow."""
        return self.unpromised if self.lends else 0

    @property
    def capacity(self) -> int:
        """Chips or GPUs in whole slices, without those that notebooks may use. A pool has only whole slices."""
        return self.flavor.queue_chips


@dataclass(frozen=True, kw_only=True)
class FileLine(_Shared):
    """A Filestore instance, in GiB: its capacity, and the amounts promised to directories and home directories."""

    instance: str
    spec: FilestoreSpec

    @property
    def capacity(self) -> float:
        """The capacity in GiB."""
        return self.spec.capacity_gib

    @property
    def tier(self) -> FilestoreTier | None:
        """The service tier, or None if the catalogue does not have it."""
        return FILESTORE_TIERS.get(self.spec.tier)

    @property
    def custom(self) -> bool:
        """Return True if IOPS are set independently of the capacity."""
        return self.spec.iops is not None or self.spec.iops_per_tib is not None

    @property
    def grows_to(self) -> int | None:
        """The maximum capacity of the instance's band, or None if the capacity is in no band."""
        band = self.tier.band_of(self.spec.capacity_gib) if self.tier else None
        return band.high_gib if band else None

    @property
    def throughput(self) -> Throughput | None:
        """The maximum expected performance, or None without a source."""
        return self.tier.throughput(self.spec.capacity_gib) if self.tier and not self.custom else None


@dataclass(frozen=True, kw_only=True)
class ClaimLine(FileLine):
    """Instances that claims on a StorageClass create while a cluster runs, with ``bound`` GiB in total."""

    bound: int

    @property
    def capacity(self) -> float:
        """The maximum of all claims together, in GiB."""
        return self.bound

    @property
    def grows_to(self) -> None:
        """None, since each claim creates its own instance."""

    @property
    def throughput(self) -> None:
        """None, since each instance has its own performance."""


def project_ledgers(
    charges: Iterable[Charge], snapshots: Snapshots, requests: Mapping[QuotaKey, float] | None = None
) -> dict[str, ProjectLedger]:
    """Return the ledger of every project that is charged. ``requests`` are the limits that stack files request."""
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
    """Return a line for every flavor of every environment, with clusters in the order of the file."""
    shares = shares_by_flavor(workspace)
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


def shares_by_flavor(workspace: Workspace) -> defaultdict[FlavorKey, list[Held]]:
    """Return the nominal quotas of teams and cohorts, keyed by flavor, also for flavors that no pool provides."""
    # Stack, name and path of each team and cohort, with its shares by cluster and flavor.
    promises: list[tuple[Stack, str, Path, Mapping[str, Mapping[str, Share]]]] = [
        *((stack, team.name, ("shares",), team.shares) for stack, team, _ in workspace.teams()),
        *(
            (stack, f"cohort {name}", ("cohorts", name, "shares"), cohort.shares)
            for stack, environment in workspace.environments()
            for name, cohort in environment.cohorts.items()
        ),
    ]
    shares: defaultdict[FlavorKey, list[Held]] = defaultdict(list)
    for stack, label, above, clusters in promises:
        for cluster, flavors in clusters.items():
            for flavor_name, share in flavors.items():
                path = (*above, cluster, flavor_name)
                holder = Holder(stack.name, path, label=label, field=(*path, "nominal_quota"), step=1, base=0)
                shares[stack.environment_name, cluster, flavor_name].append(Held(holder, share.nominal_quota))
    return shares


def file_ledger(workspace: Workspace) -> list[FileLine]:
    """Return a line for every Filestore instance, in the order of the files."""
    shares: dict[tuple[str, str], list[Held]] = defaultdict(list)
    for stack, environment in workspace.environments():
        for cluster, spec in environment.clusters.items():
            if spec.notebooks:
                path: Path = ("clusters", cluster, "notebooks")
                holder = Holder(
                    stack.name, path, label=f"homes of {cluster}", field=(*path, "home_gib"), step=1, base=1
                )
                shares[stack.name, spec.notebooks.filestore].append(Held(holder, spec.notebooks.home_gib))
    for stack, team, _ in workspace.teams():
        for name, directory in team.directories.items():
            path = ("directories", name)
            holder = Holder(stack.name, path, label=f"{team.name}/{name}", field=(*path, "size_gib"), step=1, base=1)
            shares[team.environment, directory.filestore].append(Held(holder, directory.size_gib))
    return [
        FileLine(environment=stack.name, instance=name, spec=spec, shares=_sorted(shares[stack.name, name]))
        for stack, environment in workspace.environments()
        for name, spec in environment.filestore.items()
    ] + [line for stack, environment in workspace.environments() for line in _claims(stack.name, environment)]


def _claims(stack: str, environment: Environment) -> Iterator[ClaimLine]:
    """Yield a line for every StorageClass of Filestore. Teams may not claim volumes of other classes."""
    for cluster, spec in environment.clusters.items():
        for key, storage in spec.storage_classes.items():
            path: Path = ("clusters", cluster, "storage_classes", key)
            teams = [
                (Holder(stack, path, label=team, field=(*path, "teams", team), step=1), gib)
                for team, gib in storage.teams.items()
            ]
            yield ClaimLine(
                environment=stack,
                instance=f"claims of {kubernetes_class(key)} in {cluster}",
                spec=FilestoreSpec(location=spec.location, tier=storage.tier, capacity_gib=most_gib(storage) or 1),
                bound=most_gib(storage),
                shares=_sorted(Held(*team) for team in teams),
            )


def _sorted(held: Iterable[Held]) -> tuple[Held, ...]:
    return tuple(sorted(held, key=lambda part: (-part.amount, *part.holder[:2])))  # stack and path
