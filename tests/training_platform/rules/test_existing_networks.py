"""Existing networks are judged by the ranges in the files, summed over environments, and the rest is counted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.training_platform.checks.repository import TODAY
from training_platform.checks.report import Report
from training_platform.checks.stacks import CheckOptions, check_stacks
from training_platform.config.reading.finding import Finding

ENVIRONMENT = """\
config:
  training-platform:environment:
    project: example-{name}
    production: false
    network: {{name: shared-vpc{host}}}
    filestore:{files}
    clusters:
      main:
        location: us-central1
        subnet: {{name: train, nodes: {nodes}, pods: {pods}, services: {services}}}
        system_pool: {{machine_type: e2-standard-8, min_nodes: 1, max_nodes: 3}}
        node_pools:
          h100: {{machine_type: a3-highgpu-8g, zone: us-central1-a, capacity: spot, max_nodes: {max_nodes}}}
"""
FILES = "\n      homes: {{location: us-central1-a, tier: ZONAL, capacity_gib: 1024, reserved_range: {}}}"
OTHER: dict[str, Any] = {"pods": "10.72.0.0/14", "services": "10.5.0.0/20"}
SYSTEM = 3


EXISTING = """\
config:
  training-platform:environment:
    project: example-lab
    production: false
    network: {{name: vpc}}
    alerts: {{enabled: false}}
    images: {{location: {images}}}
    filestore:
      homes: {{location: {files}, tier: ZONAL, capacity_gib: 1024, reserved_range: 10.9.0.0/26}}
    clusters:
      main:
        location: us-central1
        existing: theirs
        software: {{kueue: {kueue}, jobset: existing}}
        node_pools:
          h100: {{machine_type: a3-highgpu-8g, zone: us-central1-a, capacity: flex-start, max_nodes: 1}}
          kept: {{machine_type: a3-highgpu-8g, zone: us-central1-a, capacity: reservation, reservation: r}}
"""


def existing(
    root: Path, name: str, *, images: str = "us", files: str = "us-central1-a", kueue: str = "existing"
) -> None:
    """Write the file of an environment with pools in somebody else's cluster."""
    (root / "stacks").mkdir(exist_ok=True)
    text = EXISTING.format(images=images, files=files, kueue=kueue)
    (root / "stacks" / f"Pulumi.{name}.yaml").write_text(text, encoding="utf-8")


def environment(
    root: Path,
    name: str,
    *,
    nodes: str = "10.2.0.0/20",
    pods: str = "10.64.0.0/14",
    services: str = "10.3.0.0/20",
    host: str = ", project: example-host",
    max_nodes: int = 4,
    reserved: str = "",
) -> None:
    """Write the file of an environment on a subnet of a Shared VPC."""
    files = FILES.format(reserved) if reserved else " {}"
    text = ENVIRONMENT.format(
        name=name, nodes=nodes, pods=pods, services=services, host=host, max_nodes=max_nodes, files=files
    )
    (root / "stacks").mkdir(exist_ok=True)
    (root / "stacks" / f"Pulumi.{name}.yaml").write_text(text, encoding="utf-8")


def checked(root: Path) -> Report:
    return check_stacks(root, None, CheckOptions(today=TODAY)).report


def found(root: Path, *rules: str) -> list[Finding]:
    return [row for row in checked(root).all_findings() if row.rule in rules]


@pytest.mark.parametrize(("nodes", "count"), [("10.2.0.0/26", 60), ("10.2.0.0/29", 4)])
def test_a_subnet_has_an_address_for_each_node(tmp_path: Path, nodes: str, count: int) -> None:
    environment(tmp_path, "lab", nodes=nodes, max_nodes=count - SYSTEM)
    fits = found(tmp_path, "node-range")
    environment(tmp_path, "lab", nodes=nodes, max_nodes=count - SYSTEM + 1)

    ((finding,)) = found(tmp_path, "node-range")

    assert fits == []
    assert (finding.severity, finding.path) == ("error", "clusters.main.subnet.nodes")
    assert f"has {count} addresses for {count + 1} nodes" in finding.message
    assert "the owner of project example-host has to enlarge the range" in (finding.allowed or "")


def test_clusters_of_all_environments_on_a_subnet_are_summed(tmp_path: Path) -> None:
    environment(tmp_path, "lab", nodes="10.2.0.0/26", max_nodes=30)
    environment(tmp_path, "exp", nodes="10.2.0.0/26", max_nodes=30, **OTHER)

    findings = found(tmp_path, "node-range")

    assert {row.stack for row in findings} == {"lab", "exp"}
    assert all("60 addresses for 66 nodes: main of exp 33, main of lab 33" in row.message for row in findings)


def test_environments_agree_on_the_primary_range_of_a_subnet(tmp_path: Path) -> None:
    environment(tmp_path, "lab")
    environment(tmp_path, "exp", nodes="10.2.0.0/21", **OTHER)

    assert {row.message for row in found(tmp_path, "node-range")} == {
        "is 10.2.0.0/21, but main of lab has 10.2.0.0/20 for the same subnet",
        "is 10.2.0.0/20, but main of exp has 10.2.0.0/21 for the same subnet",
    }


