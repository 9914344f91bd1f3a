"""The versions of CHANGELOG.md, and the commits that are theirs."""

from __future__ import annotations

import re
import subprocess
from typing import NamedTuple

from tests.support.places import ROOT

_CHANGELOG = "CHANGELOG.md"


class Release(NamedTuple):
    """A version and its day, ``2026-11-22``."""

    version: str
    day: str


def releases() -> list[Release]:
    """Return the versions that the changelog has, newest first."""
    text = (ROOT / _CHANGELOG).read_text(encoding="utf-8")
    return [Release(*groups) for groups in re.findall(r"^## (\S+), (\d{4}-\d\d-\d\d)$", text, re.MULTILINE)]


def commit_of(version: str) -> str | None:
    """Return the commit that gave the changelog a version's heading; None where git has none, as in a shallow clone.

    That needs no tag, which would not travel with every clone.
    """
    command = ["git", "log", "--format=%H %P", "--reverse", f"-S## {version}, ", "--", _CHANGELOG]
    log = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    first = log.stdout.partition("\n")[0].split()
    # The first commit of a shallow clone has no parent, and brings all that is older with it.
    return first[0] if len(first) > 1 else None
