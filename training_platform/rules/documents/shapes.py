"""Checks of whole objects, built from the documents' shapes when an object of a type is first checked.

A check reports what is wrong with a value. A value that is unknown before deployment passes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Mapping
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from training_platform.resources.stack_resource import UNKNOWN
from training_platform.rules.documents.additions import Additions
from training_platform.rules.documents.blocks import LISTS, compared, holding, repeated
from training_platform.rules.documents.problems import Problem, Report, Where, refused, unknown
from training_platform.rules.documents.scalars import Right, matched, scalar
from training_platform.views.inputs import holds_unknown, is_list

Shape = Mapping[str, Any]
Check = Callable[[Any, Where, Report], None]


_FILES = {"gcp": "google.json", "kubernetes": "kubernetes.json", "gke": "gke.json", "operators": "operators.json"}
_APART = {  # groups of Kubernetes with a file of their own
    "kubernetes:cloud.google.com": "gke", "kubernetes:gateway.networking.k8s.io": "gke",
    "kubernetes:networking.gke.io": "gke", "kubernetes:leaderworkerset.x-k8s.io": "operators",
    "kubernetes:ray.io": "operators", "kubernetes:trainer.kubeflow.org": "operators",
}  # fmt: skip
_CHOICES = ("anyOf", "oneOf")
_COMBINED = frozenset({"allOf", "not", "nullable", *_CHOICES})
_LISTED = {str: set, int: range}  # the collection of right values, by their class
_IN_PART = frozenset({"kubernetes:networking.gke.io/"})  # groups with kinds that are published nowhere


class Judged(NamedTuple):
    """The check of a value, and the values that are ``right`` without it."""

    right: Right
    check: Check


@cache
def check_of(token: str) -> Check | None:
    """Return the check of a type's inputs; None if the type has no document."""
    documents = _documents(_package(token))
    return documents.check_of(token) if documents else None


@cache
def types_of_group(token: str) -> list[str]:
    """Return the types of a Kubernetes group that have documents; any other type of the group is newer than these."""
    group = f"{token.partition('/')[0]}/"
    package = _package(group)
    documents = _documents(package) if package != "gcp" and group not in _IN_PART else None
    return [name for name in documents.types if name.startswith(group)] if documents else []


@cache
def fields_at(token: str, path: str) -> Mapping[str, Shape]:
    """Return the shapes of a block's inputs, by its path in a type through blocks and lists of blocks."""
    documents = _documents(_package(token))
    assert documents is not None, token
    return documents.fields_at(token, path)


