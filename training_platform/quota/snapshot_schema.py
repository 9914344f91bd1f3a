"""The JSON Schema of a snapshot, for editors: generated from the model, never edited."""

from __future__ import annotations

from typing import Any

from training_platform.quota.quota_ids import units
from training_platform.quota.snapshot import FOLDER
from training_platform.quota.snapshot_rows import OTHERS, SnapshotFile

SCHEMA_FILE = f"{FOLDER}/quotas.schema.json"
SCHEMA_LINE = "# yaml-language-server: $schema=./quotas.schema.json"

_MEANINGS = {
    "region": f"The region that the limit is for; {OTHERS}: every one that no other row names.",
    "zone": f"The zone that the limit is for; {OTHERS}: every one that no other row names.",
    "unit": "What one counts; the catalogue knows it, and a check holds this against it.",
}


def snapshot_schema() -> dict[str, Any]:
    """Return the schema of ``stacks/quotas/<project>.yaml``."""
    schema = SnapshotFile.model_json_schema()
    row = schema["$defs"]["Limit"]["properties"]
    for name in ("region", "zone", "unit"):  # left out or said: the model refuses an empty one
        row[name] = {"type": "string", "minLength": 1, "description": _MEANINGS[name]}
    row["unit"]["enum"] = sorted(units())
    limits = schema["properties"]["limits"]
    for mapping in (limits, *limits["patternProperties"].values()):
        mapping["additionalProperties"] = False
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "Limits of a project"}
