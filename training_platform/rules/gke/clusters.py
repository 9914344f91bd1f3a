"""Rules about clusters: network settings, Autopilot, names, node service accounts and scopes, maintenance."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta

from training_platform.catalog import MACHINE_TYPES
from training_platform.catalog.locations import is_zone, region_of
from training_platform.catalog.nearest import find_nearest
from training_platform.config.reading.declaration import Draft, finding, rule
from training_platform.config.reading.finding import Severity
from training_platform.views.access import AccountView, RoleGrantView
from training_platform.views.cluster import AutoProvisioningView, ClusterView, cluster_of, pools_of
from training_platform.views.node_pool import InlinePoolView, NodePoolView
from training_platform.views.view import View
from training_platform.views.whole_stack import Program

_TOOLKIT = "Cluster Toolkit v1.95.0, gke-cluster, preconditions, read 2026-06-25"
_SCHEMA = "terraform-provider-google-beta 93c65b2, resource_container_cluster.go"
DATAPLANE_V2 = "ADVANCED_DATAPATH"
NAME_LENGTH = 40
MOST_TAGS = 5
DEFAULT_MACHINE = "e2-medium"
ROUTES = "ROUTES"
MAX_PODS = (8, 256)
MOST_UPGRADED = 20
SURGE_SOURCE = (
    "terraform-provider-google-beta 93c65b2, upgrade_settings: not 0 and 0; GKE docs, node upgrade strategies: at most "
    "20 nodes at once (general knowledge, not read)"
)
PODS_SOURCE = "compute-class-api 8067eae, maxPodsPerNode; terraform-provider-google-beta 93c65b2, max_pods_per_node"


@rule("cluster-name", ruleset="clusters", source="GKE API, Cluster.name: at most 40 characters")
def cluster_name(cluster: ClusterView) -> Iterator[Draft]:
    """Find a cluster whose name is longer than GKE allows."""
    name = cluster.cluster
    if name and len(name) > NAME_LENGTH:
        message = f"cluster {name} has a name of {len(name)} characters"
        yield finding(
            cluster, "cluster", message, allowed=f"at most {NAME_LENGTH}", nearest=name[:NAME_LENGTH].rstrip("-")
        )


@rule("dataplane-policies", ruleset="clusters", source=f"{_TOOLKIT}; cloud-foundation-fabric")
def dataplane_policies(cluster: ClusterView) -> Iterator[Draft]:
    """Find Calico together with Dataplane V2, and policies that need Dataplane V2 if it is not enabled."""
    if cluster.network_policy and cluster.datapath == DATAPLANE_V2:
        message = "network policy is enabled with Dataplane V2, which enforces policies itself"
        yield finding(cluster, "network_policy", message, allowed="no network_policy block")
    if cluster.dataplane_policies and cluster.datapath != DATAPLANE_V2:
        message = "FQDN and cluster-wide Cilium network policies need Dataplane V2"
        yield finding(cluster, "dataplane_policies", message, allowed=DATAPLANE_V2, nearest=DATAPLANE_V2)


@rule(
    "alpha-cluster",
    ruleset="clusters",
    source="GKE docs, about alpha clusters, read 2026-11-29",
)
def alpha_cluster(cluster: ClusterView) -> Iterator[Draft]:
    """Find an alpha cluster in a release channel. GKE does not upgrade it and deletes it after 30 days."""
    if cluster.alpha and cluster.release_channel not in (None, "UNSPECIFIED"):
        message = (
            f"an alpha cluster cannot be in release channel {cluster.release_channel}, and GKE deletes it after 30 days"
        )
        yield finding(cluster, "alpha", message, allowed="no release channel, or no alpha features")


@rule(
    "cluster-needs",
    ruleset="clusters",
    severity="warning",
    source="GKE docs: Gateway, Cloud Storage FUSE CSI driver, Stateful HA (general knowledge, not read)",
)
def cluster_needs(cluster: ClusterView) -> Iterator[Draft]:
    """Find a cluster feature that is enabled although another feature that it requires is not (unverified)."""
    has_gateway = cluster.gateway not in (None, "CHANNEL_DISABLED")
    if cluster.networking_mode == ROUTES and (has_gateway or cluster.pods_range):
        message = "a routes-based cluster supports neither a secondary range for pods nor the Gateway API"
        yield finding(cluster, "networking_mode", message, allowed="VPC_NATIVE", nearest="VPC_NATIVE")
    if cluster.fuse_driver and not cluster.workload_pool and not cluster.autopilot:
        message = "the Cloud Storage FUSE driver needs Workload Identity Federation"
        yield finding(cluster, "fuse_driver", message, allowed="a workload pool, PROJECT.svc.id.goog")
    if cluster.stateful_ha and not cluster.disk_driver:
        message = "Stateful HA needs the Persistent Disk driver"
        yield finding(cluster, "stateful_ha", message, allowed="the Persistent Disk CSI driver enabled")


@rule("multi-networking", ruleset="clusters", source=f"{_TOOLKIT}; {_SCHEMA}")
def multi_networking(cluster: ClusterView) -> Iterator[Draft]:
    """Find multi-networking without its prerequisites. They are set at creation, so changing them replaces the cluster.

    A cluster that sets no networking mode is VPC-native.
    """
    if not cluster.multi_networking:
        return
    for field, required in (("datapath", DATAPLANE_V2), ("networking_mode", "VPC_NATIVE")):
        written = getattr(cluster, field)
        if written != required and (field == "datapath" or written is not None):
            title = field.replace("_", " ")
            message = f"multi-networking needs {title} {required}, but it is {written or 'not set'}"
            yield finding(cluster, field, message, allowed=required, nearest=required)


@rule("default-pool", ruleset="clusters", owner="provider", source=_SCHEMA)
def default_pool(cluster: ClusterView) -> Iterator[Draft]:
    """Find a default pool that is removed but has no initial nodes, and a wrong node version.

    A node version has no effect if the default pool is removed. Otherwise it must be the cluster's version at creation.
    """
    first = cluster.initial_nodes or cluster.pools_inside
    if cluster.remove_default_pool and not cluster.autopilot and first < 1:
        message = "the default pool is removed after creation, but initial_node_count is not at least 1"
        yield finding(cluster, "initial_nodes", message, allowed="at least 1", nearest=1)
    if cluster.node_version is None:
        return
    if cluster.remove_default_pool:
        yield finding(
            cluster, "node_version", "node_version applies to the default pool, which is removed", allowed="none"
        )
    elif cluster.node_version != cluster.version:
        message = f"node_version is {cluster.node_version}, but min_master_version is {cluster.version}"
        yield finding(
            cluster,
            "node_version",
            message,
            allowed="the same version when the cluster is created",
            nearest=cluster.version,
        )


@rule("default-max-pods", ruleset="clusters", source=PODS_SOURCE)
def default_max_pods(cluster: ClusterView) -> Iterator[Draft]:
    """Find a default number of pods per node that GKE does not support."""
    pods = cluster.max_pods
    if pods is None:
        return
    if cluster.networking_mode == ROUTES:
        message = "max_pods_per_node is set, but the cluster is not VPC-native"
        yield finding(cluster, "max_pods", message, allowed="networking_mode VPC_NATIVE", nearest="VPC_NATIVE")
    yield from pods_beyond(cluster, pods)


def pods_beyond(view: View, pods: int) -> Iterator[Draft]:
    """Find a number of pods per node, in the field ``max_pods``, that GKE does not support."""
    low, high = MAX_PODS
    if not low <= pods <= high:
        nearest = min(max(pods, low), high)
        message = f"{pods} pods per node are out of range"
        yield finding(view, "max_pods", message, allowed=f"{low} to {high}", nearest=nearest)


def surge_beyond(view: View, surge: int | None, unavailable: int | None) -> Iterator[Draft]:
    """Find surge upgrade settings, in the fields ``max_surge`` and ``max_unavailable``, that GKE refuses."""
    together = (surge or 0) + (unavailable or 0)
    if surge == 0 and not unavailable:
        message = "max_surge and max_unavailable are both 0, so upgrades cannot replace any node"
        allowed = "a sum of max_surge and max_unavailable above 0"
        yield finding(view, "max_unavailable", message, allowed=allowed, nearest=1)
    elif together > MOST_UPGRADED:
        message = f"surge upgrades affect {together} nodes at the same time"
        allowed = f"a sum of max_surge and max_unavailable of at most {MOST_UPGRADED}"
        nearest = max(0, MOST_UPGRADED - (unavailable or 0))
        yield finding(view, "max_surge", message, allowed=allowed, nearest=nearest)


@rule("cluster-zones", ruleset="clusters", source=f"{_SCHEMA}; Cluster Toolkit v1.95.0")
def cluster_zones(cluster: ClusterView) -> Iterator[Draft]:
    """Find a zonal cluster that lists its own zone again, and zones outside the cluster's region."""
    for zone in cluster.zones:
        region = region_of(cluster.location)
        if zone == cluster.location:
            message = f"node_locations lists {zone}, the cluster's own zone"
            yield finding(cluster, "zones", message, allowed=f"other zones of {region}")
        elif region_of(zone) != region:
            message = f"node_locations lists {zone}, which is not in {region}"
            yield finding(cluster, "zones", message, allowed=f"zones of {region}")


