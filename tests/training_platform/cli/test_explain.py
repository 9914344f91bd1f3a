"""``training-platform explain``: rules, places and quotas, for people and for programs."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.support.places import ORGANISATION, ROOT
from tests.training_platform.checks.repository import signed
from training_platform.catalog import CHARTS, DISK_TYPES, FILESTORE_TIERS, LUSTRE_TIERS, MACHINE_TYPES
from training_platform.checks.every_rule import every_rule
from training_platform.cli.main import app
from training_platform.config.reading.finding import Finding
from training_platform.rules import RULES
from training_platform.rules.descriptions import GROUPS, TITLES, exemption


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, [*arguments])


@pytest.fixture
def small_disk(tmp_path: Path) -> tuple[Path, int]:
    """Return a copy of the tests' organisation with one boot disk too small, and its line."""
    root = tmp_path / "organisation"
    shutil.copytree(ORGANISATION, root, symlinks=False)
    file = root / "stacks" / "Pulumi.dev.yaml"
    lines = file.read_text(encoding="utf-8").splitlines()
    index = next(number for number, line in enumerate(lines) if "machine_type: a2-highgpu-8g" in line)
    indent = lines[index][: len(lines[index]) - len(lines[index].lstrip())]
    lines.insert(index + 1, f"{indent}boot_disk: {{size_gb: 5}}")
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return root, index + 2


def test_a_rule_says_what_it_looks_for_who_refuses_and_how_to_exempt() -> None:
    done = run("explain", "boot-disk-size")

    assert done.exit_code == 0
    assert done.stdout.splitlines()[0] == "boot-disk-size: error, rule set disks"
    assert "Looks for a boot disk that is smaller or larger than GKE allows" in done.stdout
    assert "Refused by Google Cloud." in done.stdout
    assert f"Source: {RULES['boot-disk-size'].source}." in done.stdout
    assert "- rule: boot-disk-size" in done.stdout


def test_every_rule_of_jobs_can_be_explained() -> None:
    code = " ".join(path.read_text() for path in (ROOT / "training_platform" / "parts" / "jobs").rglob("*.py"))
    named = {*re.findall(r'"(job-[a-z-]+[a-z])"', code), "job-quota-exceeded", "job-quota-headroom"}

    assert {"job-name", "job-vertex-trials", "job-pathways"} <= named
    assert sorted(named - {sheet.id for sheet in every_rule()}) == []
    assert "Refused by Vertex AI" in run("explain", "job-vertex-trials").stdout
    assert "Refused by nobody." in run("explain", "quota-placeholder").stdout


def test_what_cannot_be_exempt_says_so() -> None:
    done = run("explain", "stack-model")

    assert "It cannot be exempt." in done.stdout
    assert "exemptions:" not in done.stdout


def test_a_place_shows_the_finding_the_fix_and_the_exemption_of_that_section(small_disk: tuple[Path, int]) -> None:
    root, line = small_disk

    done = run("explain", f"{root}/stacks/Pulumi.dev.yaml:{line}", "--root", str(root))

    assert done.exit_code == 0, done.output
    assert "boot-disk-size: error, rule set disks" in done.stdout
    assert "To fix it: write 10, or another allowed value" in done.stdout
    assert "path: clusters.us-central1.node_pools.a100.boot_disk.size_gb" in done.stdout


def test_a_place_that_a_command_fixes_leads_to_the_command(tmp_path: Path) -> None:
    root = tmp_path / "organisation"
    shutil.copytree(ORGANISATION, root, symlinks=False)
    (snapshot,) = (root / "stacks" / "quotas").glob("*-dev.yaml")
    lines = snapshot.read_text(encoding="utf-8").splitlines()
    taken = next(number for number, line in enumerate(lines) if line.startswith("taken:"))
    lines[taken] = 'taken: "2026-01-01"'
    snapshot.write_text("\n".join(lines) + "\n", encoding="utf-8")

    done = run("explain", f"{snapshot}:{taken + 1}", "--root", str(root))

    assert done.exit_code == 0, done.output
    assert f"To fix it: run training-platform quota pull {snapshot.stem}." in done.stdout


