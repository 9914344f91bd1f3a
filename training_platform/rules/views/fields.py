"""How the fields of views are declared: the type of value, its spellings in a program, its place in the stack file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar, overload

from training_platform.resources.planned import UNKNOWN
from training_platform.rules.views import inputs as of
from training_platform.rules.views.inputs import at, keys
from training_platform.rules.views.view import Field, PlainField

T = TypeVar("T")
R = TypeVar("R", bound=tuple[Any, ...])


def text(*spelled: str, place: str | None = None) -> Field[str | None]:
    """Declare a text."""
    return _field(of.as_text, spelled, place)


def name(*spelled: str, place: str | None = None) -> Field[str | None]:
    """Declare the name of something that may be written as a path: its last part."""
    return _field(of.as_name, spelled, place)


def said(*spelled: str, place: str | None = None) -> Field[str]:
    """Declare a text that every resource of the kind has: one that is missing is not known."""
    return _field(of.as_text, spelled, place, UNKNOWN)


def whole(*spelled: str, place: str | None = None) -> Field[int | None]:
    """Declare a whole number, however it is written."""
    return _field(of.as_whole, spelled, place)


def number(*spelled: str, place: str | None = None) -> Field[float | None]:
    """Declare a number with a fraction or without."""
    return _field(of.as_number, spelled, place)


def size(*spelled: str, place: str | None = None) -> Field[int]:
    """Declare a whole number that every resource of the kind has: one that is missing is not known."""
    return _field(of.as_whole, spelled, place, UNKNOWN)


def quantity(*spelled: str, place: str | None = None) -> Field[int | None]:
    """Declare a quantity of Kubernetes."""
    return _field(of.as_quantity, spelled, place)


def amount(*spelled: str, place: str | None = None) -> Field[int]:
    """Declare a quantity of Kubernetes that every object of the kind has: one that is missing is not known."""
    return _field(of.as_quantity, spelled, place, UNKNOWN)


def seconds(*spelled: str, place: str | None = None) -> Field[int | None]:
    """Declare a duration as Google's APIs write it, ``3600s``."""
    return _field(of.as_seconds, spelled, place)


def texts(*spelled: str, place: str | None = None) -> Field[tuple[str, ...]]:
    """Declare a list of texts."""
    return _field(of.as_texts, spelled, place)


def count(*spelled: str, place: str | None = None) -> Field[int]:
    """Declare the number of entries of a list or a mapping."""
    return _field(of.as_count, spelled, place)


def written(*spelled: str, place: str | None = None) -> Field[bool]:
    """Declare whether a block is there at all."""
    return _field(of.is_written, spelled, place)


def labels(*spelled: str, place: str | None = None) -> Field[dict[str, str] | None]:
    """Declare a mapping of texts, None where it is not written."""
    return _field(of.as_labels, spelled, place)


def texts_by_key(*spelled: str, place: str | None = None) -> Field[dict[str, str]]:
    """Declare a mapping of texts, empty where it is not written."""
    return _field(of.as_labels, spelled, place, {})


@overload
def flag(*spelled: str, default: bool, place: str | None = None) -> Field[bool]: ...
@overload
def flag(*spelled: str, default: None = None, place: str | None = None) -> Field[bool | None]: ...
def flag(*spelled: str, default: bool | None = None, place: str | None = None) -> Field[Any]:
    """Declare a truth value; ``default`` holds where it is left out, by the provider or by the API."""
    return _field(of.as_flag, spelled, place, default)


def entries(spelled: str, make: Callable[[Any], R], place: str | None = None) -> Field[tuple[R, ...]]:
    """Declare the entries of a list as named tuples; unknown where a part of one is."""

    def convert(value: Any) -> Any:
        try:
            found = tuple(make(row) for row in of.rows(value))
        except of.NotKnownError:
            return UNKNOWN
        return UNKNOWN if any(part is UNKNOWN for row in found for part in row) else found

    return PlainField(convert, place, (spelled,), ())


def any_flag(*spelled: str, place: str | None = None) -> Field[bool]:
    """Declare whether one of several switches is on."""
    above = spelled[0].rpartition(".")[0]
    switches = [keys(each.removeprefix(f"{above}.")) for each in spelled]

    def read(block: Any) -> Any:
        return of.any_of(*(of.as_flag(at(block, path)) for path in switches))

    if not above:
        return Field(lambda view: read(view.inputs), place, spelled)
    return of_block(above, read, False, *spelled, place=place)


def of_block(above: str, read: Callable[[Any], Any], missing: T, *spelled: str, place: str | None = None) -> Field[T]:
    """Declare what a function reads from several inputs of one block, which never raises."""
    return PlainField(read, place, spelled, missing, block=above)


def located(*spelled: str, place: str | None = None) -> Field[str]:
    """Declare the region or zone that a resource names: where it names none it is the provider's, which is unknown."""
    return _field(of.as_name, spelled, place, UNKNOWN)


def project() -> Field[str]:
    """Declare the project that a resource names itself; an empty text where it takes the provider's."""
    return _field(of.as_text, ("project",), None, "")


def reference(spelled: str, kind: str, place: str | None = None) -> Field[str | None]:
    """Declare the name of another resource of a type."""
    return PlainField(of.as_name, place, (spelled,), refers=kind)


def field(*spelled: str, place: str | None = None) -> Callable[[Callable[[Any], T]], Field[T]]:
    """Declare a field that a function works out from a view's inputs; it may raise NotKnownError."""
    return lambda read: Field(read, place, spelled)


def _field(
    convert: Callable[[Any], Any], spelled: tuple[str, ...], place: str | None, default: Any = None
) -> Field[Any]:
    """Return a field that takes the first spelling that is written; ``default`` holds where none is."""
    missing = convert(None)
    if missing is None:
        missing = default
    return PlainField(convert, place, spelled, missing, right=_RIGHT.get(convert))


_RIGHT: Mapping[Callable[[Any], Any], type] = {of.as_text: str, of.as_whole: int, of.as_flag: bool}
"""Values of these classes are as their functions return them."""
