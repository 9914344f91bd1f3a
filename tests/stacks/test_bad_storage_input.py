"""Slips about storage and Vertex AI, as ``check --fast`` finds them: at their line, with the fix."""

from __future__ import annotations

import copy
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml

from training_platform.checks.stacks import Options, check_stacks
from training_platform.config.reading.finding import Finding

Change = dict[Any, Any]  # what is written at a path
PERSISTENT = ("vertex", "persistent_resources", "kept")
FILES, SCRATCH = ("filestore", "files"), ("lustre", "scratch")
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


def found(root: Path, environment: Change, team: Change) -> list[Finding]:
    (root / "stacks").mkdir()
    for name, kind, section in (
        ("env", "environment", changed(ENVIRONMENT, environment)),
        ("env-vision", "team", changed(TEAM, team)),
    ):
        text = yaml.safe_dump({"config": {f"training-platform:{kind}": section}})
        (root / "stacks" / f"Pulumi.{name}.yaml").write_text(text, encoding="utf-8")
    report = check_stacks(root, ["env", "env-vision"], Options(today=date(2026, 11, 22), fast=True)).report
    return [each for stack in report.stacks for each in stack.findings if each.rule != "quota-no-snapshot"]


def test_the_stacks_without_a_slip_have_no_error(tmp_path: Path) -> None:
    assert [str(each) for each in found(tmp_path, {}, {}) if each.severity == "error"] == []


REGION = "us-central1"
CAPACITIES = [
    # tier, location, a capacity just outside of its bands, the nearest inside
    ("BASIC_HDD", "us-central1-a", 1023, "1024"), ("BASIC_HDD", "us-central1-a", 65434, "65433"),
    ("BASIC_SSD", "us-central1-a", 2559, "2560"), ("BASIC_SSD", "us-central1-a", 65434, "65433"),
    ("ZONAL", "us-central1-a", 1023, "1024"), ("ZONAL", "us-central1-a", 1025, "1280"),
    ("ZONAL", "us-central1-a", 9985, "10240"), ("ZONAL", "us-central1-a", 10239, "10240"),
    ("ZONAL", "us-central1-a", 10241, "12800"), ("ZONAL", "us-central1-a", 102401, "102400"),
    ("HIGH_SCALE_SSD", "us-central1-a", 10239, "10240"),
    ("REGIONAL", REGION, 1023, "1024"), ("REGIONAL", REGION, 9985, "10240"), ("REGIONAL", REGION, 102401, "102400"),
    ("ENTERPRISE", REGION, 1023, "1024"), ("ENTERPRISE", REGION, 10241, "10240"),
]  # fmt: skip


@pytest.mark.parametrize(("tier", "location", "gib", "nearest"), CAPACITIES)
def test_a_capacity_just_outside_its_band_is_found(
    tmp_path: Path, tier: str, location: str, gib: int, nearest: str
) -> None:
    wrong = {(*FILES, "tier"): tier, (*FILES, "location"): location, (*FILES, "capacity_gib"): gib}
    small = {("directories", "sets", "size_gib"): 1}
    errors = [each for each in found(tmp_path, wrong, small) if each.severity == "error"]

    assert [(each.rule, each.path, each.nearest) for each in errors] == [
        ("filestore-capacity", "filestore.files.capacity_gib", nearest)
    ]
    assert errors[0].position is not None


@pytest.mark.parametrize(
    ("mbps", "gib", "nearest"),
    [
        (1000, 8999, "9000"), (1000, 9001, "18000"), (1000, 1530001, "1584000"), (1000, 1583999, "1584000"),
        (500, 17999, "18000"), (250, 35999, "36000"), (125, 71999, "72000"),
    ],
)  # fmt: skip
def test_a_capacity_of_lustre_just_outside_its_band_is_found(tmp_path: Path, mbps: int, gib: int, nearest: str) -> None:
    wrong = {(*SCRATCH, "mbps_per_tib"): mbps, (*SCRATCH, "capacity_gib"): gib}
    errors = [each for each in found(tmp_path, wrong, {}) if each.severity == "error"]

    assert [(each.rule, each.path, each.nearest) for each in errors] == [
        ("lustre-capacity", "lustre.scratch.capacity_gib", nearest)
    ]


