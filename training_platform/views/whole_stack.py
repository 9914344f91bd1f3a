"""Views of a whole stack, for rules that compare several views, and views of whole resources."""

from __future__ import annotations

import builtins
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from training_platform.config.reading.finding import Path
from training_platform.views import fields
from training_platform.views.view import Settings, View

V = TypeVar("V", bound=View)
T = TypeVar("T")
PACKAGES = ("gcp:", "kubernetes:")  # the prefixes of types of a provider's resources
_ENTRY = re.compile(r"\[\d+\]")


class Program(View):
    """A whole stack, with the views of all of its resources.

    ``environment`` is the environment that the stack is or belongs to. ``team`` is its team, or None. ``production``
    says whether the organisation's rules about production apply.
    """

    environment = fields.required()
    team = fields.text()
    production = fields.flag()

    def __init__(self, views: Iterable[View], *, stack: str, **values: Any) -> None:
        super().__init__(stack=stack, type="pulumi:pulumi:Stack", name=stack, **values)
        self.views = tuple(views)
        self._of: dict[builtins.type[View], list[Any]] = {}
        for view in self.views:
            self._of.setdefault(view.__class__, []).append(view)
        self._by_kind: dict[tuple[builtins.type[View], str], tuple[Any, ...]] = {}
        self._built: dict[Callable[[Program], Any], Any] = {}

    def all(self, kind: builtins.type[V], field: str = "") -> tuple[V, ...]:
        """Return the views of one type in the order of the plan; cached, because rules read them for every resource.

        With ``field``, return only the views in which the field is set or unknown.
        """
        if (kind, field) not in self._by_kind:
            kinds = [subclass for subclass in self._of if issubclass(subclass, kind)]
            views: Iterable[View] = self._of[kinds[0]] if len(kinds) == 1 else ()
            if field:
                views = (view for view in self.all(kind) if view.may_have(field))
            elif len(kinds) > 1:
                views = (view for view in self.views if view.__class__ in kinds)
            self._by_kind[kind, field] = tuple(views)
        return self._by_kind[kind, field]

    def once(self, build: Callable[[Program], T]) -> T:
        """Return the result of a function of the program. It is cached, so that an index is built only once."""
        if build not in self._built:
            self._built[build] = build(self)
        built: T = self._built[build]
        return built


def program(
    views: Iterable[View], *, stack: str, environment: str, team: str | None, production: bool | None
) -> Program:
    """Return the program that contains ``views``."""
    return Program(views, stack=stack, environment=environment, team=team, production=production)


class ObjectView(Settings):
    """A resource of a provider with all of its inputs."""

    def path(self, name: str) -> Path:
        """Return the path of an input in the stack file, taken from the field of another view that reads the input.

        In a program without a stack file, the path is the input itself, so each input has its own findings.
        """
        if not self.origin:
            return (name,)
        written = _ENTRY.sub("", name)
        for kind in _views_of(self.type):
            for field in kind.FIELDS.values():
                if written in field.inputs:
                    return kind(
                        stack=self.stack, type=self.type, name=self.name, origin=self.origin, inputs=self.inputs
                    ).path(field.name)
        return self.origin

    def spelled(self, name: str) -> str:
        """Return the input, which has the same name as the field."""
        return name


def _views_of(token: str, base: type[View] = View) -> Iterator[type[View]]:
    for kind in base.__subclasses__():
        if token in kind.TYPES and not kind.EACH:
            yield kind
        yield from _views_of(token, kind)