@rule("autopilot-settings", ruleset="clusters", owner="provider", source=f"{_SCHEMA}, ConflictsWith")
def autopilot_settings(cluster: ClusterView) -> Iterator[Draft]:
    """Find settings that an Autopilot cluster does not support."""
    if cluster.autopilot and cluster.clashing:
        message = f"an Autopilot cluster does not support {', '.join(cluster.clashing)}"
        yield finding(
            cluster, "clashing", message, allowed="none of them; pods and ComputeClasses request TPUs and GPUs"
        )
    if cluster.autopilot and is_zone(cluster.location or ""):
        message = f"{cluster.location} is a zone, and Autopilot clusters are regional"
        yield finding(cluster, "location", message, allowed="a region", nearest=region_of(cluster.location))


@rule(
    "default-pool-machine",
    ruleset="clusters",
    severity="warning",
    source="keras kinetic #305; zone tables of the pricing calculator, read 2026-08-10",
)
def default_pool_machine(cluster: ClusterView) -> Iterator[Draft]:
    """Find a default pool whose zone does not offer its machine type. This is a warning: zone lists become outdated."""
    zone = cluster.location
    if not is_zone(zone) or cluster.autopilot:
        return
    name = cluster.default_machine or DEFAULT_MACHINE
    series = name.partition("-")[0]
    if name in MACHINE_TYPES:
        rows = [MACHINE_TYPES[name]]
    else:
        rows = [row for row in MACHINE_TYPES.values() if row.name.partition("-")[0] == series]
    if any(zone in row.missing_zones for row in rows):
        cpus = [row for row in MACHINE_TYPES.values() if row.kind == "cpu" and zone not in row.missing_zones]
        message = f"the default pool has machine type {name}, which {zone} does not offer"
        nearest = next((name for name in sorted(row.name for row in cpus) if name.endswith("standard-4")), None)
        yield finding(
            cluster, "default_machine", message, allowed="a machine type that the zone offers", nearest=nearest
        )


