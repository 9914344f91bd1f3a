"""Who mounts a Filestore share, and as whom; snapshots of it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from training_platform.catalog import FILESTORE_TIERS
from training_platform.rules.network.addresses import network_of
from training_platform.rules.registry import Draft, finding, rule
from training_platform.views.program import Program
from training_platform.views.storage import FilestoreView, SnapshotView

_API = "filestore API (googleapis f8291d2), NfsExportOptions; Filestore docs, limits"
MOST_EXPORTS = 10
MOST_RANGES = 64  # of all entries together


@rule("filestore-exports", ruleset="filestore", source=_API)
def filestore_exports(instance: FilestoreView) -> Iterator[Draft]:
    """Find more exports or ranges than an instance takes, and ranges of different entries that overlap."""
    exports = instance.exports
    if len(exports) > MOST_EXPORTS:
        yield finding(instance, "exports", f"has {len(exports)} entries", allowed=f"at most {MOST_EXPORTS}")
    ranges = [(number, text) for number, export in enumerate(exports) for text in export.ranges]
    if len(ranges) > MOST_RANGES:
        yield finding(instance, "exports", f"has {len(ranges)} ranges", allowed=f"at most {MOST_RANGES} in all entries")
    for (first, one), (second, other) in combinations(ranges, 2):
        room, taken = network_of(other), network_of(one)
        if first != second and room and taken and room.overlaps(taken):
            message = f"{other} overlaps {one} of another entry"
            yield finding(instance, "exports", message, allowed="ranges that do not overlap")


@rule(
    "filestore-squashed-root",
    ruleset="filestore",
    severity="warning",
    owner="house",
    source="house rule: the kubelet makes the folders of teams as root (subPath)",
)
def filestore_squashed_root(instance: FilestoreView) -> Iterator[Draft]:
    """Find an instance of several teams whose clients' root may not make folders."""
    alone = (instance.labels or {}).get("team")
    if not alone and any(export.squashed for export in instance.exports):
        message = "root is squashed, so that nodes cannot make the folders of teams, which then have to be there"
        yield finding(instance, "exports", message, allowed="squash: none, or an instance for one team", nearest="none")


@rule(
    "filestore-snapshot",
    ruleset="filestore",
    across=True,
    source="Filestore docs, service tiers, read 2026-04-10: basic tiers have backups and no snapshots",
)
def filestore_snapshot(program: Program) -> Iterator[Draft]:
    """Find a snapshot of an instance whose tier has none."""
    instances = program.all(FilestoreView)
    for snapshot in program.all(SnapshotView):
        for instance in instances:
            tier = FILESTORE_TIERS.get(instance.tier)
            if tier and not tier.snapshots and instance.is_meant(snapshot.instance, "instance"):
                message = f"{tier.name} instances have no snapshots"
                allowed = ", ".join(name for name, each in FILESTORE_TIERS.items() if each.snapshots)
                yield finding(snapshot, "instance", message, allowed=f"backups, or a tier of {allowed}")
