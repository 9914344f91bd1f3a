"""Findings about the source of a job's program: files outside the repository, links that leave it, no bucket."""

from __future__ import annotations

import pathlib
import posixpath
from collections.abc import Collection, Iterator

from training_platform.catalog.nearest import find_nearest
from training_platform.config.reading.declaration import Draft, finding
from training_platform.config.reading.section import enumeration
from training_platform.parts.jobs.job_model import PythonSource
from training_platform.parts.jobs.job_rules import job_rule
from training_platform.parts.jobs.resolve import ResolvedJob
from training_platform.parts.jobs.source_archive import goes_along, source_bucket, source_files

LARGEST_SOURCE_MIB = 100  # of files, before they are packed
_BUILDS = ("pyproject.toml", "setup.py")


JOB_SOURCE = job_rule(
    "job-source",
    "Find source that is not in the repository, or is not a Python file or package.",
)
JOB_SOURCE_BUCKET = job_rule(
    "job-source-bucket",
    "Find source without a bucket for its upload.",
)


def source_findings(job: ResolvedJob) -> Iterator[Draft]:
    """Find source outside the repository, a folder that is not a package, and source without a bucket."""
    source = job.spec.source
    root = job.workspace.root
    if source is None:
        return
    rule = JOB_SOURCE
    yield from _links(job, source)
    if source.file and not ((root / source.file).is_file() and source.file.endswith(".py")):
        message = f"{source.file} is not a Python file of this repository"
        yield finding(job, ("source", "file"), message, rule=rule, allowed="a file that ends in .py")
    if source.package and not any((root / source.package / name).is_file() for name in _BUILDS):
        message = f"{source.package} is not a Python package of this repository"
        allowed = f"a folder with {' or '.join(_BUILDS)}"
        yield finding(job, ("source", "package"), message, rule=rule, allowed=allowed)
    if source.folder:
        yield from _folder(job, source.folder)
    if source_bucket(job) is None:
        message = "has no bucket for its upload"
        allowed = f"output or source.bucket: {enumeration(job.team.buckets) or 'the team has none'}"
        yield finding(job, ("source",), message, rule=JOB_SOURCE_BUCKET, allowed=allowed)


def readable(job: ResolvedJob) -> bool:
    """Return True if the job has no source, or if its source can be packed."""
    return not any(draft.field[:1] == ("source",) for draft in source_findings(job))


def _links(job: ResolvedJob, source: PythonSource) -> Iterator[Draft]:
    """Find links that leave the repository or the source's folder, or that point to hidden files (never uploaded)."""
    field = next(field for field in ("file", "package", "folder") if getattr(source, field))
    name = getattr(source, field)
    root = job.workspace.root.resolve()
    folder = root / name
    files: list[pathlib.Path] = []
    if source.file:
        files = [folder]
        folder = folder.parent
    elif folder.is_dir():
        files = source_files(folder, git=source.folder is not None)
    top = folder.resolve()
    if not top.is_relative_to(root):
        message = f"{name} is a link out of the repository"
        yield finding(job, ("source", field), message, rule=JOB_SOURCE, allowed="a path without such links")
        return
    leading = [file for file in files if not goes_along(file.resolve(), top)]
    if leading:
        names = enumeration([file.relative_to(folder).as_posix() for file in leading])
        message = f"{names} of {name} link to files outside it or to hidden files: a run would include unlisted files"
        yield finding(job, ("source", field), message, rule=JOB_SOURCE, allowed="files, and links inside the folder")


def _folder(job: ResolvedJob, name: str) -> Iterator[Draft]:
    """Find a folder that does not exist or is too large."""
    folder = job.workspace.root / name
    path = ("source", "folder")
    files = source_files(folder, git=True) if folder.is_dir() else []
    if not files:
        message = f"{name} is not a folder of this repository with files that git does not ignore"
        yield finding(job, path, message, rule=JOB_SOURCE, allowed="a folder with the program")
    sizes = {file.relative_to(folder).as_posix(): file.stat().st_size for file in files}
    yield from _missing_script(job, name, sizes)
    total = sum(sizes.values()) / 2**20
    if total > LARGEST_SOURCE_MIB:
        largest = max(sizes, key=sizes.__getitem__)
        message = f"{name} has {total:,.0f} MiB; {largest} has {sizes[largest] / 2**20:,.0f}"
        allowed = f"at most {LARGEST_SOURCE_MIB} MiB: ignore data and checkpoints in .gitignore, and mount them"
        yield finding(job, path, message, rule=JOB_SOURCE, allowed=allowed)


def _missing_script(job: ResolvedJob, folder: str, files: Collection[str]) -> Iterator[Draft]:
    """Find a command whose script is not in the source's folder, where the command starts."""
    script = next((word for word in job.spec.command[1:] if word.endswith(".py")), None)
    if not files or script is None or script.startswith("/") or posixpath.normpath(script) in files:
        return
    yield finding(
        job,
        ("command", job.spec.command.index(script)),
        f"{script} is not in {folder}, the working directory of the command",
        rule=JOB_SOURCE,
        severity="warning",
        allowed="a file that git does not ignore, or a path in the image",
        nearest=find_nearest(script, files),
    )
