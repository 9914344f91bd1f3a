"""What a team's namespace may beyond baseline, and how much it can hold."""

from __future__ import annotations

from typing import Any

import pytest

from training_platform.config.model.cluster import ClusterSpec
from training_platform.config.model.queues import Share
from training_platform.config.model.storage import FilestoreSpec
from training_platform.config.model.team import DirectorySpec
from training_platform.config.pools import Flavor, flavors
from training_platform.resources.gpu_direct import kinds_of
from training_platform.resources.tenancy import (
    SPARE_CPUS,
    SPARE_PODS,
    most_chips,
    namespace_labels,
    resource_quota,
    shared_claims,
)

RANGES = {"nodes": "10.0.0.0/20", "pods": "10.64.0.0/16", "services": "10.1.0.0/20"}
POOLS: dict[str, Any] = {
    "h100": {"machine_type": "a3-highgpu-8g", "zone": "us-central1-a", "max_nodes": 4},
    "mega": {"machine_type": "a3-megagpu-8g", "zone": "us-central1-b", "max_nodes": 2},
    "plain": {
        "machine_type": "a3-highgpu-8g",
        "zone": "us-central1-a",
        "max_nodes": 2,
        "capacity": "spot",
        "gpu_direct": False,
    },
    "v5e": {"machine_type": "ct5lp-hightpu-4t", "zone": "us-central1-a", "topology": "4x8", "slices": 2},
}


@pytest.fixture
def fleet() -> dict[str, Flavor]:
    return flavors(
        "main", ClusterSpec.model_validate({"location": "us-central1", "subnet": RANGES, "node_pools": POOLS})
    )


@pytest.mark.parametrize(
    ("names", "kinds"),
    [
        (["h100"], ("TCPX",)),
        (["h100", "h100-mega", "tpu-v5e-4x8"], ("TCPX", "TCPXO")),
        (["h100-spot", "tpu-v5e-4x8"], ()),
    ],
)
def test_a_team_has_the_exceptions_of_its_own_flavors(
    fleet: dict[str, Flavor], names: list[str], kinds: tuple[str, ...]
) -> None:
    assert kinds_of(fleet[name] for name in names) == kinds


def test_a_namespace_that_needs_nothing_beyond_baseline_enforces_it() -> None:
    assert namespace_labels("nlp", (), host_network=False) == {
        "training-platform/team": "nlp",
        "pod-security.kubernetes.io/enforce": "baseline",
        "pod-security.kubernetes.io/warn": "baseline",
    }


@pytest.mark.parametrize(
    ("kinds", "host_network", "allowed"),
    [
        (("TCPX",), False, {"training-platform/allow-tcpx"}),
        ((), True, {"training-platform/allow-host-network"}),
        (("RDMA",), True, {"training-platform/allow-rdma", "training-platform/allow-host-network"}),
    ],
)
def test_what_a_namespace_may_beyond_baseline_is_said_one_by_one(
    kinds: tuple[str, ...], host_network: bool, allowed: set[str]
) -> None:
    labels = namespace_labels("vision", kinds, host_network=host_network)

    assert {label for label in labels if "/allow-" in label} == allowed
    assert "pod-security.kubernetes.io/enforce" not in labels
    assert labels["pod-security.kubernetes.io/warn"] == labels["pod-security.kubernetes.io/audit"] == "baseline"


def test_claims_are_named_to_admission_unless_the_share_is_the_teams_alone() -> None:
    part, whole = (DirectorySpec(filestore="a", size_gib=1, whole_share=whole) for whole in (False, True))
    alone = DirectorySpec(filestore="b", size_gib=1)
    spec = FilestoreSpec(location="us-central1-a", capacity_gib=1024)
    instances = {"a": spec, "b": spec.model_copy(update={"team": "vision"})}

    assert shared_claims({"data": part, "corpora": part, "own": whole, "alone": alone}, instances) == {
        "training-platform/shared-claims": "corpora,data"
    }
    assert shared_claims({"own": whole, "alone": alone}, instances) == {}


@pytest.mark.parametrize(
    ("share", "most"),
    [
        (Share(nominal_quota=8), 4 * 8),  # all that the pools hold can be lent
        (Share(nominal_quota=8, borrowing_limit=8), 8 + 8),
        (Share(nominal_quota=8, borrowing_limit=64), 4 * 8),
        (Share(nominal_quota=8, borrowing_limit=0), 8),
        (Share(nominal_quota=64), 64),  # promised more than there is, which a rule finds
    ],
)
def test_a_team_can_have_its_own_and_what_the_pools_hold_beside(
    fleet: dict[str, Flavor], share: Share, most: int
) -> None:
    assert most_chips(share, fleet["h100"]) == most


def test_the_quota_is_what_the_teams_flavors_come_to(fleet: dict[str, Flavor]) -> None:
    shares = {
        "h100": Share(nominal_quota=16, borrowing_limit=0),
        "h100-mega": Share(nominal_quota=8, borrowing_limit=0),
        "tpu-v5e-4x8": Share(nominal_quota=32, borrowing_limit=0),
    }
    hard = resource_quota(shares, fleet)

    assert hard["requests.nvidia.com/gpu"] == str(16 + 8)
    assert hard["requests.google.com/tpu"] == "32"
    assert hard["pods"] == str(2 * (2 + 1 + 32 // 4) + SPARE_PODS)
    assert hard["requests.cpu"] == str(SPARE_CPUS + 2 * 208 + 1 * 208 + 8 * 112)
    assert hard["services.loadbalancers"] == "0"


def test_a_team_without_a_kind_of_chip_can_have_none_of_it(fleet: dict[str, Flavor]) -> None:
    assert resource_quota({"h100": Share(nominal_quota=8)}, fleet)["requests.google.com/tpu"] == "0"
