"""Every field of a job reaches what is submitted, or its notes, and APIs take it; a new field has to be added here."""

from __future__ import annotations

import pytest

from tests.parts.jobs.field_changes import FIELDS, MORE_POOLS, MORE_SHARES
from tests.parts.jobs.lab import Lab, Take
from tests.parts.jobs.runs.vertex_cloud import PROJECT, Cloud
from tests.support.lab import TODAY
from training_platform.config.reading.section import Section
from training_platform.config.workspace import Workspace, read_workspace
from training_platform.parts.jobs.gke.jobset import jobset
from training_platform.parts.jobs.job_checks import judge
from training_platform.parts.jobs.naming import point_runs
from training_platform.parts.jobs.render import json_text, yaml_text
from training_platform.parts.jobs.resolve import ResolvedJob
from training_platform.parts.jobs.schema import job_schema
from training_platform.parts.jobs.vertex.custom_job import job_spec, vertex_body
from training_platform.rules.documents.definitions import CrdSchema


@pytest.fixture
def two(new_lab: Lab) -> Workspace:
    """The organisation with a second, equal environment, and a second, equal cluster of GPUs."""
    root = new_lab()
    for name in ("train.py", "other.py", "src/pyproject.toml", "lib/pyproject.toml"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(f"# {name}")
    for name in ("Pulumi.lab.yaml", "Pulumi.lab-vision.yaml"):
        path = root / "stacks" / name
        text = path.read_text()
        for line, more in (("          h100: ", MORE_POOLS), ("        h100: ", MORE_SHARES)):
            lines = "".join(f"\n{line.removesuffix('h100: ')}{addition}" for addition in more)
            text = text.replace(f"\n{line}", f"{lines}\n{line}")
        text = text.replace(
            "        node_pools:\n          queue",
            "        cpu_pools: {general: {}}\n        node_pools:\n          queue",
        )
        *head, gpus = text.partition("gpus:\n")
        gpus, *following_parts = gpus.partition("    buckets:")
        path.write_text("".join([*head, gpus, "      more:\n", gpus, *following_parts]))
        other = path.read_text().replace("environment: lab", "environment: lob").replace("example-lab", "example-lob")
        (root / "stacks" / name.replace("lab", "lob")).write_text(other)
    workspace = read_workspace(root)
    assert [str(finding) for stack in workspace.stacks.values() for finding in stack.findings] == []
    return workspace


@pytest.mark.parametrize("model", FIELDS, ids=lambda model: model.__name__)
def test_every_field_is_changed_here(model: type[Section]) -> None:
    assert FIELDS[model].keys() == model.model_fields.keys()


def test_every_part_of_a_job_is_changed_here() -> None:
    definitions = job_schema()["$defs"]

    assert {"Job", *definitions} == {model.__name__ for model in FIELDS}


every_change = pytest.mark.parametrize(
    ("target", "old", "new"),
    [change for changes in FIELDS.values() for change in changes.values()],
    ids=[f"{model.__name__}.{name}" for model, changes in FIELDS.items() for name in changes],
)


def text_of(target: str) -> str:
    image = "" if target.startswith("source:") else "image: registry.example.com/train:1\n"
    return f"environment: lab\n{image}{target}\n"


@every_change
def test_a_changed_field_changes_what_is_submitted(
    take: Take, two: Workspace, *, target: str, old: str, new: str
) -> None:
    text = text_of(target)
    assert text.count(old) == 1

    assert submitted(take(text, workspace=two)) != submitted(take(text.replace(old, new), workspace=two))


def submitted(job: ResolvedJob) -> tuple[list[str], tuple[str, ...]]:
    """Return what a job submits, and the notes about it; a JobSet does not say into which cluster it goes."""
    if job.spec.gke:
        return [yaml_text(jobset(run)) for run in point_runs(job, "run")], judge(job, "gke", TODAY).notes
    return [json_text(vertex_body(job))], judge(job, "vertex", TODAY).notes


@every_change
def test_every_field_renders_to_what_its_api_takes(
    take: Take, two: Workspace, schema: CrdSchema, *, target: str, old: str, new: str
) -> None:
    job = take(text_of(target).replace(old, new), workspace=two)
    if job.spec.gke:
        assert [error for run in point_runs(job, "run") for error in schema.errors(jobset(run))] == []
        return
    assert job.spec.vertex
    collection, body = vertex_body(job)
    inputs = {"displayName": "inputs", "jobSpec": job_spec(body)}  # the document types a pipeline's inputs as anything
    for kind, content in ((collection, body), ("customJobs", inputs)):
        path = f"v1/projects/{PROJECT}/locations/{job.spec.vertex.region}/{kind}"
        code, answer = Cloud(two.root).cloud.handle("aiplatform", "POST", path, [], content)
        assert code != 400, answer
