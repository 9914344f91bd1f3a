"""``training-platform pipeline-accounts``: prints the gcloud commands that create the accounts of pipelines."""

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
_BUCKET = re.compile(r"gs://[a-z0-9._-]+")
_KEY = re.compile(r"projects/[\w./-]+/cryptoKeys/[\w-]+")
_MEMBER = re.compile(r"(user|group|serviceAccount):[\w.+-]+@[\w.-]+")
_BRANCH = re.compile(r"[\w./-]+")


def _check(form: re.Pattern[str], allowed: str) -> Callable[[click.Context, click.Parameter, str], str]:
    """Return a callback that rejects values that do not match a pattern. Values become parts of shell commands."""

    def check(_ctx: click.Context, parameter: click.Parameter, value: str) -> str:
        if not form.fullmatch(value):
            fail(f"{parameter.opts[0]} {value!r} is not {allowed}.")
        return value

    return check


def _check_optional(
    form: re.Pattern[str], allowed: str
) -> Callable[[click.Context, click.Parameter, str | None], str | None]:
    check = _check(form, allowed)
    return lambda context, parameter, value: value if value is None else check(context, parameter, value)


def _check_members(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    check = _check(_MEMBER, "a member such as user:ada@example.com")
    return tuple(check(context, parameter, value) for value in values)


_project = click.argument("project", callback=_check(_PROJECT, "a project's id"), help="The accounts' project.")
_check_id = _check_optional(_ID, "an id, which has only digits")
_github = click.option(
    "--github", metavar="ID", callback=_check_id, help="A repository's id: `gh api repos/OWNER/NAME --jq .id`."
)
_gitlab = click.option(
    "--gitlab", metavar="ID", callback=_check_id, help="A project's id, as the project's overview page shows it."
)
_gitlab_url = click.option(
    "--gitlab-url",
    default="https://gitlab.com",
    callback=_check(_URL, "an address such as https://gitlab.com"),
    help="The address of your GitLab.",
)
_branch = click.option(
    "--branch", default="main", callback=_check(_BRANCH, "a branch such as main"), help="The branch that is deployed."
)


_state = click.option(
    "--state", metavar="gs://BUCKET", callback=_check_optional(_BUCKET, "a bucket, gs://NAME"), help="Pulumi's state."
)
_state_key = click.option(
    "--state-key",
    callback=_check_optional(_KEY, "a key, projects/.../cryptoKeys/NAME"),
    help="The Cloud KMS key that encrypts the state's secrets.",
)
_operators = click.option(
    "--operator",
    "operators",
    multiple=True,
    metavar="MEMBER",
    callback=_check_members,
    help="A person who may deploy by hand, such as user:ada@example.com.",
)


@click.command("pipeline-accounts", epilog=example("training-platform pipeline-accounts example-admin --github 123456"))
@_project
@_github
@_gitlab
@_gitlab_url
@_branch
@_state
@_state_key
@_operators
@root_option
def pipeline_accounts(
    *,
    project: str,
    github: str | None,
    gitlab: str | None,
    gitlab_url: str,
    branch: str,
    state: str | None,
    state_key: str | None,
    operators: tuple[str, ...],
    root: Path | None,
) -> None:
    """Print a script that creates the service accounts of pipelines and grants their roles.

    An owner of the projects reads it and runs it once, and again after a change of environments. Exit code 2: a stack
    file is rejected.
    """
    from training_platform.config.workspace import read_workspace
    from training_platform.resources.pipeline_accounts import PulumiState, setup_script

    workspace = read_workspace(repository(root))
    _refuse(project, workspace)
    federation = _federation(github, gitlab, gitlab_url, branch)
    pulumi = PulumiState(bucket=state, key=state_key, operators=operators)
    click.echo(setup_script(project, workspace, federation, pulumi), nl=False)


def _refuse(project: str, workspace: Workspace) -> None:
    """Exit if stack files are rejected, or if teams' jobs could act as the accounts."""
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
            "project, so the pipelines' accounts need a separate project."
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
