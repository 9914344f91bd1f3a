"""Functions that read planned inputs: nested values, numbers as floats or strings, blocks as mappings or lists.

Values may be unknown. No provider accepts a value of the wrong type. Such a value is also read as ``UNKNOWN``, so that
it is reported as not evaluated instead of raising an exception.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, TypeVar

from training_platform.config.reading.unknown import UNKNOWN, is_list

Keys = tuple[str | int, ...]
T = TypeVar("T")
_QUANTITY = re.compile(r"(-?[0-9]{1,19})(k|M|G|Ki|Mi|Gi)?\Z")
_SUFFIXES = {None: 1, "k": 10**3, "M": 10**6, "G": 10**9, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}
_LARGEST = 2**63  # the range of an API's integer
_DIGITS = len(str(-_LARGEST))
_SECONDS = re.compile(r"([0-9]{1,19})s\Z")


class NotKnownError(Exception):
    """A field depends on a value that is unknown before deployment."""


def known(value: T) -> T:
    """Return a value. Raises NotKnownError for ``UNKNOWN``."""
    if value is UNKNOWN:
        raise NotKnownError
    return value


@cache
def keys(path: str) -> Keys:
    """Return the keys in a path such as ``nodeConfig.reservationAffinity.values.0``."""
    return tuple(int(part) if part.isdecimal() else part for part in path.split("."))


def at(value: Any, path: Keys) -> Any:
    """Return the value at a path, or None if it is missing. For a list, a key is looked up in its first entry."""
    for key in path:
        if not isinstance(value, dict):
            if value is None or value is UNKNOWN:
                return value
            if is_list(value):
                index = key if isinstance(key, int) else 0
                value = value[index] if index < len(value) else None
                if isinstance(key, int) or value is None or value is UNKNOWN:
                    continue
            if not isinstance(value, Mapping):
                return None
        value = value.get(key)
    return value


def rows(value: Any) -> Sequence[Any]:
    """Return the entries of a list. Any other value, even an unknown one, is returned as the only entry of a list."""
    if value is None:
        return ()
    return value if is_list(value) else (value,)


def unrolled(inputs: Any, path: Sequence[str]) -> Iterator[Any]:
    """Yield a copy of the inputs for each entry of the lists along a path, with the entry in place of the list."""
    if not path or inputs is UNKNOWN:
        yield inputs
    elif isinstance(inputs, Mapping):
        for entry in rows(inputs.get(path[0])):
            for below in unrolled(entry, path[1:]):
                yield {**inputs, path[0]: below}


def as_text(value: Any) -> Any:
    """Return a string or None."""
    return value if value is None or isinstance(value, str) else UNKNOWN


def as_name(value: Any) -> Any:
    """Return the name at the end of a resource's path. Some fields accept both a name and a path."""
    return value.rpartition("/")[2] if isinstance(value, str) else as_text(value)


def as_flag(value: Any) -> Any:
    """Return a boolean or None."""
    return value if value is None or isinstance(value, bool) else UNKNOWN


def as_whole(value: Any) -> Any:
    """Return an integer or None. Integers are floats in JSON, and Vertex AI's replica counts are strings."""
    if value is None:
        return None
    if isinstance(value, str):
        number = int(value) if len(value) <= _DIGITS and value.removeprefix("-").isdecimal() else UNKNOWN
    elif isinstance(value, float):
        number = int(value) if value.is_integer() else UNKNOWN
    else:
        number = value if isinstance(value, int) and not isinstance(value, bool) else UNKNOWN
    return number if number is UNKNOWN or abs(number) <= _LARGEST else UNKNOWN


def as_number(value: Any) -> Any:
    """Return a number or None."""
    if value is None or (isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= _LARGEST):
        return value
    return UNKNOWN


def as_quantity(value: Any) -> Any:
    """Return a Kubernetes quantity as an integer."""
    match = _QUANTITY.match(value) if isinstance(value, str) else None
    return as_whole(int(match[1]) * _SUFFIXES[match[2]]) if match else as_whole(value)


def as_seconds(value: Any) -> Any:
    """Return the number of seconds in a string such as ``3600s``, or None if it is missing.

    Return -1 for a string that is not a duration, which a rule then reports.
    """
    if not isinstance(value, str):
        return as_text(value)
    match = _SECONDS.match(value)
    return int(match[1]) if match else -1


def as_texts(value: Any) -> Any:
    """Return a list of strings as a tuple, which is empty if the list is missing."""
    if value is None:
        return ()
    return tuple(value) if is_list(value) and all(isinstance(item, str) for item in value) else UNKNOWN


def as_labels(value: Any) -> Any:
    """Return a mapping of strings, or None if it is missing. It is unknown if any of its values is unknown."""
    if value is None:
        return None
    if not isinstance(value, Mapping):
        return UNKNOWN
    for item in value.values():
        if not isinstance(item, str):
            return UNKNOWN
    return value if isinstance(value, dict) else dict(value)


def as_count(value: Any) -> Any:
    """Return the number of entries in a list or a mapping, or 0 if it is missing."""
    if value is None:
        return 0
    return len(value) if isinstance(value, Mapping) or is_list(value) else UNKNOWN


def is_written(value: Any) -> Any:
    """Whether a value is set."""
    return UNKNOWN if value is UNKNOWN else value is not None


def any_of(*flags: Any) -> Any:
    """Return True if any of several flags is set. The result is unknown if none is set and one of them is unknown."""
    if True in flags:
        return True
    return UNKNOWN if UNKNOWN in flags else False
