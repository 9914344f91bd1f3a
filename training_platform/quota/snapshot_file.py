"""A snapshot's file: its JSON Schema, generated from the model, and its first text."""

from __future__ import annotations

import math
from collections import defaultdict
from datetime import date
from typing import Any

from training_platform.catalog import ZONES
from training_platform.quota.ledger import ProjectLedger
from training_platform.quota.quota_ids import units
from training_platform.quota.snapshot import FOLDER
from training_platform.quota.snapshot_rows import OTHERS, SnapshotFile

SCHEMA_FILE = f"{FOLDER}/quotas.schema.json"
SCHEMA_LINE = "# yaml-language-server: $schema=./quotas.schema.json"

_HEAD = f"""\
{SCHEMA_LINE}
# Written without looking at Google Cloud: the amounts that the stacks need, and not the limits that the project has.
# `training-platform quota pull` writes its limits in their place.
"""
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


def snapshot_text(ledger: ProjectLedger, today: date) -> str:
    """Return a snapshot in which every stack of the project fits."""
    services: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for line in ledger.lines:
        key = line.key
        place = {"zone" if key.location in ZONES else "region": key.location} if key.location else {}
        fields = {"limit": str(math.ceil(line.used)), **place, **dict(key.dimensions)}
        row = ", ".join(f"{name}: {value}" for name, value in fields.items())
        services[key.service][key.quota_id].append(f"      - {{{row}}}\n")
    text = f'{_HEAD}project: {ledger.project}\ntaken: "{today}"\nlimits:\n'
    for service, ids in sorted(services.items()):
        text += f"  {service}:\n"
        for quota_id, rows in sorted(ids.items()):
            text += f"    {quota_id}:\n{''.join(sorted(rows))}"
    return text
