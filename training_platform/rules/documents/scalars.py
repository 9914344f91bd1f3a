"""Checks of strings, numbers and booleans by their documents.

A provider converts strings to numbers and numbers to strings; a Kubernetes API server, which is strict, does not.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache, lru_cache
from ipaddress import ip_address, ip_interface, ip_network
from typing import Any, Final
from zoneinfo import ZoneInfo, available_timezones

from training_platform.rules.documents.problems import Problem, Report, Where, not_one_of, refused

Shape = Mapping[str, Any]
Check = Callable[[Any, Where, Report], None]
Right = type | set[str] | set[int] | range | None
"""Values that are right without a check: all of a class, a set of strings, or the integers of a range."""
WIDTHS: Final[Mapping[str, tuple[int, int]]] = {
    "int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1),
    "uint32": (0, 2**32 - 1), "uint64": (0, 2**64 - 1),
}  # fmt: skip
_SUFFIXED: Final = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))([A-Za-zµ]*)\Z")
_PARTS: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|us|µs|ns|s|m|h)")
_SECONDS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_UNITS: Final = {
    "": 1.0, "m": 1e-3, **{"kMGTPE"[power - 1]: 1000.0**power for power in range(1, 7)},
    **{f"{letter}i": 1024.0**power for power, letter in enumerate("KMGTPE", 1)},
}  # fmt: skip
_REMEMBERED: Final = 4096  # right strings that an input's check keeps
_WHOLE: Final = re.compile(r"-?[0-9]{1,20}\Z")
# The form of resource.Quantity: a signed decimal with a suffix of ten's or two's powers, or an exponent.
_SIGNED: Final = r"^(\+|-)?"  # how the pattern of a CRD's quantities begins, such as bytes
_QUANTITY: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?\Z")


def scalar(shape: Shape, *, strict: bool) -> tuple[Right, Check]:
    """Return the values that are right without a check, and the check of all others."""
    kind = shape["is"]
    if kind == "any":
        return None, lambda _value, _where, _report: None
    if kind == "output":
        return None, _output
    if kind == "flag":
        return bool, _flag(strict=strict)
    if kind in WIDTHS:
        low, high = _bounds(shape)
        right = set(shape["among"]) if "among" in shape else range(low, high + 1)
        return (set() if "step" in shape else right), _integer(shape, strict=strict)
    if kind == "number":
        return (float if len(shape) == 1 else None), _number(shape, strict=strict)
    if kind == "quantity":
        return None, _quantity(shape)
    if kind == "int-or-text":
        return None, _either(shape)
    return _string(shape, strict=strict)


def _output(_value: Any, where: Where, report: Report) -> None:
    report(Problem("unknown", where, "only the API sets this field", "nothing"))


def _flag(*, strict: bool) -> Check:
    def check(value: Any, where: Where, report: Report) -> None:
        if strict or value not in ("true", "false"):
            report(refused("type", where, value, "which is neither true nor false", "true, false"))

    return check


def _bounds(shape: Shape) -> tuple[int, int]:
    low, high = WIDTHS[shape["is"]]
    return max(low, shape.get("least", low)), min(high, shape.get("most", high))


def _integer(shape: Shape, *, strict: bool) -> Check:
    low, high = _bounds(shape)
    among = shape.get("among", ())
    step = shape.get("step", 1)

    def check(value: Any, where: Where, report: Report) -> None:
        number = value
        if number.__class__ is not int:
            if isinstance(value, str) and not strict and _WHOLE.match(value):
                number = int(value)
            elif not (isinstance(value, float) and value.is_integer()):
                report(refused("type", where, value, "which is not an integer", "an integer"))
                return
        if among and number not in among:
            report(refused("range", where, value, "which is not an allowed number", ", ".join(map(str, among))))
        elif not low <= number <= high and number != shape.get("also"):
            _outside(where, value, number, (low, high), report)
        elif number % step:
            report(refused("range", where, value, f"which is not a multiple of {step}", f"a multiple of {step}"))

    return check


def _number(shape: Shape, *, strict: bool) -> Check:
    low = shape.get("least", float("-inf"))
    high = shape.get("most", float("inf"))

    def check(value: Any, where: Where, report: Report) -> None:
        try:
            number = float(value) if isinstance(value, (int, float) if strict else (int, float, str)) else None
        except (ValueError, OverflowError):  # an integer that no double can hold
            number = None
        if number is None or isinstance(value, bool):
            report(refused("type", where, value, "which is not a number", "a number"))
        elif not low <= number <= high and number != shape.get("also"):
            _outside(where, value, number, (low, high), report)

    return check


def _outside(where: Where, value: Any, number: float, bounds: tuple[float, float], report: Report) -> None:
    low, high = bounds
    nearest = low if number < low else high
    allowed = f"{low} to {high}"
    if high in (2**31 - 1, 2**63 - 1, float("inf")) and low > -(2**31):
        allowed = f"at least {low}"
    problem = refused("range", where, value, "which is out of range", allowed)
    report(problem._replace(nearest=str(nearest)))


def _quantity(shape: Shape) -> Check:
    least = shape.get("least", float("-inf"))
    step = shape.get("step")

    def check(value: Any, where: Where, report: Report) -> None:
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not is_number and not (isinstance(value, str) and _QUANTITY.match(value)):
            allowed = "a number, with a unit as in 500m or 16Gi"
            report(refused("format", where, value, "which is not a quantity", allowed))
        elif measured(value)[1] < least:
            report(refused("range", where, value, "which is out of range", f"at least {least}"))
        elif step and (problem := _off_step(str(value), step, where)):
            report(problem)

    return check


def _either(shape: Shape) -> Check:
    width = "int64" if shape.get("pattern", "").startswith(_SIGNED) else "int32"
    bounds = {key: shape[key] for key in ("least", "most") if key in shape}
    pattern = {"pattern": shape["pattern"]} if "pattern" in shape else {}
    check_integer = _integer({"is": width, **bounds}, strict=True)
    _, check_string = _string({"is": "text", **pattern}, strict=True)

    def check(value: Any, where: Where, report: Report) -> None:
        if isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()):
            report(refused("type", where, value, "which is neither an integer nor a string", "an integer, a string"))
        elif isinstance(value, (int, float)):
            check_integer(value, where, report)
        else:
            check_string(value, where, report)

    return check


def _string(shape: Shape, *, strict: bool) -> tuple[Right, Check]:
    values = shape.get("enum", ())
    right = set(values)
    if values and not strict:
        right.add("")
    keeps = not values and not shape.get("format", "").endswith("byte")  # a secret is not kept
    closed = strict or shape.get("closed")
    wrong = None if values else _wrong_form(shape, strict=strict)
    any_case = {name.upper() for name in values} if shape.get("alike") == "case" else set()

    def check(value: Any, where: Where, report: Report) -> None:
        if value.__class__ is str and value in right:
            return
        if not isinstance(value, str):
            if strict or not isinstance(value, (bool, int, float)):
                report(refused("type", where, value, "which is not a string", "a string"))
        elif value.upper() in any_case:
            right.add(value)
        elif values:
            report(not_one_of(where, value, values, closed=closed))
        elif wrong and (problem := wrong(value, where)):
            report(problem)
        elif keeps and len(right) < _REMEMBERED:
            right.add(value)

    return (right if shape.keys() - {"is", "alike"} else str), check


def _wrong_form(shape: Shape, *, strict: bool) -> Callable[[str, Where], Problem | None]:
    pattern = matched(shape["pattern"], whole=not strict) if "pattern" in shape else None
    shortest = shape.get("shortest", 0)
    longest = shape.get("longest", float("inf"))
    span = shape.get("span")
    step = shape.get("step")
    name = shape.get("format", "")
    well_formed, example = FORMS.get(name, (None, ""))
    doubted, better = FORMS.get(shape.get("doubted", ""), (None, ""))
    may_be_empty = not strict and not name.startswith("google-")  # the provider leaves an empty string out
    may_be_link = shape.get("alike") == "link"  # the provider compares only the name at a link's end

    def wrong(value: str, where: Where) -> Problem | None:
        if may_be_link and "/" in value and wrong(value.rpartition("/")[2], where) is None:
            return None
        if well_formed and not well_formed(value) and (value or not may_be_empty):
            written = "not shown" if name.endswith("byte") else value  # as secrets are
            return refused("format", where, written, "which has the wrong form", example)
        if pattern and not pattern(value):
            allowed = f"a string that matches {shape['pattern']}"
            return refused("format", where, value, "which has the wrong form", allowed)
        if not shortest <= len(value) <= longest:
            allowed = f"{shortest} to {longest} characters" if longest < float("inf") else f"at least {shortest}"
            return refused("range", where, value, f"which has {len(value)} characters", allowed)
        if doubted and value and not doubted(value):
            return refused("format", where, value, "which may be refused", better)._replace(severity="warning")
        problem = _outside_span(value, span, where) if span else None
        if problem is None and step:
            problem = _off_step(value, step, where)
        return problem

    return wrong


def _outside_span(value: str, span: list[str], where: Where) -> Problem | None:
    """Return the problem of a duration or a quantity that is out of bounds; None if it is within."""
    low_kind, low = measured(span[0])
    _, high = measured(span[1])
    kind, size = measured(f"{value}0s" if low_kind == "time" and value.endswith("m") else value)  # 5m are minutes here
    if not value or (kind == low_kind and low <= size <= high):
        return None
    return refused("range", where, value, "which is out of range", f"{span[0]} to {span[1]}")


def _off_step(value: str, step: str, where: Where) -> Problem | None:
    """Return the problem of a duration or a quantity that is not a multiple of a step; None if it is one."""
    kind, size = measured(value)
    step_kind, step_size = measured(step)
    if not value or (kind == step_kind and math.isclose(size / step_size, round(size / step_size))):
        return None
    return refused("range", where, value, f"which is not a multiple of {step}", f"a multiple of {step}")


def matched(pattern: str, *, whole: bool) -> Callable[[str], object]:
    """Return a function that matches a pattern: against the ``whole`` string, as Google does, or any part of it."""

    @lru_cache(_REMEMBERED)  # names and labels are repeated
    def match(text: str) -> object:
        return _compiled(pattern).fullmatch(text) if whole else _compiled(pattern).search(text)

    return match


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compile a pattern when it is first used: most inputs of a type are written nowhere. Python wants flags apart."""
    return re.compile(pattern.replace("(?i)", ""), re.IGNORECASE if "(?i)" in pattern else 0)