@rule("resource-tags", ruleset="clusters", source=f"{_SCHEMA}, resource_manager_tags")
def resource_tags(cluster: ClusterView) -> Iterator[Draft]:
    """Find a cluster with more resource manager tags than its nodes support."""
    if cluster.tags > MOST_TAGS:
        yield finding(cluster, "tags", f"has {cluster.tags} resource manager tags", allowed=f"at most {MOST_TAGS}")


@rule("inline-pools", ruleset="together", across=True, source=f"{_SCHEMA}, resource_container_cluster.go")
def inline_pools(cluster: ClusterView, program: Program) -> Iterator[Draft]:
    """Find inline pools in a cluster that also has NodePool resources. Updating one would undo the other."""
    if cluster.inline_pools and not all(isinstance(pool, InlinePoolView) for pool in pools_of(cluster, program)):
        message = (
            f"cluster {cluster.name} declares {cluster.inline_pools} pools inline, but other pools as NodePool "
            f"resources"
        )
        yield finding(cluster, "inline_pools", message, allowed="only NodePool resources")


@rule("autopilot-pools", ruleset="together", across=True, source=f"{_SCHEMA}, ConflictsWith")
def autopilot_pools(cluster: ClusterView, program: Program) -> Iterator[Draft]:
    """Find a node pool in an Autopilot cluster."""
    if not cluster.autopilot:
        return
    for pool in pools_of(cluster, program):
        message = f"{cluster.name} is an Autopilot cluster, which does not support node pools"
        yield finding(pool, "cluster", message, allowed="pods with selectors, or a ComputeClass")


