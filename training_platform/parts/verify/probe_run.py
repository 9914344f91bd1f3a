"""A run of probes: the platform that they ask, the ledger that it goes on with, and its order."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from training_platform.clients.failures import ApiError
from training_platform.clients.google_api import GoogleApi
from training_platform.clients.kubernetes_api import ClusterApi
from training_platform.clients.project_contents import Contents, project_api, read_contents
from training_platform.config.reading.finding import UserError
from training_platform.config.workspace import Workspace, read_workspace
from training_platform.parts.adopt.cluster_objects import reach_clusters
from training_platform.parts.verify.object_record import FOLDER, Maker, ObjectRecord
from training_platform.parts.verify.probes import Answer, Asked, Need, Platform, Probe, ask, digest
from training_platform.quota.demand import workspace_demand
from training_platform.quota.ledger import project_ledgers
from training_platform.quota.snapshot import Snapshots
from training_platform.resources.resource_types import CLUSTER
from training_platform.resources.stack_plan import plannable, stack_plan
from training_platform.rules.rights import promises_of

GOOGLE, LOCAL = "Google Cloud", "a local cloud"
"""Where a run was: a local cloud proves nothing about Google Cloud."""
_PACKAGES: Final = ("training-platform", "pulumi", "pulumi-gcp")
Progress = Callable[[str, int, int], None]


def stack_names(workspace: Workspace, environment: str) -> list[str]:
    """Return an environment and its teams. Raises UserError for another name, or a file with errors."""
    environments = [stack.name for stack, _ in workspace.environments()]
    if environment not in environments:
        raise UserError(f"{environment!r} is not an environment: {', '.join(environments) or 'there is none'}.")
    names = [environment, *(stack.name for stack, team, _ in workspace.teams() if team.environment == environment)]
    wrong = [one for name in names for one in workspace.stacks[name].findings if one.severity == "error"]
    if wrong:
        raise UserError("\n".join([*map(str, wrong), "The stack files have errors: correct them first."]))
    return names


def folder_of(root: Path, environment: str) -> Path:
    """Return where the ledgers of an environment are."""
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
    """Return the first record of a ledger: what the run is about, with a digest of options, which can be addresses."""
    return {
        "began": datetime.now(UTC).isoformat(timespec="seconds"),
        "environment": environment,
        "project": project,
        "where": LOCAL if local_cloud else GOOGLE,
        "version": version("training-platform"),
        "versions": _installed_versions(),
        "stacks": stacks_digest(root),
        "probes": [one.name for one in probes],
        "options": digest(options),
    }


def _installed_versions() -> dict[str, str]:
    """Return the versions of what is installed here: a machine that only asks has no Pulumi."""
    versions = {}
    for name in _PACKAGES:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return versions


def read_platform(
    root: Path,
    environment: str,
    ledger: ObjectRecord,
    *,
    kubeconfig: str | None,
    local_cloud: str | None,
    options: Mapping[Need, str],
    seconds: float,
    confirm: Callable[[str], str] | None = None,
) -> Platform:
    """Plan the stacks and read the project. Raises UserError, GoogleError where it cannot be read at all."""
    workspace = read_workspace(root)
    names = stack_names(workspace, environment)
    spec = workspace.stacks[environment].environment
    if spec is None:  # stack_names has refused it
        raise UserError(f"{environment} is not an environment.")
    plans = [stack_plan(stack, workspace) for stack in plannable(workspace, names)]
    contents = clusters_of(
        environment, read_contents(spec.project, _regions(workspace, names), local_cloud), kubeconfig
    )
    charges = project_ledgers(workspace_demand(workspace), Snapshots())
    lines = charges[spec.project].lines if spec.project in charges else ()
    return Platform(
        name=environment,
        environment=spec,
        resources=[planned for plan in plans if plan for planned in plan.planned()],
        contents=contents,
        maker=maker_of(ledger, contents, seconds, local_cloud),
        demand={line.key: line.used for line in lines},
        promises=[promise for name in names for promise in promises_of(workspace.stacks[name], workspace)],
        local_cloud=local_cloud,
        options=options,
        seconds=seconds,
        confirm=confirm,
    )


def maker_of(ledger: ObjectRecord, contents: Contents, seconds: float, local_cloud: str | None) -> Maker:
    """Return the maker of a ledger, which asks the servers of a project and of its clusters."""

    def google(api: str, region: str) -> GoogleApi:
        return project_api(api, contents.project, region, local_cloud, read_only=False)

    return Maker(ledger, contents.clusters, seconds, google)


def clusters_of(environment: str, contents: Contents, kubeconfig: str | None) -> Contents:
    """Return contents with the API servers of the environment's clusters; one without a context is left out."""
    if not kubeconfig:
        return contents
    apis: dict[str, ClusterApi] = {}
    for path in contents.of(CLUSTER):
        one = replace(contents, bodies={CLUSTER: {path: contents.of(CLUSTER)[path]}})
        try:
            apis |= reach_clusters(environment, one, kubeconfig)
        except ApiError as error:
            contents.unread[f"{path} kubeconfig"] = str(error)
    return replace(contents, clusters=apis)


def _regions(workspace: Workspace, names: Sequence[str]) -> set[str]:
    teams = [workspace.stacks[name].team for name in names]
    return {row.region for team in teams if team for row in team.vertex.persistent_resources.values()}


def go_on(chosen: Sequence[Probe], platform: Platform, ledger: ObjectRecord, progress: Progress) -> dict[str, Asked]:
    """Run the probes that the ledger has no answers of, and write each answer down; objects go when their probe ends.

    An interrupt deletes the objects of its probe, whose answers are left out; the next start goes on there, and deletes
    what a second interrupt left.
    """
    asked = {
        name: Asked(name, tuple(Answer(*row) for row in record["answers"])) for name, record in ledger.done.items()
    }
    for number, one in enumerate(chosen):
        progress(one.name, number, len(chosen))
        if one.name in asked:
            continue
        began = time.monotonic()
        try:
            asked[one.name] = ask(one, platform, asked)
        finally:
            platform.maker.remove()
        answers = [list(answer) for answer in asked[one.name].answers]
        ledger.write({"done": one.name, "answers": answers, "seconds": round(time.monotonic() - began, 1)})
    ledger.write({"ended": datetime.now(UTC).isoformat(timespec="seconds")})
    return asked
