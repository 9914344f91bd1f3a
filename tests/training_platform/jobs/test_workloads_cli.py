from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from tests.places import ORGANISATION, ROOT
from training_platform.cli.main import app

Lab = Callable[..., Path]
JOB = """\
environment: lab
image: registry.example.com/train:1
gke: {cluster: gpus, flavor: h100, nodes: 2}
vertex: {region: us-central1, machine_type: a3-highgpu-8g, capacity: flex-start}
"""


@pytest.fixture
def root(new_lab: Lab) -> Path:
    root = new_lab()
    (root / "jobs" / "vision" / "train.yaml").write_text(JOB)
    return root


def job(root: Path, command: str, *arguments: str) -> Result:
    files = [str(root / each) if each.startswith("jobs/") else each for each in arguments]
    return CliRunner().invoke(app, ["job", command, *files, "--root", str(root)])


def write(root: Path, old: str, new: str, name: str = "train") -> None:
    assert old in JOB
    (root / "jobs" / "vision" / f"{name}.yaml").write_text(JOB.replace(old, new))


def test_a_jobset_goes_to_standard_output_alone(root: Path) -> None:
    result = job(root, "render", "jobs/vision/train.yaml", "--target", "gke")

    assert result.exit_code == 0
    assert yaml.safe_load(result.stdout)["kind"] == "JobSet"
    assert result.stderr.startswith("# asks for 16 nvidia.com/gpu of h100 in gpus (2 VMs)")


def test_a_custom_job_is_json_and_its_charges_are_beside_it(root: Path) -> None:
    result = job(root, "render", "jobs/vision/train.yaml", "--target", "vertex")

    assert result.exit_code == 0
    assert json.loads(result.stdout)["jobSpec"]["scheduling"]["strategy"] == "FLEX_START"
    assert "# charges 8 GPUs to CustomModelTrainingPreemptibleH100GPUs" in result.stderr


def test_the_same_job_is_the_same_text(root: Path) -> None:
    first, second = (job(root, "render", "jobs/vision/train.yaml", "--target", "gke") for _ in range(2))

    assert first.stdout == second.stdout != ""


def test_one_target_needs_no_name(root: Path) -> None:
    write(root, "gke: {cluster: gpus, flavor: h100, nodes: 2}\n", "")

    result = job(root, "render", "jobs/vision/train.yaml")

    assert result.exit_code == 0
    assert result.stdout.startswith("{")


@pytest.mark.parametrize("broken", ["nodes: 20", "nodes: two"])
def test_errors_go_to_standard_error_and_nothing_is_rendered(root: Path, broken: str) -> None:
    write(root, "nodes: 2", broken)

    result = job(root, "render", "jobs/vision/train.yaml", "--target", "gke")

    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("error jobs/vision/train.yaml:3:36: gke.nodes: ")


def test_what_is_wrong_is_said_in_the_order_of_the_file(root: Path) -> None:
    (root / "jobs" / "vision" / "train.yaml").write_text(f"cpu: x\nfoo: 1\nenv: {{A: 1}}\n{JOB}")

    found = job(root, "check", "jobs/vision/train.yaml").stdout

    assert re.findall(r"(?m)^error jobs/vision/train\.yaml:(\d+):", found) == ["1", "2", "3"]


def test_a_warning_does_not_stop_the_rendering(root: Path) -> None:
    (root / "jobs" / "vision" / "train.yaml").write_text(f"{JOB}output: far\n")

    result = job(root, "render", "jobs/vision/train.yaml", "--target", "vertex")

    assert result.exit_code == 0
    assert result.stderr.startswith("warning jobs/vision/train.yaml:5:1: output: far is in europe-west4")
    assert json.loads(result.stdout)


def test_what_is_wrong_for_the_other_target_does_not_count(root: Path) -> None:
    write(root, "nodes: 2", "nodes: 20")

    assert job(root, "render", "jobs/vision/train.yaml", "--target", "vertex").exit_code == 0


