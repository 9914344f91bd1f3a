"""Adding a family takes only a data file: two invented ones work everywhere in a copy of the repository.

The copy is what ships, with one data file for each family; it is asked by the command line and by ``probe.py``.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.places import ORGANISATION, ROOT

INVENTED = Path(__file__).parent / "invented"
GPU_VMS = 2
GPUS_PER_VM = 6
SURGE = 1
pytestmark = pytest.mark.timeout(300)


@dataclass(frozen=True)
class Tree:
    """A copy of the repository."""

    root: Path

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run Python in the copy, whose packages come before the repository's own."""
        environment = {**os.environ, "PYTHONPATH": f"{self.root}{os.pathsep}{ROOT}"}
        arguments = [sys.executable, *command]
        return subprocess.run(
            arguments, cwd=self.root, env=environment, capture_output=True, text=True, check=False, timeout=240
        )

    def cli(self, *arguments: str, exit_code: int = 0) -> Any:
        """Return the JSON output of a command."""
        argv = ["training-platform", *arguments]
        script = f"import sys; sys.argv = {argv!r}; from training_platform.cli.main import main; main()"
        done = self.run("-c", script)
        assert done.returncode == exit_code, done.stdout + done.stderr
        return json.loads(done.stdout)

    def check(self, exit_code: int, **edits: dict[str, str]) -> list[dict[str, Any]]:
        """Return the findings of a check, with texts of the files replaced while it runs."""
        files = {"stack": "stacks/Pulumi.lab.yaml", "limits": "stacks/quotas/example-lab.yaml"}
        kept = {name: (self.root / file).read_text(encoding="utf-8") for name, file in files.items()}
        for name, changes in edits.items():
            text = kept[name]
            for old, new in changes.items():
                assert old in text
                text = text.replace(old, new)
            (self.root / files[name]).write_text(text, encoding="utf-8")
        try:
            report = self.cli("check", "--format", "json", "--root", str(self.root), exit_code=exit_code)
        finally:
            for name, text in kept.items():
                (self.root / files[name]).write_text(text, encoding="utf-8")
        return list(report["findings"])


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    root = tmp_path_factory.mktemp("invented")
    package = "training_platform"
    shutil.copytree(ROOT / package, root / package, ignore=shutil.ignore_patterns("__pycache__"))
    (root / "stacks" / "quotas").mkdir(parents=True)
    for file in ("Pulumi.yaml", "__main__.py", "stacks/clock.yaml"):
        shutil.copy(ORGANISATION / file, root / file)
    for file in ("z9.yaml", "tpu-z9.yaml"):
        shutil.copy(INVENTED / file, root / "training_platform" / "catalog" / "data")
    for file in ("Pulumi.lab.yaml", "Pulumi.lab-vision.yaml"):
        shutil.copy(INVENTED / file, root / "stacks")
    shutil.copy(INVENTED / "limits.yaml", root / "stacks" / "quotas" / "example-lab.yaml")
    shutil.copy(INVENTED / "probe.py", root)
    return Tree(root)


@pytest.fixture(scope="module")
def probed(tree: Tree) -> Any:
    """The plans of the copy's stacks, and their charges."""
    done = tree.run("probe.py", str(tree.root))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def planned(probed: Any, kind: str, name: str) -> dict[str, Any]:
    (inputs,) = (
        resource["inputs"]
        for resource in probed["planned"]
        if resource["type"].endswith(kind) and resource["name"] == name
    )
    return dict(inputs)


def line_of(text: str) -> int:
    lines = (INVENTED / "Pulumi.lab.yaml").read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


def test_the_catalogue_shows_and_lists_it(tree: Tree) -> None:
    (sheet,) = tree.cli("catalog", "show", "z9-max-6g", "--format", "json")
    facts = {fact["field"]: fact["value"] for fact in sheet["facts"]}
    assert facts["accelerator.gke_label"] == "acme-z9"
    assert facts["ways.calendar"] is False

    (chip,) = tree.cli("catalog", "show", "tpu-z9", "--format", "json")
    assert chip["kind"] == "accelerator"


