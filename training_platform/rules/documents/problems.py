"""Broken constraints on a value in an object: its path, the error, and what its document allows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from training_platform.catalog.nearest import find_nearest
from training_platform.config.reading.finding import Severity
from training_platform.config.reading.secrets import HIDDEN, can_be_secret

ConstraintKind = Literal["enum", "format", "range", "required", "type", "unknown"]
Where = tuple[Any, ...]  # empty for the object, else the Where of the block or list around the value, and its key
OLDER_PROVIDER = "pulumi-gcp 9.35"  # of google-beta 7.45, the newest source at hand: of provider.json
_LISTED = 12  # names of a block that a message lists; of a larger one these
_LONGEST = 60  # letters of a value in a message


class BrokenConstraint(NamedTuple):
    """One broken constraint: its kind, the input, the error, and what is allowed."""

    kind: ConstraintKind
    where: Where
    message: str
    allowed: str | None = None
    nearest: str | None = None
    severity: Severity = "error"

    @property
    def keys(self) -> tuple[Any, ...]:
        """The keys and list indices that lead to the input."""
        return keys_of(self.where)

    @property
    def path(self) -> str:
        """The input's path in the form that programs use: ``nodeConfig.taints[0].effect``."""
        return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in self.keys).removeprefix(".")


Reporter = Callable[[BrokenConstraint], None]


def keys_of(where: Where) -> tuple[Any, ...]:
    """Return the keys and list indices that lead to an input."""
    keys: list[Any] = []
    while where:
        where, key = where
        keys.append(key)
    return tuple(reversed(keys))


def _input_name(where: Where) -> str:
    """Return the name of an input, with the index of its entry. A key may contain dots."""
    if not where:
        return "the object"
    holder, key = where
    return f"{_input_name(holder) if holder else ''}[{key}]" if isinstance(key, int) else str(key)


def refused(kind: ConstraintKind, where: Where, value: Any, why: str, allowed: str) -> BrokenConstraint:
    """Return the problem of a refused value. ``why`` continues a sentence that begins with the input and its value."""
    message = f"{_input_name(where)} is {shown(value, where)}, {why}"
    return BrokenConstraint(kind, where, message=message, allowed=allowed)


def shown(value: Any, where: Where) -> str:
    """Return a value for a message. A long value is cut, and a value that may be a secret is hidden."""
    if isinstance(value, (Mapping, list, tuple)):
        return "a mapping" if isinstance(value, Mapping) else "a list"
    if can_be_secret(keys_of(where)):
        return HIDDEN
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def unknown(where: Where, key: str, names: Iterable[str], *, closed: bool) -> BrokenConstraint:
    """Return the problem of an unknown input. It is an error if it seems misspelled or the document is ``closed``."""
    inputs = sorted(names)
    nearest = find_nearest(key, inputs)
    message = f"{_input_name(where)} has no {key}"
    severity: Severity = "error"
    if not closed and nearest is None:
        message += " in the documents of this version, so this input is not checked"
        severity = "warning"
    listed = inputs if len(inputs) <= _LISTED else [*inputs[:_LISTED], f"and {len(inputs) - _LISTED} more"]
    return BrokenConstraint(
        "unknown", (where, key), message=message, allowed=", ".join(listed), nearest=nearest, severity=severity
    )


def not_one_of(where: Where, value: str, values: Sequence[str], *, closed: bool | None) -> BrokenConstraint:
    """Return the problem of a string that is not in an enum. The API may have newer values than the enum.

    ``closed`` is True for a complete list. It is False for a list from the provider's source, which is older than the
    pinned version, and None for a document's list.
    """
    allowed = [name for name in values if not name.endswith("_UNSPECIFIED")]
    nearest = find_nearest(value, allowed)
    # With other digits a value is another model, which may be newer; with other letters it is misspelt.
    error = closed or (nearest is not None and _digits(value) == _digits(nearest))
    verb = "does not take" if error else "is not known to take"
    older = "" if error or closed is None else f": {OLDER_PROVIDER} refuses this value; the pinned version was not read"
    message = f"{_input_name(where)} {verb} {shown(value, where)}{older}"
    return BrokenConstraint(
        "enum",
        where,
        message=message,
        allowed=", ".join(allowed),
        nearest=nearest,
        severity="error" if error else "warning",
    )


def _digits(text: str) -> list[str]:
    return [letter for letter in text if letter.isdigit()]


def missing(where: Where, key: str) -> BrokenConstraint:
    """Return the problem of a required input that is missing."""
    return BrokenConstraint(
        "required", (where, key), message=f"{key} is required but missing", allowed=f"a value for {key}"
    )
