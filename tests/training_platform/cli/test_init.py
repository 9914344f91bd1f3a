"""From an empty repository to a clean check, by ``init`` alone."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from tests.places import ROOT
from training_platform.catalog import MACHINE_TYPES
from training_platform.cli.main import app
from training_platform.config.first_files import first_capacity, first_zone

ENVIRONMENT = ("environment", "dev", "--project", "example-lab", "--no-production")
TEAM = ("team", "vision", "--member", "group:vision@example.com")
JOB = ("job", "vision/train", "--image", "us-docker.pkg.dev/example-lab/images/train:1")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a repository without stacks."""
    for name in ("Pulumi.yaml", "__main__.py"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    (tmp_path / "stacks").mkdir()
    return tmp_path


def run(root: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, [*arguments, "--root", str(root)])


def init(root: Path, *arguments: str) -> Result:
    return run(root, "init", *arguments)


@pytest.mark.parametrize("machine_type", ["a3-highgpu-8g", "a2-highgpu-1g", "ct5lp-hightpu-4t", "ct4p-hightpu-4t"])
def test_what_init_writes_is_clean(root: Path, machine_type: str) -> None:
    assert init(root, *ENVIRONMENT, "--machine-type", machine_type, "--alert-email", "a@example.com").exit_code == 0
    assert run(root, "quota", "init").exit_code == 0
    assert init(root, *TEAM).exit_code == 0
    assert init(root, *JOB).exit_code == 0

    checked = run(root, "check", "--fast", "--strict")
    assert (checked.exit_code, checked.stdout.splitlines()[-1]) == (0, "2 stacks: clean, 1 note")
    job = run(root, "job", "check", str(root / "jobs" / "vision" / "train.yaml"))
    assert job.exit_code == 0, job.stdout


def test_a_first_environment_is_ten_lines_below_the_one_that_names_its_schema(root: Path) -> None:
    init(root, *ENVIRONMENT)

    schema, *lines = (root / "stacks" / "Pulumi.dev.yaml").read_text().splitlines()
    assert schema.startswith("# yaml-language-server")
    assert len(lines) == 10


def answered(root: Path, *arguments: str, answers: str) -> str:
    """Run a command whose questions are answered at a terminal, and return what it printed."""
    ours, theirs = os.openpty()
    command = [sys.executable, "-m", "training_platform.cli.main", *arguments]
    with subprocess.Popen(
        [*command, "--root", str(root)], stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        os.write(ours, answers.encode())
        said, _ = process.communicate(timeout=60)
    os.close(theirs)
    os.close(ours)
    assert process.returncode == 0, said
    return said


def test_what_no_flag_says_is_asked_for_at_a_terminal(root: Path) -> None:
    asked = answered(root, "init", "environment", "dev", answers="example-lab\nn\n\n\n")
    answered(root, "init", "team", "vision", answers="\ngroup:vision@example.com\n")
    job = answered(root, "init", "job", "vision/train", answers="\n\nus-docker.pkg.dev/e/i/t:1\n\n\n")

    order = [asked.index(each) for each in ("project id", "production", "Machine type", "Zone")]
    assert order == sorted(order)
    assert "Where it runs" in job
    assert run(root, "quota", "init").exit_code == 0
    assert "2 stacks: clean, 1 warning, 1 note\n" in run(root, "check", "--fast").stdout  # alerts reach nobody


def test_quotas_without_a_snapshot_are_not_called_nearly_full(root: Path) -> None:
    init(root, *ENVIRONMENT)

    (line,) = re.findall(
        r"^(\d+) of (\d+) quotas more than 80% full, (\d+) without", run(root, "check", "--fast").stdout, re.MULTILINE
    )

    assert line[0] == "0"
    assert line[1] == line[2]


def test_a_stack_file_without_its_prefix_is_reported(root: Path) -> None:
    init(root, *ENVIRONMENT)
    init(root, *TEAM)
    (root / "stacks" / "Pulumi.dev-vision.yaml").rename(root / "stacks" / "dev-vision.yaml")

    done = run(root, "check", "--fast")

    assert done.exit_code == 2
    assert "stacks/dev-vision.yaml: no stack is read from a file of this name" in done.stdout


@pytest.mark.parametrize("late", [False, True])
def test_a_first_job_on_vertex_ai_has_its_quotas_whenever_it_comes(root: Path, late: bool) -> None:
    init(root, *ENVIRONMENT, "--alert-email", "a@example.com")
    init(root, *TEAM)
    file = root / "stacks" / "quotas" / "example-lab.yaml"
    if late:
        run(root, "quota", "init")
        file.write_text(
            file.read_text().replace(
                "N2-CPUS-per-project-region:\n      - {limit: 56", "N2-CPUS-per-project-region:\n      - {limit: 57"
            )
        )
    init(root, *JOB, "--target", "both")

    assert run(root, "quota", "init").stdout.startswith("stacks/quotas/example-lab.yaml: written")

    assert ("- {limit: 57, region: us-central1}" in file.read_text()) is late
    checked = run(root, "check", "--fast", "--strict")
    assert (checked.exit_code, checked.stdout.splitlines()[-1]) == (0, "2 stacks: clean, 1 note")
    assert run(root, "quota", "init").stdout == "Every project has a snapshot.\n"


def test_limits_that_google_cloud_said_get_no_rows_of_a_job(root: Path) -> None:
    init(root, *ENVIRONMENT)
    init(root, *TEAM)
    run(root, "quota", "init")
    file = root / "stacks" / "quotas" / "example-lab.yaml"
    file.write_text(pulled := file.read_text().replace("placeholder: true\n", ""))
    init(root, *JOB, "--target", "both")

    assert run(root, "quota", "init").stdout == "Every project has a snapshot.\n"
    assert file.read_text() == pulled


def test_amounts_of_an_earlier_version_are_marked_as_placeholders(root: Path) -> None:
    init(root, *ENVIRONMENT)
    run(root, "quota", "init")
    file = root / "stacks" / "quotas" / "example-lab.yaml"
    marked = file.read_text()
    schema, _, rest = marked.partition("\n")
    body = rest.partition("`placeholder`.\n")[2].replace("placeholder: true\n", "")
    file.write_text(f"{schema}\n# Written without looking at Google Cloud: what stacks need.\n{body}")

    assert run(root, "quota", "init").stdout.startswith("stacks/quotas/example-lab.yaml: written")
    assert file.read_text() == marked


def test_every_machine_type_has_a_first_zone_and_provisioning_model() -> None:
    for name, machine in MACHINE_TYPES.items():
        assert not machine.zones or first_zone(name) in machine.zones
        assert first_capacity(name) in machine.capacities


def test_nothing_that_is_there_is_written_over(root: Path) -> None:
    init(root, *ENVIRONMENT)
    file = root / "stacks" / "Pulumi.dev.yaml"
    file.write_text("config: {}\n")

    again = init(root, *ENVIRONMENT)

    assert again.exit_code == 2
    assert "stacks/Pulumi.dev.yaml is there already" in again.stderr
    assert file.read_text() == "config: {}\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("environment", "dev"), "--project and --production or --no-production are missing."),
        (("environment", "dev", "--no-production"), "--project is missing: Google Cloud project id."),
        (("environment", "dev", "--project", "example-lab"), "--production or --no-production is missing."),
        ((*ENVIRONMENT, "--machine-type", "a3-higpu-8g"), "Nearest: a3-highgpu-8g."),
        ((*ENVIRONMENT, "--machine-type", "x"), "'x' is not a machine type with TPUs or GPUs.\n"),
        (("environment", "dev", "--project", "EXAMPLE", "--production"), "project: 'EXAMPLE' is not in the right form"),
        ((*TEAM, "--environment", "dev"), "'dev' is not an environment"),
        (("job", "vision/train", "--environment", "dev", "--image", "i"), "is not TEAM/NAME of a team of dev"),
        ((*JOB, "--environment", "dev"), "a team of dev, which is not an environment."),
    ],
)
def test_what_cannot_be_written_is_said_and_nothing_is_written(
    root: Path, arguments: tuple[str, ...], said: str
) -> None:
    done = init(root, *arguments)

    assert done.exit_code == 2
    assert said in done.stderr
    assert not list(root.glob("stacks/*.yaml"))


