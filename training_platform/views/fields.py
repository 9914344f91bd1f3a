"""Declares the fields of views: the type of a field's value, its input names in a program, and its stack file path."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

from training_platform.resources.stack_resource import UNKNOWN
from training_platform.views import inputs as of
from training_platform.views.inputs import at, keys
from training_platform.views.view import Field, PlainField

T = TypeVar("T")
R = TypeVar("R", bound=tuple[Any, ...])


class FieldKind(Generic[T]):
    """A kind of field. It reads the first input name that is set. If none is set, its value is ``missing``."""

    def __init__(self, read: Callable[[Any], Any], missing: Any = None) -> None:
        self._read = read
        self._missing = missing

    def __call__(self, *spelled: str, place: str | None = None) -> Field[T]:
        """Declare a field of this kind."""
        return _field(self._read, spelled, place, self._missing)


text = FieldKind[str | None](of.as_text)
name = FieldKind[str | None](of.as_name)  # of a resource that may be given as a path: its last part
whole = FieldKind[int | None](of.as_whole)  # in any spelling
number = FieldKind[float | None](of.as_number)  # integer or not
quantity = FieldKind[int | None](of.as_quantity)  # a Kubernetes quantity
seconds = FieldKind[int | None](of.as_seconds)  # a duration as Google's APIs write it, 3600s
texts = FieldKind[tuple[str, ...]](of.as_texts)
count = FieldKind[int](of.as_count)  # the entries of a list or a mapping
written = FieldKind[bool](of.is_written)  # whether a block is set
labels = FieldKind[dict[str, str] | None](of.as_labels)
texts_by_key = FieldKind[dict[str, str]](of.as_labels, {})
# Fields that every resource of the kind has: a missing one is unknown.
required = FieldKind[str](of.as_text, UNKNOWN)
size = FieldKind[int](of.as_whole, UNKNOWN)
amount = FieldKind[int](of.as_quantity, UNKNOWN)
located = FieldKind[str](of.as_name, UNKNOWN)  # a region or zone; the default is the provider's


@overload
def flag(*spelled: str, default: bool, place: str | None = None) -> Field[bool]: ...
@overload
def flag(*spelled: str, default: None = None, place: str | None = None) -> Field[bool | None]: ...
def flag(*spelled: str, default: bool | None = None, place: str | None = None) -> Field[Any]:
    """Declare a boolean; ``default`` is the default of the provider or the API."""
    return _field(of.as_flag, spelled, place, default)


def entries(spelled: str, make: Callable[[Any], R], place: str | None = None) -> Field[tuple[R, ...]]:
    """Declare a field whose value is a list's entries as named tuples. It is unknown if any part of it is."""

    def convert(value: Any) -> Any:
        try:
            tuples = tuple(make(row) for row in of.rows(value))
        except of.NotKnownError:
            return UNKNOWN
        return UNKNOWN if any(part is UNKNOWN for row in tuples for part in row) else tuples

    return PlainField(convert, place, (spelled,), ())


def any_flag(*spelled: str, place: str | None = None) -> Field[bool]:
    """Declare a field that is true if any of several switches is on."""
    above = spelled[0].rpartition(".")[0]
    switches = [keys(path.removeprefix(f"{above}.")) for path in spelled]

    def read(block: Any) -> Any:
        return of.any_of(*(of.as_flag(at(block, path)) for path in switches))

    if not above:
        return Field(lambda view: read(view.inputs), place, spelled)
    return of_block(above, read, False, *spelled, place=place)


def of_block(above: str, read: Callable[[Any], Any], missing: T, *spelled: str, place: str | None = None) -> Field[T]:
    """Declare a field that a function reads from several inputs of a block. The function must not raise."""
    return PlainField(read, place, spelled, missing, block=above)


def project() -> Field[str]:
    """Declare the project that a resource names; an empty string means the provider's project."""
    return _field(of.as_text, ("project",), None, "")


def reference(spelled: str, kind: str, place: str | None = None) -> Field[str | None]:
    """Declare a field with the name of another resource; ``kind`` is the resource's type."""
    return PlainField(of.as_name, place, (spelled,), refers=kind)


def field(*spelled: str, place: str | None = None) -> Callable[[Callable[[Any], T]], Field[T]]:
    """Declare a field that a function calculates from a view's inputs. The function may raise NotKnownError."""
    return lambda read: Field(read, place, spelled)


def _field(
    convert: Callable[[Any], Any], spelled: tuple[str, ...], place: str | None, default: Any = None
) -> Field[Any]:
    """Return a field that reads the first input name that is set; ``default`` applies if none is set."""
    missing = convert(None)
    if missing is None:
        missing = default
    return PlainField(convert, place, spelled, missing)
