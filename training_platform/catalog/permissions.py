"""IAM permissions: those that Google's methods require, and those that its predefined roles contain.

``permissions.yaml`` contains the rows, but only for the methods that the platform's principals call and the roles that
they are granted. ``python -m tools.permissions`` generates it from public dumps, and from rows written by hand with
their reasons.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from training_platform.catalog.reading import table
from training_platform.catalog.types import Json


class Need(NamedTuple):
    """A permission that a method requires.

    - ``field`` is the field of the request that names the resource. It is empty if the URL path names the resource. A
      field that is not set in the request requires no permission.
    - ``agent`` is the name of the Google service agent that needs the permission instead of the caller.
    - ``foreign`` limits the requirement to resources of another project.
    - ``kind`` limits the requirement to resources of one collection, for example ``views``.
    """

    permission: str
    field: str = ""
    agent: str = ""
    foreign: bool = False
    kind: str = ""


class Role(NamedTuple):
    """A predefined role: how many permissions it has, and which of them a method in this file requires."""

    total: int
    permissions: frozenset[str]


class Agent(NamedTuple):
    """A service agent, an account that Google has in each project: its e-mail and the roles that Google grants it.

    The e-mail contains ``{}`` for the project number. Google grants the roles in the project when the API ``of`` is
    enabled there.
    """

    email: str
    of: str
    roles: tuple[str, ...]


@dataclass(frozen=True)
class Permissions:
    """All rows of the file. ``unverified`` contains the methods whose row has only one source."""

    methods: Mapping[str, tuple[Need, ...]]
    unverified: frozenset[str]
    roles: Mapping[str, Role]
    agents: Mapping[str, Agent]


@cache
def permissions() -> Permissions:
    """Return the rows of the file."""
    rows: Json = table(__file__, "permissions.yaml")
    return Permissions(
        methods={method: tuple(map(_need, needs)) for method, needs in (rows["methods"] | rows["unverified"]).items()},
        unverified=frozenset(rows["unverified"]),
        roles={name: Role(row["count"], frozenset(_held(row["holds"]))) for name, row in rows["roles"].items()},
        agents={
            name: Agent(row["email"], row["of"], roles=tuple(row["roles"])) for name, row in rows["agents"].items()
        },
    )


def permissions_of(role: str) -> frozenset[str]:
    """Return those permissions of a predefined role that a method in this file requires; empty for an unknown role."""
    predefined = permissions().roles.get(role)
    return predefined.permissions if predefined else frozenset()


def _need(row: str | Json) -> Need:
    return Need(row) if isinstance(row, str) else Need(**row)


def _held(collections: Mapping[str, str]) -> Iterator[str]:
    """Yield the permissions of a role, which the file writes as ``storage.objects: get list``."""
    for collection, verbs in collections.items():
        yield from (f"{collection}.{verb}" for verb in verbs.split())
