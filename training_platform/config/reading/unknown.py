"""The placeholder for values that are known only after a deployment, and a test whether a value contains it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


class Unknown:
    """A value that is known only after a deployment. Its only instance is ``UNKNOWN``."""

    def __repr__(self) -> str:
        """Return the word that reports use."""
        return "unknown"

    def __reduce__(self) -> str:
        """Return its name, so that another process unpickles its own instance."""
        return "UNKNOWN"

    def __copy__(self) -> Unknown:
        """Return itself, since there is only one instance."""
        return self

    def __deepcopy__(self, _memo: object) -> Unknown:
        """Return itself, since there is only one instance."""
        return self


UNKNOWN: Any = Unknown()  # so that it can replace a value of any type


def holds_unknown(value: Any) -> bool:
    """Return True if a value is unknown, or contains an unknown value."""
    if isinstance(value, Mapping):
        return any(holds_unknown(item) for item in value.values())
    return value is UNKNOWN or (is_list(value) and any(holds_unknown(item) for item in value))


def is_list(value: Any) -> bool:
    """Return True if a value is a list or tuple."""
    kind = value.__class__
    if kind is list or kind is tuple:
        return True
    return not isinstance(value, (dict, str)) and isinstance(value, Sequence)
