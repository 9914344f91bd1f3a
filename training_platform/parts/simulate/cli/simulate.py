"""``training-platform simulate`` and ``recommend``: run the jobs of a trace in simulated queues."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NoReturn

import click

from training_platform.cli.shared import (
    PATH,
    example,
    fail,
    line_width,
    print_json,
    repository,
    root_option,
    say,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kueue_model import Cluster, Manifests
    from training_platform.config.reading.finding import Finding
    from training_platform.config.workspace import Workspace

_PAGES = ("markdown", "html")
_FORMATS = ("text", "json", *_PAGES)
_RUNS_FROM_NOW = 50
_INVENTED_TIMES = "The times at which machines arrive and leave are invented"


@click.command(epilog=example("training-platform simulate october.csv --environment prod"))
@click.argument("trace", type=PATH, help="CSV file of jobs: submitted, team, needs, seconds, and more.")
@click.option("--environment", metavar="STACK", help="Environment whose queues are used; default: the only one.")
@click.option("--base", metavar="REF", help="Compare with the stack files of REF, such as origin/main.")
@click.option(
    "--manifests",
    type=PATH,
    metavar="PATH",
    help="With --now: continue the queues of Kueue's manifests, a file or folder, instead of stack files.",
)
@click.option("--changes", type=PATH, metavar="FILE", help="CSV file: when queues are held or jobs change priority.")
@click.option("--machines", type=PATH, metavar="FILE", help="YAML file: when machines arrive and leave.")
@click.option("--cluster", metavar="NAME", help="With --now: cluster of the environment; default: the only one.")
@click.option(
    "--now",
    is_flag=True,
    help="Predict starts of waiting jobs; TRACE is the output of `kubectl get workloads -A -o json`.",
)
@click.option(
    "--runs", type=click.IntRange(1, 1000), help="Number of runs, each with its own seed; default: 1, with --now 50."
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
    """Simulate a trace of jobs in the queues of stack files, without a cluster or network.

    Needs a trace, for example from `training-platform trace make`. Exit code 0: the simulation succeeded. 1: it found
    preemption loops, jobs that never end, or unusable rows of the trace. 2: it could not run.

    With --now, it starts from the current state of a cluster's queues, simulates many runs, and prints the predicted
    start of each waiting job with a range. Exit code 1: some jobs never start.
    """
    from kueue_model import read_trace
    from kueue_model.output import checked_trace, exit_code, print_result, write_plots
    from kueue_model.results import Result, play_trace
    from training_platform.parts.simulate.provisioning_times import read_machines

    if now:
        if base or changes or machines or plots or output_format in _PAGES:
            fail(
                "--now accepts --runs, --seed, and --manifests or --environment and --cluster; it prints text or JSON."
            )
        if manifests and (environment or cluster or root):
            fail("--manifests simulates no stack files: leave out --environment, --cluster and --root.")
        queues = _queues_now(manifests, root, environment, cluster)
        _print_waits(trace, queues, range(seed, seed + (runs or _RUNS_FROM_NOW)), output_format)
    if manifests:
        fail(f"--manifests is for --now. To simulate a trace in queues of manifests: kueue-model {manifests} {trace}")
    if cluster:
        fail("--cluster is for --now; a trace names clusters in a column.")
    seeds = range(seed, seed + (runs or 1))
    times = read_machines(machines)
    sides = _sides(repository(root), environment, base)
    printed: list[Finding] = []
    traces = [checked_trace(read_trace(trace, clusters), trace, changes, clusters, printed) for clusters in sides]
    figures, *base_figures = (
        [play_trace(clusters, side_trace, times, run_seed) for run_seed in seeds]
        for clusters, side_trace in zip(sides, traces, strict=True)
    )
    unusable = traces[0].unusable
    notes = [f"{unusable} rows of {trace} are unusable and were left out."] if unusable else []
    if machines is None:
        notes.append(f"{_INVENTED_TIMES}; give your own in --machines FILE.")
    result = Result(figures, base_figures[0] if base_figures else [], ref=base or "", notes=notes)
    if plots:
        write_plots(result, plots)
    print_result(result, output_format, "training-platform simulate", min(line_width(), 120))
    sys.exit(exit_code(figures, unusable))


def _queues_now(manifests: Path | None, root: Path | None, environment: str | None, cluster: str | None) -> Manifests:
    """Return the queues in a file of manifests or, without such a file, of a cluster in the stack files."""
    from kueue_model import read_manifests
    from training_platform.parts.simulate.from_stacks import manifests_of

    if manifests is not None:
        return read_manifests(manifests)
    folder = repository(root)
    workspace, name = _environment(folder, environment)
    clusters = {row.name: row for row in _clusters_of(workspace, name, folder)}
    if cluster is None and len(clusters) > 1:
        fail(f"The environment has clusters {', '.join(clusters)}: choose the workloads' cluster with --cluster.")
    chosen = cluster or next(iter(clusters))
    if chosen not in clusters:
        fail(f"{chosen!r} is not a cluster of {name} with a share: {', '.join(clusters)}.")
    labels = {flavor.name: flavor.node_labels for flavor in workspace.flavors(name, chosen).values()}
    return manifests_of(clusters[chosen], labels)


def _print_waits(workloads: Path, queues: Manifests, seeds: Sequence[int], output_format: str) -> NoReturn:
    from datetime import UTC, datetime

    from training_platform.checks.reports.terminal_tables import section_lines
    from training_platform.parts.simulate.now import predict, section

    waits = predict(workloads, queues, seeds, datetime.now(UTC).replace(microsecond=0))
    if output_format == "json":
        print_json(waits.model_dump(mode="json"))
    else:
        if waits.jobs:
            say(section_lines(section(waits), min(line_width(), 120)).rstrip())
        else:
            say("No waiting job can be simulated.")
        for note in (f"{len(seeds)} runs; jobs that are submitted later are left out.", *waits.notes):
            say(note)
    sys.exit(1 if any(job.start is None for job in waits.jobs) else 0)


def _environment(folder: Path, environment: str | None) -> tuple[Workspace, str]:
    """Return the stack files of a repository and the chosen environment. Exits if any file has errors."""
    from training_platform.catalog.nearest import find_nearest
    from training_platform.config.workspace import read_workspace

    workspace = read_workspace(folder)
    names = [stack.name for stack, _ in workspace.environments()]
    if environment is None and len(names) > 1:
        fail(f"The environments are {', '.join(names)}: name one with --environment.")
    if environment is None and not names:
        fail("No stack file is an environment.")
    name = environment or names[0]
    if name not in names:
        nearest = find_nearest(name, names)
        hint = f" Nearest: {nearest}." if nearest else ""
        fail(f"{name!r} is not an environment: {', '.join(names)}.{hint}")
    errors = list(workspace.unreadable.values())
    for stack in workspace.stacks.values():
        errors.extend(str(finding) for finding in stack.findings if finding.severity == "error")
    if errors:
        for error in errors:
            say(error, err=True)
        fail("The stack files have errors: correct them first; check shows them too.")
    return workspace, name


def _clusters_of(workspace: Workspace, environment: str, folder: Path) -> list[Cluster]:
    from training_platform.config.own_prices import read_own_prices
    from training_platform.parts.simulate.from_stacks import clusters

    book, _ = read_own_prices(folder)
    shared_clusters = list(clusters(workspace, environment, book))
    if not shared_clusters:
        fail(f"No team has a share of a cluster of {environment}, so there are no queues.")
    return shared_clusters


def _sides(folder: Path, environment: str | None, base: str | None) -> list[list[Cluster]]:
    """Return the clusters of an environment, followed by those of its base, if there is one."""
    from training_platform.checks.comparison.base_files import base_tree

    workspace, name = _environment(folder, environment)
    sides = [_clusters_of(workspace, name, folder)]
    if base is not None:
        with base_tree(folder, base) as tree:
            base_workspace, _ = _environment(tree.root, name)
            sides.append(_clusters_of(base_workspace, name, tree.root))
    return sides


@click.command(epilog=example("training-platform recommend october.csv --wishes wishes.yaml > change.diff"))
@click.argument("trace", type=PATH, help="CSV file of jobs, in the format for simulate.")
@click.option("--wishes", type=PATH, metavar="FILE", required=True, help="YAML file: waits, budget, reservations.")
@click.option("--environment", metavar="STACK", help="Environment whose queues are used; default: the only one.")
@click.option("--machines", type=PATH, metavar="FILE", help="YAML file: when machines arrive and leave.")
@click.option("--runs", type=click.IntRange(1, 100), default=1, help="Runs of each change; results are their medians.")
@click.option("--seed", type=int, default=0, help="Seed of the first run; the same seed repeats a search.")
@click.option("--tries", type=click.IntRange(1, 100_000), default=200, help="Maximum number of changes to try.")
@click.option("--today", metavar="DATE", help="Date that checks use for expiry; default: today.")
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
    """Search for the cheapest change of stack files that meets your targets for waits, and print it as a patch.

    Needs a trace, for example from `training-platform trace make`, and a file of targets (wishes). The patch for `git
    apply` is printed on standard output, and its cost and differences on standard error. Exit code 0: all wishes are
    met. 1: some are not met, and the patch is the closest one found, or the trace has no jobs of a team with a wish. 2:
    the search could not run.
    """
    from training_platform.config.own_prices import read_own_prices
    from training_platform.config.reading.clock import today as clock
    from training_platform.parts.simulate.provisioning_times import read_machines
    from training_platform.parts.simulate.recommend import ChangeSearch
    from training_platform.parts.simulate.wishes import read_wishes

    folder = repository(root)
    times = read_machines(machines)
    workspace, name = _environment(folder, environment)
    book, _ = read_own_prices(folder)
    search = ChangeSearch(
        workspace=workspace,
        environment=name,
        trace=trace,
        wishes=read_wishes(wishes, workspace, name),
        book=book,
        times=times,
        seeds=range(seed, seed + runs),
        today=clock(folder, today),
    )
    recommendation = search.run(tries, lambda text: say(text, err=True))
    current = recommendation.current
    best = recommendation.best
    for wish in current.undecided:
        say(f"not decided: {wish}; {trace} has no jobs of {wish.team}, whose shares stay unchanged", err=True)
    say(f"best: ${best.usd:,.0f} a day, {current.verdict(best)}", err=True)
    for sentence in best.differences or ("no change to the stack files",):
        say(f"  {sentence}", err=True)
    each_in = f", each in {runs} runs" if runs > 1 else ""
    say(f"{recommendation.played} changes were simulated{each_in}.", err=True)
    if output_format == "json":
        document = {
            "played": recommendation.played,
            "undecided": [str(wish) for wish in current.undecided],
            "best": current.as_json(best),
        }
        print_json(document)
    else:
        click.echo(current.patch(best), nl=False)
    sys.exit(1 if best.missed or current.undecided else 0)
