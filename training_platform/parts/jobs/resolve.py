"""Resolves a job: its team, environment, cluster and flavor, and every other name in its file."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from training_platform.catalog.nearest import find_nearest
from training_platform.config.data_sets import with_own_data
from training_platform.config.expansion import Flavor, cpu_flavor
from training_platform.config.model.environment import Environment
from training_platform.config.model.stack import Stack
from training_platform.config.model.team import Team
from training_platform.config.reading.declaration import Draft, located
from training_platform.config.reading.finding import Anchor, Finding, Path
from training_platform.config.reading.rejection import right_part
from training_platform.config.reading.section import counted
from training_platform.config.reading.source import Source
from training_platform.config.workspace import Workspace, stack_file
from training_platform.parts.jobs.job_file import at_place, job_source, number_of_places, on_resource, read_model
from training_platform.parts.jobs.job_model import TARGETS, GkeTarget, Job, Target
from training_platform.parts.jobs.job_references import dangling, unknown_name
from training_platform.resources.scope import Scope, team_scope


@dataclass(frozen=True, kw_only=True)
class ResolvedJob:
    """A job with everything that it refers to. ``flavor`` is set if the job can run on GKE.

    If ``is_run`` is True, ``name`` is the name of a run, otherwise that of the file.
    """

    name: str
    spec: Job
    source: Source
    stack: Stack
    team: Team
    environment: Environment
    scope: Scope
    flavor: Flavor | None
    workspace: Workspace = field(repr=False)
    is_run: bool = False

    def locate(self, field: Path) -> Anchor:
        """Return the file, position and path of a field of the job file, as findings need them."""
        return self.source.locate(field)


def read_job(
    path: FilePath,
    root: FilePath,
    workspace: Workspace,
    changed: Callable[[Any], Any] = lambda value: value,
    place: int = 0,
) -> tuple[ResolvedJob | None, list[Finding]]:
    """Return a job and the findings about its file. The job is None if there are any. Raises UnreadableError.

    ``changed`` applies a command's options to the file's values. ``place`` is the index of one of the file's places.
    """
    source = job_source(path, root)
    return parse_job(dataclasses.replace(source, value=changed(source.value)), workspace, place)


def parse_job(source: Source, workspace: Workspace, index: int = 0) -> tuple[ResolvedJob | None, list[Finding]]:
    """Return the job of a parsed file at one of its places. Its name and team are those in the file's path."""
    source = on_resource(at_place(source, index), workspace)
    job, findings = read_model(source, workspace)
    readable = job or right_part(source.value, Job)  # of a rejected file, the names that can be read are looked up too
    if readable is None:
        return None, findings
    resolved, unknown = _resolve(readable, source, workspace)
    findings += located(unknown)
    return (None if findings or job is None else resolved), findings


class PlacedJob(NamedTuple):
    """A job with the places that have the same index in each target, or None with the findings about its file.

    ``targets`` are the targets that have a place with this index.
    """

    job: ResolvedJob | None
    targets: list[Target]
    findings: list[Finding]


def parse_places(source: Source, workspace: Workspace) -> Iterator[PlacedJob]:
    """Yield the job of a parsed file at the first place of each target, then at the second places, and so on."""
    numbers = {target: number_of_places(source.value, target) for target in TARGETS}
    for index in range(max(1, *numbers.values())):
        job, findings = parse_job(source, workspace, index)
        yield PlacedJob(job, [target for target, number in numbers.items() if index < number], findings=findings)


def _resolve(job: Job, source: Source, workspace: Workspace) -> tuple[ResolvedJob | None, list[Draft]]:
    path = PurePosixPath(source.file)
    team_name = path.parent.name
    home = workspace.stacks.get(job.environment)
    if home is None or home.environment is None:
        names = [stack.name for stack, _ in workspace.environments()]
        file = stack_file(job.environment)
        absent = "" if job.environment in workspace.stacks or workspace.uncounted else f": there is no {file}"
        kind = f"an environment{absent}{_not_counted(workspace)}"
        draft = unknown_name(source, ("environment",), job.environment, kind, names, rests_on=((file,),))
        return None, [dataclasses.replace(draft, nearest=find_nearest(job.environment, names))]
    # If two stacks have a team with the same name, the stack named after it counts: the other is a copy.
    rows = sorted(workspace.teams(), key=lambda row: row[0].name.endswith(f"-{row[1].name}"))
    teams = {team.name: (stack, team) for stack, team, _ in rows if team.environment == job.environment}
    if team_name not in teams:
        kind = f"a team of {job.environment}, and a job's folder names its team{_not_counted(workspace)}"
        missing = ((stack_file(f"{job.environment}-{team_name}"),),)
        draft = unknown_name(source, (), team_name, kind, teams, rests_on=missing)
        moved = f"jobs/{draft.nearest}/{path.name}" if draft.nearest else None
        return None, [dataclasses.replace(draft, nearest=moved)]
    stack, team = teams[team_name]
    environment = with_own_data(team, home.environment)
    unknown = list(dangling(job, source, stack, environment, workspace))
    if unknown:
        return None, unknown
    resolved = ResolvedJob(
        name=path.stem,
        spec=job,
        source=source,
        stack=stack,
        team=team,
        environment=environment,
        scope=team_scope(team, environment),
        flavor=_flavor(job, job.gke, environment, workspace) if job.gke else None,
        workspace=workspace,
    )
    return resolved, []


def _flavor(job: Job, gke: GkeTarget, environment: Environment, workspace: Workspace) -> Flavor:
    """Return the flavor that a job uses at one of its places on GKE. A CPU pool is represented as a flavor."""
    if gke.pool:
        return cpu_flavor(gke.cluster, environment.clusters[gke.cluster], gke.pool)
    return workspace.flavors(job.environment, gke.cluster)[gke.flavor or ""]


def _not_counted(workspace: Workspace) -> str:
    count = workspace.uncounted
    return f" (without {counted(count, 'rejected or unreadable stack file')})" if count else ""
