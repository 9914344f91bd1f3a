#!/usr/bin/env python3
"""Writes who reviews which files: .github/CODEOWNERS and .gitlab/CODEOWNERS, from stacks/owners.yaml.

``owners.py`` writes both, ``owners.py --check`` only compares. Exit codes: 0, 1 if a file is not up to date, 2 if
stacks/owners.yaml cannot be used. Without that file there is nothing to do.

The platform owns everything but the teams' folders of jobs. A team's stack file holds its share, its members and what
its pods reach, so the team alone may not approve it. On GitHub one owner of a line is enough, so that line names the
platform alone; GitLab asks each section, so there the team has to agree too. Sources: GitHub docs, about code owners;
GitLab docs, advanced configuration of code owners; read 2026-11-28.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

from training_platform.catalog.nearest import find_nearest
from training_platform.config.reading.finding import UserError
from training_platform.config.reading.rejection import read_section
from training_platform.config.reading.section import Section
from training_platform.config.workspace import Workspace, read_workspace

MAP = Path("stacks/owners.yaml")
_HEADER = "# Written by pipelines/owners.py from stacks/owners.yaml."


def _owners(value: str) -> str:
    if not value or not all(name.startswith("@") and len(name) > 1 for name in value.split()):
        context = {"allowed": "@organisation/team of GitHub, or @group of GitLab; a Google group owns nothing there"}
        raise PydanticCustomError("owner", f"{value!r} is no owner of files", context)
    return value


_Owners = Annotated[str, AfterValidator(_owners)]


class OwnerMap(Section):
    """The owners on GitHub or GitLab, several with spaces between them: of the platform, and of teams by name."""

    platform: _Owners
    teams: dict[str, _Owners]


def main(root: Path, *, check: bool) -> int:
    """Write or compare both files. Raises UserError if the map cannot be used."""
    if not (root / MAP).is_file():
        return 0
    stale = {path: text for path, text in files(root) if not _is(root / path, text)}
    for path, text in stale.items():
        if check:
            sys.stderr.write(f"{path} is not up to date with {MAP}: run .venv/bin/python pipelines/owners.py\n")
        else:
            (root / path).parent.mkdir(exist_ok=True)
            (root / path).write_text(text, encoding="utf-8")
    return 1 if check and stale else 0


def files(root: Path) -> Iterator[tuple[str, str]]:
    """Yield both files as they should be. Raises UserError for names that are not those of teams."""
    owner_map = read_section(root / MAP, OwnerMap)
    workspace = read_workspace(root)
    teams = {team.name for _, team, _ in workspace.teams()}
    if unknown := sorted(owner_map.teams.keys() - teams):
        raise UserError(f"{MAP}: {' '.join(_unknown(unknown, teams))}")
    jobs = [f"/jobs/{name}/ {owners}" for name, owners in sorted(owner_map.teams.items())]
    yield ".github/CODEOWNERS", _text(f"* {owner_map.platform}", *jobs)
    stacks = [f"/stacks/Pulumi.{stack}.yaml {owners}" for stack, owners in _stacks(workspace, owner_map)]
    yield ".gitlab/CODEOWNERS", _text("[Platform]", f"* {owner_map.platform}", *jobs, "[Stacks of teams]", *stacks)


def _unknown(names: Iterable[str], teams: set[str]) -> Iterator[str]:
    for name in names:
        nearest = find_nearest(name, teams)
        hint = f" Nearest: {nearest}." if nearest else ""
        yield f"{name!r} is no team. Allowed: {', '.join(sorted(teams))}.{hint}"


def _stacks(workspace: Workspace, owner_map: OwnerMap) -> Iterator[tuple[str, str]]:
    for stack, team, _ in workspace.teams():
        if owners := owner_map.teams.get(team.name):
            yield stack.name, owners


def _text(*lines: str) -> str:
    return "\n".join([_HEADER, *lines, ""])


def _is(path: Path, text: str) -> bool:
    return path.is_file() and path.read_text(encoding="utf-8") == text


if __name__ == "__main__":
    if sys.argv[1:] not in ([], ["--check"]):
        sys.stderr.write("usage: owners.py [--check]\n")
        sys.exit(2)
    try:
        sys.exit(main(Path(__file__).resolve().parent.parent, check="--check" in sys.argv))
    except UserError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(2)
