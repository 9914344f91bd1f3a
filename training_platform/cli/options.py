"""Options that several commands share, one by one, or as fields of a dataclass of which each command takes some."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import wraps
from importlib import import_module
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, get_type_hints

import typer
from typer.core import TyperGroup

from training_platform.cli.root import fail
from training_platform.config.reading.finding import UserError

Command = Callable[..., None]
_WHOLE = 1_000  # characters


Format = Literal["text", "json"]
FormatOption = Annotated[Format, typer.Option("--format", help="Output format.")]
RootOption = Annotated[Path | None, typer.Option("--root", help="The repository; default: the one around this folder.")]
TodayOption = Annotated[
    str | None, typer.Option("--today", help="The date to check dated files against, such as 2026-11-21.")
]


class Commands(TyperGroup):
    """A group whose commands are imported when one is asked for, and whose help says what each does in full.

    ``places`` has, by the name of a group, where its commands are beside those that are registered with it: module and
    name, below ``training_platform.cli``. The first group of all is called "". Types are Any: typer's click is private.
    """

    places: ClassVar[Mapping[str, Mapping[str, str]]] = {}

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.commands: dict[str, Any] = {**self.commands, **dict.fromkeys(self.places.get(self.name or "", ()))}

    def invoke(self, ctx: Any) -> Any:
        """Run a command; what a person can mend ends it with exit code 2 and one sentence."""
        try:
            return super().invoke(ctx)
        except UserError as error:
            fail(str(error))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 # as click calls it
        """Return a command, None for a name that is not one's."""
        if cmd_name in self.commands and self.commands[cmd_name] is None:
            self.commands[cmd_name] = self._imported(cmd_name)
        return self.commands.get(cmd_name)

    def _imported(self, name: str) -> Any:
        module, _, attribute = self.places[self.name or ""][name].partition(":")
        command = getattr(import_module(f"training_platform.cli.{module}"), attribute)
        alone = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)
        if isinstance(command, typer.Typer):
            alone.add_typer(command, name=name, cls=type(self))
        else:
            alone.command(name)(command)
        return typer.main.get_group(alone).commands[name]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands with the first sentence of each, which click would cut at the line's end."""
        commands = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        rows = [(name, each.get_short_help_str(limit=_WHOLE)) for name, each in commands.items() if each]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


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
