"""The owners of files: ``stacks/owners.yaml``, from which ``pipelines/owners.py`` writes CODEOWNERS."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

from training_platform.catalog.nearest import find_nearest
from training_platform.config.reading.declaration import declare, finding, located
from training_platform.config.reading.finding import Finding
from training_platform.config.reading.rejection import validated
from training_platform.config.reading.section import Section, enumeration
from training_platform.config.reading.source import read_source
from training_platform.config.workspace import Workspace

FILE = "stacks/owners.yaml"
OWNERS = declare(
    "owners",
    "Find errors in the map from files to reviewers, and names in it that are not teams.",
    ruleset="files",
    refused_by="pipelines/owners.py, which writes CODEOWNERS from the file",
)


def _owners(value: str) -> str:
    if not value or not all(name.startswith("@") and len(name) > 1 for name in value.split()):
        context = {
            "allowed": "@organisation/team of GitHub, or @group of GitLab; a Google group cannot own files there"
        }
        raise PydanticCustomError("owner", f"{value!r} cannot own files", context)
    return value


_Owners = Annotated[str, AfterValidator(_owners)]


class OwnerMap(Section):
    """Owners on GitHub or GitLab, of the platform and of each team. Several owners are separated by spaces."""

    platform: _Owners
    teams: dict[str, _Owners]


def read_owners(root: Path, workspace: Workspace) -> tuple[OwnerMap | None, list[Finding]]:
    """Return a repository's owners, or None if there is no file or it is rejected. Raises UnreadableError."""
    path = root / FILE
    if not path.is_file():
        return None, []
    source = read_source(path, FILE)
    owner_map, findings = validated(OwnerMap, {} if source.value is None else source.value, source, rule=OWNERS)
    teams = {team.name for _, team, _ in workspace.teams()}
    is_whole = not workspace.unreadable and all(stack.section is not None for stack in workspace.stacks.values())
    if owner_map is None or not is_whole:
        return owner_map, findings  # a file that is not read may be the team's
    unknown = [name for name in owner_map.teams if name not in teams]
    findings += located(
        finding(
            source,
            ("teams", name),
            "is no team",
            rule=OWNERS,
            allowed=enumeration(sorted(teams)),
            nearest=find_nearest(name, teams),
        )
        for name in unknown
    )
    return owner_map, findings
