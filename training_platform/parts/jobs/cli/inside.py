"""``training-platform job exec|port-forward|top``: access to the containers of a run on GKE with kubectl."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NoReturn

import click

from training_platform.cli.shared import example, fail, line_width, print_json, say
from training_platform.config.reading.finding import UserError
from training_platform.parts.jobs.cli.job import app
from training_platform.parts.jobs.cli.runs import RunsOptions, access_options, find_run, of_a_run_options, run_argument

_SHELL = ("sh", "-c", "exec $(command -v bash || echo sh)")
# GKE brings the tools for GPUs; TPUs have only those of the image.
_GPU_USE = (
    "PATH=$PATH:/usr/local/nvidia/bin; exec nvidia-smi "
    "--query-gpu=index,utilization.gpu,memory.used,memory.total --format=csv,noheader,nounits"
)
_TPU_USE = "exec tpu-info"
_node = click.option("--node", type=click.IntRange(min=0), default=0, help="The node's number in the run.")
_team = click.option("--team", help="The team that owns the run.")


class _BeforeDashes(click.Command):
    """A command that runs another program, whose options have to follow ``--``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments. If ``--`` is missing, raise UsageError with an explanation."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            message = f"{error.message} Write the container's command after --: job exec RUN -- nvidia-smi -l 1."
            raise click.UsageError(message, ctx) from error


@app.command("exec", cls=_BeforeDashes, epilog=example("training-platform job exec finetune-7x2kq nvidia-smi"))
@run_argument
@click.argument(
    "command", nargs=-1, type=click.UNPROCESSED, help="A command and its arguments, after --; default: a shell."
)
@_node
@_team
@access_options
def execute(run: str, command: tuple[str, ...], node: int, **chosen: Any) -> None:
    """Run a command or a shell in a container of a run on GKE, with the environment variables of its program.

    Needs kubectl, and the extra `jobs`. The exit code is that of the command.
    """
    pod, kubectl = _pod(run, node, RunsOptions(**chosen))
    words = [*kubectl, "exec", "-it" if sys.stdin.isatty() else "-i", pod["metadata"]["name"]]
    _end([*words, *_container(), "--", *_launched(pod), *(command or _SHELL)])


@app.command("port-forward", epilog=example("training-platform job port-forward tune-7x2kq 6006"))
@run_argument
@click.argument("ports", nargs=-1, required=True, metavar="[LOCAL:]PORT...", help="Ports of the container.")
@_node
@_team
@access_options
def port_forward(run: str, ports: tuple[str, ...], node: int, **chosen: Any) -> None:
    """Forward ports of this machine to a container of a run on GKE, until the command is stopped.

    Needs kubectl, and the extra `jobs`.
    """
    pod, kubectl = _pod(run, node, RunsOptions(**chosen))
    _end([*kubectl, "port-forward", f"pod/{pod['metadata']['name']}", *ports])


