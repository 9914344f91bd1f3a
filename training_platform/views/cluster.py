"""Clusters, and what GKE may add to them by itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Self

from training_platform.config.reading.finding import Path
from training_platform.resources.planned import UNKNOWN, Planned
from training_platform.resources.register import CLUSTER, NETWORK, SUBNETWORK
from training_platform.views import fields
from training_platform.views import inputs as of
from training_platform.views.inputs import at
from training_platform.views.view import Settings, View

# What an Autopilot cluster decides by itself; the provider refuses these beside it.
_AUTOPILOT_DECIDES = (
    "clusterAutoscaling.enabled", "clusterAutoscaling.resourceLimits", "networkPolicy", "removeDefaultNodePool",
    "defaultMaxPodsPerNode", "enableShieldedNodes", "nodePools", "enableIntranodeVisibility",
    "addonsConfig.networkPolicyConfig", "addonsConfig.dnsCacheConfig", "addonsConfig.statefulHaConfig",
    "binaryAuthorization.enabled",
)  # fmt: skip
DEFAULT_POOL = "default-pool"
_WINDOW = "maintenancePolicy.recurringWindow"
_AUTOSCALING = "clusterAutoscaling"
_DEFAULTS = f"{_AUTOSCALING}.autoProvisioningDefaults"


class Window(NamedTuple):
    """A recurring window of maintenance: times as GKE takes them, ``2026-01-03T06:00:00Z``, and an RRULE."""

    start: str
    end: str
    recurrence: str


class Exclusion(NamedTuple):
    """A time without upgrades of ``scope``; no end means the end of the version's support."""

    name: str
    start: str
    end: str | None
    scope: str


def _exclusion(row: Any) -> Exclusion:
    name, start, end = (of.as_text(at(row, (key,))) for key in ("exclusionName", "startTime", "endTime"))
    scope = of.as_text(at(row, ("exclusionOptions", "scope")))
    return Exclusion(name, start, end, "NO_UPGRADES" if scope is None else scope)


class ClusterView(View):
    """A GKE cluster. ``public_endpoint`` says whether its control plane answers at an address on the internet.

    ``version`` is the lowest of its control plane, as far as it is written; ``pods_range`` names the subnet's secondary
    range of its pods, and ``max_pods`` is what a node of a pool that says nothing takes of it. ``clashing`` lists what
    is set that an Autopilot cluster does not support; ``window`` is None where GKE may upgrade at any time.
    """

    TYPES = (CLUSTER,)

    project = fields.project()
    cluster = fields.text("name", place="")
    location = fields.located("location")
    private_nodes = fields.flag("privateClusterConfig.enablePrivateNodes", place="")
    deletion_protection = fields.flag("deletionProtection", default=True)  # the provider's default
    labels = fields.labels("resourceLabels")
    version = fields.text("minMasterVersion")
    release_channel = fields.text("releaseChannel.channel")
    network = fields.reference("network", NETWORK, place="")
    subnetwork = fields.reference("subnetwork", SUBNETWORK)
    pods_range = fields.text("ipAllocationPolicy.clusterSecondaryRangeName", place="subnet.pods")
    max_pods = fields.whole("defaultMaxPodsPerNode", place="")
    datapath = fields.text("datapathProvider", place="")
    networking_mode = fields.text("networkingMode", place="")
    multi_networking = fields.flag("enableMultiNetworking", default=False, place="")
    network_policy = fields.flag("networkPolicy.enabled", default=False, place="")
    dataplane_policies = fields.any_flag("enableFqdnNetworkPolicy", "enableCiliumClusterwideNetworkPolicy", place="")
    slice_controller = fields.flag("addonsConfig.sliceControllerConfig.enabled", default=False, place="operators")
    autopilot = fields.flag("enableAutopilot", default=False, place="")
    zones = fields.texts("nodeLocations", place="")
    node_version = fields.text("nodeVersion", place="")
    remove_default_pool = fields.flag("removeDefaultNodePool", default=False, place="")
    initial_nodes = fields.whole("initialNodeCount", place="")
    pools_inside = fields.count("nodePools", place="")
    default_machine = fields.text("nodeConfig.machineType", place="")
    workload_pool = fields.text("workloadIdentityConfig.workloadPool", place="")
    tags = fields.count("nodeConfig.resourceManagerTags", place="")

    exclusions = fields.entries("maintenancePolicy.maintenanceExclusions", _exclusion, place="maintenance.exclusions")

    @fields.field("controlPlaneEndpointsConfig.ipEndpointsConfig.enabled", place="")
    def public_endpoint(self) -> bool:
        """Whether its control plane answers at an address on the internet."""
        enabled = of.as_flag(self.read("controlPlaneEndpointsConfig.ipEndpointsConfig.enabled"))
        private = of.as_flag(self.read("privateClusterConfig.enablePrivateEndpoint"))
        if enabled is False or private is True:
            return False
        return UNKNOWN not in (of.known(enabled), of.known(private))

    @fields.field("nodePools", place="")
    def inline_pools(self) -> int:
        """How many pools are written in the cluster to stay, beside the default one that is to be removed."""
        names = [of.known(at(row, ("name",))) for row in of.rows(of.known(self.read("nodePools")))]
        return len([name for name in names if not (self.remove_default_pool and name in (None, DEFAULT_POOL))])

    @fields.field(*_AUTOPILOT_DECIDES, place="")
    def clashing(self) -> tuple[str, ...]:
        """What is set that an Autopilot cluster does not support."""
        values = {name: of.known(self.read(name)) for name in _AUTOPILOT_DECIDES}
        return tuple(name for name, value in values.items() if value not in (None, False))

    @fields.field(_WINDOW, place="maintenance")
    def window(self) -> Window | None:
        """When GKE may upgrade; None where it may at any time."""
        block = of.known(self.read(_WINDOW))
        parts = (of.known(of.as_text(at(block, (name,)))) for name in ("startTime", "endTime", "recurrence"))
        return None if block is None else Window(*(part or "" for part in parts))


