"""``training-platform sandbox``: runs the real engine against a local Google Cloud."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from training_platform.cli.shared import (
    PATH,
    Commands,
    complete_stacks,
    example,
    fail,
    need,
    repository,
    root_option,
    say,
    stacked,
)

if TYPE_CHECKING:
    from training_platform.parts.sandbox.run.folder import SandboxFolder
    from training_platform.parts.sandbox.run.reports import Summary
    from training_platform.parts.sandbox.run.session import Session

app = Commands("sandbox", help="Run the real Pulumi engine against a local Google Cloud.")

_stack = click.argument("stack", metavar="STACK", shell_complete=complete_stacks, help="Stack in stacks/.")
_durations = click.option(
    "--duration",
    "durations",
    multiple=True,
    metavar="KIND=S",
    help="Seconds that operations take, such as container.clusters=6 or *=1; or real.",
)
_crds = click.option(
    "--crds",
    multiple=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder with CRDs, against which custom objects are checked.",
)
_faults = click.option(
    "--fault",
    "faults",
    multiple=True,
    metavar="FAULT",
    help="Fault to inject: stockout=MACHINE_TYPE, failure=KIND or lost-response=KIND, such as container.nodePools.",
)
_cluster = stacked(
    click.option(
        "--kubeconfig",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="Kubeconfig of a local cluster for the Kubernetes objects, such as kind's; with --context.",
    ),
    click.option("--context", metavar="NAME", help="Context of --kubeconfig; later commands reuse it."),
)
_where = stacked(click.option("--workspace", type=PATH, help="Folder of the sandbox; default: .sandbox/."), root_option)
_run = stacked(
    click.option(
        "--parallel", type=click.IntRange(min=1), help="Maximum number of parallel operations; default: no limit."
    ),
    click.option("--as", "member", metavar="MEMBER", help="Run with the rights of a member, such as group:NAME."),
    click.option("--yes", is_flag=True, help="Install a missing Pulumi CLI without asking."),
    _where,
)


@dataclass(frozen=True, kw_only=True)
class SandboxOptions:
    """The options of all commands. Each command uses those that it needs."""

    durations: tuple[str, ...] = ()
    parallel: int | None = None
    member: str | None = None
    crds: tuple[Path, ...] = ()
    faults: tuple[str, ...] = ()
    kubeconfig: Path | None = None
    context: str | None = None
    workspace: Path | None = None
    yes: bool = False
    root: Path | None = None

    def __post_init__(self) -> None:
        """Exit if the extra is missing."""
        need("sandbox", "sandbox")

    def folder(self) -> SandboxFolder:
        """Return the sandbox's folder."""
        from training_platform.parts.sandbox.run.folder import folder_at

        return folder_at(repository(self.root), self.workspace)

    def ask(self, version: str) -> bool:
        """Return True if the CLI may be downloaded: with ``--yes``, or if the user agrees at a terminal."""
        if self.yes or not sys.stdin.isatty():
            return self.yes
        return click.confirm(f"The Pulumi CLI is not on PATH. Download version {version}?", err=True)


@app.command("up", epilog=example("training-platform sandbox up dev-vision --duration real/100"))
@_stack
@click.option(
    "--resume",
    is_flag=True,
    help="Continue after a killed run: remove its lock and import the resources that it created.",
)
@_durations
@_crds
@_faults
@_cluster
@_run
def up(stack: str, resume: bool, **chosen: Any) -> None:
    """Bring a stack up. For a team, bring its environment up first.

    Needs the extra `sandbox`, the Pulumi CLI and its gcp plugin. Exit code 0: success. 1: the engine or the cloud
    refused a request. 2: the command could not run.
    """
    with _session(stack, SandboxOptions(**chosen)) as session:
        for summary in session.up(stack, resume=resume):
            _print(summary)


@app.command("preview", epilog=example("training-platform sandbox preview dev"))
@_stack
@_crds
@_run
def preview(stack: str, **chosen: Any) -> None:
    """Print what `up` would change. A team's environment must be up. Needs the Pulumi CLI and its gcp plugin."""
    with _session(stack, SandboxOptions(**chosen)) as session:
        _print(session.preview(stack))


