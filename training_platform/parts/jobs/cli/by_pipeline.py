"""``--by-pipeline``: runs a command for a Vertex AI job in a pipeline on main, started from a user's terminal.

The pipelines are `.github/workflows/jobs.yml` and the job `job` of `.gitlab-ci.yml`; `gh` or `glab` sends the requests.
That workflows and pipelines accept inputs was read on 2026-11-29. Everything else about the requests is general
knowledge, and nothing was tried with either service.
"""

from __future__ import annotations

import json
import re
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple

import click
from click.core import ParameterSource

from training_platform.cli.shared import fail, repository, say

_POLL_SECONDS = 5
_TAKEN = {"by_pipeline", "file", "run", "target", "root"}
_CHOSEN = f"{__name__}.chosen"
_TIMESTAMP = re.compile(r"^\ufeff?\d{4}-\d\d-\d\dT[\d:.]+Z (?:[0-9a-f]{2}[OE]\+? ?)?", re.MULTILINE)
_OUTPUT = re.compile(r"^== job \w+\n(.*)^== exit code (\d+)$", re.MULTILINE | re.DOTALL)


class _Started(NamedTuple):
    """A pipeline: its URL for people, whether it has ended, and its log after its end."""

    page: str
    ended: Callable[[], bool]
    log: Callable[[], str]


def by_pipeline(command: Callable[..., None]) -> Callable[..., None]:
    """Add the option ``--by-pipeline`` to a command."""

    @wraps(command)
    def either(**options: Any) -> None:
        context = click.get_current_context()
        if context.meta[_CHOSEN]:
            sys.exit(_run(context, options))
        command(**options)

    help_text = "Vertex AI in a shared project: run this command in the repository's pipeline, through `gh` or `glab`."
    option = click.option("--by-pipeline", is_flag=True, expose_value=False, callback=_keep, help=help_text)
    return option(either)


def _keep(context: click.Context, _: click.Parameter, value: bool) -> None:
    context.meta[_CHOSEN] = value


def _run(context: click.Context, options: dict[str, Any]) -> int:
    """Start the pipeline, wait for its end, print the output of its command, and return the command's exit code."""
    _refuse_other_options(context)
    folder = repository(options["root"])
    inputs = {"command": str(context.info_name), "file": "", "run": options["run"] or ""}
    if "file" in options:
        inputs["file"] = _merged_file(folder, options["file"])
    remote = _git(folder, "remote", "get-url", "origin")
    pipeline = _github(folder, inputs) if "github" in remote else _gitlab(folder, inputs)
    say(f"# {pipeline.page}", err=True)
    while not pipeline.ended():
        time.sleep(_POLL_SECONDS)
    log = re.sub(r"\x1b\[[0-9;]*[a-zA-Z]", "", pipeline.log()).replace("\r", "")
    match = _OUTPUT.search(_TIMESTAMP.sub("", log))
    if match is None:
        fail(f"The pipeline ended before it ran the command: {pipeline.page}")
    if match[1]:
        say(match[1].removesuffix("\n"))
    return int(match[2])


def _refuse_other_options(context: click.Context) -> None:
    """Exit if other options are given, since the pipeline accepts only a merged file or the name of a run."""
    refused_options = [
        parameter.opts[0]
        for parameter in context.command.params
        if parameter.name not in _TAKEN
        and context.get_parameter_source(str(parameter.name)) is ParameterSource.COMMANDLINE
    ]
    if refused_options:
        fail(f"--by-pipeline excludes {' and '.join(refused_options)}: a pipeline uses only merged files.")
    if context.params.get("target") == "gke":
        fail("--by-pipeline is for Vertex AI; members submit to GKE themselves.")


