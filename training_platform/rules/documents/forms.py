"""Forms of texts that a pattern does not tell: times and zones, ranges of addresses and ports, regular expressions."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from ipaddress import ip_address, ip_interface, ip_network
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

_SECONDS: Final = re.compile(r"-?[0-9]+(\.[0-9]{1,9})?s\Z")
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
    """Whether the tz database has a zone; on a machine without one every text is."""
    try:
        return bool(ZoneInfo(value))
    except (ValueError, OSError, ModuleNotFoundError, KeyError):
        return not available_timezones()


def _is_network(value: str) -> bool:
    """Whether a text is a range of addresses that begins at its first one: ``10.0.0.0/24``, and not ``10.0.0.5/24``."""
    try:
        return "/" in value and bool(ip_network(value))
    except ValueError:
        return False


def _is_cidr(value: str) -> bool:
    """Whether a text is an address with the length of its range, wherever in the range the address is."""
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


def _is_range(value: str) -> bool:
    """Whether a text is a range of addresses, or one address."""
    return _is_network(value) or _is_address(value)


def _is_block(value: str) -> bool:
    """Whether a text is a range, or the length of one that the API picks."""
    return bool(_LENGTH.match(value)) or _is_cidr(value)


def _is_alias(value: str) -> bool:
    return _is_block(value) or _is_address(value)


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
    "alias": (_is_alias, "an address, a range such as 10.0.0.0/24, or a length such as /24"),
    "block": (_is_block, "a range such as 10.0.0.0/24, or a length such as /24"),
    "byte": (_is_base64, "a text in base64"),
    "cidr": (_is_cidr, "a range such as 10.0.0.0/24"),
    "cluster-ip": (lambda value: value in ("None", "") or _is_address(value), "an address such as 10.0.0.5, or None"),
    "date-time": (_is_time, "a time such as 2026-01-03T06:00:00Z"),
    "duration": (_GO_DURATION.match, "a duration with its unit, such as 30s or 1h30m"),
    "google-datetime": (_is_time, "a time such as 2026-01-03T06:00:00Z"),
    "google-duration": (_SECONDS.match, "seconds and an s, such as 3600s"),
    "json": (_is_json, "a text in JSON"),
    "network": (_is_network, "a range that begins at its first address, such as 10.0.0.0/24"),
    "ports": (_are_ports, "a port up to 65535, or the lower and the higher one of a range, such as 8000-8100"),
    "range": (_is_range, "a range that begins at its first address, such as 10.0.0.0/24, or an address"),
    "re2": (_is_re2, "a regular expression of RE2, which has balanced brackets and does not look around"),
    "single-domain": (lambda value: not value.startswith("*"), "a domain without *"),
    "time-zone": (_is_time_zone, "a zone of the tz database, such as Europe/Berlin"),
}
