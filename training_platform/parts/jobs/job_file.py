"""Reads a job file: returns a job with the position of each value, or findings about the values that are rejected.

The findings suggest names that the job's team has, such as its buckets and secrets.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Collection
from pathlib import Path as FilePath
from pathlib import PurePosixPath
from typing import Any

from pydantic import ValidationError

from training_platform.config.model.team import Team
from training_platform.config.reading.declaration import Draft, finding, located
from training_platform.config.reading.finding import Finding, Path
from training_platform.config.reading.rejection import rejections
from training_platform.config.reading.secrets import HIDDEN
from training_platform.config.reading.section import enumeration
from training_platform.config.reading.source import Source, SourceSection, UnreadableError, read_source
from training_platform.config.workspace import Workspace
from training_platform.parts.jobs.job_model import TARGETS, Job, Target
from training_platform.parts.jobs.job_rules import job_rule

FOLDER = "jobs"
JOB_MODEL = job_rule(
    "job-model",
    "Find a field or value that the model of job files rejects, or a name that its team or environment does not have.",
)
JOB_YAML = job_rule(
    "job-yaml",
    "Find YAML that two readers would read differently.",
)
JOB_NAME_RULE = job_rule(
    "job-name",
    "Find a job, run or pod name that Kubernetes or Vertex AI would refuse.",
)
_ADDRESS = re.compile(r"gs://(?P<bucket>[^/']*)")
JOB_NAME = re.compile(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?")
JOB_NAMES = "at most 63 lower-case letters, digits and dashes, starting with a letter and not ending with a dash"


def job_file(path: FilePath, root: FilePath) -> str:
    """Return the path of a job file in the repository, ``jobs/<team>/<job>.yaml``. Raises UnreadableError for others.

    Symbolic links to folders are followed. A link to the file itself is not followed, since the folder of the link
    determines the team of the job.
    """
    full_path = path.parent.resolve() / path.name
    top = root.resolve()
    file = full_path.relative_to(top).as_posix() if full_path.is_relative_to(top) else full_path.as_posix()
    parts = PurePosixPath(file).parts
    if len(parts) == 3 and full_path.suffix == ".yml":
        raise UnreadableError(f"{file}: names of jobs end in .yaml. Nearest: {full_path.with_suffix('.yaml').name}.")
    if len(parts) != 3 or parts[0] != FOLDER or full_path.suffix != ".yaml":
        raise UnreadableError(f"{file}: is not a job of this repository: jobs are {FOLDER}/<team>/<job>.yaml in {top}.")
    return file


def job_source(path: FilePath, root: FilePath) -> Source:
    """Return a job file's parsed values. Raises UnreadableError."""
    source = read_source(path, job_file(path, root))
    if source.value is None:
        raise UnreadableError(
            f"{source.file}:1:1: is empty. Restore it from git, or delete it: training-platform init job writes "
            "a new one."
        )
    return source


def number_of_places(value: Any, target: Target) -> int:
    """Return how many places (clusters or regions) a job file lists for a target, or 0 without this target."""
    places = value.get(target) if isinstance(value, dict) else None
    if places is None:
        return 0
    return max(1, len(places)) if isinstance(places, list) else 1


def at_place(source: Source, index: int) -> Source:
    """Return a file in which each target has only one place: the one with this index, or its first if there is none.

    Positions are still those in the file.
    """
    for target in TARGETS:
        source = _with_one_place(source, target, index)
    return source


def _with_one_place(source: Source, target: Target, index: int) -> Source:
    value = source.value
    places = value.get(target) if isinstance(value, dict) else None
    if not isinstance(places, list) or not places:
        return source
    if index >= len(places):
        index = 0
    here = (target, index)
    positions = {path: position for path, position in source.positions.items() if path[:1] != (target,)}
    positions |= {(target, *path[2:]): position for path, position in source.positions.items() if path[:2] == here}
    written = {(target, *path[2:]): text for path, text in source.written.items() if path[:2] == here}
    return dataclasses.replace(
        source,
        value={**value, target: places[index]},
        positions=positions,
        written=source.written | written,
    )


def read_model(source: Source, workspace: Workspace) -> tuple[Job | None, list[Finding]]:
    """Return the job of a file and the findings about its YAML and name. The job is None if the model rejects it."""
    findings = [dataclasses.replace(row, rule=JOB_YAML.id) for row in source.findings]
    name = PurePosixPath(source.file).stem
    if not JOB_NAME.fullmatch(name):
        draft = finding(source, (), f"a job cannot be called {name!r}", rule=JOB_NAME_RULE, allowed=JOB_NAMES)
        findings += located([draft])
    try:
        return Job.model_validate_json(json.dumps(source.value)), findings
    except ValidationError as error:
        team = _owner(source, workspace)
        drafts = rejections(error, Job, SourceSection(source), JOB_MODEL)
        return None, findings + located(_in_words_of_team(draft, source, team) for draft in drafts)


_ANY_MACHINE = "e2-standard-4"  # for a resource that the team lacks, so that only the resource is a finding


