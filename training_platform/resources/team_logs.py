"""The logs of a team's pods, for its members: a log bucket of the team, the sinks that fill it, and a view.

Neither roles nor views of Cloud Logging can distinguish namespaces: a view's filter accepts only a source, a resource
type and a log. Members therefore have no access to the project's own bucket, and a copy is written to a bucket of the
team. Sinks to a bucket in their own project need no permissions. Sources: logging.v2 discovery document, LogView; Cloud
Logging docs, routing, read 2026-11-24. Not tried on Google Cloud.
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
    """Return the id of a team's log bucket, ``{environment}-{team}``. A deleted bucket's id is reserved for 7 days."""
    return short_name(f"{environment_name}-{team}", NAME_LIMIT)


def log_view_name(project: str, environment_name: str, team: str) -> str:
    """Return the name of the view of a team's log bucket. The bucket is in the project of the clusters."""
    bucket = log_bucket_id(environment_name, team)
    return f"projects/{project}/locations/{LOCATION}/buckets/{bucket}/views/{VIEW}"


def team_logs(
    into: Component, project: str, environment_name: str, team: str, *, members: Iterable[str], days: int
) -> None:
    """Add a team's log bucket in the project of the clusters. It keeps entries for ``days`` days."""
    held = log_bucket_id(environment_name, team)
    parent = f"projects/{project}"
    bucket = into.add(
        gcp.log_bucket(
            f"{into.name}-bucket",
            project=project,
            location=LOCATION,
            bucket_id=held,
            retention_days=days,
            description=f"Logs of the pods of team {team} in {environment_name}, in addition to the project's own logs",
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
    """Return the name of the view of Vertex AI jobs that a stack adds to a project's own log bucket."""
    return f"projects/{scope.project}/locations/{LOCATION}/buckets/{_PROJECTS_BUCKET}/views/{_vertex_view(scope)}"


def vertex_log_view(team: Team, environment: Environment) -> str | None:
    """Return the log view through which a team's Vertex AI jobs can be read, or None if nobody may read them.

    The environment's stack adds the view for its own project. Teams do not add one each, because a bucket has at most
    30 views (Google Cloud, quotas of Cloud Logging, read 2026-11-29).
    """
    if vertex_log_readers(team, environment):
        return vertex_log_view_name(team_scope(team, environment))
    if environment.vertex_submitters:
        return vertex_log_view_name(environment_scope(team.environment, environment))
    return None


def vertex_log_readers(team: Team, environment: Environment) -> tuple[str, ...]:
    """Return who may read the logs of Vertex AI jobs in a team's own project. The team's stack adds the view."""
    if team.vertex.members_submit:
        return (*team.members, *environment.vertex_submitters)
    return () if team.project in (None, environment.project) else tuple(environment.vertex_submitters)


def vertex_logs(into: Component, scope: Scope, *, members: Iterable[str]) -> None:
    """Add a view with the logs of Vertex AI jobs in a project, for members.

    Log entries of such jobs contain the job's name, but neither its labels nor its service account. In a shared
    project, no view can therefore separate teams.
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
    """Allow members to read a view of a log bucket, and nothing else in the bucket."""
    of_view = {key: view.inputs[key] for key in ("parent", "location", "bucket", "name")}
    for member in dict.fromkeys(members):
        grant = gcp.log_view_member(f"{into.name}-{slug(member)}", role=VIEW_ROLE, member=member, **of_view)
        into.add(grant, [view])


def _queries(namespace: str) -> dict[str, str]:
    """Return the filters of the log sinks: for containers' output, and for events about objects such as JobSets."""
    return {
        "pods": f'resource.type="k8s_container" AND resource.labels.namespace_name="{namespace}"',
        "events": f'log_id("events") AND jsonPayload.involvedObject.namespace="{namespace}"',
    }
