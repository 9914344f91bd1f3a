"""``training-platform job submit|debug|list|status|logs|cancel|requeue|wait|why``: runs on GKE and on Vertex AI."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from training_platform.cli.shared import (
    Format,
    completion,
    example,
    fail,
    format_option,
    instead,
    line_width,
    local_cloud_option,
    need,
    print_json,
    repository,
    root_around,
    root_option,
    say,
    say_folded,
    stacked,
    today_option,
)
from training_platform.config.reading.finding import UserError
from training_platform.parts.jobs.cli.by_pipeline import by_pipeline
from training_platform.parts.jobs.cli.job import TargetName, app, job_file, print_findings, target_type

if TYPE_CHECKING:
    from training_platform.clients.google_services import CloudLogging
    from training_platform.config.workspace import Workspace
    from training_platform.parts.jobs.gke.gke_job import GkeJob
    from training_platform.parts.jobs.resolve import ResolvedJob
    from training_platform.parts.jobs.runs.places import RunPlace
    from training_platform.parts.jobs.runs.state import Run
    from training_platform.parts.jobs.runs.submission import Prepared
    from training_platform.parts.jobs.runs.waits import Waits
    from training_platform.resources.environment_outputs import EnvironmentOutputs

TIMEOUT_EXIT_CODE = 3
_REGISTRY_SECONDS = 10


def _team_names() -> list[str]:
    from training_platform.config.workspace import read_workspace

    root = root_around()
    if root is None:
        return []
    return sorted(team.name for _, team, _ in read_workspace(root).teams())


def _job_names() -> list[str]:
    """Return the names of jobs for shell completion. Names of runs start with them; the clusters are not queried."""
    root = root_around()
    if root is None:
        return []
    return sorted(f"{path.stem}-" for path in (root / "jobs").glob("*/*.yaml"))


run_argument = click.argument(
    "run", metavar="RUN", shell_complete=completion(_job_names), help="Name of the run, as `job submit` printed it."
)
_team = click.option("--team", shell_complete=completion(_team_names), help="Team of the runs.")
access_options = stacked(
    click.option("--kubeconfig", help="Kubeconfig file; default: KUBECONFIG, or kubectl's default."),
    local_cloud_option,
    root_option,
)
of_a_run_options = stacked(format_option, _team, access_options)


@dataclass(frozen=True, kw_only=True)
class RunsOptions:
    """The options of the commands for runs. The fields from ``run`` on are only for commands that submit a job."""

    output_format: Format = "text"
    team: str | None = None
    kubeconfig: str | None = None
    local_cloud: str | None = None
    root: Path | None = None
    run: str | None = None
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    nodes: int | None = None
    today: str | None = None
    strict: bool = False

    def __post_init__(self) -> None:
        """Exit if the extra ``jobs`` is missing."""
        need("jobs", "job")

    def workspace(self) -> Workspace:
        """Return all stack files. Raises UnreadableError."""
        from training_platform.config.workspace import read_workspace

        return read_workspace(self.folder())

    def folder(self) -> Path:
        """Return the repository's root."""
        return repository(self.root)

    def api(self, place: RunPlace) -> Any:
        """Return the API at a place where jobs run: ClusterApi or VertexJobs. Raises ClusterError or GoogleError."""
        from training_platform.clients.google_services import VertexJobs
        from training_platform.clients.kubernetes_api import connect

        if place.target == "vertex":
            return VertexJobs(place.scope.project, place.key, self.endpoint("aiplatform"))
        return connect(place.key, contexts=place.contexts, kubeconfig=self.kubeconfig, log_in=self.log_in(place))

    def log_in(self, place: RunPlace) -> str:
        """Return the command that adds a cluster to the kubeconfig. For a local cloud there is no such command."""
        if self.local_cloud is None:
            return place.log_in
        contexts = " or ".join(place.contexts)
        return f"the local cloud has no Kubernetes API; set --kubeconfig to a file with a context {contexts}"

    def outputs(self, environment: str) -> EnvironmentOutputs | None:
        """Return the exports of a deployed environment, or None with a local cloud or if they are unreadable."""
        from training_platform.clients.stack_outputs import environment_outputs

        if self.local_cloud:
            return None
        return environment_outputs(self.folder(), environment)

    def log(self, place: RunPlace) -> CloudLogging:
        """Return a client of Cloud Logging for a place. Raises GoogleError."""
        from training_platform.clients.google_services import CloudLogging

        return CloudLogging(place.log_source, self.endpoint("logging"))

    def vms(self, place: RunPlace, job: GkeJob) -> Iterator[str]:
        """Yield sentences about the recent activity of the node pools that contain a job's VMs."""
        from training_platform.clients.google_services import node_pools
        from training_platform.config.reading.clock import today
        from training_platform.parts.jobs.runs.why_on_gke import vm_sentences

        def states() -> dict[str, Any]:
            return node_pools(place.environment.project, place.location, place.cluster, self.endpoint("container"))

        yield from vm_sentences(job, states, today(self.folder(), None))

    def looks_up(self, image: str) -> bool:
        """Return True if an image should be looked up. With a local cloud, only registries on this machine are used."""
        from training_platform.clients.registries import image_name, is_local

        return self.local_cloud is None or is_local(image_name(image).registry)

    def endpoint(self, service: str) -> str | None:
        """Return the address of a service in a local cloud, or None to use Google's own."""
        from training_platform.clients.google_api import local_endpoint

        return local_endpoint(self.local_cloud, service)


