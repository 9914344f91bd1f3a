"""Checks of whole objects, built from the documents' shapes when a type is first checked.

A check reports every problem of a value. A value that is unknown before deployment passes.

A shape is a mapping; shapes of one file refer to each other by their index:

- ``is``: ``block`` (an object with ``fields``), ``list`` or ``map`` (``of`` is the shape of their entries), ``text``,
  ``int32``, ``int64``, ``number``, ``flag``, ``quantity``, ``int-or-text`` or ``any``.
- Of a block: ``required`` names, ``open`` if it takes other names, and lists of constraints between its fields
  (``groups``, ``cases``, ``orders``, ``disjoint``).
- Of a list: ``keys`` that are unique among its entries; of a map: ``keys_like``, the shape of its keys.
- Limits: ``least`` and ``most`` of a number, ``fewest`` and ``most`` of entries, ``shortest`` and ``longest`` of a
  string, ``pattern``, ``format`` and ``enum``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from training_platform.resources.stack_resource import UNKNOWN
from training_platform.rules.documents.additions import Additions
from training_platform.rules.documents.blocks import LISTS, compared, holding, repeated
from training_platform.rules.documents.problems import Problem, Report, Where, refused, unknown
from training_platform.rules.documents.scalars import Right, matched, scalar
from training_platform.rules.documents.sdk_types import sdk_shapes, sdk_tokens
from training_platform.views.inputs import holds_unknown, is_list

Shape = Mapping[str, Any]
Check = Callable[[Any, Where, Report], None]


_FILES: Final = {
    "gcp": "google.json",
    "kubernetes": "kubernetes.json",
    "gke": "gke.json",
    "operators": "operators.json",
}
_FILES_OF_GROUPS: Final = {  # Kubernetes groups outside kubernetes.json
    "kubernetes:cloud.google.com": "gke",
    "kubernetes:gateway.networking.k8s.io": "gke",
    "kubernetes:networking.gke.io": "gke",
    "kubernetes:leaderworkerset.x-k8s.io": "operators",
    "kubernetes:ray.io": "operators",
    "kubernetes:trainer.kubeflow.org": "operators",
}
_CHOICES: Final = ("anyOf", "oneOf")
_COMBINATIONS: Final = frozenset({"allOf", "not", "nullable", *_CHOICES})
_INCOMPLETE_GROUPS: Final = frozenset({"kubernetes:networking.gke.io/"})  # with kinds that are not published


class ValueCheck(NamedTuple):
    """The check of a value, and the values that are ``right`` without it."""

    right: Right
    check: Check


@cache
def check_of(token: str) -> Check | None:
    """Return the check of a type's inputs; None if neither a document nor the SDK's list of types has the type."""
    documents = _documents(_package(token))
    if documents is None:
        return None
    check = documents.check_of(token)
    if check is None and token.startswith("gcp:") and (shapes := sdk_shapes(token)):
        return Documents(shapes, {token: len(shapes) - 1}, strict=False).check_of(token)
    return check


@cache
def types_of_group(token: str) -> list[str]:
    """Return the types of a Kubernetes group that have documents; any other type of the group is newer than these."""
    group = f"{token.partition('/')[0]}/"
    package = _package(group)
    if package == "gcp" or group in _INCOMPLETE_GROUPS:
        return []
    documents = _documents(package)
    if documents is None:
        return []
    return [name for name in documents.types if name.startswith(group)]


@cache
def types_of_provider() -> list[str]:
    """Return every type of pulumi-gcp, with a document or without."""
    documents = _documents("gcp")
    assert documents is not None
    return sorted({*documents.types, *sdk_tokens()})


@cache
def fields_at(token: str, path: str) -> Mapping[str, Shape]:
    """Return the shapes of a block's inputs, by its path in a type through blocks and lists of blocks."""
    documents = _documents(_package(token))
    assert documents is not None, token
    return documents.fields_at(token, path)


