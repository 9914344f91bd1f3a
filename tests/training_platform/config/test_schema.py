"""The schema alone teaches a stack file: an editor shows nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from training_platform.catalog import ACCELERATORS, CHARTS, DISK_TYPES, FILESTORE_TIERS, MACHINE_TYPES, REGIONS
from training_platform.config.model.environment import Environment
from training_platform.config.model.team import Team
from training_platform.config.schema import stack_schema

SCHEMA = stack_schema()
OPEN = {
    "labels",
    "taints",
    "dimensions",
    "shares",
}  # maps whose keys have no form, or one that their values' rules know
ODD = re.compile(r"\bis no\b|\bhad\b|\bmade\b|\bby itself alone\b|\bhow much room\b")


def objects(schema: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every object of the schema, at every level, with where it stands."""
    if isinstance(schema, dict):
        if schema.get("type") == "object":
            yield path, schema
        for key, value in schema.items():
            yield from objects(value, f"{path}/{key}")
    elif isinstance(schema, list):
        for index, value in enumerate(schema):
            yield from objects(value, f"{path}/{index}")


FIELDS = {
    f"{path}/{name}": (value, field in found.get("required", ()))
    for path, found in objects(SCHEMA)
    for name, value in found.get("properties", {}).items()
    for field in [name]
}


@pytest.mark.parametrize("field", FIELDS)
def test_a_field_says_what_it_is(field: str) -> None:
    described = FIELDS[field][0]
    if field.startswith("/properties/config/training-platform:"):  # a section, which its own definition describes
        described = SCHEMA["$defs"][described["$ref"].rpartition("/")[2]]

    text = described.get("description", "")
    assert text.endswith(".")
    assert not ODD.search(text)


@pytest.mark.parametrize("field", FIELDS)
def test_a_value_of_a_form_has_an_example(field: str) -> None:
    text = json.dumps(FIELDS[field][0])

    assert '"pattern"' not in text or '"examples"' in text


@pytest.mark.parametrize("field", [field for field in FIELDS if field.startswith("/$defs/")])
def test_a_field_that_may_be_left_out_says_what_holds_then(field: str) -> None:
    described, required = FIELDS[field]

    assert required != ("default" in described)


def test_no_object_takes_a_key_that_means_nothing() -> None:
    for path, found in objects(SCHEMA):
        assert "additionalProperties" in found, path
        rest = found["additionalProperties"]
        assert rest is False or (isinstance(rest, dict) and "properties" not in found), path


@pytest.mark.parametrize(
    ("definition", "field", "names"),
    [
        ("NodePoolSpec", "machine_type", {name for name, row in MACHINE_TYPES.items() if row.kind != "cpu"}),
        ("BootDiskSpec", "type", set(DISK_TYPES)),
        ("FilestoreSpec", "tier", set(FILESTORE_TIERS)),
        ("FilestoreSpec", "location", {"us-central1", "us-central1-a"}),
        ("BucketSpec", "location", set(REGIONS)),
        ("NodePoolSpec", "accelerator", {row.name for row in ACCELERATORS.values() if row.attachment}),
    ],
)
def test_names_of_the_catalogue_are_offered(definition: str, field: str, names: set[str]) -> None:
    described = SCHEMA["$defs"][definition]["properties"][field]
    offered = {name for part in (described, *described.get("anyOf", ())) for name in part.get("enum", ())}

    assert names <= offered


def test_charts_are_offered_as_keys() -> None:
    assert SCHEMA["$defs"]["Environment"]["properties"]["charts"]["propertyNames"]["enum"] == sorted(CHARTS)


@pytest.mark.parametrize("model", [Environment, Team])
def test_the_schema_offers_every_field_of_a_section(model: type[Environment] | type[Team]) -> None:
    assert SCHEMA["$defs"][model.__name__]["properties"].keys() == model.model_fields.keys()
