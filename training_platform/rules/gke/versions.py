"""Rules about versions of GKE (minimum versions, release channels, pools) and about versions of charts that must match.

Versions are compared as numbers: ``1.34.1-gke.2541000`` is (1, 34, 1, 2541000).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache

from training_platform.catalog import RELEASES
from training_platform.config.reading.declaration import Draft, finding, rule
from training_platform.config.reading.finding import Severity
from training_platform.views.access import ReleaseView
from training_platform.views.cluster import AutoProvisioningView, ClusterView, cluster_of, version_of
from training_platform.views.node_pool import NodePoolView
from training_platform.views.view import View
from training_platform.views.whole_stack import Program

_GKE = "GKE docs: node pool auto-creation, flex-start, TPU Ironwood, GPUs in Standard, read 2026-04"
_SCHEMA = "terraform-provider-google-beta 93c65b2, node_config, read 2026-08-21"
DRIVER_BY_DEFAULT = "1.30.1-gke.1156000"
DRIVER_OF_AUTO_PROVISIONED = "1.32.2-gke.1297000"
FAST_SOCKET = "1.25.2-gke.1700"
SECONDARY_DISKS = "1.28.3-gke.106700"
DRANET = "1.34.1-gke.1829001"
QUEUED_TPU_SHIPPED = (1, 35)
MOST_MINORS_OLDER = 2
SLICE_CONTROLLER = "1.35.0-gke.274500"
OFFERED = {"EXTENDED": "1.31"}
"""The oldest minor version of new clusters in each release channel for which it differs from ``OLDEST``."""
OLDEST = "1.34"
NEWEST = "1.37"
"""The newest minor version of all channels, which is in Rapid."""


@rule("gke-floor", ruleset="versions", across=True, source=_GKE)
def gke_floor(pool: NodePoolView, program: Program) -> Iterator[Draft]:
    """Find a GKE version that does not support the machine type or its provisioning model yet."""
    machine = pool.machine
    if machine is None or not machine.minimum_gke:
        return
    queued_only = pool.queued and not pool.flex_start  # GKE had queued provisioning before flex-start
    capacity = "queued-provisioning" if queued_only else pool.capacity
    subjects = {"pool": machine.name, capacity: f"{machine.name} by {capacity}"}
    for key, subject in subjects.items():
        floor = machine.minimum_gke.get(key)
        if floor:
            yield from _floor(pool, version_of(pool, program), floor, subject, _deciding(pool, program))


@rule(
    "gpudirect-floor",
    ruleset="versions",
    severity="warning",  # nothing is refused: jobs run over one interface
    across=True,
    source="Cluster Toolkit v1.95.0, gpu_direct.tf, read 2026-06-25",
)
def gpudirect_floor(pool: NodePoolView, program: Program) -> Iterator[Draft]:
    """Find GPUDirect networks on a GKE version whose GPUDirect does not work. Training would use only one interface."""
    machine = pool.machine
    if machine is None or not pool.nics or not machine.gpudirect_minimum_gke:
        return
    version = version_of(pool, program)
    floor = floor_of(machine.gpudirect_minimum_gke, version)
    if floor:
        for draft in _floor(pool, version, floor, f"GPUDirect-{machine.gpudirect}", _deciding(pool, program)):
            yield replace(draft, severity=None)


@rule("feature-floor", ruleset="versions", across=True, source=f"{_GKE}; {_SCHEMA}")
def feature_floor(pool: NodePoolView, program: Program) -> Iterator[Draft]:
    """Find a node setting that the GKE version does not support yet, or a GPU driver that it does not install."""
    gpus = pool.machine is not None and pool.machine.kind == "gpu"
    profile = (pool.machine and pool.machine.minimum_gke.get("dranet")) or DRANET
    floors = (
        (pool.fast_socket, FAST_SOCKET, "fast socket"),
        (pool.secondary_disks > 0, SECONDARY_DISKS, "a secondary boot disk"),
        (pool.network_profile is not None, profile, "an accelerator network profile"),
        (gpus and pool.driver is None, DRIVER_BY_DEFAULT, "automatic installation of GPU drivers"),
    )
    for used, floor, subject in floors:
        if used:
            yield from _floor(pool, version_of(pool, program), floor, subject, _deciding(pool, program))


@rule("auto-provisioning-floor", ruleset="versions", across=True, source=_GKE)
def auto_provisioning_floor(view: AutoProvisioningView) -> Iterator[Draft]:
    """Find a GKE version that cannot auto-provision an accelerator yet, or cannot install its driver yet."""
    for limit, machines in view.accelerators():
        if machines[0].kind == "gpu":
            subject = f"the driver of auto-provisioned {limit.resource}"
            yield from _floor(view, view.cluster.version, DRIVER_OF_AUTO_PROVISIONED, subject, view.cluster)
        floors = [machine.minimum_gke.get("auto-provisioning") for machine in machines]
        listed = [floor for floor in floors if floor]
        if listed and len(listed) == len(floors):
            lowest_floor = min(listed, key=lambda floor: parse(floor) or ())
            subject = f"auto-provisioning of {limit.resource}"
            yield from _floor(view, view.cluster.version, lowest_floor, subject, view.cluster)


@rule("add-on-floor", ruleset="versions", across=True, source="Cluster Toolkit v1.95.0, gke-cluster, read 2026-08")
def add_on_floor(cluster: ClusterView) -> Iterator[Draft]:
    """Find a GKE version that does not have the slice controller for TPU 7x yet."""
    if cluster.slice_controller:
        yield from _floor(cluster, cluster.version, SLICE_CONTROLLER, "the slice controller", cluster)


@rule(
    "channel-upgrades",
    ruleset="versions",
    across=True,
    source="terraform-provider-google issues; Cluster Toolkit v1.95.0, gke-node-pool, read 2026-06-25",
)
def channel_upgrades(pool: NodePoolView, program: Program) -> Iterator[Draft]:
    """Find a pool without auto-upgrade in a cluster whose release channel requires it."""
    if pool.auto_upgrade:
        return
    cluster = cluster_of(pool, program)
    channel = cluster.release_channel if cluster else None
    if channel not in (None, "UNSPECIFIED"):
        message = f"auto-upgrade is off, but the cluster is in channel {channel}"
        yield finding(pool, "auto_upgrade", message, allowed="on, with maintenance exclusions", nearest="true")


@rule(
    "pinned-version",
    ruleset="versions",
    across=True,
    severity="warning",
    source="terraform-provider-google issues; cloud-foundation-fabric, gke modules",
)
def pinned_version(cluster: ClusterView) -> Iterator[Draft]:
    """Find an exact GKE version in a release channel. The channel removes such a version after some weeks."""
    version = parse(cluster.version)
    if version and len(version) == FULL and cluster.release_channel not in (None, "UNSPECIFIED"):
        message = (
            f"clusters with {cluster.version} can be created only as long as channel {cluster.release_channel} "
            f"offers this version"
        )
        prefix = f"{version[0]}.{version[1]}"
        yield finding(
            cluster,
            "version",
            message,
            allowed="a minor version, or a patch version that the channel offers",
            nearest=prefix,
        )


@rule(
    "version-offered",
    ruleset="versions",
    across=True,
    severity="warning",
    source="GKE release notes, available minor versions of each channel, a copy with 1.37 in Rapid, read 2026-11-22",
)
def version_offered(cluster: ClusterView) -> Iterator[Draft]:
    """Find a GKE version that new clusters cannot have, or that is newer than all versions in this table.

    A running cluster may have a later version than its file.
    """
    written = parse(cluster.version)
    if written and written[:2] > (parse(NEWEST) or ()):
        message = f"{cluster.version} is newer than {NEWEST}, the newest minor version that GKE offered on 2026-11-22"
        yield finding(cluster, "version", message, allowed=f"{OLDEST} to {NEWEST}", nearest=NEWEST)
    elif written and written[:2] == parse(NEWEST) and cluster.release_channel in ("REGULAR", "STABLE", "EXTENDED"):
        message = f"channel {cluster.release_channel} may not offer {cluster.version}, which was in Rapid on 2026-11-22"
        yield finding(
            cluster, "version", message, allowed="the channel RAPID, or an earlier version", severity="note",
            unjudged="version that the channel may not offer",
        )  # fmt: skip
    oldest = _oldest_offered(cluster)
    if below(cluster.version, oldest):
        message = f"{cluster.version} is older than any version that GKE offers for new clusters"
        yield finding(cluster, "version", message, allowed=f"{oldest} or later", nearest=oldest)


@rule(
    "pool-version",
    ruleset="versions",
    when="version",
    across=True,
    source="general knowledge of Kubernetes' version skew; the limit of two minor versions is (unverified)",
)
def pool_version(pool: NodePoolView, program: Program) -> Iterator[Draft]:
    """Find nodes that are newer than their control plane, or far older.

    Far older nodes are a warning, because no source was read.
    """
    nodes = parse(pool.version)
    cluster = cluster_of(pool, program) if nodes else None
    control = parse(cluster.version) if cluster else None
    if cluster is None or nodes is None:
        return
    if control is None:
        message = (
            f"version {pool.version} is not compared, because the release channel determines the control plane's "
            f"version"
        )
        yield finding(
            pool, "version", message, allowed="a version for the cluster", severity="note",
            unjudged="version that the release channel determines",
        )  # fmt: skip
        return
    width = min(len(nodes), len(control))
    if nodes[:width] > control[:width]:
        severity: Severity = "error" if len(control) == FULL else "warning"  # GKE may pick a newer patch than a prefix
        message = f"version {pool.version} is newer than the control plane's {cluster.version}"
        yield finding(pool, "version", message, allowed=f"at most {cluster.version}", severity=severity)
    elif nodes[0] == control[0] and control[1] - nodes[1] > MOST_MINORS_OLDER:
        message = f"version {pool.version} is {control[1] - nodes[1]} minor versions behind {cluster.version}"
        yield finding(pool, "version", message, allowed=f"at most {MOST_MINORS_OLDER} behind", severity="warning")


@rule(
    "queued-tpu",
    ruleset="versions",
    across=True,
    source="xpk #900 and notes of 2026, against Cluster Toolkit v1.95.0, examples/gke-consumption-options",
)
def queued_tpu(pool: NodePoolView, program: Program) -> Iterator[Draft]:
    """Find queued provisioning of TPUs, which is refused without flex-start.

    With flex-start, sources disagree from GKE 1.35 on.
    """
    machine = pool.machine
    if not pool.queued or machine is None or machine.kind != "tpu":
        return
    allowed = "only flex-start, with jobs queued by Kueue"
    if not pool.flex_start:
        message = "queued provisioning without flex-start does not support TPUs"
        yield finding(pool, "queued", message, allowed=allowed, nearest="flex-start")
        return
    version = parse(version_of(pool, program))
    old = version is not None and len(version) == FULL and version[:2] < QUEUED_TPU_SHIPPED
    message = (
        "flex-start TPUs with queued provisioning were refused in 2025, but Cluster Toolkit has examples for GKE 1.35"
    )
    severity: Severity = "error" if old else "warning"
    yield finding(pool, "queued", message, allowed=allowed, nearest="flex-start", severity=severity)


@rule(
    "releases-together",
    ruleset="charts",
    owner="documents",
    across=True,
    source="release notes and go.mod of each chart: training_platform/catalog/data/software.yaml, releases, read "
    "2026-11-23",
)
def releases_together(release: ReleaseView, program: Program) -> Iterator[Draft]:
    """Find a chart or a cluster whose version does not work with a chart in the same cluster."""
    chart = release.catalogued
    if chart is None or release.version is None:
        return
    cluster = release.name.removesuffix(f"{chart.name}-release")
    releases = {other.name: other for other in program.all(ReleaseView) if other.version is not None}
    for row in RELEASES.values():
        if row.chart != chart.name or not release.of_minor(row.minor):
            continue
        ours = f"{release.version} of {chart.name}"
        for name, minors in row.breaks.items():
            other = releases.get(f"{cluster}{name}-release")
            if other is not None and any(map(other.of_minor, minors)):
                message = f"{other.version} of {name} is incompatible with {ours} in the same cluster"
                fits = row.goes_with[name]
                yield finding(other, "version", message, allowed=f"{fits.rpartition('.')[0]}.x", nearest=fits)
        for gke in program.all(ClusterView):
            if row.kubernetes and gke.name == f"{cluster}cluster":
                yield from _floor(gke, gke.version, row.kubernetes, ours, gke)


def _floor(view: View, version: str | None, floor: str, subject: str, cluster: ClusterView | None) -> Iterator[Draft]:
    """Find a version below the minimum. It is a note if the release channel decides and may still offer older ones."""
    severity = below(version, floor)
    if severity:
        message = f"{subject} needs GKE {floor}, but the version is {version}"
        yield finding(view, "version", message, allowed=f"{floor} or later", nearest=floor, severity=severity)
    elif version is None and cluster is not None and below(_oldest_offered(cluster), floor):
        message = f"{subject} needs GKE {floor}, but the release channel determines the version"
        minor = ".".join(floor.split(".")[:2])
        yield finding(
            view, "version", message, allowed=f"a version for the cluster, {minor} or later", nearest=minor,
            severity="note", unjudged="version that the release channel determines",
        )  # fmt: skip


def _deciding(pool: NodePoolView, program: Program) -> ClusterView | None:
    """Return the cluster whose channel determines the version of a pool's nodes; None if the pool sets a version."""
    return None if pool.version is not None else cluster_of(pool, program)


