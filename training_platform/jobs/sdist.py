"""Python source as an sdist: the same files are always the same bytes, under a name that says which."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path

from training_platform.jobs.resolve import ResolvedJob
from training_platform.jobs.spec.source import PythonSource
from training_platform.resources.cloud_names import bucket_id

_VERSION = "0"
_LEFT_OUT = ("__pycache__", "build", "dist")


def source_bucket(job: ResolvedJob) -> str | None:
    """Return the key of the team's bucket that the source goes to; None where the job names none."""
    source = job.spec.source
    return (source.bucket or job.spec.output) if source else None


def package_uri(job: ResolvedJob) -> str | None:
    """Return ``gs://<bucket>/sources/<hash>/<name>-0.tar.gz``; None for a job without source or bucket."""
    source, bucket = job.spec.source, source_bucket(job)
    if source is None or bucket is None:
        return None
    digest = hashlib.sha256(sdist(source, job.workspace.root)).hexdigest()[:16]
    return f"gs://{bucket_id(job.scope, bucket)}/sources/{digest}/{package_name(source)}-{_VERSION}.tar.gz"


def package_name(source: PythonSource) -> str:
    """Return the package's name, of its file or folder."""
    return Path(source.file or source.package or "").stem.replace("_", "-")


def sdist(source: PythonSource, root: Path) -> bytes:
    """Return the archive; OSError where the source cannot be read. Nothing of the source is run for it."""
    top = f"{package_name(source)}-{_VERSION}"
    metadata = f"Metadata-Version: 2.1\nName: {package_name(source)}\nVersion: {_VERSION}\n"
    files = {"PKG-INFO": metadata.encode(), **dict(_files(source, root))}
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name, content in sorted(files.items()):
            member = tarfile.TarInfo(f"{top}/{name}")
            member.size, member.mode = len(content), 0o644
            archive.addfile(member, io.BytesIO(content))
    return gzip.compress(tar.getvalue(), mtime=0)


def _files(source: PythonSource, root: Path) -> Iterator[tuple[str, bytes]]:
    if source.file:
        path = root / source.file
        yield path.name, path.read_bytes()
        yield "setup.py", _setup(source).encode()
        return
    folder = root / (source.package or "")
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        hidden = any(part.startswith(".") or part in _LEFT_OUT or part.endswith(".egg-info") for part in inside.parts)
        if path.is_file() and not hidden:
            yield inside.as_posix(), path.read_bytes()


def _setup(source: PythonSource) -> str:
    """Return the script by which pip builds a package of the one file."""
    modules, requirements = json.dumps([Path(source.file or "").stem]), json.dumps(list(source.requirements))
    return (
        "from setuptools import setup\n"
        f"setup(name={package_name(source)!r}, version={_VERSION!r}, py_modules={modules}, "
        f"install_requires={requirements})\n"
    )
