"""Write the ports on which an API server calls the pods of the platform's charts: ``python -m tools.charts FOLDER``.

The folder contains the output of ``helm template NAME CHART`` for the charts of the catalogue, at the catalogue's
versions: ``kueue.yaml``, ``jobset.yaml``. The row of a chart that is not in the folder stays unchanged.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from training_platform.catalog import CHART_PORTS, CHARTS

TARGET = Path(__file__).parents[1] / "training_platform" / "catalog" / "data" / "chart-ports.yaml"
HEADER = """\
# Ports of pods that the API server calls: admission webhooks, conversions, aggregated APIs. Written by
# `python -m tools.charts` from the charts as Helm renders them with their own values.
"""
_WEBHOOKS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")


def main() -> None:
    """Write the row of each chart that is in the folder, and keep the others."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    rows = {name: {"ports": list(row.ports), "source": row.source} for name, row in CHART_PORTS.items()}
    for file in sorted(folder.glob("*.yaml")):
        objects = [document for document in yaml.safe_load_all(file.read_text(encoding="utf-8")) if document]
        rows[file.stem] = {"ports": called_ports(objects), "source": f"{CHARTS[file.stem].source}, rendered by Helm"}
    lines = []
    for name, row in sorted(rows.items()):
        lines.append(f"  {name}: {{ports: {row['ports']}, source: {json.dumps(row['source'])}}}")
    TARGET.write_text(HEADER + "chart_ports:\n" + "\n".join(lines) + "\n", encoding="utf-8")


def called_ports(objects: Iterable[Mapping[str, Any]]) -> list[int]:
    """Return the ports of the pods behind the Services to which webhooks, conversions and APIServices refer.

    Raises KeyError for a Service that is not among the objects.
    """
    objects = list(objects)
    services = {row["metadata"]["name"]: row["spec"] for row in objects if row.get("kind") == "Service"}
    names = _container_ports(objects)
    ports = set()
    for reference in _references(objects):
        for port in services[reference["name"]]["ports"]:
            if port["port"] == reference.get("port", 443):
                target = port.get("targetPort", port["port"])
                ports.add(names[target] if isinstance(target, str) else target)
    return sorted(ports)


def _references(objects: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Yield the Services that the API server calls, each with its name and port."""
    for row in objects:
        kind = row.get("kind")
        spec = row.get("spec") or {}
        if kind == "APIService" and spec.get("service"):
            yield spec["service"]
        elif kind == "CustomResourceDefinition":
            conversion = (spec.get("conversion") or {}).get("webhook")
            if conversion:
                yield conversion["clientConfig"]["service"]
        elif kind in _WEBHOOKS:
            for webhook in row.get("webhooks") or ():
                yield webhook["clientConfig"]["service"]


def _container_ports(objects: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Return the named ports of all containers, keyed by name."""
    ports = {}
    for row in objects:
        pod = ((row.get("spec") or {}).get("template") or {}).get("spec") or {}
        for container in pod.get("containers", ()):
            for port in container.get("ports", ()):
                if "name" in port:
                    ports[port["name"]] = port["containerPort"]
    return ports


if __name__ == "__main__":
    main()
