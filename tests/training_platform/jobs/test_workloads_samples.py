"""The jobs that this repository shows, and the schema that editors check them against."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from tests.places import ORGANISATION, ROOT
from training_platform.cli.authoring.schema import schema_files
from training_platform.config.reading.clock import today
from training_platform.jobs.render import job_files, render_job
from training_platform.jobs.schema import SCHEMA_FILE, job_schema

PRETRAIN = ORGANISATION / "jobs" / "nlp" / "pretrain.yaml"
FINETUNE = ORGANISATION / "jobs" / "vision" / "finetune.yaml"


def accepts(job: object) -> bool:
    return bool(Draft202012Validator(job_schema()).is_valid(job))


def test_the_shown_jobs_are_all_tested_here() -> None:
    assert job_files(ORGANISATION) == [PRETRAIN, FINETUNE]


def test_the_multislice_job_renders_for_gke() -> None:
    rendered = render_job(PRETRAIN, ORGANISATION, "gke", today(ORGANISATION))

    (job,) = yaml.safe_load(rendered.text)["spec"]["replicatedJobs"]
    assert rendered.findings == ()
    assert (job["replicas"], job["template"]["spec"]["parallelism"]) == (2, 4 * 8 // 4)


def test_the_multislice_job_renders_for_vertex_on_the_preemptible_quota() -> None:
    rendered = render_job(PRETRAIN, ORGANISATION, "vertex", today(ORGANISATION))

    assert [str(finding) for finding in rendered.findings] == []
    assert '"strategy": "FLEX_START"' in rendered.text
    assert f"charges {2 * 8} GPUs to CustomModelTrainingPreemptibleH100GPUs" in rendered.notes[0]


def test_the_gpu_job_renders_for_gke() -> None:
    rendered = render_job(FINETUNE, ORGANISATION, None, today(ORGANISATION))

    (job,) = yaml.safe_load(rendered.text)["spec"]["replicatedJobs"]
    assert rendered.findings == ()
    assert (job["replicas"], job["template"]["spec"]["parallelism"]) == (1, 2)


@pytest.mark.parametrize("path", [PRETRAIN, FINETUNE], ids=lambda path: path.stem)
def test_the_schema_takes_every_shown_job_and_is_named_in_its_first_line(path: Path) -> None:
    text = path.read_text(encoding="utf-8")

    assert accepts(yaml.safe_load(text))
    first = text.splitlines()[0]
    assert first.startswith("# yaml-language-server: $schema=")
    assert (path.parent / first.partition("=")[2]).resolve() == ROOT / SCHEMA_FILE


@pytest.mark.parametrize(
    "change",
    [
        {"gke": None},
        {"image": 1},
        {"imgae": "x"},
        {"env": {"A": 1}},
        {"gke": {"cluster": "a", "flavor": "b", "slices": 0}},
    ],
)
def test_the_schema_refuses_what_the_model_refuses(change: dict[str, object]) -> None:
    right = {"environment": "lab", "image": "a:1", "gke": {"cluster": "a", "flavor": "b", "slices": 1}}
    spoiled = {key: value for key, value in (right | change).items() if value is not None}

    assert accepts(right)
    assert not accepts(spoiled)


def test_the_schema_file_is_current() -> None:
    written = (ROOT / SCHEMA_FILE).read_text(encoding="utf-8")

    assert written == schema_files()[SCHEMA_FILE], "run `training-platform schema`"
