"""Checks of whole objects. They are built from the documents' schemas when a type is first checked.

A check reports all problems of a value. A value that is unknown before deployment is accepted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from training_platform.config.reading.unknown import UNKNOWN, holds_unknown, is_list
from training_platform.rules.documents.additions import Additions
from training_platform.rules.documents.blocks import compared, compared_entries
from training_platform.rules.documents.constraints import Constraint, Shape, ShapeRows
from training_platform.rules.documents.problems import BrokenConstraint, Reporter, Where, refused, unknown
from training_platform.rules.documents.scalars import InputCheck, SoundValues, matched, scalar
from training_platform.rules.documents.sdk_types import sdk_shape, sdk_tokens

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
_INCOMPLETE_GROUPS: Final = frozenset({"kubernetes:networking.gke.io/"})  # with kinds that are not published


class ValueCheck(NamedTuple):
    """The check of a value. ``right`` contains values that are known to be valid, for which the check is skipped."""

    right: SoundValues
    check: InputCheck


@cache
def check_of(token: str) -> InputCheck | None:
    """Return the check of a type's inputs, or None if neither a document nor the SDK's list of types contains it."""
    documents = _documents(_package(token))
    if documents is None:
        return None
    check = documents.check_of(token)
    if check is None and token.startswith("gcp:") and (shape := sdk_shape(token)):
        return documents.value_check(shape).check
    return check


def has_document(token: str) -> bool:
    """Return True if a document describes all inputs of a type. The SDK's list contains only names and kinds."""
    documents = _documents(_package(token))
    return documents is not None and token in documents.types


def documented_types() -> list[str]:
    """Return the types for which a document describes all inputs."""
    packages = (_documents(package) for package in _FILES)
    return sorted(token for documents in packages if documents is not None for token in documents.types)


@cache
def types_of_group(token: str) -> list[str]:
    """Return the types of a Kubernetes API group that have documents. Other types of the group are newer than these."""
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
    """Return all types of pulumi-gcp, with or without a document."""
    documents = _documents("gcp")
    assert documents is not None
    return sorted({*documents.types, *sdk_tokens()})


@cache
def fields_at(token: str, path: str) -> Mapping[str, Shape]:
    """Return the shapes (schemas) of a block's inputs. The path leads through blocks and lists of blocks."""
    documents = _documents(_package(token))
    assert documents is not None, token
    return documents.fields_at(token, path)


class Checks:
    """Builds checks from shapes, which are the schemas of values.

    ``strict`` means that the server reads values without conversion by a provider. A definition that is checked
    ``alone`` has none of our additions, and refuses null unless it explicitly allows null.
    """

    def __init__(self, *, strict: bool, alone: bool = False) -> None:
        self.strict = strict
        self.alone = alone
        self._additions = Additions(strict=strict)
        self._value_checks: dict[Shape, ValueCheck] = {}

    def value_check(self, shape: Shape) -> ValueCheck:
        """Return the check of the values that a shape describes."""
        if shape not in self._value_checks:
            value_check = self._own_check(shape)
            if shape.all_of or shape.any_of or shape.one_of or shape.not_ or shape.nullable:
                value_check = ValueCheck(None, self._combined(shape, value_check.check))
            self._value_checks[shape] = value_check
        return self._value_checks[shape]

    def _own_check(self, shape: Shape) -> ValueCheck:
        """Return the check of a shape, ignoring its combinations such as ``anyOf``."""
        match shape.kind:
            case "block":
                return ValueCheck(None, self._block(shape))
            case "list":
                return ValueCheck(None, self._list(shape))
            case "map":
                return ValueCheck(None, self._map(shape))
            case _:
                return ValueCheck(*scalar(shape, strict=self.strict))

    def _combined(self, shape: Shape, own_check: InputCheck) -> InputCheck:
        """Return the check of a value against its shape and against ``allOf``, ``anyOf``, ``oneOf`` and ``not``."""
        required = self._checks(shape.all_of)
        choices = {
            "anyOf": self._checks(shape.any_of),
            "oneOf": self._checks(shape.one_of),
            "not": self._checks((shape.not_,) if shape.not_ else ()),
        }

        def check(value: Any, where: Where, report: Reporter) -> None:
            if value is None and shape.nullable:
                return
            own_check(value, where, report)
            for check_part in required:
                check_part(value, where, report)
            for name, checks in choices.items():
                problem = None
                if checks and not holds_unknown(value):
                    problem = _choice_problem(name, checks, value, where)
                if problem:
                    report(problem)

        return check

    def _checks(self, shapes: Iterable[Shape]) -> list[InputCheck]:
        return [self.value_check(shape).check for shape in shapes]

    def _block(self, document_shape: Shape) -> InputCheck:
        shape = document_shape if self.alone else self._additions.by_name(document_shape)
        fields = {name: self.value_check(inner) for name, inner in shape.fields.items()}
        rights = {name: _is_right(field.right) for name, field in fields.items()}
        closed = self.strict
        is_open = shape.is_open
        check_together = compared(shape.limits)
        refuses_null = self.alone

        def check(value: Any, where: Where, report: Reporter) -> None:
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

    def _list(self, shape: Shape) -> InputCheck:
        check_entry = self._entry(shape.inner)
        strict = self.strict
        check_size = _size_check(shape.limits)
        check_together = compared_entries(shape.limits)

        def check(value: Any, where: Where, report: Reporter) -> None:
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
            if check_together:
                check_together(value, where, report)

        return check

    def _map(self, shape: Shape) -> InputCheck:
        check_entry = self._entry(shape.inner)
        check_size = _size_check(shape.limits)
        check_together = compared_entries(shape.limits)
        key_pattern = shape.limits.property_names
        match_key = None if key_pattern is None else matched(key_pattern, whole=False)

        def check(value: Any, where: Where, report: Reporter) -> None:
            if value.__class__ is not dict and not isinstance(value, Mapping):
                report(refused("type", where, value, "which is not a mapping", "a mapping"))
                return
            for key, item in value.items():
                if match_key and not match_key(key):
                    report(refused("format", where, key, "which is not in the form of a key", "a key such as own/key"))
                check_entry(item, (where, key), report)
            if check_size:
                check_size(value, where, report)
            if check_together:
                check_together(value, where, report)

        return check

    def _entry(self, shape: Shape) -> InputCheck:
        """Return the check of an entry in a list or map. Null is refused only by a definition without our additions."""
        right, check_value = self.value_check(shape)
        is_right = _is_right(right)
        refuses_null = self.alone

        def check(value: Any, where: Where, report: Reporter) -> None:
            if value is UNKNOWN or is_right(value):
                return
            if value is None and not refuses_null:
                return
            check_value(value, where, report)

        return check


