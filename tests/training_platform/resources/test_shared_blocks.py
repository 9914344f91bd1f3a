"""Blocks that many resources have are spelt, judged and read once, and no differently from others."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from training_platform.resources.declared import Declared, shared
from training_platform.resources.planned import UNKNOWN, Planned, Shared
from training_platform.resources.register import NODE_POOL
from training_platform.rules import Program, evaluate, program, views_of_plan
from training_platform.views.node_pool import NodePoolView

CONFIG = {"machineType": "e2-standard-8", "bootDisk": {"sizeGb": 100, "diskType": "pd-balanced"}}
WRONG: dict[str, dict[str, Any]] = {
    "a type": {**CONFIG, "bootDisk": {"sizeGb": "many"}},
    "a field": {**CONFIG, "bootDisk": {"sizeGB": 100}},
    "what is required": {**CONFIG, "taints": [{"key": "a"}]},
    "a size": {**CONFIG, "bootDisk": {"sizeGb": 5}},
    "what is not known": {**CONFIG, "bootDisk": {"sizeGb": UNKNOWN}},
}


@shared
def _disk(size_gb: int, disk_type: str) -> dict[str, Any]:
    return {"boot_disk": {"size_gb": size_gb, "disk_type": disk_type}, "kms_key": None}


def _program(config: dict[str, Any], shares: int) -> Program:
    """Return pools of one configuration, of which every block is shared, or none."""
    blocks = {key: Shared(value) if shares and isinstance(value, dict) else value for key, value in config.items()}
    inputs = {"cluster": "c", "location": "us-central1-a", "nodeConfig": Shared(blocks) if shares else blocks}
    pools = [Planned(stack="s", type=NODE_POOL, name=f"p{number}", inputs=inputs) for number in range(3)]
    return program(views_of_plan(pools), stack="s", environment="s", team=None, production=None)


def test_a_block_is_spelt_once_with_all_that_is_in_it() -> None:
    inputs = [{"node_config": _disk(100, "pd-ssd")}, {"node_config": {**_disk(100, "pd-ssd"), "spot": True}}]
    first, second = (Declared(type=NODE_POOL, name="p", inputs=each).planned("s").inputs for each in inputs)

    assert first["nodeConfig"] == {"bootDisk": {"sizeGb": 100, "diskType": "pd-ssd"}}
    assert second["nodeConfig"] == {**first["nodeConfig"], "spot": True}
    assert second["nodeConfig"]["bootDisk"] is first["nodeConfig"]["bootDisk"]
    assert _disk(200, "pd-ssd")["boot_disk"]["size_gb"] == 200


def test_nobody_changes_a_block_and_a_copy_is_one_resource_s_own() -> None:
    block = _disk(100, "pd-ssd")
    with pytest.raises(TypeError, match="kms_key is in a block that resources share"):
        block["kms_key"] = "k"

    for each in (copy.deepcopy(block), copy.copy(block), pickle.loads(pickle.dumps(block))):  # noqa: S301 # our own
        assert each == block
        assert type(each) is dict


@pytest.mark.parametrize("config", [CONFIG, *WRONG.values()], ids=["nothing", *WRONG])
def test_the_rules_find_in_shared_blocks_what_they_find_in_others(config: dict[str, Any]) -> None:
    found = [evaluate(_program(config, shares)) for shares in (0, 1, 2)]

    assert found[1] == found[0]
    assert found[2] == found[0]
    if config is not CONFIG:
        assert len(found[0]) >= len(evaluate(_program(CONFIG, 0))) + 3  # at each of the three pools


@pytest.mark.parametrize("config", [CONFIG, *WRONG.values()], ids=["nothing", *WRONG])
def test_a_view_reads_a_shared_block_as_it_reads_others(config: dict[str, Any]) -> None:
    plain, alike = ([view.values() for view in _program(config, shares).all(NodePoolView)] for shares in (0, 1))

    assert alike == plain
