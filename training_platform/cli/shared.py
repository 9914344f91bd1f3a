"""Shared code of commands: options, the repository, extras, and messages."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import textwrap
from collections import UserDict
from collections.abc import Callable, Iterable, Mapping
from functools import partial, reduce
from importlib.util import find_spec
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, Final, Literal, NoReturn, cast

import click

from training_platform.checks.parts import installed_parts
from training_platform.config.reading.finding import UserError, install, printable

DISTRIBUTION = "training-platform"
EXTRAS: Final = {
    "jobs": ("kubernetes", "requests"),
    "adopt": ("googleapiclient", "kubernetes", "requests"),
    "verify": ("googleapiclient", "kubernetes", "requests"),
    "sandbox": ("pulumi", "pulumi_gcp", "pulumi_kubernetes", "googleapiclient", "httpx", "starlette", "uvicorn"),
}
"""The modules of each extra; ``quota pull`` checks for the extra ``quota`` itself."""
PATH = click.Path(path_type=Path)
Format = Literal["text", "json"]
Command = Callable[..., None]
_ON_THIS_MACHINE = re.compile(r"http://(127\.0\.0\.1|localhost|\[::1\]):\d{1,5}/?")
_INTERRUPTED = 130  # what shells expect
_WHOLE = 1_000  # characters


LateCommand = Callable[[], click.Command]
"""A function that imports a command and returns it."""


class LateCommands(UserDict[str, Any]):
    """Commands by name, in the order of the help, each imported when it is run.

    Importing all of them takes a sixth of the time in which a job is rendered.
    """

    def __init__(self, commands: Mapping[str, LateCommand]) -> None:
        """Set the commands by name."""
        super().__init__(commands)

    def __getitem__(self, name: str) -> click.Command:
        """Return a command."""
        command = super().__getitem__(name)
        if not isinstance(command, click.Command):
            command = self.data[name] = command()
        return cast("click.Command", command)


def commands_of(package: str, names: Mapping[str, str]) -> dict[str, LateCommand]:
    """Return commands of modules of a package by name, each given as ``module:attribute``."""
    return {name: partial(resolve_name, f"{package}.{attribute}") for name, attribute in names.items()}


def part_commands(group: str = "") -> dict[str, LateCommand]:
    """Return the parts' commands in ``training-platform`` or in one of its groups."""
    commands: dict[str, LateCommand] = {}
    for part in installed_parts().values():
        for path, load in part.commands.items():
            *groups, command = path.split()
            if groups == group.split():
                commands[command] = load
    return commands


class Commands(click.Group):
    """A group that lists its commands in the order of their addition, each with its whole first sentence."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 # as click calls it
        """Return the names of the commands."""
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 # as click calls it
        """Write the commands with their first sentences, which click would truncate."""
        self.format_section(formatter, "Commands", self.commands)

    def format_section(self, formatter: click.HelpFormatter, title: str, names: Iterable[str]) -> None:
        """Write the named commands below a title."""
        with formatter.section(title):
            formatter.write_dl([(name, self.commands[name].get_short_help_str(limit=_WHOLE)) for name in names])

    def invoke(self, ctx: click.Context) -> object:
        """Run a command; a user's error ends it with exit code 2 and one sentence."""
        try:
            return super().invoke(ctx)
        except UserError as error:
            fail(str(error))
        except KeyboardInterrupt:
            sys.exit(_INTERRUPTED)


def _check_local_cloud(_ctx: click.Context, _param: click.Parameter, address: str | None) -> str | None:
    """Return the address of a local cloud; any other address is rejected, since it would get the user's credentials."""
    if address is not None and not _ON_THIS_MACHINE.fullmatch(address):
        fail(f"--local-cloud {address!r} is not a server of this machine: write http://127.0.0.1:PORT.")
    return address


