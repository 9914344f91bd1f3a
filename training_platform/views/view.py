"""Views, which are what rules read: small typed models of resources, independent of the names in any API.

A view contains the planned inputs of a resource, and its fields define how values are read from them. A rule cannot
tell whether the inputs come from a plan, a REST body or the model. Reading a field whose value is known only after
deployment raises ``NeedsUnknown``. A rule can therefore be written as if every value were known; if one is not, the
rule is reported as not evaluated.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, ClassVar, Generic, Self, TypeVar, overload

from training_platform.config.reading.finding import Anchor, Path, dotted
from training_platform.config.reading.secrets import secrets_in
from training_platform.resources.stack_resource import UNKNOWN, StackResource
from training_platform.views.inputs import Keys, NotKnownError, as_name, at, keys, unrolled

T = TypeVar("T")


class NeedsUnknown(Exception):
    """A rule read a field that is unknown before deployment."""

    def __init__(self, view: View, name: str) -> None:
        super().__init__(f"{view.type} {view.name}: {name} is not known before deployment")
        self.view = view
        self.field = name


class Field(Generic[T]):
    """One field of a view, read from the inputs at first access and cached.

    ``place`` is the path of the field in the stack file, below the view's section: ``upgrades.strategy``. It is "" for
    the section itself, and None if the path is the name of the field. ``inputs`` are the input names in a program, the
    usual one first.
    """

    def __init__(self, read: Callable[[Any], Any], place: str | None = None, inputs: tuple[str, ...] = ()) -> None:
        self.read = read
        self.place = place
        self.inputs = inputs
        self.name = ""

    def __set_name__(self, _owner: type, name: str) -> None:
        """Set the name of the attribute."""
        self.name = name

    @overload
    def __get__(self, view: None, owner: type) -> Self: ...
    @overload
    def __get__(self, view: View, owner: type) -> T: ...
    def __get__(self, view: View | None, owner: type) -> Self | T:
        """Return the value, which is cached in the instance. Raises NeedsUnknown."""
        if view is None:
            return self
        try:
            value: T = UNKNOWN if view.unknown and self.name in view.unknown else self.read(view)
        except NotKnownError:
            raise NeedsUnknown(view, self.name) from None
        if value is UNKNOWN:
            raise NeedsUnknown(view, self.name)
        view.__dict__[self.name] = value
        return value


class PlainField(Field[T]):
    """A field that reads one input: the first of ``inputs`` that is set. If none is set, the value is ``missing``.

    ``block`` is the path to read if it is not one of ``inputs``. ``refers`` is the type of the resource that the field
    names.
    """

    def __init__(
        self, convert: Callable[[Any], Any], place: str | None, inputs: tuple[str, ...], missing: Any = None, *,
        block: str = "", refers: str = "",
    ) -> None:  # fmt: skip
        super().__init__(self._first, place, inputs)
        self._convert = convert
        self.paths = (block,) if block else inputs
        self._keys = tuple(map(keys, self.paths))
        self.missing = missing
        self._refers = refers

    def _first(self, view: View) -> Any:
        for path in self._keys:
            value = at(view.inputs, path)
            if value is not None and (value := self._convert(value)) is not None:
                return view.depends_on(self._refers) if value is UNKNOWN and self._refers else value
        return self.missing


class View:
    """A typed model of a resource of a stack, with the section of the stack file that declares the resource.

    - ``TYPES`` are the resource types that have such a view.
    - ``EACH`` is a path that leads through lists. There is one view for each of their entries.
    - ``SHARED`` are the fields that all sections of a file share. Their values are at the top of the file.
    - ``values`` replace the values from the inputs.

    A finding about a field is reported at the nearest line in the file.
    """

    TYPES: ClassVar[tuple[str, ...]] = ()
    EACH: ClassVar[tuple[str, ...]] = ()
    FIELDS: ClassVar[dict[str, Field[Any]]] = {}
    PLACES: ClassVar[dict[str, Path]] = {}
    LINES: ClassVar[bool] = True  # whether a field without a path has its own line
    SHARED: ClassVar[frozenset[str]] = frozenset({"labels", "deletion_protection", "encryption"})

    unknown: frozenset[str] = frozenset()
    own_line: int | None = None  # of the organisation's own code that adds the resource

    def __init_subclass__(cls) -> None:
        """Collect the fields of the class and its base classes."""
        cls.FIELDS = {**cls.FIELDS, **{name: field for name, field in vars(cls).items() if isinstance(field, Field)}}
        for name, field in cls.FIELDS.items():
            place = field.place
            if place is None:
                place = name if cls.LINES else ""
            cls.PLACES = {**cls.PLACES, name: tuple(place.split(".")) if place else ()}

    def __init__(
        self, *, stack: str, type: str, name: str, origin: Path = (), inputs: Any = None,  # noqa: A002 # Pulumi's word
        options: Mapping[str, Any] | None = None, **values: Any,
    ) -> None:  # fmt: skip
        self.stack = stack
        self.type = type
        self.name = name
        self.origin = origin
        self.inputs: Any = {} if inputs is None else inputs
        self.options: Mapping[str, Any] = options or {}
        self._values = values
        if wrong := values.keys() - self.FIELDS.keys():
            raise TypeError(f"{builtins.type(self).__name__} has no {', '.join(sorted(wrong))}")
        if values:
            self.unknown = frozenset(name for name, value in values.items() if value is UNKNOWN)
            self.__dict__.update({name: value for name, value in values.items() if value is not UNKNOWN})

    @classmethod
    def of(cls, planned: StackResource, origin: Path) -> Iterator[Self]:
        """Yield the views of this class for a planned resource."""
        blocks = unrolled(planned.inputs, cls.EACH) if cls.EACH else [planned.inputs]
        for inputs in blocks:
            yield cls.viewed(planned, origin, inputs)

    @classmethod
    def viewed(cls, planned: StackResource, origin: Path, inputs: Any) -> Self:
        """Return the view of a resource, or of one list entry. The entry replaces the list in ``inputs``."""
        return cls(
            stack=planned.stack, type=planned.type, name=planned.name, origin=origin, inputs=inputs,
            options=planned.options,
        )  # fmt: skip

    def replaced(self, **values: Any) -> Self:
        """Return a copy in which some fields have other values. Raises TypeError for an unknown field."""
        return builtins.type(self)(
            stack=self.stack, type=self.type, name=self.name, origin=self.origin, inputs=self.inputs,
            options=self.options, **{**self._values, **values},
        )  # fmt: skip

    @cached_property
    def hidden(self) -> tuple[Any, ...]:
        """Return the values that findings must not show; cached, because an object can have hundreds of findings."""
        return tuple(secrets_in(self.inputs))

    def __repr__(self) -> str:
        """Return the class with the type and name of the resource."""
        return f"{builtins.type(self).__name__}({self.type} {self.name})"

    def path(self, name: str) -> Path:
        """Return the path of a field in the stack file, below its section."""
        if name in self.SHARED:
            return (name,)
        return (*self.origin, *self.PLACES.get(name, (name,) if self.LINES else ()))

    def locate(self, name: str) -> Anchor:
        """Return the position of a field, or of the resource for an empty name. The file is not known here.

        The path is the one in the stack file if the resource has a section there, otherwise the path of the input.
        """
        place = dotted(self.path(name) if name else self.origin)
        if not self.origin:
            place = self.spelled(name) or place
        return Anchor(stack=self.stack, path=place, resource=f"{self.type} {self.name}")

    def spelled(self, name: str) -> str:
        """Return the name of a field's input. If there are several names, it is the one that is set, or the first."""
        inputs = self.FIELDS[name].inputs if name in self.FIELDS else ()
        written = (path for path in inputs if self.read(path) is not None)
        return next(written, inputs[0] if inputs else "")

    def known(self, name: str) -> bool:
        """Return True if a field's value is known."""
        if name in self.__dict__:
            return True
        try:
            getattr(self, name)
        except NeedsUnknown:
            return False
        return True

    def may_have(self, name: str) -> bool:
        """Return True if a field is set or unknown."""
        try:
            return bool(getattr(self, name))
        except NeedsUnknown:
            return True

    def values(self) -> dict[str, Any]:
        """Return the values of all fields, including ``UNKNOWN``."""
        return {name: getattr(self, name) if self.known(name) else UNKNOWN for name in self.FIELDS}

    def read(self, path: str) -> Any:
        """Return the input at a path unchanged: None if it is missing, ``UNKNOWN`` if it is unknown."""
        return at(self.inputs, keys(path))

    def refers(self, path: Keys, kind: str) -> Any:
        """Return the name of the resource that an input refers to: the last part of a name or path."""
        value = as_name(at(self.inputs, path))
        return self.depends_on(kind) if value is UNKNOWN else value

    def depends_on(self, kind: str) -> Any:
        """Return the logical name of the only dependency of type ``kind``. Its path is often not known yet."""
        after = [name for token, name in self.options.get("dependsOn", ()) if token == kind]
        return after[0] if len(after) == 1 else UNKNOWN

    def is_meant(self, reference: str | None, field: str) -> bool:
        """Return True if a reference means this resource, by its logical name or by the name in the given field."""
        if reference is None:
            return False
        return reference == self.name or (self.known(field) and reference == getattr(self, field))


class Settings(View):
    """The view of a resource whose inputs the program chooses. Fields have no line, so findings are at the section."""

    LINES = False
