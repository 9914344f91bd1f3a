"""Reads a job file and resolves its references: team, cluster, flavor, buckets."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from training_platform.catalog.nearest import find_nearest
from training_platform.config.data_sets import with_own_data
from training_platform.config.expansion import Flavor, cpu_flavor
from training_platform.config.model.environment import Environment
from training_platform.config.model.stack import Stack
from training_platform.config.model.team import Team
from training_platform.config.reading.finding import Finding, Path, Place, Severity
from training_platform.config.reading.rejection import right_part, validated
from training_platform.config.reading.secrets import HIDDEN
from training_platform.config.reading.section import enumeration
from training_platform.config.reading.source import Source, UnreadableError, read_source
from training_platform.config.workspace import Workspace, of_pool, pools_meant, stack_file
from training_platform.parts.jobs.job_model import GkeTarget, Job
from training_platform.resources.scope import Scope, team_scope

FOLDER = "jobs"
MODEL_RULE = "job-model"
YAML_RULE = "job-yaml"
NAME_RULE = "job-name"
_ADDRESS = re.compile(r"'gs://(?P<bucket>[^/']*)[^']*'")
JOB_NAME = re.compile(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?")
JOB_NAMES = "at most 63 lower-case letters, digits and dashes, the first a letter and the last no dash"


@dataclass(frozen=True, kw_only=True)
class ResolvedJob:
    """A job with everything that it refers to. ``flavor`` is set if the job can run on GKE.

    With ``is_run``, ``name`` is a run's name instead of the file's.
    """

    name: str
    spec: Job
    source: Source
    stack: Stack
    team: Team
    environment: Environment
    scope: Scope
    flavor: Flavor | None
    workspace: Workspace = field(repr=False)
    is_run: bool = False

    def finding(
        self, path: Path, message: str, *, rule: str, severity: Severity = "error", allowed: object = None,
        nearest: object = None, spoils: tuple[Place, ...] = (), rests_on: tuple[Place, ...] = (),
    ) -> Finding:  # fmt: skip
        """Return a finding about a part of the job file."""
        return self.source.finding(
            rule, path, message, severity=severity, allowed=allowed, nearest=nearest, spoils=spoils, rests_on=rests_on
        )


def job_file(path: FilePath, root: FilePath) -> str:
    """Return a job's file relative to the repository, ``jobs/<team>/<job>.yaml``. Raises UnreadableError elsewhere.

    Links to folders are followed; a link to the file is not, since the folder of the link says whose job it is.
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


def read_job(
    path: FilePath,
    root: FilePath,
    workspace: Workspace,
    changed: Callable[[Any], Any] = lambda value: value,
    place: int = 0,
) -> tuple[ResolvedJob | None, list[Finding]]:
    """Return a job and the findings about its file; None if there are any. Raises UnreadableError.

    ``changed`` applies a command's options to the file's values. ``place`` is the index of one of the file's places on
    GKE.
    """
    source = job_source(path, root)
    return parse_job(dataclasses.replace(source, value=changed(source.value)), workspace, place)


def job_source(path: FilePath, root: FilePath) -> Source:
    """Return a job file's parsed values. Raises UnreadableError."""
    source = read_source(path, job_file(path, root))
    if source.value is None:
        raise UnreadableError(
            f"{source.file}:1:1: is empty. Restore it from git, or delete it: training-platform init job writes "
            "a new one."
        )
    return source


def places_on_gke(value: Any) -> int:
    """Return the number of places on GKE in a job file's values, at least 1."""
    places = value.get("gke") if isinstance(value, dict) else None
    return max(1, len(places)) if isinstance(places, list) else 1


def _at_place(source: Source, index: int) -> Source:
    """Return a file as if it had only one of its places on GKE; positions stay those of the file."""
    value = source.value
    if not isinstance(value, dict) or not isinstance(value.get("gke"), list) or index >= len(value["gke"]):
        return source
    here = ("gke", index)
    positions = {path: position for path, position in source.positions.items() if path[:1] != ("gke",)}
    positions |= {("gke", *path[2:]): position for path, position in source.positions.items() if path[:2] == here}
    written = {("gke", *path[2:]): text for path, text in source.written.items() if path[:2] == here}
    return dataclasses.replace(
        source,
        value={**value, "gke": value["gke"][index]},
        positions=positions,
        written=source.written | written,
    )


