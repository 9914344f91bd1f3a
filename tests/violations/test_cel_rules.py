"""Our cases refuse what upstream's CEL rules refuse, for random objects.

The rules are read where CustomResourceDefinitions are at hand: in ../shared/schemas, and in the folders that
``TRAINING_PLATFORM_CRDS`` names. Google's ``cel-expr-python`` evaluates them. A rule whose value cannot be worked out
is left out. Rules on an old object are of changes, which ``check --base`` judges.
"""

from __future__ import annotations

import copy
import os
import random
import re
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
import yaml
from cel_expr_python import cel

from tests.training_platform.rules.corpus import judged
from tests.violations.records import VALID
from tests.violations.refusers import SCHEMAS
from training_platform.checks.comparison.refusals import fixed_by_topology

SETTING: Final = "TRAINING_PLATFORM_CRDS"
SEED = 24
TRIES = 60
_DURATION: Final = ("0s", "2s", "3s", "300s", "301s", "24h", "25h", "168h", "169h")
# What no case of ours says, with the reason: a part of the rule's text.
LEFT: Final = {
    "confidentialNodeType": "each priority beside one type of the class: the families are a table that grows",
    "tcp_congestion_control": "one kernel parameter that only Autopilot has",
    "minimumCapacity.targetNodeCount) ? self.priorities.all": "each priority beside one number of the class",
    "size(self[k]) <= 32768": "the length of a value in bytes",
    "isURL": "a function of the API server that the library does not have",
    "machineFamily == 'a4x'": "a topology of GPUs beside families and types in one condition",
    "self.priorities.all(p, (has(p.spot)": "each priority beside one setting of the class: found where none is spot",
}


class CelRule(NamedTuple):
    """A rule of one kind at a path of its schema, with the schema at that path."""

    name: str
    path: tuple[str, ...]
    text: str
    schema: Mapping[str, Any]


def _rules() -> Iterator[CelRule]:
    folders = [Path(name) for name in os.environ.get(SETTING, "").split(os.pathsep) if name]
    if SCHEMAS.is_dir():
        folders.insert(0, SCHEMAS)
    kinds = {row["type"].rpartition(":")[2]: name for name, row in VALID.items() if "kubernetes:" in row["type"]}
    for file in sorted(path for folder in folders for path in folder.rglob("*.yaml")):
        for definition in yaml.load_all(file.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader):
            if not isinstance(definition, dict) or definition.get("kind") != "CustomResourceDefinition":
                continue
            name = kinds.get(definition["spec"]["names"]["kind"])
            stored = [version for version in definition["spec"]["versions"] if version["storage"]]
            if name and VALID[name]["type"].split(":")[1].endswith(stored[0]["name"]):
                yield from _below(name, (), stored[0]["schema"]["openAPIV3Schema"])


def _below(name: str, path: tuple[str, ...], schema: Mapping[str, Any]) -> Iterator[CelRule]:
    for row in schema.get("x-kubernetes-validations", ()):
        yield CelRule(name, path, row["rule"], schema)
    for key, inner in schema.get("properties", {}).items():
        yield from _below(name, (*path, key), inner)
    if "items" in schema:
        yield from _below(name, (*path, "[]"), schema["items"])


def _made(schema: Mapping[str, Any], texts: list[str], words: set[str], draw: random.Random, *, keep: bool) -> Any:
    """Return a value of a schema that probably contains words and strings of a rule."""
    kind = schema.get("type")
    if "enum" in schema:
        return draw.choice(schema["enum"])
    if kind == "object" and "properties" in schema:
        names = [name for name in schema["properties"] if name in words and draw.random() < (0.9 if keep else 0.5)]
        names = list(dict.fromkeys([*schema.get("required", ()), *names])) or [next(iter(schema["properties"]))]
        return {name: _made(schema["properties"][name], texts, words, draw, keep=keep) for name in names}
    if kind == "array":
        min_items = max(schema.get("minItems", 0), 1)
        return [
            _made(schema["items"], texts, words, draw, keep=keep) for _ in range(draw.randint(min_items, min_items + 1))
        ]
    if kind == "integer":
        low = schema.get("minimum", 1)
        high = min(schema.get("maximum", 100), schema.get("minimum", 1) + 100)
        return draw.choice([low, high, draw.randint(low, high)])
    if kind == "boolean":
        return draw.random() < 0.5
    if kind == "object":
        return {draw.choice([*texts, "own"]): "value"}
    return draw.choice([*texts, "value"]) if kind == "string" else {}


def _placed(inputs: Any, path: tuple[str, ...], value: Any) -> Any:
    """Return inputs with a value at a path, in the first entry of each list on the way."""
    if not path:
        return value
    first, *keys_below = path
    if first == "[]":
        rows = list(inputs or [{}])
        return [_placed(rows[0], tuple(keys_below), value), *rows[1:]]
    block = dict(inputs or {})
    return {**block, first: _placed(block.get(first), tuple(keys_below), value)}


