"""The JSON Schema of ``stacks/exemptions.yaml``, for editors: generated from the model, never edited."""

from __future__ import annotations

from typing import Any

from training_platform.rules.exemptions import EXEMPTIBLE, ExemptionsFile

SCHEMA_FILE = "stacks/exemptions.schema.json"


def exemptions_schema() -> dict[str, Any]:
    """Return the schema; an editor offers the rules that can be exempt."""
    schema = ExemptionsFile.model_json_schema()
    exemption = schema["$defs"]["Exemption"]
    exemption["properties"]["rule"]["enum"] = sorted(EXEMPTIBLE)
    exemption["oneOf"] = [{"required": ["path"]}, {"required": ["resource"]}]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "Exemptions"}
