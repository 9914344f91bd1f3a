import json
from pathlib import Path

import jsonschema
import pytest
import yaml

from checks.schemas import schema_files

ROOT = Path(__file__).parents[2]
STACKS = sorted((ROOT / "stacks").glob("Pulumi.*.yaml"))
SCHEMA = json.loads((ROOT / "stacks" / "stack.schema.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", schema_files())
def test_the_generated_schema_is_current(name: str) -> None:
    assert (ROOT / name).read_text(encoding="utf-8") == schema_files()[name], "run `make schema`"


def test_the_schema_is_one_itself() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("path", STACKS, ids=lambda path: path.stem)
def test_an_editor_takes_every_shipped_stack(path: Path) -> None:
    jsonschema.validate(yaml.safe_load(path.read_text(encoding="utf-8")), SCHEMA)


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
    text = (ROOT / "stacks" / "Pulumi.prod.yaml").read_text(encoding="utf-8")
    assert old in text

    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(yaml.safe_load(text.replace(old, new, 1)), SCHEMA)
