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

    done = run(repository, "request", "--justification", 'Zwei "Teams" für KI: # x')

    assert done.exit_code == 0, done.output
    assert {name: request["value"] for name, request in requests(repository).items()} == {
        NAME: 64,
        "gpus-all-regions": 192,
    }
    assert requests(repository)["gpus-all-regions"]["justification"] == 'Zwei "Teams" für KI: # x'
    assert requests(repository)[NAME]["justification"] != 'Zwei "Teams" für KI: # x'
    assert "für KI" in (repository / PROD).read_text(encoding="utf-8")
    if layout == "flow":
        assert "}  # as agreed\n" in (repository / PROD).read_text()


def test_a_dry_run_writes_nothing(repository: Path) -> None:
    before = (repository / PROD).read_bytes()

    done = run(repository, "request", "--dry-run")

    assert f"{PROD}: 1 request not written" in done.stdout
    assert (repository / PROD).read_bytes() == before


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