def test_a_range_of_pods_has_a_block_for_each_node(tmp_path: Path) -> None:
    environment(tmp_path, "lab", pods="10.64.0.0/24", max_nodes=64)

    ((finding,)) = found(tmp_path, "pod-range")

    assert (finding.severity, finding.path) == ("warning", "clusters.main.subnet.pods")
    assert "has 256 addresses" in finding.message


def test_a_file_system_is_apart_from_the_ranges_of_an_existing_subnet(tmp_path: Path) -> None:
    environment(tmp_path, "lab", host="", reserved="10.3.15.0/24")
    overlapping = found(tmp_path, "filestore-range-free")
    environment(tmp_path, "lab", host="", reserved="10.3.16.0/24")

    assert [row.message for row in overlapping] == ["10.3.15.0/24 overlaps 10.3.0.0/20 of train"]
    assert found(tmp_path, "filestore-range-free", "existing-ranges-overlap", "ranges-overlap") == []


def test_file_systems_of_environments_in_one_vpc_are_apart(tmp_path: Path) -> None:
    host = ", project: example-net"
    environment(tmp_path, "lab", host=host, reserved="10.9.0.0/24")
    environment(tmp_path, "exp", host=host, reserved="10.9.0.0/24", **OTHER)

    ((finding,)) = found(tmp_path, "existing-ranges-overlap")

    assert finding.message == "10.9.0.0/24 overlaps 10.9.0.0/24, filestore.homes.reserved_range of exp"


def test_what_only_the_owner_of_a_network_knows_is_counted_once(tmp_path: Path) -> None:
    environment(tmp_path, "lab")

    report = checked(tmp_path)

    assert report.unjudged()["network with unknown NAT gateways, firewall rules and other users"] == 1


def test_networks_of_gpus_are_apart_from_the_ranges_of_an_existing_subnet(tmp_path: Path) -> None:
    environment(tmp_path, "lab", pods="192.168.0.0/16")
    path = tmp_path / "stacks" / "Pulumi.lab.yaml"
    path.write_text(path.read_text().replace("capacity: spot", "capacity: spot, gpu_direct: true"), encoding="utf-8")

    ((finding,)) = found(tmp_path, "gpu-network-range")

    assert finding.path == "clusters.main.gpu_networks.range"
    assert "overlaps 192.168.0.0/16 of cluster main" in finding.message


def test_clusters_agree_on_a_named_range_and_each_has_one_for_its_services(tmp_path: Path) -> None:
    environment(tmp_path, "exp")
    environment(tmp_path, "lab", pods="10.72.0.0/14")

    pods, services = found(tmp_path, "existing-range-names")

    assert (pods.severity, pods.path, pods.stack) == ("error", "clusters.main.subnet.pods", "lab")
    assert "main of exp has 10.64.0.0/14 for the range pods of the same subnet" in pods.message
    assert (services.severity, services.unjudged) == ("note", "range of Services of two clusters")


def test_ranges_of_a_vpc_that_one_stack_creates_and_another_uses_are_compared(tmp_path: Path) -> None:
    environment(tmp_path, "exp")
    created = tmp_path / "stacks" / "Pulumi.exp.yaml"
    text = created.read_text(encoding="utf-8").replace("name: train, ", "")
    created.write_text(text.replace("    network: {name: shared-vpc, project: example-host}\n", ""), encoding="utf-8")
    environment(tmp_path, "lab", host=", project: example-exp", **OTHER)
    uses = tmp_path / "stacks" / "Pulumi.lab.yaml"
    uses.write_text(uses.read_text(encoding="utf-8").replace("shared-vpc", "exp-network"), encoding="utf-8")

    ((finding,)) = found(tmp_path, "existing-ranges-overlap")

    assert (finding.stack, finding.path) == ("lab", "clusters.main.subnet.nodes")
    assert finding.message == "10.2.0.0/20 overlaps 10.2.0.0/20, clusters.main.subnet.nodes of exp"


def test_an_existing_cluster_is_judged_by_the_location_and_the_pools_that_the_file_gives(tmp_path: Path) -> None:
    rules = ("filestore-region", "images-streamed", "flex-start-beside-reserved")
    existing(tmp_path, "lab")
    near = {row.rule for row in found(tmp_path, *rules)}
    existing(tmp_path, "lab", images="europe-west4", files="europe-west4-b")

    assert near == {"flex-start-beside-reserved"}
    assert {row.rule for row in found(tmp_path, *rules)} == set(rules)


def test_software_that_somebody_else_installs_is_counted_as_not_judged(tmp_path: Path) -> None:
    existing(tmp_path, "lab", kueue="installed")

    ((note,)) = found(tmp_path, "software-not-judged")

    assert (note.severity, note.path) == ("note", "clusters.main.software")
    assert note.message == "jobset of somebody else: versions and settings are not known here"


def test_two_sections_do_not_both_install_software_in_one_cluster(tmp_path: Path) -> None:
    existing(tmp_path, "lab", kueue="installed")
    existing(tmp_path, "exp")
    assert found(tmp_path, "cluster-twice") == []

    existing(tmp_path, "exp", kueue="installed")
    ((finding,)) = found(tmp_path, "cluster-twice")

    assert (finding.stack, finding.path) == ("lab", "clusters.main.existing")
    assert finding.message == "theirs and main of exp are the same cluster, and the latter already installs kueue in it"