def parse_job(source: Source, workspace: Workspace, index: int = 0) -> tuple[ResolvedJob | None, list[Finding]]:
    """Return the job of a parsed file at one of its places on GKE; ``file`` of the source gives its name and team."""
    source = _on_resource(_at_place(source, index), workspace)
    file = PurePosixPath(source.file)
    findings = [dataclasses.replace(finding, rule=YAML_RULE) for finding in source.findings]
    if not JOB_NAME.fullmatch(file.stem):
        findings.append(source.finding(NAME_RULE, (), f"a job cannot be called {file.stem!r}", allowed=JOB_NAMES))
    job, rejected = validated(Job, source.value, source, rule=MODEL_RULE)
    if job is None:
        findings += rejected
        findings = [_of_secret(_of_bucket(finding, source, workspace), source, workspace) for finding in findings]
        findings = [_of_mount(finding, source, workspace) for finding in findings]
        rest = right_part(source.value, Job)
        return None, findings + (_resolve(rest, source, workspace)[1] if rest else [])
    resolved, dangling = _resolve(job, source, workspace)
    findings += dangling
    return (None if findings else resolved), findings


_ANY_MACHINE = "e2-standard-4"  # for a resource that the team lacks, so that only the resource is a finding


def _on_resource(source: Source, workspace: Workspace) -> Source:
    """Return a file with the machine and disk of its persistent resource, unless it names a machine type."""
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


def _of_bucket(finding: Finding, source: Source, workspace: Workspace) -> Finding:
    """Return a finding about an address in Cloud Storage with the team's bucket that was probably meant."""
    address = _ADDRESS.match(finding.message)
    if address is None:
        return finding
    team = _owner(source, workspace)
    buckets = team.buckets if team else {}
    meant = [name for name in buckets if address["bucket"].endswith(name) or len(buckets) == 1]
    return dataclasses.replace(
        finding,
        message=f"{address[0]} is an address; a job names a bucket of its team's stack file",
        allowed=enumeration(buckets) or "none is declared",
        nearest=max(meant, key=len, default=None),
    )


def _owner(source: Source, workspace: Workspace) -> Team | None:
    """Return the team of a job file that the model may reject."""
    folder = PurePosixPath(source.file).parent.name
    environment = source.value.get("environment") if isinstance(source.value, dict) else None
    teams = (team for _, team, _ in workspace.teams() if team.environment == environment)
    return next((team for team in teams if team.name == folder), None)


def _of_secret(finding: Finding, source: Source, workspace: Workspace) -> Finding:
    """Return a finding about secrets without the value, which may be the secret itself, and with the team's names."""
    section, _, variable = finding.path.partition(".")
    if section.partition("[")[0] != "secrets" or source.value.get("secrets") is None:
        return finding
    team = _owner(source, workspace)
    names = team.secrets if team else ()
    example = next(iter(names), "NAME")
    if not variable:
        message = "is not a mapping of variables to names of secrets"
        return dataclasses.replace(
            finding, message=message, allowed=f"{{VARIABLE: NAME}}{_one_of(names)}", nearest=f"{{VARIABLE: {example}}}"
        )
    if any(words in finding.message for words in ("a name of a variable", "a variable of env")):
        return finding
    return _hidden(finding, names)


_MOUNT = re.compile(r"mounts\[(\d+)\]")


def _of_mount(finding: Finding, source: Source, workspace: Workspace) -> Finding:
    """Return a finding about a mount that is only a name, with that name's bucket, directory or data set."""
    place = _MOUNT.fullmatch(finding.path)
    name = source.value["mounts"][int(place[1])] if place else None
    team = _owner(source, workspace)
    if not isinstance(name, str) or team is None:
        return finding
    kinds: dict[str, Collection[str]] = {"bucket": team.buckets, "directory": team.directories}
    kind = next((kind for kind, names in kinds.items() if name in names), "data_set")
    return dataclasses.replace(
        finding, allowed="a mapping with name and source", nearest=f"{{name: {name}, source: {{{kind}: {name}}}}}"
    )


# Names are words; no word has so many letters and digits in a row.
_CREDENTIAL = re.compile(r"(?=[a-z]*[0-9])[a-z0-9]{12,}", re.IGNORECASE)