def test_a_place_whose_finding_follows_from_another_leads_to_that_one(tmp_path: Path) -> None:
    root = tmp_path / "organisation"
    shutil.copytree(ORGANISATION, root, symlinks=False)
    environment, team = (root / "stacks" / f"Pulumi.{stack}.yaml" for stack in ("prod", "prod-vision"))
    text = environment.read_text(encoding="utf-8")
    environment.write_text(text.replace("topology: 4x8", "topology: 4x6"), encoding="utf-8")
    shares = team.read_text(encoding="utf-8").splitlines()
    line = 1 + next(number for number, share in enumerate(shares) if "tpu-v5e-4x8" in share)

    done = run("explain", f"{team}:{line}", "--root", str(root))

    assert done.exit_code == 0, done.output
    cause = next(n for n, row in enumerate(text.splitlines(), 1) if "topology: 4x8" in row)
    fix = rf"To fix it: correct stacks/Pulumi\.prod\.yaml:{cause}:\d+: \S+\.topology, which causes this finding\."
    assert re.search(fix, done.stdout), done.stdout


def test_a_place_without_a_finding_names_the_places_that_have_one(small_disk: tuple[Path, int]) -> None:
    root, line = small_disk

    done = run("explain", f"{root}/stacks/Pulumi.dev.yaml:1", "--root", str(root))

    assert done.exit_code == 2
    assert f"Findings are at stacks/Pulumi.dev.yaml:{line}." in done.stderr


def test_the_exemption_that_is_offered_is_taken(small_disk: tuple[Path, int]) -> None:
    root, line = small_disk
    finding = Finding(
        rule="boot-disk-size", severity="error", message="is 9 GB", stack="dev",
        path="clusters.us-central1.node_pools.a100.boot_disk.size_gb",
    )  # fmt: skip
    offered = exemption("boot-disk-size", finding)
    (root / "stacks" / "exemptions.yaml").write_text(signed(offered, expires="2027-01-31"), encoding="utf-8")

    done = run("explain", f"{root}/stacks/Pulumi.dev.yaml:{line}", "--root", str(root))

    assert done.exit_code == 0, done.output
    assert "exempt until 2027-01-31 by ml@example.com: Agreed." in done.stdout


def test_a_line_of_thousands_of_digits_is_no_place() -> None:
    done = run("explain", f"stacks/Pulumi.dev.yaml:{'9' * 5000}")

    assert done.exit_code == 2
    assert "bug in training-platform" not in done.stderr


def test_a_quota_says_what_it_counts_and_who_asks() -> None:
    done = run("explain", "NVIDIA-A100-GPUS")

    assert done.stdout.startswith("NVIDIA-A100-GPUS-per-project-region: quota of compute.googleapis.com")
    assert "Counts GPUs for each region." in done.stdout
    assert "Used by a100-40." in done.stdout


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
        (("explain", "H100"), "h100"),
        (("explain", "NVIDIA-A100-GPU"), "NVIDIA-A100-GPUS"),
    ],
    ids=lambda argument: " ".join(argument) if isinstance(argument, tuple) else argument,
)
def test_an_unknown_name_ends_with_2_and_the_nearest(arguments: tuple[str, ...], nearest: str) -> None:
    done = run(*arguments)

    assert done.exit_code == 2
    assert f"Nearest: {nearest}." in done.stderr


def test_every_rule_set_is_a_group() -> None:
    assert set(TITLES) < set(GROUPS)
    assert {sheet.group for sheet in every_rule()} == set(GROUPS)


def catalog(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["catalog", *arguments])


def line(text: str, field: str) -> str:
    (matching,) = (row.strip() for row in text.splitlines() if row.strip().startswith(f"{field} "))
    return " ".join(matching.split())