_LIMITS = {"cpu": "cpu", "memory": "memory_gb"}


class Limit(NamedTuple):
    """A limit of node auto-provisioning: vCPUs, GB of memory, chips or GPUs over all pools of the cluster."""

    resource: str
    maximum: int | None


def _limit(row: Any) -> Limit:
    return Limit(of.as_text(at(row, ("resourceType",))), of.as_whole(at(row, ("maximum",))))


class AutoProvisioningView(Settings):
    """Node auto-provisioning of a cluster; ``written`` says whether the defaults of its pools are written at all."""

    TYPES = (CLUSTER,)

    zones = fields.texts(f"{_AUTOSCALING}.autoProvisioningLocations", place="auto_provisioning.zones")
    written = fields.written(_DEFAULTS)
    disk_type = fields.text(f"{_DEFAULTS}.diskType", place="auto_provisioning.boot_disk.type")
    disk_gb = fields.whole(f"{_DEFAULTS}.diskSize", place="auto_provisioning.boot_disk.size_gb")
    strategy = fields.text(f"{_DEFAULTS}.upgradeSettings.strategy", place="auto_provisioning")
    max_surge = fields.whole(f"{_DEFAULTS}.upgradeSettings.maxSurge", place="auto_provisioning.max_surge")

    limits = fields.entries(f"{_AUTOSCALING}.resourceLimits", _limit, place="auto_provisioning")

    @classmethod
    def of(cls, planned: Planned, origin: Path) -> Iterator[Self]:
        """Yield the view where auto-provisioning is on, or may be."""
        enabled = of.as_flag(at(planned.inputs, (_AUTOSCALING, "enabled")))
        return iter(()) if enabled in (None, False) else super().of(planned, origin)

    @fields.field()
    def cluster(self) -> ClusterView:
        """The cluster itself."""
        return ClusterView(
            stack=self.stack, type=self.type, name=self.name, origin=self.origin, inputs=self.inputs,
            options=self.options,
        )  # fmt: skip

    def path(self, name: str) -> Path:
        """Return where a field stands; a limit, by the name of its resource, stands at a line of its own."""
        if name not in _LIMITS and self.known("limits") and any(each.resource == name for each in self.limits):
            return (*super().path("limits"), "accelerators", name)
        return (*super().path("limits"), _LIMITS[name]) if name in _LIMITS else super().path(name)

    def spelled(self, name: str) -> str:
        """Return the input; a limit is a row of its own, and the version is the cluster's."""
        limits = "minMasterVersion" if name == "version" else f"{_AUTOSCALING}.resourceLimits"
        return super().spelled(name) or limits

    def limit(self, resource: str) -> int | None:
        """Return the limit of a resource; None where it has none."""
        return next((each.maximum for each in self.limits if each.resource == resource), None)