@app.command("top", epilog=example("training-platform job top finetune-7x2kq"))
@run_argument
@of_a_run_options
def top(run: str, **chosen: Any) -> None:
    """Show how busy the accelerators of a run on GKE are, with `nvidia-smi` or `tpu-info` in its containers.

    Needs kubectl, and the extra `jobs`. Exit code 2: a container did not answer.
    """
    options = RunsOptions(**chosen)
    pods, kubectl = _pods(run, options)
    names = [str(pod["metadata"]["name"]) for pod in pods]
    containers = [container for pod in pods for container in (pod.get("spec") or {}).get("containers") or ()]
    limits = [(container.get("resources") or {}).get("limits") or {} for container in containers]
    measure = _TPU_USE if any("google.com/tpu" in row for row in limits) else _GPU_USE

    def ask(name: str) -> subprocess.CompletedProcess[str]:
        command = [*kubectl, "exec", name, *_container(), "--", "sh", "-c", measure]
        return subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603 # as below

    with ThreadPoolExecutor(16) as threads:
        answers = list(zip(names, threads.map(ask, names), strict=True))
    rows = [
        dict(zip(("node", "gpu", "busy_percent", "used_mib", "total_mib"), (name, *map(str.strip, cells)), strict=True))
        for name, answer in answers
        for cells in (line.split(",") for line in answer.stdout.splitlines())
        if len(cells) == 4
    ]
    if options.output_format == "json":
        print_json(rows)
    elif rows:
        from rich.text import Text

        from training_platform.checks.reports.terminal_tables import fitting_table, table_text

        columns = ("NODE", "GPU", "BUSY %", "USED MIB", "OF MIB")
        table = fitting_table(columns, [[Text(cell) for cell in row.values()] for row in rows], line_width())
        say(table_text(table, line_width()))
    measured = {row["node"] for row in rows}
    for name, answer in answers:
        if answer.returncode:
            say(f"training-platform: {name} did not answer: {answer.stderr.strip() or answer.stdout.strip()}", err=True)
        elif name not in measured:  # what `tpu-info` prints has no columns; beside JSON it is for people only
            say(f"{name}\n{answer.stdout.rstrip()}", err=options.output_format == "json")
    sys.exit(2 if any(answer.returncode for _, answer in answers) else 0)


def _end(command: list[str]) -> NoReturn:
    sys.exit(subprocess.call(command))  # noqa: S603 # kubectl, with a run's own names


def _pod(run: str, node: int, options: RunsOptions) -> tuple[dict[str, Any], list[str]]:
    pods, kubectl = _pods(run, options)
    if node >= len(pods):
        fail(f"{run} has no running node {node}: --node is at most {len(pods) - 1}.")
    return pods[node], kubectl


def _pods(run: str, options: RunsOptions) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the running pods of a run, ordered by number, and a kubectl command for its cluster and namespace."""
    from training_platform.clients.kubernetes_api import PODS, context_in
    from training_platform.parts.jobs.runs.on_gke import JOBSET_LABEL

    record, place, api = find_run(run, options)
    if place.target == "vertex":
        fail(
            f"{run} is on Vertex AI: with vertex.web_access: true in its job file, the next run's page in the console "
            "opens a shell."
        )
    kubectl = shutil.which("kubectl") or fail("kubectl is not installed: gcloud components install kubectl")
    pods = api.objects(PODS, place.team.name, f"{JOBSET_LABEL}={run}") if not record.gone else ()
    running = [pod for pod in pods if (pod.get("status") or {}).get("phase") == "Running"]
    if not running:
        raise UserError(f"{run} has no running container: the run is {record.state}.")
    context = context_in(options.kubeconfig, place.key, contexts=place.contexts, log_in=options.log_in(place))
    file = ["--kubeconfig", options.kubeconfig] if options.kubeconfig else []
    return sorted(running, key=_number), [kubectl, *file, "--context", context, "--namespace", place.team.name]


def _number(pod: dict[str, Any]) -> tuple[int, int]:
    labels = pod["metadata"].get("labels") or {}
    annotations = pod["metadata"].get("annotations") or {}
    index = annotations.get("batch.kubernetes.io/job-completion-index")
    return int(labels.get("jobset.sigs.k8s.io/job-index") or 0), int(index or 0)


def _container() -> list[str]:
    from training_platform.parts.jobs.gke.pods import CONTAINER

    return ["--container", CONTAINER]


def _launched(pod: dict[str, Any]) -> list[str]:
    """Return the container's launcher, if any. It gives a command the secrets and variables of the program."""
    from training_platform.resources.launcher import PLAN_VARIABLE

    _, name = _container()
    (container,) = [container for container in pod["spec"]["containers"] if container["name"] == name]
    plan = next((row["value"] for row in container.get("env") or () if row["name"] == PLAN_VARIABLE), None)
    if plan is None:
        return []
    silent = {name: value for name, value in json.loads(plan).items() if name not in ("topic", "message", "restarts")}
    return ["env", f"{PLAN_VARIABLE}={json.dumps({**silent, 'exec': True})}", *container["command"]]
