"""What stands between an admitted run on GKE and its VMs: its node pools, and their quota.

Source: container v1 discovery document, NodePool and StatusCondition, read 2026-11-22.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import date
from typing import Any, Final

from training_platform.clients.google_api import GoogleError
from training_platform.config.expansion.pools import ExpandedPool
from training_platform.jobs.gke.gpu_direct import usable_pools
from training_platform.jobs.gke.layout import gke_target
from training_platform.jobs.resolve import ResolvedJob
from training_platform.jobs.runs.state import quoted
from training_platform.quota.charges import vm_usage
from training_platform.quota.demand import pool_vms
from training_platform.quota.keys import shown
from training_platform.quota.snapshot import Snapshot, read_snapshots
from training_platform.resources.gke.node_pool import node_pool_name

Json = Mapping[str, Any]
_ACCELERATORS: Final = ("GPUs", "chips")  # units of quotas
_CALM: Final = ("RUNNING", "RECONCILING")


def vm_sentences(job: ResolvedJob, states: Callable[[], Mapping[str, Json]], today: date) -> Iterator[str]:
    """Yield the pools that a job's VMs come from, what GKE says of them, and the quota that they charge.

    ``states`` reads the cluster's node pools. What nobody may read, or no snapshot has, is left out.
    """
    gke, flavor = gke_target(job)
    pools, project = usable_pools(flavor, gke.nodes or 1), job.environment.project
    snapshot = read_snapshots(job.workspace.root, today).get(project)
    for pool in pools:
        place, unit = pool.zone or pool.region, "VM" if pool.max_nodes == 1 else "VMs"
        yield (
            f"Pool {pool.name} has at most {pool.max_nodes:,} {unit} of {pool.machine.name} in {place}, "
            f"{pool.spec.capacity}{_quota(project, pool, snapshot)}."
        )
    try:
        found = states() if pools else {}
    except GoogleError as error:
        yield f"GKE does not show its node pools: {str(error).rstrip('.')}."
        return
    for pool in pools:
        yield from _troubles(pool, found)


def _quota(project: str, pool: ExpandedPool, snapshot: Snapshot | None) -> str:
    """Return the quota that the pool's accelerators charge, and its limit in the last snapshot."""
    if snapshot is None:
        return ""
    for usage in vm_usage(pool_vms(project, pool)):
        key, *_ = usage.keys
        limit = snapshot.limit(key) if usage.unit in _ACCELERATORS else None
        if limit is not None:
            return f"; quota {key}: limit {shown(limit)} as of {snapshot.taken}"
    return ""


def _troubles(pool: ExpandedPool, found: Mapping[str, Json]) -> Iterator[str]:
    """Yield what GKE says of a pool's node pools that are not as they should be, each thing once."""
    said: dict[str, list[str]] = {}
    for name in (node_pool_name(pool, each) for each in pool.gke_pools):
        body = found.get(name)
        texts = ["is not there"] if body is None else [*_state(body)]
        for text in texts:
            said.setdefault(text, []).append(name)
    for text, names in said.items():
        more = f" (and {len(names) - 1} more)" if len(names) > 1 else ""
        yield f"Node pool {names[0]}{more} {text}."


def _state(body: Json) -> Iterator[str]:
    if (status := str(body.get("status", "RUNNING"))) not in _CALM:
        yield f"is {status}{_because(body.get('statusMessage'))}"
    for each in body.get("conditions") or ():
        code = each.get("canonicalCode") or each.get("code") or ""
        yield f"has the condition {code}{_because(each.get('message'))}"


def _because(message: str | None) -> str:
    return f": {quoted(message)}" if message else ""
