"""Violations as stack files say them: which field gives an input its value, and what ``check`` finds there.

The tables of the reach test tell which fields move an input in the plan; what none moves, no stack file can say.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Iterator
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from tests.stacks import field_changes as fields
from tests.stacks.every_field import changed, steps
from tests.violations.draw import ABSENT, FOLDER, Json, entries, load, valid
from training_platform.checks.outcome import FlatResource
from training_platform.checks.stacks import CheckOptions, check_stacks
from training_platform.config.model.stack import PROJECT, Stack, parse_stack
from training_platform.config.reading.finding import Finding
from training_platform.config.reading.source import parse_source

VALID = valid()
TABLE: Json = load(FOLDER / "stack_fields.yaml")
KINDS = {kind.stack: kind for kind in fields.KINDS}
Keys = tuple[str | int, ...]
Inputs = dict[tuple[str, str], set[tuple[str, str]]]  # path and value, by type and name of a resource
ModelField = tuple[str, str]  # of a section of the model: its class and the name of the field


class Said(NamedTuple):
    """A violation in a stack file: the stack, and the wrong values by path."""

    stack: str
    values: dict[Keys, Any]


def said(row: Json) -> Said | None:
    """Return how a stack file says a violation; None where none can."""
    for exception in TABLE["instead"]:
        if exception["of"] == row["of"] and exception["values"] == row["values"]:
            return _said(exception["says"])
    if _composed(row) or ABSENT in row["values"].values():
        return None
    places = {field_of(row["of"], path): value for path, value in row["values"].items()}
    return None if None in places else _said({str(place): value for place, value in places.items()})


def why_not(row: Json) -> str | None:
    """Return the reason why no stack file can contain a violation; None without a reason."""
    if row["constraint"] == "unknown":
        return "programs write only inputs that there are"
    if ABSENT in row["values"].values():
        return "programs always write it, or never"
    if any(not moving(VALID[row["of"]]["type"], path) for path in row["values"]):
        return "no field gives it a value"
    if {"of": row["of"], "values": row["values"]} in TABLE["documents"]:
        return "found by documents, at the section of the object"
    return "put together by the program" if _composed(row) else None


def field_of(name: str, path: str) -> str | None:
    """Return the stack and the field that give an input of an object its value, as the table has them."""
    kind, path = _as_pool(VALID[name]["type"], path)
    field: str | None = TABLE["fields"].get(kind, {}).get(path)
    return field


def moving(kind: str, path: str) -> frozenset[ModelField]:
    """Return the fields of the model that move an input, or something in it."""
    kind, path = _as_pool(kind, path)
    plain = _plain(path.replace("\\.", "."))
    return frozenset(
        field for (of, moved), fields_of_input in _moved().items()
        if of == kind and (moved == plain or moved.startswith(f"{plain}."))
        for field in fields_of_input
    )  # fmt: skip


def model_field(place: str) -> ModelField:
    """Return the field of the model that a place of the table is: its class and its name."""
    stack, keys = _keys(place)
    [(section, name)] = steps(KINDS[stack].model, keys)
    return section.__name__, name


def findings(folder: Path, case: Said) -> list[Finding]:
    """Return what ``check`` finds at the lines of the wrong values, or of the section without its field."""
    kind = KINDS[case.stack]
    section = kind.section
    for keys, value in case.values.items():
        section = _with(section, keys, value)
    (folder / "stacks").mkdir()
    for name, text in fields.files(kind, section):
        (folder / "stacks" / name).write_text(text, encoding="utf-8")
    options = CheckOptions(today=date(2026, 11, 22))
    report = check_stacks(folder, [case.stack], options).report
    text = (folder / "stacks" / f"Pulumi.{case.stack}.yaml").read_text(encoding="utf-8")
    lines = {line for keys, value in case.values.items() for line in _lines(text, kind, keys, value)}
    return [
        finding for stack in report.stacks if stack.name == case.stack for finding in stack.findings
        if finding.severity in ("error", "warning") and finding.position and finding.position.line in lines
    ]  # fmt: skip


def with_value(case: Said, path: str, value: Any) -> Stack:
    """Return the stack of a case with another value at the path of a finding."""
    kind = KINDS[case.stack]
    section = kind.section
    for keys, wrong in case.values.items():
        section = _with(section, keys, wrong)
    keys = tuple(int(part) if part.isdecimal() else part for part in re.findall(r"[^.\[\]]+", path))
    section = _with(section, keys, value)
    texts = dict(fields.files(kind, section))
    name = f"Pulumi.{case.stack}.yaml"
    return parse_stack(case.stack, parse_source(texts[name], f"stacks/{name}"))


def _lines(text: str, kind: fields.Kind, keys: Keys, value: Any) -> Iterator[int]:
    """Yield the lines of a field and of the values in it."""
    source = parse_source(text, "")
    top = ("config", f"{PROJECT}:{kind.key}")
    keys = keys[:-1] if value == ABSENT else keys
    yield source.position((*top, *keys)).line
    if value != ABSENT:
        for key, part in entries(value):
            yield from _lines(text, kind, (*keys, key), part)


def _said(values: dict[str, Any]) -> Said:
    values_of_stacks = {_keys(place): value for place, value in values.items()}
    [stack] = {stack for stack, _ in values_of_stacks}
    return Said(stack, {keys: value for (_, keys), value in values_of_stacks.items()})


def _keys(place: str) -> tuple[str, Keys]:
    stack, _, path = place.partition(" ")
    return stack, tuple(int(part) if part.isdecimal() else part for part in path.split("."))


def _with(section: Json, keys: Keys, value: Any) -> Json:
    """Return a section with another value of a field, or without the field."""
    changed_section = copy.deepcopy(section)
    block: Any = changed_section
    for key in keys[:-1]:
        block = block.setdefault(key, {}) if isinstance(block, dict) else block[key]
    if value == ABSENT:
        del block[keys[-1]]
    else:
        block[keys[-1]] = value
    return changed_section


def _composed(row: Json) -> bool:
    return any(
        row["of"] == composed["of"]
        and (row["values"] == composed["values"] if "values" in composed else _within(row["values"], composed["input"]))
        for composed in TABLE["composed"]
    )


def _within(paths: Iterable[str], block: str) -> bool:
    return any(path == block or path.startswith(f"{block}.") for path in paths)


def _as_pool(kind: str, path: str) -> tuple[str, str]:
    """Return a pool in a cluster as a pool of its own, which is how stack files have them."""
    inside = path.startswith("nodePools.0.")
    return ("gcp:container/nodePool:NodePool" if inside else kind), path.removeprefix("nodePools.0.")


@cache
def _moved() -> dict[tuple[str, str], set[ModelField]]:
    """Return the fields of the model by the inputs that they move, by type and path without places in lists."""
    fields_of_inputs: dict[tuple[str, str], set[ModelField]] = {}
    for kind in fields.KINDS:
        resources = kind.planned(kind.section)
        before = _inputs(resources)
        same = {id(resource) for resource in resources}
        for path, new in kind.changes().items():
            after = _inputs(
                [resource for resource in kind.planned(changed(kind.section, path, new)) if id(resource) not in same]
            )
            [(section, name)] = steps(kind.model, path)
            for moved in _differences(before, after):
                fields_of_inputs.setdefault(moved, set()).add((section.__name__, name))
    return fields_of_inputs


def _inputs(resources: list[FlatResource]) -> Inputs:
    types = {row["type"] for row in VALID.values()}
    return {
        (resource.type, resource.name): {(_plain(path), repr(value)) for path, value in resource.inputs.items()}
        for resource in resources if resource.type in types
    }  # fmt: skip


def _differences(before: Inputs, after: Inputs) -> Iterator[tuple[str, str]]:
    """Yield the inputs that differ in a resource; of one that comes, those that no other of its type has so."""
    for (kind, name), inputs in after.items():
        if (kind, name) in before:
            rows = inputs ^ before[kind, name]
        else:
            rows = inputs.difference(*(other_inputs for (of, _), other_inputs in before.items() if of == kind))
        yield from ((kind, path) for path, _ in rows)


def _plain(path: str) -> str:
    return re.sub(r"\[\d+\]|\.\d+\b", "", path)
