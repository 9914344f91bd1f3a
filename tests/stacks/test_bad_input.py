"""A slip in a shipped stack file, as ``check`` tells it: at its line, with what is allowed and the fix."""

from __future__ import annotations

import copy
import shutil
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.places import ORGANISATION
from tests.stack_files import text_of
from training_platform.checks.run import run_check
from training_platform.checks.stacks import CheckOptions, check_stacks
from training_platform.config.reading.clock import today
from training_platform.config.reading.finding import Finding

V5E_HOST = (
    "v5e-host:\n            machine_type: ct5lp-hightpu-8t\n            zone: us-west4-a\n            topology: 2x4"
)
A100 = "a100:\n            machine_type: a2-highgpu-8g\n            zone: us-central1-c\n            max_nodes: 4"
MEGA = "zone: us-central1-b\n            capacity: flex-start\n            max_run_hours: 168\n            max_nodes: 8"
H100_SMALL = "machine_type: a3-highgpu-1g\n            zone: us-central1-a\n            max_nodes: 8"


@dataclass(frozen=True)
class Slip:
    """A text of ``prod`` and its replacement; the finding is at ``marked``, a part of the new text."""

    old: str
    new: str
    marked: str
    rule: str
    allowed: str
    nearest: str


SLIPS = {
    "a topology with the right product and another shape": Slip(
        "topology: 4x8", "topology: 2x16", "topology: 2x16", "tpu-topology",
        "2x2, 2x4, 4x4, 4x8, 8x8, 8x16, 16x16", "4x8",
    ),
    "a topology that no machine has, where teams name the flavor of another": Slip(
        "topology: 4x4x4", "topology: 6x6x6", "topology: 6x6x6", "tpu-topology", "2x2x1, 2x2x2, 2x2x4",
        "4x4x4",
    ),
    "a machine type with the wrong letter": Slip(
        "machine_type: a3-megagpu-8g", "machine_type: a3-megapu-8g", "machine_type: a3-megapu-8g", "stack-model",
        "a3-megagpu-8g, ", "a3-megagpu-8g",
    ),
    "a machine type that the catalogue no longer has": Slip(
        "machine_type: a3-megagpu-8g", "machine_type: a3-edgegpu-8g", "machine_type: a3-edgegpu-8g", "stack-model",
        "a3-", "a3-megagpu-8g",
    ),
    "device TPUs, which the catalogue no longer has": Slip(
        V5E_HOST, V5E_HOST.replace("ct5lp-", "ct5l-"), "machine_type: ct5l-hightpu-8t", "stack-model",
        "ct5lp-hightpu-1t", "ct5lp-hightpu-8t",
    ),
    "a zone without the machine": Slip(
        MEGA, MEGA.replace("us-central1-b", "us-central1-f"), "zone: us-central1-f", "machine-zone",
        "with quota for 64 GPUs: us-central1-a, us-central1-b, us-central1-c", "us-central1-a (",
    ),
    "flex-start on v4": Slip(
        "slices: 2\n            capacity: spot", "slices: 2\n            capacity: flex-start", "capacity: flex-start",
        "capacity-offered", "on-demand, spot, reservation",
        "capacity spot, with 64 of PREEMPTIBLE-TPU-PODSLICE-V4-per-project-region left",
    ),
    "plain on-demand a3-highgpu-1g": Slip(
        A100, f"a100:\n            {H100_SMALL}", "a100:", "capacity-offered", "spot, flex-start",
        "spot, charged to PREEMPTIBLE-NVIDIA-H100-GPUS-per-project-region in us-central1",
    ),
    "a slice over several hosts on a machine that is a slice by itself": Slip(
        V5E_HOST, V5E_HOST.replace("2x4", "4x8"), "topology: 4x8", "tpu-topology", "2x4",
        "2x4; or machine type ct5lp-hightpu-4t for 4x8",
    ),
}  # fmt: skip


def found_in_prod(tmp_path: Path, text: str) -> list[Finding]:
    shutil.copytree(ORGANISATION / "stacks", tmp_path / "stacks")
    (tmp_path / "stacks" / "Pulumi.prod.yaml").write_text(text, encoding="utf-8")
    report = run_check(tmp_path, CheckOptions(today=today(tmp_path)), selected=["prod"])
    return list(report.all_findings())


@pytest.mark.parametrize("slip", SLIPS)
def test_a_slip_in_the_organisation_is_found_at_its_line_with_the_fix(slip: str, tmp_path: Path) -> None:
    planted = SLIPS[slip]
    text = (ORGANISATION / "stacks" / "Pulumi.prod.yaml").read_text(encoding="utf-8")
    assert planted.old in text
    before, _, after = text.partition(planted.old)

    findings = found_in_prod(tmp_path, before + planted.new + after)

    line = (before + planted.new[: planted.new.index(planted.marked)]).count("\n") + 1
    (finding,) = (finding for finding in findings if finding.rule == planted.rule)
    assert finding.position is not None
    assert (finding.file, finding.position.line) == ("stacks/Pulumi.prod.yaml", line)
    assert (finding.allowed or "").startswith(planted.allowed)
    assert (finding.nearest or "").startswith(planted.nearest) or planted.nearest in (finding.nearest or "").split(
        "; or "
    )


