"""Checks strings, numbers and booleans against their documents.

A provider converts strings to numbers and numbers to strings. A Kubernetes API server does not; its checks are
``strict``.
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

from training_platform.rules.documents.constraints import FREE, Constraint, Shape
from training_platform.rules.documents.problems import BrokenConstraint, Reporter, Where, not_one_of, refused

InputCheck = Callable[[Any, Where, Reporter], None]
SoundValues = type | set[str] | set[int] | range | None
"""Values known to be valid: all instances of a class, a set of strings, or the integers of a range. None means none."""
WIDTHS: Final[Mapping[str, tuple[int, int]]] = {
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint32": (0, 2**32 - 1),
    "uint64": (0, 2**64 - 1),
}
_NUMBER_AND_UNIT: Final = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))([A-Za-zµ]*)\Z")
_TIME_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|us|µs|ns|s|m|h)")
_SECONDS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_UNITS: Final = {
    "": 1.0,
    "m": 1e-3,
    **{letter: 1000.0**power for power, letter in enumerate("kMGTPE", 1)},
    **{f"{letter}i": 1024.0**power for power, letter in enumerate("KMGTPE", 1)},
}
_CACHE_SIZE: Final = 4096  # strings for each input
_INTEGER: Final = re.compile(r"-?[0-9]{1,20}\Z")
_SIGNED_PATTERN: Final = r"^(\+|-)?"  # the start of the pattern of a CRD's quantities, such as bytes
# The form of resource.Quantity: a signed decimal with a suffix for powers of 10 or 2, or with an exponent.
_QUANTITY: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?\Z")


def scalar(shape: Shape, *, strict: bool) -> tuple[SoundValues, InputCheck]:
    """Return the values that are known to be valid, and the check for all other values."""
    match shape.kind:
        case "any":
            return None, lambda _value, _where, _report: None
        case "output":
            return None, _output
        case "flag":
            return bool, _flag(strict=strict)
        case "number":
            return (float if shape.limits == FREE else None), _number(shape.limits, strict=strict)
        case "quantity":
            return None, _quantity(shape.limits)
        case "int-or-text":
            return None, _integer_or_string(shape.limits)
        case kind if kind in WIDTHS:
            return _right_integers(shape), _integer(shape, strict=strict)
        case _:
            return _string(shape.limits, strict=strict)


def _right_integers(shape: Shape) -> SoundValues:
    """Return the integers that are known to be valid. If they must be multiples of a number, each one is checked."""
    if shape.limits.multiple_of is not None:
        return set[int]()
    if shape.limits.enum is not None:
        return set(shape.limits.enum)
    low, high = _bounds(shape)
    return range(low, high + 1)


def _output(_value: Any, where: Where, report: Reporter) -> None:
    report(BrokenConstraint("unknown", where, message="only the API sets this field", allowed="nothing"))


def _flag(*, strict: bool) -> InputCheck:
    def check(value: Any, where: Where, report: Reporter) -> None:
        if strict or value not in ("true", "false"):
            report(refused("type", where, value, "which is neither true nor false", "true, false"))

    return check


def _bounds(shape: Shape) -> tuple[int, int]:
    lowest, highest = WIDTHS[shape.kind]
    low, high = _numbers(shape.limits, lowest, highest)
    return max(lowest, low), min(highest, high)


def _numbers(limits: Constraint, lowest: Any, highest: Any) -> tuple[Any, Any]:
    """Return the bounds for numbers. Bounds with a unit apply only to strings."""
    low = lowest if limits.minimum is None or isinstance(limits.minimum, str) else limits.minimum
    high = highest if limits.maximum is None or isinstance(limits.maximum, str) else limits.maximum
    return low, high


def _integer(shape: Shape, *, strict: bool) -> InputCheck:
    low, high = _bounds(shape)
    among = shape.limits.enum or ()
    also_allowed = shape.limits.also_allowed
    step: Any = shape.limits.multiple_of or 1

    def check(value: Any, where: Where, report: Reporter) -> None:
        number = _as_integer(value, strict=strict)
        if number is None:
            report(refused("type", where, value, "which is not an integer", "an integer"))
            return
        if among and number not in among:
            report(refused("range", where, value, "which is not an allowed number", ", ".join(map(str, among))))
        elif not low <= number <= high and number != also_allowed:
            _outside(where, value, number, (low, high), report)
        elif number % step:
            report(refused("range", where, value, f"which is not a multiple of {step}", f"a multiple of {step}"))

    return check


def _as_integer(value: Any, *, strict: bool) -> int | None:
    """Return the integer that a server or provider reads, or None if the value is not an integer.

    8.0 is an integer, and a bool is not.
    """
    if value.__class__ is int:
        return int(value)
    if isinstance(value, str) and not strict and _INTEGER.match(value):
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return None


def _number(limits: Constraint, *, strict: bool) -> InputCheck:
    low, high = _numbers(limits, float("-inf"), float("inf"))

    def check(value: Any, where: Where, report: Reporter) -> None:
        number = _as_number(value, strict=strict)
        if number is None:
            report(refused("type", where, value, "which is not a number", "a number"))
        elif not low <= number <= high and number != limits.also_allowed:
            _outside(where, value, number, (low, high), report)

    return check


def _as_number(value: Any, *, strict: bool) -> float | None:
    """Return the number that a server or provider reads, or None if the value is not a number."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    if strict and isinstance(value, str):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):  # the latter for an integer beyond a double
        return None


