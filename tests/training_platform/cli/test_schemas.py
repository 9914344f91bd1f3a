import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from tests.support.places import ORGANISATION, ROOT
from training_platform.cli.stacks import schema_files

SNAPSHOTS = sorted((ORGANISATION / "stacks" / "quotas").glob("*.yaml"))
STACKS = sorted((ORGANISATION / "stacks").glob("Pulumi.*.yaml"))
FILES = schema_files()
SCHEMA, SNAPSHOT_SCHEMA, EXEMPTIONS_SCHEMA, _ = map(json.loads, FILES.values())


@pytest.mark.parametrize("name", FILES)
def test_the_generated_schema_is_current(name: str) -> None:
    samples = ROOT / name.partition("/")[0]
    if not any(samples.rglob("*.*")):
        pytest.skip(f"{samples.name}/ is empty: whoever fills it runs `make schema`")
    assert (ROOT / name).read_text(encoding="utf-8") == FILES[name], "run `make schema`"


@pytest.mark.parametrize("name", FILES)
def test_every_property_of_every_schema_is_described_and_every_object_closed(name: str) -> None:
    lacking = []
    for described in objects(json.loads(FILES[name])):
        fields = described.get("properties", {})
        lacking += [key for key, value in fields.items() if not ("description" in value or "$ref" in value)]
        if "additionalProperties" not in described:
            lacking.append(f"additionalProperties of {sorted(fields)}")

    assert lacking == []


def objects(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield every object that a schema describes, at every level."""
    if isinstance(schema, dict):
        if schema.get("type") == "object":
            yield schema
        for value in schema.values():
            yield from objects(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from objects(value)


@pytest.mark.parametrize("path", STACKS, ids=lambda path: path.stem)
def test_an_editor_takes_every_shipped_stack(path: Path) -> None:
    jsonschema.validate(yaml.safe_load(path.read_text(encoding="utf-8")), SCHEMA)


@pytest.mark.parametrize("path", SNAPSHOTS, ids=lambda path: path.stem)
def test_an_editor_takes_every_shipped_snapshot(path: Path) -> None:
    jsonschema.validate(yaml.safe_load(path.read_text(encoding="utf-8")), SNAPSHOT_SCHEMA)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("limit: 32", "limit: -2"),
        ("limit: 32", "limits: 32"),
        ("region: us-central2}", "region: null}"),
        ("region: us-central2}", "region: us-central2, unit: TB}"),
        ("compute.googleapis.com", "compute"),
        ("taken:", "read:"),
    ],
)
def test_an_editor_marks_what_a_snapshot_cannot_say(old: str, new: str) -> None:
    text = SNAPSHOTS[0].read_text(encoding="utf-8")
    assert old in text

    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(yaml.safe_load(text.replace(old, new, 1)), SNAPSHOT_SCHEMA)


def test_an_editor_knows_what_an_exemption_needs() -> None:
    entry = {"rule": "boot-disk-size", "stack": "prod", "path": "a", "reason": "b", "owner": "c@example.com"}
    validator = jsonschema.Draft202012Validator(EXEMPTIONS_SCHEMA)

    def takes(**changes: str | None) -> bool:
        fields = {key: value for key, value in {**entry, "expires": "2027-01-31", **changes}.items() if value}
        return bool(validator.is_valid({"exemptions": [fields]}))

    assert takes()
    assert takes(path=None, resource="a")
    assert not takes(resource="a")
    assert not takes(path=None)
    assert not takes(reason=None)
    assert not takes(rule="boot-disk")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("max_nodes: 8", "max_node: 8"),
        ("capacity: spot", "capacity: sport"),
        ("slices: 8", "slices: 0"),
        ("training-platform:environment", "training-platform:enviroment"),
        ("config:", "environment: {}\nconfig:"),
    ],
)
def test_an_editor_marks_what_the_model_refuses(old: str, new: str) -> None:
    text = (ORGANISATION / "stacks" / "Pulumi.prod.yaml").read_text(encoding="utf-8")
    assert old in text

    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(yaml.safe_load(text.replace(old, new, 1)), SCHEMA)
