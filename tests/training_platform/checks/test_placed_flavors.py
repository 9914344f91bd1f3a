"""What Kueue refuses to change of a flavor with a topology is found before it is deployed."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.kube.queues import ENVIRONMENT, stacks
from training_platform.checks.comparison.refusals import placed_flavors
from training_platform.config.workspace import Workspace

PLACED, TAINT = {"topology_aware": True}, {"taints": {"team": {"value": "vision", "effect": "NO_SCHEDULE"}}}


def side(pool: dict[str, Any], *, name: str = "placed", location: str = "us-central1-a") -> Workspace:
    """Return stack files in which the pool ``placed`` has some fields, or is called otherwise."""
    clusters = yaml.safe_load(ENVIRONMENT)["clusters"]
    pools = clusters["main"]["node_pools"]
    whole = pools.pop("placed") | {"topology_aware": False} | pool
    clusters["main"] |= {"node_pools": {**pools, name: whole}, "location": location}
    return stacks({"clusters": clusters}, {})


@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [
        (PLACED, {}, "topologyName"),
        (PLACED, PLACED | TAINT, "tolerations"),
        (PLACED | TAINT, {}, "topologyName, tolerations"),
    ],
    ids=["no-topology", "taint", "both"],
)
def test_a_change_that_kueue_refuses_is_found_at_the_pool(
    before: dict[str, Any], after: dict[str, Any], changed: str
) -> None:
    (found,) = placed_flavors(side(after), side(before))

    assert (found.rule, found.severity, found.path) == ("placed-flavor", "error", "clusters.main.node_pools.placed")
    assert found.position is not None
    assert f"changes {changed} of flavor h100-mega-reservation," in found.message


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (side({}), side(PLACED)),  # a topology can be given to a flavor
        (side({}), side(TAINT)),
        (side(PLACED), side(PLACED | {"max_nodes": 5})),
        (side(PLACED), side(PLACED, name="another")),  # of the same flavor
        (side(PLACED), side({"capacity": "spot", "reservation": None, "min_nodes": 0})),  # of another
    ],
    ids=["topology", "taint", "size", "pool", "flavor"],
)
def test_what_kueue_takes_is_not(before: Workspace, after: Workspace) -> None:
    assert list(placed_flavors(after, before)) == []


def test_a_flavor_of_another_cluster_or_of_a_new_environment_is_not_the_same_object() -> None:
    assert list(placed_flavors(side({}, location="us-central1-c"), side(PLACED))) == []
    assert list(placed_flavors(side({}), Workspace(side(PLACED).root, {}))) == []
