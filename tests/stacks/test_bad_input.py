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
H100 = (
    "capacity: reservation\n            reservation: h100-training\n            min_nodes: 4\n            max_nodes: 8"
)
MEGA = "zone: us-central1-b\n            capacity: flex-start\n            max_run_hours: 168\n            max_nodes: 8"
H100_SMALL = "machine_type: a3-highgpu-1g\n            zone: us-central1-a\n            max_nodes: 8"


@dataclass(frozen=True)
class Slip:
    """A text of ``prod`` and what stands there instead; the finding is where ``at`` of the new text is."""

    old: str
    new: str
    at: str
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
    "no topology at all": Slip(
        "topology: 2x2x4", "topology: 2x2x", "topology: 2x2x", "stack-model", "chips along each axis", "2x2",
    ),
    "no slices": Slip("slices: 8", "slices: 0", "slices: 0", "stack-model", "at least 1", "1"),
    "a machine type with the wrong letter": Slip(
        "machine_type: a3-megagpu-8g", "machine_type: a3-megapu-8g", "machine_type: a3-megapu-8g", "stack-model",
        "a3-megagpu-8g, a3-edgegpu-8g", "a3-megagpu-8g",
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
    "hyperdisk on a2": Slip(
        "boot_disk: {type: pd-balanced", "boot_disk: {type: hyperdisk-balanced", "boot_disk: {type: hyperdisk",
        "boot-disk-type", "pd-standard, pd-balanced, pd-ssd", "pd-balanced",
    ),
    "a slice over several hosts on a machine that is a slice by itself": Slip(
        V5E_HOST, V5E_HOST.replace("2x4", "4x8"), "topology: 4x8", "tpu-topology", "2x4",
        "2x4; or machine type ct5lp-hightpu-4t for 4x8",
    ),
    "compact with blue-green": Slip(
        A100, f"{A100}\n            compact: true\n            upgrades: {{strategy: blue-green}}",
        "upgrades: {strategy: blue-green}", "placement-one-zone", "surge", "surge",
    ),
    "spot with a reservation": Slip(
        H100, H100.replace("capacity: reservation", "capacity: spot"), "reservation: h100-training", "stack-model",
        "capacity: reservation, or no reservation", "capacity: reservation",
    ),
    "TPUs of any reservation": Slip(
        "reservation: v5e-training", "reservation: any", "reservation: any", "tpu-reservation-name",
        "the reservation's name", "the reservation's name",
    ),
    "fewest above most": Slip(
        "min_nodes: 4", "min_nodes: 9", "min_nodes: 9", "stack-model", "at most 8, or max_nodes of at least 9", "8",
    ),
    "slices of GPUs": Slip(
        A100, A100.replace("max_nodes", "slices"), "slices: 4", "stack-model", "min_nodes and max_nodes",
        "max_nodes: 4",
    ),
}  # fmt: skip


def found(tmp_path: Path, text: str) -> list[Finding]:
    shutil.copytree(ORGANISATION / "stacks", tmp_path / "stacks")
    (tmp_path / "stacks" / "Pulumi.prod.yaml").write_text(text, encoding="utf-8")
    report = run_check(tmp_path, CheckOptions(today=today(tmp_path)), selected=["prod"])
    return list(report.all_findings())


@pytest.mark.parametrize("slip", SLIPS)
def test_a_slip_is_found_at_its_line_with_the_fix(slip: str, tmp_path: Path) -> None:
    made = SLIPS[slip]
    text = (ORGANISATION / "stacks" / "Pulumi.prod.yaml").read_text(encoding="utf-8")
    assert made.old in text
    before, _, after = text.partition(made.old)

    findings = found(tmp_path, before + made.new + after)

    line = (before + made.new[: made.new.index(made.at)]).count("\n") + 1
    (finding,) = (each for each in findings if each.rule == made.rule)
    assert finding.position is not None
    assert (finding.file, finding.position.line) == ("stacks/Pulumi.prod.yaml", line)
    assert (finding.allowed or "").startswith(made.allowed)
    assert (finding.nearest or "").startswith(made.nearest) or made.nearest in (finding.nearest or "").split("; or ")


