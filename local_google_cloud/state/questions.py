"""What a local cloud asks of whoever starts it: the ``Judge``, and the data of its questions and answers."""

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
    """One limit of one project: service and quota id as the Cloud Quotas API spells them, location, other dimensions.

    ``location`` is a region or a zone, "" for a limit of the whole project.
    """

    project: str
    service: str
    quota_id: str
    location: str = ""
    dimensions: tuple[tuple[str, str], ...] = ()


class QuotaLimit(NamedTuple):
    """A limit of a quota id; ``location`` is None for all locations. -1 is unlimited."""

    location: str | None
    dimensions: tuple[tuple[str, str], ...]
    amount: int


@dataclass(frozen=True, kw_only=True)
class TrainingVms:
    """Identical VMs of a training job, as its worker pool names them; "" for what it leaves out."""

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
    """A role of one member on one resource; ``permissions`` are those of a custom role, None for a predefined one."""

    member: str
    role: str
    resource: str
    condition: str = ""
    permissions: Collection[str] | None = None


@dataclass(frozen=True, kw_only=True)
class Policies:
    """The policies in a cloud, and what their evaluation depends on."""

    grants: Sequence[Grant]
    groups: Mapping[str, Collection[str]]  # members by the group's e-mail address
    numbers: Mapping[str, str]  # of projects by id
    buckets: Mapping[str, str]  # projects by bucket
    enabled: Collection[tuple[str, str]]  # projects with their enabled APIs
    time: datetime


class Access(NamedTuple):
    """What IAM sees of a request: the method, the resource in the path, and its parameters with its body.

    ``modified_roles`` are the roles that a change of a policy grants or revokes.
    """

    service: str
    method: str
    resource: str
    request: Json
    modified_roles: frozenset[str] = frozenset()


class Missing(NamedTuple):
    """A permission that a request needs and ``member`` lacks; ``of_agent`` if the member is an account of Google's."""

    member: str
    permission: str
    resource: str
    of_agent: bool = False


class Judge:
    """What Google decides by more than its documents; this one refuses, charges and limits nothing.

    A method may raise Refusal. Names of resources are paths below the API's version.
    """

    def findings(self, collection: str, body: Json, *, project: str, name: str) -> list[Finding]:
        """Return the errors in the body of a resource of a collection, ``container.nodePools``."""
        return []

    def charges(
        self, collection: str, body: Json, *, project: str, name: str, nodes: int | None
    ) -> Iterable[tuple[Quota, float]]:
        """Yield what a resource uses of each quota; ``nodes`` is the current size of a node pool."""
        return ()

    def training_charges(self, vms: TrainingVms) -> Iterable[tuple[Quota, float]]:
        """Yield what the VMs of a training job use of each quota."""
        return ()

    def limit(self, quota: Quota) -> float | None:
        """Return the limit of a quota, None if it is unknown."""
        return None

    def limits(self, project: str, service: str) -> Mapping[str, Sequence[QuotaLimit]]:
        """Return the limits of a service's quotas by id, as the Cloud Quotas API shows them."""
        return {}

    def lacking(self, member: str, access: Access, policies: Policies) -> Iterable[Missing]:
        """Yield the permissions that a member's request needs, but nobody granted."""
        return ()

    def held(self, member: str, permissions: Collection[str], resource: str, policies: Policies) -> list[str]:
        """Return which of some permissions a member has on a resource."""
        return list(permissions)

    def project_number(self, project: str) -> str:
        """Return a project's number; here its id determines it."""
        return str(100_000_000_000 + zlib.crc32(project.encode()))
