"""Locations of data sets, and organisations of many stacks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from pydantic import ValidationError

from tests.support.places import ORGANISATION
from training_platform.config.data_sets import READ, WRITE, WRITE_ALONE, access_mode, far_data_sets
from training_platform.config.expansion import FLAVOR_LABEL, ExpandedPool, GkePool, cluster_pools, flavors
from training_platform.config.model.cluster import ClusterSpec
from training_platform.config.model.storage import BackupScheduleSpec, DataSetSpec
from training_platform.config.model.workloads import ServerSpec
from training_platform.config.names import Locator
from training_platform.config.reading.declaration import located
from training_platform.config.reading.finding import Finding
from training_platform.config.workspace import read_workspace

ENVIRONMENT = """
config:
  training-platform:environment:
    project: example-data
    filestore:
      near: {location: us-central1-c, capacity_gib: 1024}
      far: {location: europe-west4-a, capacity_gib: 1024}
    data_sets: {d: DATA}
    clusters:
      c:
        location: us-central1
        subnet: {nodes: 10.0.0.0/20, pods: 10.64.0.0/16, services: 10.1.0.0/20}
        POOLS
"""
POOLS = "node_pools: {gpu: {machine_type: a2-highgpu-1g, zone: us-central1-a}}"


def data_set_findings(root: Path, data: str, pools: str = POOLS) -> list[Finding]:
    (root / "stacks").mkdir()
    text = ENVIRONMENT.replace("DATA", data).replace("POOLS", pools)
    (root / "stacks" / "Pulumi.env.yaml").write_text(text, encoding="utf-8")
    workspace = read_workspace(root)
    assert not [str(finding) for stack in workspace.stacks.values() for finding in stack.findings]
    return located(far_data_sets(workspace))


@pytest.mark.parametrize(
    "data",
    [
        "{bucket: {name: example-one, location: us-central1}}",
        "{filestore: {instance: near, path: a}}",
        "{hyperdisk_ml: {zone: us-central1-b, size_gib: 100}}",
    ],
)
def test_data_beside_the_accelerators_is_right(tmp_path: Path, data: str) -> None:
    assert data_set_findings(tmp_path, data) == []


def test_a_bucket_of_another_region_is_warned_of_with_its_egress(tmp_path: Path) -> None:
    (finding,) = data_set_findings(tmp_path, "{size_gib: 5, bucket: {name: example-one, location: europe-west4}}")

    assert (finding.rule, finding.severity, finding.path) == ("data-set-region", "warning", "data_sets.d")
    assert "each complete read sends 5 GiB between regions, which is charged as egress" in finding.message
    assert finding.position is not None
    assert finding.nearest == "us-central1"


def test_a_volume_of_another_region_is_mounted_by_nobody(tmp_path: Path) -> None:
    (finding,) = data_set_findings(tmp_path, "{filestore: {instance: far, path: a}}")

    assert "no cluster mounts it" in finding.message


def test_an_environment_without_accelerators_has_no_region_to_be_far_from(tmp_path: Path) -> None:
    assert (
        data_set_findings(tmp_path, "{bucket: {name: example-one, location: europe-west4}}", "release_channel: STABLE")
        == []
    )


SUBNET = {"nodes": "10.0.0.0/20", "pods": "10.64.0.0/16", "services": "10.1.0.0/20"}


def cluster(location: str = "us-central1-a", **pools: Mapping[str, object]) -> ClusterSpec:
    return ClusterSpec.model_validate({"location": location, "subnet": SUBNET, "node_pools": pools})


def only(location: str = "us-central1-a", **spec: object) -> ExpandedPool:
    (pool,) = cluster_pools("c", cluster(location, p=spec))
    return pool


def test_each_slice_over_several_vms_is_a_gke_pool_of_its_own() -> None:
    pool = only(machine_type="ct5lp-hightpu-4t", topology="4x8", slices=3, min_slices=1)

    hosts = 4 * 8 // 4
    assert pool.gke_pools == (GkePool("c-p-0", hosts, hosts), GkePool("c-p-1", 0, hosts), GkePool("c-p-2", 0, hosts))
    assert pool.max_chips == 3 * 4 * 8
    assert pool.chips_per_slice == 4 * 8


def test_one_host_slices_share_a_gke_pool() -> None:
    pool = only(machine_type="ct5lp-hightpu-8t", topology="2x4", slices=5, min_slices=2)

    assert pool.gke_pools == (GkePool("c-p", 2, 5),)
    assert not pool.multi_host


def test_two_by_four_is_one_host_of_eight_chips_or_two_of_four() -> None:
    assert only(machine_type="ct5lp-hightpu-8t", topology="2x4").hosts == 1
    assert only(machine_type="ct5lp-hightpu-4t", topology="2x4").hosts == 2


def test_a_gpu_pool_counts_vms() -> None:
    pool = only(machine_type="a3-highgpu-8g", min_nodes=1, max_nodes=6)

    assert pool.gke_pools == (GkePool("c-p", 1, 6),)
    assert pool.max_chips == 6 * 8


def test_without_a_zone_a_regional_cluster_has_every_pool_three_times() -> None:
    assert only("us-central1", machine_type="a3-highgpu-8g", max_nodes=2).max_nodes == 3 * 2
    one_host = {"machine_type": "ct5lp-hightpu-8t", "topology": "2x4", "slices": 5, "min_slices": 2}
    assert only("us-central1", **one_host).gke_pools == (GkePool("c-p", 3 * 2, 3 * 5),)
    assert only("us-central1", machine_type="a3-highgpu-8g", max_nodes=2, zone="us-central1-a").max_nodes == 2


@pytest.mark.parametrize("topology", ["3x3", "1x1x1", "99999x99999"])
def test_an_illegal_topology_still_expands(topology: str) -> None:
    pool = only(machine_type="ct5lp-hightpu-4t", topology=topology)

    assert pool.hosts >= 1
    assert len(pool.gke_pools) == 1


@pytest.mark.parametrize(
    ("topology", "nearest"), [("", None), ("4x", "4"), ("0x4", "4"), ("4x8x", "4x8"), ("4 x 8", "4x8"), ("axb", None)]
)
def test_a_malformed_topology_is_refused_with_its_sides(topology: str, nearest: str | None) -> None:
    with pytest.raises(ValidationError) as refused:
        cluster(p={"machine_type": "ct5lp-hightpu-4t", "topology": topology})

    (error,) = refused.value.errors()
    assert error["loc"] == ("node_pools", "p", "topology")
    assert error["ctx"]["nearest"] == nearest


def test_a_flavor_is_of_one_accelerator_topology_and_capacity() -> None:
    named_flavors = flavors(
        "c",
        cluster(
            a={"machine_type": "ct5lp-hightpu-4t", "topology": "4x8"},
            b={"machine_type": "ct5lp-hightpu-4t", "topology": "4x8", "slices": 2},
            c={"machine_type": "ct5lp-hightpu-4t", "topology": "4x4"},
            d={"machine_type": "ct5lp-hightpu-4t", "topology": "4x4", "capacity": "spot"},
        ),
    )

    assert {name: flavor.capacity_chips for name, flavor in named_flavors.items()} == {
        "tpu-v5e-4x8": 3 * 32,
        "tpu-v5e-4x4": 16,
        "tpu-v5e-4x4-spot": 16,
    }


def test_kueue_is_offered_what_is_paid_for_first() -> None:
    machine = {"machine_type": "a3-highgpu-8g"}
    named_flavors = flavors(
        "c",
        cluster(
            a={**machine, "capacity": "spot"},
            b={**machine, "capacity": "flex-start"},
            c=machine,
            d={**machine, "capacity": "reservation", "reservation": "r"},
        ),
    )

    assert list(named_flavors) == ["h100-reservation", "h100", "h100-flex-start", "h100-spot"]


def test_a_flavor_s_nodes_carry_the_labels_that_jobs_select_by() -> None:
    slices = {"machine_type": "ct5lp-hightpu-4t", "topology": "4x8", "capacity": "spot"}
    (flavor,) = flavors("c", cluster(a=slices)).values()

    assert flavor.node_labels == {
        FLAVOR_LABEL: "tpu-v5e-4x8-spot",
        "cloud.google.com/gke-spot": "true",
        "cloud.google.com/gke-tpu-accelerator": "tpu-v5-lite-podslice",
        "cloud.google.com/gke-tpu-topology": "4x8",
    }


GB200 = {"machine_type": "a4x-highgpu-4g", "capacity": "reservation", "reservation": "nvl", "max_nodes": 18}


def test_pods_of_a_flavor_tolerate_what_gke_taints_its_nodes_with() -> None:
    named = flavors("c", cluster(arm=GB200, amd={"machine_type": "a2-highgpu-8g"}))

    assert named["gb200-reservation"].tolerated == {"nvidia.com/gpu": "present", "kubernetes.io/arch": "arm64"}
    assert named["a100-40"].tolerated == {"nvidia.com/gpu": "present"}


def test_a_resource_is_traced_back_to_the_section_that_asked_for_it() -> None:
    section = read_workspace(ORGANISATION).stacks["prod"].section
    assert section is not None
    locator = Locator(section)

    assert locator.path("us-central1-h100-pool") == ("clusters", "us-central1", "node_pools", "h100")
    assert locator.path("us-central1-h100-mega-pool") == ("clusters", "us-central1", "node_pools", "h100-mega")
    assert locator.path("us-west4-v5e-slice-3-pool") == ("clusters", "us-west4", "node_pools", "v5e-slice")
    assert locator.path("us-west4-system-pool") == ("clusters", "us-west4", "system_pool")
    assert locator.path("filestore-homes-instance") == ("filestore", "homes")
    assert locator.path("network-vpc") == ()


BUCKET = {"bucket": {"name": "example-one", "location": "us-central1"}}
DISK = {"zone": "us-central1-a", "size_gib": 100}


@pytest.mark.parametrize(
    ("data_set", "writers", "readers"),
    [
        ({**BUCKET, "writer": "vision"}, WRITE, READ),
        ({"hyperdisk_ml": DISK, "writer": "vision"}, WRITE_ALONE, None),
        ({"hyperdisk_ml": {**DISK, "filled": True}, "writer": "vision"}, READ, READ),
    ],
    ids=["a bucket", "a disk that is filled now", "a filled disk"],
)
def test_a_data_set_is_written_by_its_writer_and_a_disk_until_it_is_filled(
    data_set: Mapping[str, object], writers: str, readers: str | None
) -> None:
    spec = DataSetSpec.model_validate(data_set)

    assert (access_mode(spec, "vision"), access_mode(spec, "nlp")) == (writers, readers)


@pytest.mark.parametrize(
    ("teams", "readers"), [((), {"vision", "nlp", "audio"}), (("vision",), {"vision", "nlp"})], ids=["all", "one"]
)
def test_a_data_set_is_read_by_its_teams_and_its_writer(teams: tuple[str, ...], readers: set[str]) -> None:
    data_set = DataSetSpec.model_construct(teams=teams, writer="nlp")

    assert {team for team in ("vision", "nlp", "audio") if data_set.readable_by(team)} == readers


@pytest.mark.parametrize(("start_hour", "nearest"), [(20, "24"), (17, "23")])
def test_backups_that_would_end_before_they_start_are_offered_six_hours(start_hour: int, nearest: str) -> None:
    (problem,) = BackupScheduleSpec.model_construct(start_hour=start_hour, end_hour=start_hour).conflicts()

    assert (problem.path, problem.nearest) == (("end_hour",), nearest)


@pytest.mark.parametrize(("metric", "target", "count"), [(None, None, 0), ("requests", None, 1), ("requests", 4, 0)])
def test_a_metric_of_ones_own_needs_a_target(metric: str | None, target: int | None, count: int) -> None:
    server = ServerSpec.model_construct(flavor="a100", image="chat", metric=metric, target=target)

    assert [problem.path for problem in server.conflicts()] == [("target",)] * count
