"""The first files of a stack: names, zones and address ranges that nobody had to choose."""

from __future__ import annotations

import pytest
import yaml

from training_platform.config.first_files import FirstPool, environment_text, first_zone, with_pool
from training_platform.config.model.cluster import ClusterSpec, SubnetSpec
from training_platform.config.model.environment import Environment
from training_platform.config.reading.finding import UserError

H100 = FirstPool(machine_type="a3-highgpu-8g", zone="us-central1-a", capacity="spot")
ELSEWHERE = FirstPool(machine_type="a3-highgpu-8g", zone="europe-west4-b", capacity="spot")


def ranges(number: int) -> dict[str, str]:
    """Return the ranges of the cluster of a number, in the blocks that ``init`` counts up."""
    nodes = f"10.{2 * number}.0.0/20"
    services = f"10.{2 * number + 1}.0.0/20"
    return {"nodes": nodes, "pods": f"10.{64 + 4 * number}.0.0/14", "services": services}


def environment(*numbers: int) -> Environment:
    return taken_by(*map(ranges, numbers))


def taken_by(*subnets: dict[str, str]) -> Environment:
    clusters = {
        f"c{number}": ClusterSpec(location="us-west4", subnet=SubnetSpec.model_validate(subnet))
        for number, subnet in enumerate(subnets)
    }
    return Environment(project="example-other", clusters=clusters)


def text(*pools: FirstPool, other_environments: tuple[Environment, ...] = ()) -> str:
    return environment_text(
        name="dev", project="example-lab", production=False, pools=pools, other_environments=other_environments
    )


def clusters(file: str) -> dict[str, dict[str, object]]:
    sections: dict[str, dict[str, object]] = yaml.safe_load(file)["config"]["training-platform:environment"]["clusters"]
    return sections


def test_clusters_have_the_first_ranges_that_are_free_in_all_environments() -> None:
    first_clusters = clusters(text(H100, ELSEWHERE, other_environments=(environment(0, 2),)))

    assert [first_clusters[name]["subnet"] for name in ("us-central1", "europe-west4")] == [ranges(1), ranges(3)]


@pytest.mark.parametrize("part", ["nodes", "pods", "services"])
def test_a_range_that_one_part_of_a_subnet_takes_is_not_free(part: str) -> None:
    other = taken_by({**ranges(9), part: ranges(0)[part]})

    assert clusters(text(H100, other_environments=(other,)))["us-central1"]["subnet"] == ranges(1)


def test_32_clusters_have_ranges_and_the_next_one_is_refused() -> None:
    assert clusters(text(H100, other_environments=(environment(*range(31)),)))["us-central1"]["subnet"] == ranges(31)

    with pytest.raises(UserError, match="only you know its address ranges"):
        text(H100, other_environments=(environment(*range(32)),))


def test_a_cluster_in_somebody_elses_network_is_not_written() -> None:
    file = text(H100).replace("    production:", "    network: {name: theirs}\n    production:")

    with pytest.raises(UserError, match="only you know its address ranges"):
        with_pool(file, "dev", ELSEWHERE)


def test_pools_of_one_machine_type_are_named_after_their_accelerator_then_capacity_then_number() -> None:
    pools = clusters(text(H100, H100, H100, H100))["us-central1"]["node_pools"]

    assert isinstance(pools, dict)
    assert list(pools) == ["h100", "h100-spot", "h100-spot-2", "h100-spot-3"]


def test_a_zone_is_near_the_clusters_then_in_us_central1_then_the_first() -> None:
    assert first_zone("a3-highgpu-8g") == "us-central1-a"
    assert first_zone("a3-highgpu-8g", ["europe-west4", "us-central1"]).startswith("europe-west4-")
    assert first_zone("ct4p-hightpu-4t", ["europe-west4"]) == "us-central2-b"


@pytest.mark.parametrize(
    ("capacity", "written"), [("flex-start", True), ("queued-provisioning", True), ("spot", False)]
)
def test_vms_that_come_by_request_have_a_longest_run(capacity: str, written: bool) -> None:
    pool = FirstPool(machine_type="a3-highgpu-8g", zone="us-central1-a", capacity=capacity)

    assert ("max_run_hours: 24" in pool.value) is written
    assert "max_nodes: 1" in pool.value


def test_a_production_cluster_has_a_place_for_pods_of_no_accelerator() -> None:
    production = environment_text(name="prod", project="example-lab", production=True, pools=[H100])

    assert clusters(production)["us-central1"]["cpu_pools"] == {"general": {"max_nodes": 2}}
    assert "cpu_pools" not in clusters(text(H100))["us-central1"]


@pytest.mark.parametrize(
    ("machine_type", "topology"),
    [("ct5lp-hightpu-8t", "2x4"), ("ct5lp-hightpu-4t", "2x2"), ("ct4p-hightpu-4t", "2x2x1")],
)
def test_a_pool_of_tpus_starts_with_one_slice_of_the_smallest_topology(machine_type: str, topology: str) -> None:
    pool = FirstPool(machine_type=machine_type, zone="us-central1-a", capacity="on-demand")

    assert f"topology: {topology}, slices: 1" in pool.value