def _hidden(finding: Finding, names: Collection[str]) -> Finding:
    """Return a finding about a value that may be a credential, without the value."""
    path = "secrets" if _CREDENTIAL.search(finding.path) else finding.path
    message = f"{HIDDEN} is not the name of a secret of the team"
    allowed = f"NAME or NAME:VERSION{_one_of(names)}; people add values by gcloud secrets versions add"
    return dataclasses.replace(finding, path=path, message=message, allowed=allowed, nearest=None)


def _one_of(names: Collection[str]) -> str:
    return f", one of {enumeration(names)}" if names else ", once the team's stack file has it under secrets"


def _resolve(job: Job, source: Source, workspace: Workspace) -> tuple[ResolvedJob | None, list[Finding]]:
    path = PurePosixPath(source.file)
    team_name = path.parent.name
    home = workspace.stacks.get(job.environment)
    if home is None or home.environment is None:
        names = [stack.name for stack, _ in workspace.environments()]
        file = stack_file(job.environment)
        absent = "" if job.environment in workspace.stacks or workspace.uncounted else f": there is no {file}"
        kind = f"an environment{absent}{_not_counted(workspace)}"
        finding = _dangling(source, ("environment",), job.environment, kind, names, rests_on=((file,),))
        return None, [dataclasses.replace(finding, nearest=find_nearest(job.environment, names))]
    # If two stacks have a team with the same name, the stack named after it counts: the other is a copy.
    rows = sorted(workspace.teams(), key=lambda row: row[0].name.endswith(f"-{row[1].name}"))
    teams = {team.name: (stack, team) for stack, team, _ in rows if team.environment == job.environment}
    if team_name not in teams:
        kind = f"a team of {job.environment}, and a job's folder names its team{_not_counted(workspace)}"
        missing = ((stack_file(f"{job.environment}-{team_name}"),),)
        finding = _dangling(source, (), team_name, kind, teams, rests_on=missing)
        moved = f"jobs/{finding.nearest}/{path.name}" if finding.nearest else None
        return None, [dataclasses.replace(finding, nearest=moved)]
    stack, team = teams[team_name]
    environment = with_own_data(team, home.environment)
    findings = [
        _dangling(source, reference.path, reference.value, f"{reference.kind} of team {team.name}", reference.names)
        for reference in _team_references(job, team, environment)
        if reference.value not in reference.names
    ]
    for index, reference_finding in enumerate(findings):
        variable = reference_finding.path.removeprefix("secrets.")
        if _CREDENTIAL.search(job.secrets.get(variable, "")):
            findings[index] = _hidden(reference_finding, team.secrets)
    findings += _instances(job, stack, environment, source)
    if job.gke:
        findings += _shares(job.gke, stack, environment, source, workspace)
        if job.gke.priority and job.gke.priority not in environment.priorities:
            kind = f"a priority of {job.environment}"
            findings.append(_dangling(source, ("gke", "priority"), job.gke.priority, kind, environment.priorities))
    if findings:
        return None, findings
    resolved = ResolvedJob(
        name=path.stem,
        spec=job,
        source=source,
        stack=stack,
        team=team,
        environment=environment,
        scope=team_scope(team, environment),
        flavor=_flavor(job, job.gke, environment, workspace) if job.gke else None,
        workspace=workspace,
    )
    return resolved, []


def _flavor(job: Job, gke: GkeTarget, environment: Environment, workspace: Workspace) -> Flavor:
    """Return the flavor of a place on GKE; a CPU pool takes the shape of a flavor."""
    if gke.pool:
        return cpu_flavor(gke.cluster, environment.clusters[gke.cluster], gke.pool)
    return workspace.flavors(job.environment, gke.cluster)[gke.flavor or ""]


class _Reference(NamedTuple):
    """A name in a job file, with its kind and the names that the team has of that kind."""

    path: Path
    value: str
    kind: str
    names: Collection[str]


