#!/usr/bin/env python3
"""Writes who reviews which files: .github/CODEOWNERS and .gitlab/CODEOWNERS, from stacks/owners.yaml.

``owners.py`` writes both, ``owners.py --check`` only compares. Exit codes: 0, 1 if a file is not up to date, 2 if
stacks/owners.yaml cannot be used. Without that file nothing is written, and files that were written from it have to go.

The platform owns everything but the teams' folders of jobs. A team's stack file holds its share, its members and what
its pods reach, so the team alone may not approve it. On GitHub one owner of a line is enough, so that line names the
platform alone; GitLab asks each section, so there the team has to agree too. Sources: GitHub docs, about code owners;
GitLab docs, advanced configuration of code owners; read 2026-11-28.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from training_platform.config.owners import FILE, OwnerMap, read_owners
from training_platform.config.reading.finding import UserError
from training_platform.config.workspace import Workspace, read_workspace

PATHS = (".github/CODEOWNERS", ".gitlab/CODEOWNERS")
_HEADER = f"# Written by pipelines/owners.py from {FILE}."


def main(root: Path, *, check: bool) -> int:
    """Write or compare both files. Raises UserError if the map cannot be used."""
    if not (root / FILE).is_file():
        orphans = [path for path in PATHS if _HEADER in _read(root / path)]
        for path in orphans:
            sys.stderr.write(f"{path} was written from {FILE}, which does not exist: write {FILE}, or delete {path}\n")
        return 1 if orphans else 0
    texts = dict(zip(PATHS, files(root), strict=True))
    stale = {path: text for path, text in texts.items() if _read(root / path) != text}
    for path, text in stale.items():
        if check:
            sys.stderr.write(f"{path} is not up to date with {FILE}: run .venv/bin/python pipelines/owners.py\n")
        else:
            (root / path).parent.mkdir(exist_ok=True)
            (root / path).write_text(text, encoding="utf-8")
    return 1 if check and stale else 0


def files(root: Path) -> Iterator[str]:
    """Yield the texts of ``PATHS``. Raises UserError for a map with errors."""
    workspace = read_workspace(root)
    owner_map, findings = read_owners(root, workspace)
    if owner_map is None or findings:
        raise UserError("\n".join(map(str, findings)))
    jobs = [f"/jobs/{name}/ {owners}" for name, owners in sorted(owner_map.teams.items())]
    yield _text(f"* {owner_map.platform}", *jobs)
    stacks = [f"/stacks/Pulumi.{stack}.yaml {owners}" for stack, owners in _stacks(workspace, owner_map)]
    yield _text("[Platform]", f"* {owner_map.platform}", *jobs, "[Stacks of teams]", *stacks)


def _stacks(workspace: Workspace, owner_map: OwnerMap) -> Iterator[tuple[str, str]]:
    for stack, team, _ in workspace.teams():
        if owners := owner_map.teams.get(team.name):
            yield stack.name, owners


def _text(*lines: str) -> str:
    return "\n".join([_HEADER, *lines, ""])


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""


if __name__ == "__main__":
    if sys.argv[1:] not in ([], ["--check"]):
        sys.stderr.write("usage: owners.py [--check]\n")
        sys.exit(2)
    try:
        sys.exit(main(Path(__file__).resolve().parent.parent, check="--check" in sys.argv))
    except UserError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(2)
