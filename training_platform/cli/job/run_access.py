"""What the commands about runs share: their options, how a run is found and read, how runs are printed."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from training_platform.cli.options import Format, FormatOption, RootOption
from training_platform.cli.root import complete_runs, complete_teams, fail, need, print_json, repository, say
from training_platform.config.reading.finding import UserError

if TYPE_CHECKING:
    from training_platform.clients.google_services import CloudLogging
    from training_platform.config.workspace import Workspace
    from training_platform.jobs.resolve import ResolvedJob
    from training_platform.jobs.runs.places import Place
    from training_platform.jobs.runs.state import Run


OF_A_RUN = ("team", "kubeconfig", "local_cloud", "root")
RunName = Annotated[
    str,
    typer.Argument(help="The run, as `job submit` printed it.", metavar="RUN", autocompletion=complete_runs),
]
Team = Annotated[str | None, typer.Option("--team", help="The team that owns the runs.", autocompletion=complete_teams)]
Kubeconfig = Annotated[
    str | None, typer.Option("--kubeconfig", help="The kubeconfig; default: KUBECONFIG, else kubectl's own.")
]
_ON_THIS_MACHINE = re.compile(r"http://(127\.0\.0\.1|localhost|\[::1\]):\d{1,5}/?")


def _on_this_machine(address: str | None) -> str | None:
    """Return a local cloud's address; ends the command for any other, which would be sent the user's credentials."""
    if address is not None and not _ON_THIS_MACHINE.fullmatch(address):
        fail(f"--local-cloud {address!r} is not a server of this machine: write http://127.0.0.1:PORT.")
    return address


LocalCloud = Annotated[
    str | None,
    typer.Option(
        "--local-cloud",
        help="A local cloud to ask instead of Google, http://127.0.0.1:PORT.",
        callback=_on_this_machine,
    ),
]


@dataclass(frozen=True, kw_only=True)
class Options:
    """What the commands can be told; each takes the options that mean something to it."""

    output_format: FormatOption = "text"
    team: Team = None
    kubeconfig: Kubeconfig = None
    local_cloud: LocalCloud = None
    root: RootOption = None

    def __post_init__(self) -> None:
        """End the command where the extra is missing."""
        need("jobs", "job")

    def workspace(self) -> Workspace:
        """Return all stack files. Raises UnreadableError."""
        from training_platform.config.workspace import read_workspace

        return read_workspace(self.folder())

    def folder(self) -> Path:
        """Return the repository's root."""
        return repository(self.root)

    def api(self, place: Place) -> Any:
        """Return the API of a place: a ClusterApi or VertexJobs. Raises ClusterError and GoogleError."""
        from training_platform.clients.kubernetes_api import connect
        from training_platform.clients.vertex_ai import VertexJobs

        if place.target == "vertex":
            return VertexJobs(place.scope.project, place.key, self.endpoint("aiplatform"))
        return connect(place.key, contexts=place.contexts, kubeconfig=self.kubeconfig, log_in=place.log_in)

    def log(self, place: Place) -> CloudLogging:
        """Return what Cloud Logging keeps of a place. Raises GoogleError."""
        from training_platform.clients.google_services import CloudLogging

        project = place.environment.project if place.target == "gke" else place.scope.project
        return CloudLogging(project, self.endpoint("logging"))

    def vms(self, place: Place, job: ResolvedJob) -> Iterator[str]:
        """Yield what the pools are doing that a job's VMs come from."""
        from training_platform.clients.google_services import node_pools
        from training_platform.config.reading.clock import today
        from training_platform.jobs.runs.why_on_gke import vm_sentences

        def states() -> dict[str, Any]:
            return node_pools(place.environment.project, place.location, place.cluster, self.endpoint("container"))

        yield from vm_sentences(job, states, today(self.folder(), None))

    def endpoint(self, service: str) -> str | None:
        """Return where a local cloud has a service, None for Google's own."""
        return local_endpoint(self.local_cloud, service)