@rule("routes-max-pods", ruleset="together", across=True, source=f"{_SCHEMA}, max_pods_per_node")
def routes_max_pods(cluster: ClusterView, program: Program) -> Iterator[Draft]:
    """Find a pool that sets its number of pods per node although its cluster is not VPC-native."""
    if cluster.networking_mode != ROUTES:
        return
    for pool in pools_of(cluster, program):
        if pool.max_pods is not None:
            message = f"max_pods_per_node is set, but cluster {cluster.name} is not VPC-native"
            yield finding(pool, "max_pods", message, allowed="a VPC-native cluster, or no max_pods_per_node")


_TOOLKIT_POOLS = "Cluster Toolkit v1.95.0, gke-node-pool and gke-cluster, read 2026-06-25"
_PROVIDER = "terraform-provider-google-beta 93c65b2"
NODE_ROLES = ("roles/container.defaultNodeServiceAccount", "roles/artifactregistry.reader")
BROAD_ROLES = frozenset({"roles/editor", "roles/owner"})
CLOUD_PLATFORM = "https://www.googleapis.com/auth/cloud-platform"
_STORAGE = "https://www.googleapis.com/auth/devstorage"
WRITING_SCOPES = {
    CLOUD_PLATFORM, "cloud-platform", f"{_STORAGE}.read_write", f"{_STORAGE}.full_control", "storage-rw", "storage-full"
}  # fmt: skip


@rule(
    "workload-identity",
    ruleset="together",
    across=True,
    source=f"{_PROVIDER}; {_TOOLKIT_POOLS}; cloud-foundation-fabric",
)
def workload_identity(pool: NodePoolView, program: Program) -> Iterator[Draft]:
    """Find nodes with metadata mode GKE_METADATA in a cluster without a workload pool."""
    if pool.metadata_mode != "GKE_METADATA":
        return
    cluster = cluster_of(pool, program)
    if cluster is not None and not cluster.workload_pool:
        message = f"mode GKE_METADATA needs a workload pool, but cluster {cluster.name} has none"
        project = cluster.project or "PROJECT"
        yield finding(
            pool, "metadata_mode", message, allowed="workload_pool of the project", nearest=f"{project}.svc.id.goog"
        )


@rule("workload-pool", ruleset="together", across=True, source=f"{_PROVIDER}; cloud-foundation-fabric")
def workload_pool(cluster: ClusterView) -> Iterator[Draft]:
    """Find a workload pool that belongs to a different project than the cluster."""
    if not cluster.workload_pool or not cluster.project:
        return
    expected = f"{cluster.project}.svc.id.goog"
    if cluster.workload_pool != expected:
        message = f"workload pool {cluster.workload_pool} does not belong to the cluster's project"
        yield finding(cluster, "workload_pool", message, allowed=expected, nearest=expected)


@rule(
    "node-scopes",
    ruleset="nodes",
    severity="warning",
    source=f"{_PROVIDER}, oauth_scopes; third-party notes of 2026",
)
def node_scopes(pool: NodePoolView) -> Iterator[Draft]:
    """Find nodes whose OAuth scopes do not allow writing to storage. Checkpoints then fail regardless of IAM."""
    yield from narrow_scopes(pool)


