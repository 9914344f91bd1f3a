"""The entry point: all commands, and the exit code of the process.

A command imports its dependencies only when it runs, so that help and errors appear immediately.
"""

from __future__ import annotations

import gc
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NoReturn, TextIO

import click

from training_platform.checks.process import ended_by_signals
from training_platform.cli.shared import DISTRIBUTION, Commands, LateCommands, commands_of, part_commands
from training_platform.config.reading.finding import bug, printable

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 120, "show_default": True}
COULD_NOT = 2
NOBODY_READS = 141  # a shell's exit code for a program that a closed pipe ended: 128 and the number of the signal


_CORE = commands_of("training_platform.cli", {
    "check": "check:check", "plan": "plan:plan", "stacks": "stacks:stacks", "init": "init:app",
    "explain": "explain:explain", "catalog": "catalog:app", "quota": "quota:app",
    "software": "software:app", "schema": "stacks:schema",
    "pipeline-accounts": "pipeline_accounts:pipeline_accounts",
})  # fmt: skip
_PARTS = part_commands()


class App(Commands):
    """A group that lists the core commands, followed by the commands of parts (optional extensions)."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 # as click calls it
        """Write the commands in two groups."""
        self.format_section(formatter, "Commands", _CORE)
        self.format_section(formatter, "Commands of parts", _PARTS)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the arguments name. The error for an unknown name suggests groups that have it."""
        try:
            return super().resolve_command(ctx, args)
        except click.NoSuchCommand:
            groups = [group for group in self.commands if args[0] in getattr(self.commands[group], "commands", ())]
            if not groups:
                raise
            names = " or ".join(f"'{group} {args[0]}'" for group in groups)
            raise click.NoSuchCommand(args[0], f"No such command {args[0]!r}. Did you mean {names}?", ctx=ctx) from None


_COMMANDS = LateCommands({**_CORE, **_PARTS})


@click.group(cls=App, commands=_COMMANDS, context_settings=SETTINGS)
@click.version_option(package_name=DISTRIBUTION, message="%(package)s %(version)s", help="Print the version and exit.")
def app() -> None:
    """Plan, check and run an organisation's training platform on Google Cloud."""


def main() -> None:
    """Run the command. A signal ends it without output; an interrupt ends it with exit code 130, as shells expect.

    A bug in this program ends it with exit code 2, which means that something could not be checked. Python's own exit
    code 1 would mean that there are findings.
    """
    gc.set_threshold(50_000)  # a plan has few cycles: by default, looking for them is 15% of a check of 1,000 pools
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # without it, pydantic reads all entry points
    with standard_streams(), ended_by_signals():
        try:
            app()
        except KeyboardInterrupt:
            sys.exit(130)
        except StreamError:
            raise
        except Exception as error:  # noqa: BLE001 # any error here is a bug, not a finding about the stacks
            sys.exit(_failed(error))


def _failed(error: Exception) -> int:
    """Report a failure in one sentence, with a traceback only if the user requests it. Returns the exit code."""
    message = printable(bug("failed and checked nothing", error))
    sys.stderr.write(f"training-platform: {message.encode('utf-8', 'backslashreplace').decode()}\n")
    return COULD_NOT


class StreamError(Exception):
    """Raised if a standard stream cannot be written.

    It is not an OSError, since libraries would attribute an OSError to their own files.
    """

    def __init__(self, name: str, reason: OSError) -> None:
        super().__init__(f"{name} cannot be written: {reason.strerror or reason}.")
        self.reason = reason


@contextmanager
def standard_streams() -> Iterator[None]:
    """Run a command. If a standard stream fails, end the process with a one-sentence message and exit code 2.

    A closed pipe, as with ``head``, is not a failure: the process ends without a message, with exit code 141. A
    character that the encoding of standard output does not support becomes a ``?``.
    """
    if sys.stderr is None:  # its closer wants no messages; a newly opened file must not get its descriptor
        sys.stderr = open(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stdout is None:
        _end(COULD_NOT, "standard output is closed; if you do not need the output, redirect it to /dev/null.")
    sys.stdout = _checked(sys.stdout, "standard output", errors="replace")
    sys.stderr = _checked(sys.stderr, "standard error", errors=sys.stderr.errors)
    try:
        try:
            yield
        finally:  # buffered output would fail later, after the exit code is decided
            sys.stdout.flush()
            sys.stderr.flush()
    except StreamError as error:
        if isinstance(error.reason, BrokenPipeError):
            _end(NOBODY_READS, "")
        _end(COULD_NOT, str(error))


class _Checked(io.FileIO):
    """A file descriptor that raises StreamError if a write fails."""

    def __init__(self, descriptor: int, name: str) -> None:
        super().__init__(descriptor, "w", closefd=False)
        self._stream = name

    def write(self, data: ReadableBuffer, /) -> int:
        """Write bytes and return how many were written."""
        try:
            return super().write(data)
        except OSError as error:
            raise StreamError(self._stream, error) from error


def _checked(stream: TextIO, name: str, *, errors: str | None) -> TextIO:
    buffered = io.BufferedWriter(_Checked(stream.fileno(), name))
    lines = isinstance(stream, io.TextIOWrapper) and stream.line_buffering
    return io.TextIOWrapper(buffered, encoding=stream.encoding, errors=errors, line_buffering=lines)


def _end(code: int, message: str) -> NoReturn:
    """End the process without flushing output, since flushing would fail again."""
    if message:
        with suppress(OSError):
            os.write(2, f"training-platform: {message}\n".encode())
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    sys.exit(code)


if __name__ == "__main__":
    main()
