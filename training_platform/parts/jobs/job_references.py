"""References in a job file to objects in its team's and environment's stack files, and checks that these exist."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator
from typing import NamedTuple

from training_platform.catalog.nearest import find_nearest
from training_platform.config.model.environment import Environment
from training_platform.config.model.stack import Stack
from training_platform.config.model.team import Team
from training_platform.config.reading.declaration import Draft, finding
from training_platform.config.reading.finding import Path, Place
from training_platform.config.reading.section import enumeration
from training_platform.config.reading.source import Source
from training_platform.config.workspace import Workspace, of_pool, pools_meant
from training_platform.parts.jobs.job_file import JOB_MODEL, looks_like_credential, without_credential
from training_platform.parts.jobs.job_model import GkeTarget, Job


class JobReference(NamedTuple):
    """A name to which a job file refers, the kind of thing it names, and the team's names of this kind."""

    path: Path
    value: str
    kind: str
    names: Collection[str]


def team_references(job: Job, team: Team, environment: Environment) -> Iterator[JobReference]:
    """Yield a job's references to resources of its team."""
    if job.output:
        yield JobReference(("output",), job.output, kind="a bucket", names=team.buckets)
    if job.source and job.source.bucket:
        yield JobReference(("source", "bucket"), job.source.bucket, kind="a bucket", names=team.buckets)
    for variable, secret in job.secrets.items():
        yield JobReference(("secrets", variable), secret.partition(":")[0], kind="a secret", names=team.secrets)
    for index, mount in enumerate(job.mounts):
        below: Path = ("mounts", index, "source")
        if mount.source.directory:
            yield JobReference(
                (*below, "directory"), mount.source.directory, kind="a directory", names=team.directories
            )
        if mount.source.bucket:
            yield JobReference((*below, "bucket"), mount.source.bucket, kind="a bucket", names=team.buckets)
        if mount.source.data_set:
            readable = [name for name, spec in environment.data_sets.items() if spec.readable_by(team.name)]
            yield JobReference(
                (*below, "data_set"), mount.source.data_set, kind="a data set for members", names=readable
            )
    if job.vertex and job.vertex.persistent_resource:
        path = ("vertex", "persistent_resource")
        resources = team.vertex.persistent_resources
        yield JobReference(path, job.vertex.persistent_resource, kind="a persistent resource", names=resources)
    if job.vertex and job.tensorboard:
        kind = "a region with a TensorBoard (vertex.tensorboards)"
        yield JobReference(("vertex", "region"), job.vertex.region, kind=kind, names=team.vertex.tensorboards)


def dangling(job: Job, source: Source, stack: Stack, environment: Environment, workspace: Workspace) -> Iterator[Draft]:
    """Yield a finding for each name in a job that its team or its environment does not have."""
    assert stack.team is not None  # the stack is a team's
    team = stack.team
    for reference in team_references(job, team, environment):
        if reference.value in reference.names:
            continue
        draft = unknown_name(
            source, reference.path, reference.value, f"{reference.kind} of team {team.name}", reference.names
        )
        if reference.path[0] == "secrets" and not team.secrets:
            line = f"secrets: [{reference.value}] in {stack.source.file}"
            draft = dataclasses.replace(draft, nearest=line)
        secret = reference.path[0] == "secrets" and looks_like_credential(job.secrets[str(reference.path[1])])
        yield without_credential(draft, team.secrets) if secret else draft
    yield from _instances(job, source, stack, environment)
    if job.gke:
        yield from _shares(job.gke, source, stack, environment, workspace)
        if job.gke.priority and job.gke.priority not in environment.priorities:
            kind = f"a priority of {job.environment}"
            yield unknown_name(source, ("gke", "priority"), job.gke.priority, kind, environment.priorities)


def _instances(job: Job, source: Source, stack: Stack, environment: Environment) -> Iterator[Draft]:
    """Find mounted directories on a missing Filestore instance. The team's stack has a finding about the instance."""
    assert stack.team is not None  # the stack is a team's
    directories = stack.team.directories
    for index, mount in enumerate(job.mounts):
        name = mount.source.directory
        if name in directories and directories[name].filestore not in environment.filestore:
            instance = directories[name].filestore
            message = f"{name} is on Filestore instance {instance!r}, which {job.environment} does not have"
            cause = stack.at(("directories", name, "filestore"))
            yield finding(source, ("mounts", index, "source", "directory"), message, rule=JOB_MODEL, rests_on=(cause,))


def _shares(
    gke: GkeTarget, source: Source, stack: Stack, environment: Environment, workspace: Workspace
) -> Iterator[Draft]:
    """Find a cluster or flavor that the environment does not have, or that the team has no share of."""
    cluster = gke.cluster
    flavor = gke.flavor
    team = stack.team
    assert team is not None  # the stack is a team's
    shares = stack.at(("shares",))
    clusters = team.shares.keys() & environment.clusters.keys()
    if cluster not in clusters:
        kind = f"a cluster of {team.environment} in which team {team.name} has a share"
        causes: tuple[Place, ...] = (stack.at(("shares", cluster)), shares)
        yield unknown_name(source, ("gke", "cluster"), cluster, kind, clusters, rests_on=causes)
        return
    if environment.clusters[cluster].software.jobset == "none":
        message = f"has no JobSet (software.jobset of {team.environment} is none), but jobs on GKE need it"
        able = [name for name in clusters if environment.clusters[name].software.jobset != "none"]
        yield finding(source, ("gke", "cluster"), message, rule=JOB_MODEL, allowed=enumeration(able) or "vertex")
    if gke.pool is not None:
        without_chips = environment.clusters[cluster].cpu_pools
        if gke.pool not in without_chips:
            yield unknown_name(
                source, ("gke", "pool"), gke.pool, f"one of cpu_pools of cluster {cluster}", without_chips
            )
        return
    declared = workspace.flavors(team.environment, cluster)
    flavors = team.shares[cluster].keys() & declared.keys()
    if flavor is not None and flavor not in flavors:
        kind = f"a flavor in team {team.name}'s shares of {cluster}"
        pools = pools_meant(workspace.stacks[team.environment], cluster, flavor, declared)
        # The likeliest first: a pool of that flavor, the team's share of it, all pools of the cluster, all shares.
        causes = (*pools[:-1], stack.at(("shares", cluster, flavor)), pools[-1], shares)
        draft = unknown_name(source, ("gke", "flavor"), flavor, kind, flavors, rests_on=causes)
        elsewhere = sorted(name for name in clusters if flavor in team.shares[name])
        if elsewhere:
            message = f"{draft.message}, but in {enumeration(elsewhere)}"
            draft = dataclasses.replace(draft, message=message, nearest=f"cluster: {elsewhere[0]}")
        yield of_pool(draft, flavor, (declared[name] for name in sorted(flavors)))


def unknown_name(
    source: Source, path: Path, value: str, kind: str, names: Collection[str], *, rests_on: tuple[Place, ...] = ()
) -> Draft:
    """Return a finding that a name in a job file is not declared. If only one name is declared, it is suggested."""
    only_name = next(iter(names)) if len(names) == 1 else None
    return finding(
        source,
        path,
        f"{value!r} is not {kind}",
        rule=JOB_MODEL,
        allowed=enumeration(names) or "none is declared",
        nearest=find_nearest(value, names) or only_name,
        rests_on=rests_on,
    )
