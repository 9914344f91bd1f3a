"""Code that commands share: options, the search for the repository, extras (optional dependencies), and messages."""

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
"""The modules that each extra (a set of optional dependencies) installs. ``quota pull`` checks ``quota`` itself."""
PATH = click.Path(path_type=Path)
Format = Literal["text", "json"]
Command = Callable[..., None]
_ON_THIS_MACHINE = re.compile(r"http://(127\.0\.0\.1|localhost|\[::1\]):\d{1,5}/?")
_INTERRUPTED = 130  # what shells expect
_WHOLE = 1_000  # characters


LateCommand = Callable[[], click.Command]
"""A function that imports a command and returns it."""


class LateCommands(UserDict[str, Any]):
    """Commands, keyed by name in the order of the help. Each is imported when it runs.

    Importing all of them would take a sixth as long as rendering a job.
    """

    def __init__(self, commands: Mapping[str, LateCommand]) -> None:
        """Store the commands, keyed by name."""
        super().__init__(commands)

    def __getitem__(self, name: str) -> click.Command:
        """Import and return a command."""
        command = super().__getitem__(name)
        if not isinstance(command, click.Command):
            command = self.data[name] = command()
        return cast("click.Command", command)


def commands_of(package: str, names: Mapping[str, str]) -> dict[str, LateCommand]:
    """Return commands keyed by name. ``names`` gives the place of each in the package, as ``module:attribute``."""
    return {name: partial(resolve_name, f"{package}.{attribute}") for name, attribute in names.items()}


def part_commands(group: str = "") -> dict[str, LateCommand]:
    """Return the commands of parts for ``training-platform`` or for one of its groups."""
    commands: dict[str, LateCommand] = {}
    for part in installed_parts().values():
        for path, load in part.commands.items():
            *groups, command = path.split()
            if groups == group.split():
                commands[command] = load
    return commands


class Commands(click.Group):
    """A group that lists its commands in the order in which they were added, each with its complete first sentence."""

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
        """Run a command. A UserError ends it with exit code 2 and its message."""
        try:
            return super().invoke(ctx)
        except UserError as error:
            fail(str(error))
        except KeyboardInterrupt:
            sys.exit(_INTERRUPTED)


def _check_local_cloud(_ctx: click.Context, _param: click.Parameter, address: str | None) -> str | None:
    """Return the address of a local cloud. Any other server is rejected, since it would receive credentials."""
    if address is not None and not _ON_THIS_MACHINE.fullmatch(address):
        fail(f"--local-cloud {address!r} is not a server on this machine: write http://127.0.0.1:PORT.")
    return address


def stacked(*decorators: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Return one decorator that applies several. Help lists their options in this order."""
    return lambda command: reduce(lambda function, decorator: decorator(function), reversed(decorators), command)


format_option = click.option(
    "--format", "output_format", type=click.Choice(["text", "json"]), default="text", help="Output format."
)
root_option = click.option("--root", type=PATH, help="The repository; default: the one that contains this folder.")
today_option = click.option(
    "--today", metavar="YYYY-MM-DD", help="The date to check dated files against, such as 2026-11-21."
)
local_cloud_option = click.option(
    "--local-cloud",
    callback=_check_local_cloud,
    help="A local cloud instead of Google's, http://127.0.0.1:PORT.",
)


def instead(option: str, sentence: str) -> Callable[[Command], Command]:
    """Return a hidden option that exists in other tools. It ends the command, and says what to use instead."""

    def refuse(_ctx: click.Context, _param: click.Parameter, is_set: bool) -> None:
        if is_set:
            fail(f"{option} is not an option: {sentence}")

    return click.option(
        option, help=sentence, is_flag=True, is_eager=True, hidden=True, expose_value=False, callback=refuse
    )


def example(command: str) -> str:
    """Return the end of a command's help: an example in one line."""
    return f"\b\nExample:\n  {command}"


def repository(path: Path | None) -> Path:
    """Return the repository's root: ``path``, or the nearest parent folder with ``Pulumi.yaml`` and ``stacks/``.

    Ends the command with exit code 2 and a one-sentence message if there is none, or if it is a clone of another
    version.
    """
    root = root_around(path) or fail(
        f"{path or 'This folder'} is not a training-platform repository: no Pulumi.yaml next to a folder stacks/."
    )
    if (of_root := _version(root)) is not None and of_root != installed():
        fail(
            f"{root} is version {of_root}, but the installed training-platform is {installed()}: install "
            f"{DISTRIBUTION}=={of_root}, or run `make setup` there and use its .venv/bin/training-platform."
        )
    return root


def root_around(path: Path | None = None) -> Path | None:
    """Return the same root as ``repository``, or None if there is none."""
    start = (path or Path()).resolve()
    folders = (start,) if path else (start, *start.parents)
    roots = (folder for folder in folders if (folder / "Pulumi.yaml").is_file() and (folder / "stacks").is_dir())
    return next(roots, None)


def installed() -> str:
    """Return the version of the installed package."""
    from importlib.metadata import version  # imports the parser of e-mails

    return version(DISTRIBUTION)


def _version(root: Path) -> str | None:
    """Return the version of a clone of this project, or None for a folder that contains only stacks."""
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
    """Return a shell completion that lists the names with a prefix, sorted and without duplicates."""

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
    """Exit with a one-sentence message on standard error. Code 2 means a failed check or wrong usage."""
    say_folded(f"training-platform: {message}", err=True)
    sys.exit(code)


def need(extra: Literal["adopt", "jobs", "sandbox", "verify"], command: str) -> None:
    """Exit with code 2 and a one-sentence message if the extra that ``command`` needs is not installed."""
    if any(find_spec(module) is None for module in EXTRAS[extra]):
        fail(f"{command} needs the extra `{extra}`: {install(extra)}")


def say(text: str, *, err: bool = False) -> None:
    """Print text that may contain names from files. Control characters are removed; a terminal would obey them."""
    click.echo(printable(text), err=err)


def say_folded(text: str, *, err: bool = False) -> None:
    """Print sentences. On a terminal they are wrapped between words and keep their indentation."""
    stream = sys.stderr if err else sys.stdout
    columns = os.get_terminal_size(stream.fileno()).columns if stream.isatty() else 0
    say(folded(text, columns) if columns else text, err=err)


def folded(text: str, width: int) -> str:
    """Return text wrapped to at most ``width`` columns. Words are never broken, since people copy them."""
    lines = []
    for line in text.splitlines():
        indent = line[: len(line) - len(line.lstrip())]
        lines += textwrap.wrap(
            line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
        ) or [""]
    return "\n".join(lines)


def line_width() -> int:
    """Return the width of the terminal, or COLUMNS. For a pipe, return a width greater than that of any line."""
    return shutil.get_terminal_size((10_000, 0)).columns


def say_beside(head: str, text: str) -> None:
    """Print text to the right of ``head``, wrapped to the width of the terminal.

    If there is too little space on the right, the text is printed below ``head``. Lines are not wrapped for a pipe.
    """
    width = line_width()
    room = width - len(head)
    if room < max(min(len(text), 30), *map(len, text.split()), 0):
        head, room = f"{head.rstrip()}\n    ", width - 4
    indent = " " * (len(head) - head.rfind("\n") - 1)
    say(head + f"\n{indent}".join(textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False)))


def print_json(value: object) -> None:
    """Print a value as JSON."""
    click.echo(json.dumps(value, indent=2))
