"""Write the fields and enums of Kueue's kinds, as defined by its CRDs: ``python -m tools.kueue_kinds FOLDER``."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import yaml

TARGET = Path(__file__).parents[1] / "kueue_model" / "kinds.schema.json"
KINDS = ("ClusterQueue", "Cohort", "LocalQueue", "ResourceFlavor", "WorkloadPriorityClass")
_ALWAYS = {"apiVersion", "kind", "metadata", "status"}


def kinds(folder: Path) -> str:
    """Return the table, which has ``fields``, ``items``, ``enum`` or ``type`` for each kind and version."""
    table: dict[str, dict[str, Any]] = {}
    for file in sorted(folder.glob("*.yaml")):
        for definition in yaml.safe_load_all(file.read_text(encoding="utf-8")):
            kind = definition["spec"]["names"]["kind"]
            if kind in KINDS:
                versions = definition["spec"]["versions"]
                table[kind] = {row["name"]: _shape(row["schema"]["openAPIV3Schema"], _ALWAYS) for row in versions}
    rows = [f'"{kind} {version}": {json.dumps(shape, sort_keys=True)}'
            for kind, versions in sorted(table.items()) for version, shape in sorted(versions.items())]  # fmt: skip
    return "{\n" + ",\n".join(rows) + "\n}\n"


def _shape(schema: dict[str, Any], left_out: set[str] | frozenset[str] = frozenset()) -> dict[str, Any]:
    if "enum" in schema:
        return {"enum": schema["enum"]}
    if "items" in schema:
        return {"items": _shape(schema["items"])}
    if "properties" in schema:
        fields = {name: _shape(field) for name, field in schema["properties"].items() if name not in left_out}
        required = [name for name in schema.get("required", ()) if name in fields]
        return {"fields": fields, "required": required} if required else {"fields": fields}
    if schema.get("type") == "string":
        return {"type": "string"}
    return {}


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    TARGET.write_text(kinds(parser.parse_args().folder), encoding="utf-8")


if __name__ == "__main__":
    main()
