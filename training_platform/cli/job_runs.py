"""``training-platform job submit|list|status|logs|cancel|wait|why``: runs of jobs, on GKE and on Vertex AI alike."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from training_platform.cli.job import Root, Target, Today, print_findings
from training_platform.cli.root import fail, repository, say

if TYPE_CHECKING:
    from training_platform.clients.kubernetes_api import ClusterApi
    from training_platform.clients.vertex_ai import VertexJobs
    from training_platform.jobs.resolve import ResolvedJob
    from training_platform.jobs.runs.places import Place
    from training_platform.jobs.runs.state import Run

TIME_IS_UP = 3


class Format(StrEnum):
    """How an answer is printed."""

    text = "text"
    json = "json"


RunName = Annotated[str, typer.Argument(help="The run, as `job submit` printed it.", metavar="RUN")]
Team = Annotated[str | None, typer.Option("--team", help="The team, where several have a job of that name.")]
Output = Annotated[Format, typer.Option("--format", help="How the answer is printed.")]
Kubeconfig = Annotated[
    str | None, typer.Option("--kubeconfig", help="The kubeconfig; default: KUBECONFIG, else kubectl's own.")
]
Endpoint = Annotated[
    str | None, typer.Option("--vertex-endpoint", help="Where Vertex AI answers: that of a local cloud.", hidden=True)
]


def submit(
    file: Annotated[Path, typer.Argument(help="jobs/<team>/<job>.yaml")],
    *,
    target: Annotated[Target | None, typer.Option("--target", help="Where it runs, where the job says both.")] = None,
    run: Annotated[
        str | None, typer.Option("--run", help="The run's name; default: the job's and five letters.")
    ] = None,
    output_format: Output = Format.text,
    kubeconfig: Kubeconfig = None,
    vertex_endpoint: Endpoint = None,
    today: Today = None,
    root: Root = None,
) -> None:
    """Submit a job, and print the name of its run.

    What `job check` refuses is not submitted. On GKE the API server and every webhook have to take the job in a dry run
    first. Exit code 1: the job has errors. 2: it could not be submitted.
    """
    from training_platform.config.reading.clock import today as clock
    from training_platform.jobs.runs.submission import prepare, submit_to_gke, submit_to_vertex

    folder = repository(root)
    with _one_sentence():
        prepared = prepare(file, folder, target.value if target else None, clock(folder, today), run)
        print_findings(prepared.findings, err=True)
        if prepared.refused or prepared.place is None:
            raise typer.Exit(1)
        place = prepared.place
        for note in prepared.notes:
            say(f"# {note}", err=True)
        if place.target == "gke":
            name = submit_to_gke(prepared, _cluster(place, kubeconfig))
        else:
            name = submit_to_vertex(prepared, _vertex(place, vertex_endpoint))
    if output_format is Format.json:
        _print_json({"run": name, "team": place.team.name, "target": place.target, "place": place.key})
    else:
        say(name)


def list_runs(
    *,
    environment: Annotated[str | None, typer.Option("--environment", help="Only runs of this environment.")] = None,
    team: Annotated[str | None, typer.Option("--team", help="Only runs of this team.")] = None,
    output_format: Output = Format.text,
    kubeconfig: Kubeconfig = None,
    vertex_endpoint: Endpoint = None,
    root: Root = None,
) -> None:
    """List the runs of teams, in every cluster and region where they can be.

    A place that does not answer is one sentence, and exit code 2 after the others' runs.
    """
    from training_platform.config.workspace import read_workspace
    from training_platform.jobs.runs.places import places

    folder = repository(root)
    found: list[Run] = []
    silent: list[str] = []
    with _one_sentence():
        there = places(folder, read_workspace(folder), environment=environment, team=team)
    for place in there:
        try:
            found.extend(_runs(place, kubeconfig, vertex_endpoint))
        except _errors() as error:
            silent.append(str(error))
    _print_runs(found, output_format)
    for sentence in dict.fromkeys(silent):
        say(f"training-platform: {sentence}", err=True)
    raise typer.Exit(2 if silent else 0)


def status(
    run: RunName,
    *,
    team: Team = None,
    output_format: Output = Format.text,
    kubeconfig: Kubeconfig = None,
    vertex_endpoint: Endpoint = None,
    root: Root = None,
) -> None:
    """Say how a run is."""
    with _one_sentence():
        found, _, _ = _find(run, team, kubeconfig, vertex_endpoint, root)
    _print_runs([found], output_format)


def cancel(
    run: RunName,
    *,
    team: Team = None,
    kubeconfig: Kubeconfig = None,
    vertex_endpoint: Endpoint = None,
    root: Root = None,
) -> None:
    """Stop a run. On GKE its objects are deleted, and what it wrote stays; on Vertex AI it ends as cancelled."""
    from training_platform.clients.kubernetes_api import JOBSETS

    with _one_sentence():
        found, place, api = _find(run, team, kubeconfig, vertex_endpoint, root)
        if found.done:
            say(f"{found.name} has ended already: {found.state}.")
        elif place.target == "gke":
            api.delete(JOBSETS, place.team.name, found.identity)
            say(f"{found.name} is being stopped.")
        else:
            api.cancel(found.identity)
            say(f"{found.name} is being stopped.")


def wait_for(
    run: RunName,
    *,
    timeout_minutes: Annotated[float | None, typer.Option("--timeout", min=0, help="Minutes to wait at most.")] = None,
    team: Team = None,
    output_format: Output = Format.text,
    kubeconfig: Kubeconfig = None,
    vertex_endpoint: Endpoint = None,
    root: Root = None,
) -> None:
    """Wait until a run has ended.

    Exit code 0: it has ended well. 1: it failed or was cancelled. 2: nobody can say. 3: the time is up.
    """
    from training_platform.jobs.runs.state import EXIT_CODES
    from training_platform.jobs.runs.watching import wait

    with _one_sentence():
        found, place, api = _find(run, team, kubeconfig, vertex_endpoint, root)
        seconds = None if timeout_minutes is None else timeout_minutes * 60
        last = wait(lambda: _read(api, place, found), seconds=seconds, changed=_say_state)
        if last is None:
            fail(f"{run} has gone while it was waited for: somebody has deleted it.")
    _print_runs([last], output_format)
    raise typer.Exit(EXIT_CODES.get(last.state, TIME_IS_UP))


def why_it_waits(
    run: RunName,
    *,
    team: Team = None,
    output_format: Output = Format.text,
    kubeconfig: Kubeconfig = None,
    vertex_endpoint: Endpoint = None,
    root: Root = None,
) -> None:
    """Say why a run waits or has failed: its queue, its quota, its place in the queue, its VMs."""
    from training_platform.jobs.runs.watching import why_gke, why_vertex

    with _one_sentence():
        found, place, api = _find(run, team, kubeconfig, vertex_endpoint, root)
        if place.target == "gke":
            sentences = why_gke(api, place, found, _job(found, place, repository(root)))
        else:
            sentences = why_vertex(api, found)
    if output_format is Format.json:
        _print_json({**found.as_json(), "why": sentences})
    else:
        say("\n".join(sentences))


def logs(
    run: RunName,
    *,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the run has ended.")] = False,
    team: Team = None,
    kubeconfig: Kubeconfig = None,
    vertex_endpoint: Endpoint = None,
    root: Root = None,
) -> None:
    """Print what a run's containers wrote, each line after the name of its pod."""
    from training_platform.jobs.runs.logs import gke_logs

    with _one_sentence():
        found, place, api = _find(run, team, kubeconfig, vertex_endpoint, root)
        if place.target == "vertex":
            fail(
                f"{run} runs on Vertex AI, which keeps logs in Cloud Logging: gcloud logging read "
                f'\'resource.type="ml_job" resource.labels.job_id="{found.identity.rpartition("/")[2]}"\' '
                f"--project {place.scope.project} --order asc --format 'value(jsonPayload.message)'"
            )
        for pod, line in gke_logs(api, place.team.name, found.name, follow=follow):
            say(f"{pod} | {line}")


