"""IAM permissions: those that Google's methods require, and those of its predefined roles.

``permissions.yaml`` beside this file has the rows, restricted to what the platform's principals call and to the roles
that they are granted; ``python -m tools.permissions`` writes it from public dumps, with rows by hand and their reasons.
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

    ``field`` is that of the request which names the resource; it is empty for the resource of the path, and a field
    that is not set requires nothing. ``agent`` is the account of Google's that needs the permission in place of the
    caller, by its name. With ``foreign`` only a resource of another project requires it; with ``kind`` only one of that
    collection, ``views``.
    """

    permission: str
    field: str = ""
    agent: str = ""
    foreign: bool = False
    kind: str = ""


class Role(NamedTuple):
    """A predefined role: the number of its permissions, and those that some method here requires."""

    total: int
    permissions: frozenset[str]


class Agent(NamedTuple):
    """A Google account in each project: its e-mail with ``{}`` for the project number, and Google's grants.

    Google grants the roles in the project once the API ``of`` is enabled there.
    """

    email: str
    of: str
    roles: tuple[str, ...]


@dataclass(frozen=True)
class Permissions:
    """Every row of the file. ``unverified`` are methods whose row has a single source."""

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
    """Return the permissions of a predefined role that some method here requires; none for an unknown role."""
    predefined = permissions().roles.get(role)
    return predefined.permissions if predefined else frozenset()


def _need(row: str | Json) -> Need:
    return Need(row) if isinstance(row, str) else Need(**row)


def _held(collections: Mapping[str, str]) -> Iterator[str]:
    """Yield the permissions of a role, from the form ``storage.objects: get list``."""
    for collection, verbs in collections.items():
        yield from (f"{collection}.{verb}" for verb in verbs.split())