def _outside(where: Where, value: Any, number: float, bounds: tuple[float, float], report: Reporter) -> None:
    low, high = bounds
    nearest = low if number < low else high
    allowed = f"{low} to {high}"
    if high in (2**31 - 1, 2**63 - 1, float("inf")) and low > -(2**31):
        allowed = f"at least {low}"
    problem = refused("range", where, value, "which is out of range", allowed)
    report(problem._replace(nearest=str(nearest)))


def _quantity(limits: Constraint) -> InputCheck:
    minimum, _ = _numbers(limits, float("-inf"), float("inf"))
    step = limits.multiple_of

    def check(value: Any, where: Where, report: Reporter) -> None:
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not is_number and not (isinstance(value, str) and _QUANTITY.match(value)):
            allowed = "a number, with a unit as in 500m or 16Gi"
            report(refused("format", where, value, "which is not a quantity", allowed))
        elif measured(value)[1] < minimum:
            report(refused("range", where, value, "which is out of range", f"at least {minimum}"))
        elif step:
            problem = _off_step(str(value), str(step), where)
            if problem:
                report(problem)

    return check


def _integer_or_string(limits: Constraint) -> InputCheck:
    bounds = Constraint(minimum=limits.minimum, maximum=limits.maximum)
    is_signed = (limits.pattern or "").startswith(_SIGNED_PATTERN)
    check_integer = _integer(Shape(kind="int64" if is_signed else "int32", limits=bounds), strict=True)
    _, check_string = _string(Constraint(pattern=limits.pattern), strict=True)

    def check(value: Any, where: Where, report: Reporter) -> None:
        if isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()):
            report(refused("type", where, value, "which is neither an integer nor a string", "an integer, a string"))
        elif isinstance(value, (int, float)):
            check_integer(value, where, report)
        else:
            check_string(value, where, report)

    return check


def _string(limits: Constraint, *, strict: bool) -> tuple[SoundValues, InputCheck]:
    if limits.enum:
        return _choice(limits, strict=strict)
    if limits._replace(alike=None) == FREE:
        return str, _plain_string(strict=strict)
    right: set[str] = set()  # strings that were checked before, by all objects
    may_cache = not (limits.format or "").endswith("byte")  # no secret is kept
    check_type = _plain_string(strict=strict)
    wrong_form = _wrong_form(limits, strict=strict)

    def check(value: Any, where: Where, report: Reporter) -> None:
        if isinstance(value, int) and not isinstance(value, bool) and not strict:
            value = str(value)  # as the provider converts it: 86400 is no duration
        if not isinstance(value, str):
            check_type(value, where, report)
            return
        if value in right:
            return
        problem = wrong_form(value, where)
        if problem:
            report(problem)
        elif may_cache and len(right) < _CACHE_SIZE:
            right.add(value)

    return right, check


def _plain_string(*, strict: bool) -> InputCheck:
    def check(value: Any, where: Where, report: Reporter) -> None:
        converted = not strict and isinstance(value, (bool, int, float))
        if not isinstance(value, str) and not converted:
            report(refused("type", where, value, "which is not a string", "a string"))

    return check