def test_a_stack_of_it_that_uses_up_its_limits_is_clean(tree: Tree) -> None:
    assert tree.check(0) == []


def test_its_name_is_the_nearest_to_a_misspelt_one(tree: Tree) -> None:
    (finding,) = tree.check(1, stack={"machine_type: z9-max-6g": "machine_type: z9-mx-6g"})

    assert finding["nearest"] == "z9-max-6g"
    assert finding["line"] == line_of("z9-max-6g")


def test_one_less_of_each_limit_is_found(tree: Tree) -> None:
    findings = tree.check(
        1, limits={"limit: 46, region: us-central1": "limit: 45, region: us-central1", "limit: 18": "limit: 17"}
    )

    short = {finding["message"].partition(" needs ")[0]: finding for finding in findings}
    assert {finding["rule"] for finding in findings} == {"quota-exceeded"}
    assert set(short) == {
        "Z9-GPUS-per-project-region in us-central1",
        "TPU-Z9-per-project-region in us-central1",
        "PREEMPTIBLE-TPU-Z9-per-project-region in us-central1",
    }
    spot = short["PREEMPTIBLE-TPU-Z9-per-project-region in us-central1"]
    assert spot["line"] == line_of("slices: 2")
    assert spot["nearest"].startswith("slices 1 for slices")


def test_rules_know_what_its_machines_take(tree: Tree) -> None:
    spoiled = {
        "z9-max-6g\n            zone: us-central1-a": "z9-max-6g\n            zone: us-central1-b",
        "max_nodes: 2": "max_nodes: 4\n            compact: true",
        "upgrades: {max_surge: 1}": "boot_disk: {type: pd-balanced}\n            partition: 1z.4gb",
        "topology: 3x3": "topology: 2x9",
        "capacity: spot": "capacity: flex-start",
    }
    findings = tree.check(1, stack=spoiled)

    nearest = {finding["rule"]: finding["nearest"] for finding in findings if not finding["rule"].startswith("quota")}
    assert nearest["tpu-topology"] == "3x6"
    assert nearest["capacity-offered"].startswith("on-demand, charged to TPU-Z9")
    assert nearest["boot-disk-type"] == "hyperdisk-balanced"  # which reads most like pd-balanced
    assert nearest["gpu-sharing"] == "1z.3gb"
    assert nearest["placement-size"] == "several pools of 3"
    assert nearest["machine-zone"].startswith("us-central1-a")


def test_its_installer_and_its_limits_of_auto_provisioning_are_planned(probed: Any) -> None:
    installer = planned(probed, "DaemonSet", "one-gpu-networks-acme-z9-installer")
    assert installer["spec"]["template"]["spec"]["nodeSelector"] == {"cloud.google.com/gke-accelerator": "acme-z9"}

    scaling = planned(probed, "Cluster", "one-cluster")["clusterAutoscaling"]
    limits = {limit["resourceType"]: limit["maximum"] for limit in scaling["resourceLimits"]}
    assert (limits["acme-z9"], limits["tpu-z9-slice"]) == (40, 36)
    assert scaling["autoProvisioningDefaults"]["diskType"] == "hyperdisk-balanced"  # which both families take


def test_it_is_charged_to_the_quotas_of_its_file(probed: Any) -> None:
    charged = probed["charged"]
    vms = GPU_VMS + SURGE
    pool_gpus = GPU_VMS * GPUS_PER_VM

    # The limit of auto-provisioning counts the pool's own GPUs as well.
    assert charged["Z9-GPUS-per-project-region in us-central1"] == vms * GPUS_PER_VM + (40 - pool_gpus)
    assert charged["Z9-CPUS-per-project-region in us-central1"] == vms * 72 + (40 - pool_gpus) * 24 / 2
    assert charged["Z9-SSD-GB-per-project-region in us-central1"] == vms * 2 * 500
    assert charged["PREEMPTIBLE-TPU-Z9-per-project-region in us-central1"] == 2 * 9
    assert charged["TPU-Z9-per-project-region in us-central1"] == 36 - 2 * 9