def local_endpoint(local_cloud: str | None, service: str) -> str | None:
    """Return where a local cloud has a service, None for Google's own."""
    return f"{local_cloud.rstrip('/')}/{service}/" if local_cloud else None


def find_run(run: str, options: Options) -> tuple[Run, Place, Any]:
    """Return a run with its place and that place's API; ends the command where it is nowhere.

    A run whose objects are gone from its cluster is the one that Cloud Logging saw end.
    """
    from training_platform.jobs.runs.logs import gone_run
    from training_platform.jobs.runs.places import places_of_run

    said, others = places_of_run(options.folder(), options.workspace(), run, team=options.team)
    there = [*said, *others]
    silent: list[str] = []
    for place in there:
        try:
            api = options.api(place)
            if found := _named(api, place, run):
                return found, place, api
        except UserError as error:
            if place in said:  # anywhere else the run is only if its file has changed
                raise
            silent.append(str(error))
    for place in (each for each in there if each.target == "gke"):
        try:
            if gone := gone_run(options.log(place), place, run):
                return gone, place, options.api(place)
        except UserError as error:
            silent.append(str(error))
    where = " and ".join(dict.fromkeys(f"{place.target} {place.key}" for place in there))
    unasked = f" Not everything could be asked: {silent[0]}" if silent else ""
    return fail(f"There is no run {run} in {where}; training-platform job list names those that are.{unasked}")


def _named(api: Any, place: Place, run: str) -> Run | None:
    from training_platform.clients.kubernetes_api import JOBSETS, WORKLOADS
    from training_platform.jobs.runs.on_gke import gke_run, workload_of
    from training_platform.jobs.runs.watching import vertex_named

    if place.target == "vertex":
        return vertex_named(api, place, run)
    jobset = api.get(JOBSETS, place.team.name, run)
    if jobset is None:
        return None
    return gke_run(jobset, workload_of(jobset, api.objects(WORKLOADS, place.team.name)), place.key)


def read_again(api: Any, place: Place, run: Run) -> Run | None:
    """Return a run as it is now; None where it has gone. Raises ClusterError and GoogleError."""
    from training_platform.jobs.runs.watching import vertex_now

    return vertex_now(api, run.identity) if place.target == "vertex" else _named(api, place, run.name)


def runs_of(api: Any, place: Place) -> Iterator[Run]:
    """Yield all runs of a place. Raises ClusterError and GoogleError."""
    from training_platform.jobs.runs.watching import gke_runs, vertex_runs

    yield from (gke_runs if place.target == "gke" else vertex_runs)(api, place)


def job_now(run: Run, place: Place, options: Options) -> ResolvedJob | None:
    """Return the job of a run as its file is now; None where it is not there or is rejected."""
    from training_platform.jobs.resolve import FOLDER, read_job

    path = options.folder() / FOLDER / place.team.name / f"{run.job}.yaml"
    return read_job(path, options.folder(), options.workspace())[0] if path.is_file() else None


def say_state(run: Run) -> None:
    """Say what a run that is waited for does now."""
    progress(f"{run.name} {run.state}{f': {run.reason}' if run.reason else ''}")


def progress(text: str) -> None:
    """Say on a terminal what is being done; a pipe stays quiet."""
    if sys.stderr.isatty():
        say(text, err=True)


def print_runs(runs: list[Run], output_format: Format) -> None:
    """Print runs as a table, or as a list of objects."""
    if output_format == "json":
        print_json([run.as_json() for run in runs])
        return
    columns: tuple[tuple[str, Callable[[Run], str]], ...] = (
        ("RUN", lambda run: run.name),
        ("TEAM", lambda run: run.team),
        ("WHERE", lambda run: f"{run.target} {run.place}"),
        ("STATE", lambda run: run.state),
        ("RESTARTS", lambda run: str(run.restarts)),
        ("CREATED", lambda run: run.created),
    )
    rows = [tuple(title for title, _ in columns), *(tuple(text(run) for _, text in columns) for run in runs)]
    widths = [max(len(row[index]) for row in rows) for index in range(len(columns))]
    for row in rows:
        say("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
