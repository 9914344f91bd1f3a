"""What the pods of a team wrote, for its members: a log bucket of the team, the sinks that fill it, and a view.

No role and no view of Cloud Logging can tell namespaces apart: a filter of a view takes a source, a type of resource
and a log. So the project's own bucket is not for members, and a copy goes to a bucket of the team. Sinks to a bucket of
their own project need no rights. Sources: logging.v2 discovery document, LogView; Cloud Logging docs, routing, read
2026-11-24. Not tried on Google Cloud.
"""

from __future__ import annotations

from collections.abc import Iterable

from training_platform.config.model.environment import Environment
from training_platform.config.model.team import Team
from training_platform.resources import gcp
from training_platform.resources.plan import Component, Resource
from training_platform.resources.scope import NAME_LIMIT, Scope, environment_scope, short_name, slug, team_scope

LOCATION = "global"
VIEW = "jobs"
VIEW_ROLE = "roles/logging.viewAccessor"
_PROJECTS_BUCKET = "_Default"


def log_bucket_id(environment_name: str, team: str) -> str:
    """Return the id of a team's log bucket, ``{environment}-{team}``; that of a deleted one is taken for 7 days."""
    return short_name(f"{environment_name}-{team}", NAME_LIMIT)


def log_view_name(project: str, environment_name: str, team: str) -> str:
    """Return the view of a team's log bucket, which is in the project of the clusters."""
    bucket = log_bucket_id(environment_name, team)
    return f"projects/{project}/locations/{LOCATION}/buckets/{bucket}/views/{VIEW}"


def team_logs(
    into: Component, project: str, environment_name: str, team: str, *, members: Iterable[str], days: int
) -> None:
    """Add a team's log bucket, in the project of the clusters; ``days`` is how long it keeps an entry."""
    held = log_bucket_id(environment_name, team)
    parent = f"projects/{project}"
    bucket = into.add(
        gcp.log_bucket(
            f"{into.name}-bucket",
            project=project,
            location=LOCATION,
            bucket_id=held,
            retention_days=days,
            description=f"What pods of team {team} in {environment_name} wrote, beside the project's own logs",
        )
    )
    for part, query in _queries(team).items():
        sink = gcp.log_sink(
            f"{into.name}-{part}-sink",
            project=project,
            name=f"{held}-{part}",
            destination=f"logging.googleapis.com/{parent}/locations/{LOCATION}/buckets/{held}",
            filter=query,
            unique_writer_identity=True,
        )
        into.add(sink, [bucket])
    view = gcp.log_view(f"{into.name}-view", parent=parent, location=LOCATION, bucket=held, name=VIEW)
    into.add(view, [bucket])
    _let_read(into, view, members)


def vertex_log_view_name(scope: Scope) -> str:
    """Return the view of jobs on Vertex AI that a stack adds to a project's own log bucket."""
    return f"projects/{scope.project}/locations/{LOCATION}/buckets/{_PROJECTS_BUCKET}/views/{_vertex_view(scope)}"


def vertex_log_view(team: Team, environment: Environment) -> str | None:
    """Return the view by which a team's jobs on Vertex AI are read, or None if nobody may.

    The environment's stack adds that of its own project, and not each team, since a bucket has at most 30 views (Google
    Cloud, quotas of Cloud Logging, read 2026-11-29).
    """
    if vertex_log_readers(team, environment):
        return vertex_log_view_name(team_scope(team, environment))
    if environment.vertex_submitters:
        return vertex_log_view_name(environment_scope(team.environment, environment))
    return None


def vertex_log_readers(team: Team, environment: Environment) -> tuple[str, ...]:
    """Return who reads what jobs on Vertex AI wrote, in the project of a team, by a view of the team's stack."""
    if team.vertex.members_submit:
        return (*team.members, *environment.vertex_submitters)
    return () if team.project in (None, environment.project) else tuple(environment.vertex_submitters)


def vertex_logs(into: Component, scope: Scope, *, members: Iterable[str]) -> None:
    """Add a view of what jobs on Vertex AI wrote in a project, for members.

    Entries of such jobs name the job, and neither its labels nor its account: in a shared project no view parts teams.
    """
    view = gcp.log_view(
        f"{into.name}-view",
        parent=f"projects/{scope.project}",
        location=LOCATION,
        bucket=_PROJECTS_BUCKET,
        name=_vertex_view(scope),
        filter='resource.type="ml_job"',
    )
    into.add(view)
    _let_read(into, view, members)


def _vertex_view(scope: Scope) -> str:
    return short_name(f"{scope.prefix}-vertex-jobs", NAME_LIMIT)


def _let_read(into: Component, view: Resource, members: Iterable[str]) -> None:
    """Let members read a view of a log bucket, and nothing else of it."""
    of_view = {key: view.inputs[key] for key in ("parent", "location", "bucket", "name")}
    for member in dict.fromkeys(members):
        grant = gcp.log_view_member(f"{into.name}-{slug(member)}", role=VIEW_ROLE, member=member, **of_view)
        into.add(grant, [view])


def _queries(namespace: str) -> dict[str, str]:
    """Return the filters of the sinks: lines of containers, and events about objects such as JobSets."""
    return {
        "pods": f'resource.type="k8s_container" AND resource.labels.namespace_name="{namespace}"',
        "events": f'log_id("events") AND jsonPayload.involvedObject.namespace="{namespace}"',
    }
