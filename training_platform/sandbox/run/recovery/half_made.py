"""What creates that failed left behind: resources in error, in the state or not, and in the way of the next ``up``.

Pulumi keeps a resource whose create failed late and only updates it the next time, so that a node pool in error stays
one; others it forgets, though the cloud has them. Seen with engine 3.259 and the gcp provider on 2026-11-21.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from training_platform.resources.register import REGISTER
from training_platform.sandbox.run.recovery.pending_creates import Holdings, find_id
from training_platform.sandbox.run.reports.timeline import name_of


class HalfMade(NamedTuple):
    """A resource that is to be made anew; ``in_state`` says whether Pulumi knows it."""

    urn: str
    id: str
    in_state: bool

    @property
    def name(self) -> str:
        """The resource's logical name."""
        return name_of(self.urn)


def half_made(
    resources: Iterable[Mapping[str, Any]], operations: Iterable[Mapping[str, Any]], held: Holdings
) -> list[HalfMade]:
    """Return what is to be deleted and made anew: what is in error, and clusters whose create failed.

    The provider deletes a cluster's first pool only after its create succeeded, so a failed one never becomes what the
    program asked for, even where GKE mends it.
    """
    found = {}
    known = set()
    for each in resources:
        known.add(each["urn"])
        identity = str(each.get("id", ""))
        row = REGISTER.get(each["type"])
        broken = row and row.failed_create and each.get("initErrors")
        if broken or _in_error(held.cloud.get(identity, {})):
            found[each["urn"]] = HalfMade(each["urn"], identity, in_state=True)
    for each in (operation["resource"] for operation in operations if operation["type"] == "creating"):
        identity = str(find_id(each, held) or "")
        if each["urn"] not in known and _in_error(held.cloud.get(identity, {})):
            found[each["urn"]] = HalfMade(each["urn"], identity, in_state=False)
    return list(found.values())


def without_others(held: Holdings, others: Iterable[Mapping[str, Any]]) -> Holdings:
    """Return what the stand-ins hold without what is in other stacks' states: a name that is taken is not ours."""
    theirs = {each.get("id") for each in others}
    return held._replace(cloud={name: body for name, body in held.cloud.items() if name not in theirs})


def _in_error(body: Mapping[str, Any]) -> bool:
    return "ERROR" in (body.get("status"), body.get("state"))
