"""What is wrong with one value of an object: where it stands, what it is, and what its document allows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from training_platform.catalog.nearest import find_nearest
from training_platform.config.reading.finding import Severity
from training_platform.config.reading.secrets import HIDDEN, can_be_secret
from training_platform.config.reading.section import article

Kind = Literal["enum", "format", "range", "required", "type", "unknown"]
Where = tuple[Any, ...]  # empty, or what holds the value and the key that it has there
OLDER_PROVIDER = "pulumi-gcp 9.35"  # of google-beta 7.45, the newest source at hand: of provider.json
_LISTED = 12  # names of a block that a message lists; of a larger one these
_LONGEST = 60  # letters of a value in a message


class Problem(NamedTuple):
    """One thing that is wrong: the kind of constraint, the input, and in words what is wrong and what is allowed."""

    kind: Kind
    where: Where
    message: str
    allowed: str | None = None
    nearest: str | None = None
    severity: Severity = "error"

    @property
    def keys(self) -> tuple[Any, ...]:
        """The keys and places in lists that lead to the input."""
        return keys_of(self.where)

    @property
    def path(self) -> str:
        """The input as programs write it: ``nodeConfig.taints[0].effect``."""
        return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in self.keys).removeprefix(".")


Report = Callable[[Problem], None]


def keys_of(where: Where) -> tuple[Any, ...]:
    """Return the keys and places in lists that lead to an input."""
    keys: list[Any] = []
    while where:
        where, key = where
        keys.append(key)
    return tuple(reversed(keys))


def _name(where: Where) -> str:
    """Return the name of the input at a place, with the number of its entry; a key may have dots in it."""
    if not where:
        return "the object"
    holder, key = where
    return f"{_name(holder) if holder else ''}[{key}]" if isinstance(key, int) else str(key)


def refused(kind: Kind, where: Where, value: Any, why: str, allowed: str) -> Problem:
    """Return that a value is refused: ``why`` ends the sentence that begins with the input and the value."""
    message = f"{_name(where)} is {shown(value, where)}, {why}"
    return Problem(kind, where, message, allowed)


def shown(value: Any, where: Where) -> str:
    """Return a value in a message, cut where it is long; not what can be a secret, or hold one."""
    if isinstance(value, (Mapping, list, tuple)):
        return "a mapping" if isinstance(value, Mapping) else "a list"
    if can_be_secret(keys_of(where)):
        return HIDDEN
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def unknown(where: Where, key: str, names: Iterable[str], *, closed: bool) -> Problem:
    """Return that a block has no such input: an error where another is meant, or where the document is all there is."""
    known = sorted(names)
    nearest = find_nearest(key, known)
    error = closed or nearest is not None
    message = f"{_name(where)} has no {key}" + ("" if error else " in the documents of this version: it is not judged")
    allowed = ", ".join(known if len(known) <= _LISTED else [*known[:_LISTED], f"and {len(known) - _LISTED} more"])
    return Problem("unknown", (where, key), message, allowed, nearest, "error" if error else "warning")


def not_one_of(where: Where, value: str, values: Sequence[str], *, closed: bool | None) -> Problem:
    """Return that a text is not one of an enum's values, which may be older than the API where it is not ``closed``.

    False is a list that the provider's source had, which is older than the pinned version; None is only a document's.
    """
    known = [name for name in values if not name.endswith("_UNSPECIFIED")]
    nearest = find_nearest(value, known)
    # With other digits a value is another model, which may be newer; with other letters it is misspelt.
    digits, of_nearest = ([letter for letter in name if letter.isdigit()] for name in (value, nearest or ""))
    error = closed or (nearest is not None and digits == of_nearest)
    verb = "does not take" if error else "is not known to take"
    older = "" if error or closed is None else f": {OLDER_PROVIDER} refuses it, and the pinned version was not read"
    message = f"{_name(where)} {verb} {shown(value, where)}{older}"
    return Problem("enum", where, message, ", ".join(known), nearest, "error" if error else "warning")


def a_written(key: str) -> str:
    """Return what is allowed where an input has to be written."""
    return f"{article(key)} {key}"


def missing(where: Where, key: str) -> Problem:
    """Return that an input is not there which must be."""
    return Problem("required", (where, key), f"{key} is required, and is not written", a_written(key))