def _at(inputs: Any, path: tuple[str, ...]) -> Iterator[Any]:
    """Yield every value at a path."""
    if not path:
        yield inputs
    elif path[0] == "[]":
        rows = inputs if isinstance(inputs, list) else []
        for row in rows:
            yield from _at(row, path[1:])
    elif isinstance(inputs, dict) and path[0] in inputs:
        yield from _at(inputs[path[0]], path[1:])


_EVERY: Final = list(_rules())
RULES: Final = [rule for rule in _EVERY if "oldSelf" not in rule.text]
ON_CHANGES: Final = [rule for rule in _EVERY if "oldSelf" in rule.text]


@pytest.mark.parametrize("rule", RULES, ids=[f"{rule.name}-{place}" for place, rule in enumerate(RULES)])
def test_what_upstreams_rule_refuses_our_cases_refuse(rule: CelRule) -> None:
    if reason := next((reason for part, reason in LEFT.items() if part in rule.text), None):
        pytest.skip(reason)
    programs = _programs(rule.name)
    upstream = programs.pop((rule.path, rule.text), None)
    if upstream is None:
        pytest.skip("the library cannot parse the rule")
    draw = random.Random(f"{SEED} {rule.name} {rule.path} {rule.text}")
    texts = [*re.findall(r"""['"]([A-Za-z][-A-Za-z0-9_]*)['"]""", rule.text), *_durations(rule.text)]
    words = {*re.findall(r"[A-Za-z][A-Za-z0-9]+", rule.text)}
    kind = VALID[rule.name]["type"]
    valid = VALID[rule.name]["inputs"]
    before = _errors(kind, valid)
    differences = []
    for _ in range(TRIES):
        value = _made(rule.schema, texts, words, draw, keep=draw.random() < 0.5)
        old = next(_at(valid, rule.path), None)
        if isinstance(value, dict) and isinstance(old, dict) and draw.random() < 0.5:
            value = {**copy.deepcopy(old), **value}
        inputs = _placed(copy.deepcopy(valid), rule.path, value)
        verdicts = [_verdict(program, inputs, path) for (path, _), program in programs.items()]
        if (
            _verdict(upstream, inputs, rule.path) is False
            and False not in verdicts
            and not _errors(kind, inputs) - before
        ):
            differences.append(value)

    assert differences == []


def _programs(name: str) -> dict[tuple[tuple[str, ...], str], Any]:
    env = cel.NewEnv(variables={"self": cel.Type.DYN})
    programs = {}
    for rule in (rule for rule in RULES if rule.name == name):
        try:
            programs[rule.path, rule.text] = env.compile(rule.text)
        except Exception:  # noqa: BLE001, S112 # a text that the library cannot parse: nothing is decided by it
            continue
    return programs


def _durations(text: str) -> tuple[str, ...]:
    return _DURATION if "duration" in text or "interval" in text else ()


def _errors(kind: str, inputs: Any) -> set[tuple[Any, ...]]:
    findings = judged({"resources": {"thing": {"type": kind, "inputs": inputs}}})
    return {(finding.rule, finding.path, finding.message) for finding in findings if finding.severity == "error"}


def _verdict(program: Any, inputs: Any, path: tuple[str, ...]) -> bool | None:
    """Return whether a rule holds of all values at its path; None where that cannot be worked out."""
    verdicts: list[bool] = []
    for value in _at(inputs, path):
        try:
            verdicts.append(bool(program.eval(data={"self": value}).value()))
        except Exception:  # noqa: BLE001 # the library's own kinds of errors: the rule is not decided
            return None
    return all(verdicts)


def test_changes_of_a_flavor_with_a_topology_are_refused_as_upstream_refuses_them() -> None:
    rules = [rule for rule in ON_CHANGES if VALID[rule.name]["type"].endswith(":ResourceFlavor")]
    if not rules:
        pytest.skip("no CustomResourceDefinition of a ResourceFlavor is at hand")
    env = cel.NewEnv(variables={"self": cel.Type.DYN, "oldSelf": cel.Type.DYN})
    programs = [env.compile(rule.text) for rule in rules]
    specs = [
        {key: value for key, value in zip(("topologyName", "nodeLabels", "tolerations"), values, strict=True) if value}
        for values in product((None, "a", "b"), (None, {"x": "1"}, {"x": "2"}), (None, [{"key": "k"}]))
    ]
    for old, new in product(specs, specs):
        verdicts = [program.eval(data={"self": new, "oldSelf": old}).value() for program in programs]

        assert bool(fixed_by_topology(old, new)) is (False in verdicts), (old, new)
