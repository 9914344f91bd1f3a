"""``training-platform image build``: builds an image for jobs and pushes it to a team's or environment's repository."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, get_args

import click

from training_platform.cli.shared import (
    PATH,
    Commands,
    Format,
    complete_stacks,
    example,
    fail,
    format_option,
    print_json,
    repository,
    root_option,
    say,
)

app = Commands("image", help="Container images for jobs.")


Builder = Literal["docker", "buildah", "cloud-build"]
PROGRAMS: Mapping[Builder, str] = {"docker": "docker", "buildah": "buildah"}
"""The program on PATH that each builder needs. Cloud Build needs additional permissions."""


@app.command(
    "build",
    epilog=example("training-platform image build examples/jobs/fsdp_torch --environment prod --team vision --dry-run"),
)
@click.argument("folder", type=PATH, help="The folder with the Dockerfile and its files.")
@click.option("--environment", required=True, shell_complete=complete_stacks, help="Stack of the environment.")
@click.option("--team", help="Push to this team's repository; default: the environment's.")
@click.option("--name", help="Name of the image; default: the folder's.")
@click.option("--tag", help="Tag of the image; default: the commit of the checkout.")
@click.option("--with", "builder", type=click.Choice(get_args(Builder)), help="Builder; default: the first on PATH.")
@click.option("--dry-run", is_flag=True, help="Print the commands, and run none.")
@format_option
@root_option
def build(
    *,
    folder: Path,
    environment: str,
    team: str | None,
    name: str | None,
    tag: str | None,
    builder: Builder | None,
    dry_run: bool,
    output_format: Format,
    root: Path | None,
) -> None:
    """Build an image and push it to a repository; print its name with digest for job files.

    Members push to their team's repository, with --team. docker and buildah build locally. With cloud-build, gcloud
    uploads the folder, and you need permissions in Cloud Build that no stack grants. Exit code 2: the image was not
    built.
    """
    from training_platform.config.workspace import read_workspace
    from training_platform.parts.jobs.images import by_digest, commands, image_name, repository_of

    if not folder.is_dir():
        fail(f"{folder} is not a folder.")
    if not (folder / "Dockerfile").is_file():
        fail(f"{folder} has no Dockerfile: docs/jobs.md has an example of four lines.")
    workspace = read_workspace(repository(root))
    where = repository_of(workspace, environment, team)
    image = image_name(where, name or folder.resolve().name, tag or _commit(folder))
    chosen = builder or next(
        (kind for kind, program in PROGRAMS.items() if shutil.which(program)), "docker" if dry_run else None
    )
    if chosen is None:
        fail(f"None of {', '.join(PROGRAMS.values())} is on PATH: install one of them.")
    run = commands(chosen, image, folder, where.project)
    if dry_run:
        text = "\n".join(shlex.join(command) for command in run)
    else:
        text = image
        image = text = by_digest(image, [_run(command) for command in run][-1])
    print_json({"image": image, "commands": run}) if output_format == "json" else say(text)


def _run(command: list[str]) -> str:
    """Run a command, copy its output to standard error, and return the output. Exits if the command fails."""
    say(f"$ {shlex.join(command)}", err=True)
    printed = ""
    try:
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, errors="replace") as done:  # noqa: S603 # as the person asked
            for line in done.stdout or ():
                printed += line
                say(line.rstrip("\n"), err=True)
        code = done.returncode
    except OSError as error:
        fail(f"{command[0]} cannot be run: {error.strerror}.")
    if code:
        fail(f"{shlex.join(command[:3])} failed with exit code {code}; it pushed no image that a job could use.")
    return printed


def _commit(folder: Path) -> str:
    """Return the commit of a folder. Exits if the folder has changes."""
    git = ["git", "-C", str(folder)]
    try:
        changed = subprocess.run([*git, "status", "--porcelain", "--", "."], check=True, capture_output=True, text=True)  # noqa: S603
        head = subprocess.run([*git, "rev-parse", "--short=12", "HEAD"], check=True, capture_output=True, text=True)  # noqa: S603
    except (OSError, subprocess.CalledProcessError):
        fail(f"{folder} is not in a git repository with a commit: set the image's tag with --tag.")
    if changed.stdout:
        fail(f"{folder} has uncommitted changes: commit them, or set the image's tag with --tag.")
    return head.stdout.strip()