FAR = {("data_sets", "images", "bucket", "location"): "europe-west4"}
SLIPS: dict[str, tuple[Change, Change, str, str, str]] = {
    # changes of the environment and of the team; the rule, the path, and a part of what is said, allowed or nearest
    "directories that oversell an instance": (
        {}, {("directories", "sets", "size_gib"): 1025}, "file-capacity-exceeded", "directories.sets.size_gib",
        "at most 1,024 besides the others; or capacity_gib of files, up to 9,984",
    ),
    "a data set in another region": (FAR, {}, "data-set-region", "data_sets.images", "sends 5 GiB between regions"),
    "a minimum that is not below the maximum": (
        {}, {(*PERSISTENT, "replicas"): 2}, "persistent-replicas", "vertex.persistent_resources.kept.max_replicas",
        "at least 3",
    ),
    "a minimum of 0": (
        {}, {(*PERSISTENT, "replicas"): 0}, "stack-model", "vertex.persistent_resources.kept.replicas",
        "at least 1",
    ),
    "Ray, which earlier versions had": (
        {}, {(*PERSISTENT, "ray"): {}}, "stack-model", "vertex.persistent_resources.kept.ray",
        "one of Vertex AI by its SDK",
    ),
    "TPUs in a persistent resource": (
        {}, {(*PERSISTENT, "machine_type"): "ct5lp-hightpu-1t"}, "vertex-machine-type",
        "vertex.persistent_resources.kept.machine_type", "is not for pools of Vertex AI",
    ),
    "a region without the machine": (
        {}, {(*PERSISTENT, "region"): "europe-west8"}, "vertex-region", "vertex.persistent_resources.kept.region",
        "us-central1",
    ),
    "a disk that pools of Vertex AI do not have": (
        {}, {(*PERSISTENT, "boot_disk"): {"type": "pd-balanced"}}, "vertex-boot-disk-type",
        "vertex.persistent_resources.kept.boot_disk.type", "pd-ssd",
    ),
    "a budget without a billing account": (
        {("billing_account",): None}, {}, "stack-model", "budget", "needs billing_account of environment env",
    ),
    "a team that mounts a notebooks' instance": (
        {}, {("directories", "sets", "filestore"): "homes"}, "stack-model", "directories.sets.filestore",
        "holds the homes of all users of notebooks",
    ),
    "an attachment of a region that has none": (
        {}, {(*PERSISTENT, "network_attachment"): "environment"}, "stack-model",
        "vertex.persistent_resources.kept.network_attachment", "has no network attachment in us-central1",
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
    "V100 in a persistent resource of a region without them": (
        {},
        {
            (*PERSISTENT, "machine_type"): "n1-standard-8",
            (*PERSISTENT, "accelerator"): "v100",
            (*PERSISTENT, "region"): "us-east1",
        },
        "vertex-region", "vertex.persistent_resources.kept.region", "us-central1",
    ),
    "three T4 on a Workbench instance": (
        {},
        {
            ("vertex", "workbench"): {
                "ada": {
                    "zone": "us-central1-a", "machine_type": "n1-standard-8", "accelerator": "t4",
                    "accelerator_count": 3, "owner": "ada@example.com",
                }
            }
        },
        "workbench-gpus", "vertex.workbench.ada.accelerator_count", "1, 2, 4",
    ),
}  # fmt: skip


@pytest.mark.parametrize("slip", SLIPS)
def test_a_slip_is_a_finding_at_its_line_with_the_fix(tmp_path: Path, slip: str) -> None:
    environment, team, rule, path, said = SLIPS[slip]
    findings = found(tmp_path, environment, team)
    one = next((each for each in findings if each.rule == rule and each.path == path), None)

    assert one is not None, [str(each) for each in findings]
    assert said in f"{one.message} {one.allowed} {one.nearest}"
    assert one.position is not None
