"""What the pods of a team wrote, for its members: a log bucket of the team, the sinks that fill it, and a view.

No role and no view of Cloud Logging can tell namespaces apart: a filter of a view takes a source, a type of resource
and a log. So the project's own bucket is not for members, and a copy goes to a bucket of the team. Sinks to a bucket of
their own project need no rights. Sources: logging.v2 discovery document, LogView; Cloud Logging docs, routing, read
2026-11-24. Not tried on Google Cloud.
"""

from __future__ import annotations

from collections.abc import Iterable

from training_platform.resources import gcp
from training_platform.resources.plan import Component, Resource
from training_platform.resources.scope import NAME_LIMIT, short_name, slug

LOCATION = "global"
VIEW = "jobs"
VIEW_ROLE = "roles/logging.viewAccessor"
_PROJECTS_BUCKET = "_Default"
_VERTEX_VIEW = "vertex-jobs"


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


def vertex_log_view_name(project: str) -> str:
    """Return the view of a project's own log bucket that has the lines of jobs on Vertex AI."""
    return f"projects/{project}/locations/{LOCATION}/buckets/{_PROJECTS_BUCKET}/views/{_VERTEX_VIEW}"


def vertex_logs(into: Component, project: str, *, members: Iterable[str]) -> None:
    """Add a view of what jobs on Vertex AI wrote, for the members of a team in a project that only it uses.

    Entries of such jobs name the job, and neither its labels nor its account: in a shared project no view parts teams.
    """
    parent = f"projects/{project}"
    view = gcp.log_view(
        f"{into.name}-view",
        parent=parent,
        location=LOCATION,
        bucket=_PROJECTS_BUCKET,
        name=_VERTEX_VIEW,
        filter='resource.type="ml_job"',
    )
    into.add(view)
    _let_read(into, view, members)


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