class Documents:
    """The checks of one source's shapes, by type.

    ``strict`` if the server reads values unconverted, without a provider in between. A definition that is checked
    ``alone`` has no additions of ours, and refuses null unless it allows null.
    """

    def __init__(
        self, shapes: list[dict[str, Any]], types: Mapping[str, int] | None = None, *, strict: bool, alone: bool = False
    ) -> None:
        self.types = types or {}
        self.strict = strict
        self.alone = alone
        self._shapes = shapes
        self._additions = Additions(shapes, strict=strict)
        self._value_checks: dict[int, ValueCheck] = {}

    def check_of(self, token: str) -> Check | None:
        """Return the check of a type by its document and the additions to it."""
        if token not in self.types:
            return None
        return self.value_check(self._additions.to_type(token, self.types[token])).check

    def fields_at(self, token: str, path: str) -> Mapping[str, Shape]:
        """Return the shapes of the inputs of a block at a path."""
        block = self._shapes[self.types[token]]
        for name in path.split("."):
            block = self._shapes[block["fields"][name]]
            if block["is"] == "list":
                block = self._shapes[block["of"]]
        return {name: self._shapes[number] for name, number in block["fields"].items()}

    def value_check(self, number: int) -> ValueCheck:
        """Return the check of a shape's values."""
        if number not in self._value_checks:
            shape = self._shapes[number]
            value_check = self._own_check(shape)
            if _COMBINATIONS & shape.keys():
                value_check = ValueCheck(None, self._combined(shape, value_check.check))
            self._value_checks[number] = value_check
        return self._value_checks[number]

    def _own_check(self, shape: dict[str, Any]) -> ValueCheck:
        """Return the check of a shape without the combinations beside it."""
        match shape["is"]:
            case "block":
                return ValueCheck(None, self._block(shape))
            case "list":
                return ValueCheck(None, self._list(shape))
            case "map":
                return ValueCheck(None, self._map(shape))
            case _:
                return ValueCheck(*scalar(shape, strict=self.strict))

    def _combined(self, shape: Shape, own_check: Check) -> Check:
        """Return the check of a value by its shape and by its ``allOf``, ``anyOf``, ``oneOf`` and ``not``."""
        required = [self.value_check(number).check for number in shape.get("allOf", ())]
        choices = [
            (name, [self.value_check(number).check for number in shape[name]]) for name in _CHOICES if name in shape
        ]
        if "not" in shape:
            choices.append(("not", [self.value_check(shape["not"]).check]))

        def check(value: Any, where: Where, report: Report) -> None:
            if value is None and shape.get("nullable"):
                return
            own_check(value, where, report)
            for check_part in required:
                check_part(value, where, report)
            if not choices or holds_unknown(value):
                return
            for name, checks in choices:
                problem = _choice_problem(name, checks, value, where)
                if problem:
                    report(problem)

        return check

    def _block(self, document_shape: dict[str, Any]) -> Check:
        shape = document_shape if self.alone else self._additions.by_name(document_shape)
        fields = {name: self.value_check(number) for name, number in shape["fields"].items()}
        rights = {name: _is_right(field.right) for name, field in fields.items()}
        closed = self.strict
        is_open = shape.get("open", False)
        check_together = compared(shape)
        refuses_null = self.alone

        def check(value: Any, where: Where, report: Report) -> None:
            if value.__class__ is not dict and not isinstance(value, Mapping):
                _blocks(value, where, report, check, strict=closed)
                return
            for key, item in value.items():
                if item is None and not refuses_null:
                    continue
                if key in fields:
                    if item is not UNKNOWN and not rights[key](item):
                        fields[key].check(item, (where, key), report)
                elif not is_open and not key.startswith("__"):
                    report(unknown(where, key, fields, closed=closed))
            if check_together:
                check_together(value, where, report)

        return check

    def _list(self, shape: Shape) -> Check:
        check_entry = self._entry(shape["of"])
        strict = self.strict
        keys = shape.get("keys")
        checks_of_list = [make(shape[name]) for name, make in LISTS.items() if name in shape]
        check_size = _size_check(shape)

        def check(value: Any, where: Where, report: Report) -> None:
            if not is_list(value):
                if strict or not isinstance(value, Mapping):
                    report(refused("type", where, value, "which is not a list", "a list"))
                else:  # the provider's state has a block instead of a list of one
                    check_entry(value, where, report)
                return
            for index, item in enumerate(value):
                check_entry(item, (where, index), report)
            if check_size:
                check_size(value, where, report)
            if keys is not None:
                repeated(value, keys, where, report)
            for check_list in checks_of_list:
                check_list(value, where, report)

        return check

    def _map(self, shape: Shape) -> Check:
        check_entry = self._entry(shape["of"])
        check_size = _size_check(shape)
        match_key = matched(shape["keys_like"], whole=False) if "keys_like" in shape else None
        check_held = holding(shape["holds"]) if "holds" in shape else None

        def check(value: Any, where: Where, report: Report) -> None:
            if value.__class__ is not dict and not isinstance(value, Mapping):
                report(refused("type", where, value, "which is not a mapping", "a mapping"))
                return
            for key, item in value.items():
                if match_key and not match_key(key):
                    report(refused("format", where, key, "which is not in the form of a key", "a key such as own/key"))
                check_entry(item, (where, key), report)
            if check_size:
                check_size(value, where, report)
            if check_held:
                check_held(value, where, report)

        return check

    def _entry(self, number: int) -> Check:
        """Return the check of an entry of a list or a map; only a definition of its own refuses null."""
        right, check_value = self.value_check(number)
        is_right = _is_right(right)
        refuses_null = self.alone

        def check(value: Any, where: Where, report: Report) -> None:
            if value is UNKNOWN or is_right(value):
                return
            if value is None and not refuses_null:
                return
            check_value(value, where, report)

        return check


