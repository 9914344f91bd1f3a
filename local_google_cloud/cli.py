"""The command ``local-google-cloud``, which serves a local Google Cloud for any program on this machine."""

from __future__ import annotations

import signal
from pathlib import Path
from threading import Event

import click

from local_google_cloud.endpoints import endpoints


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def local_google_cloud() -> None:
    """Run a local emulator of Google Cloud's REST APIs."""


@local_google_cloud.command(epilog="\b\nExample:\n  local-google-cloud serve --project example --port 8431")
@click.option("--project", "projects", multiple=True, required=True, metavar="ID", help="Project that exists.")
@click.option("--port", default=0, type=click.IntRange(0, 65535), help="Port; 0 picks a free one.")
@click.option("--state", type=click.Path(dir_okay=False, path_type=Path), help="File that keeps the resources.")
def serve(projects: tuple[str, ...], port: int, state: Path | None) -> None:
    """Serve until interrupted, and print the settings that Pulumi's gcp provider needs."""
    try:
        import local_google_cloud.http.server as http  # noqa: PLC0415 # needs the extra, help does not
        from local_google_cloud.local_cloud import LocalCloud  # noqa: PLC0415 # as above
        from local_google_cloud.state.cloud import CloudSettings  # noqa: PLC0415 # as above
        from local_google_cloud.state.store import Store  # noqa: PLC0415 # as above
    except ImportError as error:
        raise click.ClickException(f"{error.name} is missing: pip install 'training-platform[sandbox]'.") from error

    settings = CloudSettings(accept_objects=False)
    ended = Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    try:
        with http.serve(LocalCloud(projects, store=Store(state), settings=settings), port) as bound:
            click.echo(f"# http://127.0.0.1:{bound}/ until interrupted; into Pulumi.STACK.yaml:")
            click.echo("# Requests for services that are not in this list go to Google, not to this server.")
            click.echo(f"config:\n  gcp:project: {projects[0]}")
            for setting, url in endpoints(bound).items():
                click.echo(f"  {setting}: {url}")
            click.echo("  gcp:accessToken: any")
            ended.wait()
    except OSError as error:
        raise click.ClickException(f"cannot serve on port {port}: {error.strerror or error}.") from error


def main() -> None:
    """Run the command."""
    local_google_cloud()
