"""An invented organisation with one environment and two teams, and jobs of team vision from YAML text."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import dedent

import pytest

from tests.parts.jobs.lab import Judge, Lab, Read, Take
from tests.support.lab import TODAY, write_lab
from training_platform.config.reading.finding import Finding
from training_platform.config.reading.source import parse_source
from training_platform.config.workspace import Workspace, read_workspace
from training_platform.parts.jobs.job_checks import Judgement, judge
from training_platform.parts.jobs.job_model import Target
from training_platform.parts.jobs.resolve import ResolvedJob, parse_job
from training_platform.rules.documents.definitions import CrdSchema, load_crds


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """The organisation's stacks, for tests that only read them."""
    workspace = read_workspace(write_lab(tmp_path_factory.mktemp("lab")))
    assert [str(finding) for stack in workspace.stacks.values() for finding in stack.findings] == []
    return workspace


@pytest.fixture(scope="session")
def schema() -> CrdSchema:
    """The CRD of JobSets."""
    folder = Path(__file__).parents[3].parent / "shared" / "schemas" / "jobset"
    if not folder.is_dir():
        pytest.skip("the upstream CRDs are not beside this checkout, in ../shared/schemas")
    return load_crds(folder)["jobset.x-k8s.io", "v1alpha2", "JobSet"]


@pytest.fixture
def new_lab(tmp_path: Path) -> Lab:
    """Return a function that writes a copy of the organisation for a test to change, and returns its root."""
    return lambda **replaced: write_lab(tmp_path / "lab", **replaced)


@pytest.fixture
def read(lab: Workspace) -> Read:
    """Return a function that reads the text of a job of team vision, called ``train`` unless a file says otherwise."""

    def parsed(
        text: str, file: str = "jobs/vision/train.yaml", workspace: Workspace | None = None
    ) -> tuple[ResolvedJob | None, list[Finding]]:
        head = "" if "environment:" in text else "environment: lab\nimage: registry.example.com/train:1\n"
        return parse_job(parse_source(head + dedent(text), file), workspace or lab)

    return parsed


@pytest.fixture
def take(read: Read) -> Take:
    """Return a function that reads a valid job."""

    def resolved(text: str, file: str = "jobs/vision/train.yaml", workspace: Workspace | None = None) -> ResolvedJob:
        job, findings = read(text, file, workspace)
        assert job is not None, [str(finding) for finding in findings]
        return job

    return resolved


@pytest.fixture
def verdict(take: Take) -> Judge:
    """Return a function that checks one target of a job, which has a command if its text names no program."""

    def judged(text: str, target: Target) -> Judgement:
        program = "" if re.search("^(command|source):", text, re.MULTILINE) else "\ncommand: [train]"
        return judge(take(text + program), target, TODAY)

    return judged
