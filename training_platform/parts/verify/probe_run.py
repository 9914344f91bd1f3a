"""A run of probes: the platform that they test, and the record that continues an interrupted run."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from training_platform.catalog.types import Json
from training_platform.clients.failures import ApiError
from training_platform.clients.google_api import GoogleApi, GoogleError
from training_platform.clients.kubernetes_api import ClusterApi
from training_platform.clients.project_contents import Contents, project_api, read_contents
from training_platform.config.reading.finding import UserError
from training_platform.config.workspace import Workspace, read_workspace
from training_platform.parts.adopt.cluster_objects import reach_clusters
from training_platform.parts.verify.object_record import FOLDER, Maker, ObjectRecord, get_resource
from training_platform.parts.verify.probes import Answer, Platform, Probe, ProbeNeed, ProbeResult, digest, run_probe
from training_platform.quota.demand import workspace_demand
from training_platform.quota.ledger import project_ledgers
from training_platform.quota.snapshot import Snapshots
from training_platform.resources.gke import cluster_identifier
from training_platform.resources.resource_types import CLUSTER, LUSTRE, RESOURCE_TYPES
from training_platform.resources.stack_plan import plannable, stack_plan
from training_platform.resources.stack_resource import StackResource
from training_platform.rules.rights import NeededRight, needed_rights

GOOGLE: Final = "Google Cloud"
LOCAL: Final = "a local cloud"
"""The place of a run with a local cloud, which proves nothing about Google Cloud."""
_PACKAGES: Final = ("training-platform", "pulumi", "pulumi-gcp")
ProbeProgress = Callable[[str, int, int], None]


def stack_names(workspace: Workspace, environment: str) -> list[str]:
    """Return the names of an environment and its teams. Raises UserError for an unknown name or a file with errors."""
    environments = [stack.name for stack, _ in workspace.environments()]
    if environment not in environments:
        raise UserError(f"{environment!r} is not an environment. Allowed: {', '.join(environments) or 'none'}.")
    teams = [stack.name for stack, team, _ in workspace.teams() if team.environment == environment]
    names = [environment, *teams]
    errors: list[str] = []
    for name in names:
        errors.extend(str(finding) for finding in workspace.stacks[name].findings if finding.severity == "error")
    if errors:
        raise UserError("\n".join([*errors, "The stack files have errors: correct them first."]))
    return names


def folder_of(root: Path, environment: str) -> Path:
    """Return the folder of an environment's records."""
    return root / FOLDER / environment


def stacks_digest(root: Path) -> str:
    """Return a digest of all stack files."""
    paths = sorted((root / "stacks").glob("*.yaml"))
    return digest(path.read_text(encoding="utf-8") for path in paths)


def head_of(
    root: Path,
    environment: str,
    project: str,
    local_cloud: str | None,
    probes: Sequence[Probe],
    *,
    options: Sequence[str] = (),
) -> dict[str, object]:
    """Return the first entry of a run's record. It contains a digest of the options, since they can be addresses."""
    return {
        "began": datetime.now(UTC).isoformat(timespec="seconds"),
        "environment": environment,
        "project": project,
        "where": LOCAL if local_cloud else GOOGLE,
        "version": version("training-platform"),
        "versions": _installed_versions(),
        "stacks": stacks_digest(root),
        "probes": [probe.name for probe in probes],
        "options": digest(options),
    }


def _installed_versions() -> dict[str, str]:
    """Return the versions of the installed packages. Pulumi may be missing on a machine that only reads."""
    versions = {}
    for name in _PACKAGES:
        with suppress(PackageNotFoundError):  # then the report leaves it out
            versions[name] = version(name)
    return versions