_GOOGLE_DURATION: Final = re.compile(r"-?[0-9]+(\.[0-9]{1,9})?s\Z")
_PART: Final = r"([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h)"
_GO_DURATION: Final = re.compile(rf"[+-]?(0|({_PART})+)\Z")
_LENGTH: Final = re.compile(r"/([89]|[1-9][0-9])\Z")
_PORTS: Final = re.compile(r"([0-9]{1,5})(?:-([0-9]{1,5}))?\Z")
_BEYOND_RE2: Final = re.compile(r"(?<!\\)(?:\\\\)*(?:\(\?<?[=!]|\\[1-9])")  # looks around, and groups seen before
_HIGHEST_PORT: Final = 65535


def _is_time(value: str) -> bool:
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return False
    return "T" in value.upper()


def _is_base64(value: str) -> bool:
    try:
        base64.b64decode(re.sub(r"[\r\n]", "", value), validate=True)  # lines are joined
    except (binascii.Error, ValueError):
        return False
    return True


def _is_time_zone(value: str) -> bool:
    """Whether the tz database has a zone; any string passes on a machine without the database."""
    try:
        return bool(ZoneInfo(value))
    except (ValueError, OSError, ModuleNotFoundError, KeyError):
        return not available_timezones()


def _is_bucket_name(value: str) -> bool:
    """Whether a bucket may have a name; the docs give one example of the close misspellings that are refused."""
    return not (value.startswith("goog") or "google" in value or "g00gle" in value or _is_address(value))


