"""A team's section from resources of its environment's project, and from Kueue's objects, if they were read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from training_platform.catalog import MACHINE_TYPES
from training_platform.catalog.attachments import vertex_gpu
from training_platform.catalog.types import Json
from training_platform.clients.project_contents import POLICY, Contents
from training_platform.config.model.team import FIRST_POOL, BucketSpec, PersistentResourceSpec, Team
from training_platform.config.reading.section import Member, fits
from training_platform.parts.adopt.cluster_objects import Queues, queue_fields
from training_platform.parts.adopt.sections.environment import AdoptedSection, foreign_bucket
from training_platform.parts.adopt.sections.values import Inexpressible, at, labels_of, own_labels, shortest, whole
from training_platform.resources import resource_types
from training_platform.resources.scope import account_id

_USER = "roles/iam.serviceAccountUser"
_DAYS = {"age"}  # the only condition of a rule that a section can express


def team_names(stack: str, contents: Contents, queues: Queues) -> list[str]:
    """Return the teams of an environment: those of its labels, of its accounts for jobs, and of its queues."""
    labelled = (resource_types.BUCKET, resource_types.PERSISTENT_RESOURCE, resource_types.TENSORBOARD)
    all_labels = [body.get("labels") or {} for kind in labelled for body in contents.of(kind).values()]
    accounts = (path.rpartition("/")[2].partition("@")[0] for path in contents.of(resource_types.SERVICE_ACCOUNT))
    jobs = (re.fullmatch(rf"{re.escape(stack)}-(.+)-jobs", account) for account in accounts)
    of_labels = {row["team"] for row in all_labels if row.get("environment") == stack and row.get("team")}
    return sorted({*of_labels, *(match[1] for match in jobs if match), *queues.teams()})


class Platform(NamedTuple):
    """The sources of team sections: the environment's stack, the teams' names, the project, and Kueue's objects."""

    stack: str
    teams: Sequence[str]
    contents: Contents
    queues: Queues


def team_section(name: str, platform: Platform, common: Mapping[str, str]) -> AdoptedSection:
    """Return a team's section; ``common`` are the environment's labels. Raises Inexpressible without members."""
    adopted = AdoptedSection()
    stack, teams, contents, queues = platform
    owned = _Owned(stack, name, teams, contents)
    buckets = dict(_sections(owned.of(resource_types.BUCKET, f"{contents.project}-"), adopted, _bucket))
    resources = dict(_sections(owned.of(resource_types.PERSISTENT_RESOURCE), adopted, _persistent_resource))
    labels = [labels_of(body.get("labels")) for body in owned.bodies]
    account = f"/serviceAccounts/{account_id(stack, name, 'jobs')}@"
    policies = (policy for path, policy in contents.of(POLICY).items() if account in path)
    users = [row["members"] for policy in policies for row in policy.get("bindings", ()) if row["role"] == _USER]
    boards = [
        (path.split("/")[3], body.get("displayName")) for path, body in contents.of(resource_types.TENSORBOARD).items()
    ]
    tensorboards = sorted({region for region, title in boards if title == f"{stack}-{name}-{region}"})
    fields = {
        "environment": stack,
        "name": name,
        "labels": {key: value for key, value in own_labels(labels).items() if common.get(key) != value},
        "members": sorted({member for members in users for member in members if fits(Member, member)}),
        **queue_fields(name, queues),
        "buckets": buckets,
        "secrets": sorted(key for key, _, _ in owned.of(resource_types.SECRET)),
        "vertex": {"persistent_resources": resources, "tensorboards": tensorboards},
    }
    if not fields["members"]:
        raise Inexpressible(f"nobody may act as {account_id(stack, name, 'jobs')}, and a team needs members")
    adopted.section = shortest(Team, fields)
    return adopted


