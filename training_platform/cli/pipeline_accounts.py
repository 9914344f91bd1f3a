"""``training-platform pipeline-accounts``: the commands of gcloud that set up the accounts of pipelines, once."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from training_platform.cli.shared import example, fail, repository, root_option

if TYPE_CHECKING:
    from training_platform.config.workspace import Workspace
    from training_platform.resources.pipeline_accounts import Federation


_PROJECT = re.compile(r"[a-z][a-z0-9-]{4,28}[a-z0-9]")
_ID = re.compile(r"[0-9]+")
_URL = re.compile(r"https://[\w.:/-]+")
_BRANCH = re.compile(r"[\w./-]+")


def _check(form: re.Pattern[str], allowed: str) -> Callable[[click.Context, click.Parameter, str], str]:
    """Return a callback that refuses a value of another form; all values are printed as parts of shell commands."""

    def check(_ctx: click.Context, parameter: click.Parameter, value: str) -> str:
        if not form.fullmatch(value):
            fail(f"{parameter.opts[0]} {value!r} is not {allowed}.")
        return value

    return check


def _check_id(_ctx: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    return (
        value
        if value is None
        else _check(re.compile(r"\d+"), "an id, which consists of digits")(_ctx, parameter, value)
    )


_project = click.argument("project", callback=_check(_PROJECT, "a project's id"), help="The accounts' project.")
_github = click.option(
    "--github", metavar="ID", callback=_check_id, help="A repository's id: `gh api repos/OWNER/NAME --jq .id`."
)
_gitlab = click.option("--gitlab", metavar="ID", callback=_check_id, help="A project's id, which its first page shows.")
_gitlab_url = click.option(
    "--gitlab-url",
    default="https://gitlab.com",
    callback=_check(_URL, "an address such as https://gitlab.com"),
    help="The address of your GitLab.",
)
_branch = click.option(
    "--branch", default="main", callback=_check(_BRANCH, "a branch such as main"), help="The branch that is deployed."
)


@click.command("pipeline-accounts", epilog=example("training-platform pipeline-accounts example-admin --github 123456"))
@_project
@_github
@_gitlab
@_gitlab_url
@_branch
@root_option
def pipeline_accounts(
    *, project: str, github: str | None, gitlab: str | None, gitlab_url: str, branch: str, root: Path | None
) -> None:
    """Print a script that creates the service accounts of pipelines, with their rights.

    An owner of the projects reads and runs it once, and again after a change of environments. Exit code 2: a stack
    file is rejected.
    """
    from training_platform.config.workspace import read_workspace
    from training_platform.resources.pipeline_accounts import setup_script

    workspace = read_workspace(repository(root))
    _refuse(project, workspace)
    federation = _federation(github, gitlab, gitlab_url, branch)
    click.echo(setup_script(project, workspace, federation), nl=False)


def _refuse(project: str, workspace: Workspace) -> None:
    """End the command where stack files are rejected, or where jobs of teams could act as the accounts."""
    rejections = [
        *workspace.unreadable.values(),
        *(str(finding) for stack in workspace.stacks.values() for finding in stack.findings),
    ]
    if rejections:
        fail("\n".join(rejections))
    trains = sorted(stack.name for stack in workspace.stacks.values() if workspace.project_of(stack) == project)
    if trains:
        fail(
            f"{project} is the project of {', '.join(trains)}: a job on Vertex AI may act as any account of its "
            "project, so the accounts of pipelines need a project of their own."
        )


def _federation(github: str | None, gitlab: str | None, gitlab_url: str, branch: str) -> Federation | None:
    from training_platform.resources import pipeline_accounts as accounts

    if github and gitlab:
        fail("--github and --gitlab exclude each other.")
    if github:
        return accounts.github(github, branch)
    if gitlab:
        return accounts.gitlab(gitlab, gitlab_url, branch)
    return None
