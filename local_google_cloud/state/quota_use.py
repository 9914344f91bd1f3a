"""The quota that resources use, and the refusal of a resource that would exceed a limit.

The charges of a resource are stored in its ``meta``, so deleting the resource releases them. The ``Judge`` provides the
charges and the limits. A limit that it does not provide is not enforced.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from local_google_cloud.requests.errors import Refusal
from local_google_cloud.state.questions import Judge, Quota
from local_google_cloud.state.store import Record, Store


class QuotaUse:
    """The quota that the resources of each project use, according to the charges in their ``meta``."""

    def __init__(self, judge: Judge, store: Store) -> None:
        self._judge = judge
        self._store = store

    def charge(self, record: Record) -> None:
        """Charge a created or changed resource. Raises Refusal with its API's message if a limit is exceeded."""
        charges = self._judge.charges(
            record.kind, record.body, project=record.project, name=record.path, nodes=record.meta.get("nodes")
        )
        self.hold(record, charges)

    def hold(self, record: Record, charges: Iterable[tuple[Quota, float]]) -> None:
        """Replace a resource's charges. Raises Refusal if they exceed a limit."""
        new_charges = _sums(charges)
        used = self.used(record.project, without=record.name)
        for quota, amount in new_charges.items():
            limit = self._judge.limit(quota)
            if limit is not None and used[quota] + amount > limit:
                raise _exceeded(record.kind.partition(".")[0], quota, amount, limit, used[quota])
        record.meta["charges"] = [[list(quota), amount] for quota, amount in new_charges.items()]

    def used(self, project: str, *, without: str = "") -> dict[Quota, float]:
        """Return the amounts that a project's resources use, keyed by quota."""
        records = (record for record in self._store.all(project) if record.name != without)
        return _sums(charge for record in records for charge in charges_of(record.meta.get("charges", ())))


def charges_of(rows: Iterable[Any]) -> Iterator[tuple[Quota, float]]:
    """Parse the charges in a resource's ``meta``."""
    for (project, service, quota_id, location, dimensions), amount in rows:
        yield (
            Quota(
                project,
                service,
                quota_id=quota_id,
                location=location,
                dimensions=tuple((name, value) for name, value in dimensions),
            ),
            amount,
        )


def _sums(charges: Iterable[tuple[Quota, float]]) -> dict[Quota, float]:
    total: dict[Quota, float] = defaultdict(float)
    for quota, amount in charges:
        total[quota] += amount
    return total


def _metric(quota_id: str) -> str:
    """Return the name that error messages use for a quota, such as ``N2_CPUS``."""
    return quota_id.partition("-per-project")[0].replace("-", "_").upper()


def _exceeded(service: str, quota: Quota, requested: float, limit: float, used: float) -> Refusal:
    """Return the error with the API's message. Sources: users' reports that quote such messages, general knowledge."""
    available = max(0.0, limit - used)
    place = f" in region {quota.location}" if quota.location else " globally"
    if service == "container":
        message = (
            f'Insufficient regional quota to satisfy request: resource "{_metric(quota.quota_id)}": request requires '
            f"'{requested:.1f}' and is short '{requested - available:.1f}'. project has a quota of '{limit:.1f}' with "
            f"'{available:.1f}' available{place}."
        )
        return Refusal(403, message, reason="quotaExceeded")
    if service == "compute":
        message = f"Quota '{_metric(quota.quota_id)}' exceeded.  Limit: {limit:.1f}{place}."
        return Refusal(403, message, reason="quotaExceeded")
    if service == "aiplatform":
        return Refusal(429, f"The following quotas are exceeded: {quota.quota_id}")
    return Refusal(429, f"Quota limit '{quota.quota_id}' has been exceeded. Limit: {limit:.0f}{place}.")