@pytest.mark.parametrize(
    ("text", "arguments", "sentence"),
    [
        (
            JOB,
            ["jobs/vision/train.yaml"],
            "jobs/vision/train.yaml can run on gke and on vertex: say which with --target.",
        ),
        (
            JOB.replace("gke: ", "# gke: "),
            ["jobs/vision/train.yaml", "--target", "gke"],
            "jobs/vision/train.yaml has no gke target; it has vertex.",
        ),
        ("[", ["jobs/vision/train.yaml"], "jobs/vision/train.yaml:2:1: is not YAML: "),
        (JOB, ["jobs/vision/none.yaml"], "jobs/vision/none.yaml: cannot be read: No such file or directory."),
        (
            JOB,
            ["jobs/train.yaml"],
            "jobs/train.yaml: is not a job of this repository: jobs are jobs/<team>/<job>.yaml in",
        ),
        (JOB, ["jobs/vision/train.yaml", "--today", "soon"], "--today: 'soon' is not a day"),
    ],
)
def test_what_cannot_be_rendered_as_asked_is_one_sentence(
    root: Path, text: str, arguments: list[str], sentence: str
) -> None:
    (root / "jobs" / "vision" / "train.yaml").write_text(text)

    result = job(root, "render", *arguments)

    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"training-platform: {sentence}")
    assert result.stderr.count("\n") == 1


def test_all_jobs_are_checked_for_all_targets(root: Path) -> None:
    write(root, "nodes: 2", "nodes: 6", "big")
    write(root, "flex-start}", "flex-start, replicas: 9}", "long")

    result = job(root, "check")

    assert result.exit_code == 1
    assert [line.split(":")[0] for line in result.stdout.splitlines() if line.startswith("error")] == [
        "error jobs/vision/big.yaml",
        "error jobs/vision/long.yaml",
    ]
    assert result.stdout.endswith("3 jobs: 2 errors, 0 warnings\n")


def test_jobs_that_are_right_are_counted(root: Path) -> None:
    result = job(root, "check", "jobs/vision/train.yaml")

    assert (result.exit_code, result.stdout) == (0, "1 job: 0 errors, 0 warnings\n")


def test_a_file_that_cannot_be_read_hides_no_other(root: Path) -> None:
    write(root, "nodes: 2", "nodes: 6", "big")
    (root / "jobs" / "vision" / "broken.yaml").write_text("[")
    (root / "jobs" / "lost.yml").write_text(JOB)

    result = job(root, "check")

    assert result.exit_code == 2
    assert "error jobs/vision/big.yaml" in result.stdout
    assert [line.split(":")[1] for line in result.stderr.splitlines()] == [" jobs/lost.yml", " jobs/vision/broken.yaml"]


def test_limits_are_judged_by_the_given_day(root: Path) -> None:
    result = job(root, "check", "--today", "2027-11-21")

    assert result.exit_code == 0
    assert "warning stacks/quotas/example-lab.yaml:2:1: taken: is 385 days ago" in result.stdout


def test_help_imports_none_of_the_work() -> None:
    loaded = "{'pydantic', 'yaml', 'training_platform.jobs', 'training_platform.catalog'} & set(sys.modules)"
    code = f"import sys, training_platform.cli.job.files; sys.exit(', '.join({loaded}) or None)"

    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False, capture_output=True, text=True)

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("target", "others"),
    [
        ("gke", ("jobs.vertex", "jobs.cost", "quota.ledger", "resources.declared")),
        ("vertex", ("jobs.gke", "jobs.cost")),
    ],
)
def test_rendering_imports_nothing_of_other_commands_targets_and_rules(target: str, others: tuple[str, ...]) -> None:
    unused = {f"training_platform.{name}" for name in (*others, "rules", "cli.sandbox", "cli.job.runs")} | {"rich"}
    argv = ["training-platform", "job", "render", "jobs/nlp/pretrain.yaml", "--target", target]
    code = f"""
import sys
from training_platform.cli.main import main
sys.argv = {argv!r}
try:
    main()
finally:
    print(sorted({unused!r} & set(sys.modules)), file=sys.stderr)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ORGANISATION, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False,
        capture_output=True, text=True,
    )  # fmt: skip

    assert (done.returncode, done.stderr.splitlines()[-1]) == (0, "[]")