def without_team(stack: str, teams: Sequence[str], contents: Contents) -> Iterator[tuple[str, str]]:
    """Yield the buckets and persistent resources whose names no team's stack would give, with the reason."""
    forms = {resource_types.BUCKET: f"{contents.project}-{stack}-", resource_types.PERSISTENT_RESOURCE: f"{stack}-"}
    for kind, start in forms.items():
        for path, body in contents.of(kind).items():
            name = path.rpartition("/")[2]
            if _owner(name, start, teams) is None:
                named = f"name is {name}, and a team's is {start}TEAM-KEY"
                yield path, foreign_bucket(start, name, body) if kind == resource_types.BUCKET else named


class _Owned:
    """A team's resources by its name; ``bodies`` collects those that were read."""

    def __init__(self, stack: str, name: str, teams: Sequence[str], contents: Contents) -> None:
        self._start = f"{stack}-"
        self._name = name
        self._teams = teams
        self._contents = contents
        self.bodies: list[Json] = []

    def of(self, kind: str, before: str = "") -> Iterator[tuple[str, str, Json]]:
        """Yield the key, path and body of each resource of a kind; ``before`` is the prefix of its name."""
        start = before + self._start
        for path, body in sorted(self._contents.of(kind).items()):
            last = path.rpartition("/")[2]
            if _owner(last, start, self._teams) == self._name:
                self.bodies.append(body)
                yield last.removeprefix(f"{start}{self._name}-"), path, body


def _owner(name: str, start: str, teams: Sequence[str]) -> str | None:
    """Return the team whose name is in a resource's name: of vision and vision-x, the longer."""
    return max((team for team in teams if name.startswith(f"{start}{team}-")), key=len, default=None)


def _sections(rows: Any, adopted: AdoptedSection, section: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    for key, path, body in rows:
        try:
            yield key, section(path, body)
        except Inexpressible as error:
            adopted.left_out[path] = str(error)


def _bucket(_path: str, body: Json) -> dict[str, Any]:
    rules = at(body, "lifecycle") or {}
    ages = [
        whole(rule, "condition.age")
        for rule in rules.get("rule", ())
        if at(rule, "action.type") == "Delete" and set(rule.get("condition", {})) == _DAYS
    ]
    section = {
        "location": str(body["location"]).lower(),
        "storage_class": body.get("storageClass"),
        "delete_after_days": min(ages, default=None),
        "versioning": bool(at(body, "versioning.enabled")),
        "hierarchical_namespace": bool(at(body, "hierarchicalNamespace.enabled")),
        "access_logs": at(body, "logging.logBucket"),
    }
    return shortest(BucketSpec, section)


def _persistent_resource(path: str, body: Json) -> dict[str, Any]:
    pools = {pool.get("id") or FIRST_POOL: _pool(pool) for pool in body.get("resourcePools") or ()}
    if not pools:
        raise Inexpressible("it has no pools")
    if at(body, "resourceRuntimeSpec.raySpec"):
        raise Inexpressible("it runs Ray, for which the provider has no field")
    first = FIRST_POOL if FIRST_POOL in pools else next(iter(pools))
    section = {
        "region": path.split("/")[3],
        **pools.pop(first),
        "more_pools": pools,
        "network_attachment": at(body, "pscInterfaceConfig.networkAttachment"),
    }
    return shortest(PersistentResourceSpec, section)


def _pool(body: Json) -> dict[str, Any]:
    most = whole(body, "autoscalingSpec.maxReplicaCount") or None
    disk = {"type": at(body, "diskSpec.bootDiskType"), "size_gb": whole(body, "diskSpec.bootDiskSizeGb", 100)}
    machine = at(body, "machineSpec") or {}
    machine_type = MACHINE_TYPES.get(machine.get("machineType", ""))
    gpu = vertex_gpu(machine.get("acceleratorType"))
    attached = {}
    if gpu is not None and machine_type is not None and machine_type.kind == "cpu":  # other types include their GPUs
        attached = {"accelerator": gpu.name, "accelerator_count": machine.get("acceleratorCount", 1)}
    return {
        "machine_type": machine.get("machineType"),
        **attached,
        "replicas": whole(body, "autoscalingSpec.minReplicaCount") if most else whole(body, "replicaCount", 1),
        "max_replicas": most,
        "boot_disk": disk,
    }
