"""``training-platform quota request`` as people run it: what it writes, what it leaves unchanged, what it refuses."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from tests.support.places import ORGANISATION, ROOT
from training_platform.cli.main import app

PROD = "stacks/Pulumi.prod.yaml"
DEV = "stacks/Pulumi.dev.yaml"
LIMITS = "stacks/quotas/example-train-prod.yaml"
H100 = "{limit: 72, region: us-central1, gpu_family"
NAME = "gpus-per-gpu-family-nvidia-h100-us-central1"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """The sample organisation, with a limit of 63 H100 GPUs where its stacks need 64."""
    shutil.copytree(ORGANISATION / "stacks", tmp_path / "stacks")
    shutil.copy(ROOT / "Pulumi.yaml", tmp_path)
    edit(tmp_path, LIMITS, H100, H100.replace("72", "63"))
    return tmp_path


def edit(repository: Path, file: str, old: str, new: str) -> None:
    path = repository / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def run(repository: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["quota", *arguments, "--root", str(repository)])


def requests(repository: Path, file: str = PROD) -> Any:
    section = yaml.safe_load((repository / file).read_text())["config"]["training-platform:environment"]
    return section.get("quota_requests", {})


def test_what_is_needed_is_written_and_every_other_line_stays(repository: Path) -> None:
    before = (repository / PROD).read_text().splitlines()

    done = run(repository, "request")

    after = (repository / PROD).read_text().splitlines()
    assert done.exit_code == 0
    assert f"{PROD}: 1 request written" in done.stdout
    assert f"{NAME}: GPUS-PER-GPU-FAMILY NVIDIA_H100 in us-central1, 63 -> 64 GPUs" in done.stdout
    assert requests(repository) == {
        NAME: {
            "service": "compute.googleapis.com",
            "quota_id": "GPUS-PER-GPU-FAMILY-per-project-region",
            "dimensions": {"region": "us-central1", "gpu_family": "NVIDIA_H100"},
            "value": 64,
            "justification": "GPUs of the training platform: h100 of prod 64.",
            "contact": "ml-platform-oncall@example.com",
        }
    }
    first_line = after.index("    quota_requests:")
    assert after[:first_line] + after[first_line + 8 :] == before
    assert "The open requests are enough, once Google grants them." in run(repository, "plan").stdout


def test_a_second_time_there_is_nothing_to_write(repository: Path) -> None:
    run(repository, "request")
    before = (repository / PROD).read_bytes()

    assert "example-train-prod: The open requests are enough" in run(repository, "request").stdout
    assert (repository / PROD).read_bytes() == before


@pytest.mark.parametrize("layout", ["block", "flow"])
def test_a_request_that_is_too_low_is_raised_and_others_come_beside_it(repository: Path, layout: str) -> None:
    run(repository, "request")
    if layout == "flow":
        text = (repository / PROD).read_text()
        start = text.index(f"      {NAME}:")
        end = text.index("\n", text.index("contact:", start)) + 1
        entry = requests(repository)[NAME]
        flow = ", ".join(
            f"{key}: {value}" for key, value in entry.items() if key not in {"dimensions", "justification"}
        )
        dimensions = "dimensions: {region: us-central1, gpu_family: NVIDIA_H100}"
        line = f"      {NAME}: {{{flow}, justification: why, {dimensions}}}  # as agreed\n"
        (repository / PROD).write_text(text[:start] + line + text[end:])
    edit(repository, PROD, "value: 64", "value: 60")
    edit(repository, LIMITS, "- limit: 216", "- limit: 191")

    done = run(repository, "request", "--justification", 'Two "teams": # x')

    assert done.exit_code == 0, done.output
    assert {name: request["value"] for name, request in requests(repository).items()} == {
        NAME: 64,
        "gpus-all-regions": 192,
    }
    assert requests(repository)["gpus-all-regions"]["justification"] == 'Two "teams": # x'
    assert requests(repository)[NAME]["justification"] != 'Two "teams": # x'
    if layout == "flow":
        assert "}  # as agreed\n" in (repository / PROD).read_text()


def test_a_dry_run_writes_nothing(repository: Path) -> None:
    before = (repository / PROD).read_bytes()

    done = run(repository, "request", "--dry-run")

    assert f"{PROD}: 1 request not written" in done.stdout
    assert (repository / PROD).read_bytes() == before


def test_lines_end_as_the_file_has_them(repository: Path) -> None:
    path = repository / PROD
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))

    assert run(repository, "request").exit_code == 0

    assert path.read_bytes().count(b"\n") == path.read_bytes().count(b"\r\n")
    assert requests(repository)[NAME]["value"] == 64


def test_one_project_may_be_asked_for_alone(repository: Path) -> None:
    edit(repository, "stacks/quotas/example-train-dev.yaml", "- limit: 48", "- limit: 31")

    run(repository, "request", "--project", "example-train-dev")

    assert requests(repository) == {}
    assert [request["value"] for request in requests(repository, DEV).values()] == [32]


def test_where_one_file_cannot_take_them_none_is_written(repository: Path) -> None:
    edit(repository, "stacks/quotas/example-train-dev.yaml", "- limit: 48", "- limit: 31")
    edit(repository, PROD, "    labels:\n", "    quota_requests: {}\n    labels:\n")
    before = {file: (repository / file).read_bytes() for file in (DEV, PROD)}

    done = run(repository, "request")

    assert done.exit_code == 2
    assert f"{PROD}:7: has a layout in which no line of quota_requests can be written" in done.stderr
    assert {file: (repository / file).read_bytes() for file in before} == before


def test_nothing_is_asked_for_while_a_stack_is_not_counted(repository: Path) -> None:
    edit(repository, "stacks/Pulumi.prod-vision.yaml", "replicas: 1", "replicas: one")
    before = (repository / PROD).read_bytes()

    done = run(repository, "request")

    assert done.exit_code == 2
    assert "not counted: stacks/Pulumi.prod-vision.yaml:35:" in done.stderr
    assert "nothing was written" in done.stderr
    assert (repository / PROD).read_bytes() == before


def test_somebody_has_to_be_there_whom_google_may_ask(repository: Path) -> None:
    edit(repository, PROD, "    alerts:\n      emails: [ml-platform-oncall@example.com]\n", "")

    assert "give an address for Google's questions with --contact" in run(repository, "request").stderr
    assert "that is not an address such as" in run(repository, "request", "--contact", "ml platform").stderr
    assert run(repository, "request", "--contact", "quota@example.com").exit_code == 0
    assert requests(repository)[NAME]["contact"] == "quota@example.com"


def test_a_project_that_nothing_is_known_of_is_one_sentence(repository: Path) -> None:
    done = run(repository, "request", "--project", "example-train-prd")

    assert (done.exit_code, done.stdout) == (2, "")
    assert "Nearest: example-train-prod." in done.stderr
