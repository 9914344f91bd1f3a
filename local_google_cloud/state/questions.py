"""The ``Judge``, which decides for a local cloud what Google would decide, with its parameters and results."""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from training_platform.catalog.types import Json
from training_platform.config.reading.finding import Finding

# Quotas


class Quota(NamedTuple):
    """What identifies a quota in a project: service and quota id as in the Cloud Quotas API, location, dimensions.

    ``location`` is a region or a zone, or "" for a limit of the whole project.
    """

    project: str
    service: str
    quota_id: str
    location: str = ""
    dimensions: tuple[tuple[str, str], ...] = ()


class QuotaLimit(NamedTuple):
    """A limit of the quota with this id. If ``location`` is None, it applies in all locations. -1 means unlimited."""

    location: str | None
    dimensions: tuple[tuple[str, str], ...]
    amount: int


@dataclass(frozen=True, kw_only=True)
class TrainingVms:
    """Identical VMs of a training job, as its worker pool specifies them. A field that the pool leaves out is ""."""

    project: str
    location: str
    strategy: str  # of scheduling: STANDARD, SPOT, FLEX_START
    machine_type: str
    nodes: int
    accelerator_type: str
    accelerator_count: int | None
    disk_type: str
    disk_gb: int


# Rights


class Grant(NamedTuple):
    """A role that a member has on a resource. ``permissions`` lists those of a custom role; None if predefined."""

    member: str
    role: str
    resource: str
    condition: str = ""
    permissions: Collection[str] | None = None


@dataclass(frozen=True, kw_only=True)
class Policies:
    """The IAM policies in a cloud, and the data needed to evaluate them."""

    grants: Sequence[Grant]
    groups: Mapping[str, Collection[str]]  # members by the group's e-mail address
    numbers: Mapping[str, str]  # of projects by id
    buckets: Mapping[str, str]  # projects by bucket
    enabled: Collection[tuple[str, str]]  # projects with their enabled APIs
    time: datetime


class Access(NamedTuple):
    """The parts of a request that IAM checks: the method, the resource in the path, the parameters and the body.

    ``modified_roles`` contains the roles that the request grants or revokes by changing a policy.
    """

    service: str
    method: str
    resource: str
    request: Json
    modified_roles: frozenset[str] = frozenset()


class Missing(NamedTuple):
    """A permission that a request needs but ``member`` lacks. ``of_agent`` means that the member is a service agent."""

    member: str
    permission: str
    resource: str
    of_agent: bool = False


class Judge:
    """Decides what Google checks beyond its discovery documents. This base class refuses, charges and limits nothing.

    A method may raise Refusal. Names of resources are paths without the API's version.
    """

    def findings(self, collection: str, body: Json, *, project: str, name: str) -> list[Finding]:
        """Return the errors in the body of a resource. ``collection`` is, for example, ``container.nodePools``."""
        return []

    def charges(
        self, collection: str, body: Json, *, project: str, name: str, nodes: int | None
    ) -> Iterable[tuple[Quota, float]]:
        """Yield each quota that a resource uses, with the amount. ``nodes`` is the current size of a node pool."""
        return ()

    def training_charges(self, vms: TrainingVms) -> Iterable[tuple[Quota, float]]:
        """Yield each quota that the VMs of a training job use, and how much of it."""
        return ()

    def limit(self, quota: Quota) -> float | None:
        """Return the limit of a quota, or None if it is unknown."""
        return None

    def limits(self, project: str, service: str) -> Mapping[str, Sequence[QuotaLimit]]:
        """Return the limits of a service's quotas, keyed by quota id, as in the Cloud Quotas API."""
        return {}

    def lacking(self, member: str, access: Access, policies: Policies) -> Iterable[Missing]:
        """Yield the permissions that a member's request needs and that no policy grants."""
        return ()

    def held(self, member: str, permissions: Collection[str], resource: str, policies: Policies) -> list[str]:
        """Return those of the given permissions that a member has on a resource."""
        return list(permissions)

    def project_number(self, project: str) -> str:
        """Return the number of a project. This base class derives it from the project's id."""
        return str(100_000_000_000 + zlib.crc32(project.encode()))
