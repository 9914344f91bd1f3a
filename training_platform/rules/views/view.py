"""Views: what a rule reads. Small, typed, and free of any API's spelling.

An adapter builds views from planned resources, from REST bodies or from the model; a rule cannot tell which. A field
that a deployment alone would tell holds ``UNKNOWN``; reading it raises ``NeedsUnknown``, so a rule is written as if
every value were there, and the runner reports it as not decided.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, ClassVar, TypeVar, cast

from training_platform.config.reading.finding import Path
from training_platform.resources.planned import UNKNOWN


class NeedsUnknown(Exception):
    """A rule read a field whose value is not known before deployment."""

    def __init__(self, view: View, name: str) -> None:
        super().__init__(f"{view.type} {view.name}: {name} is not known before deployment")
        self.view = view
        self.field = name


@dataclass(frozen=True, kw_only=True)
class View:
    """One thing of a stack: the resource it was read from, and the section of the stack file that asked for it.

    ``PATHS`` says for a field where its value stands below ``origin``; a field not in it is at its own name, and a
    finding about it lands on the nearest line that the file has. ``SHARED`` names the fields that all sections of a
    file share: their values stand at its top.
    """

    PATHS: ClassVar[dict[str, Path]] = {}
    SHARED: ClassVar[frozenset[str]] = frozenset({"labels", "deletion_protection"})

    stack: str
    type: str
    name: str
    origin: Path = ()

    def __post_init__(self) -> None:
        """Guard the fields, where one of them is not known: a look at every reading of every view would be slow."""
        if UNKNOWN in vars(self).values():
            object.__setattr__(self, "__class__", _guarded(type(self)))

    def path(self, name: str) -> Path:
        """Return where a field stands in the stack file, below its section."""
        if name in self.SHARED:
            return (name,)
        return (*self.origin, *self.PATHS.get(name, (name,)))

    def known(self, name: str) -> bool:
        """Whether a field's value is known."""
        return object.__getattribute__(self, name) is not UNKNOWN

    def values(self) -> dict[str, Any]:
        """Return every field as it is, ``UNKNOWN`` included."""
        return {item.name: object.__getattribute__(self, item.name) for item in fields(self)}


class _Guard:
    """What the class of a view with unknown fields has before its own: reading one of them raises NeedsUnknown."""

    def __getattribute__(self, name: str) -> Any:
        value = object.__getattribute__(self, name)
        if value is UNKNOWN:
            raise NeedsUnknown(cast(View, self), name)
        return value


_GUARDED: dict[type[View], type[View]] = {}


def _guarded(kind: type[View]) -> type[View]:
    """Return the class of a kind's views that have unknown fields; it is called as the kind is, also in a repr."""
    if issubclass(kind, _Guard):
        return kind
    if kind not in _GUARDED:
        names = {"__qualname__": kind.__qualname__, "__module__": kind.__module__}
        _GUARDED[kind] = type(kind.__name__, (_Guard, kind), names)
    return _GUARDED[kind]


@dataclass(frozen=True, kw_only=True)
class Settings(View):
    """What a program settles by itself: fields without a line of their own, so that findings stand at the section."""

    def path(self, name: str) -> Path:
        """Return the section, or where ``PATHS`` says that a field stands below it."""
        return (*self.origin, *self.PATHS.get(name, ()))


V = TypeVar("V", bound=View)
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Program(View):
    """A whole stack: every view of it, for rules that compare one with another.

    ``environment`` is the environment that the stack is or belongs to, ``team`` its team or None.
    ``production`` says whether the rules for production hold; None is a stack file that does not say.
    """

    type: str = "pulumi:pulumi:Stack"
    environment: str
    team: str | None = None
    production: bool | None = False
    views: tuple[View, ...] = field(default=(), repr=False)
    _by_kind: dict[builtins.type[View], tuple[Any, ...]] = field(default_factory=dict, repr=False, compare=False)
    _kept: dict[Callable[[Program], Any], Any] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def _kinds(self) -> frozenset[builtins.type[View]]:
        return frozenset(builtins.type(view) for view in self.views)

    def of(self, kind: builtins.type[V]) -> tuple[V, ...]:
        """Return the views of one kind, in the order of the plan; kept, since rules ask for every resource."""
        if kind not in self._by_kind:
            kinds = {own for own in self._kinds if issubclass(own, kind)}
            self._by_kind[kind] = tuple(view for view in self.views if builtins.type(view) in kinds) if kinds else ()
        return self._by_kind[kind]

    def once(self, build: Callable[[Program], T]) -> T:
        """Return what a function makes of the program; kept, so that an index is built once and not for every pool."""
        if build not in self._kept:
            self._kept[build] = build(self)
        kept: T = self._kept[build]
        return kept


def program(
    views: Iterable[View], *, stack: str, environment: str, team: str | None, production: bool | None
) -> Program:
    """Return the program that holds ``views``."""
    return Program(
        stack=stack, name=stack, environment=environment, team=team, production=production, views=tuple(views)
    )