@app.command("refresh", epilog=example("training-platform sandbox refresh dev"))
@_stack
@_crds
@_run
def refresh(stack: str, **chosen: Any) -> None:
    """Update the state from the local cloud. Needs the Pulumi CLI and its gcp plugin."""
    with _session(stack, SandboxOptions(**chosen)) as session:
        _print(session.refresh(stack))


@app.command("destroy", epilog=example("training-platform sandbox destroy prod --lift-protection"))
@_stack
@click.option("--lift-protection", is_flag=True, help="First remove all protection from the stack.")
@_durations
@_run
def destroy(stack: str, lift_protection: bool, **chosen: Any) -> None:
    """Delete all resources of a stack; if its file is missing, use its state. Refuses a protected stack.

    Needs the Pulumi CLI and its gcp plugin.
    """
    with _session(stack, SandboxOptions(**chosen), by_state=True) as session:
        _print(session.destroy(stack, lift=lift_protection))


@app.command("serve", epilog=example("training-platform sandbox serve --port 8431"))
@click.option(
    "--port", default=0, type=click.IntRange(min=0, max=65535), help="Port of the local cloud; 0 picks a free one."
)
@_durations
@_crds
@_faults
@_where
def serve(port: int, **chosen: Any) -> None:
    """Serve the local cloud until interrupted, for other sandbox commands or for manual use with Pulumi.

    Prints the settings of the gcp provider, which go below config: in a stack file.
    """
    options = SandboxOptions(**chosen)  # first, since some of the imports need the extra
    from local_google_cloud.api import endpoints
    from training_platform.parts.sandbox.run.faults import check_faults, injected
    from training_platform.parts.sandbox.run.servers import (
        announced,
        parse_durations,
        serving,
        settings_lines,
        wait_for_signal,
    )
    from training_platform.parts.sandbox.run.session import read_stacks

    with _errors_end_the_command():
        folder = options.folder()
        durations = parse_durations(options.durations)
        check_faults(options.faults)
        stacks = read_stacks(folder.root, ())
        with (
            folder.locked(),
            serving(
                folder,
                stacks,
                durations=durations,
                crds=options.crds,
                port=port,
            ) as servers,
            announced(folder, servers),
            injected(servers.cloud, options.faults),
        ):
            for line in settings_lines(servers, endpoints(servers.cloud)):
                say(line)
            sys.stdout.flush()
            wait_for_signal()


@app.command("status", epilog=example("training-platform sandbox status"))
@_where
def status(**chosen: Any) -> None:
    """Print the sandbox's resources, and the quota in use."""
    options = SandboxOptions(**chosen)  # first, since some of the imports need the extra
    from training_platform.parts.sandbox.run.session import read_stacks
    from training_platform.parts.sandbox.run.status import status_lines

    with _errors_end_the_command():
        folder = options.folder()
        for line in status_lines(folder, read_stacks(folder.root, ())):
            say(line)


@contextmanager
def _session(stack: str, options: SandboxOptions, *, by_state: bool = False) -> Iterator[Session]:
    from rich.console import Console

    from training_platform.parts.sandbox.run.engine import PARALLEL
    from training_platform.parts.sandbox.run.servers import parse_durations
    from training_platform.parts.sandbox.run.session import RunOptions, session

    with _errors_end_the_command():
        settings = RunOptions(
            durations=parse_durations(options.durations),
            parallel=options.parallel or PARALLEL,
            member=options.member,
            crds=options.crds,
            faults=options.faults,
            kubeconfig=options.kubeconfig,
            context=options.context,
        )
        console = Console(stderr=True)
        with session(options.folder(), [stack], settings, console=console, ask=options.ask, by_state=by_state) as live:
            yield live


@contextmanager
def _errors_end_the_command() -> Iterator[None]:
    """If the block fails, end the command with one message and exit code 1 or 2."""
    from training_platform.parts.sandbox.run.reports import RunFailed

    try:
        yield
    except OSError as error:  # such as a full disk, or a folder without write permission
        fail(f"{error.filename or 'the sandbox'}: {error.strerror or error}.")
    except RunFailed as error:
        if error.summary is not None:
            _print(error.summary)
        fail(str(error), code=1)


def _print(summary: Summary) -> None:
    from training_platform.parts.sandbox.run.reports import as_text

    say(as_text(summary))