def add_to(app: typer.Typer) -> None:
    """Add the commands to ``training-platform job``."""
    for name, command in _COMMANDS.items():
        app.command(name)(command)


def _find(
    run: str, team: str | None, kubeconfig: str | None, endpoint: str | None, root: Path | None
) -> tuple[Run, Place, Any]:
    """Return a run with its place and that place's API; ends the command where it is nowhere."""
    from training_platform.config.workspace import read_workspace
    from training_platform.jobs.runs.places import places_of_run

    folder = repository(root)
    there = places_of_run(folder, read_workspace(folder), run, team=team)
    for place in there:
        api: Any = _cluster(place, kubeconfig) if place.target == "gke" else _vertex(place, endpoint)
        found = _named(api, place, run)
        if found:
            return found, place, api
    where = " and ".join(f"{place.target} {place.key}" for place in there)
    return fail(f"There is no run {run} in {where}; training-platform job list names those that are.")


def _named(api: Any, place: Place, run: str) -> Run | None:
    from training_platform.clients.kubernetes_api import JOBSETS, WORKLOADS
    from training_platform.jobs.runs.on_gke import gke_run, workload_of
    from training_platform.jobs.runs.watching import vertex_runs

    if place.target == "vertex":
        return next((each for each in vertex_runs(api, place) if each.name == run), None)
    jobset = api.get(JOBSETS, place.team.name, run)
    if jobset is None:
        return None
    return gke_run(jobset, workload_of(jobset, api.objects(WORKLOADS, place.team.name)), place.key)