ENVIRONMENT = """\
config:
  training-platform:environment:
    project: example-train
    production: false
    google_groups_domain: example.com
    filestore: {homes: {location: us-central1-a, tier: ZONAL, capacity_gib: 1024}}
    clusters:
      main:
        location: us-central1-a
        subnet: {nodes: 10.0.0.0/20, pods: 10.64.0.0/16, services: 10.1.0.0/20}
        notebooks:
          filestore: homes
          oauth_client_id: notebooks.apps.example.com
          allowed_domain: example.com
          pools: [desks]
        node_pools:
          train: {machine_type: a3-highgpu-8g, capacity: reservation, reservation: h100, max_nodes: 4}
          spot: {machine_type: a3-highgpu-8g, capacity: spot, max_nodes: 2}
          desks: {machine_type: a2-highgpu-1g, max_nodes: 4}
"""
TEAM = """\
config:
  training-platform:team:
    environment: laboratory
    name: vision
    members: [group:vision@example.com]
    shares:
      main:
        h100-reservation: {nominal_quota: 16}
        h100-spot: {nominal_quota: 16}
    fallback:
      order:
        main: [h100-spot]
"""
FILES = {
    "laboratory": ENVIRONMENT,
    "laboratory-nlp": TEAM.replace("vision", "nlp").replace("quota: 16", "quota: 0"),
    "laboratory-vision": TEAM,
}


@dataclass(frozen=True)
class QueuesSlip:
    """A text of a stack's file and what stands there instead; the finding is at the line where that begins."""

    stack: str
    old: str
    new: str
    rule: str
    said: str
    allowed: str
    nearest: str | None = None


SLIPS_QUEUES = {
    "a namespace of another team": QueuesSlip(
        "laboratory-vision", "name: vision", "name: nlp", "stack-model", "'nlp' is also the name of the team at",
        "one stack per team", "vision",
    ),
    "a namespace of the cluster's own": QueuesSlip(
        "laboratory-vision", "name: vision", "name: kueue-system", "stack-model",
        "'kueue-system' is a namespace of the cluster's own software", "a name other than", "team-kueue-system",
    ),
    "a beginning that is Google's": QueuesSlip(
        "laboratory-vision", "name: vision", "name: gke-vision", "stack-model",
        "'gke-vision' is a namespace of the cluster's own software", "a name other than", "team-gke-vision",
    ),
    "a cluster's name with the environment's before it": QueuesSlip(
        "laboratory", " main:", f" {'m' * 30}:", "cluster-name", "has a name of 41 characters", "at most 40",
        f"laboratory-{'m' * 29}",
    ),
    "an order with a flavor that no pool is of": QueuesSlip(
        "laboratory-vision", "main: [h100-spot]", "main: [h100-sport]", "stack-model",
        "'h100-sport' is not a flavor that the team has a share of", "h100-reservation, h100-spot", "h100-spot",
    ),
    "a profile of a pool that a team was promised": QueuesSlip(
        "laboratory", "[desks]", "[spot]", "notebook-pool-promised",
        "spot is of h100-spot: teams were promised 16", "a pool that no team was promised",
    ),
}  # fmt: skip


def found_queues(root: Path, files: dict[str, str], stack: str) -> list[Finding]:
    (root / "stacks").mkdir()
    for name, text in files.items():
        (root / "stacks" / f"Pulumi.{name}.yaml").write_text(text, encoding="utf-8")
    report = run_check(root, CheckOptions(today=date(2026, 11, 22)))
    file = f"stacks/Pulumi.{stack}.yaml"
    errors = (each for each in report.all_findings() if each.severity == "error" and each.file == file)
    return [each for each in errors if each.rule != "quota-no-snapshot"]  # limits are another matter


@pytest.mark.parametrize("stack", FILES)
def test_files_without_a_slip_are_taken(tmp_path: Path, stack: str) -> None:
    assert found_queues(tmp_path, FILES, stack) == []


@pytest.mark.parametrize("case", SLIPS_QUEUES)
def test_a_slip_is_found_at_its_line_with_the_fix_queues(case: str, tmp_path: Path) -> None:
    slip = SLIPS_QUEUES[case]
    before, _, after = FILES[slip.stack].partition(slip.old)
    assert after

    (finding,) = found_queues(tmp_path, {**FILES, slip.stack: before + slip.new + after}, slip.stack)

    assert finding.position is not None
    assert finding.position.line == before.count("\n") + 1
    assert finding.rule == slip.rule
    assert slip.said in finding.message
    assert (finding.allowed or "").startswith(slip.allowed)
    assert finding.nearest == slip.nearest


