"""Each name that a rule or view reads of an object is looked up in that object's document.

Rules read objects that have every field of their document, and the spoiled programs of every rule; a mapping that
notes what is read tells which names no document has. A name that is written in code and that none of these reads
would be noted nowhere, so that fails too: a branch that no test enters may read a field that nobody has.
"""

from __future__ import annotations

import ast
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.training_platform.rules import foreign
from tests.training_platform.rules.spoiled import ROWS
from training_platform import rules, views
from training_platform.resources.stack_resource import StackResource
from training_platform.rules import RULES, documents, evaluate, program, view_rules, views_of_plan
from training_platform.views.adapters import kinds_of
from training_platform.views.whole_stack import Program

pytestmark = pytest.mark.timeout(300)  # rules are asked about whole documents
Shapes = list[dict[str, Any]]

# Names that a function shared by rules looks for in objects whose kind has no such field.
SEARCHED = {
    "containers": "pods() walks over an object until it meets a block with containers",
}
# Names that are no inputs of a resource.
ELSEWHERE = {
    "FREQ": "a part of a recurrence",
    "chart": "an input of a Helm release",
    "claimRef": "an input of a volume, read in a plan",
    "deleteBeforeReplace": "an option of a resource",
    "dranet": "a use of a machine type in the catalogue",
    "ignoreChanges": "an option of a resource",
    "multishare": "a parameter of a StorageClass",
    "other": "a key of descriptions.yaml",
    "standard": "a value of a StorageClass's parameter",
    "team": "a key of an exemption's file",
}
READERS = {"at", "block", "entries", "get", "is_unknown", "read", "text", "texts", "whole"}
VALUES = {"any": "any", "flag": True, "int32": 1, "int64": 1, "int-or-text": 1, "number": 1, "quantity": "1"}


class Reads(NamedTuple):
    """Paths that were read: those that the document has, and those that it does not have."""

    documented: set[str]
    undocumented: set[str]


class Noting(dict[str, Any]):
    """A block of an object that notes which of its fields are read, by the shape of the block in the document."""

    def __init__(self, value: Mapping[str, Any], shapes: Shapes, shape: int | None, path: str, reads: Reads) -> None:
        super().__init__(
            {key: _noting(item, shapes, _inside(shapes, shape, key), f"{path}{key}.", reads)
             for key, item in value.items()}
        )  # fmt: skip
        block = shapes[shape] if shape is not None else {}
        self._fields = block.get("fields") if not block.get("open") else None
        self._path = path
        self._reads = reads

    def _note(self, key: object) -> None:
        if self._fields is not None and isinstance(key, str):
            paths = self._reads.documented if key in self._fields else self._reads.undocumented
            paths.add(f"{self._path}{key}")

    def get(self, key: str, default: Any = None) -> Any:
        self._note(key)
        return super().get(key, default)

    def __getitem__(self, key: str) -> Any:
        self._note(key)
        return super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        self._note(key)
        return super().__contains__(key)


def _noting(value: Any, shapes: Shapes, shape: int | None, path: str, reads: Reads) -> Any:
    if isinstance(value, Mapping):
        return Noting(value, shapes, shape, path, reads)
    if isinstance(value, list):
        description: Mapping[str, Any] = shapes[shape] if shape is not None else {}
        inside = description["of"] if description.get("is") == "list" else shape
        return [_noting(item, shapes, inside, path, reads) for item in value]
    return value


def _inside(shapes: Shapes, shape: int | None, key: str) -> int | None:
    """Return the shape of a field of a block, of a map's values, or of a list's entries where one has no brackets."""
    description: Mapping[str, Any] = shapes[shape] if shape is not None else {}
    if description.get("is") == "list":
        return _inside(shapes, description["of"], key)
    inside: int | None = description.get("fields", {}).get(key, description.get("of"))
    return inside


def _full(shapes: Shapes, shape: int, above: tuple[int, ...] = ()) -> Any:
    """Return a value that has every field of a shape, once along each path."""
    description = shapes[shape]
    match description["is"]:
        case "block":
            fields = description["fields"] if shape not in above else {}
            return {name: _full(shapes, inside, (*above, shape)) for name, inside in fields.items()}
        case "list":
            return [_full(shapes, description["of"], above)]
        case "map":
            return {"key": _full(shapes, description["of"], above)}
        case kind:
            return description["enum"][0] if description.get("enum") else VALUES.get(kind, "text")


