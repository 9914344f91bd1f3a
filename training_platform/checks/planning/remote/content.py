"""What a worker elsewhere plans from, in one archive: the program, ``modules``, ``training_platform``, stack files.

That is what ``cache_key`` says an outcome depends on, but for Python and the installed packages, whose versions travel
beside it.
"""

from __future__ import annotations

import hashlib
import io
import platform
import zipfile
from importlib.metadata import distributions
from pathlib import Path
from typing import NamedTuple

from training_platform.checks.planning.cache_key import PROGRAM, code_files
from training_platform.config.workspace import STACKS_FOLDER

_NOT_COMPARED = ("pip", "training-platform")  # the one installs, the other is sent


class Content(NamedTuple):
    """A ZIP archive with the SHA-256 digest of it, and the version of each package here; ``python`` is one of them."""

    archive: bytes
    digest: str
    versions: dict[str, str]


def content_of(root: Path) -> Content:
    """Pack what plans the stacks of a repository: the same files give the same archive."""
    files = [(name, root / name) for name in PROGRAM]
    files += [(path.relative_to(root).as_posix(), path) for path in sorted((root / STACKS_FOLDER).glob("Pulumi.*"))]
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, path in [*files, *code_files(root)]:
            archive.writestr(zipfile.ZipInfo(name), path.read_bytes(), zipfile.ZIP_DEFLATED)
    data = buffer.getvalue()
    return Content(data, hashlib.sha256(data).hexdigest(), installed_versions())


def installed_versions() -> dict[str, str]:
    """Return the versions that have to be alike wherever stacks are planned, by package."""
    versions = {each.metadata["Name"].lower(): each.version for each in distributions()}
    packages = {name: version for name, version in versions.items() if name not in _NOT_COMPARED}
    return {"python": platform.python_version(), **packages}
