"""The spelling of inputs on the wire: the table of maps as the provider has them, and inputs as Pulumi sends them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args, get_origin

import pulumi
import pytest
from google.protobuf.json_format import MessageToDict
from pulumi import _types
from pulumi.runtime.rpc import serialize_properties

from tools.documents.google import arguments
from tools.documents.map_inputs import map_paths, write_map_inputs
from training_platform.resources import spelling
from training_platform.resources.api_fields import body_of, leaves, paths
from training_platform.resources.resource_types import NAMESPACE, NODE_POOL, RESOURCE_TYPES, SERVICE
from training_platform.resources.spelling import map_inputs, wire_inputs

GOOGLE_TYPES = sorted(token for token in RESOURCE_TYPES if token.startswith("gcp:"))


def test_the_table_is_that_of_the_installed_provider(tmp_path: Path) -> None:
    written = tmp_path / "map_inputs.yaml"
    write_map_inputs(written, paths()["types"])

    assert written.read_text(encoding="utf-8") == spelling.FILE.read_text(encoding="utf-8"), "run make documents"


@pytest.mark.parametrize("resource_type", GOOGLE_TYPES)
def test_every_input_of_a_type_is_spelt_as_pulumi_sends_it(resource_type: str) -> None:
    args = arguments(resource_type)
    inputs = block_with_every_input(args)

    assert wire_inputs(resource_type, inputs) == sent_by_pulumi(args, inputs)


def block_with_every_input(args: type) -> dict[str, Any]:
    """Return a value for every input of a class of arguments, in lists and blocks too."""
    kinds = _types.input_type_types(args)
    return {name: value_of(kinds[wire]) for name, wire in _types.input_type_py_to_pulumi_names(args).items()}


def value_of(kind: Any) -> Any:
    kind = _types.unwrap_type(kind)
    if get_origin(kind) is Sequence:
        return [value_of(get_args(kind)[0])]
    if get_origin(kind) is Mapping:
        return {"a_user_s_key": "value"}
    if _types.is_input_type(kind):
        return block_with_every_input(kind)
    return "value"


def sent_by_pulumi(args: type, inputs: dict[str, Any]) -> dict[str, Any]:
    return MessageToDict(asyncio.run(serialize_properties(inputs, {}, typ=args)))


def test_an_entry_of_a_list_in_place_of_a_map_has_its_key_as_an_input() -> None:
    inputs = {"cleanupPolicies": [{"action": "KEEP", "id": "recent"}]}

    assert body_of(leaves("gcp:artifactregistry/repository:Repository", inputs)) == {
        "cleanupPolicies": {"recent": {"action": "KEEP"}}
    }


def test_a_kubernetes_object_keeps_its_spelling_but_loses_none() -> None:
    metadata = {"labels": {"a_key": "value"}, "some_name": None, "finalizers": ("first_one",)}

    assert wire_inputs(NAMESPACE, {"metadata": metadata}) == {
        "metadata": {"labels": {"a_key": "value"}, "finalizers": ["first_one"]}
    }


@pytest.mark.parametrize("resource_type", [NODE_POOL, NAMESPACE])
def test_every_value_goes_through_leaf(resource_type: str) -> None:
    inputs = {"name": 1, "labels": {"team": 2}, "items": [3, {"name": 4}], "unset": None}

    assert wire_inputs(resource_type, inputs, lambda number: number * 10) == {
        "name": 10, "labels": {"team": 20}, "items": [30, {"name": 40}],
    }  # fmt: skip


def test_a_type_without_maps_has_none() -> None:
    assert map_inputs(SERVICE) == frozenset()
    assert wire_inputs(SERVICE, {"disable_on_destroy": False}) == {"disableOnDestroy": False}


@pulumi.input_type
class Odd:
    """A block with an input whose name on the wire has no rule."""

    @property
    @pulumi.getter(name="fqdnOfIt")
    def name(self) -> pulumi.Input[str]:
        raise NotImplementedError


@pulumi.input_type
class Plain:
    """A block that is the value of another's map."""

    @property
    @pulumi.getter
    def name(self) -> pulumi.Input[str]:
        raise NotImplementedError


@pulumi.input_type
class MapOfBlocks:
    """A block with a map whose values are blocks."""

    @property
    @pulumi.getter
    def blocks(self) -> pulumi.Input[Mapping[str, pulumi.Input[Plain]]]:
        raise NotImplementedError


@pulumi.input_type
class Endless:
    """A block inside itself."""

    @property
    @pulumi.getter
    def inner(self) -> pulumi.Input[Sequence[pulumi.Input[Endless]]]:
        raise NotImplementedError


@pytest.mark.parametrize(
    ("block", "problem"),
    [
        (Odd, "Odd.name is fqdnOfIt in requests, not name"),
        (MapOfBlocks, "MapOfBlocks.blocks is a map of blocks"),
        (Endless, "Endless contains itself"),
    ],
)
def test_what_the_table_cannot_express_is_refused(block: type, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        list(map_paths(block))
