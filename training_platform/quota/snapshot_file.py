"""A snapshot's file: its JSON Schema, generated from the model, and its first text."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from datetime import date
from typing import Any

from training_platform.catalog import ZONES
from training_platform.quota.keys import QuotaKey
from training_platform.quota.quota_ids import units
from training_platform.quota.snapshot import FOLDER, Snapshot
from training_platform.quota.snapshot_rows import OTHERS, SnapshotFile

SCHEMA_FILE = f"{FOLDER}/quotas.schema.json"
SCHEMA_LINE = "# yaml-language-server: $schema=./quotas.schema.json"

_HEAD = f"""\
{SCHEMA_LINE}
# Written without looking at Google Cloud: what stacks and jobs need, and not the limits that the project has.
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
    for name, place in (("region", "us-central1"), ("zone", "us-central1-a")):
        row[name]["examples"] = [place]
    row["unit"]["enum"] = sorted(units())
    limits = schema["properties"]["limits"]
    for mapping in (limits, *limits["patternProperties"].values()):
        mapping["additionalProperties"] = False
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "Limits of a project"}


def is_first(text: str) -> bool:
    """Whether a snapshot's text is what stacks and jobs need, and no limits of Google Cloud."""
    return text.startswith(_HEAD)


def snapshot_text(project: str, needs: Mapping[QuotaKey, float], today: date, kept: Snapshot | None = None) -> str:
    """Return a snapshot of what is needed of each quota; a limit that ``kept`` has stays as it is there."""
    services: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for service, ids in kept.limits.items() if kept else ():
        for quota_id, rows in ids.items():
            services[service][quota_id] = [_row(row.model_dump(exclude_none=True)) for row in rows]
    for key, amount in needs.items():
        if kept is None or kept.limit(key) is None:
            place = {"zone" if key.location in ZONES else "region": key.location} if key.location else {}
            fields = {"limit": math.ceil(amount), **place, **dict(key.dimensions)}
            services[key.service][key.quota_id].append(_row(fields))
    text = f'{_HEAD}project: {project}\ntaken: "{today}"\nlimits:\n'
    for service, quotas in sorted(services.items()):
        text += f"  {service}:\n"
        for quota_id, lines in sorted(quotas.items()):
            text += f"    {quota_id}:\n{''.join(sorted(lines))}"
    return text


def _row(fields: Mapping[str, object]) -> str:
    return f"      - {{{', '.join(f'{name}: {value}' for name, value in fields.items())}}}\n"