def _variables(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    for value in values:
        if "=" not in value:
            raise click.BadParameter(f"{value!r} is not NAME=VALUE.")
    pairs = (value.split("=", 1) for value in values)
    return tuple((name, text) for name, text in pairs)


_SEVERAL_WORDS = re.compile(r"--?[\w-]+\s+\S")


def _one_word(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    for value in values:
        if _SEVERAL_WORDS.match(value):
            words = " ".join(f"--args={word}" for word in value.split())
            raise click.BadParameter(
                f"{value!r} is a single argument with spaces, and no shell splits it. Nearest: {words}"
            )
    return values


_changes = stacked(
    click.option("--run", "--name", "run", help="Name of the run, JOB-SUFFIX; default: five random letters as suffix."),
    click.option(
        "--args",
        multiple=True,
        callback=_one_word,
        help="Additional argument of the program, without spaces. Repeatable.",
    ),
    click.option(
        "--env", multiple=True, metavar="NAME=VALUE", callback=_variables, help="Additional variable. Repeatable."
    ),
    click.option("--nodes", type=click.IntRange(min=1), help="Number of VMs: `nodes` on GKE, `replicas` on Vertex AI."),
    click.option("--strict", is_flag=True, help="Submit nothing if the image's registry does not answer."),
)


@app.command("submit", epilog=example("training-platform job submit jobs/vision/finetune.yaml --target gke"))
@job_file
@click.option("--target", type=target_type, help="Target of the run; required if the job has both.")
@click.option(
    "--wherever",
    type=click.FloatRange(min=0),
    metavar="MINUTES",
    help="Try the job's places in order, each for this time, until one starts the job; default: only the first place.",
)
@instead("--dry-run", "training-platform job render FILE prints the run, and submits nothing.")
@_changes
@today_option
@format_option
@access_options
@by_pipeline
def submit(file: Path, target: TargetName | None, wherever: float | None, **chosen: Any) -> None:
    """Submit a job, and print the name of its run. On GKE, a grid has a run for each combination.

    Options change only this run, not the file.

    Needs the extra `jobs`; for GKE a kubeconfig, for Vertex AI application default credentials.

    A job with errors in `job check` is not submitted, nor is a job whose image is not in its registry. If a registry
    does not answer, a warning is printed. On GKE, the API server and every webhook first have to accept the job in a
    dry run. Exit code 1: the job has errors. 2: it could not be submitted.
    """
    if wherever is not None and target:
        fail("--wherever tries every place of the job, so it cannot be combined with --target.")
    options = RunsOptions(**chosen)
    if wherever is None:
        _submit_and_print(file, target, options)
    else:
        _submit_wherever(file, options, wherever)


@app.command("debug", epilog=example("training-platform job debug jobs/vision/finetune.yaml --minutes 30"))
@job_file
@_changes
@click.option("--minutes", type=click.IntRange(1, 480), default=60, help="Minutes until the run ends; default: 60.")
@today_option
@format_option
@access_options
def debug(file: Path, minutes: int, **chosen: Any) -> None:
    """Submit a job on GKE with containers that wait for a shell instead of starting the program.

    Needs the extra `jobs` and a kubeconfig. The run waits in the queue like any other run. It has the job's image,
    mounts, secrets and accelerators, and ends after --minutes. Open the shell with `job exec RUN`, and end the run with
    `job cancel RUN`. The image needs `sh`.
    """
    options = RunsOptions(**chosen)
    names, program = _submit_and_print(file, "gke", options, minutes)
    if options.output_format == "text":
        say(f"# training-platform job exec {names[0]} opens a shell once it runs; its program: {program}", err=True)


def _submit_and_print(
    file: Path, target: TargetName | None, options: RunsOptions, minutes: int = 0
) -> tuple[list[str], str]:
    """Submit a job and print its runs. Return their names and the job's program."""
    prepare_run = _preparation(file, options, minutes)
    prepared = prepare_run(target)
    if prepared.refused:
        sys.exit(1)
    names = _submit_prepared(prepared, options)
    _print_submitted(names, prepared, options)
    return names, prepared.program


def _preparation(file: Path, options: RunsOptions, minutes: int = 0) -> Callable[..., Prepared]:
    """Return a function that prepares a run for a target and prints its findings."""
    from training_platform.clients.registries import Registries, google_token
    from training_platform.config.reading.clock import today as clock
    from training_platform.parts.jobs.container import image
    from training_platform.parts.jobs.runs.submission import JOB_IMAGE_UNCHECKED, Changes, image_findings, prepare

    folder = options.folder()
    changes = Changes(args=options.args, env=options.env, nodes=options.nodes, hold_minutes=minutes)
    day = clock(folder, options.today)
    registries = Registries(seconds=_REGISTRY_SECONDS, token=google_token)

    def prepare_run(target: TargetName | None, index: int = 0) -> Prepared:
        prepared = prepare(file, folder, target, day, options.run, changes=changes, index=index)
        if prepared.job and not prepared.refused and options.looks_up(image(prepared.job)):
            findings = image_findings(prepared.job, registries)
            prepared = replace(prepared, findings=(*prepared.findings, *findings))
        print_findings(prepared.findings, err=True)
        if options.strict and any(finding.rule == JOB_IMAGE_UNCHECKED.id for finding in prepared.findings):
            fail("Nothing was submitted: with --strict, the image has to be found in its registry.")
        return prepared

    return prepare_run


def _submit_prepared(prepared: Prepared, options: RunsOptions) -> list[str]:
    """Submit a prepared run if it has no errors, and return its names. Raises UserError."""
    from training_platform.parts.jobs.runs.submission import RECORD, listing, submit_run

    place = prepared.place
    job = prepared.job
    assert place is not None  # as the run is not refused
    assert job is not None
    for note in filter(None, (*prepared.notes, listing(job))):
        say(f"# {note}", err=True)
    progress(f"Submitting to {place.target} {place.key} ...")
    outputs = partial(options.outputs, job.spec.environment)
    submitted = submit_run(prepared, partial(options.api, place), options.endpoint, outputs)
    if submitted.unrecorded:
        say(f"# {RECORD} is not in the run's output: {submitted.unrecorded}", err=True)
    return submitted.names


def _print_submitted(names: list[str], prepared: Prepared, options: RunsOptions) -> None:
    place = prepared.place
    assert place is not None  # as it was submitted
    if options.output_format == "json":
        print_json(
            {"run": names[0], "runs": names, "team": place.team.name, "target": place.target, "place": place.key}
        )
        return
    say("\n".join(names))
    waits = _published_waits(place, options)
    if waits:
        say(f"# {waits.said_of_team(place.team.name)}", err=True)


def _published_waits(place: RunPlace, options: RunsOptions) -> Waits | None:
    """Return the published expected start times of a cluster's jobs. If unreadable, say so on standard error."""
    from training_platform.parts.jobs.runs.waits import read_waits

    if place.target != "gke":
        return None
    try:
        return read_waits(options.folder(), place.team.environment, place.key)
    except UserError as error:
        say(f"# {error}", err=True)
        return None


def _submit_wherever(file: Path, options: RunsOptions, minutes: float) -> None:
    """Submit a job to each of its places in turn until one starts it. If none does, leave it waiting in the first.

    Each attempt is a separate run, which is deleted before the next attempt.
    """
    from training_platform.parts.jobs.resolve import read_job
    from training_platform.parts.jobs.runs.watching import wait, why_gke, why_vertex

    if options.run:
        fail("--wherever gives each try a new name, so it cannot be combined with --run.")
    prepare_run = _preparation(file, options)
    waited: list[tuple[TargetName, int]] = []
    for target, index in _tries(file, options.folder()):
        prepared = prepare_run(target, index)
        place = prepared.place
        if prepared.refused or place is None:
            continue
        place_name = f"{place.target} {place.key}"
        if target == "gke" and prepared.job and prepared.job.flavor:
            place_name += f" {prepared.job.flavor.name}"
        elif target == "vertex" and prepared.job and prepared.job.spec.vertex:
            machines = prepared.job.spec.vertex
            place_name += f" {machines.machine_type} {machines.capacity}"
        try:
            names = _submit_prepared(prepared, options)
            api = options.api(place)
            first = _run_at(api, place, names[0])
            read = partial(read_again, api, place, first) if first else lambda: None
            last = wait(read, seconds=minutes * 60, changed=lambda _: None, started=True)
        except UserError as error:
            say(f"# {place_name}: {error}", err=True)
            continue
        if last is None or last.done or last.state == "running":
            _print_submitted(names, prepared, options)
            return
        waited.append((target, index))
        if target == "gke":
            job, _ = read_job(file, options.folder(), options.workspace(), place=index)
            reasons = why_gke(api, place, last, job)
        else:
            reasons = why_vertex(api, place, last)
        say(f"# {place_name}: not started in {minutes:g} minutes. {' '.join(reasons)}", err=True)
        _delete_try(api, place, names, last)
    if not waited:
        sys.exit(1)
    say("# The run waits at the first of these places.", err=True)
    prepared = prepare_run(*waited[0])
    _print_submitted(_submit_prepared(prepared, options), prepared, options)


def _delete_try(api: Any, place: RunPlace, names: list[str], run: Run) -> None:
    from training_platform.clients.kubernetes_api import JOBSETS

    if place.target == "vertex":
        api.cancel(run.identity)
        return
    for name in names:
        api.delete(JOBSETS, place.team.name, name)


def _tries(file: Path, folder: Path) -> list[tuple[TargetName, int]]:
    """Return the places where a job file may run, in its order, as pairs of target and index."""
    from training_platform.parts.jobs.job_file import job_source, number_of_places
    from training_platform.parts.jobs.job_model import TARGETS

    job = job_source(file, folder).value
    return [(target, index) for target in TARGETS for index in range(number_of_places(job, target))]


@app.command("list", epilog=example("training-platform job list --team vision"))
@click.option("--environment", help="Only runs of this environment.")
@of_a_run_options
def list_runs(environment: str | None, **chosen: Any) -> None:
    """List the runs of teams in all their clusters and regions.

    Needs the extra `jobs`; for GKE a kubeconfig, for Vertex AI application default credentials. If a cluster or region
    does not answer, the command prints a sentence about it, lists the other runs, and ends with exit code 2. In a
    project that several teams share, members cannot list the runs on Vertex AI. The command then prints a sentence, but
    does not fail.
    """
    from training_platform.clients.google_api import GoogleError
    from training_platform.clients.kubernetes_api import NoKubeconfigError
    from training_platform.parts.jobs.runs.places import places
    from training_platform.parts.jobs.runs.watching import gke_runs, is_withheld, vertex_runs
    from training_platform.parts.jobs.submission_rights import members_may_not

    options = RunsOptions(**chosen)
    runs: list[Run] = []
    failures: dict[str, dict[str, None]] = {}  # each sentence once, with the commands that help
    withheld: dict[str, str] = {}
    for place in places(options.folder(), options.workspace(), environment=environment, team=options.team):
        progress(f"Reading runs of team {place.team.name} in {place.target} {place.key} ...")
        try:
            api = options.api(place)
            read_runs = gke_runs if place.target == "gke" else vertex_runs
            runs.extend(read_runs(api, place))
        except NoKubeconfigError as error:  # the same for every cluster, except for the command
            failures.setdefault(error.reason, {})[f"  {options.log_in(place)}"] = None
        except UserError as error:
            if isinstance(error, GoogleError) and is_withheld(error, place):
                sentence = members_may_not(place.team, place.environment, place.scope.project)
                withheld[sentence] = f"Runs on Vertex AI are not listed: {sentence}."
                continue
            failures[str(error)] = {}
    if runs or not failures or options.output_format == "json":
        print_runs(runs, options.output_format)
    for sentence in withheld.values():
        say_folded(sentence, err=True)
    for sentence, commands in failures.items():
        say_folded("\n".join((f"training-platform: {sentence}", *commands)), err=True)
    sys.exit(2 if failures else 0)


@app.command("status", epilog=example("training-platform job status finetune-7x2kq"))
@run_argument
@of_a_run_options
@by_pipeline
def status(run: str, **chosen: Any) -> None:
    """Show the state of a run.

    Needs the extra `jobs`; for GKE a kubeconfig, for Vertex AI application default credentials.
    """
    options = RunsOptions(**chosen)
    record, _, _ = find_run(run, options)
    print_runs([record], options.output_format)


@app.command("cancel", epilog=example("training-platform job cancel finetune-7x2kq"))
@run_argument
@of_a_run_options
@by_pipeline
def cancel(run: str, **chosen: Any) -> None:
    """Stop a run. On GKE its objects are deleted and its output is kept. On Vertex AI it ends as cancelled.

    Needs the extra `jobs`; for GKE a kubeconfig, for Vertex AI application default credentials.
    """
    from training_platform.clients.kubernetes_api import JOBSETS

    options = RunsOptions(**chosen)
    record, place, api = find_run(run, options)
    if not record.done:
        if place.target == "gke":
            api.delete(JOBSETS, place.team.name, record.identity)
        else:
            api.cancel(record.identity)
    if options.output_format == "json":
        print_json({"run": record.name, "stopping": not record.done, "state": record.state})
    elif record.done:
        say(f"{record.name} has ended already: {record.state}.")
    else:
        say(f"{record.name} is being stopped.")


@app.command("requeue", epilog=example("training-platform job requeue finetune-7x2kq"))
@run_argument
@of_a_run_options
def requeue_run(run: str, **chosen: Any) -> None:
    """Return a run on GKE to its queue after Kueue deactivated it, which happens after time-outs or at its time limit.

    Needs the extra `jobs` and a kubeconfig. The run keeps its name and output, so it continues from its last
    checkpoint. Its retries and its run time count from zero again. Exit code 2: Kueue has not deactivated the run.
    """
    from training_platform.parts.jobs.runs.submission import requeue

    options = RunsOptions(**chosen)
    record, place, api = find_run(run, options)
    if place.target == "vertex":
        fail(f"{run} is on Vertex AI, where teams have no queues: submit its file again.")
    requeue(record.name, place.team.name, api)
    if options.output_format == "json":
        print_json({"run": record.name, "team": place.team.name, "place": place.key})
    else:
        say(f"{record.name} is in its queue again.")


@app.command("wait", epilog=example("training-platform job wait finetune-7x2kq"))
@run_argument
@click.option("--timeout", "timeout_minutes", type=click.FloatRange(min=0), help="Maximum wait in minutes.")
@of_a_run_options
def wait_for(run: str, timeout_minutes: float | None, **chosen: Any) -> None:
    """Wait until a run has ended.

    Needs the extra `jobs`; for GKE a kubeconfig, for Vertex AI application default credentials.
    Exit code 0: success. 1: failed or cancelled. 2: unknown. 3: timeout.
    """
    from training_platform.parts.jobs.runs.state import EXIT_CODES
    from training_platform.parts.jobs.runs.watching import wait

    options = RunsOptions(**chosen)
    record, place, api = find_run(run, options)
    seconds = None if timeout_minutes is None else timeout_minutes * 60

    def print_state(current: Run) -> None:
        reason = f": {current.reason}" if current.reason else ""
        progress(f"{current.name} {current.state}{reason}")

    read = partial(read_again, api, place, record)
    last = record if record.gone else wait(read, seconds=seconds, changed=print_state)
    if last is None:
        fail(f"{run} no longer exists: somebody deleted it.")
    print_runs([last], options.output_format)
    sys.exit(EXIT_CODES.get(last.state, TIMEOUT_EXIT_CODE))


@app.command("why", epilog=example("training-platform job why finetune-7x2kq"))
@run_argument
@of_a_run_options
def why_it_waits(run: str, **chosen: Any) -> None:
    """Explain why a run waits or failed: its queue, quota, position in the queue, VMs and earlier attempts.

    Needs the extra `jobs`, and a kubeconfig for GKE. Vertex AI, node pools and earlier attempts need application
    default credentials.
    """
    from training_platform.clients.google_api import GoogleError, NoCredentialsError
    from training_platform.parts.jobs.runs.logs import earlier_attempts
    from training_platform.parts.jobs.runs.watching import why_gke, why_vertex

    options = RunsOptions(**chosen)
    record, place, api = find_run(run, options)
    if record.gone:
        sentences = [
            f'{record.name} {record.state}, and its objects no longer exist. Cloud Logging has: "{record.reason}".'
        ]
    elif place.target == "vertex":
        sentences = why_vertex(api, place, record)
    else:
        job = _current_job(record.name, place, options)
        sentences = why_gke(api, place, record, job, partial(options.vms, place))
        is_waiting = not record.done and record.state != "running"
        waits = _published_waits(place, options) if is_waiting else None
        if waits:
            sentences += waits.said_of(place.team.name, record.name)
    if place.target == "gke" and (record.gone or record.restarts or record.interruptions):
        try:
            sentences += earlier_attempts(options.log(place), place.cluster, place.team.name, record.name)
        except NoCredentialsError:  # the pods have told a person with a kubeconfig alone how the last attempt ended
            pass
        except GoogleError as error:
            sentences.append(f"Its earlier attempts could not be read: {error}")
    if options.output_format == "json":
        print_json({**record.as_json(), "why": sentences})
    else:
        say("\n".join(sentences))


def _current_job(run: str, place: RunPlace, options: RunsOptions) -> ResolvedJob | None:
    """Return the job of a run according to the current file, or None if no file has its name."""
    from training_platform.parts.jobs.job_file import FOLDER
    from training_platform.parts.jobs.naming import job_among
    from training_platform.parts.jobs.resolve import read_job

    folder = options.folder() / FOLDER / place.team.name
    name = job_among(run, [path.stem for path in folder.glob("*.yaml")])
    file = folder / f"{name}.yaml"
    if not file.is_file():
        return None
    job, _ = read_job(file, options.folder(), options.workspace())
    return job


@app.command("logs", epilog=example("training-platform job logs finetune-7x2kq --follow"))
@run_argument
@click.option("--follow", "-f", is_flag=True, help="Keep printing until the run has ended.")
@instead("--tail", "training-platform job logs RUN | tail -n 100 has the last lines.")
@of_a_run_options
@by_pipeline
def logs(run: str, follow: bool, **chosen: Any) -> None:
    """Print the logs of a run's containers, each line with the name of its pod or replica.

    Needs the extra `jobs`; for GKE a kubeconfig, for Vertex AI application default credentials. Logs of Vertex AI, and
    of deleted pods on GKE, are read from Cloud Logging. With --format json, each line is an object.
    """
    from training_platform.parts.jobs.runs.logs import gke_logs, pod_lines, vertex_lines
    from training_platform.parts.jobs.runs.watching import vertex_log_ids

    options = RunsOptions(**chosen)
    lines: Iterator[tuple[str, str]]
    record, place, api = find_run(run, options)

    def ended() -> bool:
        current = read_again(api, place, record)
        return current is None or current.done

    if place.target == "vertex":
        ids = partial(vertex_log_ids, api, record.identity)
        lines = vertex_lines(options.log(place), record, ids, ended=ended if follow else None)
    elif record.gone:
        lines = pod_lines(options.log(place), place, record.name)
    else:
        lines = gke_logs(api, place.team.name, record.name, follow=follow)
    has_lines = False
    for source, text in lines:
        has_lines = True
        if options.output_format == "json":
            click.echo(json.dumps({"source": source, "text": text}))
        else:
            say(f"{source} | {text}")
    if not has_lines:
        say(f"# {record.name} has no log lines yet; see training-platform job why {record.name}", err=True)


def find_run(run: str, options: RunsOptions) -> tuple[Run, RunPlace, Any]:
    """Return a run with the place where it runs, and that place's API. Exits if no place has the run.

    If the cluster has no objects of the run any more, its end is read from Cloud Logging.
    """
    from training_platform.parts.jobs.runs.logs import gone_run
    from training_platform.parts.jobs.runs.places import places_of_run

    expected_places, other_places = places_of_run(options.folder(), options.workspace(), run, team=options.team)
    located, refusals = _search(expected_places, run, options)
    if located is None and refusals:
        raise refusals[0].error  # the run is elsewhere only if its file has changed
    if located is None:
        located, refusals = _search(other_places, run, options)
    if located:
        return located
    all_places = [*expected_places, *other_places]
    failures = [str(refusal.error) for refusal in refusals if not refusal.withheld]
    for place in filter(_is_on_gke, all_places):
        try:
            record = gone_run(options.log(place), place, run)
            if record:
                return record, place, options.api(place)
        except UserError as error:
            failures.append(str(error))
    names = " and ".join(dict.fromkeys(f"{place.target} {place.key}" for place in all_places))
    failure = f" Not every place answered: {failures[0]}" if failures else ""
    return fail(f"Run {run} does not exist in {names}; training-platform job list lists the runs.{failure}")


class _UnseenPlace(NamedTuple):
    """The reason why the runs of a place could not be listed. ``withheld`` is True if members have no role there."""

    error: UserError
    withheld: bool


def _search(
    places: Sequence[RunPlace], run: str, options: RunsOptions
) -> tuple[tuple[Run, RunPlace, Any] | None, list[_UnseenPlace]]:
    """Return a run with its place and API from the first place that has it, and errors of places searched before."""
    from training_platform.clients.google_api import GoogleError
    from training_platform.parts.jobs.runs.watching import is_withheld, withheld

    refusals: list[_UnseenPlace] = []
    for place in places:
        try:
            api = options.api(place)
            record = _run_at(api, place, run)
        except UserError as error:
            if isinstance(error, GoogleError) and is_withheld(error, place):
                refusals.append(_UnseenPlace(withheld(error, place), withheld=True))
            else:
                refusals.append(_UnseenPlace(error, withheld=False))
            continue
        if record:
            return (record, place, api), refusals
    return None, refusals


def _is_on_gke(place: RunPlace) -> bool:
    return place.target == "gke"


def _run_at(api: Any, place: RunPlace, run: str) -> Run | None:
    from training_platform.parts.jobs.runs.watching import gke_now, vertex_named

    return vertex_named(api, place, run) if place.target == "vertex" else gke_now(api, place, run)


def read_again(api: Any, place: RunPlace, run: Run) -> Run | None:
    """Return the current state of a run, or None if it no longer exists. Raises ClusterError or GoogleError."""
    from training_platform.parts.jobs.runs.watching import vertex_now

    if place.target == "vertex":
        return vertex_now(api, run.identity)
    return _run_at(api, place, run.name)


def progress(text: str) -> None:
    """Print progress on a terminal. Nothing is printed to a pipe."""
    if sys.stderr.isatty():
        say(text, err=True)


def print_runs(runs: list[Run], output_format: Format) -> None:
    """Print runs as a table, or as a JSON list."""
    if output_format == "json":
        print_json([run.as_json() for run in runs])
        return
    from datetime import UTC, datetime

    from rich.text import Text

    from training_platform.checks.reports.terminal_tables import fitting_table, table_text
    from training_platform.parts.jobs.runs.state import since

    now = datetime.now(UTC)
    cells = {
        "RUN": [run.name for run in runs],
        "TEAM": [run.team for run in runs],
        "USER": [run.user or "-" for run in runs],
        "WHERE": [f"{run.target} {run.place}" for run in runs],
        "STATE": [f"{run.state}: {run.waiting_reason}" if run.waiting_reason else run.state for run in runs],
        "CHIPS": [str(run.accelerators) for run in runs],
        "PRIORITY": [run.priority or "-" for run in runs],
        "WAITED": [since(run.created, run.started or run.ended, now) for run in runs],
        "AGE": [since(run.created, "", now) for run in runs],
        "RESTARTS": [str(run.restarts) for run in runs],
        "CREATED": [run.created for run in runs],
    }
    rows = [[Text(cell) for cell in row] for row in zip(*cells.values(), strict=True)]
    width = line_width()
    first_to_drop = ("CREATED", "RESTARTS", "PRIORITY", "USER", "AGE", "CHIPS", "WAITED")
    say(table_text(fitting_table(tuple(cells), rows, width, drop=first_to_drop, subject=3), width))