def test_what_is_not_verified_is_marked_and_the_mark_explained() -> None:
    done = catalog("show", "a3-megagpu-8g")

    assert line(done.stdout, "local_ssd.quota").endswith("vm_family=A3 (GB per region) (unverified)")
    assert "(unverified)" not in line(done.stdout, "local_ssd.bundled")
    assert done.stdout.rstrip().endswith("(unverified): no primary source was read for it, or sources disagree.")
    assert "(unverified)" not in catalog("show", "kueue").stdout


def test_json_has_the_same_facts() -> None:
    (document,) = json.loads(catalog("show", "ZONAL", "--format", "json").stdout)

    facts = {fact["field"]: fact for fact in document["facts"]}
    assert (document["kind"], document["name"]) == ("Filestore tier", "ZONAL")
    assert facts["reserved_prefixes"]["value"] == ["26", "24"]
    assert [name for name, fact in facts.items() if fact["unverified"]] == ["reserved_prefixes", "high_band_quota"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show", "a3-megagup-8g"], "'a3-megagup-8g' is not in the catalogue. Nearest: a3-megagpu-8g."),
        (["show", "zonal "], "Nearest: ZONAL."),
        (["show", "#"], "'#' is not in the catalogue. There are: "),
        (["list", "--gpu", "h1000"], "'h1000' is not a GPU or TPU in the catalogue. Nearest: h100."),
    ],
)
def test_an_unknown_name_is_exit_code_2_with_the_nearest(arguments: list[str], message: str) -> None:
    done = catalog(*arguments)

    assert done.exit_code == 2
    assert message in done.stderr
    assert done.stdout == ""


def test_the_list_has_every_name_below_its_kind() -> None:
    done = catalog("list")

    listed = [row.split()[0] for row in done.stdout.splitlines() if row.startswith("  ")]
    assert {*MACHINE_TYPES, *DISK_TYPES, *FILESTORE_TIERS, *LUSTRE_TIERS, *CHARTS} <= set(listed)
    assert len(listed) == len(set(listed))
    assert [row for row in done.stdout.splitlines() if row and not row.startswith(" ")] == [
        "machine types with GPUs", "machine types with TPUs", "machine types without accelerators", "accelerators",
        "disk types", "Filestore tiers", "Managed Lustre tiers", "charts", "releases", "images", "model servers",
    ]  # fmt: skip


def listed_names(*arguments: str) -> list[str]:
    return [row.split()[0] for row in catalog("list", *arguments).stdout.splitlines() if row.startswith("  ")]


@pytest.mark.parametrize(
    ("arguments", "there", "not_there"),
    [
        (["--gpu", "h100"], "a3-highgpu-8g", "a3-megagpu-8g"),
        (["--gpu", "a100"], "a2-ultragpu-8g", "a3-highgpu-8g"),
        (["--region", "us-central2"], "ct4p-hightpu-4t", "ct5lp-hightpu-4t"),
        (["--zone", "us-west4-a"], "ct5lp-hightpu-4t", "ct4p-hightpu-4t"),
        (["--gpu", "a100-40", "--zone", "us-central1-a"], "a2-highgpu-8g", "a2-ultragpu-8g"),
    ],
)
def test_machines_are_listed_by_gpu_region_and_zone(arguments: list[str], there: str, not_there: str) -> None:
    names = listed_names(*arguments)

    assert set(names) <= MACHINE_TYPES.keys()
    assert there in names
    assert not_there not in names


@pytest.mark.parametrize("option", ["gpu", "region", "zone"])
def test_what_nothing_is_listed_by_is_refused_with_the_nearest(option: str) -> None:
    wrong = {"gpu": "h1000", "region": "us-central11", "zone": "us-central1-aa"}[option]
    done = catalog("list", f"--{option}", wrong)

    assert done.exit_code == 2
    assert f"'{wrong}' is not a " in done.stderr
    assert f"Nearest: {wrong[:-1]}." in done.stderr


def test_help_loads_no_catalogue() -> None:
    heavy = {"yaml", "pydantic", "training_platform.catalog"}
    code = f"import sys; import training_platform.cli.main; assert not {heavy!r} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
