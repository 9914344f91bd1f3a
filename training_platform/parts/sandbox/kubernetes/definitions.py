"""CustomResourceDefinitions: whether an API server would take an object of a custom kind.

``load_crds`` reads a folder; ``CrdSchema.errors`` judges one object: its shape (types, required and unknown fields,
enums, patterns, limits, forms, keys of lists that must be unique) as the rules judge documents, and then the CEL rules
of its CRD (``x-kubernetes-validations``) where the optional package ``common-expression-language`` is installed. The
refusals of a kind's own webhooks are not checked. An object may hold unknowns (the engine's strings, ``UNKNOWN``, any
foreign object) and secrets: a constraint that depends on an unknown is passed over, the others are checked.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cache, cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import yaml

from training_platform.catalog.types import Json
from training_platform.parts.sandbox.kubernetes.store import PropertyPath, text
from training_platform.parts.sandbox.kubernetes.wire import readable
from training_platform.rules.documents.openapi import OPEN, KindReader, Shapes
from training_platform.rules.documents.problems import Problem
from training_platform.rules.documents.shapes import Check, Documents
from training_platform.views.inputs import holds_unknown

cel: Any = importlib.import_module("cel") if find_spec("cel") else None


class Failure(NamedTuple):
    """An input that is refused before anything is tried; ``property`` is a path, empty for the whole object."""

    property: str
    reason: str

    def __str__(self) -> str:
        return f"{self.property}: {self.reason}" if self.property else self.reason


@dataclass(frozen=True)
class CrdSchema:
    """One served version of a custom kind; ``spec`` is the CRD's own OpenAPI schema."""

    namespaced: bool
    spec: Json

    def errors(self, obj: Mapping[str, Any], old: Mapping[str, Any] | None = None) -> list[str]:
        """Return what an API server would refuse, one line each; ``old`` is the object that an update replaces."""
        return [str(failure) for failure in self.failures(obj, old)]

    def failures(self, obj: Mapping[str, Any], old: Mapping[str, Any] | None = None) -> list[Failure]:
        """The same by path and reason. As on a server, CEL rules run only on an object of the right shape."""
        value = readable(obj)
        if misshapen := failures_by(self._judge, value):
            return misshapen
        broken = broken_rules(self.spec, value, None if old is None else readable(old))
        return sorted(Failure(text(path), reason) for path, reason in broken)

    @cached_property
    def _judge(self) -> Check:
        """The judge of whole objects; an object's metadata is the server's own and is not judged."""
        shapes = Shapes()
        number = KindReader(shapes, {}, alone=True).kind(self.spec, shapes.number(OPEN))
        return Documents(shapes.rows, strict=True, alone=True).judged(number).check


def failures_by(check: Check, value: Any) -> list[Failure]:
    """Return the errors that a judge finds in a readable value, with what is allowed and the nearest valid value."""
    problems: list[Problem] = []
    check(value, (), problems.append)
    failures: list[Failure] = []
    for problem in problems:
        if problem.severity == "error":
            allowed = f"; allowed: {problem.allowed}" if problem.allowed else ""
            nearest = f"; nearest: {problem.nearest!r}" if problem.nearest else ""
            failures.append(Failure(text(problem.keys), f"{problem.message}{allowed}{nearest}"))
    return sorted(failures)


def load_crds(folder: Path) -> dict[tuple[str, str, str], CrdSchema]:
    """Read the schema of every CRD under a folder, by group, version and kind; raises as ``read_definitions`` does."""
    specs = [definition["spec"] for definition in read_definitions(folder)]
    return {
        (spec["group"], version["name"], spec["names"]["kind"]): CrdSchema(
            spec["scope"] == "Namespaced", version["schema"]["openAPIV3Schema"]
        )
        for spec in specs
        for version in spec["versions"]
        if version["served"]
    }


def read_definitions(folder: Path) -> list[Json]:
    """Read every CRD under a folder as it is written; other YAML documents are passed over.

    ``FileNotFoundError`` for a folder that is not there, since an empty answer would approve everything.
    """
    if not folder.is_dir():
        raise FileNotFoundError(f"no folder of CRDs at {folder}")
    return [
        document
        for file in sorted(folder.rglob("*.yaml"))
        for document in yaml.load_all(file.read_text(encoding="utf-8"), Loader=_Loader)
        if isinstance(document, dict) and document.get("kind") == "CustomResourceDefinition"
    ]