def stacked(*decorators: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Return several decorators as one, which adds their options in this order."""
    return lambda command: reduce(lambda function, decorator: decorator(function), reversed(decorators), command)


format_option = click.option(
    "--format", "output_format", type=click.Choice(["text", "json"]), default="text", help="Output format."
)
root_option = click.option("--root", type=PATH, help="The repository; default: the one around this folder.")
today_option = click.option(
    "--today", metavar="YYYY-MM-DD", help="The date to check dated files against, such as 2026-11-21."
)
local_cloud_option = click.option(
    "--local-cloud",
    callback=_check_local_cloud,
    help="A local cloud instead of Google's, http://127.0.0.1:PORT.",
)


def instead(option: str, sentence: str) -> Callable[[Command], Command]:
    """Return a hidden option of other tools that ends the command with what to use here."""

    def refuse(_ctx: click.Context, _param: click.Parameter, is_set: bool) -> None:
        if is_set:
            fail(f"{option} is no option: {sentence}")

    return click.option(
        option, help=sentence, is_flag=True, is_eager=True, hidden=True, expose_value=False, callback=refuse
    )


def example(command: str) -> str:
    """Return the end of a command's help, with an example in one line."""
    return f"\b\nExample:\n  {command}"


def repository(path: Path | None) -> Path:
    """Return the repository's root: ``path``, or the nearest folder upwards that has ``Pulumi.yaml`` and ``stacks/``.

    Ends the command with exit code 2 and one sentence where there is none, or where it is of another version.
    """
    root = root_around(path) or fail(
        f"{path or 'This folder'} is not a training-platform repository: there is no Pulumi.yaml beside stacks/."
    )
    if (of_root := _version(root)) is not None and of_root != installed():
        fail(
            f"{root} is version {of_root}, and the training-platform that is installed is {installed()}: install "
            f"{DISTRIBUTION}=={of_root}, or run `make setup` there and use its .venv/bin/training-platform."
        )
    return root


def root_around(path: Path | None = None) -> Path | None:
    """Return the repository's root as ``repository`` does, or None."""
    start = (path or Path()).resolve()
    folders = (start,) if path else (start, *start.parents)
    roots = (folder for folder in folders if (folder / "Pulumi.yaml").is_file() and (folder / "stacks").is_dir())
    return next(roots, None)


def installed() -> str:
    """Return the version of the installed package."""
    from importlib.metadata import version  # imports the parser of e-mails

    return version(DISTRIBUTION)


def _version(root: Path) -> str | None:
    """Return the version of a clone of this project, or None for a folder of only stacks."""
    path = root / "pyproject.toml"
    if not path.is_file():
        return None
    import tomllib

    try:
        project = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
        return str(project["version"]) if project["name"] == DISTRIBUTION else None
    except (OSError, ValueError, KeyError):
        return None


def completion(names: Callable[[], Iterable[str]]) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """Return a shell completion: the names that start with a word, each once and in order."""

    def complete(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
        return [name for name in dict.fromkeys(names()) if name.startswith(incomplete)]

    return complete


def _stack_names() -> list[str]:
    root = root_around()
    return sorted(path.stem.removeprefix("Pulumi.") for path in (root / "stacks").glob("Pulumi.*.yaml")) if root else []


def _job_files() -> list[str]:
    """Return the job files, as paths relative to the current directory."""
    root = root_around()
    return sorted(os.path.relpath(path) for path in (root / "jobs").glob("*/*.yaml")) if root else []


complete_stacks = completion(_stack_names)
complete_jobs = completion(_job_files)


def fail(message: str, *, code: int = 2) -> NoReturn:
    """Exit with one sentence on standard error; exit code 2 means could not check, or wrong usage."""
    say_folded(f"training-platform: {message}", err=True)
    sys.exit(code)


def need(extra: Literal["adopt", "jobs", "sandbox", "verify"], command: str) -> None:
    """Exit with code 2 and one sentence if the extra that ``command`` needs is not installed."""
    if any(find_spec(module) is None for module in EXTRAS[extra]):
        fail(f"{command} needs the extra `{extra}`: {install(extra)}")


def say(text: str, *, err: bool = False) -> None:
    """Print text that may contain names from files, without control characters, so that no log runs it as a command."""
    click.echo(printable(text), err=err)


def say_folded(text: str, *, err: bool = False) -> None:
    """Print sentences; on a terminal they are folded between words and keep their indentation."""
    stream = sys.stderr if err else sys.stdout
    columns = os.get_terminal_size(stream.fileno()).columns if stream.isatty() else 0
    say(folded(text, columns) if columns else text, err=err)


def folded(text: str, width: int) -> str:
    """Return text folded between words to at most ``width`` columns; words are not broken, since people copy them."""
    lines = []
    for line in text.splitlines():
        indent = line[: len(line) - len(line.lstrip())]
        lines += textwrap.wrap(
            line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
        ) or [""]
    return "\n".join(lines)


def line_width() -> int:
    """Return the width of the terminal, or COLUMNS; for a pipe, a width that no line reaches."""
    return shutil.get_terminal_size((10_000, 0)).columns


def say_beside(head: str, text: str) -> None:
    """Print text beside a head, folded to the width of the terminal.

    Where too little room is left beside the head, the text is below it. A pipe's lines are not folded.
    """
    width = line_width()
    room = width - len(head)
    if room < max(min(len(text), 30), *map(len, text.split()), 0):
        head, room = f"{head.rstrip()}\n    ", width - 4
    indent = " " * (len(head) - head.rfind("\n") - 1)
    say(head + f"\n{indent}".join(textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False)))


def print_json(value: object) -> None:
    """Print a value for programs."""
    click.echo(json.dumps(value, indent=2))
