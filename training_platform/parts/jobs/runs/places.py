"""The places where runs can be: clusters, and regions of Vertex AI, that teams and job files name. Uses no network."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from training_platform.catalog.nearest import find_nearest
from training_platform.config.model.environment import Environment
from training_platform.config.model.team import Team
from training_platform.config.reading.finding import UserError
from training_platform.config.reading.section import enumeration
from training_platform.config.reading.source import UnreadableError
from training_platform.config.workspace import Workspace
from training_platform.parts.jobs.job_checks import job_files, targets
from training_platform.parts.jobs.job_file import job_source
from training_platform.parts.jobs.job_model import Target
from training_platform.parts.jobs.naming import job_among
from training_platform.parts.jobs.resolve import ResolvedJob, parse_places
from training_platform.resources.gke import cluster_name, context_name
from training_platform.resources.scope import Scope, team_scope
from training_platform.resources.team_logs import log_view_name, vertex_log_view


@dataclass(frozen=True, kw_only=True)
class RunPlace:
    """A team in a cluster or in a region of Vertex AI. ``key`` is the region, or the cluster's stack file key."""

    target: Target
    key: str
    team: Team
    environment: Environment
    scope: Scope

    @property
    def cluster(self) -> str:
        """The cluster's name in Google Cloud, ``{environment}-{key}`` unless the stack file names another."""
        return cluster_name(self.scope, self.key, self.environment.clusters[self.key])

    @property
    def location(self) -> str:
        """The region or zone of the cluster, or the region of Vertex AI."""
        return self.environment.clusters[self.key].location if self.target == "gke" else self.key

    @property
    def log_source(self) -> str:
        """The log view with the lines of the team's pods or jobs, or the project, which has all logs."""
        if self.target == "vertex":
            return vertex_log_view(self.team, self.environment) or f"projects/{self.scope.project}"
        if self.environment.team_logs_days is None:
            return f"projects/{self.environment.project}"
        return log_view_name(self.environment.project, self.team.environment, self.team.name)

    @property
    def contexts(self) -> tuple[str, ...]:
        """The names that the cluster's context may have in kubeconfigs: gcloud's, and the cluster's name."""
        return context_name(self.environment.project, self.location, self.cluster), self.cluster

    @property
    def log_in(self) -> str:
        """The command that adds the context to the kubeconfig."""
        return (
            f"gcloud container clusters get-credentials {self.cluster} --location {self.location} "
            f"--project {self.environment.project} --dns-endpoint"
        )


def place_of(job: ResolvedJob, target: Target) -> RunPlace:
    """Return the place where a job runs on one of its targets."""
    key = ""
    if target == "gke" and job.spec.gke:
        key = job.spec.gke.cluster
    elif job.spec.vertex:
        key = job.spec.vertex.region
    return RunPlace(target=target, key=key, team=job.team, environment=job.environment, scope=job.scope)


def places(
    root: Path, workspace: Workspace, *, environment: str | None = None, team: str | None = None
) -> list[RunPlace]:
    """Return every place in which the selected teams can have runs, without duplicates.

    Raises UserError if the repository has no such team or environment. A job file with errors is ignored.
    """
    return _places(_jobs(root, workspace), workspace, environment=environment, team=team)


def _places(
    jobs: Iterable[ResolvedJob], workspace: Workspace, *, environment: str | None = None, team: str | None = None
) -> list[RunPlace]:
    teams = [
        (spec, home)
        for _, spec, home in workspace.teams()
        if environment in (None, spec.environment) and team in (None, spec.name)
    ]
    if not teams:
        filters = " and ".join(
            f"{kind} {name}" for kind, name in (("environment", environment), ("team", team)) if name
        )
        names = sorted({spec.name for _, spec, _ in workspace.teams()})
        raise UserError(f"No team stack exists{f' for {filters}' if filters else ''}. {_allowed(team or '', names)}")
    run_places: dict[tuple[str, str, Target, str], RunPlace] = {}
    for spec, home in teams:
        for cluster in spec.shares:
            if cluster in home.clusters:
                run_places[spec.environment, spec.name, "gke", cluster] = RunPlace(
                    target="gke", key=cluster, team=spec, environment=home, scope=team_scope(spec, home)
                )
    for job in jobs:
        if job.spec.vertex and any(spec is job.team for spec, _ in teams):
            place = place_of(job, "vertex")
            run_places[place.team.environment, place.team.name, "vertex", place.key] = place
    return list(run_places.values())


def places_of_run(
    root: Path, workspace: Workspace, run: str, *, team: str | None = None
) -> tuple[list[RunPlace], list[RunPlace]]:
    """Return the places that the file of a run's job names, and other places of the team. The run's name tells the job.

    The job file may have changed since the run was submitted. With ``team``, it may even have been deleted. Raises
    UserError.
    """
    jobs = list(_jobs(root, workspace))
    called = job_among(run, [job.name for job in jobs if team in (None, job.team.name)])
    named = [job for job in jobs if job.name == called and team in (None, job.team.name)]
    if len(owners := sorted({job.team.name for job in named})) > 1:
        raise UserError(f"Teams {' and '.join(owners)} each have a job {called!r}: choose one with --team.")
    if not named and team is None:
        names = sorted({job.name for job in jobs})
        raise UserError(
            f"No job file is called {called!r}, so the place of {run} is unknown; --team searches all places "
            f"of a team. {_allowed(called, names)}"
        )
    in_file: dict[tuple[Target, str], RunPlace] = {}
    for job in named:
        for target in targets(job):
            place = place_of(job, target)
            in_file.setdefault((target, place.key), place)
    other_places = _places(jobs, workspace, team=team or owners[0])
    return list(in_file.values()), [place for place in other_places if (place.target, place.key) not in in_file]


def _jobs(root: Path, workspace: Workspace) -> Iterator[ResolvedJob]:
    """Yield every job without errors, at each of its places."""
    for path in job_files(root):
        try:
            source = job_source(path, root)
        except UnreadableError:
            continue  # `job check` reports its errors
        for placed in parse_places(source, workspace):
            if placed.job:
                yield placed.job


def _allowed(value: str, names: Collection[str]) -> str:
    nearest = find_nearest(value, names)
    text = f"Allowed: {enumeration(names) or 'none is declared'}."
    return f"{text} Nearest: {nearest}." if nearest else text