def _team_references(job: Job, team: Team, environment: Environment) -> Iterator[_Reference]:
    """Yield a job's references to its team's resources."""
    if job.output:
        yield _Reference(("output",), job.output, "a bucket", team.buckets)
    if job.source and job.source.bucket:
        yield _Reference(("source", "bucket"), job.source.bucket, "a bucket", team.buckets)
    for variable, secret in job.secrets.items():
        yield _Reference(("secrets", variable), secret.partition(":")[0], "a secret", team.secrets)
    for index, mount in enumerate(job.mounts):
        below: Path = ("mounts", index, "source")
        if mount.source.directory:
            yield _Reference((*below, "directory"), mount.source.directory, "a directory", team.directories)
        if mount.source.bucket:
            yield _Reference((*below, "bucket"), mount.source.bucket, "a bucket", team.buckets)
        if mount.source.data_set:
            readable = [name for name, spec in environment.data_sets.items() if spec.readable_by(team.name)]
            yield _Reference((*below, "data_set"), mount.source.data_set, "a data set for members", readable)
    if job.vertex and job.vertex.persistent_resource:
        path = ("vertex", "persistent_resource")
        resources = team.vertex.persistent_resources
        yield _Reference(path, job.vertex.persistent_resource, "a persistent resource", resources)
    if job.vertex and job.tensorboard:
        kind = "a region with a TensorBoard (vertex.tensorboards)"
        yield _Reference(("vertex", "region"), job.vertex.region, kind, team.vertex.tensorboards)


def _instances(job: Job, stack: Stack, environment: Environment, source: Source) -> Iterator[Finding]:
    """Find mounted directories on a Filestore instance that the environment lacks, which its stack has a finding of."""
    assert stack.team is not None  # the stack is a team's
    directories = stack.team.directories
    for index, mount in enumerate(job.mounts):
        name = mount.source.directory
        if name in directories and directories[name].filestore not in environment.filestore:
            message = f"{name} is on Filestore instance {directories[name].filestore!r}, which {job.environment} lacks"
            cause = stack.at(("directories", name, "filestore"))
            yield source.finding(MODEL_RULE, ("mounts", index, "source", "directory"), message, rests_on=(cause,))


def _shares(
    gke: GkeTarget, stack: Stack, environment: Environment, source: Source, workspace: Workspace
) -> Iterator[Finding]:
    """Find a cluster or flavor that the environment lacks or the team has no share of."""
    cluster = gke.cluster
    flavor = gke.flavor
    team = stack.team
    assert team is not None  # the stack is a team's
    shares = stack.at(("shares",))
    clusters = team.shares.keys() & environment.clusters.keys()
    if cluster not in clusters:
        kind = f"a cluster of {team.environment} in which team {team.name} has a share"
        causes: tuple[Place, ...] = (stack.at(("shares", cluster)), shares)
        yield _dangling(source, ("gke", "cluster"), cluster, kind, clusters, rests_on=causes)
        return
    if environment.clusters[cluster].software.jobset == "none":
        message = f"has no JobSet (software.jobset of {team.environment} is none), which jobs on GKE run as"
        able = [name for name in clusters if environment.clusters[name].software.jobset != "none"]
        yield source.finding(MODEL_RULE, ("gke", "cluster"), message, allowed=enumeration(able) or "vertex")
    if gke.pool is not None:
        without_chips = environment.clusters[cluster].cpu_pools
        if gke.pool not in without_chips:
            yield _dangling(source, ("gke", "pool"), gke.pool, f"one of cpu_pools of cluster {cluster}", without_chips)
        return
    declared = workspace.flavors(team.environment, cluster)
    flavors = team.shares[cluster].keys() & declared.keys()
    if flavor is not None and flavor not in flavors:
        kind = f"a flavor in team {team.name}'s shares of {cluster}"
        pools = pools_meant(workspace.stacks[team.environment], cluster, flavor, declared)
        causes = (*pools[:-1], stack.at(("shares", cluster, flavor)), pools[-1], shares)
        finding = _dangling(source, ("gke", "flavor"), flavor, kind, flavors, rests_on=causes)
        elsewhere = sorted(name for name in clusters if flavor in team.shares[name])
        if elsewhere:
            message = f"{finding.message}, but in {enumeration(elsewhere)}"
            finding = dataclasses.replace(finding, message=message, nearest=f"cluster: {elsewhere[0]}")
        yield of_pool(finding, flavor, (declared[name] for name in sorted(flavors)))


def _dangling(
    source: Source, path: Path, value: str, kind: str, names: Collection[str], *, rests_on: tuple[Place, ...] = ()
) -> Finding:
    only_name = next(iter(names)) if len(names) == 1 else None
    return source.finding(
        MODEL_RULE,
        path,
        f"{value!r} is not {kind}",
        allowed=enumeration(names) or "none is declared",
        nearest=find_nearest(value, names) or only_name,
        rests_on=rests_on,
    )


def _not_counted(workspace: Workspace) -> str:
    count = workspace.uncounted
    return f"; stack files that are rejected or unreadable, {count} of them, are not counted" if count else ""
