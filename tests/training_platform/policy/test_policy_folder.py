"""The folder to publish, built and installed as somebody else would."""

from __future__ import annotations

import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import distributions
from pathlib import Path

import pytest
import yaml
from packaging.utils import canonicalize_name

from tests.support.places import ROOT
from training_platform.policy.build import build

PROGRAM = """
import sys
from pulumi_policy import PolicyResourceOptions, ResourceValidationArgs
from pulumi_policy.policy import PolicyCustomTimeouts
from training_platform.policy.pack import policies

options = PolicyResourceOptions(False, [], None, [], PolicyCustomTimeouts(0, 0, 0), [])
node = {"machineType": "a4-highgpu-8g", "diskType": "pd-ssd"}
urn = "urn:pulumi:dev::another::gcp:container/nodePool:NodePool::b200"
pool = ResourceValidationArgs("gcp:container/nodePool:NodePool", {"nodeConfig": node}, urn, "b200", options, None)
found = {policy.name: policy for policy in policies(None)}
found["disks"].validate(pool, lambda message, urn: print(message))
assert not {"training_platform.modules", "policies"} & set(sys.modules), "the checkout was imported"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("published") / "policy-pack"
    build(target)
    return target


def test_the_folder_has_what_pulumi_publishes(folder: Path) -> None:
    (wheel,) = folder.glob("*.whl")

    assert {file.name for file in folder.iterdir()} == {
        "PulumiPolicy.yaml", "__main__.py", "config", "requirements.txt", wheel.name,
    }  # fmt: skip
    assert (folder / "requirements.txt").read_text() == f"./{wheel.name}[policy]\n"


def test_the_pack_has_the_version_of_the_package(folder: Path) -> None:
    package = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]

    for project in (folder, ROOT / "policies"):
        assert yaml.safe_load((project / "PulumiPolicy.yaml").read_text(encoding="utf-8"))["version"] == package


def test_pip_takes_the_requirements(folder: Path) -> None:
    pip = [sys.executable, "-m", "pip", "--no-input", "--disable-pip-version-check", "install"]
    command = [*pip, "--dry-run", "--no-index", "--force-reinstall", "--no-deps", "--requirement", "requirements.txt"]

    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)

    assert "Would install training-platform-" in done.stdout, done.stdout + done.stderr


def test_the_wheel_has_the_packages_of_the_distribution_and_the_data_beside_the_code(folder: Path) -> None:
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()

    packages = {"training_platform", "kueue_model", "local_google_cloud"}
    (metadata,) = {name.split("/")[0] for name in names} - packages
    assert metadata.endswith(".dist-info")
    assert "training_platform/catalog/data/quotas.yaml" in names


def test_rules_run_from_the_installed_wheel(folder: Path, tmp_path: Path) -> None:
    (wheel,) = folder.glob("*.whl")
    pip = [sys.executable, "-m", "pip", "--quiet", "--no-input", "--disable-pip-version-check", "install"]
    subprocess.run([*pip, "--no-deps", "--no-index", "--target", str(tmp_path / "site"), str(wheel)], check=True)

    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=tmp_path, env={"PYTHONPATH": str(tmp_path / "site")}, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("dev: nodeConfig.diskType: a4-highgpu-8g cannot boot from pd-ssd\n")


def test_the_pack_needs_no_provider() -> None:
    installed = {canonicalize_name(distribution.metadata["Name"]) for distribution in distributions()}

    assert "pulumi-policy" in installed
    assert not {"pulumi-gcp", "pulumi-kubernetes"} & installed