def _choice_problem(name: str, checks: list[Check], value: Any, where: Where) -> Problem | None:
    """Return the problem of a value by ``anyOf``, ``oneOf`` or ``not``; None if it fits."""
    problems: list[Problem] = []
    fitting = 0
    for check in checks:
        count_before = len(problems)
        check(value, where, problems.append)
        if len(problems) == count_before:
            fitting += 1
    if name == "not" or (name == "oneOf" and fitting > 1):
        return refused("format", where, value, "which its definition excludes", "another value") if fitting else None
    if fitting:
        return None
    message = " or ".join(dict.fromkeys(problem.message for problem in problems))
    quantity = "one" if name == "oneOf" else "any"
    return Problem("format", where, message, f"{quantity} of {len(checks)} forms")


def _is_right(right: Right) -> Callable[[Any], bool]:
    """Return the test of whether a value is right without a check: of a class, or of a collection of right values."""
    if isinstance(right, set):
        return lambda value: value.__class__ is str and value in right
    if isinstance(right, range):
        return lambda value: value.__class__ is int and value in right
    return lambda value: value.__class__ is right


def _package(token: str) -> str:
    return _FILES_OF_GROUPS.get(token.partition("/")[0]) or token.partition(":")[0]


@cache
def _documents(package: str) -> Documents | None:
    if package not in _FILES:
        return None
    content = json.loads(Path(__file__).with_name(_FILES[package]).read_text(encoding="utf-8"))
    return Documents(content["shapes"], content["types"], strict=package != "gcp")


def _blocks(value: Any, where: Where, report: Report, check: Check, *, strict: bool) -> None:
    """Check a list instead of a block: the provider's state has a list for a block of its inputs."""
    if strict or not is_list(value):
        report(refused("type", where, value, "which is not a block of inputs", "a block of inputs"))
        return
    for entry in value:
        if entry is not None and entry is not UNKNOWN:
            check(entry, where, report)


def _size_check(shape: Shape) -> Check | None:
    fewest = shape.get("fewest", 0)
    most = shape.get("most")
    if not fewest and most is None:
        return None

    def check(value: Any, where: Where, report: Report) -> None:
        if len(value) < fewest or (most is not None and len(value) > most):
            bound = f"at least {fewest}" if most is None else f"{fewest} to {most}"
            report(Problem("range", where, f"has {len(value)} entries", f"{bound} entries"))

    return check