def _read(api: Any, place: Place, run: Run) -> Run | None:
    from training_platform.jobs.runs.on_vertex import vertex_run

    return vertex_run(api.get(run.identity)) if place.target == "vertex" else _named(api, place, run.name)


def _runs(place: Place, kubeconfig: str | None, endpoint: str | None) -> Iterator[Run]:
    from training_platform.jobs.runs.watching import gke_runs, vertex_runs

    if place.target == "gke":
        yield from gke_runs(_cluster(place, kubeconfig), place)
    else:
        yield from vertex_runs(_vertex(place, endpoint), place)


def _cluster(place: Place, kubeconfig: str | None) -> ClusterApi:
    from training_platform.clients.kubernetes_api import connect

    return connect(place.key, contexts=place.contexts, kubeconfig=kubeconfig, log_in=place.log_in)


def _vertex(place: Place, endpoint: str | None) -> VertexJobs:
    from training_platform.clients.vertex_ai import VertexJobs

    return VertexJobs(place.scope.project, place.key, endpoint)


def _job(run: Run, place: Place, folder: Path) -> ResolvedJob | None:
    """Return the job of a run as its file is now; None where it is not there or is rejected."""
    from training_platform.config.workspace import read_workspace
    from training_platform.jobs.resolve import FOLDER, read_job

    path = folder / FOLDER / place.team.name / f"{run.job}.yaml"
    return read_job(path, folder, read_workspace(folder))[0] if path.is_file() else None


def _errors() -> tuple[type[Exception], ...]:
    from training_platform.clients.kubernetes_api import ClusterError
    from training_platform.clients.vertex_ai import VertexError
    from training_platform.config.reading.source import UnreadableError
    from training_platform.jobs.render import RenderError
    from training_platform.jobs.runs.places import NoPlaceError

    return ClusterError, VertexError, UnreadableError, RenderError, NoPlaceError


@contextmanager
def _one_sentence() -> Iterator[None]:
    """End the command with exit code 2 and one sentence where a place cannot be asked."""
    try:
        yield
    except _errors() as error:
        fail(str(error))


def _say_state(run: Run) -> None:
    """Say on a terminal what a run that is waited for does now; a pipe stays quiet."""
    if sys.stderr.isatty():
        say(f"{run.name} {run.state}{f': {run.reason}' if run.reason else ''}", err=True)


def _print_runs(runs: list[Run], output_format: Format) -> None:
    if output_format is Format.json:
        _print_json([run.as_json() for run in runs])
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


def _print_json(value: object) -> None:
    typer.echo(json.dumps(value, indent=2))


_COMMANDS: dict[str, Callable[..., None]] = {
    "submit": submit,
    "list": list_runs,
    "status": status,
    "cancel": cancel,
    "wait": wait_for,
    "why": why_it_waits,
    "logs": logs,
}