def _is_network(value: str) -> bool:
    """Whether a string is a range that begins at its first address: ``10.0.0.0/24``, and not ``10.0.0.5/24``."""
    try:
        return "/" in value and bool(ip_network(value))
    except ValueError:
        return False


def _is_cidr(value: str) -> bool:
    """Whether a string is an address with a prefix length, anywhere in the range."""
    try:
        return "/" in value and bool(ip_interface(value))
    except ValueError:
        return False


def _is_json(value: str) -> bool:
    try:
        json.loads(value)
    except ValueError:
        return False
    return True


def _is_block(value: str) -> bool:
    """Whether a string is a range, or the prefix length of one that the API picks."""
    return bool(_LENGTH.match(value)) or _is_cidr(value)


def _is_address(value: str) -> bool:
    try:
        return bool(ip_address(value))
    except ValueError:
        return False


def _are_ports(value: str) -> bool:
    match = _PORTS.match(value)
    return match is not None and int(match[1]) <= int(match[2] or match[1]) <= _HIGHEST_PORT


def _is_re2(value: str) -> bool:
    """Whether Go's and Google's RE2 may read an expression; what only they know passes."""
    if _BEYOND_RE2.search(value):
        return False
    try:
        re.compile(value)
    except re.error as error:
        return not str(error.msg).startswith(
            ("missing )", "unbalanced", "unterminated", "nothing to repeat", "bad char")
        )
    return True


