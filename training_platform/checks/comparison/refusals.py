"""Changes that Kueue or Google Cloud refuses, or that want an order of deployment, by the files of both sides.

Which teams of an environment are deployed before it, and which after, follows from what they need of it. What a team
comes to need is deployed before the team. What a team lets go is removed after the team was deployed: Kueue keeps a
ResourceFlavor, by its finalizer, while a queue names it, so that the environment's deployment would wait for the team's
(seen on Kueue 0.19.2), and a cluster that is deleted takes the team's objects out of reach.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from training_platform.catalog import FILESTORE_TIERS, LUSTRE_TIERS
from training_platform.catalog.types import Band
from training_platform.config.model.environment import Environment
from training_platform.config.model.storage import FilestoreSpec, LustreSpec
from training_platform.config.model.team import Team
from training_platform.config.pools import Flavor
from training_platform.config.reading.finding import Finding, Path
from training_platform.config.workspace import Workspace
from training_platform.resources.kueue import resource_flavor

REMOVED_FLAVOR = "removed-flavor"
PLACED_FLAVOR = "placed-flavor"
_FIXED = ("topologyName", "nodeLabels", "tolerations")
FILESTORE_GROWTH = "filestore-growth"
_ANEW = "or another instance, and a copy"
_FILESTORE = ("location", "tier", "share", "protocol", "connection", "restore_from", "reserved_range")
_LUSTRE = ("location", "mbps_per_tib", "filesystem")
_Spec = FilestoreSpec | LustreSpec


class Need(NamedTuple):
    """Something of an environment that a team needs: where it stands in the environment's file, and what it is."""

    path: Path
    what: str


class Order(NamedTuple):
    """What a change adds and removes of an environment that teams need, each with the team's stack."""

    added: tuple[tuple[str, Need], ...]
    removed: tuple[tuple[str, Need], ...]

    @property
    def before(self) -> frozenset[str]:
        """The stacks of teams that go before their environment, since they let something go."""
        return frozenset(stack for stack, _ in self.removed)

    @property
    def two_deployments(self) -> str:
        """Why no order deploys it in one go; an empty text where one does."""
        for stack, gone in self.removed:
            for new in (need for other, need in self.added if other == stack):
                return f"{stack} needs {new.what}, which is added, and lets {gone.what} go, which is removed"
        return ""


def deployment_order(head: Workspace, base: Workspace, environment: str) -> Order:
    """Return what decides the order of an environment and its teams."""
    offered, before = (_offered(side, environment) for side in (head, base))
    return Order(
        added=tuple(each for each in _needs(head, environment) if each[1] in offered - before),
        removed=tuple(each for each in _needs(base, environment) if each[1] in before - offered),
    )


def removals(head: Workspace, base: Workspace) -> Iterator[Finding]:
    """Find what an environment loses in the change in which a team lets it go: it goes first, or nothing helps."""
    for home, _ in head.environments():
        order = deployment_order(head, base, home.name)
        why = order.two_deployments
        for stack, need in order.removed:
            message = f"{need.what} goes in the change in which {stack} lets it go"
            if why:
                message, allowed = (
                    f"{message}, which wants two deployments: {why}",
                    "two changes: additions, then removals",
                )
            else:
                message, allowed = (
                    f"{message}: {stack} is deployed first, as pipelines do by themselves",
                    "the team first",
                )
            yield home.finding(
                REMOVED_FLAVOR, need.path, message, severity="warning" if why else "note", allowed=allowed
            )


def _needs(workspace: Workspace, environment: str) -> Iterator[tuple[str, Need]]:
    for stack, team, home in workspace.teams():
        if team.environment == environment:
            yield from ((stack.name, need) for need in _of_team(team, home))


def _of_team(team: Team, home: Environment) -> Iterator[Need]:
    for cluster, shares in team.shares.items():
        yield _cluster(cluster)
        yield from (_flavor(cluster, flavor) for flavor in shares)
    for directory in team.directories.values():
        yield _instance(directory.filestore)
    for data in home.data_sets.values():
        if data.filestore and data.readable_by(team.name):
            yield _instance(data.filestore.instance)


def _offered(workspace: Workspace, environment: str) -> frozenset[Need]:
    """Return all that teams could need of an environment; nothing of one that is not there."""
    stack = workspace.stacks.get(environment)
    home = stack.environment if stack else None
    if home is None:
        return frozenset()
    flavors = (
        _flavor(cluster, flavor) for cluster in home.clusters for flavor in workspace.flavors(environment, cluster)
    )
    return frozenset((*map(_cluster, home.clusters), *flavors, *map(_instance, home.filestore)))


def _cluster(name: str) -> Need:
    return Need(("clusters",), f"cluster {name}")


