"""The base of a change: the files in the last commit that the work tree and another branch have in common.

Git is only read. `git archive` provides the base's files; the work tree and its index are not modified.
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from training_platform.catalog.nearest import find_nearest
from training_platform.config.reading.finding import UserError

# Python 3.11.4 and later know filters, which 3.14 applies by default.
_PLAIN_FILES: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}


@dataclass(frozen=True, kw_only=True)
class BaseTree:
    """The files of the base in ``root``. ``changed`` contains the paths below it that differ from the work tree."""

    root: Path
    ref: str
    commit: str
    changed: tuple[str, ...]


@contextmanager
def base_tree(root: Path, ref: str) -> Iterator[BaseTree]:
    """Yield the base that ``ref`` and the work tree of ``root`` have in common. Raises UserError."""
    git = _Git(root)
    commit = _merge_base(git, ref)
    with tempfile.TemporaryDirectory(prefix="training-platform-base-") as folder:
        _lay_out(git, commit, Path(folder))
        yield BaseTree(root=Path(folder), ref=ref, commit=commit, changed=_changed(git, commit))


def commit_of(root: Path) -> str:
    """Return the commit of the work tree, marked if the work tree differs from it; empty without a commit."""
    try:
        git = _Git(root)
    except UserError:
        return ""
    head = (git.run("rev-parse", "--short=12", "--verify", "--quiet", "HEAD") or "").strip()
    return f"{head} with uncommitted changes" if head and git.run("status", "--porcelain", "--", ".") else head


class _Git:
    """Runs git in one folder and without locks, so it never writes."""

    def __init__(self, folder: Path) -> None:
        command = shutil.which("git")
        if command is None:
            raise UserError("--base needs git, which is not on PATH: install it, or leave --base out.")
        self._command = command
        self._folder = folder
        inside = self.run("rev-parse", "--show-prefix")
        if inside is None:
            raise UserError(
                f"{folder} is not in a git repository, so there is no base to compare with: leave --base out."
            )
        self.prefix = inside.rstrip("\n")  # the folder's path below the repository's root, with a slash at its end

    def run(self, *arguments: str) -> str | None:
        """Return the output of git, or None if it fails."""
        done = self.start(*arguments)
        return done.stdout.decode("utf-8", "surrogateescape") if done.returncode == 0 else None

    def start(self, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        """Run git and wait until it ends."""
        return subprocess.run(  # noqa: S603 # git, found on PATH, with arguments of ours
            [self._command, *arguments],
            cwd=self._folder,
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"},
            capture_output=True,
            stdin=subprocess.DEVNULL,
            check=False,
        )


def _merge_base(git: _Git, ref: str) -> str:
    if git.run("rev-parse", "--verify", "--quiet", "HEAD^{commit}") is None:
        raise UserError("This repository has no commit yet, so there is no base to compare with: leave --base out.")
    if not ref.strip():
        raise UserError("--base has no value: give a branch, such as origin/main.")
    named = git.run("rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
    if named is None:
        raise UserError(_unknown(git, ref))
    common = git.run("merge-base", "HEAD", named.strip())
    if common is not None:
        return common.split()[0]
    if (git.run("rev-parse", "--is-shallow-repository") or "").strip() == "true":
        raise UserError(
            f"This is a shallow clone without the commit that HEAD and {ref} have in common: fetch the whole history, "
            "with `git fetch --unshallow`, or fetch-depth: 0 where actions/checkout makes the clone."
        )
    raise UserError(f"HEAD and {ref} have no commit in common: name the branch from which this branch was created.")


def _unknown(git: _Git, ref: str) -> str:
    refs = git.run("for-each-ref", "--format=%(refname:short)", "refs/heads", "refs/remotes", "refs/tags") or ""
    nearest = find_nearest(ref, refs.split())
    hint = f" Nearest: {nearest}." if nearest else ""
    if git.run("check-ref-format", "--branch", ref) is None:  # such as HEAD~999, which cannot be fetched
        return f"There is no commit {ref} in this clone: name another.{hint}"
    remote, _, branch = ref.partition("/")
    known_remote = remote in (git.run("remote") or "origin").split()
    fetch = f"git fetch {remote} {branch}" if branch and known_remote else f"git fetch origin {ref}"
    return f"There is no commit {ref} in this clone: fetch it, as with `{fetch}`, or name another.{hint}"


def _lay_out(git: _Git, commit: str, tree: Path) -> None:
    """Write those files of a commit that are below the repository's folder."""
    part = f"{commit}:{git.prefix.rstrip('/')}"
    if git.run("rev-parse", "--verify", "--quiet", part) is None:
        raise UserError(f"{git.prefix} is not in commit {commit[:12]}: there is no base to compare with.")
    archive = git.start("archive", "--format=tar", commit)  # only of this folder, with paths below it
    if archive.returncode:
        raise UserError(f"The files of commit {commit[:12]} cannot be read: is this a partial clone without them?")
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        for file in files:
            if file.isfile() or file.isdir():  # a link may lead out of the folder, and no stack file is one
                files.extract(file, tree, **_PLAIN_FILES)


def _changed(git: _Git, commit: str) -> tuple[str, ...]:
    """Return the paths below the repository's folder that differ between a commit and the work tree's files."""
    tracked = git.run("diff", "--name-only", "--no-renames", "--relative", "-z", commit, "--", ".")
    new = git.run("ls-files", "--others", "--exclude-standard", "-z", "--", ".")
    if tracked is None or new is None:
        raise UserError(f"git cannot compare the work tree with commit {commit[:12]}.")
    return tuple(sorted({name for name in f"{tracked}{new}".split("\0") if name}))