FORMS: Final[Mapping[str, tuple[Callable[[str], object], str]]] = {
    "address": (_is_address, "an address such as 10.0.0.5"),
    "alias": (
        lambda value: _is_block(value) or _is_address(value),
        "an address, a range such as 10.0.0.0/24, or a length such as /24",
    ),
    "block": (_is_block, "a range such as 10.0.0.0/24, or a length such as /24"),
    "bucket-name": (_is_bucket_name, "a name that does not start with goog or contain google, and no address"),
    "byte": (_is_base64, "a base64 string"),
    "cidr": (_is_cidr, "a range such as 10.0.0.0/24"),
    "cluster-ip": (lambda value: value in ("None", "") or _is_address(value), "an address such as 10.0.0.5, or None"),
    "date-time": (_is_time, "a time such as 2026-01-03T06:00:00Z"),
    "duration": (_GO_DURATION.match, "a duration with its unit, such as 30s or 1h30m"),
    "google-byte": (  # of either alphabet, padded or not
        lambda value: _is_base64(value.replace("-", "+").replace("_", "/") + "=" * (-len(value) % 4)),
        "a base64 string",
    ),
    "google-datetime": (_is_time, "a time such as 2026-01-03T06:00:00Z"),
    "google-duration": (_GOOGLE_DURATION.match, "seconds and an s, such as 3600s"),
    "json": (_is_json, "a JSON string"),
    "network": (_is_network, "a range that begins at its first address, such as 10.0.0.0/24"),
    "pod-range": (lambda value: not value.startswith("255.255."), "a range outside of 255.255.0.0/16"),
    "ports": (_are_ports, "a port up to 65535, or a range of ports such as 8000-8100"),
    "range": (
        lambda value: _is_network(value) or _is_address(value),
        "a range that begins at its first address, such as 10.0.0.0/24, or an address",
    ),
    "re2": (_is_re2, "a regular expression of RE2: balanced brackets, no lookaround"),
    "single-domain": (lambda value: not value.startswith("*"), "a domain without *"),
    "time-zone": (_is_time_zone, "a zone of the tz database, such as Europe/Berlin"),
}


def measured(value: Any) -> tuple[str | None, float]:
    """Return the kind of a value that can be compared, and its size: a number or quantity, a duration, or a moment."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return "number", float(value)
    if not isinstance(value, str):
        return None, 0.0
    if value and _PARTS.sub("", value) == "" and not value.endswith("m"):  # 500m may be half a CPU
        return "time", sum(float(number) * _SECONDS[unit] for number, unit in _PARTS.findall(value))
    match = _SUFFIXED.match(value)
    if match and match[2] in _UNITS:
        return "number", float(match[1]) * _UNITS[match[2]]
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None, 0.0
    return "moment", moment.replace(tzinfo=moment.tzinfo or UTC).timestamp()