def narrow_scopes(pool: NodePoolView | AutoProvisioningView) -> Iterator[Draft]:
    """Yield a finding if the OAuth scopes of nodes do not allow writing to storage."""
    if WRITING_SCOPES.isdisjoint(pool.scopes):
        if pool.scopes:
            message = (
                "the OAuth scopes do not allow pods to write to Cloud Storage; changing them later replaces the pool"
            )
        else:
            message = (
                "the OAuth scopes are not set, and the default scopes can only read storage; changing them later "
                "replaces the pool"
            )
        yield finding(
            pool,
            "scopes",
            message,
            allowed=f"{CLOUD_PLATFORM}, with access controlled by IAM roles",
            nearest=CLOUD_PLATFORM,
        )


@rule(
    "node-account",
    ruleset="nodes",
    severity="warning",
    source="GKE docs, hardening; terraform-provider-google issues",
)
def node_account(pool: NodePoolView) -> Iterator[Draft]:
    """Find nodes that run as the default Compute Engine service account, which new organisations disable."""
    yield from default_account(pool)


def default_account(pool: NodePoolView | AutoProvisioningView) -> Iterator[Draft]:
    """Yield a finding if nodes run as the default Compute Engine service account."""
    if pool.service_account in (None, "", "default"):
        message = "the nodes run as the default Compute account, which may be disabled or without roles"
        yield finding(
            pool, "service_account", message, allowed="a service account for nodes, with the roles that nodes need"
        )


@rule(
    "node-account-roles",
    ruleset="together",
    across=True,
    severity="warning",
    source="GKE docs, hardening: least-privilege node accounts",
)
def node_account_roles(account: AccountView, program: Program) -> Iterator[Draft]:
    """Find a service account that this program creates for nodes without the roles that nodes need."""
    if program.once(_node_accounts).isdisjoint((account.email, account.name)):
        return
    grants = (grant for grant in program.all(RoleGrantView) if grant.known("account"))
    roles = {grant.role for grant in grants if account.is_meant(grant.account, "email")}
    missing = [role for role in NODE_ROLES if role not in roles]
    if missing and not roles & BROAD_ROLES:
        message = f"account {account.name} runs nodes without {' and '.join(missing)}"
        yield finding(
            account,
            "email",
            message,
            allowed="both roles, granted before the first pool is created",
            nearest=missing[0],
        )


def _node_accounts(program: Program) -> set[str | None]:
    return {pool.service_account for pool in program.all(NodePoolView) if pool.known("service_account")}


_SOURCE = "GKE docs, maintenance windows and exclusions: copies of 2025 and 2026, which disagree, read 2026-11-21"
LEAST = timedelta(hours=48)
SHORTEST = timedelta(hours=4)  # GKE does not count shorter windows
PERIOD_DAYS = 32  # by older copies; the newer ones have 92 days, for which 4 hours in each week are enough
NO_UPGRADES = "NO_UPGRADES"
MOST_EXCLUSIONS = 3
_HOUR = timedelta(hours=1)
_DAY = timedelta(days=1)
LONGEST = timedelta(days=90)
OLD_LONGEST = timedelta(days=30)