def test_more_demand_raises_a_placeholder_and_is_not_compared_with_it(root: Path) -> None:
    init(root, *ENVIRONMENT)
    run(root, "quota", "init")
    file, stack = root / "stacks" / "quotas" / "example-lab.yaml", root / "stacks" / "Pulumi.dev.yaml"
    gpus = "PREEMPTIBLE-NVIDIA-H100-GPUS-per-project-region:\n      - {limit: %d, region: us-central1}\n"
    assert gpus % 8 in file.read_text()
    stack.write_text(stack.read_text().replace("max_nodes: 1", "max_nodes: 2"))

    assert "quota-exceeded" not in run(root, "check", "--fast").stdout
    assert run(root, "quota", "init").stdout.startswith("stacks/quotas/example-lab.yaml: written")
    raised = file.read_text()
    assert gpus % 16 in raised
    stack.write_text(stack.read_text().replace("max_nodes: 2", "max_nodes: 1"))
    assert run(root, "quota", "init").stdout == "Every project has a snapshot.\n"
    assert file.read_text() == raised  # never lowered


def test_a_snapshot_with_limits_stays(root: Path) -> None:
    init(root, *ENVIRONMENT)
    run(root, "quota", "init")
    file, stack = root / "stacks" / "quotas" / "example-lab.yaml", root / "stacks" / "Pulumi.dev.yaml"
    file.write_text(before := file.read_text().replace("placeholder: true\n", ""))
    stack.write_text(stack.read_text().replace("max_nodes: 1", "max_nodes: 2"))

    assert run(root, "quota", "init").stdout == "Every project has a snapshot.\n"
    assert file.read_text() == before
    assert "quota-exceeded" in run(root, "check", "--fast").stdout  # two VMs, and limits for one


