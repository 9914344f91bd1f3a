"""``training-platform simulate`` and ``trace``: jobs of a trace through the queues and machines of stack files."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import click

from training_platform.cli.shared import (
    PATH,
    Commands,
    example,
    fail,
    line_width,
    need,
    print_json,
    repository,
    root_option,
    say,
)
from training_platform.parts.jobs.cli.runs import RunsOptions, access_options, progress

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from training_platform.config.reading.finding import Finding
    from training_platform.config.workspace import Workspace
    from training_platform.parts.simulate.from_stacks import Cluster
    from training_platform.parts.simulate.imports import Imported
    from training_platform.parts.simulate.machines import CapacityTimes
    from training_platform.parts.simulate.manifests import Manifests
    from training_platform.parts.simulate.results import Result
    from training_platform.parts.simulate.traces import Trace

    Side = tuple[list[Cluster], Mapping[str, CapacityTimes]]  # queues, and when machines come and go

_PAGES = ("markdown", "html")
_FORMATS = ("text", "json", *_PAGES)
_RUNS_FROM_NOW = 50
_INVENTED = "When machines come and go is invented"


@click.command(epilog=example("training-platform simulate october.csv --environment prod"))
@click.argument("trace", type=PATH, help="CSV file of jobs: submitted, team, needs, seconds, and more.")
@click.option("--environment", metavar="STACK", help="Environment whose queues are used; default: the only one.")
@click.option("--base", metavar="REF", help="Compare with the stack files of REF, such as origin/main.")
@click.option(
    "--manifests", type=PATH, metavar="PATH", help="Play queues of Kueue's manifests: a file or folder, no stack files."
)
@click.option("--against", type=PATH, metavar="PATH", help="With --manifests: compare with these as before.")
@click.option("--changes", type=PATH, metavar="FILE", help="CSV file: queues that are held, and other priorities.")
@click.option("--machines", type=PATH, metavar="FILE", help="YAML file: when machines come and go.")
@click.option("--now", is_flag=True, help="TRACE is `kubectl get workloads -A -o json`: when do waiting jobs start?")
@click.option("--cluster", metavar="NAME", help="With --now: cluster of the environment; default: the only one.")
@click.option(
    "--runs", type=click.IntRange(1, 1000), help="Number of runs, each with a seed; default: 1, with --now 50."
)
@click.option("--seed", type=int, default=0, help="Seed of the first run; the same seed repeats a run.")
@click.option("--plots", type=PATH, metavar="FOLDER", help="Write waits by team and chips by flavor as SVG files.")
@click.option("--format", "output_format", type=click.Choice(_FORMATS), default="text", help="Output format.")
@root_option
def simulate(
    *,
    trace: Path,
    environment: str | None,
    base: str | None,
    manifests: Path | None,
    against: Path | None,
    changes: Path | None,
    machines: Path | None,
    now: bool,
    cluster: str | None,
    runs: int | None,
    seed: int,
    plots: Path | None,
    output_format: Literal["text", "json", "markdown", "html"],
    root: Path | None,
) -> None:
    """Play a trace of jobs through the queues of the stack files or of manifests, without a cluster and network.

    Needs a trace, such as `training-platform trace make` writes. Exit code 0: played. 1: with preemption
    loops, jobs that never end, or rows of the trace that could not be used. 2: not played.

    With --now it plays on from the state of the queues of a cluster, in many runs, and prints when each waiting job
    starts, with a range. Exit code 1: some never start.
    """
    from training_platform.parts.simulate import results

    if manifests and (environment or cluster or base or root):
        fail("--manifests plays no stack files: leave out --environment, --cluster, --base and --root.")
    if against and not manifests:
        fail("--against compares manifests: name those to play with --manifests.")
    if now:
        if base or against or changes or machines or plots or output_format in _PAGES:
            fail("--now takes --runs, --seed, and --manifests or --environment and --cluster, and prints text or JSON.")
        queues = _queues_now(manifests, root, environment, cluster)
        _print_waits(trace, queues, range(seed, seed + (runs or _RUNS_FROM_NOW)), output_format)
    if cluster:
        fail("--cluster is for --now; a trace names clusters in a column.")
    seeds = range(seed, seed + (runs or 1))
    notes: list[str] = []
    said: list[Finding] = []
    with ExitStack() as stack:
        folder = Path() if manifests else repository(root)
        if manifests:
            sides = _manifest_sides(manifests, against, machines, notes)
        else:
            sides = _stack_sides(stack, folder, environment, base, machines)
        jobs = [_read(trace, changes, clusters, said) for clusters, _ in sides]
        figures, *before = (
            [results.play_trace(clusters, read, times, each) for each in seeds]
            for (clusters, times), read in zip(sides, jobs, strict=True)
        )
    wrong = jobs[0].unusable
    if wrong:
        notes.append(f"{wrong} rows of {trace} could not be used and are left out.")
    if machines is None:
        taken = "There are as many machines as nominal quota, at once" if manifests else _INVENTED
        notes.append(f"{taken}: --machines FILE has your own figures.")
    result = results.Result(figures, before[0] if before else [], base or str(against or ""), notes)
    if plots:
        _write_plots(result, plots)
    _print_result(result, output_format)
    sys.exit(1 if wrong or any(run.loop_moments or run.endless for run in figures) else 0)


def _queues_now(manifests: Path | None, root: Path | None, environment: str | None, cluster: str | None) -> Manifests:
    """Return the queues of manifests, or of a cluster of the stack files."""
    from training_platform.parts.simulate.manifests import manifests_of, read_manifests

    if manifests is not None:
        return read_manifests(manifests)
    folder = repository(root)
    workspace, name = _environment(folder, environment)
    found = {each.name: each for each in _clusters_of(workspace, name, folder)}
    if cluster is None and len(found) > 1:
        fail(f"There are clusters {', '.join(found)}: name that of the workloads with --cluster.")
    chosen = cluster or next(iter(found))
    if chosen not in found:
        fail(f"{chosen!r} is not a cluster of {name} with a share: {', '.join(found)}.")
    labels = {flavor.name: flavor.node_labels for flavor in workspace.flavors(name, chosen).values()}
    return manifests_of(found[chosen], labels)


def _print_waits(workloads: Path, queues: Manifests, seeds: Sequence[int], output_format: str) -> NoReturn:
    from datetime import UTC, datetime

    from training_platform.checks.reports.text import section_lines
    from training_platform.parts.simulate.now import predict, section

    waits = predict(workloads, queues, seeds, datetime.now(UTC).replace(microsecond=0))
    if output_format == "json":
        print_json(waits.model_dump(mode="json"))
    else:
        if waits.jobs:
            say(section_lines(section(waits), min(line_width(), 120)).rstrip())
        else:
            say("No job waits.")
        for note in (f"{len(seeds)} runs; jobs that are submitted later are not played.", *waits.notes):
            say(note)
    sys.exit(1 if any(job.start is None for job in waits.jobs) else 0)


def _environment(folder: Path, environment: str | None) -> tuple[Workspace, str]:
    """Return the stack files of a repository, which have no errors, and the name of an environment of theirs."""
    from training_platform.catalog.nearest import find_nearest
    from training_platform.config.workspace import read_workspace

    workspace = read_workspace(folder)
    names = [stack.name for stack, _ in workspace.environments()]
    if environment is None and len(names) != 1:
        fail(f"There are environments {', '.join(names)}: name one with --environment." if names else "No environment.")
    name = environment or names[0]
    if name not in names:
        nearest = find_nearest(name, names)
        fail(f"{name!r} is not an environment: {', '.join(names)}.{f' Nearest: {nearest}.' if nearest else ''}")
    wrong = [str(row) for stack in workspace.stacks.values() for row in stack.findings if row.severity == "error"]
    if wrong := [*workspace.unreadable.values(), *wrong]:
        for sentence in wrong:
            say(sentence, err=True)
        fail("The stack files have errors, so nothing was played: correct them first; check shows them too.")
    return workspace, name


def _clusters(folder: Path, environment: str | None) -> tuple[list[Cluster], str]:
    """Return the clusters of an environment, and its name."""
    workspace, name = _environment(folder, environment)
    return _clusters_of(workspace, name, folder), name


def _clusters_of(workspace: Workspace, environment: str, folder: Path) -> list[Cluster]:
    from training_platform.config.own_prices import read_own_prices
    from training_platform.parts.simulate.from_stacks import clusters

    book, _ = read_own_prices(folder)
    found = list(clusters(workspace, environment, book))
    if not found:
        fail(f"No team has a share of a cluster of {environment}, so there are no queues.")
    return found


def _print_result(result: Result, output_format: Literal["text", "json", "markdown", "html"]) -> None:
    from training_platform.parts.simulate import results

    if output_format == "json":
        print_json(results.document(result))
    elif output_format == "html":
        from training_platform.parts.simulate.page import page

        click.echo(page(result), nl=False)
    else:
        text = results.markdown(result) if output_format == "markdown" else results.text(result, min(line_width(), 120))
        say(text.rstrip())


def _write_plots(result: Result, folder: Path) -> None:
    from training_platform.parts.simulate.page import plot_files

    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, drawing in plot_files(result):
            (folder / name).write_text(drawing, encoding="utf-8")
    except OSError as error:
        fail(f"{folder} cannot be written: {error.strerror}.")


def _stack_sides(
    stack: ExitStack, folder: Path, environment: str | None, base: str | None, machines: Path | None
) -> list[Side]:
    """Return the queues of an environment, and those of its base where there is one."""
    from training_platform.checks.comparison.base_files import base_tree
    from training_platform.parts.simulate.machines import read_machines

    times = read_machines(machines)
    now, name = _clusters(folder, environment)
    sides: list[Side] = [(now, times)]
    if base is not None:
        tree = stack.enter_context(base_tree(folder, base))
        before, _ = _clusters(tree.root, name)
        sides.append((before, times))
    return sides


def _manifest_sides(path: Path, against: Path | None, machines: Path | None, notes: list[str]) -> list[Side]:
    """Return the queues of manifests, and of those to compare with; what is not played is added to the notes."""
    from training_platform.parts.simulate.manifests import read_manifests

    now = read_manifests(path, machines)
    notes.extend(now.left_out)
    sides: list[Side] = [([now.cluster], now.times)]
    if against is not None:
        before = read_manifests(against, machines)
        notes.extend(f"{against}: {sentence}" for sentence in before.left_out if sentence not in now.left_out)
        sides.append(([before.cluster._replace(name=now.cluster.name)], before.times))
    return sides


def _read(trace: Path, changes: Path | None, clusters: list[Cluster], said: list[Finding]) -> Trace:
    """Read a trace and its changes, and print what is wrong with rows, unless it is among what was ``said`` already."""
    from training_platform.parts.simulate.traces import read_changes, read_trace

    found = read_trace(trace, clusters)
    for finding in found.findings:
        if finding not in said:
            say(str(finding), err=True)
    said.extend(found.findings)
    if not found.jobs:
        fail(f"{trace} has no job that could be played.")
    return found._replace(changes=read_changes(changes, found, clusters)) if changes else found


@click.command(epilog=example("training-platform recommend october.csv --wishes wishes.yaml > change.diff"))
@click.argument("trace", type=PATH, help="CSV file of jobs, as simulate takes it.")
@click.option("--wishes", type=PATH, metavar="FILE", required=True, help="YAML file: waits, budget, reservations.")
@click.option("--environment", metavar="STACK", help="Environment whose queues are used; default: the only one.")
@click.option("--machines", type=PATH, metavar="FILE", help="YAML file: when machines come and go.")
@click.option("--runs", type=click.IntRange(1, 100), default=1, help="Runs of each change; their medians count.")
@click.option("--seed", type=int, default=0, help="Seed of the first run; the same seed repeats a search.")
@click.option("--tries", type=click.IntRange(1, 100_000), default=200, help="Most changes that are played.")
@click.option("--today", metavar="DATE", help="Date that checks use for what expires; default: today.")
@click.option("--format", "output_format", type=click.Choice(("diff", "json")), default="diff", help="Output format.")
@root_option
def recommend(
    *,
    trace: Path,
    wishes: Path,
    environment: str | None,
    machines: Path | None,
    runs: int,
    seed: int,
    tries: int,
    today: str | None,
    output_format: Literal["diff", "json"],
    root: Path | None,
) -> None:
    """Search for the cheapest change of stack files that keeps wishes about waits, and print it as a difference.

    Needs a trace, such as `training-platform trace make` writes, and a file of wishes. The difference is printed on
    standard output, for `git apply`; what was tried on standard error, and as JSON with each difference. Exit code 0:
    all wishes hold. 1: some do not, and the difference is the nearest to them, or the trace has no jobs of a team with
    a wish. 2: nothing was searched.
    """
    from training_platform.config.own_prices import read_own_prices
    from training_platform.config.reading.clock import today as clock
    from training_platform.parts.simulate.machines import read_machines
    from training_platform.parts.simulate.recommend import Search, read_wishes

    folder = repository(root)
    times = read_machines(machines)
    workspace, name = _environment(folder, environment)
    book, _ = read_own_prices(folder)
    wanted = read_wishes(wishes, workspace, name)
    search = Search(
        workspace=workspace, environment=name, trace=trace, wishes=wanted, book=book, times=times,
        seeds=range(seed, seed + runs), today=clock(folder, today),
    )  # fmt: skip
    best = search.run(tries, lambda text: say(text, err=True))
    rows = [best, *islice((row for row in search.tried if row is not best and search.passes(row)), 5)]
    for wish in search.undecided:
        say(f"not decided: {wish}; {trace} has no jobs of {wish.team}, whose shares stay as they are", err=True)
    for number, row in enumerate(rows):
        say(f"{'best' if not number else 'next'}: ${row.usd:,.0f} a day, {search.verdict(row)}", err=True)
        for words in row.words or ("the stack files as they are",):
            say(f"  {words}", err=True)
    say(f"{len(search.tried)} changes were played{f', each in {runs} runs' if runs > 1 else ''}.", err=True)
    if output_format == "json":
        documents = [search.document(row) for row in rows]
        undecided = [str(wish) for wish in search.undecided]
        print_json({"played": len(search.tried), "undecided": undecided, "best": documents[0], "next": documents[1:]})
    else:
        click.echo(search.difference(best), nl=False)
    sys.exit(1 if best.missing or search.undecided else 0)


trace_app = Commands("trace", help="Traces: the jobs that simulate plays.")


@trace_app.command("make", epilog=example("training-platform trace make 'vision:8 h100:40:6' > october.csv"))
@click.argument(
    "kinds",
    nargs=-1,
    required=True,
    metavar="TEAM:NEEDS:PER_WEEK:HOURS[:PRIORITY]...",
    help="Kinds of jobs, such as 'vision:8 h100:40:6': a team, its needs, jobs a week, and hours of the median job.",
)
@click.option("--days", type=click.IntRange(1, 366), default=30, help="Length of the trace.")
@click.option("--seed", type=int, default=0, help="The same seed makes the same trace.")
def make(kinds: tuple[str, ...], days: int, seed: int) -> None:
    """Invent a trace: arrivals at random, more by day, and run times around a median; printed as CSV."""
    from training_platform.parts.simulate.traces import JobKind, invented, trace_text

    found, wrong = [], []
    for kind in kinds:
        parts = kind.split(":")
        try:
            team, needs, per_week, hours = parts[:4]
            found.append(JobKind(team, needs, float(per_week), float(hours) * 3600, ":".join(parts[4:])))
            if not (0 < found[-1].per_week <= 1_000_000 and 0 < found[-1].seconds <= 366 * 86_400):
                wrong.append(kind)
        except ValueError:
            wrong.append(kind)
    if wrong:
        fail(f"{'; '.join(map(repr, wrong))}: write TEAM:NEEDS:PER_WEEK:HOURS, such as 'vision:8 h100:40:6'.")
    click.echo(trace_text(invented(found, days, seed)), nl=False)


@trace_app.command("import", epilog=example("training-platform trace import slurm sacct.txt --names names.yaml"))
@click.argument("kind", type=click.Choice(("slurm", "swf", "kueue")), help="Format of the file.")
@click.argument("file", type=PATH, help="Output of sacct --parsable2, a .swf file, or workloads as JSON.")
@click.option("--names", type=PATH, metavar="TABLE", help="YAML file: teams, and accelerators of GPUs.")
@click.option("--resources", is_flag=True, help="Of Kueue: name all resources of a job, for simulate --manifests.")
def import_trace(kind: str, file: Path, names: Path | None, *, resources: bool) -> None:
    """Make a trace of jobs that another scheduler ran; printed as CSV.

    Needs a file of the other scheduler: `slurm` is the output of `sacct --allusers --parsable2
    --format=JobID,Submit,Account,ElapsedRaw,AllocTRES`, `swf` a file in the Standard Workload
    Format, `kueue` the output of `kubectl get workloads -A -o json`. Jobs that are left out are counted on standard
    error. Exit code 1: with rows that cannot be read.
    """
    from training_platform.parts.simulate.imports import read_foreign, read_table

    found = read_foreign(file, kind, read_table(names), resources=resources)
    for finding in found.findings:
        say(str(finding), err=True)
    _print_trace(found)
    sys.exit(1 if found.findings else 0)


@trace_app.command("pull", epilog=example("training-platform trace pull --environment prod > october.csv"))
@click.option("--environment", help="Only jobs of this environment.")
@click.option("--team", help="Only jobs of this team.")
@access_options
def pull_trace(environment: str | None, **chosen: Any) -> None:
    """Make a trace of the jobs that clusters still have, from Kueue's workloads; printed as CSV.

    Needs the extra `jobs` and a kubeconfig. Asks the clusters in which teams have shares, as `job list` does. Jobs that
    are left out are counted on standard error. Exit code 2: a cluster did not answer, and its jobs are missing.
    """
    need("jobs", "trace pull")
    from training_platform.clients.kubernetes_api import WORKLOADS, NoKubeconfigError
    from training_platform.config.reading.finding import UserError
    from training_platform.parts.jobs.runs.places import places
    from training_platform.parts.simulate.imports import Imported, NameTable

    options = RunsOptions(**chosen)
    found = Imported()
    silent: dict[object, str] = {}
    for place in places(options.folder(), options.workspace(), environment=environment, team=options.team):
        if place.target == "gke":
            progress(f"Asking {place.key} for workloads of team {place.team.name} ...")
            try:
                items = list(options.api(place).objects(WORKLOADS, place.team.name))
                found.add_workloads(items, NameTable(teams={"*": place.team.name}), cluster=place.key)
            except NoKubeconfigError as error:  # the same for every cluster
                silent.setdefault(NoKubeconfigError, str(error))
            except UserError as error:
                silent[str(error)] = str(error)
    found.rows.sort(key=lambda row: str(row["submitted"]))
    _print_trace(found)
    for sentence in silent.values():
        say(f"training-platform: {sentence}", err=True)
    sys.exit(2 if silent else 0)


def _print_trace(found: Imported) -> None:
    from training_platform.parts.simulate.traces import trace_text

    for reason, count in sorted(found.left_out.items()):
        say(f"Left out: {count:,} {reason}.", err=True)
    say(f"{len(found.rows):,} jobs.", err=True)
    click.echo(trace_text(found.rows), nl=False)
