"""``job init``: a first file for each target, which ``job check`` takes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from training_platform.cli.main import app
from training_platform.jobs.first_file import on_vertex, vertex_machines, vertex_regions
from training_platform.jobs.resolve import ResolvedJob
from training_platform.jobs.vertex.rules import vertex_findings

IMAGE = ("--image", "us-docker.pkg.dev/example-lab/images/train:1")
BOTH = ("--target", "both", "--cluster", "gpus", "--flavor", "h100", "--machine-type", "a2-highgpu-1g")


@pytest.fixture
def root(new_lab: Callable[..., Path]) -> Path:
    return new_lab()


def job(root: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["job", *arguments, "--root", str(root)])


@pytest.mark.parametrize(
    ("options", "targets"),
    [
        (BOTH, {"gke": "gpus", "vertex": "us-central1"}),
        (
            ("--target", "vertex", "--region", "us-central1", "--machine-type", "a2-highgpu-1g"),
            {"vertex": "us-central1"},
        ),
        (("--flavor", "tpu-v5e-4x4-spot"), {"gke": "tpus"}),
    ],
)
def test_a_first_file_is_right_for_its_targets(options: tuple[str, ...], targets: dict[str, str], root: Path) -> None:
    made = job(root, "init", "vision/first", *IMAGE, *options)

    assert made.exit_code == 0, made.output
    path = root / "jobs" / "vision" / "first.yaml"
    written = yaml.safe_load(path.read_text())
    assert {name: next(iter(written[name].values())) for name in ("gke", "vertex") if name in written} == targets
    checked = job(root, "check", str(path))
    assert checked.exit_code == 0, checked.stdout


@pytest.mark.parametrize("machine_type", vertex_machines())
def test_every_machine_that_is_offered_is_one_that_vertex_ai_takes(
    machine_type: str, take: Callable[[str], ResolvedJob]
) -> None:
    text = on_vertex(vertex_regions(machine_type)[0], machine_type)

    assert [str(found) for found in vertex_findings(take(text)) if found.severity == "error"] == []


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--target", "both", "--cluster", "gpu"), "--cluster 'gpu' is not one of tpus, gpus. Nearest: gpus."),
        (("--target", "vertx"), "Nearest: vertex."),
        (("--flavor", "h100"), "--flavor 'h100' is not one of tpu-v5e-4x8"),
        (("--target", "vertex", "--machine-type", "a2-highgpu-1"), "Nearest: a2-highgpu-1g."),
        (("--target", "vertex", "--region", "us-west9"), "--region 'us-west9' is not one of"),
    ],
)
def test_what_no_first_file_can_have_is_one_sentence(options: tuple[str, ...], sentence: str, root: Path) -> None:
    result = job(root, "init", "vision/first", *IMAGE, *options)

    assert result.exit_code == 2
    assert sentence in result.stderr
    assert not (root / "jobs" / "vision" / "first.yaml").exists()
