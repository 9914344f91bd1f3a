"""Names of inputs, and which of them are maps, held against pulumi_gcp for every type that components register."""

from __future__ import annotations

import ast
import copy
import importlib
import inspect
import pickle
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pulumi
import pytest

from training_platform.resources import gcp
from training_platform.resources.declared import MAP_FIELDS, Declared, camel_case, shared
from training_platform.resources.planned import UNKNOWN, Planned, Shared
from training_platform.resources.register import NODE_POOL
from training_platform.rules import Program, evaluate, program, views_of_plan
from training_platform.views.node_pool import NodePoolView

RESOURCES = Path(__file__).resolve().parents[3] / "training_platform" / "resources"
_BLOCK = re.compile(r"'?(\w+ArgsDict)'?")


class Kind(NamedTuple):
    """A type of resource: the provider's module and class, and the inputs that we say."""

    service: str
    provider: type[pulumi.CustomResource]
    inputs: frozenset[str]


def kinds() -> dict[str, Kind]:
    """Return every function of ``resources/gcp.py`` by its name."""
    tree = ast.parse(Path(gcp.__file__).read_text(encoding="utf-8"))
    packages = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module == "pulumi_gcp")
    services = {each.asname or each.name: each.name for node in packages for each in node.names}
    said = inputs_said()
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and ast.unparse(node.value).startswith("_taken_by("):
            assert isinstance(node.value, ast.Call)
            name, taken = ast.unparse(node.targets[0]), ast.unparse(node.value.args[0])
            module, kind, _ = taken.split(".")
            service = importlib.import_module(f"pulumi_gcp.{services[module]}")
            found[name] = Kind(services[module], getattr(service, kind), said.pop(name))
    assert not said, "not in gcp.py"
    return found


def inputs_said() -> dict[str, frozenset[str]]:
    """Return the names of inputs that stand in calls of ``gcp.{name}``, by that name."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in sorted(RESOURCES.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("gcp."):
                found[ast.unparse(node.func).removeprefix("gcp.")] |= {str(each.arg) for each in node.keywords}
    return {name: frozenset(inputs) for name, inputs in found.items()}


KINDS = kinds()


def test_every_kind_is_looked_at() -> None:
    assert len(KINDS) >= 34


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_every_input_is_one_of_the_provider(kind: Kind) -> None:
    known = set(inspect.signature(kind.provider._internal_init).parameters)  # type: ignore[attr-defined]

    assert kind.inputs <= known


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_names_and_maps_are_those_of_the_provider(kind: Kind) -> None:
    module = importlib.import_module(f"pulumi_gcp.{kind.service}")
    taken = inspect.signature(kind.provider._internal_init).parameters  # type: ignore[attr-defined]
    inputs = {name: taken[name].annotation for name in kind.inputs}
    for name, annotation in inputs.items():
        assert_as_it_is(name, annotation)
        assert camel_case(name) == wire_name(kind.provider, name), name
    for block in blocks(module, str(list(inputs.values()))):
        typed = getattr(module, block.removesuffix("Dict"))
        for name, annotation in getattr(module, block).__annotations__.items():
            assert_as_it_is(name, annotation)
            assert camel_case(name) == wire_name(typed, name), f"{block}.{name}"


def blocks(module: ModuleType, text: str, seen: set[str] | None = None) -> Iterator[str]:
    """Yield the provider's dictionaries that annotations name, and those that these name."""
    seen = set() if seen is None else seen
    for block in _BLOCK.findall(text):
        if block not in seen and hasattr(module, block):
            seen.add(block)
            yield block
            yield from blocks(module, str(getattr(module, block).__annotations__), seen)


def assert_as_it_is(name: str, annotation: Any) -> None:
    """Assert that a map is listed as one, and that no block is."""
    if "Mapping[" in str(annotation):
        assert name in MAP_FIELDS
    if "ArgsDict" in str(annotation):
        assert name not in MAP_FIELDS


def wire_name(typed: type, name: str) -> str:
    getter = getattr(typed, name).fget
    return str(getattr(getter, "_pulumi_name", name))


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