@cache
def _documents() -> Mapping[str, tuple[Shapes, int]]:
    folder = Path(documents.__file__).parent
    files = [json.loads((folder / f"{name}.json").read_text()) for name in ("google", "kubernetes", "gke", "operators")]
    return {token: (file["shapes"], shape) for file in files for token, shape in file["types"].items()}


def _noted(resource: StackResource, reads: Reads) -> StackResource:
    if resource.type not in _documents():
        return resource
    inputs = Noting(resource.inputs, *_documents()[resource.type], "", reads)
    return StackResource(
        stack=resource.stack, type=resource.type, name=resource.name, inputs=inputs, options=resource.options
    )


def _evaluate(resources: list[StackResource], rule: str) -> None:
    whole = program(views_of_plan(resources), stack="dev", environment="dev", team=None, production=True)
    evaluate(whole, [RULES[rule]])


@pytest.fixture(scope="module")
def reads() -> Mapping[str, Reads]:
    """Return what each rule reads: of every kind of object with all of its fields, and of its own spoiled programs.

    Fields of views are under ``views``, whether a rule reads them or not.
    """
    noted: dict[str, Reads] = defaultdict(lambda: Reads(set(), set()))
    for token, (shapes, shape) in _documents().items():
        object_reads = Reads(set(), set())
        resource = _noted(
            StackResource(stack="dev", type=token, name="thing", inputs=_full(shapes, shape)), object_reads
        )
        for view in views_of_plan([resource]):
            view.values()
        noted["views"].documented.update(object_reads.documented)
        noted["views"].undocumented.update(object_reads.undocumented)
        for rule in view_rules():
            if rule.reads is not Program and not any(issubclass(kind, rule.reads) for kind in kinds_of(token)):
                continue
            object_reads.documented.clear()
            object_reads.undocumented.clear()
            _evaluate([resource], rule.id)
            noted[rule.id].documented.update(object_reads.documented)
            noted[rule.id].undocumented.update(object_reads.undocumented)
    for row in ROWS:
        planned = foreign.planned(row.besides, row.spoiled)
        _evaluate([_noted(resource, noted[row.rule]) for resource in planned], row.rule)
    return noted


def _written() -> Iterator[tuple[str, str]]:
    """Yield the names that rules and views read, as their code writes them, each with its place."""
    for package in (rules, views):
        folder = Path(package.__path__[0])
        for file in sorted(folder.rglob("*.py")):
            if file.parent.name == "documents" or file.name == "adapters.py":  # which translates bodies of REST
                continue
            for call in ast.walk(ast.parse(file.read_text())):
                if not isinstance(call, ast.Call):
                    continue
                name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
                if name not in READERS:
                    continue
                for node in (node for argument in call.args for node in ast.walk(argument)):
                    if isinstance(node, ast.Constant) and isinstance(node.value, str):
                        for part in filter(str.isidentifier, node.value.split(".")):
                            yield part, f"{file.relative_to(folder.parent)}:{node.lineno}"


def test_every_name_that_a_rule_reads_is_in_the_document_of_an_object_that_it_reads(
    reads: Mapping[str, Reads],
) -> None:
    wrong = {
        f"{rule}: {path}"
        for rule, rule_reads in reads.items()
        for path in rule_reads.undocumented - rule_reads.documented
        if path.rpartition(".")[2] not in {*SEARCHED, *ELSEWHERE}
    }

    assert wrong == set()


def test_every_name_that_code_reads_is_read_in_an_object_that_has_it(reads: Mapping[str, Reads]) -> None:
    paths = set[str]().union(*(rule_reads.documented for rule_reads in reads.values()))
    documented_names = {part for path in paths for part in path.split(".")}

    assert {f"{name}, {place}" for name, place in _written() if name not in {*documented_names, *ELSEWHERE}} == set()


def test_a_field_that_nobody_has_is_noted() -> None:
    token = "kubernetes:leaderworkerset.x-k8s.io/v1:LeaderWorkerSet"
    group_reads = Reads(set(), set())
    shapes, shape = _documents()[token]
    resource = _noted(StackResource(stack="dev", type=token, name="group", inputs=_full(shapes, shape)), group_reads)
    policy = resource.inputs["spec"]["leaderWorkerTemplate"]["subGroupPolicy"]

    assert policy.get("subGroupPolicyType")
    assert policy.get("type") is None
    assert group_reads.undocumented == {"spec.leaderWorkerTemplate.subGroupPolicy.type"}
