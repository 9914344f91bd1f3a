"""``training-platform catalog``: what people and programs are shown."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from training_platform.catalog import CHARTS, DISK_TYPES, FILESTORE_TIERS, LUSTRE_TIERS, MACHINE_TYPES
from training_platform.cli.main import app

ROOT = Path(__file__).parents[3]


def catalog(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["catalog", *arguments])


def line(text: str, field: str) -> str:
    (found,) = (each.strip() for each in text.splitlines() if each.strip().startswith(f"{field} "))
    return " ".join(found.split())


def test_a_machine_is_shown_with_units_source_and_date() -> None:
    done = catalog("show", "a3-megagpu-8g")

    assert done.exit_code == 0
    assert line(done.stdout, "chips") == "chips 8 GPUs"
    assert line(done.stdout, "memory_gb") == "memory_gb 1,872 GB"
    assert line(done.stdout, "price.read") == "price.read 2026-08-21"
    assert line(done.stdout, "source").startswith("source GKE cluster-autoscaler 7d25050 (2026-08-21)")


def test_what_is_not_verified_is_marked_and_the_mark_explained() -> None:
    done = catalog("show", "a3-megagpu-8g")

    assert line(done.stdout, "local_ssd.quota").endswith("vm_family=A3 (GB per region) (unverified)")
    assert "(unverified)" not in line(done.stdout, "local_ssd.bundled")
    assert done.stdout.rstrip().endswith("(unverified): no primary source was read for it, or sources disagree.")
    assert "(unverified)" not in catalog("show", "kueue").stdout


def test_json_has_the_same_facts() -> None:
    (document,) = json.loads(catalog("show", "ZONAL", "--format", "json").stdout)

    facts = {each["field"]: each for each in document["facts"]}
    assert (document["kind"], document["name"]) == ("Filestore tier", "ZONAL")
    assert facts["reserved_prefix"]["value"] == 24
    assert [name for name, each in facts.items() if each["unverified"]] == ["high_band_quota"]


@pytest.mark.parametrize("name", ["h100", "pd-ssd", "BASIC_HDD", "jobset", "notebook", "e2-standard-4"])
def test_every_kind_can_be_shown(name: str) -> None:
    assert catalog("show", name).stdout.startswith(f"{name}: ")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["show", "a3-megagup-8g"], "'a3-megagup-8g' is not in the catalogue. Nearest: a3-megagpu-8g."),
        (["show", "zonal "], "Nearest: ZONAL."),
        (["show", "#"], "'#' is not in the catalogue. There are: "),
        (["list", "--family", "h1000"], "'h1000' is not a family in the catalogue. Nearest: h100."),
    ],
)
def test_an_unknown_name_is_exit_code_2_with_the_nearest(arguments: list[str], said: str) -> None:
    done = catalog(*arguments)

    assert done.exit_code == 2
    assert said in done.stderr
    assert done.stdout == ""


def test_the_list_has_every_name_below_its_kind() -> None:
    done = catalog("list")

    listed = [each.split()[0] for each in done.stdout.splitlines() if each.startswith("  ")]
    assert {*MACHINE_TYPES, *DISK_TYPES, *FILESTORE_TIERS, *LUSTRE_TIERS, *CHARTS} <= set(listed)
    assert len(listed) == len(set(listed))
    assert [each for each in done.stdout.splitlines() if each and not each.startswith(" ")] == [
        "machine types", "accelerators", "disk types", "Filestore tiers", "Managed Lustre tiers", "charts", "images",
        "model servers",
    ]  # fmt: skip


def test_a_family_is_listed_alone() -> None:
    names = [each["name"] for each in json.loads(catalog("list", "--family", "tpu-v5e", "--format", "json").stdout)]

    assert names == ["ct5lp-hightpu-1t", "ct5lp-hightpu-4t", "ct5lp-hightpu-8t", "tpu-v5e"]


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
    found = json.loads(catalog("list", *arguments, "--format", "json").stdout)

    names = {each["name"] for each in found}
    assert {each["kind"] for each in found} == {"machine type"}
    assert there in names
    assert not_there not in names


@pytest.mark.parametrize("option", ["gpu", "region", "zone"])
def test_what_nothing_is_listed_by_is_refused_with_the_nearest(option: str) -> None:
    wrong = {"gpu": "h1000", "region": "us-central11", "zone": "us-central1-aa"}[option]
    done = catalog("list", f"--{option}", wrong)

    assert done.exit_code == 2
    assert f"'{wrong}' is not a " in done.stderr
    assert f"Nearest: {wrong[:-1]}." in done.stderr


def test_a_machine_is_shown_in_one_screen_and_whole_with_verbose() -> None:
    short, whole = (catalog("show", "a3-megagpu-8g", *more).stdout.splitlines() for more in ([], ["--verbose"]))

    assert len(short) < 50 < len(whole)
    assert {each.split()[0] for each in short} < {each.split()[0] for each in whole}
    assert {"accelerator.partitions.1g.10gb", "missing_zones"} <= {each.split()[0] for each in whole}


@pytest.mark.parametrize("group", [[], ["quota"], ["job"], ["catalog"], ["sandbox"]])
def test_help_says_what_each_command_does_in_full(group: list[str]) -> None:
    done = CliRunner().invoke(app, [*group, "--help"], terminal_width=80)

    assert "Commands:" in done.stdout
    assert "..." not in done.stdout.partition("Commands:")[2]


def test_help_loads_no_catalogue() -> None:
    heavy = {"yaml", "pydantic", "training_platform.catalog"}
    code = f"import sys; import training_platform.cli.main; assert not {heavy!r} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
