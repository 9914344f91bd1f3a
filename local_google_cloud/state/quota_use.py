"""Projects and their quotas: what resources use of each limit, and the refusal of a resource that exceeds one.

Charges are in a resource's ``meta``, so any deletion releases them. Arithmetic and limits are those of ``quota/``; a
limit that the snapshot does not list is not enforced. VMs of a machine type outside the catalogue are refused, since
their charge is unknown.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Literal

from local_google_cloud.requests.errors import Refusal
from local_google_cloud.state.store import Record, Store
from training_platform.catalog import MACHINE_TYPES
from training_platform.catalog.nearest import find_nearest
from training_platform.quota.charges import QuotaKey
from training_platform.quota.demand import demand_of_views
from training_platform.quota.snapshot import Snapshot
from training_platform.rules import View
from training_platform.views.adapters import views_of_rest
from training_platform.views.node_pool import NodePoolView
from training_platform.views.vertex import PersistentPoolView

NodeQuota = Literal["current", "maximum"]
# GKE's default machine type. Shared-core machines are not in the catalogue; this one is charged like the type beside it
# (Compute docs, general-purpose machines: 2 vCPUs; general knowledge).
_CHARGED_AS: Final = {"e2-medium": "e2-standard-2"}


class Projects:
    """Projects by id and by number, with the quota limits of their snapshots."""

    def __init__(self, snapshots: Mapping[str, Snapshot], more: Iterable[str] = ()) -> None:
        self.snapshots = dict(snapshots)
        self._ids = {*snapshots, *more}

    def add(self, project: str) -> None:
        """Add a project."""
        self._ids.add(project)

    def ids(self) -> list[str]:
        """Return every project id."""
        return sorted(self._ids)

    def resolve(self, text: str) -> str:
        """Return a project's id, given its id or number. Raises Refusal; like Google's, it does not say why."""
        for project in self._ids:
            if text in (project, number(project)):
                return project
        raise Refusal(403, f"Permission denied on resource project {text} (or it may not exist).")


def number(project: str) -> str:
    """Return a project's number, which its id determines."""
    return str(100_000_000_000 + zlib.crc32(project.encode()))


class QuotaUse:
    """The quota that each project's resources use, from the charges in their ``meta``."""

    def __init__(self, projects: Projects, store: Store) -> None:
        self._projects = projects
        self._store = store

    def charge(self, service: str, record: Record, nodes: NodeQuota) -> None:
        """Charge a created or changed resource; ``nodes`` selects the VMs of a pool that are charged.

        Raises Refusal in the words of its API if it exceeds a limit.
        """
        collection = f"{service}.{record.name.split('/')[-2]}"
        views = views_of_rest(collection, record.body, project=record.project, name=record.name.partition("/")[2])
        views = [_with_known_machine(view) for view in views]
        if nodes == "current":
            views = [_with_current_nodes(view, record.meta.get("nodes")) for view in views]
        charges, _ = demand_of_views(views, record.project)
        self.hold(service, record, [(self.charged_key(row.keys), row.amount) for row in charges if row.amount])

    def hold(self, service: str, record: Record, charges: Iterable[tuple[QuotaKey, float]]) -> None:
        """Replace a resource's charges. Raises Refusal if they exceed a limit."""
        new_charges = _sums(charges)
        used = self.used(record.project, without=record.name)
        for key, amount in new_charges.items():
            limit = self.limit(key)
            if limit is not None and used[key] + amount > limit:
                raise _exceeded(service, key, amount, limit, used[key])
        record.meta["charges"] = [[list(key), amount] for key, amount in new_charges.items()]

    def used(self, project: str, *, without: str = "") -> dict[QuotaKey, float]:
        """Return the use of a project's resources, by quota key."""
        records = (record for record in self._store.all(project) if record.name != without)
        return _sums(charge for record in records for charge in charges_of(record.meta.get("charges", ())))

    def limit(self, key: QuotaKey) -> float | None:
        """Return a limit, None if it is unknown."""
        snapshot = self._projects.snapshots.get(key.project)
        return snapshot.limit(key) if snapshot else None

    def charged_key(self, keys: tuple[QuotaKey, ...]) -> QuotaKey:
        """Return the key that an amount is charged to: the first with a limit, else the first."""
        return next((key for key in keys if self.limit(key)), keys[0])


def charges_of(rows: Iterable[Any]) -> Iterator[tuple[QuotaKey, float]]:
    """Parse the charges in a resource's ``meta``."""
    for (project, service, quota_id, location, dimensions), amount in rows:
        yield QuotaKey(project, service, quota_id, location, tuple((name, value) for name, value in dimensions)), amount


def _metric(quota_id: str) -> str:
    """Return the name of a quota id in errors: ``N2_CPUS``."""
    return quota_id.partition("-per-project")[0].replace("-", "_").upper()


def _with_known_machine(view: View) -> View:
    """Return a view with a machine type that can be charged. Raises Refusal for an unknown machine type.

    Surge VMs are not charged: an upgrade takes them only while it runs.
    """
    if not isinstance(view, (NodePoolView, PersistentPoolView)):
        return view
    if isinstance(view, NodePoolView):
        view = view.replaced(upgrades=True, upgrade_strategy="SURGE", max_surge=0)
    name = view.machine_type or ""
    if name in _CHARGED_AS:
        return view.replaced(machine_type=_CHARGED_AS[name])
    if name not in MACHINE_TYPES:
        nearest = find_nearest(name, MACHINE_TYPES)
        hint = f"; nearest: '{nearest}'" if nearest else ""
        message = f"Machine type with name '{name}' does not exist (the local cloud has those of the catalogue{hint})."
        raise Refusal(400, message)
    return view


def _with_current_nodes(view: View, nodes: int | None) -> View:
    """Return a view with a pool's current VMs as its maximum; ``nodes`` is a node pool's current size."""
    if isinstance(view, PersistentPoolView):
        return view.replaced(max_replicas=None)
    if not isinstance(view, NodePoolView):
        return view
    now = (view.initial_nodes or 0) * view.zone_count if nodes is None else nodes
    return view.replaced(total_max_nodes=now, max_nodes=now, node_count=0, initial_nodes=0)


def _sums(charges: Iterable[tuple[QuotaKey, float]]) -> dict[QuotaKey, float]:
    total: dict[QuotaKey, float] = defaultdict(float)
    for key, amount in charges:
        total[key] += amount
    return total


def _exceeded(service: str, key: QuotaKey, requested: float, limit: float, used: float) -> Refusal:
    """Return the error in the API's words. Sources: reports of users that quote them, general knowledge."""
    left = max(0.0, limit - used)
    place = f" in region {key.location}" if key.location else " globally"
    if service == "container":
        message = (
            f'Insufficient regional quota to satisfy request: resource "{_metric(key.quota_id)}": request requires '
            f"'{requested:.1f}' and is short '{requested - left:.1f}'. project has a quota of '{limit:.1f}' with "
            f"'{left:.1f}' available{place}."
        )
        return Refusal(403, message, reason="quotaExceeded")
    if service == "compute":
        message = f"Quota '{_metric(key.quota_id)}' exceeded.  Limit: {limit:.1f}{place}."
        return Refusal(403, message, reason="quotaExceeded")
    if service == "aiplatform":
        return Refusal(429, f"The following quotas are exceeded: {key.quota_id}")
    return Refusal(429, f"Quota limit '{key.quota_id}' has been exceeded. Limit: {limit:.0f}{place}.")
