"""``training-platform job submit|list|status|logs|cancel|wait|why``: runs of jobs, on GKE and on Vertex AI alike."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from training_platform.cli.job.files import JobFile, Target, print_findings
from training_platform.cli.job.run_access import (
    OF_A_RUN,
    Options,
    RunName,
    find_run,
    job_now,
    print_runs,
    progress,
    read_again,
    runs_of,
    say_state,
)
from training_platform.cli.options import TodayOption, takes
from training_platform.cli.root import fail, print_json, say
from training_platform.config.reading.finding import UserError

if TYPE_CHECKING:
    from training_platform.jobs.runs.places import Place
    from training_platform.jobs.runs.state import Run
    from training_platform.jobs.runs.submission import Prepared

TIME_IS_UP = 3


@takes(Options, "output_format", "kubeconfig", "local_cloud", "root")
def submit(
    file: JobFile,
    *,
    target: Annotated[Target | None, typer.Option("--target", help="Where it runs, if the job has both.")] = None,
    run: Annotated[
        str | None, typer.Option("--run", help="The run's name; default: the job's and five letters.")
    ] = None,
    today: TodayOption = None,
    options: Options,
) -> None:
    """Submit a job, and print the name of its run; a grid on GKE is a run for each of its points.

    What `job check` refuses is not submitted. On GKE the API server and every webhook have to take the job in a dry run
    first. Exit code 1: the job has errors. 2: it could not be submitted.
    """
    from training_platform.config.reading.clock import today as clock
    from training_platform.jobs.runs.submission import delivered, prepare, submit_to_gke, submit_to_vertex

    folder = options.folder()
    prepared = prepare(file, folder, target, clock(folder, today), run)
    print_findings(prepared.findings, err=True)
    if prepared.refused or prepared.place is None:
        raise typer.Exit(1)
    place = prepared.place
    for note in prepared.notes:
        say(f"# {note}", err=True)
    progress(f"Submitting to {place.target} {place.key} ...")
    send = submit_to_gke if place.target == "gke" else submit_to_vertex
    ready = delivered(prepared, options.endpoint)
    names = send(ready, options.api(place))
    _keep_record(ready, names, options)
    if options.output_format == "json":
        print_json(
            {"run": names[0], "runs": names, "team": place.team.name, "target": place.target, "place": place.key}
        )
    else:
        say("\n".join(names))


def _keep_record(prepared: Prepared, runs: list[str], options: Options) -> None:
    """Write the record of a submission; where that fails, say so and go on, since the run is there."""
    from datetime import UTC, datetime

    from training_platform.clients.google_api import GoogleError
    from training_platform.jobs.runs.submission import RECORD, write_record

    try:
        write_record(prepared, runs, options.endpoint("storage"), datetime.now(UTC))
    except GoogleError as error:
        say(f"# {RECORD} is not in the run's output: {error}", err=True)


@takes(Options, "output_format", *OF_A_RUN)
def list_runs(
    *,
    environment: Annotated[str | None, typer.Option("--environment", help="Only runs of this environment.")] = None,
    options: Options,
) -> None:
    """List the runs of teams, in every cluster and region where they can be.

    A place that does not answer is one sentence, and exit code 2 after the others' runs.
    """
    from training_platform.jobs.runs.places import places

    found: list[Run] = []
    silent: list[str] = []
    there = places(options.folder(), options.workspace(), environment=environment, team=options.team)
    for place in there:
        progress(f"Asking {place.target} {place.key} for runs of team {place.team.name} ...")
        try:
            found.extend(runs_of(options.api(place), place))
        except UserError as error:
            silent.append(str(error))
    print_runs(found, options.output_format)
    for sentence in dict.fromkeys(silent):
        say(f"training-platform: {sentence}", err=True)
    raise typer.Exit(2 if silent else 0)


@takes(Options, "output_format", *OF_A_RUN)
def status(
    run: RunName,
    *,
    options: Options,
) -> None:
    """Show the state of a run."""
    found, _, _ = find_run(run, options)
    print_runs([found], options.output_format)


@takes(Options, "output_format", *OF_A_RUN)
def cancel(
    run: RunName,
    *,
    options: Options,
) -> None:
    """Stop a run. On GKE its objects are deleted, and what it wrote stays; on Vertex AI it ends as cancelled."""
    from training_platform.clients.kubernetes_api import JOBSETS

    found, place, api = find_run(run, options)
    if not found.done:
        if place.target == "gke":
            api.delete(JOBSETS, place.team.name, found.identity)
        else:
            api.cancel(found.identity)
    if options.output_format == "json":
        print_json({"run": found.name, "stopping": not found.done, "state": found.state})
    else:
        say(f"{found.name} has ended already: {found.state}." if found.done else f"{found.name} is being stopped.")


@takes(Options, "output_format", *OF_A_RUN)
def wait_for(
    run: RunName,
    *,
    timeout_minutes: Annotated[float | None, typer.Option("--timeout", min=0, help="Minutes to wait at most.")] = None,
    options: Options,
) -> None:
    """Wait until a run has ended.

    Exit code 0: it has ended well. 1: it failed or was cancelled. 2: nobody can say. 3: the time is up.
    """
    from training_platform.jobs.runs.state import EXIT_CODES
    from training_platform.jobs.runs.watching import wait

    found, place, api = find_run(run, options)
    seconds = None if timeout_minutes is None else timeout_minutes * 60
    read = partial(read_again, api, place, found)
    last = found if found.gone else wait(read, seconds=seconds, changed=say_state)
    if last is None:
        fail(f"{run} has gone while it was waited for: somebody has deleted it.")
    print_runs([last], options.output_format)
    raise typer.Exit(EXIT_CODES.get(last.state, TIME_IS_UP))


@takes(Options, "output_format", *OF_A_RUN)
def why_it_waits(
    run: RunName,
    *,
    options: Options,
) -> None:
    """Explain why a run waits or failed: its queue, its quota, its place in the queue, its VMs."""
    from training_platform.jobs.runs.watching import why_gke, why_vertex

    found, place, api = find_run(run, options)
    if found.gone:
        sentences = [f'{found.name} {found.state}, and its objects are gone. Cloud Logging has: "{found.reason}".']
    elif place.target == "gke":
        sentences = why_gke(api, place, found, job_now(found, place, options), partial(options.vms, place))
    else:
        sentences = why_vertex(api, place, found)
    if options.output_format == "json":
        print_json({**found.as_json(), "why": sentences})
    else:
        say("\n".join(sentences))


@takes(Options, "output_format", *OF_A_RUN)
def logs(
    run: RunName,
    *,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Keep printing until the run has ended.")] = False,
    options: Options,
) -> None:
    """Print what a run's containers wrote, each line after the name of its pod or replica.

    Of Vertex AI, and of runs on GKE whose pods are gone, it is what Cloud Logging keeps. With --format json each line
    is an object.
    """
    from training_platform.jobs.runs.logs import gke_logs, pod_lines, vertex_lines
    from training_platform.jobs.runs.watching import vertex_log_ids

    lines: Iterator[tuple[str, str]]
    found, place, api = find_run(run, options)
    if place.target == "vertex":
        ids = partial(vertex_log_ids, api, found.identity)
        lines = vertex_lines(options.log(place), found, ids, ended=_ends(api, place, found) if follow else None)
    elif found.gone:
        lines = pod_lines(options.log(place), place, found.name)
    else:
        lines = gke_logs(api, place.team.name, found.name, follow=follow)
    wrote = False
    for source, text in lines:
        wrote = True
        if options.output_format == "json":
            typer.echo(json.dumps({"source": source, "text": text}))
        else:
            say(f"{source} | {text}")
    if not wrote:
        say(f"# {found.name} has no log lines yet; see training-platform job why {found.name}", err=True)


def _ends(api: Any, place: Place, run: Run) -> Callable[[], bool]:
    """Return what says whether a run has ended; one that has gone has."""

    def ended() -> bool:
        now = read_again(api, place, run)
        return now is None or now.done

    return ended
