"""What holds for any files in ``stacks/`` and ``jobs/``: samples, until a user replaces them.

Nothing else in the tests reads these two folders: tests/conftest.py holds that.
"""

from __future__ import annotations

import json
import shutil
from datetime import date
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from docs.picture import BEFORE, PICTURE, terminal_text, text_of
from tests.support.places import ROOT
from training_platform.checks.run import run_check
from training_platform.checks.stacks import CheckOptions
from training_platform.config.model.stack import read_stack
from training_platform.config.reading.clock import today
from training_platform.config.workspace import read_workspace
from training_platform.parts.jobs.job_checks import check_jobs, job_files

STACKS = sorted((ROOT / "stacks").glob("Pulumi.*.yaml"))
JOBS = job_files(ROOT)


def accepts(schema: Path, file: Path) -> bool:
    validator = Draft202012Validator(json.loads(schema.read_text(encoding="utf-8")))
    return bool(validator.is_valid(yaml.safe_load(file.read_text(encoding="utf-8"))))


def test_every_stack_is_read_and_judged() -> None:
    report = run_check(ROOT, CheckOptions(today=today(ROOT)))

    assert report.failures == ()
    assert {stack.file for stack in report.stacks} == {file.relative_to(ROOT).as_posix() for file in STACKS}


@pytest.mark.parametrize("file", STACKS, ids=lambda path: path.stem)
def test_an_editor_takes_a_stack_that_the_model_takes(file: Path) -> None:
    assert read_stack(file, ROOT).findings or accepts(ROOT / "stacks" / "stack.schema.json", file)


@pytest.mark.parametrize("file", JOBS, ids=lambda path: path.stem)
def test_an_editor_takes_every_job(file: Path) -> None:
    assert accepts(ROOT / "jobs" / "job.schema.json", file)


@pytest.mark.parametrize(
    ("folder", "files", "rules"),
    [
        ("experiments/vit_storage", 4, {("job-vertex-mount", "warning"), ("job-vertex-shared-memory", "warning")}),
        ("jobs/dws", 3, set()),
    ],
)
def test_examples_for_the_samples_are_right_on_them(
    tmp_path: Path, folder: str, files: int, rules: set[tuple[str, str]]
) -> None:
    if not any("food101-bucket" in file.read_text(encoding="utf-8") for file in STACKS):
        pytest.skip("stacks/ has no longer the samples' data sets")
    for name in ("stacks", "examples"):
        shutil.copytree(ROOT / name, tmp_path / name)
    shutil.copy(ROOT / "Pulumi.yaml", tmp_path)
    (tmp_path / "jobs" / "vision").mkdir(parents=True)
    examples = sorted((tmp_path / "examples" / folder).glob("*.yaml"))
    copies = [Path(shutil.copy(file, tmp_path / "jobs" / "vision")) for file in examples]

    findings, unreadable = check_jobs(copies, tmp_path, read_workspace(tmp_path), date(2026, 11, 21))

    assert (len(copies), unreadable) == (files, [])
    assert {(finding.rule, finding.severity) for finding in findings} == rules | {("job-vertex-submission", "note")}


def test_the_picture_of_the_readme_shows_what_check_says_now() -> None:
    if not any(BEFORE in file.read_text(encoding="utf-8") for file in STACKS):
        pytest.skip("stacks/ has no longer the samples' pool of A100")

    assert text_of(PICTURE.read_bytes()) == terminal_text().plain, "run `make picture`"
