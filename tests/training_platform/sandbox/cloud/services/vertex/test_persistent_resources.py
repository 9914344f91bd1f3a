"""Persistent resources in the local cloud: what a client meets that sends what the released provider would."""

from __future__ import annotations

import copy
from typing import Any

from tests.training_platform.sandbox.cloud.conftest import LOCATION, Client, Json
from training_platform.sandbox.cloud.state.cloud import Settings

RESOURCES = f"aiplatform/v1/{LOCATION}/persistentResources"
KEPT = f"{RESOURCES}/kept"
MASK = "resourcePools.replicaCount"
POOLS: list[Json] = [
    {"id": "head", "machineSpec": {"machineType": "n2-standard-8"}, "replicaCount": "1"},
    {"id": "workers", "machineSpec": {"machineType": "n1-standard-4"}, "replicaCount": "1"},
]


def create(ask: Client, body: Json, name: str = "kept") -> Any:
    return ask("POST", RESOURCES, copy.deepcopy(body), persistentResourceId=name)


def sized(*counts: Any) -> Json:
    return {"resourcePools": [{**pool, "replicaCount": count} for pool, count in zip(POOLS, counts, strict=True)]}


def test_there_is_no_put_and_a_patch_wants_a_mask(ask: Client) -> None:
    assert create(ask, {"resourcePools": POOLS}).code == 200

    put = ask("PUT", KEPT, sized("1", "2"))
    bare = ask("PATCH", KEPT, sized("1", "2"))

    assert (put.code, bare.code) == (404, 400)
    assert bare.message == "update_mask is required"
    assert [pool["replicaCount"] for pool in ask.done("GET", KEPT)["resourcePools"]] == ["1", "1"]


def test_a_mask_below_the_pools_changes_their_sizes_and_nothing_else(ask: Client) -> None:
    create(ask, {"resourcePools": POOLS})
    body = sized("2", "3")
    body["resourcePools"][0]["machineSpec"] = {"machineType": "n2-standard-16"}

    ask.done("PATCH", KEPT, body, updateMask="resource_pools.replica_count")

    pools = ask.done("GET", KEPT)["resourcePools"]
    assert [pool["replicaCount"] for pool in pools] == ["2", "3"]
    assert [pool["machineSpec"]["machineType"] for pool in pools] == ["n2-standard-8", "n1-standard-4"]


def test_counts_come_back_as_texts_and_a_text_without_a_number_is_refused(ask: Client) -> None:
    """As proto3 JSON has whole numbers of 64 bits: written as either, read as texts."""
    code = create(ask, sized(1, "2")).code
    refused = create(ask, sized("1", "two"), "other")

    assert (code, refused.code) == (200, 400)
    assert [pool["replicaCount"] for pool in ask.done("GET", KEPT)["resourcePools"]] == ["1", "2"]


def test_an_id_is_taken_until_the_old_one_is_gone(ask: Client) -> None:
    create(ask, {"resourcePools": POOLS})
    ask.cloud.settings = Settings(durations={"aiplatform.persistentResources": 600.0})
    ask.done("DELETE", KEPT)

    assert create(ask, {"resourcePools": POOLS}).code == 409