def _flavor(cluster: str, name: str) -> Need:
    return Need(("clusters", cluster), f"flavor {name} of cluster {cluster}")


def _instance(name: str) -> Need:
    return Need(("filestore",), f"Filestore instance {name}")


def placed_flavors(head: Workspace, base: Workspace) -> Iterator[Finding]:
    """Find a flavor that a change keeps, in whose object it changes what is fixed once a topology is set.

    To replace the object is no way out: it hangs on its finalizer while a queue names it, and queues are in the stacks
    of teams. Source: Kueue 0.19.2, CEL rules of the CRD of ResourceFlavor, read 2026-11-22 and seen on an API server.
    """
    for stack, environment, was, former in head.kept_environments(base):
        for cluster, spec in environment.clusters.items():
            old_spec = former.clusters.get(cluster)
            if old_spec is None or old_spec.location != spec.location:
                continue
            old = base.flavors(was.name, cluster)
            for name, flavor in head.flavors(stack.name, cluster).items():
                if changed := _changed(flavor, old.get(name)):
                    yield stack.finding(
                        PLACED_FLAVOR, _path(cluster, flavor, spec.node_pools),
                        f"changes {', '.join(changed)} of flavor {name}, which Kueue refuses once it has a topology",
                        allowed="the pool as it is; or two changes: remove it with all shares of it, then add it anew",
                    )  # fmt: skip


def _changed(flavor: Flavor, old: Flavor | None) -> list[str]:
    if old is None or old.topology_name is None:
        return []
    before, after = resource_flavor(old), resource_flavor(flavor)
    return [field for field in _FIXED if before.get(field) != after.get(field)]


def _path(cluster: str, flavor: Flavor, pools: Mapping[str, object]) -> Path:
    """Return where the first of its pools stands."""
    own = next((pool.name for pool in flavor.pools if pool.name in pools), None)
    return ("clusters", cluster, "node_pools", own) if own else ("clusters", cluster)


def capacity_growth(head: Workspace, base: Workspace) -> Iterator[Finding]:
    """Find an instance that is to change its capacity where it stays the same instance and cannot.

    Source: Filestore docs, service tiers, read 2026-04-10; Filestore CSI driver 2edb466, controller.go; Managed Lustre
    docs, increase the capacity, read 2026-11-22.
    """
    for stack, environment, _, former in head.kept_environments(base):
        kept = [
            *_kept_instances("filestore", environment.filestore, former.filestore),
            *_kept_instances("lustre", environment.lustre, former.lustre),
        ]
        for section, name, spec, before in kept:
            if refusal := _refusal(spec, before):
                message, allowed, nearest = refusal
                path = (section, name, "capacity_gib")
                yield stack.finding(FILESTORE_GROWTH, path, message, allowed=allowed, nearest=str(nearest))


def _kept_instances(
    section: str, specs: Mapping[str, _Spec], former: Mapping[str, _Spec]
) -> Iterator[tuple[str, str, _Spec, int]]:
    """Yield the instances that a change keeps, with what they hold before it; of another one, any capacity will do."""
    fields = _FILESTORE if section == "filestore" else _LUSTRE
    for name, spec in specs.items():
        old = former.get(name)
        if old and all(getattr(spec, field) == getattr(old, field) for field in fields):
            yield section, name, spec, old.capacity_gib


def _refusal(spec: _Spec, before: int) -> tuple[str, str, int] | None:
    found, after = _tier(spec), spec.capacity_gib
    if found is None:
        return None
    name, bands, shrinks = found
    band = _band(bands, before)
    if after < before and not shrinks:
        return (
            f"is {after:,}, less than the {before:,} GiB that it has: {name} does not shrink",
            f"{before:,} GiB or more, {_ANEW}",
            before,
        )
    if band is not None and _band(bands, after) not in (band, None):
        nearest = band.high_gib if after > before else band.low_gib
        return (
            f"is {after:,}, in another band than the {before:,} GiB that it has, and {name} keeps its band",
            f"{band.low_gib:,} to {band.high_gib:,} GiB, {_ANEW}",
            nearest,
        )
    return None


def _tier(spec: _Spec) -> tuple[str, Sequence[Band], bool] | None:
    """Return the name of an instance's tier, its bands, and whether it can shrink."""
    if isinstance(spec, LustreSpec):
        return "Managed Lustre", LUSTRE_TIERS[f"lustre-{spec.mbps_per_tib}"].bands, False
    tier = FILESTORE_TIERS.get(spec.tier)
    return (tier.name, tier.bands, tier.shrinks) if tier else None


def _band(bands: Sequence[Band], capacity_gib: int) -> Band | None:
    return next((band for band in bands if band.low_gib <= capacity_gib <= band.high_gib), None)
