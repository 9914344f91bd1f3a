"""Data sets: their location, how teams mount them, and checks for remote data sets and unknown teams."""

from __future__ import annotations

from collections.abc import Iterator

from training_platform.catalog.locations import region_of
from training_platform.config.model.cluster import ClusterSpec
from training_platform.config.model.environment import Environment
from training_platform.config.model.storage import DataSetSpec, FilestoreSpec
from training_platform.config.model.team import Team
from training_platform.config.reading.declaration import Draft, declare, finding
from training_platform.config.reading.finding import Path
from training_platform.config.reading.section import enumeration
from training_platform.config.workspace import Workspace

READ = "ReadOnlyMany"
WRITE = "ReadWriteMany"
WRITE_ALONE = "ReadWriteOnce"


def data_location(spec: DataSetSpec, environment: Environment) -> str:
    """Return the region or zone of a data set."""
    if spec.bucket:
        return spec.bucket.location
    if spec.hyperdisk_ml:
        return spec.hyperdisk_ml.zone
    if spec.lustre:
        return spec.lustre.location or environment.lustre[spec.lustre.instance].location
    assert spec.filestore is not None  # the model has one of the four
    return environment.filestore[spec.filestore.instance].location


def access_mode(spec: DataSetSpec, team: str) -> str | None:
    """Return a team's access mode for a data set, or None if another team is still filling its disk."""
    if spec.hyperdisk_ml and not spec.hyperdisk_ml.filled:
        return WRITE_ALONE if team == spec.writer else None
    return WRITE if team == spec.writer and not spec.hyperdisk_ml else READ


def reaches(spec: FilestoreSpec, cluster: ClusterSpec) -> bool:
    """Return True if a cluster's pods mount an instance, which they do only in the same region, for speed and cost."""
    return region_of(spec.location) == region_of(cluster.location)


def with_own_data(team: Team, environment: Environment) -> Environment:
    """Return a copy of an environment to which a team's own data sets are added, which no other team mounts."""
    team_sets = {
        key: DataSetSpec(
            bucket=spec.bucket,
            size_gib=spec.size_gib,
            teams=(team.name,),
            writer=team.name if spec.writable else None,
        )
        for key, spec in team.data_sets.items()
    }
    if not team_sets:
        return environment
    return environment.model_copy(update={"data_sets": {**environment.data_sets, **team_sets}})


DATA_SET_REGION = declare(
    "data-set-region",
    "Find data in a region without accelerators of its environment.",
    ruleset="capacity",
    severity="warning",
    excuse="exemption",
)


def far_data_sets(workspace: Workspace) -> Iterator[Draft]:
    """Find data sets in regions without node pools. Jobs read them from another region or not at all."""
    for stack, environment in workspace.environments():
        regions = {region_of(cluster.location) for cluster in environment.clusters.values() if cluster.node_pools}
        if not regions:
            continue
        for name, spec in environment.data_sets.items():
            region = region_of(data_location(spec, environment))
            if region not in regions:
                size = f"{spec.size_gib:,} GiB" if spec.size_gib else "all the data"
                charged = f"each complete read sends {size} between regions, which is charged as egress"
                consequence = charged if spec.bucket else "no cluster mounts it"
                yield finding(
                    stack,
                    ("data_sets", name),
                    f"is in {region}, which has no node pool: {consequence}",
                    rule=DATA_SET_REGION,
                    allowed=enumeration(regions),
                    nearest=min(regions),
                )


TEAM_UNKNOWN = declare(
    "team-unknown",
    "Find a data set, Filestore instance or bucket that refers to a team that the environment does not have.",
    ruleset="capacity",
    severity="warning",
    excuse="exemption",
)


def unknown_teams(workspace: Workspace) -> Iterator[Draft]:
    """Find data sets, Filestore instances and buckets that name a team without a stack file.

    If a file of the repository is rejected or unreadable, nothing is reported, since it may define the team.
    """
    if workspace.uncounted:
        return
    for stack, environment in workspace.environments():
        teams = [team.name for _, team, _ in workspace.teams() if team.environment == stack.name]
        for path, name in _named_teams(environment):
            if name not in teams:
                yield stack.dangling(path, name, f"team of {stack.name}", teams, rule=TEAM_UNKNOWN)
    for stack, team, _ in workspace.teams():
        neighbours = [other.name for _, other, _ in workspace.teams() if other.environment == team.environment]
        for key, spec in team.buckets.items():
            for field in ("readers", "writers"):
                names: tuple[str, ...] = getattr(spec, field)
                for number, name in enumerate(names):
                    if not workspace.teams_meant(name, team.environment):
                        place: Path = ("buckets", key, field, number)
                        yield stack.dangling(place, name, f"team of {team.environment}", neighbours, rule=TEAM_UNKNOWN)


def _named_teams(environment: Environment) -> Iterator[tuple[Path, str]]:
    """Yield the path and name of each team that a data set or Filestore instance names."""
    for key, data_set in environment.data_sets.items():
        if data_set.writer:
            yield ("data_sets", key, "writer"), data_set.writer
        for number, team in enumerate(data_set.teams or ()):
            yield ("data_sets", key, "teams", number), team
    for key, instance in environment.filestore.items():
        if instance.team:
            yield ("filestore", key, "team"), instance.team
