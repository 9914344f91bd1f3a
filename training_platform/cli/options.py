"""Options that several commands share: the fields of one dataclass, of which each command takes some."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import wraps
from inspect import Parameter, signature
from typing import Any, get_type_hints

Command = Callable[..., None]


def takes(options: type[Any], *names: str) -> Callable[[Command], Command]:
    """Let a command take these fields of a dataclass as options, and have them as one object, named ``options``.

    A field is annotated as an argument of a typer command would be; those that are not named keep their defaults.
    """
    defaults = {field.name: field.default for field in fields(options)}
    types = get_type_hints(options, include_extras=True)

    def decorate(command: Command) -> Command:
        own = signature(command, eval_str=True)
        shared = [
            Parameter(name, Parameter.KEYWORD_ONLY, default=defaults[name], annotation=types[name]) for name in names
        ]

        @wraps(command)
        def call(**given: Any) -> None:
            chosen = {name: given.pop(name) for name in names}
            command(**given, options=options(**chosen))

        parameters = [*(each for name, each in own.parameters.items() if name != "options"), *shared]
        call.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
        call.__annotations__ = {each.name: each.annotation for each in parameters}
        return call

    return decorate