class Documents(Checks):
    """The checks of the types from one source, built from its documents and our additions to them."""

    def __init__(self, types: Mapping[str, int], rows: ShapeRows, *, strict: bool) -> None:
        super().__init__(strict=strict)
        self.types = types
        self._rows = rows

    def shape_of(self, token: str) -> Shape:
        """Return the shape of a type, built from its document and our additions to it."""
        return self._additions.to_type(token, self._rows.shape(self.types[token]))

    def check_of(self, token: str) -> InputCheck | None:
        """Return the check of a type, or None if it has no document."""
        return self.value_check(self.shape_of(token)).check if token in self.types else None

    def fields_at(self, token: str, path: str) -> Mapping[str, Shape]:
        """Return the shapes of the inputs of the block at a path."""
        block = self._rows.shape(self.types[token])
        for name in path.split("."):
            block = block.fields[name]
            if block.kind == "list":
                block = block.inner
        return block.fields


def _choice_problem(name: str, checks: list[InputCheck], value: Any, where: Where) -> BrokenConstraint | None:
    """Return the problem of a value that violates ``anyOf``, ``oneOf`` or ``not``, or None."""
    problems: list[BrokenConstraint] = []
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
    return BrokenConstraint("format", where, message=message, allowed=f"{quantity} of {len(checks)} forms")


def _is_right(right: SoundValues) -> Callable[[Any], bool]:
    """Return a function that tests whether a value is known to be valid, by its class or because it is listed."""
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
    return Documents(content["types"], ShapeRows(content["shapes"]), strict=package != "gcp")


def _blocks(value: Any, where: Where, report: Reporter, check: InputCheck, *, strict: bool) -> None:
    """Check the blocks in a list that stands in place of one block. The provider's state contains such lists."""
    if strict or not is_list(value):
        report(refused("type", where, value, "which is not a block of inputs", "a block of inputs"))
        return
    for entry in value:
        if entry is not None and entry is not UNKNOWN:
            check(entry, where, report)


def _size_check(limits: Constraint) -> InputCheck | None:
    minimum = limits.min_items or 0
    maximum = limits.max_items
    if not minimum and maximum is None:
        return None

    def check(value: Any, where: Where, report: Reporter) -> None:
        if len(value) < minimum or (maximum is not None and len(value) > maximum):
            bound = f"at least {minimum}" if maximum is None else f"{minimum} to {maximum}"
            report(BrokenConstraint("range", where, message=f"has {len(value)} entries", allowed=f"{bound} entries"))

    return check
