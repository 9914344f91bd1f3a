"""CustomResourceDefinitions as JSON Schemas: whether an API server would take an object of a custom kind.

``load_crds`` reads a folder; ``CrdSchema.errors`` judges one object. Checked are shape (types, required and unknown
fields, enums, patterns, limits, keys of lists that must be unique) and CEL rules where a CEL library is installed.
Not checked: defaulting, formats, and what a kind's own webhooks refuse. An object may hold unknowns (the engine's
strings, ``UNKNOWN``, any foreign object) and secrets: whatever hangs on an unknown is passed over, the rest is judged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml
from jsonschema import Draft202012Validator, ValidationError
from jsonschema.validators import extend

from training_platform.checks.planning.wire import holds_unknown, readable
from training_platform.sandbox.kubernetes.changes import text
from training_platform.sandbox.kubernetes.schemas import cel_rules
from training_platform.sandbox.kubernetes.values import Json


class Problem(NamedTuple):
    """One refusal: where (a property path, empty for the whole object) and why."""

    path: str
    reason: str

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}" if self.path else self.reason


class CrdSchema:
    """One served version of a custom kind; ``spec`` is the CRD's own OpenAPI schema."""

    def __init__(self, group: str, version: str, kind: str, *, namespaced: bool, spec: Json) -> None:
        self.group, self.version, self.kind = group, version, kind
        self.namespaced = namespaced
        self.spec = spec

    @cached_property
    def json_schema(self) -> Json:
        """The schema as JSON Schema 2020-12."""
        return {"$schema": Draft202012Validator.META_SCHEMA["$id"], **json_schema(self.spec, root=True)}

    def errors(self, obj: Mapping[str, Any], old: Mapping[str, Any] | None = None) -> list[str]:
        """Say what an API server would refuse, one line each; ``old`` is the object that an update replaces."""
        return [str(problem) for problem in self.problems(obj, old)]

    def problems(self, obj: Mapping[str, Any], old: Mapping[str, Any] | None = None) -> list[Problem]:
        """The same by path and reason. As on a server, CEL rules run only on an object of the right shape."""
        value = readable(obj)
        found = sorted(self._misshapen(value))
        if found:
            return found
        broken = cel_rules.broken(self.spec, value, None if old is None else readable(old))
        return sorted(Problem(text(path), reason) for path, reason in broken)

    def _misshapen(self, value: Any) -> Iterator[Problem]:
        for error in self._validator.iter_errors(value):
            if error.validator in _SEEN_FROM_OUTSIDE or not holds_unknown(error.instance):
                yield from _explained(error)

    @cached_property
    def _validator(self) -> Any:
        return _Validator(self.json_schema)


def load_crds(folder: Path) -> dict[tuple[str, str, str], CrdSchema]:
    """Read the schema of every CRD under a folder, by group, version and kind; raises as ``definitions`` does."""
    crds = (crd for definition in definitions(folder) for crd in _versions(definition["spec"]))
    return {(crd.group, crd.version, crd.kind): crd for crd in crds}


def definitions(folder: Path) -> list[Json]:
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


def json_schema(spec: Json, *, root: bool = False, closed: bool = True) -> Json:
    """Turn a CRD's OpenAPI schema into JSON Schema 2020-12.

    Unknown fields are refused where a server would prune or refuse them, but not inside ``anyOf`` and its like, which
    only narrow what stands beside them. The root's ``metadata`` is the server's own and stays open.
    """
    out: Json = {name: spec[name] for name in _KEPT if name in spec}
    for name in ("anyOf", "oneOf", "allOf"):
        if name in spec:
            out[name] = [json_schema(part, closed=False) for part in spec[name]]
    if "not" in spec:
        out["not"] = json_schema(spec["not"], closed=False)
    if isinstance(spec.get("items"), dict):
        out["items"] = json_schema(spec["items"], closed=closed)
    if isinstance(spec.get("additionalProperties"), dict):
        out["additionalProperties"] = json_schema(spec["additionalProperties"], closed=closed)
    if "properties" in spec:
        out["properties"] = {name: json_schema(part, closed=closed) for name, part in spec["properties"].items()}
        preserved = spec.get("x-kubernetes-preserve-unknown-fields", False)
        if closed and not preserved and "additionalProperties" not in spec:
            out["additionalProperties"] = False
    if root:
        out.setdefault("properties", {})["metadata"] = {"type": "object"}
    return _respelt(spec, out)


