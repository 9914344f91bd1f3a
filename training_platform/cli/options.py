"""Options that several commands share, one by one, or as fields of a dataclass of which each command takes some."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from enum import StrEnum
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer
from typer.core import TyperGroup

Command = Callable[..., None]
_WHOLE = 1_000  # characters


class Format(StrEnum):
    """Output format of a command."""

    text = "text"
    json = "json"


FormatOption = Annotated[Format, typer.Option("--format", help="Output format.")]
RootOption = Annotated[Path | None, typer.Option("--root", help="The repository; default: the one around this folder.")]
TodayOption = Annotated[
    str | None, typer.Option("--today", help="The date to check dated files against, such as 2026-11-21.")
]


class Commands(TyperGroup):
    """A group of commands whose help says the first sentence of each in full; click cuts it at the line's end.

    Its types are Any: typer brings a click of its own, which is private.
    """

    def format_commands(self, context: Any, formatter: Any) -> None:
        """Write the commands with what they do."""
        commands = {name: self.get_command(context, name) for name in self.list_commands(context)}
        rows = [(name, each.get_short_help_str(limit=_WHOLE)) for name, each in commands.items() if each]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def uncut_help(app: typer.Typer) -> None:
    """Let an application, and all below it, say in help what each of its commands does in full."""
    app.info.cls = Commands
    for group in app.registered_groups:
        if group.typer_instance:
            uncut_help(group.typer_instance)


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