def test_check_says_in_one_line_that_limits_are_not_known_and_what_reads_them(root: Path) -> None:
    init(root, *ENVIRONMENT)
    run(root, "quota", "init")

    checked = run(root, "check", "--fast")

    sentence = "limits of example-lab are not known yet; training-platform quota pull example-lab reads them"
    (line,) = [line for line in checked.stdout.splitlines() if "not known" in line]
    assert line.startswith("note stacks/quotas/example-lab.yaml:")
    assert sentence in line
    assert "full" not in checked.stdout
    planned = run(root, "quota", "plan").stdout
    assert f"Nothing can be planned: {sentence}." in planned
    assert "->" not in planned
    assert f"not known: {sentence}.\n" in run(root, "quota", "show").stdout


@pytest.mark.parametrize("output_format", ["markdown", "html", "json"])
def test_every_report_says_that_limits_are_not_known(root: Path, output_format: str) -> None:
    init(root, *ENVIRONMENT)
    run(root, "quota", "init")

    checked = run(root, "check", "--fast", "--format", output_format).stdout

    assert "limits of example-lab are not known yet" in checked
    assert "nearly full" not in checked
    assert "No quota is more than" not in checked


def test_alerts_reach_whom_a_flag_names(root: Path) -> None:
    init(root, *ENVIRONMENT, "--alert-email", "a@example.com", "--alert-email", "b@example.com")
    run(root, "quota", "init")

    assert "    alerts: {emails: [a@example.com, b@example.com]}\n" in (root / "stacks" / "Pulumi.dev.yaml").read_text()
    assert run(root, "check", "--fast").stdout.splitlines()[-1] == "1 stack: clean, 1 note"


@pytest.mark.parametrize(("machine_type", "kind"), [("a2-highgpu-1g", "gpu"), ("ct5lp-hightpu-4t", "tpu")])
def test_a_job_for_both_targets_has_machines_of_one_kind_as_it_has_one_image(
    root: Path, machine_type: str, kind: str
) -> None:
    init(root, *ENVIRONMENT, "--machine-type", machine_type)
    init(root, *TEAM)

    assert init(root, *JOB, "--target", "both").exit_code == 0

    job = yaml.safe_load((root / "jobs" / "vision" / "train.yaml").read_text())
    assert MACHINE_TYPES[job["vertex"]["machine_type"]].kind == kind