def _respelt(spec: Json, out: Json) -> Json:
    """Say in JSON Schema what OpenAPI 3.0 and Kubernetes spell otherwise."""
    if spec.get("x-kubernetes-int-or-string"):
        out.pop("type", None)
        out["anyOf"] = [{"type": "integer"}, {"type": "string"}]
    if spec.get("nullable") and "type" in out:
        out["type"] = [out["type"], "null"]
    if "(?i)" in out.get("pattern", ""):
        out["pattern"] = "(?i)" + out["pattern"].replace("(?i)", "")  # Python wants flags first, RE2 does not mind
    for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if spec.get(exclusive) and bound in out:
            out[exclusive] = out.pop(bound)
    if spec.get("x-kubernetes-list-type") == "set":
        out["uniqueItems"] = True
    return out


def _versions(spec: Json) -> Iterator[CrdSchema]:
    for version in spec["versions"]:
        if version["served"]:
            schema = version["schema"]["openAPIV3Schema"]
            namespaced = spec["scope"] == "Namespaced"
            yield CrdSchema(spec["group"], version["name"], spec["names"]["kind"], namespaced=namespaced, spec=schema)


def _explained(error: Any) -> Iterator[Problem]:
    """Put an error in words; a list of missing or unknown fields becomes one problem per field, at that field."""
    path = tuple(error.absolute_path)
    if error.validator == "additionalProperties":
        known = list(error.schema.get("properties", {}))
        for name in sorted(error.instance.keys() - set(known)):
            nearest = get_close_matches(name, known, n=1)
            hint = f"; nearest: {nearest[0]!r}" if nearest else ""
            yield Problem(text((*path, name)), f"unknown field{hint}")
    elif error.validator == "required":
        for name in error.validator_value:
            if name not in error.instance:
                yield Problem(text((*path, name)), "required, but missing")
    elif error.context:
        yield Problem(text(path), " or ".join(dict.fromkeys(part.message for part in error.context)))
    else:
        yield Problem(text(path), error.message)


def _unique_keys(_: Any, keys: list[str], items: Any, schema: Json) -> Iterator[ValidationError]:
    if not isinstance(items, list) or schema.get("type") != "array":
        return
    seen: list[list[Any]] = []
    for i, item in enumerate(items):
        key = [item.get(name) for name in keys] if isinstance(item, dict) else [item]
        if key in seen and not holds_unknown(key):
            error = ValidationError(f"duplicate of another item with the same {', '.join(keys)}")
            error.path.append(i)
            yield error
        seen.append(key)


_KEPT: Final = (
    *("type", "enum", "pattern", "required", "minimum", "maximum", "multipleOf", "uniqueItems"),
    *("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"),
    "x-kubernetes-list-map-keys",
)
# Decided by a container's own type, keys and length, whatever its members turn out to be.
_SEEN_FROM_OUTSIDE: Final = frozenset(
    {
        *("additionalProperties", "required", "minItems", "maxItems", "minProperties", "maxProperties"),
        "x-kubernetes-list-map-keys",  # looks at unknowns itself
    }
)
_KEYWORDS: Final[Mapping[str, Callable[..., Iterable[ValidationError]]]] = {"x-kubernetes-list-map-keys": _unique_keys}
_Validator: Final[Any] = extend(Draft202012Validator, _KEYWORDS)  # type: ignore[no-untyped-call]  # jsonschema's stubs
_Loader: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the same reading, ten times as fast
