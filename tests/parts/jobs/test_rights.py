from __future__ import annotations

import pytest

from tests.parts.jobs.lab import Lab, Take
from tests.support.lab import ENVIRONMENT, VISION
from training_platform.config.reading.finding import Finding
from training_platform.config.workspace import Workspace, read_workspace
from training_platform.parts.jobs.resolve import ResolvedJob
from training_platform.parts.jobs.submission_rights import rights_findings
from training_platform.resources.grants import Grant, plan_grants
from training_platform.resources.stack_plan import stack_plan

HEAD = "environment: lab\n"
GPU = "gke: {cluster: gpus, flavor: h100, nodes: 1}\n"
VERTEX = "vertex: {region: us-central1, machine_type: a2-highgpu-1g}\n"
SOURCE = "source: {folder: src, image: registry.example.com/a:1}\ncommand: [python, train.py]\n"
IMAGE = "image: registry.example.com/a:1\n"
IMAGES = ENVIRONMENT.replace("    labels:", "    images: {location: us-central1}\n    labels:", 1)
WITHOUT_SUBMITTERS = "\n".join(line for line in ENVIRONMENT.splitlines() if "vertex_submitters" not in line)


def without(workspace: Workspace, part: str, name: str = "lab-vision") -> Workspace:
    """Let a stack's plan have no grants whose names contain ``part``."""
    plan = stack_plan(workspace.stacks[name], workspace)
    assert plan is not None
    kept = [grant for grant in plan_grants(plan) if part not in grant.planned_as.name]
    removed: list[Grant] = [grant for grant in plan_grants(plan) if part in grant.planned_as.name]
    assert removed, part
    workspace.once(("grants", name), lambda: kept)
    return workspace


def on_gke(job: ResolvedJob) -> list[Finding]:
    return list(rights_findings(job, "gke"))


def refused_on_vertex(job: ResolvedJob) -> list[Finding]:
    return [finding for finding in rights_findings(job, "vertex") if finding.severity != "note"]


def test_rights_of_the_stacks_keep_what_a_job_file_says(take: Take) -> None:
    mounts = "mounts:\n- {name: i, source: {data_set: images}}\n- {name: c, source: {bucket: checkpoints}}\n"
    fields = "output: checkpoints\nsecrets: {TOKEN: token}\n"
    job = take(HEAD + SOURCE + fields + mounts + GPU + VERTEX)

    assert on_gke(job) == []
    assert refused_on_vertex(job) == []


def test_source_that_members_cannot_upload_is_found(take: Take, new_lab: Lab) -> None:
    workspace = without(read_workspace(new_lab()), "bucket-checkpoints-storage-objectCreator")

    findings = on_gke(take(HEAD + SOURCE + "output: checkpoints\n" + GPU, workspace=workspace))

    bucket = "gs://example-lab-lab-vision-checkpoints"
    assert {finding.path: finding.message for finding in findings} == {
        "source": f"members of vision cannot write to {bucket}: group:vision@example.com lacks storage.objects.create",
        "output": f"members of vision cannot write run.json to {bucket}: group:vision@example.com lacks "
        "storage.objects.create",
    }
    assert all(finding.file == "jobs/vision/train.yaml" and finding.position for finding in findings)


def test_data_and_secrets_that_jobs_cannot_read_are_found(take: Take, new_lab: Lab) -> None:
    data = take(
        HEAD + IMAGE + "mounts: [{name: i, source: {data_set: images}}]\n" + GPU,
        workspace=without(read_workspace(new_lab()), "data-images-access"),
    )
    assert [finding.path for finding in on_gke(data)] == ["mounts[0].source.data_set"]


def test_a_secret_that_jobs_cannot_read_is_found(take: Take, new_lab: Lab) -> None:
    job = take(
        HEAD + IMAGE + "command: [python]\nsecrets: {TOKEN: token}\n" + GPU,
        workspace=without(read_workspace(new_lab()), "secret-token-jobs"),
    )

    (finding,) = on_gke(job)
    assert (finding.path, "secretmanager.versions.access" in finding.message) == ("secrets.TOKEN", True)


def test_an_image_that_vertex_ai_of_another_project_cannot_pull_is_found(take: Take, new_lab: Lab) -> None:
    team = VISION.replace("    labels:", "    project: example-own\n    labels:", 1)
    workspace = without(read_workspace(new_lab(lab=IMAGES, lab_vision=team)), "agents-vertex-team-images")
    image = "image: us-central1-docker.pkg.dev/example-lab/lab-vision-images/a:1\n"

    (finding,) = refused_on_vertex(take(HEAD + image + VERTEX, workspace=workspace))

    assert finding.path == "image"
    assert "service-{example-own}@gcp-sa-aiplatform" in finding.message


def test_an_image_of_another_project_is_counted_as_not_judged(take: Take) -> None:
    (finding,) = on_gke(take(HEAD + "image: us-docker.pkg.dev/example-other/images/a:1\ncommand: [a]\n" + GPU))

    assert (finding.path, finding.severity, finding.unjudged) == ("image", "note", "image of another project")


@pytest.mark.parametrize("image", ["us-docker.pkg.dev/vertex-ai/training/a:1", "pytorch/pytorch:2.9.0"])
def test_an_image_for_everybody_is_no_finding(take: Take, image: str) -> None:
    assert on_gke(take(f"{HEAD}image: {image}\ncommand: [a]\n{GPU}")) == []


def test_an_attachment_that_vertex_ai_may_not_use_is_found(take: Take, new_lab: Lab) -> None:
    workspace = without(read_workspace(new_lab()), "agents-vertex-network", "lab")
    target = "vertex: {region: us-central1, machine_type: a2-highgpu-1g, network_attachment: environment}\n"

    (finding,) = refused_on_vertex(take(HEAD + IMAGE + target, workspace=workspace))

    assert finding.path == "vertex.network_attachment"
    assert "compute.networkAttachments.update" in finding.message


def test_a_job_that_no_stack_lets_anybody_submit_to_vertex_ai_warns(take: Take, new_lab: Lab) -> None:
    job = take(HEAD + IMAGE + GPU + VERTEX, workspace=read_workspace(new_lab(lab=WITHOUT_SUBMITTERS)))

    (finding,) = rights_findings(job, "vertex")

    assert (finding.rule, finding.severity, finding.path) == ("job-vertex-submission", "warning", "vertex")
    assert on_gke(job) == []


def test_a_job_that_only_a_pipeline_submits_to_vertex_ai_has_a_note(take: Take, new_lab: Lab) -> None:
    (finding,) = rights_findings(take(HEAD + IMAGE + GPU + VERTEX), "vertex")

    assert (finding.rule, finding.severity, finding.path) == ("job-vertex-submission", "note", "vertex")
    assert "serviceAccount:submit@example-ci.iam.gserviceaccount.com submits job files from main" in finding.message
    own_project = VISION.replace("    vertex:\n", "    project: example-own\n    vertex:\n      members_submit: true\n")
    job = take(HEAD + IMAGE + GPU + VERTEX, workspace=read_workspace(new_lab(lab_vision=own_project)))
    assert list(rights_findings(job, "vertex")) == []
