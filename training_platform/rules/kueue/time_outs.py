"""Kueue's time-outs, which all jobs of a cluster share."""

from __future__ import annotations

from collections.abc import Iterator

from training_platform.config.reading.section import enumeration
from training_platform.resources.register import NOTIFICATION_CHANNEL
from training_platform.rules.registry import Draft, finding, rule
from training_platform.views.access import LabelledView
from training_platform.views.cluster_pools import cluster_of, pools_of
from training_platform.views.node_pool import NodePoolView
from training_platform.views.program import Program


@rule(
    "flex-start-beside-reserved",
    ruleset="kueue",
    severity="warning",
    owner="house",
    source="Kueue v0.19.2, workload_controller.go: one time, from admission, which queued jobs get with their VMs",
)
def flex_start_beside_reserved(pool: NodePoolView, program: Program) -> Iterator[Draft]:
    """Find a pool of flex-start that lets jobs of other pools hold reserved machines for a day, unseen.

    VMs of plain flex-start come after a job's admission, whenever Google Cloud finds them, so Kueue has to wait; those
    of queued provisioning come before it. Who gets the alerts is told of slices that are not ready for an hour.
    """
    if not pool.flex_start or pool.queued or program.once(_somebody_is_told):
        return
    cluster = cluster_of(pool, program)
    others = [each for each in pools_of(cluster, program) if each.reservation] if cluster else []
    if others:
        held = enumeration(sorted({".".join(str(part) for part in each.origin[-1:]) or each.name for each in others}))
        message = f"with it, a job whose pods never get ready holds reserved machines of {held} for 24 hours, unseen"
        allowed = "queued-provisioning, a cluster of its own, or alerts.emails that say who is told"
        yield finding(pool, "flex_start", message, allowed=allowed, nearest="queued-provisioning")


def _somebody_is_told(program: Program) -> bool:
    return any(view.type == NOTIFICATION_CHANNEL for view in program.all(LabelledView))
