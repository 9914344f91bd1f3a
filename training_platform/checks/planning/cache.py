"""Outcomes of plans on disk, by the digest of all that they depend on: an unchanged stack is not planned again.

They lie in ``$XDG_CACHE_HOME/training-platform``, by default below ``~/.cache``: outside the repository, so that every
clone, work tree and base of a comparison shares them. An entry is written whole or not at all, and carries the digest
of what it holds: any other content is a miss. What is old, or too much, is deleted after a run that planned.

An outcome depends on the stack's file and its environment's, of one that lends on all stacks' files, on the program,
on the code and data of ``modules`` and ``training_platform``, on Python and every installed package. Today, snapshots,
exemptions and the baseline are not in the digest: they are applied to outcomes afterwards. Nor is the policy pack,
which no check runs.

The digest tells damage and no forgery: whoever may write the folder decides what a check finds. So it is its owner's
alone, and one that others own or may write is refused.
"""

from __future__ import annotations

import hashlib
import os
import platform
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from importlib.metadata import distributions
from pathlib import Path

from pydantic import ValidationError

from training_platform.checks.planning.outcome import Outcome, decode
from training_platform.config.model.stack import Stack, stack_name
from training_platform.config.reading.finding import UserError
from training_platform.config.workspace import STACKS_FOLDER

FORMAT = "v2"
DAYS = 30
MOST_BYTES = 512 * 1024 * 1024
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
CODE = Path(__file__).resolve().parents[3]
PROGRAM = ("Pulumi.yaml", "__main__.py")


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
        entries = []
        for path in self._folder.glob("*/*"):
            with suppress(OSError):
                status = path.stat()
                entries.append((status.st_mtime, status.st_size, path))
        for used, size, path in sorted(entries, reverse=True):
            room -= size
            if room < 0 or used < self._now() - DAYS * 24 * 3600:
                with suppress(OSError):
                    path.unlink()

    def _path(self, digest: str) -> Path:
        return self._folder / digest[:2] / digest


def _mark(digest: str, data: bytes) -> str:
    return hashlib.sha256(digest.encode() + data).hexdigest()


def program_digest(root: Path, code: Path = CODE) -> str:
    """Return the digest of all but stack files: the program and ``modules`` at ``root``, the packages below ``code``.

    Installed from a wheel, ``code`` has no ``modules``; in tests ``root`` may have none, and is planned by ours.
    """
    # whole and unparsed: to find the name and version would take longer than all else here
    installed = sorted(
        package.read_text("METADATA")
        or package.read_text("PKG-INFO")
        or package.read_text("")  # .egg-info
        or ""
        for package in distributions()
    )
    parts = [sys.version, sys.platform, platform.machine(), *installed]
    files = [*((name, root / name) for name in PROGRAM), *code_files(root, code)]
    return _digest((*parts, *(text for name, path in files for text in (name, _content(path)))))


def stack_digest(program: str, root: Path, stack: Stack, *, inputs: bool) -> str:
    """Return the digest of all that a stack's outcome depends on; ``inputs`` as an outcome has them."""
    others = (stack_name(path) for path in (root / STACKS_FOLDER).glob("Pulumi.*.yaml")) if stack.lends else ()
    names = dict.fromkeys((stack.name, stack.environment_name, *sorted(name for name in others if name)))
    files = (_content(root / STACKS_FOLDER / f"Pulumi.{name}.yaml") for name in names)
    return _digest((program, "inputs" if inputs else "brief", *names, *files))


def code_files(root: Path, code: Path = CODE) -> Iterator[tuple[str, Path]]:
    """Yield the files of both packages, each with the name by which it is imported from one folder."""
    for package, folder in {
        "training_platform": code,
        "modules": root if (root / "modules").is_dir() else code,
    }.items():
        files = sorted(path for path in (folder / package).rglob("*") if path.is_file() and path.suffix != ".pyc")
        yield from ((path.relative_to(folder).as_posix(), path) for path in files)


def _content(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return "absent"


def _digest(parts: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
