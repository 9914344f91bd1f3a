"""The archive of a job's source, which a submission uploads to a bucket of the team.

A file or a package becomes a Python source distribution, which pip installs. A folder is packed unchanged. Equal source
gives equal bytes, so the archive is named after its digest and uploaded only once.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from training_platform.parts.jobs.job_model import PythonSource
from training_platform.parts.jobs.resolve import ResolvedJob
from training_platform.resources.scope import bucket_id

_VERSION: Final = "0"
_LEFT_OUT: Final = ("__pycache__", "build", "dist")
_DIGEST_DIGITS: Final = 16


class SourceArchive(NamedTuple):
    """A ``.tar.gz`` with a job's source. ``name`` is the package's name, derived from its file or folder."""

    name: str
    content: bytes

    @property
    def path(self) -> str:
        """The archive's path in a bucket, ``sources/<digest>/<name>-0.tar.gz``."""
        digest = hashlib.sha256(self.content).hexdigest()[:_DIGEST_DIGITS]
        return f"sources/{digest}/{self.name}-{_VERSION}.tar.gz"


def source_bucket(job: ResolvedJob) -> str | None:
    """Return the key of the team's bucket for the source, or None if the job names none."""
    source = job.spec.source
    return (source.bucket or job.spec.output) if source else None


def source_archive(job: ResolvedJob) -> SourceArchive | None:
    """Return the archive of a job's source, or None for a job without source or bucket.

    A workspace packs a source once, so that what is uploaded is what the job's bodies name, even if a file changes in
    between. Raises OSError if the source cannot be read.
    """
    source = job.spec.source
    if source is None or source_bucket(job) is None:
        return None
    root = job.workspace.root
    return job.workspace.once(("source archive", source), lambda: packed(source, root))


def archive_uri(job: ResolvedJob) -> str | None:
    """Return ``gs://<bucket>/<path>`` of a job's archive, or None if it has none. Raises OSError."""
    bucket = source_bucket(job)
    archive = source_archive(job)
    if bucket is None or archive is None:
        return None
    return f"gs://{bucket_id(job.scope, bucket)}/{archive.path}"


def packed(source: PythonSource, root: Path) -> SourceArchive:
    """Return the archive of a source below ``root``. It is built without running any code. Raises OSError."""
    import gzip  # noqa: PLC0415 # they import five more, and few jobs have source to pack
    import tarfile  # noqa: PLC0415 # as above

    package = Path(source.file or source.package or source.folder or "").stem.replace("_", "-")
    files = dict(_files(source, root, package))
    if not source.folder:
        files["PKG-INFO"] = f"Metadata-Version: 2.1\nName: {package}\nVersion: {_VERSION}\n".encode()
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name, content in sorted(files.items()):
            member = tarfile.TarInfo(f"{package}-{_VERSION}/{name}")
            is_executable = source.folder and os.access(root / source.folder / name, os.X_OK)
            member.size = len(content)
            member.mode = 0o755 if is_executable else 0o644
            archive.addfile(member, io.BytesIO(content))
    return SourceArchive(package, gzip.compress(tar.getvalue(), mtime=0))


def _files(source: PythonSource, root: Path, package: str) -> Iterator[tuple[str, bytes]]:
    """Yield the path and content of each file in an archive. A single file gets a ``setup.py``."""
    if source.file:
        path = root / source.file
        yield path.name, path.read_bytes()
        modules = json.dumps([path.stem])
        requirements = json.dumps(list(source.requirements))
        setup = (
            "from setuptools import setup\n"
            f"setup(name={package!r}, version={_VERSION!r}, py_modules={modules}, "
            f"install_requires={requirements})\n"
        )
        yield "setup.py", setup.encode()
        return
    folder = root / (source.package or source.folder or "")
    for path in source_files(folder, git=source.folder is not None):
        yield path.relative_to(folder).as_posix(), path.read_bytes()


def source_files(folder: Path, *, git: bool) -> list[Path]:
    """Return the files of a folder to upload. With ``git``, files that git ignores are left out, if git is used there.

    Hidden files and build output are never uploaded, since a ``.env`` that git does not ignore would leak secrets.
    """
    every: Iterable[Path] = folder.rglob("*")
    if git:
        command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        with suppress(OSError):
            listed = subprocess.run(command, cwd=folder, check=False, capture_output=True)  # noqa: S603 # fixed words
            if listed.returncode == 0:
                every = (folder / os.fsdecode(name) for name in listed.stdout.split(b"\0") if name)
    files = sorted(path for path in every if path.is_file())
    return [path for path in files if goes_along(path, folder)]


def goes_along(path: Path, folder: Path) -> bool:
    """Return True if a path is inside a folder, and is neither hidden nor build output in it."""
    return path.is_relative_to(folder) and not any(map(_stays_behind, path.relative_to(folder).parts))


def _stays_behind(name: str) -> bool:
    return name.startswith(".") or name in _LEFT_OUT or name.endswith(".egg-info")