def _choice(limits: Constraint, *, strict: bool) -> tuple[SoundValues, InputCheck]:
    """Return the values of an enum and the check for all other values."""
    values = limits.enum or ()
    right = set(values)
    if not strict:
        right.add("")  # the provider leaves an empty string out
    any_case = {name.upper() for name in values} if limits.alike == "case" else set()
    closed = strict or limits.closed
    check_type = _plain_string(strict=strict)

    def check(value: Any, where: Where, report: Reporter) -> None:
        if not isinstance(value, str):
            check_type(value, where, report)
        elif value not in right and value.upper() not in any_case:
            report(not_one_of(where, value, values, closed=closed))

    return right, check


def _wrong_form(limits: Constraint, *, strict: bool) -> Callable[[str, Where], BrokenConstraint | None]:
    pattern = matched(limits.pattern, whole=not strict) if limits.pattern is not None else None
    shortest = limits.min_length or 0
    longest = float("inf") if limits.max_length is None else limits.max_length
    span = (limits.minimum, limits.maximum) if isinstance(limits.minimum, str) else None
    step = limits.multiple_of
    name = limits.format or ""
    well_formed, example = FORMS.get(name, (None, ""))
    accepted_everywhere, better_example = FORMS.get(limits.doubted_format or "", (None, ""))
    may_be_empty = not strict and not name.startswith("google-")  # the provider leaves an empty string out
    may_be_link = limits.alike == "link"  # the provider compares only the name at a link's end

    def problem_of(value: str, where: Where) -> BrokenConstraint | None:
        if may_be_link and "/" in value and problem_of(value.rpartition("/")[2], where) is None:
            return None
        if well_formed and not well_formed(value) and (value or not may_be_empty):
            shown = "not shown" if name.endswith("byte") else value  # it may be a secret
            return refused("format", where, shown, "which has the wrong form", example)
        if pattern and not pattern(value):
            allowed = f"a string that matches {limits.pattern}"
            return refused("format", where, value, "which has the wrong form", allowed)
        if not shortest <= len(value) <= longest:
            allowed = f"{shortest} to {longest} characters" if longest < float("inf") else f"at least {shortest}"
            return refused("range", where, value, f"which has {len(value)} characters", allowed)
        if accepted_everywhere and value and not accepted_everywhere(value):
            problem = refused("format", where, value, "which may be refused", better_example)
            return problem._replace(severity="warning")
        problem_of_span = _outside_span(value, span, where) if span else None
        if problem_of_span is None and step:
            return _off_step(value, str(step), where)
        return problem_of_span

    return problem_of


def _outside_span(value: str, span: tuple[Any, Any], where: Where) -> BrokenConstraint | None:
    """Return the problem of a duration or a quantity that is out of bounds, or None."""
    low_kind, low = measured(span[0])
    _, high = measured(span[1])
    text = value
    if low_kind == "time" and value.endswith("m"):
        text = f"{value}0s"  # 5m are minutes here, and not thousandths
    kind, size = measured(text)
    if not value or (kind == low_kind and low <= size <= high):
        return None
    return refused("range", where, value, "which is out of range", f"{span[0]} to {span[1]}")


def _off_step(value: str, step: str, where: Where) -> BrokenConstraint | None:
    """Return the problem of a duration or a quantity that is not a multiple of a step, or None."""
    kind, size = measured(value)
    step_kind, step_size = measured(step)
    if not value or (kind == step_kind and math.isclose(size / step_size, round(size / step_size))):
        return None
    return refused("range", where, value, f"which is not a multiple of {step}", f"a multiple of {step}")