def _oldest_offered(cluster: ClusterView) -> str:
    return OFFERED.get(cluster.release_channel or "", OLDEST)


FULL = 4  # numbers of a full version: major, minor, patch and GKE's own
_VERSION = re.compile(r"(\d{1,9})\.(\d{1,9})(?:\.(\d{1,9})(?:-gke\.(\d{1,9}))?)?\Z")


@lru_cache(maxsize=4096)
def parse(version: str | None) -> tuple[int, ...] | None:
    """Return the numbers in a full version or in a prefix of one, or None for ``latest`` and any other string."""
    match = _VERSION.match((version or "").rstrip("."))
    return tuple(int(part) for part in match.groups() if part is not None) if match else None


@lru_cache(maxsize=4096)
def below(version: str | None, floor: str) -> Severity | None:
    """Return the severity if a version is below the minimum; None if it is not below, or is only possibly below.

    A full version below the minimum is an error. A prefix (``1.30``) whose versions are all below it is a warning: GKE
    chooses the newest matching version, and a release channel adds newer ones.
    """
    numbers = parse(version)
    floor_numbers = parse(floor)
    if numbers is None or floor_numbers is None or numbers >= floor_numbers[: len(numbers)]:
        return None
    return "error" if len(numbers) == FULL else "warning"


def floor_of(floors: Iterable[str], version: str | None) -> str | None:
    """Return the minimum that applies to a version, or None. There may be a minimum for each of several minor versions.

    Later minor versions than these have no minimum.
    """
    ordered = sorted(floors, key=lambda floor: parse(floor) or ())
    numbers = parse(version)
    if numbers is None or not ordered:
        return None
    if numbers[:2] < (parse(ordered[0]) or ())[:2]:
        return ordered[0]
    return next((floor for floor in ordered if (parse(floor) or ())[:2] == numbers[:2]), None)
