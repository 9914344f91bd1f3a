"""``training-platform sandbox``: the real engine against a local Google Cloud."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from cli.root import fail, repository

if TYPE_CHECKING:
    from sandbox.run.folder import Folder
    from sandbox.run.session import Session
    from sandbox.run.summary import Summary

app = typer.Typer(help="Run the real Pulumi engine against a local Google Cloud.", no_args_is_help=True)

StackName = Annotated[str, typer.Argument(help="A stack of stacks/.", metavar="STACK")]
Place = Annotated[Path | None, typer.Option("--workspace", help="Where everything is kept; default: .sandbox/.")]
Durations = Annotated[
    list[str] | None,
    typer.Option("--duration", help="How long operations take: container.clusters=6, *=1, or real.", metavar="KIND=S"),
]
Parallel = Annotated[int | None, typer.Option("--parallel", min=1, help="Operations at once; default: all that can.")]
Crds = Annotated[
    list[Path] | None,
    typer.Option("--crds", help="A folder of CRDs that custom objects are judged by.", exists=True, file_okay=False),
]
Render = Annotated[
    Path | None,
    typer.Option("--render", help="Write Kubernetes objects here as YAML, in a folder per cluster.", metavar="DIR"),
]
ApiServer = Annotated[
    bool, typer.Option("--api-server", help="Apply Kubernetes objects to real API servers: KUBEBUILDER_ASSETS.")
]
Scenario = Annotated[
    Path | None, typer.Option("--scenario", help="A file of what is to go wrong meanwhile.", metavar="FILE")
]
Yes = Annotated[bool, typer.Option("--yes", help="Install the Pulumi CLI without asking, where it is missing.")]
Root = Annotated[Path | None, typer.Option("--root", help="The repository; default: the one around this folder.")]


@dataclass(frozen=True)
class _Place:
    """Which repository, where its sandbox is, and whether the CLI may be downloaded unasked."""

    root: Path | None
    workspace: Path | None
    yes: bool = False

    def folder(self) -> Folder:
        from sandbox.run.folder import folder_at

        return folder_at(repository(self.root), self.workspace)

    def ask(self, version: str) -> bool:
        """Decide about a download: ``--yes``, else the person at the terminal, else nobody."""
        if self.yes or not sys.stdin.isatty():
            return self.yes
        return typer.confirm(f"The Pulumi CLI is not on PATH. Download version {version}?", err=True)


@app.command("up")
def up(
    stack: StackName,
    *,
    resume: Annotated[
        bool, typer.Option("--resume", help="Take over from a killed run: its lock, and what it had begun.")
    ] = False,
    durations: Durations = None,
    parallel: Parallel = None,
    crds: Crds = None,
    render: Render = None,
    api_server: ApiServer = False,
    scenario: Scenario = None,
    workspace: Place = None,
    yes: Yes = False,
    root: Root = None,
) -> None:
    """Bring a stack up, and a team's environment before it.

    Exit code 0: done. 1: the engine or the cloud refused. 2: it could not be tried.
    """
    place = _Place(root, workspace, yes)
    with _session(
        stack,
        place,
        durations=durations,
        parallel=parallel,
        crds=crds,
        render=render,
        api_server=api_server,
        scenario=scenario,
    ) as session:
        for summary in session.up(stack, resume=resume):
            _print(summary)


@app.command("preview")
def preview(
    stack: StackName,
    *,
    parallel: Parallel = None,
    crds: Crds = None,
    workspace: Place = None,
    yes: Yes = False,
    root: Root = None,
) -> None:
    """Say what an up would change; a team's environment must be up."""
    with _session(stack, _Place(root, workspace, yes), parallel=parallel, crds=crds) as session:
        _print(session.preview(stack))


@app.command("refresh")
def refresh(
    stack: StackName,
    *,
    parallel: Parallel = None,
    crds: Crds = None,
    scenario: Scenario = None,
    workspace: Place = None,
    yes: Yes = False,
    root: Root = None,
) -> None:
    """Take what the local cloud holds into the state."""
    place = _Place(root, workspace, yes)
    with _session(stack, place, parallel=parallel, crds=crds, scenario=scenario) as session:
        _print(session.refresh(stack))