class Documents:
    """The checks of one source's shapes, by type.

    ``strict`` if the server reads values as they are, and no provider converts them. A definition that is judged
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
        self._judged: dict[int, Judged] = {}

    def check_of(self, token: str) -> Check | None:
        """Return the check of a type by its document and the additions to it."""
        if token not in self.types:
            return None
        return self.judged(self._additions.to_type(token, self.types[token])).check

    def fields_at(self, token: str, path: str) -> Mapping[str, Shape]:
        """Return the shapes of the inputs of a block at a path."""
        block = self._shapes[self.types[token]]
        for name in path.split("."):
            block = self._shapes[block["fields"][name]]
            if block["is"] == "list":
                block = self._shapes[block["of"]]
        return {name: self._shapes[number] for name, number in block["fields"].items()}

    def judged(self, number: int) -> Judged:
        """Return the check of a shape's values."""
        if number not in self._judged:
            shape = self._shapes[number]
            makers = {"block": self._block, "list": self._list, "map": self._map}
            if shape["is"] in makers:
                judged = Judged(None, makers[shape["is"]](shape))
            else:
                judged = Judged(*scalar(shape, strict=self.strict))
            if _COMBINED & shape.keys():
                judged = Judged(None, self._combined(shape, judged.check))
            self._judged[number] = judged
        return self._judged[number]

    def _combined(self, shape: Shape, base: Check) -> Check:
        """Return the check of a value by its shape and by ``allOf``, ``anyOf``, ``oneOf`` and ``not`` beside it."""
        every = [self.judged(number).check for number in shape.get("allOf", ())]
        choices = [(name, [self.judged(number).check for number in shape[name]]) for name in _CHOICES if name in shape]
        if "not" in shape:
            choices.append(("not", [self.judged(shape["not"]).check]))

        def check(value: Any, where: Where, report: Report) -> None:
            if value is None and shape.get("nullable"):
                return
            base(value, where, report)
            for judge in every:
                judge(value, where, report)
            if not choices or holds_unknown(value):
                return
            for name, checks in choices:
                problems: list[list[Problem]] = [[] for _ in checks]
                for judge, choice_problems in zip(checks, problems, strict=True):
                    judge(value, where, choice_problems.append)
                fitting = problems.count([])
                if fitting == 0 and name != "not":
                    message = " or ".join(dict.fromkeys(problem.message for problem in chain.from_iterable(problems)))
                    allowed = f"{'one' if name == 'oneOf' else 'any'} of {len(checks)} forms"
                    report(Problem("format", where, message, allowed))
                elif (name == "oneOf" and fitting > 1) or (name == "not" and fitting):
                    report(refused("format", where, value, "which its definition excludes", "another value"))

        return check

    def _block(self, bare: dict[str, Any]) -> Check:
        shape = bare if self.alone else self._additions.by_name(bare)
        fields = {name: self.judged(number) for name, number in shape["fields"].items()}
        right = {name: judged.right for name, judged in fields.items()}.get
        inside = {name: judged.check for name, judged in fields.items()}.get
        closed = self.strict
        is_open = shape.get("open", False)
        check_together = compared(shape)
        refuses_null = self.alone

        def check(value: Any, where: Where, report: Report) -> None:
            if value.__class__ is not dict and not isinstance(value, Mapping):
                _blocks(value, where, report, check, strict=closed)
                return
            for key, item in value.items():
                kind = item.__class__
                fine = right(key)
                if kind is fine or (fine.__class__ is _LISTED.get(kind) and item in fine):
                    continue
                if item is None and not refuses_null:
                    continue
                inner = inside(key)
                if inner is not None:
                    if item is not UNKNOWN:
                        inner(item, (where, key), report)
                elif not is_open and not key.startswith("__"):
                    report(unknown(where, key, fields, closed=closed))
            if check_together:
                check_together(value, where, report)

        return check

    def _list(self, shape: Shape) -> Check:
        right, inner = self.judged(shape["of"])
        listed, values = _listing(right)
        check_size = _size_check(shape)
        refuses_null = self.alone
        keys = shape.get("keys")
        strict = self.strict
        more = [make(shape[name]) for name, make in LISTS.items() if name in shape]

        def check(value: Any, where: Where, report: Report) -> None:
            if not is_list(value):
                if strict or not isinstance(value, Mapping):
                    report(refused("type", where, value, "which is not a list", "a list"))
                else:
                    inner(value, where, report)
                return
            for index, item in enumerate(value):
                kind = item.__class__
                if kind is right or (kind is listed and item in values) or item is UNKNOWN:
                    continue
                if item is None and not refuses_null:
                    continue
                inner(item, (where, index), report)
            if check_size:
                check_size(value, where, report)
            if keys is not None:
                repeated(value, keys, where, report)
            for judge in more:
                judge(value, where, report)

        return check

    def _map(self, shape: Shape) -> Check:
        right, inner = self.judged(shape["of"])
        listed, values = _listing(right)
        check_size = _size_check(shape)
        refuses_null = self.alone
        keys_like = matched(shape["keys_like"], whole=False) if "keys_like" in shape else None
        check_held = holding(shape["holds"]) if "holds" in shape else None

        def check(value: Any, where: Where, report: Report) -> None:
            if value.__class__ is not dict and not isinstance(value, Mapping):
                report(refused("type", where, value, "which is not a mapping", "a mapping"))
                return
            for key, item in value.items():
                if keys_like and not keys_like(key):
                    report(refused("format", where, key, "which is not in the form of a key", "a key such as own/key"))
                kind = item.__class__
                if kind is right or (kind is listed and item in values) or item is UNKNOWN:
                    continue
                if item is None and not refuses_null:
                    continue
                inner(item, (where, key), report)
            if check_size:
                check_size(value, where, report)
            if check_held:
                check_held(value, where, report)

        return check


def _listing(right: Right) -> tuple[type | None, Container[Any]]:
    """Return the listed right values and their class; no class if right values are not listed."""
    if isinstance(right, set):
        return str, right
    if isinstance(right, range):
        return int, right
    return None, ()


def _package(token: str) -> str:
    return _APART.get(token.partition("/")[0]) or token.partition(":")[0]


@cache
def _documents(package: str) -> Documents | None:
    if package not in _FILES:
        return None
    content = json.loads(Path(__file__).with_name(_FILES[package]).read_text(encoding="utf-8"))
    return Documents(content["shapes"], content["types"], strict=package != "gcp")


def _blocks(value: Any, where: Where, report: Report, check: Check, *, strict: bool) -> None:
    """Check a list in the place of a block: the provider's state has a list where its inputs have one block."""
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