@rule("maintenance-window", ruleset="clusters", source=_SOURCE)
def maintenance_window(cluster: ClusterView) -> Iterator[Draft]:
    """Find a maintenance window that ends before it starts, or that is shorter than GKE requires.

    GKE requires 48 hours in windows of at least 4 hours. Sources disagree whether this is per 32 days or per 92 days.
    """
    window = cluster.window
    if window is None:
        return
    start = _time(window.start)
    end = _time(window.end)
    if start is None or end is None or end <= start:
        message = f"the maintenance window starts at {window.start} and ends at {window.end}"
        yield finding(cluster, "window", message, allowed="an end after the start, in UTC")
        return
    if (recurrence := _in_standard_form(window.recurrence)) is not None:
        message = f"{window.recurrence} is no recurrence of RFC 5545"
        allowed = "an RRULE such as FREQ=WEEKLY;BYDAY=SA,SU"
        yield finding(cluster, "window", message, allowed=allowed, nearest=recurrence or None)
        return
    parts = dict(part.partition("=")[::2] for part in window.recurrence.split(";"))
    weekdays = parts.pop("BYDAY", "").split(",")
    occurrences = {"DAILY": PERIOD_DAYS, "WEEKLY": PERIOD_DAYS // 7 * len(weekdays)}  # in PERIOD_DAYS
    count = occurrences.get(parts["FREQ"]) if parts.keys() == {"FREQ"} else None
    if count is None:
        return  # other recurrences are not checked
    if end - start < SHORTEST:
        message = f"the maintenance window has {(end - start) / _HOUR:g} hours at a time, but GKE requires at least 4"
        yield finding(cluster, "window", message, allowed="at least 4 hours at a time", nearest="4 hours")
    elif count * (end - start) < LEAST:
        message = f"the maintenance window has {count * (end - start) / _HOUR:g} hours in {PERIOD_DAYS} days"
        allowed = f"at least 48 hours in every {PERIOD_DAYS} days; newer copies of GKE's docs say 92"
        yield finding(cluster, "window", message, allowed=allowed, nearest="FREQ=DAILY", severity="warning")


_FREQUENCIES = ("DAILY", "WEEKLY", "MONTHLY", "YEARLY", "HOURLY", "MINUTELY", "SECONDLY")
_WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_WEEKDAY = re.compile(r"(?P<ordinal>[+-]?[0-9]{0,2})(?P<day>[A-Z]+)")


def _in_standard_form(recurrence: str) -> str | None:
    """Return an RRULE with its frequency and weekdays written as in RFC 5545.

    The result is "" if the rule is unclear, and None if it is already in this form.
    """
    parts = dict(part.partition("=")[::2] for part in recurrence.removeprefix("RRULE:").split(";"))
    frequency = parts.get("FREQ", "")
    if frequency not in _FREQUENCIES:
        parts["FREQ"] = find_nearest(frequency, _FREQUENCIES) or ""
    weekdays = (
        [_WEEKDAY.fullmatch(day.strip().upper()) for day in parts["BYDAY"].split(",")] if "BYDAY" in parts else []
    )
    if "" in parts.values() or any(day is None or day["day"][:2] not in _WEEKDAYS for day in weekdays):
        return ""
    if weekdays:
        parts["BYDAY"] = ",".join(f"{day['ordinal']}{day['day'][:2]}" for day in weekdays if day)
    standard = ";".join(f"{name}={value}" for name, value in parts.items())
    return None if standard == recurrence.removeprefix("RRULE:") else standard


@rule("maintenance-exclusion", ruleset="clusters", source=_SOURCE)
def maintenance_exclusion(cluster: ClusterView) -> Iterator[Draft]:
    """Find maintenance exclusions that end before they start, are too long, or are more than GKE allows.

    An exclusion of all upgrades lasts at most 90 days; older sources say 30.
    """
    full = [row for row in cluster.exclusions if row.scope == NO_UPGRADES]
    if len(full) > MOST_EXCLUSIONS:
        message = f"{len(full)} exclusions block all upgrades"
        yield finding(cluster, "exclusions", message, allowed=f"at most {MOST_EXCLUSIONS} of them")
    for row in cluster.exclusions:
        start = _time(row.start)
        end = _time(row.end) if row.end else None
        if start is None or (row.end and (end is None or end <= start)):
            message = f"exclusion {row.name} starts at {row.start} and ends at {row.end}"
            yield finding(cluster, "exclusions", message, allowed="an end after the start, in UTC")
        elif end is not None and row.scope == NO_UPGRADES and end - start > OLD_LONGEST:
            old = end - start <= LONGEST
            message = f"exclusion {row.name} blocks all upgrades for {(end - start) / _DAY:g} days"
            allowed = "at most 30 days; newer copies of GKE's docs say 90" if old else "at most 90 days"
            nearest = (start + (OLD_LONGEST if old else LONGEST)).strftime("end %Y-%m-%dT%H:%M:%SZ")
            severity: Severity | None = "warning" if old else None
            yield finding(cluster, "exclusions", message, allowed=allowed, nearest=nearest, severity=severity)


def _time(text: str | None) -> datetime | None:
    """Return a time that has a time zone, or None for any other string."""
    try:
        time = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return time if time.tzinfo else None