@app.command("destroy")
def destroy(
    stack: StackName,
    *,
    lift_protection: Annotated[
        bool, typer.Option("--lift-protection", help="Take all protection from the stack first.")
    ] = False,
    durations: Durations = None,
    parallel: Parallel = None,
    scenario: Scenario = None,
    workspace: Place = None,
    yes: Yes = False,
    root: Root = None,
) -> None:
    """Delete everything of a stack; a protected one is refused."""
    place = _Place(root, workspace, yes)
    with _session(stack, place, durations=durations, parallel=parallel, scenario=scenario) as session:
        _print(session.destroy(stack, lift=lift_protection))


@app.command("serve")
def serve(
    *,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Of the local cloud; 0 takes a free one.")] = 0,
    durations: Durations = None,
    crds: Crds = None,
    api_server: ApiServer = False,
    scenario: Scenario = None,
    workspace: Place = None,
    root: Root = None,
) -> None:
    """Serve the local cloud until interrupted, for this command's other runs or an engine run by hand.

    Prints the gcp provider's settings, to be put under config: in a stack file.
    """
    from sandbox.cloud.endpoints import endpoints
    from sandbox.run.durations import parse_durations
    from sandbox.run.faults import playing
    from sandbox.run.kubernetes import choose_mode
    from sandbox.run.serve import settings_lines, wait_for_the_end
    from sandbox.run.servers import announced, serving
    from sandbox.run.session import read_stacks

    with _problems():
        folder, seconds = _Place(root, workspace).folder(), parse_durations(durations or ())
        mode, stacks = choose_mode(folder, api_server=api_server, render=None), read_stacks(folder.root, ())
        with (
            folder.alone(),
            serving(folder, stacks, durations=seconds, crds=crds or (), port=port, binaries=mode.binaries) as servers,
            announced(folder, servers),
            playing(servers.cloud, scenario),
        ):
            for line in settings_lines(servers, endpoints(servers.cloud)):
                typer.echo(line)
            sys.stdout.flush()
            wait_for_the_end()


@app.command("status")
def status(*, workspace: Place = None, root: Root = None) -> None:
    """Say what the sandbox holds, and which quota that uses."""
    from sandbox.run.session import read_stacks
    from sandbox.run.status import status_lines

    with _problems():
        folder = _Place(root, workspace).folder()
        for line in status_lines(folder, read_stacks(folder.root, ())):
            typer.echo(line)


@contextmanager
def _session(
    stack: str,
    place: _Place,
    *,
    durations: list[str] | None = None,
    parallel: int | None = None,
    crds: list[Path] | None = None,
    render: Path | None = None,
    api_server: bool = False,
    scenario: Path | None = None,
) -> Iterator[Session]:
    from rich.console import Console

    from sandbox.run.durations import parse_durations
    from sandbox.run.engine import PARALLEL
    from sandbox.run.session import Options, session

    with _problems():
        options = Options(
            durations=parse_durations(durations or ()),
            parallel=parallel or PARALLEL,
            crds=tuple(crds or ()),
            render=render,
            api_server=api_server,
            scenario=scenario,
        )
        with session(place.folder(), [stack], options, console=Console(stderr=True), ask=place.ask) as made:
            yield made


@contextmanager
def _problems() -> Iterator[None]:
    """End the command with one message and the exit code that fits."""
    from sandbox.run.problems import CannotRun, RunFailed

    try:
        yield
    except CannotRun as error:
        fail(str(error))
    except RunFailed as error:
        _failed(error.summary, str(error))


def _failed(summary: Summary | None, message: str) -> NoReturn:
    if summary is not None:
        _print(summary)
    typer.echo(f"training-platform: {message}", err=True)
    raise typer.Exit(1)


def _print(summary: Summary) -> None:
    from sandbox.run.summary import as_text

    typer.echo(as_text(summary))
