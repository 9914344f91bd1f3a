#!/usr/bin/env python3
"""Writes .github/CODEOWNERS and .gitlab/CODEOWNERS, which define reviewers, from stacks/owners.yaml.

``owners.py`` writes both files; ``owners.py --check`` only compares them. Exit code 1: a file is not up to date. 2:
stacks/owners.yaml cannot be used. If stacks/owners.yaml does not exist, nothing is written, and files that were
generated from it earlier have to be deleted.

The platform owns everything except the teams' folders of jobs. A team's stack file contains its share, its members and
the destinations that its pods may reach, so the team alone must not approve a change to it. On GitHub the approval of
one owner of a line is enough, so the line for this file names only the platform. GitLab requires an approval for each
section, so there the team has to approve too. Sources: GitHub docs, about code owners; GitLab docs, advanced
configuration of code owners; read 2026-11-28.
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
    """Write or compare both files, and return the exit code. Raises UserError if stacks/owners.yaml cannot be used."""
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
    """Yield the text of each file in ``PATHS``. Raises UserError if stacks/owners.yaml has errors."""
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