_Loader: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the same reading, ten times as fast


def broken_rules(spec: Json, value: Any, old: Any = None) -> Iterator[tuple[PropertyPath, str]]:
    """The path and message of every CEL rule that a readable value breaks; ``old`` is the object that it replaces.

    As on a server, rules see the object with the CRD's defaults filled in, and a rule that reads a missing field
    refuses the object. A rule whose ``self`` holds an unknown, or that needs a function the library lacks, is passed
    over. Rules on ``oldSelf`` run only where the old value is found again: under named fields and in lists with keys.
    """
    if cel is not None:
        yield from _walk(spec, _defaulted(spec, value), None if old is None else _defaulted(spec, old), ())


def _walk(spec: Json, value: Any, old: Any, path: PropertyPath) -> Iterator[tuple[PropertyPath, str]]:
    for rule in spec.get("x-kubernetes-validations", ()):
        if not holds_unknown(value) and not _holds(rule["rule"], _as_cel(spec, value), _as_cel(spec, old)):
            yield path, rule.get("message") or f"failed rule: {' '.join(rule['rule'].split())}"
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _walk(_part(spec, name), item, old.get(name) if isinstance(old, dict) else None, (*path, name))
    if isinstance(value, list):
        keys = spec.get("x-kubernetes-list-map-keys", ())
        for i, item in enumerate(value):
            same = None
            if keys and isinstance(old, list) and isinstance(item, dict):
                same = next((other for other in old if all(other.get(key) == item.get(key) for key in keys)), None)
            yield from _walk(spec.get("items", {}), item, same, (*path, i))


def _holds(rule: str, value: Any, old: Any) -> bool:
    context = cel.Context()
    context.add_variable("self", value)
    context.add_function("isURL", lambda written: bool(urlsplit(written).scheme) or written.startswith("/"))
    if re.search(r"\boldSelf\b", rule):
        if old is None:
            return True
        context.add_variable("oldSelf", old)
    try:
        return bool(compiled_rule(rule).execute(context))
    except KeyError:  # a field that is not there
        return False
    except (RuntimeError, TypeError, ValueError):  # a function or type that the library does not know
        return True


@cache
def compiled_rule(rule: str) -> Any:
    """Compile a CEL rule; needs the CEL library."""
    return cel.compile(rule)


def _defaulted(spec: Json, value: Any) -> Any:
    """Fill in defaults below a value; nulls are dropped, as a server drops them where there is a default."""
    if isinstance(value, dict):
        filled = {name: part["default"] for name, part in spec.get("properties", {}).items() if "default" in part}
        filled |= {name: item for name, item in value.items() if item is not None}
        return {name: _defaulted(_part(spec, name), item) for name, item in filled.items()}
    if isinstance(value, list):
        return [_defaulted(spec.get("items", {}), item) for item in value]
    return value


def _as_cel(spec: Json, value: Any) -> Any:
    """A value as a rule sees it: durations as such, and fields named like a CEL keyword between underscores."""
    if isinstance(value, dict):
        escaped = _KEYWORDS & spec.get("properties", {}).keys()
        return {
            f"__{name}__" if name in escaped else name: _as_cel(_part(spec, name), item) for name, item in value.items()
        }
    if isinstance(value, list):
        return [_as_cel(spec.get("items", {}), item) for item in value]
    if isinstance(value, str) and spec.get("format") == "duration" and _DURATION.fullmatch(value):
        parts = re.findall(_PART, value)
        return sum((timedelta(**{_UNITS[unit]: float(number)}) for number, unit in parts), timedelta())
    return value


def _part(spec: Json, name: str) -> Json:
    rest = spec.get("additionalProperties")
    part: Json = spec.get("properties", {}).get(name, rest if isinstance(rest, dict) else {})
    return part


_PART: Final = r"(\d+(?:\.\d+)?)(ms|[smhdw])"
_DURATION: Final = re.compile(f"({_PART})+")
_UNITS: Final = {"ms": "milliseconds", "s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_KEYWORDS: Final = frozenset({
    "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let",
    "loop", "package", "namespace", "return", "var", "void", "while",
})  # fmt: skip
