"""Inputs of ours, and the table of fields that force a replacement, held to the schema of the plugin on PATH.

The plugin may be of another line than the SDK that is pinned, whose classes the type checker holds the inputs to.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import yaml

from tests.support.places import ORGANISATION
from tests.support.plans import planned_stacks
from training_platform.config.workspace import read_workspace
from training_platform.resources import resource_types

PLANNED = sorted(
    {
        token
        for path in (ORGANISATION / "inventories").glob("*.yaml")
        for token in yaml.safe_load(path.read_text(encoding="utf-8"))["counts"]
        if token.startswith("gcp:")
    }
    | {token for token, row in resource_types.RESOURCE_TYPES.items() if token.startswith("gcp:") and row.replacing}
)


@pytest.fixture(scope="session")
def schema(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the plugin's schema; skip if it was built without one, as from a checkout that did not generate it."""
    plugin = shutil.which("pulumi-resource-gcp")
    assert plugin is not None
    home = tmp_path_factory.mktemp("home")
    command = ["pulumi", "package", "get-schema", plugin]
    environment = {**os.environ, "PULUMI_HOME": str(home), "PULUMI_SKIP_UPDATE_CHECK": "true"}
    done = subprocess.run(command, env=environment, check=False, capture_output=True, text=True, cwd=home)
    schema: dict[str, Any] = json.loads(done.stdout) if done.returncode == 0 else {}
    if not schema.get("resources"):
        pytest.skip(f"{plugin} carries no schema: {done.stderr.strip() or 'it lists no resources'}")
    return schema


@pytest.mark.engine
@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", PLANNED)
def test_the_table_has_the_fields_that_the_schema_marks(schema: dict[str, Any], kind: str) -> None:
    marked = set(_marked(schema, schema["resources"][kind]["inputProperties"], ""))

    assert resource_types.has_known_replacements(kind)
    assert resource_types.replacing_inputs(kind, sometimes=False) == {
        path for path in marked if not path.startswith("nodePools[")
    }


@pytest.mark.engine
@pytest.mark.timeout(300)
def test_the_plugin_knows_every_input_that_stacks_register(schema: dict[str, Any]) -> None:
    workspace = read_workspace(ORGANISATION)
    planned = [
        resource
        for _, plan in planned_stacks(workspace, list(workspace.stacks.values()))
        for resource in plan.resources
    ]
    ours = [resource for resource in planned if resource.type.startswith("gcp:")]

    assert {resource.type for resource in ours} <= {*PLANNED}
    assert {
        f"{resource.type} {path}"
        for resource in ours
        for path in _unknown(schema, resource.inputs, schema["resources"][resource.type]["inputProperties"])
    } == set()


def _unknown(schema: dict[str, Any], inputs: Mapping[str, Any], properties: dict[str, Any]) -> Iterator[str]:
    """Yield the inputs that are not among the properties of their block."""
    for name, value in inputs.items():
        if name not in properties:
            yield name
            continue
        schema_of_input = properties[name]
        reference = schema_of_input.get("items", schema_of_input).get("$ref", "")
        below = schema["types"].get(reference.removeprefix("#/types/"), {})
        blocks = value if isinstance(value, list) else [value]
        for block in blocks:
            if isinstance(block, dict) and "properties" in below:
                yield from (f"{name}.{path}" for path in _unknown(schema, block, below["properties"]))


def _marked(schema: dict[str, Any], properties: dict[str, Any], prefix: str) -> Iterator[str]:
    """Yield the paths of marked properties, as the table writes them."""
    for name, schema_of_property in properties.items():
        path = f"{prefix}{name}"
        if schema_of_property.get("willReplaceOnChanges"):
            yield f"{path}.*" if "additionalProperties" in schema_of_property else path
        inner = schema_of_property.get("items", schema_of_property)
        if reference := inner.get("$ref", "").removeprefix("#/types/"):
            below = schema["types"].get(reference, {}).get("properties", {})
            yield from _marked(schema, below, f"{path}[*]." if "items" in schema_of_property else f"{path}.")