def test_a_cluster_s_name_at_its_limit_is_taken(tmp_path: Path) -> None:
    assert found_queues(tmp_path, {"laboratory": ENVIRONMENT.replace(" main:", f" {'m' * 29}:")}, "laboratory") == []


Change = dict[Any, Any]  # what is written at a path
PERSISTENT = ("vertex", "persistent_resources", "kept")
FILES_STORAGE, SCRATCH = ("filestore", "files"), ("lustre", "scratch")
ENVIRONMENT_STORAGE: dict[str, Any] = yaml.safe_load("""
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
TEAM_STORAGE: dict[str, Any] = yaml.safe_load("""
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


def found_storage(root: Path, environment: Change, team: Change) -> list[Finding]:
    (root / "stacks").mkdir()
    for name, kind, section in (
        ("env", "environment", changed(ENVIRONMENT_STORAGE, environment)),
        ("env-vision", "team", changed(TEAM_STORAGE, team)),
    ):
        text = text_of({kind: section})
        (root / "stacks" / f"Pulumi.{name}.yaml").write_text(text, encoding="utf-8")
    report = check_stacks(root, ["env", "env-vision"], CheckOptions(today=date(2026, 11, 22))).report
    return [each for stack in report.stacks for each in stack.findings if each.rule != "quota-no-snapshot"]


def test_the_stacks_without_a_slip_have_no_error(tmp_path: Path) -> None:
    assert [str(each) for each in found_storage(tmp_path, {}, {}) if each.severity == "error"] == []


REGION = "us-central1"
CAPACITIES = [
    # tier, location, a capacity just outside of its bands, the nearest inside
    ("BASIC_HDD", "us-central1-a", 1023, "1024"), ("BASIC_HDD", "us-central1-a", 65434, "65433"),
    ("BASIC_SSD", "us-central1-a", 2559, "2560"), ("BASIC_SSD", "us-central1-a", 65434, "65433"),
    ("ZONAL", "us-central1-a", 1023, "1024"), ("ZONAL", "us-central1-a", 1025, "1280"),
    ("ZONAL", "us-central1-a", 9985, "10240"), ("ZONAL", "us-central1-a", 10239, "10240"),
    ("ZONAL", "us-central1-a", 10241, "12800"), ("ZONAL", "us-central1-a", 102401, "102400"),
    ("HIGH_SCALE_SSD", "us-central1-a", 10239, "10240"),
    ("REGIONAL", REGION, 99, "1024"), ("REGIONAL", REGION, 10241, "12800"), ("REGIONAL", REGION, 102401, "102400"),
    ("ENTERPRISE", REGION, 1023, "1024"), ("ENTERPRISE", REGION, 10241, "10240"),
]  # fmt: skip


@pytest.mark.parametrize(("tier", "location", "gib", "nearest"), CAPACITIES)
def test_a_capacity_just_outside_its_band_is_found(
    tmp_path: Path, tier: str, location: str, gib: int, nearest: str
) -> None:
    wrong = {
        (*FILES_STORAGE, "tier"): tier,
        (*FILES_STORAGE, "location"): location,
        (*FILES_STORAGE, "capacity_gib"): gib,
    }
    small = {("directories", "sets", "size_gib"): 1}
    errors = [each for each in found_storage(tmp_path, wrong, small) if each.severity == "error"]

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
    errors = [each for each in found_storage(tmp_path, wrong, {}) if each.severity == "error"]

    assert [(each.rule, each.path, each.nearest) for each in errors] == [
        ("lustre-capacity", "lustre.scratch.capacity_gib", nearest)
    ]


FAR = {("data_sets", "images", "bucket", "location"): "europe-west4"}
SLIPS_STORAGE: dict[str, tuple[Change, Change, str, str, str]] = {
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
}  # fmt: skip


@pytest.mark.parametrize("slip", SLIPS_STORAGE)
def test_a_slip_is_a_finding_at_its_line_with_the_fix(tmp_path: Path, slip: str) -> None:
    environment, team, rule, path, said = SLIPS_STORAGE[slip]
    findings = found_storage(tmp_path, environment, team)
    one = next((each for each in findings if each.rule == rule and each.path == path), None)

    assert one is not None, [str(each) for each in findings]
    assert said in f"{one.message} {one.allowed} {one.nearest}"
    assert one.position is not None
