"""``training-platform explain`` and ``rules list``: what people and programs are told of a rule, a place, a quota."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.places import ORGANISATION, ROOT
from training_platform.cli.main import app
from training_platform.rules import RULES
from training_platform.rules.descriptions import GROUPS, TITLES, exemption, rule_sheets


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, [*arguments])


@pytest.fixture
def small_disk(tmp_path: Path) -> tuple[Path, int]:
    """Return a copy of the tests' organisation with one boot disk too small, and the line that says so."""
    root = tmp_path / "organisation"
    shutil.copytree(ORGANISATION, root, symlinks=False)
    file = root / "stacks" / "Pulumi.dev.yaml"
    lines = file.read_text(encoding="utf-8").splitlines()
    at = next(number for number, line in enumerate(lines) if "machine_type: a2-highgpu-8g" in line)
    indent = lines[at][: len(lines[at]) - len(lines[at].lstrip())]
    lines.insert(at + 1, f"{indent}boot_disk: {{size_gb: 5}}")
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return root, at + 2


def test_a_rule_says_what_it_looks_for_who_refuses_and_how_to_exempt() -> None:
    done = run("explain", "boot-disk-size")

    assert done.exit_code == 0
    assert done.stdout.splitlines()[0] == "boot-disk-size: error, rule set disks"
    assert "Looks for a boot disk that is smaller or larger than GKE allows" in done.stdout
    assert "Refused by Google Cloud." in done.stdout
    assert f"Source: {RULES['boot-disk-size'].source}." in done.stdout
    assert "- rule: boot-disk-size" in done.stdout


def test_every_rule_can_be_explained() -> None:
    for sheet in rule_sheets():
        done = run("explain", sheet.id)
        assert (done.exit_code, done.stdout.partition(":")[0]) == (0, sheet.id), done.output


def test_every_rule_of_jobs_can_be_explained() -> None:
    code = " ".join(path.read_text() for path in (ROOT / "training_platform" / "jobs").rglob("*.py"))
    named = {*re.findall(r'"(job-[a-z-]+[a-z])"', code), "job-quota-exceeded", "job-quota-headroom"}

    assert {"job-name", "job-vertex-trials", "job-pathways"} <= named
    assert sorted(named - {sheet.id for sheet in rule_sheets()}) == []
    assert "Refused by Vertex AI" in run("explain", "job-vertex-trials").stdout


def test_what_cannot_be_exempt_says_so() -> None:
    done = run("explain", "stack-model")

    assert "It cannot be exempt." in done.stdout
    assert "exemptions:" not in done.stdout


def test_a_place_shows_the_finding_the_fix_and_the_exemption_of_that_section(small_disk: tuple[Path, int]) -> None:
    root, line = small_disk

    done = run("explain", f"{root}/stacks/Pulumi.dev.yaml:{line}", "--root", str(root))

    assert done.exit_code == 0, done.output
    assert "boot-disk-size: error, rule set disks" in done.stdout
    assert "To fix it: write 10, or another of what is allowed" in done.stdout
    assert "path: clusters.us-central1.node_pools.a100.boot_disk.size_gb" in done.stdout


def test_a_place_without_a_finding_names_the_places_that_have_one(small_disk: tuple[Path, int]) -> None:
    root, line = small_disk

    done = run("explain", f"{root}/stacks/Pulumi.dev.yaml:1", "--root", str(root))

    assert done.exit_code == 2
    assert f"Findings are at stacks/Pulumi.dev.yaml:{line}." in done.stderr


def test_the_exemption_that_is_offered_is_taken(small_disk: tuple[Path, int]) -> None:
    root, line = small_disk
    offered = exemption("boot-disk-size", stack="dev", path="clusters.us-central1.node_pools.a100.boot_disk.size_gb")
    (root / "stacks" / "exemptions.yaml").write_text(offered.replace("YYYY-MM-DD", "2027-01-31"), encoding="utf-8")

    done = run("explain", f"{root}/stacks/Pulumi.dev.yaml:{line}", "--root", str(root))

    assert done.exit_code == 2, done.output
    assert "There is no finding" in done.stderr


def test_a_quota_says_what_it_counts_and_who_asks() -> None:
    done = run("explain", "NVIDIA-A100-GPUS")

    assert done.stdout.startswith("NVIDIA-A100-GPUS-per-project-region: quota of compute.googleapis.com")
    assert "Counts GPUs for each region." in done.stdout
    assert "Asked by a100-40." in done.stdout


def test_a_quota_is_found_as_reports_shorten_it() -> None:
    done = run("explain", "CustomModelTrainingH100GPUs")

    assert done.stdout.startswith("CustomModelTrainingH100GPUsPerProjectPerRegion: quota of aiplatform.googleapis.com")


def test_a_machine_is_shown_as_the_catalogue_shows_it() -> None:
    assert run("explain", "a3-highgpu-8g").stdout == run("catalog", "show", "a3-highgpu-8g").stdout


@pytest.mark.parametrize(
    ("arguments", "nearest"),
    [
        (("explain", "boot-disk-siz"), "boot-disk-size"),
        (("explain", "a3-highgpu-8"), "a3-highgpu-8g"),
        (("explain", "NVIDIA-A100-GPU"), "NVIDIA-A100-GPUS"),
        (("rules", "list", "disk"), "disks"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, tuple) else each,
)
def test_an_unknown_name_ends_with_2_and_the_nearest(arguments: tuple[str, ...], nearest: str) -> None:
    done = run(*arguments)

    assert done.exit_code == 2
    assert f"Nearest: {nearest}." in done.stderr


def test_the_list_has_every_rule_of_a_set_and_no_other() -> None:
    done = run("rules", "list", "disks")

    listed = {line.split()[0] for line in done.stdout.splitlines()[1:]}
    assert listed == {each.id for each in RULES.values() if each.ruleset == "disks"}


def test_json_has_every_rule() -> None:
    documents = json.loads(run("rules", "list", "--format", "json").stdout)

    assert {each["id"] for each in documents} >= set(RULES)
    (document,) = json.loads(run("explain", "tpu-topology", "--format", "json").stdout)
    assert document == next(each for each in documents if each["id"] == "tpu-topology")


def test_every_rule_set_is_a_group() -> None:
    assert set(TITLES) < set(GROUPS)
    assert {sheet.group for sheet in rule_sheets()} == set(GROUPS)
