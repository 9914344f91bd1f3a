"""The models of stack files as what Pulumi's analyzer derives a package's schema from: classes with plain annotations.

The analyzer knows no Literal, no union and no pydantic model. What is one of several kinds is ``Any`` there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NotRequired, TypeVar

from pydantic import BaseModel

Args = TypeVar("Args", bound=type)
# Of a cluster, what is inside it: objects of Kubernetes, which an environment stack makes. One that exists is not made.
LEFT_OUT: Mapping[str, tuple[str, ...]] = {"ClusterSpec": ("compute_classes", "existing", "notebooks", "software")}
_PLAIN = {"string": str, "integer": int, "number": float, "boolean": bool}
_REF = "#/$defs/"
_MOST_NAMES = 12
# By the name of a model: its class, and what is said of each field by the field's name.
_CLASSES: dict[str, type] = {}
_DESCRIPTIONS: dict[str, dict[str, str]] = {}


def of_models(args: Args) -> Args:
    """Let the analyzer see a class for each model that a component's arguments name."""
    args.__annotations__ = {field: _analyzable(kind) for field, kind in args.__annotations__.items()}
    return args


def with_descriptions(schema: str) -> str:
    """Return a package's schema with what is said of models' fields: the analyzer finds only what sources say."""
    package = json.loads(schema)
    for token, definition in package["types"].items():
        descriptions = _DESCRIPTIONS[token.rpartition(":")[2]]
        for value, text in zip(definition["properties"].values(), descriptions.values(), strict=True):
            _describe(value, text)
    return json.dumps(package)


def _describe(value: dict[str, Any], text: str) -> None:
    """Say the same of a value and of what it holds, as the analyzer does."""
    value["description"] = text
    for held in ("items", "additionalProperties"):
        if held in value:
            _describe(value[held], text)


def _analyzable(kind: Any) -> Any:
    if not (isinstance(kind, type) and issubclass(kind, BaseModel)):
        return kind
    schema = kind.model_json_schema(ref_template=f"{_REF}{{model}}")
    return _class(kind.__name__, {**schema.get("$defs", {}), kind.__name__: schema})


def _class(name: str, definitions: Mapping[str, Any]) -> type:
    """Return the class of a model, whose attributes are its fields."""
    if name not in _CLASSES:
        definition = definitions[name]
        fields = {key: field for key, field in definition["properties"].items() if key not in LEFT_OUT.get(name, ())}
        kinds = {key: _kind(field, definitions) for key, field in fields.items()}
        required = definition.get("required", ())
        annotations = {key: kind if key in required else NotRequired[kind] for key, kind in kinds.items()}
        # A module without a file: the analyzer would parse a file anew for each field, and find nothing said there.
        body = {"__annotations__": annotations, "__doc__": definition["description"], "__module__": "stack files"}
        _CLASSES[name] = type(name, (), body)
        _DESCRIPTIONS[name] = {key: _description(field) for key, field in fields.items()}
    return _CLASSES[name]


def _kind(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Any:
    """Return a value's type as the analyzer takes it."""
    if "anyOf" in schema:
        kinds = {_kind(option, definitions) for option in schema["anyOf"] if option != {"type": "null"}}
        return kinds.pop() if len(kinds) == 1 else Any
    if "$ref" in schema:
        return _class(schema["$ref"].removeprefix(_REF), definitions)
    if schema.get("type") == "array":
        return list[_kind(schema["items"], definitions)]  # type: ignore[misc]
    if schema.get("type") == "object":
        values = [*schema.get("patternProperties", {}).values(), schema.get("additionalProperties")]
        return dict[str, _kind(values[0], definitions) if isinstance(values[0], Mapping) else Any]  # type: ignore[misc]
    return _PLAIN.get(schema.get("type", ""), Any)


def _description(schema: Mapping[str, Any]) -> str:
    listed = [str(choice) for choice in _choices(schema)]
    choices = f" One of {', '.join(listed)}." if 0 < len(listed) <= _MOST_NAMES else ""
    return f"{schema.get('description', '')}{choices}".strip()


def _choices(schema: Mapping[str, Any]) -> Iterator[Any]:
    for part in (schema, *schema.get("anyOf", ())):
        yield from part.get("enum", ())
