"""``training-platform job submit|debug|list|status|logs|cancel|requeue|wait|why``: runs of jobs, wherever they run."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
from training_platform.parts.jobs.cli.job import Target, app, job_file, print_findings, target_type

if TYPE_CHECKING:
    from training_platform.clients.google_services import CloudLogging
    from training_platform.config.workspace import Workspace
    from training_platform.parts.jobs.resolve import ResolvedJob
    from training_platform.parts.jobs.runs.places import RunPlace
    from training_platform.parts.jobs.runs.state import Run
    from training_platform.parts.jobs.runs.submission import Prepared
    from training_platform.parts.jobs.runs.waits import Waits
    from training_platform.resources.environment_outputs import EnvironmentOutputs

TIME_IS_UP = 3
SANDBOX_KUBECONFIG = ".sandbox/api-servers/kubeconfig"  # the sandbox's, with all its clusters
_REGISTRY_SECONDS = 10


def _team_names() -> list[str]:
    from training_platform.config.workspace import read_workspace

    root = root_around()
    return sorted(team.name for _, team, _ in read_workspace(root).teams()) if root else []


def _job_names() -> list[str]:
    """Return the beginnings of names of runs, which are the names of jobs; no cluster is asked for runs themselves."""
    root = root_around()
    return sorted(f"{path.stem}-" for path in (root / "jobs").glob("*/*.yaml")) if root else []


run_argument = click.argument(
    "run", metavar="RUN", shell_complete=completion(_job_names), help="The run, as `job submit` printed it."
)
_team = click.option("--team", shell_complete=completion(_team_names), help="The team that owns the runs.")
access_options = stacked(
    click.option("--kubeconfig", help="The kubeconfig; default: KUBECONFIG, else kubectl's own."),
    local_cloud_option,
    root_option,
)
of_a_run_options = stacked(format_option, _team, access_options)


@dataclass(frozen=True, kw_only=True)
class RunsOptions:
    """The options of the commands, which end without the extra; from ``run`` on, those of what submits a job."""

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
        """End the command where the extra is missing."""
        need("jobs", "job")

    def workspace(self) -> Workspace:
        """Return all stack files. Raises UnreadableError."""
        from training_platform.config.workspace import read_workspace

        return read_workspace(self.folder())

    def folder(self) -> Path:
        """Return the repository's root."""
        return repository(self.root)

    def api(self, place: RunPlace) -> Any:
        """Return the API of a place: a ClusterApi or VertexJobs. Raises ClusterError and GoogleError."""
        from training_platform.clients.google_services import VertexJobs
        from training_platform.clients.kubernetes_api import connect

        if place.target == "vertex":
            return VertexJobs(place.scope.project, place.key, self.endpoint("aiplatform"))
        return connect(place.key, contexts=place.contexts, kubeconfig=self.kubeconfig, log_in=self.log_in(place))

    def log_in(self, place: RunPlace) -> str:
        """Return what gives the kubeconfig a context of a cluster, which beside a local cloud is the sandbox's."""
        if self.local_cloud is None:
            return place.log_in
        stack = f"{place.team.environment}-{place.team.name}"
        return f"training-platform sandbox up {stack} --api-server, and --kubeconfig {SANDBOX_KUBECONFIG}"

    def outputs(self, environment: str) -> EnvironmentOutputs | None:
        """Return what a deployed environment exports; None beside a local cloud, or where nobody can read it."""
        from training_platform.clients.stack_outputs import environment_outputs

        return None if self.local_cloud else environment_outputs(self.folder(), environment)

    def log(self, place: RunPlace) -> CloudLogging:
        """Return Cloud Logging's client for a place. Raises GoogleError."""
        from training_platform.clients.google_services import CloudLogging

        return CloudLogging(place.log_source, self.endpoint("logging"))

    def vms(self, place: RunPlace, job: ResolvedJob) -> Iterator[str]:
        """Yield the activity of the pools that have a job's VMs."""
        from training_platform.clients.google_services import node_pools
        from training_platform.config.reading.clock import today
        from training_platform.parts.jobs.runs.why_on_gke import vm_sentences

        def states() -> dict[str, Any]:
            return node_pools(place.environment.project, place.location, place.cluster, self.endpoint("container"))

        yield from vm_sentences(job, states, today(self.folder(), None))

    def asks_for(self, image: str) -> bool:
        """Whether an image is looked up: beside a local cloud only in a registry of this machine."""
        from training_platform.clients.registries import image_name, is_local

        return self.local_cloud is None or is_local(image_name(image).registry)

    def endpoint(self, service: str) -> str | None:
        """Return where a local cloud has a service, None for Google's own."""
        from training_platform.clients.google_api import local_endpoint

        return local_endpoint(self.local_cloud, service)


