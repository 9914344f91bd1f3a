"""``training-platform sandbox``: the real engine against a local Google Cloud."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, NoReturn

import typer

from training_platform.cli.options import RootOption, takes
from training_platform.cli.root import complete_stacks, fail, need, repository, say

if TYPE_CHECKING:
    from training_platform.sandbox.run.folder import Folder
    from training_platform.sandbox.run.reports.summary import Summary
    from training_platform.sandbox.run.session import Session

app = typer.Typer(help="Run the real Pulumi engine against a local Google Cloud.", no_args_is_help=True)

StackName = Annotated[str, typer.Argument(help="A stack of stacks/.", metavar="STACK", autocompletion=complete_stacks)]
Durations = Annotated[
    list[str] | None,
    typer.Option("--duration", help="How long operations take: container.clusters=6, *=1, or real.", metavar="KIND=S"),
]
Parallel = Annotated[int | None, typer.Option("--parallel", min=1, help="Operations at once; default: all that can.")]
Crds = Annotated[
    list[Path] | None,
    typer.Option("--crds", help="A folder of CRDs that custom objects are judged by.", exists=True, file_okay=False),
]
ApiServer = Annotated[
    bool, typer.Option("--api-server", help="Apply Kubernetes objects to real API servers: KUBEBUILDER_ASSETS.")
]
Scenario = Annotated[
    Path | None, typer.Option("--scenario", help="A file of what is to go wrong meanwhile.", metavar="FILE")
]
Place = Annotated[Path | None, typer.Option("--workspace", help="Where everything is kept; default: .sandbox/.")]
Yes = Annotated[bool, typer.Option("--yes", help="Install the Pulumi CLI without asking, where it is missing.")]

WHERE: Final = ("workspace", "root")
_RUN: Final = ("parallel", "yes", *WHERE)


@dataclass(frozen=True, kw_only=True)
class Options:
    """What the commands can be told; each takes the options that mean something to it.

    Made first of all, so it ends a command whose extra is not installed.
    """

    durations: Durations = None
    parallel: Parallel = None
    crds: Crds = None
    api_server: ApiServer = False
    scenario: Scenario = None
    workspace: Place = None
    yes: Yes = False
    root: RootOption = None

    def __post_init__(self) -> None:
        """End the command where the extra is missing."""
        need("sandbox", "sandbox")

    def folder(self) -> Folder:
        """Return where the sandbox is."""
        from training_platform.sandbox.run.folder import folder_at

        return folder_at(repository(self.root), self.workspace)

    def ask(self, version: str) -> bool:
        """Decide about a download: ``--yes``, else the person at the terminal, else nobody."""
        if self.yes or not sys.stdin.isatty():
            return self.yes
        return typer.confirm(f"The Pulumi CLI is not on PATH. Download version {version}?", err=True)


@app.command("up")
@takes(Options, "durations", "crds", "api_server", "scenario", *_RUN)
def up(
    stack: StackName,
    *,
    resume: Annotated[
        bool, typer.Option("--resume", help="Take over from a killed run: its lock, and what it was creating.")
    ] = False,
    options: Options,
) -> None:
    """Bring a stack up, and a team's environment before it.

    Exit code 0: done. 1: the engine or the cloud refused. 2: it could not be tried.
    """
    with _session(stack, options) as session:
        for summary in session.up(stack, resume=resume):
            _print(summary)


@app.command("preview")
@takes(Options, "crds", *_RUN)
def preview(stack: StackName, *, options: Options) -> None:
    """Say what an up would change; a team's environment must be up."""
    with _session(stack, options) as session:
        _print(session.preview(stack))


@app.command("refresh")
@takes(Options, "crds", "scenario", *_RUN)
def refresh(stack: StackName, *, options: Options) -> None:
    """Take what the local cloud holds into the state."""
    with _session(stack, options) as session:
        _print(session.refresh(stack))


@app.command("destroy")
@takes(Options, "durations", "scenario", *_RUN)
def destroy(
    stack: StackName,
    *,
    lift_protection: Annotated[
        bool, typer.Option("--lift-protection", help="Take all protection from the stack first.")
    ] = False,
    options: Options,
) -> None:
    """Delete everything of a stack, by its state where its file is gone; a protected one is refused."""
    with _session(stack, options, kept=True) as session:
        _print(session.destroy(stack, lift=lift_protection))


@app.command("serve")
@takes(Options, "durations", "crds", "api_server", "scenario", *WHERE)
def serve(
    *,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Port of the local cloud; 0 picks a free one.")
    ] = 0,
    options: Options,
) -> None:
    """Serve the local cloud until interrupted, for this command's other runs or an engine run by hand.

    Prints the gcp provider's settings, to be put under config: in a stack file.
    """
    from training_platform.sandbox.cloud.endpoints import endpoints
    from training_platform.sandbox.run.durations import parse_durations
    from training_platform.sandbox.run.faults import playing
    from training_platform.sandbox.run.kubernetes import api_server_programs
    from training_platform.sandbox.run.serve import settings_lines, wait_for_the_end
    from training_platform.sandbox.run.servers import announced, serving
    from training_platform.sandbox.run.session import read_stacks

    with _problems():
        folder, seconds, crds = options.folder(), parse_durations(options.durations or ()), options.crds or ()
        programs = api_server_programs(folder, asked_for=options.api_server)
        stacks = read_stacks(folder.root, ())
        with (
            folder.alone(),
            serving(
                folder, stacks, durations=seconds, crds=crds, port=port, programs=programs, at_once=True
            ) as servers,
            announced(folder, servers),
            playing(servers.cloud, options.scenario),
        ):
            for line in settings_lines(servers, endpoints(servers.cloud)):
                say(line)
            sys.stdout.flush()
            wait_for_the_end()


@app.command("status")
@takes(Options, *WHERE)
def status(*, options: Options) -> None:
    """Say what the sandbox holds, and which quota that uses."""
    from training_platform.sandbox.run.reports.status import status_lines
    from training_platform.sandbox.run.session import read_stacks

    with _problems():
        folder = options.folder()
        for line in status_lines(folder, read_stacks(folder.root, ())):
            say(line)


@contextmanager
def _session(stack: str, options: Options, *, kept: bool = False) -> Iterator[Session]:
    from rich.console import Console

    from training_platform.sandbox.run.durations import parse_durations
    from training_platform.sandbox.run.engine.engine import PARALLEL
    from training_platform.sandbox.run.session import Options as RunOptions
    from training_platform.sandbox.run.session import session

    with _problems():
        settings = RunOptions(
            durations=parse_durations(options.durations or ()),
            parallel=options.parallel or PARALLEL,
            crds=tuple(options.crds or ()),
            api_server=options.api_server,
            scenario=options.scenario,
        )
        console = Console(stderr=True)
        with session(options.folder(), [stack], settings, console=console, ask=options.ask, kept=kept) as made:
            yield made


@contextmanager
def _problems() -> Iterator[None]:
    """End the command with one message and the exit code that fits."""
    from training_platform.sandbox.run.problems import RunFailed

    try:
        yield
    except OSError as error:  # a full disk, a folder that nobody may write to
        fail(f"{error.filename or 'the sandbox'}: {error.strerror or error}.")
    except RunFailed as error:
        _failed(error.summary, str(error))


def _failed(summary: Summary | None, message: str) -> NoReturn:
    if summary is not None:
        _print(summary)
    say(f"training-platform: {message}", err=True)
    raise typer.Exit(1)


def _print(summary: Summary) -> None:
    from training_platform.sandbox.run.reports.summary import as_text

    say(as_text(summary))
