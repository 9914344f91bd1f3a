"""Kueue's flavors, against the node pools that they stand for."""

from __future__ import annotations

from collections.abc import Iterator

from modules.catalog.topologies import legal_for
from modules.config.fleet import FLAVOR_LABEL
from modules.rules.registry import Draft, finding, rule
from modules.rules.tpu import illegal
from modules.rules.view import Program
from modules.rules.views import Flavor, NodePool

TOPOLOGY_LABEL = "cloud.google.com/gke-tpu-topology"


@rule(
    "tpu-flavor-topology",
    ruleset="flavors",
    across=True,
    facts=("TPU-02", "KUE-07"),
    source="GKE docs, TPU concepts: labels that GKE sets; Kueue ff69552, ResourceFlavor, read 2026-08-22",
)
def tpu_flavor_topology(pool: NodePool, program: Program) -> Iterator[Draft]:
    """Find a pool whose nodes are slices of another shape than its Kueue flavor selects: its jobs would never start."""
    machine = pool.machine
    if machine is None or machine.kind != "tpu":
        return
    actual = pool.tpu_topology or machine.single_host
    wanted = _selected(pool.node_labels.get(FLAVOR_LABEL), program)
    if wanted is not None and wanted != actual:
        if not legal_for(machine, wanted):
            yield illegal(pool, machine, wanted)
        else:
            message = f"the pool's nodes are slices of {actual}, and its flavor selects {wanted}"
            yield finding(pool, "tpu_topology", message, allowed=wanted, nearest=wanted)


def _selected(flavor: str | None, program: Program) -> str | None:
    """Return the topology that the flavor of this name selects; names say the shape, so clusters agree on it."""
    for each in program.of(Flavor):
        if each.known("flavor") and each.flavor == flavor:
            return each.node_labels.get(TOPOLOGY_LABEL)
    return None