def _merged_file(folder: Path, file: Path) -> str:
    """Return a job file's path in the repository. Exits if it, or a file that the job uploads, differs from main."""
    from training_platform.parts.jobs.job_file import job_source

    source = job_source(file, folder)
    value = source.value if isinstance(source.value, dict) else {}
    uploaded = value.get("source")
    paths = [source.file]
    if isinstance(uploaded, dict):
        kinds = ("file", "package", "folder")
        paths += [uploaded[kind] for kind in kinds if isinstance(uploaded.get(kind), str)]
    _git(folder, "fetch", "--quiet", "origin", "main")
    for path in paths:
        if not _git(folder, "ls-tree", "FETCH_HEAD", "--", path):
            fail(f"{path} is not on the main branch of origin, and a pipeline uses only merged files: merge it first.")
        changes = _git(folder, "diff", "--name-only", "FETCH_HEAD", "--", path)
        changes += _git(folder, "ls-files", "--others", "--exclude-standard", "--", path)
        if changes:
            differing = changes.splitlines()[0]
            fail(f"{differing} differs from the main branch of origin, and a pipeline uses only merged files.")
    return source.file


def _github(folder: Path, inputs: dict[str, str]) -> _Started:
    """Start the workflow on GitHub."""
    api = "repos/{owner}/{repo}/actions"
    request = secrets.token_hex(8)
    body = {"ref": "main", "inputs": {**inputs, "request": request}}
    _ask(folder, "gh", f"{api}/workflows/jobs.yml/dispatches", body)

    def workflow_runs() -> list[Any]:
        listed = json.loads(_ask(folder, "gh", f"{api}/workflows/jobs.yml/runs?event=workflow_dispatch"))
        return [run for run in listed["workflow_runs"] if run["display_title"].endswith(request)]

    while not (runs := workflow_runs()):  # it appears some seconds after the request
        time.sleep(_POLL_SECONDS)
    number = runs[0]["id"]

    def log() -> str:
        (job,) = json.loads(_ask(folder, "gh", f"{api}/runs/{number}/jobs"))["jobs"]
        return _ask(folder, "gh", f"{api}/jobs/{job['id']}/logs")

    def ended() -> bool:
        return bool(json.loads(_ask(folder, "gh", f"{api}/runs/{number}"))["status"] == "completed")

    return _Started(runs[0]["html_url"], ended, log=log)


def _gitlab(folder: Path, inputs: dict[str, str]) -> _Started:
    """Start the pipeline on GitLab."""
    pipeline = json.loads(_ask(folder, "glab", "projects/:id/pipeline", {"ref": "main", "inputs": inputs}))
    path = f"projects/:id/pipelines/{pipeline['id']}"

    def log() -> str:
        jobs = json.loads(_ask(folder, "glab", f"{path}/jobs"))
        (job,) = [job for job in jobs if job["name"] == "job"]
        return _ask(folder, "glab", f"projects/:id/jobs/{job['id']}/trace")

    def ended() -> bool:
        return json.loads(_ask(folder, "glab", path))["status"] in ("success", "failed", "canceled", "skipped")

    return _Started(pipeline["web_url"], ended, log=log)


def _ask(folder: Path, program: str, path: str, body: Any = None) -> str:
    """Send a request with the service's own command line, which has the repository and the user's token."""
    if shutil.which(program) is None:
        name, address = {"gh": ("GitHub CLI", "cli.github.com"), "glab": ("GitLab CLI", "docs.gitlab.com/cli")}[program]
        fail(f"--by-pipeline needs {program}, the {name}, on PATH: {address}. Then run {program} auth login.")
    options = [] if body is None else ["--method", "POST", "--input", "-", "--header", "Content-Type: application/json"]
    return _output(folder, [program, "api", *options, path], "" if body is None else json.dumps(body))


def _git(folder: Path, *arguments: str) -> str:
    return _output(folder, ["git", *arguments], "").strip()


def _output(folder: Path, command: list[str], text: str) -> str:
    ran = subprocess.run(command, cwd=folder, input=text, capture_output=True, text=True, check=False)  # noqa: S603 # our own arguments
    if ran.returncode:
        reason = ran.stderr.strip().splitlines() or [f"exit code {ran.returncode}"]
        fail(f"{' '.join(command[:2])}: {reason[-1]}")
    return ran.stdout