def matched(pattern: str, *, whole: bool) -> Callable[[str], object]:
    """Return a function that matches a pattern against the ``whole`` string, as Google does, or against any part."""

    @lru_cache(_CACHE_SIZE)  # names and labels are repeated
    def match(text: str) -> object:
        if whole:
            return _compiled(pattern).fullmatch(text)
        return _compiled(pattern).search(text)

    return match


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Return a compiled pattern. Patterns are compiled at their first use, because stacks set few inputs.

    Python needs the flag ``(?i)`` as a separate argument.
    """
    flags = re.IGNORECASE if "(?i)" in pattern else 0
    return re.compile(pattern.replace("(?i)", ""), flags)


_GOOGLE_DURATION: Final = re.compile(r"-?[0-9]+(\.[0-9]{1,9})?s\Z")
_GO_PART: Final = r"([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h)"
_GO_DURATION: Final = re.compile(rf"[+-]?(0|({_GO_PART})+)\Z")
_PREFIX_LENGTH: Final = re.compile(r"/([89]|[1-9][0-9])\Z")
_PORTS: Final = re.compile(r"([0-9]{1,5})(?:-([0-9]{1,5}))?\Z")
_BEYOND_RE2: Final = re.compile(r"(?<!\\)(?:\\\\)*(?:\(\?<?[=!]|\\[1-9])")  # lookaround, and back-references
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


def _is_google_base64(value: str) -> bool:
    """Return True if a string is base64 in either alphabet, with or without padding."""
    padded = value + "=" * (-len(value) % 4)
    return _is_base64(padded.replace("-", "+").replace("_", "/"))


def _is_time_zone(value: str) -> bool:
    """Return True if the tz database contains a time zone. If the database is missing, every string is accepted."""
    try:
        return bool(ZoneInfo(value))
    except (ValueError, OSError, ModuleNotFoundError, KeyError):
        return not available_timezones()


def _is_bucket_name(value: str) -> bool:
    """Return True if a bucket may have this name. The docs name only one refused misspelling of google, g00gle."""
    reserved = value.startswith("goog") or "google" in value or "g00gle" in value
    return not reserved and not _is_address(value)


def _is_network(value: str) -> bool:
    """Return True if a string is a range that begins at its first address: ``10.0.0.0/24``, but not ``10.0.0.5/24``."""
    try:
        return "/" in value and bool(ip_network(value))
    except ValueError:
        return False


def _is_cidr(value: str) -> bool:
    """Return True if a string is an address with a prefix length. The address may be anywhere in the range."""
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
    """Return True if a string is a range, or only the prefix length of a range that the API chooses."""
    return bool(_PREFIX_LENGTH.match(value)) or _is_cidr(value)


def _is_address(value: str) -> bool:
    try:
        return bool(ip_address(value))
    except ValueError:
        return False


def _are_ports(value: str) -> bool:
    match = _PORTS.match(value)
    return match is not None and int(match[1]) <= int(match[2] or match[1]) <= _HIGHEST_PORT


_INVALID_IN_RE2: Final = ("missing )", "unbalanced", "unterminated", "nothing to repeat", "bad char")
"""Beginnings of messages of Python's ``re``, for errors that RE2 reports too."""


def _is_re2(value: str) -> bool:
    """Return True if RE2, the syntax of Go and Google, may accept an expression. Syntax unique to RE2 is accepted."""
    if _BEYOND_RE2.search(value):
        return False
    try:
        re.compile(value)
    except re.error as error:
        return not str(error.msg).startswith(_INVALID_IN_RE2)
    return True


FORMS: Final[Mapping[str, tuple[Callable[[str], object], str]]] = {
    "address": (_is_address, "an address such as 10.0.0.5"),
    "alias": (
        lambda value: _is_block(value) or _is_address(value),
        "an address, a range such as 10.0.0.0/24, or a length such as /24",
    ),
    "block": (_is_block, "a range such as 10.0.0.0/24, or a length such as /24"),
    "bucket-name": (
        _is_bucket_name,
        "a name that does not start with goog, does not contain google, and is not an address",
    ),
    "byte": (_is_base64, "a base64 string"),
    "cidr": (_is_cidr, "a range such as 10.0.0.0/24"),
    "cluster-ip": (lambda value: value in ("None", "") or _is_address(value), "an address such as 10.0.0.5, or None"),
    "date-time": (_is_time, "a time such as 2026-01-03T06:00:00Z"),
    "duration": (_GO_DURATION.match, "a duration with its unit, such as 30s or 1h30m"),
    "google-byte": (_is_google_base64, "a base64 string"),
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
    """Return the kind and the size of a value that can be compared: a number or quantity, a duration, or a time."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return "number", float(value)
    if not isinstance(value, str):
        return None, 0.0
    is_duration = value != "" and _TIME_PART.sub("", value) == ""
    if is_duration and not value.endswith("m"):  # 500m may be half a CPU
        return "time", sum(float(number) * _SECONDS[unit] for number, unit in _TIME_PART.findall(value))
    match = _NUMBER_AND_UNIT.match(value)
    if match and match[2] in _UNITS:
        return "number", float(match[1]) * _UNITS[match[2]]
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None, 0.0
    return "moment", moment.replace(tzinfo=moment.tzinfo or UTC).timestamp()
