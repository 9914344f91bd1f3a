"""A local cloud whose policies hold the grants that stacks plan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from local_google_cloud.local_cloud import LocalCloud
from local_google_cloud.state.cloud import CloudSettings
from local_google_cloud.state.questions import Judge
from local_google_cloud.state.store import Record
from training_platform.config.workspace import Workspace, read_workspace
from training_platform.parts.sandbox.google_rules import judged_cloud
from training_platform.quota.snapshot import Snapshot
from training_platform.resources.grants import Grant, plan_grants
from training_platform.resources.rights import PolicyGrant
from training_platform.resources.stack_plan import stack_plan


def planned_grants(workspace: Workspace, projects: Iterable[str]) -> Iterator[PolicyGrant]:
    """Yield the grants that a workspace's stacks plan, as policies hold them."""
    for stack in workspace.stacks.values():
        plan = stack_plan(stack, workspace)
        if plan:
            for grant in plan_grants(plan):
                yield numbered(grant, projects)


def grants_of(folder: Path, projects: Iterable[str]) -> list[PolicyGrant]:
    """Return the grants that the stacks of a folder plan, as policies hold them."""
    return list(planned_grants(read_workspace(folder), projects))


def numbered(grant: Grant, projects: Iterable[str]) -> PolicyGrant:
    """Return a planned grant as a policy holds it, with the project's number for its id in braces."""
    principal = grant.principal
    for project in projects:
        principal = principal.replace(f"{{{project}}}", Judge().project_number(project))
    return PolicyGrant(principal, grant.role, grant.resource, grant.condition, grant.permissions)


def cloud_of(
    grants: Sequence[PolicyGrant],
    projects: Sequence[str],
    buckets: Mapping[str, str],
    snapshots: Mapping[str, Snapshot] | None = None,
) -> LocalCloud:
    """Return a local cloud whose policies hold grants; ``buckets`` exist in it, each with its project."""
    cloud = judged_cloud(projects, snapshots, settings=CloudSettings(check_services=False))
    for bucket, project in buckets.items():
        body = {"id": bucket, "name": bucket, "metageneration": "1"}
        cloud.store.put(Record(name=f"storage/b/{bucket}", project=project, body=body))
    for index, grant in enumerate(grants):
        role = grant.role
        if grant.permissions is not None:
            project = role.split("/")[1]
            role = f"projects/{project}/roles/custom_{index}"
            included: dict[str, Any] = {"name": role, "includedPermissions": sorted(grant.permissions)}
            cloud.store.put(Record(name=f"iam/{role}", project=project, body=included))
        binding: dict[str, Any] = {"role": role, "members": [grant.principal]}
        if grant.condition:
            binding["condition"] = {"expression": grant.condition}
        kind, _, resource_name = grant.resource.partition("/")
        name = f"storage/b/{resource_name}" if kind == "buckets" else f"cloudresourcemanager/{grant.resource}"
        record = cloud.store.get(name) or Record(name=name, project="", body={"createTime": cloud.time()})
        record.meta.setdefault("policy", {"bindings": []})["bindings"].append(binding)
        cloud.store.put(record)
    return cloud
