"""The JSON Schema of a stack file, for editors: generated from the model, never edited."""

from __future__ import annotations

from typing import Any

from pydantic.json_schema import models_json_schema

from training_platform.config.spec.stack import ENGINE_KEYS, SECTIONS

SCHEMA_FILE = "stacks/stack.schema.json"
_REFS = "#/$defs/{model}"


def stack_schema() -> dict[str, Any]:
    """Return the schema: Pulumi's own keys, and exactly one of the project's sections under ``config``."""
    references, definitions = models_json_schema(
        [(model, "validation") for model in SECTIONS.values()], ref_template=_REFS
    )
    properties = {key: references[(model, "validation")] for key, model in SECTIONS.items()}
    secure = {"type": "object", "properties": {"secure": {"type": "string"}}, "required": ["secure"]}
    config = {
        "type": "object",
        "properties": properties,
        "patternProperties": {"^(?!training-platform:)[A-Za-z0-9_-]+:.+$": {"anyOf": [{}, secure]}},
        "additionalProperties": False,
        "oneOf": [{"required": [key]} for key in SECTIONS],
    }
    texts = {key: {"type": "string"} for key in ENGINE_KEYS if key != "config"}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A stack of training-platform",
        "type": "object",
        "properties": {"config": config, **texts},
        "required": ["config"],
        "additionalProperties": False,
        "$defs": definitions["$defs"],
    }
