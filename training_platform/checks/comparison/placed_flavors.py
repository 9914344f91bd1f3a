"""Changes of a ResourceFlavor with a topology, which Kueue refuses: it can be given one, and then stays as it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from training_platform.config.pools import Flavor
from training_platform.config.reading.finding import Finding, Path
from training_platform.config.workspace import Workspace
from training_platform.resources.kueue.objects import resource_flavor

RULE = "placed-flavor"
_FIXED = ("topologyName", "nodeLabels", "tolerations")


def placed_flavors(head: Workspace, base: Workspace) -> Iterator[Finding]:
    """Find a flavor that a change keeps, in whose object it changes what is fixed once a topology is set.

    To replace the object is no way out: it hangs on its finalizer while a queue names it, and queues are in the stacks
    of teams. Source: Kueue 0.19.2, CEL rules of the CRD of ResourceFlavor, read 2026-11-22 and seen on an API server.
    """
    for stack, environment, was, former in head.kept_environments(base):
        for cluster, spec in environment.clusters.items():
            old_spec = former.clusters.get(cluster)
            if old_spec is None or old_spec.location != spec.location:
                continue
            old = base.flavors(was.name, cluster)
            for name, flavor in head.flavors(stack.name, cluster).items():
                if changed := _changed(flavor, old.get(name)):
                    yield stack.finding(
                        RULE, _path(cluster, flavor, spec.node_pools),
                        f"changes {', '.join(changed)} of flavor {name}, which Kueue refuses once it has a topology",
                        allowed="the pool as it is; or two changes: remove it with all shares of it, then add it anew",
                    )  # fmt: skip


def _changed(flavor: Flavor, old: Flavor | None) -> list[str]:
    if old is None or old.topology_name is None:
        return []
    before, after = resource_flavor(old), resource_flavor(flavor)
    return [field for field in _FIXED if before.get(field) != after.get(field)]


def _path(cluster: str, flavor: Flavor, pools: Mapping[str, object]) -> Path:
    """Return where the first of its pools stands."""
    own = next((pool.name for pool in flavor.pools if pool.name in pools), None)
    return ("clusters", cluster, "node_pools", own) if own else ("clusters", cluster)
