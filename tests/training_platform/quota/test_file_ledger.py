"""What directories and homes are promised of Filestore instances, against what these hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from training_platform.config.workspace import Workspace, read_workspace
from training_platform.quota.ledger import FileLine, file_ledger
from training_platform.quota.ledger_findings import file_findings

ENVIRONMENT = """
config:
  training-platform:environment:
    project: example-files
    production: false
    filestore:
      homes: {location: us-central1-a, tier: ZONAL, capacity_gib: 2560}
      data: {location: us-central1-a, tier: TIER, capacity_gib: CAPACITY, EXTRA}
    clusters:
      c:
        location: us-central1-a
        subnet: {nodes: 10.0.0.0/20, pods: 10.64.0.0/16, services: 10.1.0.0/20}
        system_pool: {machine_type: e2-standard-8, min_nodes: 1, max_nodes: 3}
        notebooks:
          {filestore: homes, host: one.example.com, oauth_client_id: one, allowed_domain: example.com, home_gib: 2048}
"""
TEAM = """
config:
  training-platform:team:
    environment: env
    name: NAME
    members: ["group:a@example.com"]
    directories:
      sets: {filestore: data, size_gib: SIZE}
"""


def workspace(root: Path, *, capacity: int, one: int, other: int, tier: str = "ZONAL", extra: str = "") -> Workspace:
    (root / "stacks").mkdir(exist_ok=True)
    environment = ENVIRONMENT.replace("CAPACITY", str(capacity)).replace("TIER", tier)
    environment = environment.replace(", EXTRA", f", {extra}" if extra else "")
    (root / "stacks" / "Pulumi.env.yaml").write_text(environment, encoding="utf-8")
    for name, size in (("one", one), ("other", other)):
        team = TEAM.replace("NAME", name).replace("SIZE", str(size))
        (root / "stacks" / f"Pulumi.env-{name}.yaml").write_text(team, encoding="utf-8")
    found = read_workspace(root)
    assert not [str(each) for stack in found.stacks.values() for each in stack.findings]
    return found


def line(found: Workspace, instance: str = "data") -> FileLine:
    return next(each for each in file_ledger(found) if each.instance == instance)


def test_a_line_sums_up_what_directories_are_promised(tmp_path: Path) -> None:
    found = line(workspace(tmp_path, capacity=2560, one=1000, other=500))

    assert (found.promised, found.headroom, found.over) == (1000 + 500, 2560 - 1500, False)
    assert [(share.holder.label, share.amount) for share in found.shares] == [("one/sets", 1000), ("other/sets", 500)]


def test_homes_of_notebooks_count(tmp_path: Path) -> None:
    found = line(workspace(tmp_path, capacity=2560, one=1, other=1), "homes")

    assert (found.promised, found.shares[0].holder.label) == (2048, "homes of c")


def test_directories_may_be_promised_all_of_an_instance_and_no_gib_more(tmp_path: Path) -> None:
    full = workspace(tmp_path, capacity=1024, one=1000, other=24)
    assert file_findings(file_ledger(full), full) == []

    over = workspace(tmp_path, capacity=1024, one=1000, other=25)
    first, second = file_findings(file_ledger(over), over)

    assert (first.rule, first.severity, first.path) == ("file-capacity-exceeded", "error", "directories.sets.size_gib")
    assert first.position is not None
    assert (first.stack, first.nearest, second.stack, second.nearest) == (
        "env-one", str(1024 - 25), "env-other", str(1024 - 1000),
    )  # fmt: skip
    assert "holds 1,024 GiB and is promised 1,025" in first.message
    assert "or capacity_gib of data, up to 9,984" in (first.allowed or "")


def test_an_instance_that_cannot_grow_so_far_is_not_offered_as_the_way_out(tmp_path: Path) -> None:
    over = workspace(tmp_path, capacity=9984, one=9984, other=1)
    first, _ = file_findings(file_ledger(over), over)

    assert first.allowed == "at most 9,983 besides the others"


@pytest.mark.parametrize(
    ("tier", "capacity", "read", "write"),
    [
        ("ZONAL", 1024, 260, 88),
        ("ZONAL", 10240, 2600, 880),
        ("REGIONAL", 2048, 240, 200),
        ("REGIONAL", 10240, 2600, 880),
        ("BASIC_HDD", 1024, 100, 100),
        ("BASIC_HDD", 10240, 180, 120),
        ("BASIC_SSD", 2560, 1200, 350),
        ("ENTERPRISE", 10240, 1200, 1000),
    ],
)
def test_throughput_follows_tier_and_capacity(tmp_path: Path, tier: str, capacity: int, read: int, write: int) -> None:
    found = line(workspace(tmp_path, capacity=capacity, one=1, other=1, tier=tier))

    assert found.throughput is not None
    assert (found.throughput.read_mibps, found.throughput.write_mibps) == (read, write)


def test_of_iops_that_are_set_no_throughput_is_told(tmp_path: Path) -> None:
    found = line(workspace(tmp_path, capacity=1024, one=1, other=1, extra="iops: 4000"))

    assert found.throughput is None
