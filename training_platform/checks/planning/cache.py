"""Outcomes of plans on disk, by the digest of all that they depend on: an unchanged stack is not planned again.

They lie in ``$XDG_CACHE_HOME/training-platform``, by default below ``~/.cache``: outside the repository, so that every
clone, work tree and base of a comparison shares them. An entry is written whole or not at all, and carries the digest
of what it holds: any other content is a miss. What is old, or too much, is deleted after a run that planned.

The digest tells damage and no forgery: whoever may write the folder decides what a check finds. So it is its owner's
alone, and one that others own or may write is refused.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from training_platform.checks.planning.outcome import Outcome, decode
from training_platform.config.reading.finding import UserError

FORMAT = "v2"
DAYS = 30
MOST_BYTES = 512 * 1024 * 1024
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def cache_folder() -> Path:
    """Return where this user's outcomes lie."""
    home = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(home) if Path(home).is_absolute() else Path.home() / ".cache"
    return base / "training-platform" / FORMAT


class Cache:
    """Outcomes by digest. A folder that cannot be read or written is an empty cache, and no error.

    Raises UserError for a folder that is not this user's, or that others may write.
    """

    def __init__(self, folder: Path, now: Callable[[], float] = time.time) -> None:
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with suppress(OSError):
            status = folder.lstat()
            if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & _OTHERS_WRITE:
                raise UserError(
                    f"{folder} is not this user's alone, so what it holds cannot be trusted: delete it, set "
                    "XDG_CACHE_HOME to a folder of your own, or check with --no-cache."
                )
        self._folder = folder
        self._now = now

    def get(self, digest: str) -> Outcome | None:
        """Return what is kept under a digest, None where nothing is, or not what was written."""
        path = self._path(digest)
        try:
            mark, _, data = path.read_bytes().partition(b"\n")
            if mark.decode() != _mark(digest, data):
                return None
            outcome = decode(data)
            os.utime(path, (self._now(), self._now()))  # what is used stays
        except (OSError, ValidationError, UnicodeDecodeError):
            return None
        return outcome

    def put(self, digest: str, data: bytes) -> None:
        """Keep an encoded outcome."""
        path = self._path(digest)
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
                file.write(_mark(digest, data).encode() + b"\n" + data)
            Path(file.name).replace(path)

    def forget(self, digests: Iterable[str]) -> None:
        """Drop what is kept under these digests, which are not those of what it was made from."""
        for digest in digests:
            with suppress(OSError):
                self._path(digest).unlink()

    def prune(self) -> None:
        """Delete what was not used for ``DAYS``, and then the longest unused beyond ``MOST_BYTES``."""
        room = MOST_BYTES
        for used, size, path in sorted(self._entries(), reverse=True):
            room -= size
            if room < 0 or used < self._now() - DAYS * 24 * 3600:
                with suppress(OSError):
                    path.unlink()

    def _entries(self) -> Iterator[tuple[float, int, Path]]:
        for path in self._folder.glob("*/*"):
            with suppress(OSError):
                status = path.stat()
                yield status.st_mtime, status.st_size, path

    def _path(self, digest: str) -> Path:
        return self._folder / digest[:2] / digest


def _mark(digest: str, data: bytes) -> str:
    return hashlib.sha256(digest.encode() + data).hexdigest()
