"""What a component says of arguments that it does not take."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pulumi
import pytest

from training_platform.config.component_arguments import GkeClusterArguments, TeamQueuesArguments
from training_platform.modules.reading import RejectedArguments, read

pytestmark = pytest.mark.usefixtures("loop")

PLACE = {"project": "example-train-dev", "environment": "dev"}
POOL = {"machine_type": "a3-highgpu-8g", "zone": "us-central1-a", "max_nodes": 4}
ARGS: dict[str, Any] = {
    "place": PLACE,
    "location": "us-central1",
    "network": "dev",
    "subnet": {"nodes": "10.10.0.0/20", "pods": "10.64.0.0/16", "services": "10.10.16.0/20"},
    "node_pools": {"h100": POOL},
}


@pytest.fixture(name="loop")
def _loop() -> Iterator[None]:
    """Set the event loop that outputs take for granted, and leave none."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    loop.close()
    asyncio.set_event_loop(None)


def rejected(args: dict[str, Any], name: str = "main") -> dict[str, str]:
    with pytest.raises(RejectedArguments) as error:
        read("GkeCluster", name, args, GkeClusterArguments)
    return dict(error.value.rejected)


def test_arguments_are_the_section_of_a_stack_file_and_what_a_deployment_knows() -> None:
    network: pulumi.Output[str] = pulumi.Output.from_input("told")

    arguments = read("GkeCluster", "main", {**ARGS, "network": network}, GkeClusterArguments)

    assert arguments.network is network
    assert arguments.place.environment == "dev"
    assert arguments.spec.node_pools["h100"].max_nodes == 4


def test_every_wrong_argument_is_named_with_what_is_allowed_and_the_nearest() -> None:
    pool = {**POOL, "machine_type": "a3-higpu-8g", "max_nodes": 0}
    args = {**ARGS, "place": {**PLACE, "team": 3}, "location": "us-centrl1", "node_pools": {"h100": pool}}

    reasons = rejected({**args, "nodepools": {}, "software": {"kueue": "none"}}, name="Main_1")

    assert reasons.keys() == {
        "name", "nodepools", "software", "place.team", "location",
        "node_pools.h100.machine_type", "node_pools.h100.max_nodes",
    }  # fmt: skip
    assert "lower-case letters, digits and dashes" in reasons["name"]
    assert reasons["nodepools"].endswith(". Nearest: node_pools")
    assert "software" not in reasons["software"].partition("Allowed: ")[2]
    assert reasons["location"].endswith("Nearest: us-central1")
    assert reasons["node_pools.h100.machine_type"].endswith("Nearest: a3-highgpu-8g")
    assert reasons["node_pools.h100.max_nodes"] == "is 0. Allowed: at least 1. Nearest: 1"


def test_a_missing_argument_is_named() -> None:
    reasons = rejected({"place": PLACE, "subnet": ARGS["subnet"]})

    assert reasons.keys() == {"location"}
    assert reasons["location"].startswith("is missing. Allowed: ")


def test_a_new_cluster_needs_a_network_and_an_existing_one_does_not() -> None:
    reasons = rejected({key: value for key, value in ARGS.items() if key != "network"})

    assert reasons == {"network": "is missing. Allowed: the id of a VPC, or the field existing"}
    read("GkeCluster", "main", {"place": PLACE, "location": "us-central1", "existing": "shared"}, GkeClusterArguments)


def test_an_output_that_decides_which_resources_exist_is_refused_before_all_else() -> None:
    count: pulumi.Output[int] = pulumi.Output.from_input(4)
    pool = {**POOL, "machine_type": "a3-higpu-8g", "max_nodes": count, "labels": {"a": object()}}

    reasons = rejected({**ARGS, "node_pools": {"h100": pool}})

    assert reasons.keys() == {"node_pools.h100.max_nodes", "node_pools.h100.labels.a"}
    assert reasons["node_pools.h100.max_nodes"].startswith(
        "is an output, whose value is known only during a deployment"
    )
    assert reasons["node_pools.h100.labels.a"].startswith("is of type object. Allowed: a string")


def test_the_error_ends_a_program_without_a_traceback() -> None:
    with pytest.raises(pulumi.RunError) as error:
        read("GkeCluster", "main", {**ARGS, "location": "nowhere"}, GkeClusterArguments)

    assert str(error.value).startswith("GkeCluster main:\n  location: 'nowhere' is not a region or zone.")


def test_a_share_is_of_a_flavor_of_the_pools() -> None:
    args = {
        "place": {**PLACE, "team": "vision"}, "cluster": "main", "location": "us-central1", "namespace": "vision",
        "node_pools": {"h100": POOL}, "shares": {"h10": {"nominal_quota": 8}},
    }  # fmt: skip

    with pytest.raises(RejectedArguments) as error:
        read("TeamQueues", "vision", args, TeamQueuesArguments)

    reason = "is not a flavor of the cluster's node_pools. Allowed: h100. Nearest: h100"
    assert error.value.rejected == [("shares.h10", reason)]
