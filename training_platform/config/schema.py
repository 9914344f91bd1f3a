"""The JSON Schema of a stack file, for editors, generated from the model."""

from __future__ import annotations

from typing import Any

from pydantic.json_schema import models_json_schema

from training_platform.config.model.stack import ENVIRONMENT_NAME, ENVIRONMENTS, SECTIONS
from training_platform.config.reading.section import Section

_DRAFT = "https://json-schema.org/draft/2020-12/schema"
SCHEMA_FILE = "stacks/stack.schema.json"
_REFS = "#/$defs/{model}"
_ENGINE = {
    "encryptionsalt": "salt of the passphrase that encrypts secrets",
    "encryptedkey": "the key that encrypts secrets, itself encrypted",
    "secretsprovider": "what encrypts secrets",
}


def stack_schema() -> dict[str, Any]:
    """Return the schema: Pulumi's own keys, and exactly one of the project's sections under ``config``."""
    references, definitions = models_json_schema(
        [(model, "validation") for model in SECTIONS.values()], ref_template=_REFS
    )
    properties = {key: references[(model, "validation")] for key, model in SECTIONS.items()}
    secure = {
        "type": "object",
        "properties": {"secure": {"type": "string", "description": "The encrypted value, as Pulumi writes it."}},
        "required": ["secure"],
        "additionalProperties": False,
    }
    config = {
        "type": "object",
        "description": "Configuration: one section of this project, and settings of providers, such as gcp:project.",
        "properties": properties,
        "patternProperties": {"^(?!training-platform:)[A-Za-z0-9_-]+:.+$": {"anyOf": [{}, secure]}},
        "additionalProperties": False,
        "oneOf": [{"required": [key]} for key in SECTIONS],
    }
    environments = {
        "type": "array",
        "items": {"type": "string", "pattern": ENVIRONMENT_NAME},
        "description": "Environments of Pulumi ESC, whose settings of providers and variables the engine adds.",
        "examples": [["platform/dev"]],
    }
    texts = {key: {"type": "string", "description": f"Written by Pulumi: {text}."} for key, text in _ENGINE.items()}
    return {
        "$schema": _DRAFT,
        "title": "A stack of training-platform",
        "type": "object",
        "properties": {"config": config, ENVIRONMENTS: environments, **texts},
        "required": ["config"],
        "additionalProperties": False,
        "$defs": _closed(definitions["$defs"]),
    }


def file_schema(model: type[Section], title: str) -> dict[str, Any]:
    """Return the schema of a file whose whole content is one model. Callers add to it in place."""
    return {"$schema": _DRAFT, **model.model_json_schema(), "title": title}


def _closed(schema: Any, *, names: bool = False) -> Any:
    """Return a schema without generated titles. Its objects refuse keys that match no pattern.

    With ``names``, the keys of the schema are names of fields, and one of them may be ``title``.
    """
    if isinstance(schema, list):
        return [_closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {
        key: _closed(value, names=key in ("properties", "patternProperties"))
        for key, value in schema.items()
        if names or key != "title"
    }
    return kept | ({"additionalProperties": False} if "patternProperties" in kept and not names else {})