def read_platform(
    root: Path,
    environment: str,
    object_record: ObjectRecord,
    *,
    kubeconfig: str | None,
    local_cloud: str | None,
    options: Mapping[ProbeNeed, str],
    seconds: float,
    confirm: Callable[[str], str] | None = None,
) -> Platform:
    """Plan the stacks and read the project. Raises UserError or GoogleError if this is impossible."""
    workspace = read_workspace(root)
    names = stack_names(workspace, environment)
    spec = workspace.stacks[environment].environment
    if spec is None:  # stack_names has refused it
        raise UserError(f"{environment} is not an environment.")
    resources: list[StackResource] = []
    for stack in plannable(workspace, names):
        plan = stack_plan(stack, workspace)
        if plan:
            resources.extend(plan.planned())
    promises: list[NeededRight] = []
    for name in names:
        promises.extend(needed_rights(workspace.stacks[name], workspace))
    project_contents = read_contents(spec.project, _vertex_regions(workspace, names), local_cloud)
    contents = with_clusters(resources, with_lustre(resources, project_contents, local_cloud), kubeconfig)
    ledgers = project_ledgers(workspace_demand(workspace), Snapshots())
    lines = ledgers[spec.project].lines if spec.project in ledgers else ()
    return Platform(
        name=environment,
        environment=spec,
        resources=resources,
        contents=contents,
        maker=maker_of(object_record, contents, seconds, local_cloud),
        demand={line.key: line.used for line in lines},
        promises=promises,
        local_cloud=local_cloud,
        options=options,
        seconds=seconds,
        confirm=confirm,
    )


def maker_of(object_record: ObjectRecord, contents: Contents, seconds: float, local_cloud: str | None) -> Maker:
    """Return a ``Maker`` that creates and deletes objects in a project and in its clusters."""

    def google(api: str, region: str) -> GoogleApi:
        return project_api(api, contents.project, region, local_cloud, read_only=False)

    return Maker(object_record, contents.clusters, seconds=seconds, google=google)


def with_clusters(resources: Sequence[StackResource], contents: Contents, kubeconfig: str | None) -> Contents:
    """Return the contents with the planned clusters that have a context in the kubeconfig, and their API servers."""
    if not kubeconfig:
        return contents
    apis: dict[str, ClusterApi] = {}
    unread = dict(contents.unread)
    for resource in resources:
        if resource.type != CLUSTER:
            continue
        inputs = resource.inputs
        path = cluster_identifier(inputs["project"], inputs["location"], inputs["name"])
        if path not in contents.of(CLUSTER):
            continue
        try:
            apis |= reach_clusters([path], kubeconfig)
        except ApiError as error:
            unread[f"{path} kubeconfig"] = str(error)
    return replace(contents, clusters=apis, unread=unread)


def with_lustre(resources: Sequence[StackResource], contents: Contents, local_cloud: str | None) -> Contents:
    """Return the contents with the planned Managed Lustre instances that exist, since the lists leave them out."""
    instances: dict[str, Json] = {}
    unread = dict(contents.unread)
    for resource in resources:
        if resource.type != LUSTRE:
            continue
        path = str(RESOURCE_TYPES[LUSTRE].import_id).format_map(resource.inputs)
        try:
            body = get_resource(project_api("lustre", contents.project, "", local_cloud), path)
        except GoogleError as error:
            unread[LUSTRE] = str(error)
            continue
        if body:
            instances[path] = body
    return replace(contents, bodies={**contents.bodies, LUSTRE: instances}, unread=unread)


def _vertex_regions(workspace: Workspace, names: Sequence[str]) -> set[str]:
    regions: set[str] = set()
    for name in names:
        team = workspace.stacks[name].team
        if team:
            regions.update(resource.region for resource in team.vertex.persistent_resources.values())
    return regions


def run_probes(
    chosen: Sequence[Probe], platform: Platform, object_record: ObjectRecord, progress: ProbeProgress
) -> dict[str, ProbeResult]:
    """Run the probes that have no recorded results, and record their results. Objects are deleted after their probe.

    An interrupt deletes the objects of its probe and discards its results. The next run continues with this probe, and
    deletes the objects that a second interrupt left.
    """
    results: dict[str, ProbeResult] = {}
    for name, entry in object_record.done.items():
        results[name] = ProbeResult(name, tuple(map(Answer._make, entry["answers"])))
    for number, probe in enumerate(chosen):
        progress(probe.name, number, len(chosen))
        if probe.name in results:
            continue
        began = time.monotonic()
        try:
            results[probe.name] = run_probe(probe, platform, results)
        finally:
            platform.maker.remove()
        answers = [list(answer) for answer in results[probe.name].answers]
        seconds = round(time.monotonic() - began, 1)
        object_record.write({"done": probe.name, "answers": answers, "seconds": seconds})
    object_record.write({"ended": datetime.now(UTC).isoformat(timespec="seconds")})
    return results
