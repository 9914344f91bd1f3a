"""What commands share: the repository that they work on, the extras that they need, and how they say what is wrong."""

from __future__ import annotations

import json
import os
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Literal, NoReturn

import typer

from training_platform.config.reading.finding import install, printable

DISTRIBUTION = "training-platform"

EXTRAS: Final = {
    "deploy": ("pulumi", "pulumi_gcp", "pulumi_kubernetes"),
    "jobs": ("googleapiclient", "kubernetes"),
    "scheduler": ("distributed",),
    "sandbox": ("pulumi", "pulumi_gcp", "pulumi_kubernetes", "googleapiclient", "starlette", "uvicorn"),
}
"""By extra, modules that it brings; ``quota`` is asked for by ``quota pull`` itself."""


def repository(given: Path | None) -> Path:
    """Return the repository's root: ``given``, or the nearest folder upwards that has ``Pulumi.yaml`` and ``stacks/``.

    Ends the command with exit code 2 and one sentence where there is none, or where it is of another version.
    """
    root = root_around(given) or fail(
        f"{given or 'This folder'} is not a training-platform repository: there is no Pulumi.yaml beside stacks/."
    )
    if (of_root := _version(root)) is not None and of_root != installed():
        fail(
            f"{root} is version {of_root}, and the training-platform that is installed is {installed()}: install "
            f"{DISTRIBUTION}=={of_root}, or run `make setup` there and use its .venv/bin/training-platform."
        )
    return root


def root_around(given: Path | None = None) -> Path | None:
    """Return the repository's root as ``repository`` does, and None where there is none."""
    start = (given or Path()).resolve()
    folders = (start,) if given else (start, *start.parents)
    found = (folder for folder in folders if (folder / "Pulumi.yaml").is_file() and (folder / "stacks").is_dir())
    return next(found, None)


def complete_stacks(incomplete: str) -> list[str]:
    """Return the stacks that a shell may offer: those of the repository around this folder that begin so."""
    root = root_around()
    files = (root / "stacks").glob(f"Pulumi.{incomplete}*.yaml") if root else ()
    return sorted(path.stem.removeprefix("Pulumi.") for path in files)


def complete_teams(incomplete: str) -> list[str]:
    """Return the teams that a shell may offer."""
    from training_platform.config.workspace import read_workspace

    root = root_around()
    names = {team.name for _, team, _ in read_workspace(root).teams()} if root else set[str]()
    return sorted(name for name in names if name.startswith(incomplete))


def complete_jobs(incomplete: str) -> list[str]:
    """Return the job files that a shell may offer, from this folder."""
    root = root_around()
    files = (os.path.relpath(path) for path in (root / "jobs").glob("*/*.yaml")) if root else ()
    return sorted(file for file in files if file.startswith(incomplete))


def complete_runs(incomplete: str) -> list[str]:
    """Return what names of runs begin with: those of jobs. Runs themselves are not asked for."""
    root = root_around()
    names = {f"{path.stem}-" for path in (root / "jobs").glob("*/*.yaml")} if root else set[str]()
    return sorted(name for name in names if name.startswith(incomplete))


def installed() -> str:
    """Return the version of the package that runs."""
    from importlib.metadata import version  # it brings the parser of mails along

    return version(DISTRIBUTION)


def _version(root: Path) -> str | None:
    """Return the version of a clone of this project, None for a folder that holds stacks alone."""
    path = root / "pyproject.toml"
    if not path.is_file():
        return None
    import tomllib

    try:
        project = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
        return str(project["version"]) if project["name"] == DISTRIBUTION else None
    except (OSError, ValueError, KeyError):
        return None


def fail(message: str, *, code: int = 2) -> NoReturn:
    """End the command with one sentence on standard error; exit code 2 is could not check, or wrong usage."""
    say(f"training-platform: {message}", err=True)
    raise typer.Exit(code)


def need(extra: Literal["deploy", "jobs", "sandbox", "scheduler"], what: str) -> None:
    """End the command with exit code 2 and one sentence where an extra is not installed; ``what`` needs it."""
    if any(find_spec(module) is None for module in EXTRAS[extra]):
        fail(f"{what} needs the extra `{extra}`: {install(extra)}")


def say(text: str, *, err: bool = False) -> None:
    """Print text that may hold names from files: printable, so that no log takes it for a command."""
    typer.echo(printable(text), err=err)


def print_json(value: object) -> None:
    """Print a value for programs."""
    typer.echo(json.dumps(value, indent=2))