def _variable(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    for value in values:
        if "=" not in value:
            raise click.BadParameter(f"{value!r} is not NAME=VALUE.")
    pairs = [value.partition("=") for value in values]
    return tuple((name, text) for name, _, text in pairs)


_SEVERAL_WORDS = re.compile(r"--?[\w-]+\s+\S")


def _one_word(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    for value in values:
        if _SEVERAL_WORDS.match(value):
            words = " ".join(f"--args={word}" for word in value.split())
            raise click.BadParameter(f"{value!r} is one argument with spaces, which no shell splits. Nearest: {words}")
    return values


_changes = stacked(
    click.option("--run", "--name", "run", help="The run's name, JOB-TEXT; default: the job's and five letters."),
    click.option(
        "--args", multiple=True, callback=_one_word, help="One more argument of the program, a word; may be repeated."
    ),
    click.option("--env", multiple=True, metavar="NAME=VALUE", callback=_variable, help="One more variable."),
    click.option("--nodes", type=click.IntRange(min=1), help="VMs: `nodes` on GKE, `replicas` on Vertex AI."),
    click.option("--strict", is_flag=True, help="Submit nothing if the image's registry cannot be asked."),
)


@app.command("submit", epilog=example("training-platform job submit jobs/vision/finetune.yaml --target gke"))
@job_file
@click.option("--target", type=target_type, help="Where it runs, if the job has both.")
@click.option(
    "--wherever",
    type=click.FloatRange(min=0),
    metavar="MINUTES",
    help="Try the job's places in their order, so long each, until it starts; default: only the first place.",
)
@instead("--dry-run", "training-platform job render FILE prints the run, and submits nothing.")
@_changes
@today_option
@format_option
@access_options
def submit(file: Path, target: Target | None, wherever: float | None, **chosen: Any) -> None:
    """Submit a job, and print the name of its run; on GKE a grid has a run for each point.

    Options change this run alone: the file stays as it is.

    Needs the extra `jobs`; for GKE a kubeconfig, for Vertex AI application default credentials.

    A job with errors in `job check` is not submitted, nor one whose image its registry does not have; if the registry
    cannot be asked, that is a warning. On GKE the API server and every webhook first have to accept the job in a dry
    run. Exit code 1: the job has errors. 2: it could not be submitted.
    """
    if wherever is not None and target:
        fail("--wherever tries every place of the job: leave --target out.")
    options = RunsOptions(**chosen)
    if wherever is None:
        _submitted(file, target, options)
    else:
        _wherever(file, options, wherever)


@app.command("debug", epilog=example("training-platform job debug jobs/vision/finetune.yaml --minutes 30"))
@job_file
@_changes
@click.option("--minutes", type=click.IntRange(1, 480), default=60, help="When the run ends by itself; default: 60.")
@today_option
@format_option
@access_options
def debug(file: Path, minutes: int, **chosen: Any) -> None:
    """Submit a job on GKE whose containers wait for a shell instead of starting the program.

    Needs the extra `jobs` and a kubeconfig. It waits in the queue as any job, has the same image, mounts, secrets and
    accelerators, and ends after --minutes. Open the shell with `job exec RUN`, and end the run with `job cancel RUN`.
    Its image needs `sh`.
    """
    options = RunsOptions(**chosen)
    names, program = _submitted(file, "gke", options, minutes)
    if options.output_format == "text":
        say(f"# training-platform job exec {names[0]} opens a shell once it runs; its program: {program}", err=True)


def _submitted(file: Path, target: Target | None, options: RunsOptions, minutes: int = 0) -> tuple[list[str], str]:
    """Submit a job with changes, print its runs, and return them and its own program."""
    prepared = _preparation(file, options, minutes)(target)
    if prepared.refused:
        sys.exit(1)
    names = _sent(prepared, options)
    _say_runs(names, prepared, options)
    return names, prepared.program


def _preparation(file: Path, options: RunsOptions, minutes: int = 0) -> Callable[..., Prepared]:
    """Return a function that prepares a run of a job for a target, and prints findings about it."""
    from training_platform.clients.registries import Registries, google_token
    from training_platform.config.reading.clock import today as clock
    from training_platform.parts.jobs.container import image
    from training_platform.parts.jobs.runs.submission import IMAGE_UNCHECKED, Changes, image_findings, prepare

    folder = options.folder()
    changes = Changes(args=options.args, env=options.env, nodes=options.nodes, hold_minutes=minutes)
    day = clock(folder, options.today)

    registries = Registries(seconds=_REGISTRY_SECONDS, token=google_token)

    def ready(target: Target | None, index: int = 0) -> Prepared:
        prepared = prepare(file, folder, target, day, options.run, changes=changes, index=index)
        if prepared.job and not prepared.refused and options.asks_for(image(prepared.job)):
            about_image = image_findings(prepared.job, registries)
            prepared = replace(prepared, findings=(*prepared.findings, *about_image))
        print_findings(prepared.findings, err=True)
        if options.strict and any(finding.rule == IMAGE_UNCHECKED for finding in prepared.findings):
            fail("Nothing was submitted: --strict wants the image to be looked up.")
        return prepared

    return ready


def _sent(prepared: Prepared, options: RunsOptions) -> list[str]:
    """Submit a run that nothing refuses; return its names. Raises UserError."""
    from datetime import UTC, datetime
    from functools import partial

    from training_platform.clients.google_api import GoogleError
    from training_platform.parts.jobs.runs.submission import (
        RECORD,
        delivered,
        listing,
        submit_to_gke,
        submit_to_vertex,
        write_record,
    )

    place = prepared.place
    job = prepared.job
    assert place is not None  # of a run that nothing refuses
    assert job is not None
    for note in filter(None, (*prepared.notes, listing(job))):
        say(f"# {note}", err=True)
    progress(f"Submitting to {place.target} {place.key} ...")
    send = submit_to_gke if place.target == "gke" else submit_to_vertex
    ready = delivered(prepared, options.endpoint, partial(options.outputs, job.spec.environment))
    names = send(ready, options.api(place))
    try:
        write_record(ready, names, options.endpoint("storage"), datetime.now(UTC))
    except GoogleError as error:  # the run is there all the same
        say(f"# {RECORD} is not in the run's output: {error}", err=True)
    return names


def _say_runs(names: list[str], prepared: Prepared, options: RunsOptions) -> None:
    place = prepared.place
    if options.output_format == "json" and place:
        print_json(
            {"run": names[0], "runs": names, "team": place.team.name, "target": place.target, "place": place.key}
        )
    else:
        say("\n".join(names))
        if place and (waits := _published_waits(place, options)):
            say(f"# {waits.said_of_team(place.team.name)}", err=True)


def _published_waits(place: RunPlace, options: RunsOptions) -> Waits | None:
    """Return the table of waits that is published for a cluster; a broken one is a line on standard error."""
    from training_platform.parts.jobs.runs.waits import read_waits

    if place.target != "gke":
        return None
    try:
        return read_waits(options.folder(), place.team.environment, place.key)
    except UserError as error:
        say(f"# {error}", err=True)
        return None


def _wherever(file: Path, options: RunsOptions, minutes: float) -> None:
    """Submit a job to its places in their order, until it starts at one; else leave it waiting at the first.

    Each try is a run of its own, which is deleted before the next.
    """
    from training_platform.clients.kubernetes_api import JOBSETS
    from training_platform.parts.jobs.resolve import read_job
    from training_platform.parts.jobs.runs.watching import wait, why_gke, why_vertex

    if options.run:
        fail("--wherever gives each try a new name: leave --run out.")
    ready = _preparation(file, options)
    folder = options.folder()
    waits: list[tuple[Target, int]] = []
    for target, index in _tries(file, folder):
        prepared = ready(target, index)
        if prepared.refused or prepared.place is None:
            continue
        place = prepared.place
        flavor = f" {prepared.job.flavor.name}" if target == "gke" and prepared.job and prepared.job.flavor else ""
        where = f"{place.target} {place.key}{flavor}"
        try:
            names = _sent(prepared, options)
            api = options.api(place)
            first = _run_at(api, place, names[0])
            read = partial(read_again, api, place, first) if first else lambda: None
            last = wait(read, seconds=minutes * 60, changed=lambda _: None, started=True)
        except UserError as error:
            say(f"# {where}: {error}", err=True)
            continue
        if last is None or last.done or last.state == "running":
            return _say_runs(names, prepared, options)
        waits.append((target, index))
        job, _ = read_job(file, folder, options.workspace(), place=index)
        reasons = why_gke(api, place, last, job) if target == "gke" else why_vertex(api, place, last)
        say(f"# {where}: not started in {minutes:g} minutes. {' '.join(reasons)}", err=True)
        if target == "gke":
            for name in names:
                api.delete(JOBSETS, place.team.name, name)
        else:
            api.cancel(last.identity)
    if not waits:
        sys.exit(1)
    say("# It waits at the first of these places.", err=True)
    prepared = ready(*waits[0])
    return _say_runs(_sent(prepared, options), prepared, options)


def _tries(file: Path, folder: Path) -> list[tuple[Target, int]]:
    """Return the places of a job file in their order, each a target with the index of its place on GKE."""
    from training_platform.parts.jobs.render import places_of_file
    from training_platform.parts.jobs.resolve import job_source

    value = job_source(file, folder).value
    tries: list[tuple[Target, int]] = []
    if isinstance(value, dict) and "gke" in value:
        tries += [("gke", index) for index in range(places_of_file(file, folder))]
    if isinstance(value, dict) and "vertex" in value:
        tries.append(("vertex", 0))
    return tries


@app.command("list", epilog=example("training-platform job list --team vision"))
@click.option("--environment", help="Only runs of this environment.")
@of_a_run_options
def list_runs(environment: str | None, **chosen: Any) -> None:
    """List the runs of teams, in all their clusters and regions.

    Needs the extra `jobs`; for GKE a kubeconfig, for Vertex AI application default credentials.
    If a cluster or region does not answer, print one sentence, then the others' runs, and exit with 2. Members may not
    list the runs on Vertex AI of a project that several teams share: a sentence says so, which is no failure.
    """
    from training_platform.clients.google_api import GoogleError
    from training_platform.clients.kubernetes_api import NoKubeconfigError
    from training_platform.parts.jobs.runs.places import places
    from training_platform.parts.jobs.runs.watching import gke_runs, is_withheld, vertex_runs
    from training_platform.parts.jobs.submission_rights import members_may_not

    options = RunsOptions(**chosen)
    runs: list[Run] = []
    silent: dict[str, dict[str, None]] = {}  # each sentence once, with what helps
    withheld: dict[str, str] = {}
    for place in places(options.folder(), options.workspace(), environment=environment, team=options.team):
        progress(f"Asking {place.target} {place.key} for runs of team {place.team.name} ...")
        try:
            api = options.api(place)
            runs.extend(gke_runs(api, place) if place.target == "gke" else vertex_runs(api, place))
        except NoKubeconfigError as error:  # the same for every cluster, but for the command that adds it
            silent.setdefault(error.reason, {})[f"  cluster {place.cluster}: {options.log_in(place)}"] = None
        except UserError as error:
            if isinstance(error, GoogleError) and is_withheld(error, place):
                sentence = members_may_not(place.team, place.environment, place.scope.project)
                withheld[sentence] = f"Runs on Vertex AI are not listed: {sentence}."
                continue
            silent[str(error)] = {}
    if runs or not silent or options.output_format == "json":
        print_runs(runs, options.output_format)
    for sentence in withheld.values():
        say_folded(sentence, err=True)
    for sentence, commands in silent.items():
        say_folded("\n".join((f"training-platform: {sentence}", *commands)), err=True)
    sys.exit(2 if silent else 0)


@app.command("status", epilog=example("training-platform job status finetune-7x2kq"))
@run_argument
@of_a_run_options
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
def cancel(run: str, **chosen: Any) -> None:
    """Stop a run. On GKE its objects are deleted, and its output stays; on Vertex AI it ends as cancelled.

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
    else:
        say(f"{record.name} has ended already: {record.state}." if record.done else f"{record.name} is being stopped.")


@app.command("requeue", epilog=example("training-platform job requeue finetune-7x2kq"))
@run_argument
@of_a_run_options
def requeue_run(run: str, **chosen: Any) -> None:
    """Put a run on GKE back into its queue after Kueue put it aside: after time-outs, or at its limit of time.

    Needs the extra `jobs` and a kubeconfig. The run keeps its name and its output, and so continues from its last
    checkpoint; its retries and its time are counted from zero. Exit code 2: Kueue has not put it aside.
    """
    from training_platform.parts.jobs.runs.submission import requeue

    options = RunsOptions(**chosen)
    record, place, api = find_run(run, options)
    if place.target == "vertex":
        fail(f"{run} is on Vertex AI, which has no queue of the team: submit its file again.")
    requeue(record.name, place.team.name, api)
    if options.output_format == "json":
        print_json({"run": record.name, "team": place.team.name, "place": place.key})
    else:
        say(f"{record.name} is in its queue again.")


@app.command("wait", epilog=example("training-platform job wait finetune-7x2kq"))
@run_argument
@click.option("--timeout", "timeout_minutes", type=click.FloatRange(min=0), help="Minutes to wait at most.")
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

    def say_state(now: Run) -> None:
        progress(f"{now.name} {now.state}{f': {now.reason}' if now.reason else ''}")

    read = partial(read_again, api, place, record)
    last = record if record.gone else wait(read, seconds=seconds, changed=say_state)
    if last is None:
        fail(f"{run} has gone while it was waited for: somebody has deleted it.")
    print_runs([last], options.output_format)
    sys.exit(EXIT_CODES.get(last.state, TIME_IS_UP))


@app.command("why", epilog=example("training-platform job why finetune-7x2kq"))
@run_argument
@of_a_run_options
def why_it_waits(run: str, **chosen: Any) -> None:
    """Explain why a run waits or failed: its queue, its quota, its place in the queue, its VMs, its earlier attempts.

    Needs the extra `jobs`; for GKE a kubeconfig, for Vertex AI application default credentials.
    """
    from training_platform.clients.google_api import GoogleError
    from training_platform.parts.jobs.naming import job_among
    from training_platform.parts.jobs.resolve import FOLDER, read_job
    from training_platform.parts.jobs.runs.logs import earlier_attempts
    from training_platform.parts.jobs.runs.watching import why_gke, why_vertex

    options = RunsOptions(**chosen)
    record, place, api = find_run(run, options)
    if record.gone:
        sentences = [f'{record.name} {record.state}, and its objects are gone. Cloud Logging has: "{record.reason}".']
    elif place.target == "gke":
        folder = options.folder() / FOLDER / place.team.name
        file = folder / f"{job_among(record.name, [path.stem for path in folder.glob('*.yaml')])}.yaml"
        job = read_job(file, options.folder(), options.workspace())[0] if file.is_file() else None  # as it is now
        sentences = why_gke(api, place, record, job, partial(options.vms, place))
        waits = None if record.done or record.state == "running" else _published_waits(place, options)
        sentences += waits.said_of(place.team.name, record.name) if waits else []
    else:
        sentences = why_vertex(api, place, record)
    if place.target == "gke" and (record.gone or record.restarts or record.interruptions):
        try:
            sentences += earlier_attempts(options.log(place), place.cluster, place.team.name, record.name)
        except GoogleError as error:
            sentences.append(f"Its earlier attempts could not be read: {error}")
    if options.output_format == "json":
        print_json({**record.as_json(), "why": sentences})
    else:
        say("\n".join(sentences))


@app.command("logs", epilog=example("training-platform job logs finetune-7x2kq --follow"))
@run_argument
@click.option("--follow", "-f", is_flag=True, help="Keep printing until the run has ended.")
@instead("--tail", "training-platform job logs RUN | tail -n 100 has the last lines.")
@of_a_run_options
def logs(run: str, follow: bool, **chosen: Any) -> None:
    """Print the logs of a run's containers, each line with its pod's or replica's name.

    Needs the extra `jobs`; for GKE a kubeconfig, for Vertex AI application default credentials.
    Logs of Vertex AI, and of deleted pods on GKE, are read from Cloud Logging. With --format json each line is an
    object.
    """
    from training_platform.parts.jobs.runs.logs import gke_logs, pod_lines, vertex_lines
    from training_platform.parts.jobs.runs.watching import vertex_log_ids

    options = RunsOptions(**chosen)
    lines: Iterator[tuple[str, str]]
    record, place, api = find_run(run, options)

    def ended() -> bool:
        now = read_again(api, place, record)
        return now is None or now.done

    if place.target == "vertex":
        ids = partial(vertex_log_ids, api, record.identity)
        lines = vertex_lines(options.log(place), record, ids, ended=ended if follow else None)
    elif record.gone:
        lines = pod_lines(options.log(place), place, record.name)
    else:
        lines = gke_logs(api, place.team.name, record.name, follow=follow)
    wrote = False
    for source, text in lines:
        wrote = True
        if options.output_format == "json":
            click.echo(json.dumps({"source": source, "text": text}))
        else:
            say(f"{source} | {text}")
    if not wrote:
        say(f"# {record.name} has no log lines yet; see training-platform job why {record.name}", err=True)


def find_run(run: str, options: RunsOptions) -> tuple[Run, RunPlace, Any]:
    """Return a run with its place and that place's API; ends the command where it is nowhere.

    A run whose objects are gone from its cluster is the one that Cloud Logging saw end.
    """
    from training_platform.clients.google_api import GoogleError
    from training_platform.parts.jobs.runs.logs import gone_run
    from training_platform.parts.jobs.runs.places import places_of_run
    from training_platform.parts.jobs.runs.watching import is_withheld, withheld

    named, others = places_of_run(options.folder(), options.workspace(), run, team=options.team)
    there = [*named, *others]
    silent: list[str] = []
    for place in there:
        try:
            api = options.api(place)
            if record := _run_at(api, place, run):
                return record, place, api
        except UserError as error:
            refused = isinstance(error, GoogleError) and is_withheld(error, place)
            if place in named:  # anywhere else the run is only if its file has changed
                if refused:
                    raise withheld(error, place) from error
                raise
            if not refused:
                silent.append(str(error))
    for place in (place for place in there if place.target == "gke"):
        try:
            if gone := gone_run(options.log(place), place, run):
                return gone, place, options.api(place)
        except UserError as error:
            silent.append(str(error))
    where = " and ".join(dict.fromkeys(f"{place.target} {place.key}" for place in there))
    unasked = f" Not everything could be asked: {silent[0]}" if silent else ""
    return fail(f"There is no run {run} in {where}; training-platform job list names those that are.{unasked}")


def _run_at(api: Any, place: RunPlace, run: str) -> Run | None:
    from training_platform.clients.kubernetes_api import JOBSETS, WORKLOADS
    from training_platform.parts.jobs.runs.on_gke import gke_run, workload_of
    from training_platform.parts.jobs.runs.watching import vertex_named

    if place.target == "vertex":
        return vertex_named(api, place, run)
    jobset = api.get(JOBSETS, place.team.name, run)
    if jobset is None:
        return None
    return gke_run(jobset, workload_of(jobset, api.objects(WORKLOADS, place.team.name)), place.key)


def read_again(api: Any, place: RunPlace, run: Run) -> Run | None:
    """Return a run as it is now; None where it has gone. Raises ClusterError and GoogleError."""
    from training_platform.parts.jobs.runs.watching import vertex_now

    return vertex_now(api, run.identity) if place.target == "vertex" else _run_at(api, place, run.name)


def progress(text: str) -> None:
    """Print progress on a terminal; a pipe stays quiet."""
    if sys.stderr.isatty():
        say(text, err=True)


def print_runs(runs: list[Run], output_format: Format) -> None:
    """Print runs as a table, or as a list of objects."""
    if output_format == "json":
        print_json([run.as_json() for run in runs])
        return
    from datetime import UTC, datetime

    from rich.text import Text

    from training_platform.checks.reports.text import fitting_table, table_text
    from training_platform.parts.jobs.runs.state import since

    now = datetime.now(UTC)
    cells = {
        "RUN": [run.name for run in runs],
        "TEAM": [run.team for run in runs],
        "USER": [run.user or "-" for run in runs],
        "WHERE": [f"{run.target} {run.place}" for run in runs],
        "STATE": [run.state for run in runs],
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
