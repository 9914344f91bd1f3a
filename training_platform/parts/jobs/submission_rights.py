"""Permissions that job files need and that no stack grants: for uploads, data, images, and submission to Vertex AI."""

from __future__ import annotations

import re
from collections.abc import Iterator

from training_platform.config.model.environment import Environment
from training_platform.config.model.team import Team
from training_platform.config.reading.declaration import Draft, finding, located
from training_platform.config.reading.finding import Finding, Path
from training_platform.config.reading.section import enumeration
from training_platform.parts.jobs.container import image
from training_platform.parts.jobs.job_model import Target
from training_platform.parts.jobs.job_rules import job_rule, vertex_rule
from training_platform.parts.jobs.resolve import ResolvedJob
from training_platform.parts.jobs.source_archive import source_bucket
from training_platform.resources.network import attachment
from training_platform.resources.rights import resource_named
from training_platform.resources.scope import bucket_id
from training_platform.rules.rights import (
    ADD_OBJECTS,
    PULL_IMAGES,
    READ_OBJECTS,
    READ_SECRET,
    WRITE_OBJECTS,
    NeededRight,
    RightsOfTeam,
    attaching,
    lacking,
    stack_rights,
)

_OTHER_REPOSITORY = re.compile(r"projects/(?P<project>(?!vertex-ai)[^/]+)/locations/[^/]+/repositories/")


def rights_findings(job: ResolvedJob, target: Target) -> list[Finding]:
    """Return a finding for each permission that a job lacks on a target, and one if nobody may submit the job."""
    return located(_drafts(job, target))


JOB_RIGHTS = job_rule(
    "job-rights",
    "Find a field of a job file that needs a role that the stacks do not grant.",
    refused_by="Google Cloud, with 403 at the first call; nobody, if the role is granted outside the stacks",
)


JOB_IMAGE_PROJECT = job_rule(
    "job-image-project",
    "Find an image in a repository of another project, whose roles are not known.",
    severity="note",
)


JOB_VERTEX_SUBMISSION = vertex_rule(
    "job-vertex-submission",
    "Find a job on Vertex AI that the stacks allow nobody to submit, or (a note) only an account of the "
    "environment's `vertex_submitters`.",
    severity="warning",
)


def _drafts(job: ResolvedJob, target: Target) -> Iterator[Draft]:
    rights = stack_rights(job.stack, job.workspace)
    if rights is None:
        return  # the stack has findings, or no plan
    yield from lacking(job, JOB_RIGHTS, _needed_rights(job, target), rights)
    yield from _image_of_others(job)
    if target != "vertex" or job.team.vertex.members_submit:
        return
    if job.environment.vertex_submitters:
        message = members_may_not(job.team, job.environment, job.scope.project)
        yield finding(job, ("vertex",), message, rule=JOB_VERTEX_SUBMISSION, severity="note")
    else:
        message = f"no stack allows anybody to start jobs on Vertex AI in {job.scope.project}"
        allowed = (
            f"a pipeline under vertex_submitters of {job.team.environment}; or vertex.members_submit in a project "
            f"that only team {job.team.name} uses"
        )
        yield finding(job, ("vertex",), message, rule=JOB_VERTEX_SUBMISSION, allowed=allowed)


def _image_of_others(job: ResolvedJob) -> Iterator[Draft]:
    """Find an Artifact Registry image in a project that no stack uses, except Vertex AI's images, which are public.

    For any other registry, only the image's name is known.
    """
    match = _OTHER_REPOSITORY.match(resource_named(image(job), job.scope.project))
    if match and match["project"] not in (job.scope.project, job.environment.project):
        message = f"is in project {match['project']}: no stack file shows whether nodes and Vertex AI may pull it"
        path: Path = ("source", "image") if job.spec.source else ("image",)
        yield finding(job, path, message, rule=JOB_IMAGE_PROJECT, unjudged="image of another project")


def members_may_not(team: Team, environment: Environment, project: str) -> str:
    """Return a sentence that says why a team's members may not start jobs on Vertex AI, and who may."""
    submitters = environment.vertex_submitters
    jobs = f"jobs on Vertex AI in {project}, where a job could act as any account"
    if not submitters:
        return f"nobody, and so no member of {team.name}, may start or list {jobs} (docs/tenancy.md)"
    return (
        f"members of {team.name} may not start {jobs}; {enumeration(submitters)} submits job files from main with "
        "`training-platform job submit FILE --by-pipeline` (docs/pipelines.md)"
    )


def _needed_rights(job: ResolvedJob, target: Target) -> Iterator[NeededRight]:
    team = RightsOfTeam(job.team, job.environment)
    spec = job.spec
    uploaded_to = source_bucket(job)
    if uploaded_to:
        uri = f"gs://{bucket_id(job.scope, uploaded_to)}"
        yield from team.of_members(("source",), f"write to {uri}", ADD_OBJECTS, resource_named(uri, ""))
    if spec.output:
        uri = f"gs://{bucket_id(job.scope, spec.output)}"
        yield team.of_jobs(("output",), f"write to {uri}", WRITE_OBJECTS, resource_named(uri, ""))
        yield from team.of_members(("output",), f"write run.json to {uri}", ADD_OBJECTS, resource_named(uri, ""))
    yield from _of_mounts(job, team)
    for variable, secret in spec.secrets.items():
        key = secret.partition(":")[0]
        yield team.of_jobs(("secrets", variable), f"read secret {key}", (READ_SECRET,), team.secret(key))
    repository = resource_named(image(job), job.scope.project)
    if repository in team.repositories():
        path: Path = ("source", "image") if spec.source else ("image",)
        yield from team.of_members(path, "look up the image", PULL_IMAGES, repository)
        yield team.of_jobs(path, "pull the image", PULL_IMAGES, repository)
        if target == "vertex":
            yield from team.agent_pulls(path, repository)
    if target == "vertex" and spec.vertex:
        name = attachment(spec.vertex.network_attachment, spec.vertex.region, job.scope)
        if name:
            yield attaching(("vertex", "network_attachment"), job.scope.project, name)


def _of_mounts(job: ResolvedJob, team: RightsOfTeam) -> Iterator[NeededRight]:
    for index, mount in enumerate(job.spec.mounts):
        source = mount.source
        path = ("mounts", index, "source")
        permissions = READ_OBJECTS if mount.read_only else WRITE_OBJECTS
        if source.bucket:
            uri = f"gs://{bucket_id(job.scope, source.bucket)}"
            yield team.of_jobs((*path, "bucket"), f"mount {uri}", permissions, resource_named(uri, ""))
        data = job.environment.data_sets[source.data_set] if source.data_set else None
        if data and data.bucket:
            resource = f"buckets/{data.bucket.name}"
            yield team.of_jobs((*path, "data_set"), f"mount data set {source.data_set}", READ_OBJECTS, resource)