Change = dict[Any, Any]  # what is written at a path
PERSISTENT = ("vertex", "persistent_resources", "kept")
FILES = ("filestore", "files")
SCRATCH = ("lustre", "scratch")
ENVIRONMENT: dict[str, Any] = yaml.safe_load("""
project: example-bad
production: false
deletion_protection: false
billing_account: 01ABCD-23EF45-67AB89
private_services_range: 10.201.0.0/16
filestore:
  homes: {location: us-central1-a, capacity_gib: 1024}
  files: {location: us-central1-a, capacity_gib: 1024}
lustre:
  scratch: {location: us-central1-a, capacity_gib: 9000}
data_sets:
  images: {size_gib: 5, bucket: {name: example-images, location: us-central1}}
clusters:
  main:
    location: us-central1
    subnet: {nodes: 10.12.0.0/20, pods: 10.66.0.0/16, services: 10.12.16.0/20}
    node_pools:
      l4: {machine_type: g2-standard-12, zone: us-central1-a}
    notebooks: {filestore: homes, oauth_client_id: id, allowed_domain: example.com}
""")
TEAM: dict[str, Any] = yaml.safe_load("""
environment: env
name: vision
members: ["group:vision@example.com"]
shares: {main: {l4: {nominal_quota: 1}}}
directories:
  sets: {filestore: files, size_gib: 512}
budget: {a_month: 100}
vertex:
  persistent_resources:
    kept: {region: us-central1, machine_type: a2-highgpu-1g, replicas: 1, max_replicas: 2}
""")


def changed(section: dict[str, Any], changes: Change) -> dict[str, Any]:
    result: Any = copy.deepcopy(section)
    for path, value in changes.items():
        inner = result
        for part in path[:-1]:
            inner = inner[part]
        inner[path[-1]] = value
    return dict(result)


def found_in(root: Path, environment: Change, team: Change) -> list[Finding]:
    (root / "stacks").mkdir()
    for name, kind, section in (
        ("env", "environment", changed(ENVIRONMENT, environment)),
        ("env-vision", "team", changed(TEAM, team)),
    ):
        text = text_of({kind: section})
        (root / "stacks" / f"Pulumi.{name}.yaml").write_text(text, encoding="utf-8")
    report = check_stacks(root, ["env", "env-vision"], CheckOptions(today=date(2026, 11, 22))).report
    return [finding for stack in report.stacks for finding in stack.findings if finding.rule != "quota-no-snapshot"]


def test_the_stacks_without_a_slip_have_no_error(tmp_path: Path) -> None:
    assert [str(finding) for finding in found_in(tmp_path, {}, {}) if finding.severity == "error"] == []


SLIPS_OF_FIELDS: dict[str, tuple[Change, Change, str, str, str]] = {
    # changes of the environment and of the team; the rule, the path, and a part of what is said, allowed or nearest
    "directories that oversell an instance": (
        {}, {("directories", "sets", "size_gib"): 1025}, "file-capacity-exceeded", "directories.sets.size_gib",
        "at most 1,024 besides the others; or capacity_gib of files, up to 9,984",
    ),
    "a capacity between two steps": (
        {(*FILES, "capacity_gib"): 1025}, {}, "filestore-capacity", "filestore.files.capacity_gib", "1280",
    ),
    "a capacity of Lustre between two steps": (
        {(*SCRATCH, "capacity_gib"): 9001}, {}, "lustre-capacity", "lustre.scratch.capacity_gib", "18000",
    ),
    "a minimum that is not below the maximum": (
        {}, {(*PERSISTENT, "replicas"): 2}, "persistent-replicas", "vertex.persistent_resources.kept.max_replicas",
        "at least 3",
    ),
    "TPUs in a persistent resource": (
        {}, {(*PERSISTENT, "machine_type"): "ct5lp-hightpu-1t"}, "vertex-machine-type",
        "vertex.persistent_resources.kept.machine_type", "a machine type without TPUs; a job on Vertex AI has TPUs",
    ),
    "a region without the machine": (
        {}, {(*PERSISTENT, "region"): "europe-west8"}, "vertex-region", "vertex.persistent_resources.kept.region",
        "us-central1",
    ),
    "a disk that pools of Vertex AI do not have": (
        {}, {(*PERSISTENT, "boot_disk"): {"type": "pd-balanced"}}, "vertex-boot-disk-type",
        "vertex.persistent_resources.kept.boot_disk.type", "pd-ssd",
    ),
    "three T4 on machines of a persistent resource": (
        {},
        {
            (*PERSISTENT, "machine_type"): "n1-standard-8",
            (*PERSISTENT, "accelerator"): "t4",
            (*PERSISTENT, "accelerator_count"): 3,
        },
        "vertex-accelerator", "vertex.persistent_resources.kept.accelerator_count", "1, 2, 4",
    ),
}  # fmt: skip


@pytest.mark.parametrize("slip", SLIPS_OF_FIELDS)
def test_a_slip_is_a_finding_at_its_line_with_the_fix(tmp_path: Path, slip: str) -> None:
    environment, team, rule, path, words = SLIPS_OF_FIELDS[slip]
    findings = found_in(tmp_path, environment, team)
    slip_finding = next((finding for finding in findings if finding.rule == rule and finding.path == path), None)

    assert slip_finding is not None, [str(finding) for finding in findings]
    assert words in f"{slip_finding.message} {slip_finding.allowed} {slip_finding.nearest}"
    assert slip_finding.position is not None
