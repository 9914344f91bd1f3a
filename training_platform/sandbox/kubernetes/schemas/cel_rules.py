"""The CEL rules of a CRD (``x-kubernetes-validations``), evaluated where a CEL library is installed.

Optional: without the package ``common-expression-language`` nothing is judged. As on a server, rules see the object
with the CRD's defaults filled in, and a rule that reads a field which is not there refuses the object. A rule whose
``self`` holds an unknown, or that needs a function the library lacks, is passed over. Rules on ``oldSelf`` run only
where the old value is found again: under named fields and in lists with keys.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
from collections.abc import Iterator
from datetime import timedelta
from functools import cache
from typing import Any, Final
from urllib.parse import urlsplit

from training_platform.checks.planning.wire import holds_unknown
from training_platform.sandbox.kubernetes.changes import Path
from training_platform.sandbox.kubernetes.values import Json

cel: Any = importlib.import_module("cel") if importlib.util.find_spec("cel") else None


def broken(spec: Json, value: Any, old: Any = None) -> Iterator[tuple[Path, str]]:
    """The path and message of every rule that a readable value breaks; ``old`` is what an update replaces."""
    if cel is not None:
        yield from _walk(spec, _defaulted(spec, value), None if old is None else _defaulted(spec, old), ())


def _walk(spec: Json, value: Any, old: Any, path: Path) -> Iterator[tuple[Path, str]]:
    for rule in spec.get("x-kubernetes-validations", ()):
        if not holds_unknown(value) and not _holds(rule["rule"], _as_cel(spec, value), _as_cel(spec, old)):
            yield path, rule.get("message") or f"failed rule: {' '.join(rule['rule'].split())}"
    if isinstance(value, dict):
        for name, item in value.items():
            part = spec.get("properties", {}).get(name) or spec.get("additionalProperties")
            if isinstance(part, dict):
                yield from _walk(part, item, old.get(name) if isinstance(old, dict) else None, (*path, name))
    if isinstance(value, list) and isinstance(spec.get("items"), dict):
        for i, item in enumerate(value):
            yield from _walk(spec["items"], item, _same_item(spec, item, old), (*path, i))


def _holds(rule: str, value: Any, old: Any) -> bool:
    transition = re.search(r"\boldSelf\b", rule) is not None
    if transition and old is None:
        return True
    context = cel.Context()
    context.add_variable("self", value)
    context.add_function("isURL", _is_url)
    if transition:
        context.add_variable("oldSelf", old)
    try:
        return bool(_compiled(rule).execute(context))
    except KeyError:  # a field that is not there
        return False
    except (RuntimeError, TypeError, ValueError):  # a function or type that the library does not know
        return True


@cache
def _compiled(rule: str) -> Any:
    return cel.compile(rule)


def _defaulted(spec: Json, value: Any) -> Any:
    """Fill in defaults below a value; nulls go, as a server drops them where a default stands."""
    if isinstance(value, dict):
        parts = spec.get("properties", {})
        filled = {name: part["default"] for name, part in parts.items() if "default" in part}
        filled |= {name: item for name, item in value.items() if item is not None}
        rest = spec.get("additionalProperties")
        other = rest if isinstance(rest, dict) else {}
        return {name: _defaulted(parts.get(name, other), item) for name, item in filled.items()}
    if isinstance(value, list):
        return [_defaulted(spec.get("items", {}), item) for item in value]
    return value


def _as_cel(spec: Json, value: Any) -> Any:
    """What a rule sees: durations as such, and fields named like a CEL keyword between underscores."""
    if isinstance(value, dict):
        parts = spec.get("properties", {})
        rest = spec.get("additionalProperties")
        other = rest if isinstance(rest, dict) else {}
        return {
            f"__{name}__" if name in parts and name in _KEYWORDS else name: _as_cel(parts.get(name, other), item)
            for name, item in value.items()
        }
    if isinstance(value, list):
        return [_as_cel(spec.get("items", {}), item) for item in value]
    return _duration(value) if isinstance(value, str) and spec.get("format") == "duration" else value


def _same_item(spec: Json, item: Any, old: Any) -> Any:
    keys = spec.get("x-kubernetes-list-map-keys", ())
    if not keys or not isinstance(old, list) or not isinstance(item, dict):
        return None
    return next((other for other in old if all(other.get(key) == item.get(key) for key in keys)), None)


def _duration(written: str) -> timedelta | str:
    parts = re.findall(r"(\d+(?:\.\d+)?)(ms|[smhdw])", written)
    if not parts or "".join(number + unit for number, unit in parts) != written:
        return written
    return timedelta(**{_UNITS[unit]: float(number) for number, unit in parts})


def _is_url(written: str) -> bool:
    return bool(urlsplit(written).scheme) or written.startswith("/")


_UNITS: Final = {
    "ms": "milliseconds",
    "s": "seconds",
    "m": "minutes",
    "h": "hours",
    "d": "days",
    "w": "weeks",
}
_KEYWORDS: Final = frozenset(
    (
        *("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if"),
        *("import", "let", "loop", "package", "namespace", "return", "var", "void", "while"),
    )
)
