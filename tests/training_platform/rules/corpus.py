"""Configurations that their owners deploy, from ``accepted/``: only their field values, under names of ours.

Of all that were read and refused by no rule, those are kept that run a branch of a rule, or have an input of a resource
of Google Cloud, that no other has.

``<unknown>`` stands for what only a deployment tells. An entry has ``resources`` as a program registers them, or the
``body`` of a request to a collection of Google's APIs.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from training_platform.config.reading.finding import Finding
from training_platform.resources.stack_resource import UNKNOWN, StackResource
from training_platform.rules import View, evaluate, program, view_rules, views_of_plan
from training_platform.views.adapters import views_of_rest

FOLDER = Path(__file__).with_name("accepted")
PROJECT = "example-train"
Entry = Mapping[str, Any]


def load(path: Path) -> Any:
    """Return what a YAML file holds."""
    return yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)  # the safe loader, in C


@cache
def accepted() -> dict[str, Entry]:
    """Return the configurations by file and place in it, ``node_pools-3``."""
    files = sorted(path for path in FOLDER.glob("*.yaml") if path.stem != "sources")
    return {f"{path.stem}-{place}": entry for path in files for place, entry in enumerate(load(path), 1)}


def planned(entry: Entry) -> list[StackResource]:
    """Return the resources of a configuration as the engine would register them."""
    return [
        StackResource(
            stack="foreign", type=row["type"], name=name, inputs=as_registered(row["inputs"]),
            options={key: tuple(value) for key, value in row.get("options", {}).items()},
        )
        for name, row in entry["resources"].items()
    ]  # fmt: skip


def as_registered(value: Any) -> Any:
    """Return a value as it comes over the wire: numbers as floats, what is not known yet as ``UNKNOWN``."""
    if value == "<unknown>":
        return UNKNOWN
    if isinstance(value, dict):
        return {key: as_registered(part) for key, part in value.items()}
    if isinstance(value, list):
        return [as_registered(part) for part in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def judged(entry: Entry) -> list[Finding]:
    """Return what all rules but those of the house find in a configuration."""
    whole = program(_views(entry), stack="foreign", environment="foreign", team=None, production=None)
    return evaluate(whole, [rule for rule in view_rules() if rule.owner != "house"])


def _views(entry: Entry) -> list[View]:
    if "resources" in entry:
        return views_of_plan(planned(entry))
    return views_of_rest(entry["collection"], entry["body"], project=PROJECT, name=entry["of"])
