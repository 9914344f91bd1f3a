"""The table of fields that force a replacement, held equal to the schema of the provider's plugin on PATH."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.places import ORGANISATION
from training_platform.catalog import replacements

PLANNED = sorted(
    {
        each
        for path in (ORGANISATION / "inventories").glob("*.yaml")
        for each in yaml.safe_load(path.read_text(encoding="utf-8"))["counts"]
        if each.startswith("gcp:")
    }
    | {each for each in replacements.types() if each.startswith("gcp:")}
)


@pytest.fixture(scope="session")
def schema(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the plugin's schema."""
    plugin = shutil.which("pulumi-resource-gcp")
    assert plugin is not None
    home = tmp_path_factory.mktemp("home")
    command = ["pulumi", "package", "get-schema", plugin]
    environment = {**os.environ, "PULUMI_HOME": str(home), "PULUMI_SKIP_UPDATE_CHECK": "true"}
    done = subprocess.run(command, env=environment, check=True, capture_output=True, cwd=home)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.engine
@pytest.mark.timeout(180)
@pytest.mark.parametrize("kind", PLANNED)
def test_the_table_has_the_fields_that_the_schema_marks(schema: dict[str, Any], kind: str) -> None:
    marked = set(_marked(schema, schema["resources"][kind]["inputProperties"], ""))

    assert replacements.known(kind)
    assert replacements.fields(kind, sometimes=False) == {each for each in marked if not each.startswith("nodePools[")}


def _marked(schema: dict[str, Any], properties: dict[str, Any], prefix: str) -> Iterator[str]:
    """Yield the paths of marked properties, as the table writes them."""
    for name, found in properties.items():
        path = f"{prefix}{name}"
        if found.get("willReplaceOnChanges"):
            yield f"{path}.*" if "additionalProperties" in found else path
        inner = found.get("items", found)
        if reference := inner.get("$ref", "").removeprefix("#/types/"):
            below = schema["types"].get(reference, {}).get("properties", {})
            yield from _marked(schema, below, f"{path}[*]." if "items" in found else f"{path}.")
