"""CustomResourceDefinitions: whether an API server would take an object of a custom kind.

``load_crds`` reads a folder; ``CrdSchema.errors`` judges one object: its shape (types, required and unknown fields,
enums, patterns, limits, forms, keys of lists that must be unique) as the rules judge documents. CEL rules and a kind's
own webhooks are left to real API servers. An object may hold unknowns (the engine's strings, ``UNKNOWN``, any foreign
object) and secrets: a constraint that depends on an unknown is passed over, the others are checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

from training_platform.catalog.types import Json
from training_platform.parts.sandbox.kubernetes.object_store import text
from training_platform.parts.sandbox.kubernetes.wire import readable
from training_platform.rules.documents.openapi import OPEN, KindReader, Shapes
from training_platform.rules.documents.problems import Problem
from training_platform.rules.documents.shapes import Check, Documents


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

    def errors(self, obj: Mapping[str, Any]) -> list[str]:
        """Return what an API server would refuse, one line each."""
        return [str(failure) for failure in self.failures(obj)]

    def failures(self, obj: Mapping[str, Any]) -> list[Failure]:
        """The same by path and reason."""
        return failures_by(self._judge, readable(obj))

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