def on_resource(source: Source, workspace: Workspace) -> Source:
    """Return a job file with the machine and disk of its persistent resource added, unless it names a machine type."""
    value = source.value
    target = value.get("vertex") if isinstance(value, dict) else None
    if not isinstance(target, dict) or "machine_type" in target:
        return source
    name = target.get("persistent_resource")
    if not isinstance(name, str):
        return source
    environment = value.get("environment")
    team = PurePosixPath(source.file).parent.name
    rows = workspace.teams_called(team, "environment", environment) if isinstance(environment, str) else []
    resource = rows[0][1].vertex.persistent_resources.get(name) if rows else None
    machine: dict[str, Any] = {"machine_type": _ANY_MACHINE}
    if resource is not None:
        machine = {"machine_type": resource.machine_type, "boot_disk": resource.boot_disk.model_dump()}
        if resource.accelerator:
            machine |= {"accelerator": resource.accelerator, "accelerator_count": resource.accelerator_count}
    return dataclasses.replace(source, value={**value, "vertex": {**machine, **target}})


def _owner(source: Source, workspace: Workspace) -> Team | None:
    """Return the team of a job file, even if the model rejects the file."""
    folder = PurePosixPath(source.file).parent.name
    environment = source.value.get("environment") if isinstance(source.value, dict) else None
    teams = (team for _, team, _ in workspace.teams() if team.environment == environment)
    return next((team for team in teams if team.name == folder), None)


def _in_words_of_team(draft: Draft, source: Source, team: Team | None) -> Draft:
    """Add the names of the team's buckets, directories or secrets to a finding about a rejected value."""
    path = draft.field
    written = _written(source.value, path)
    if path[:1] == ("secrets",) and written is not None:
        return _of_secret(draft, source, team)
    if isinstance(written, str) and (address := _ADDRESS.match(written)):
        buckets = team.buckets if team else {}
        meant = [name for name in buckets if address["bucket"].endswith(name) or len(buckets) == 1]
        return dataclasses.replace(
            draft,
            message=f"{written!r} is an address; a job names a bucket of its team's stack file",
            allowed=enumeration(buckets) or "none is declared",
            nearest=max(meant, key=len, default=None),
        )
    if team and path[:1] == ("mounts",) and len(path) == 2 and isinstance(written, str):
        kinds: dict[str, Collection[str]] = {"bucket": team.buckets, "directory": team.directories}
        kind = next((kind for kind, names in kinds.items() if written in names), "data_set")
        nearest = f"{{name: {written}, source: {{{kind}: {written}}}}}"
        return dataclasses.replace(draft, allowed="a mapping with name and source", nearest=nearest)
    if path == ("vertex", "capacity") and written in ("calendar", "reservation"):
        return dataclasses.replace(draft, nearest="on-demand, with reservation: projects/.../reservations/NAME")
    if path == ("source",) and isinstance(written, str):
        kind = "file" if written.endswith(".py") else "folder"
        return dataclasses.replace(draft, nearest=f"{{{kind}: {written}}}")
    if path[:2] == ("sweep", "parameters") and len(path) == 3 and isinstance(written, list):
        return dataclasses.replace(draft, allowed="a mapping with values", nearest=f"{{values: {json.dumps(written)}}}")
    return draft


def _written(value: Any, path: Path | str) -> Any:
    """Return the value at a path of the file, or None if there is none."""
    for part in path:
        if isinstance(value, dict):
            value = value.get(part)
        elif isinstance(value, list) and isinstance(part, int) and part < len(value):
            value = value[part]
        else:
            return None
    return value


def _of_secret(draft: Draft, source: Source, team: Team | None) -> Draft:
    """Return a finding about secrets with the team's names, and without the value, which may be the secret itself."""
    names = team.secrets if team else ()
    if len(draft.field) == 1:
        return dataclasses.replace(
            draft,
            message="is not a mapping of variables to names of secrets",
            allowed=f"{{VARIABLE: NAME}}{_one_of(names)}",
            nearest=f"{{VARIABLE: {next(iter(names), 'NAME')}}}",
        )
    variable = draft.field[1]
    env = source.value.get("env")
    if not (str(variable).isascii() and str(variable).isidentifier()) or (isinstance(env, dict) and variable in env):
        return draft  # about the variable, not the secret
    return without_credential(draft, names)


# Names are words; no word has so many letters and digits in a row.
_CREDENTIAL = re.compile(r"(?=[a-z]*[0-9])[a-z0-9]{12,}", re.IGNORECASE)


def looks_like_credential(text: str) -> bool:
    """Return True if a text that should name a secret may be the secret itself."""
    return _CREDENTIAL.search(text) is not None


def without_credential(draft: Draft, names: Collection[str]) -> Draft:
    """Return a finding about a value in ``secrets`` without this value, since it may be a credential."""
    field = ("secrets",) if looks_like_credential(str(draft.field[-1])) else draft.field
    message = f"{HIDDEN} is not the name of a secret of the team"
    allowed = f"NAME or NAME:VERSION{_one_of(names)}; add values with gcloud secrets versions add"
    return dataclasses.replace(draft, field=field, message=message, allowed=allowed, nearest=None)


def _one_of(names: Collection[str]) -> str:
    return f", one of {enumeration(names)}" if names else ", after it is added under secrets in the team's stack file"
