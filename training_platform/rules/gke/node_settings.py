"""Rules about nodes: machine types and their zones, images, drivers, GPU sharing, disks, labels, service accounts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches

from training_platform.catalog import MACHINE_TYPES
from training_platform.catalog.attachments import is_without_gpus
from training_platform.catalog.locations import MULTI_REGIONS, is_zone, nearest_first, region_of, serves
from training_platform.catalog.nearest import find_nearest
from training_platform.catalog.types import MachineType
from training_platform.config.reading.declaration import Draft, finding, rule
from training_platform.config.reading.finding import Severity
from training_platform.config.reading.section import enumeration
from training_platform.resources.resource_types import COMPUTE_CLASS
from training_platform.rules.documents.shapes import fields_at
from training_platform.rules.gke.clusters import MOST_TAGS
from training_platform.views.cluster import regions_of
from training_platform.views.node_pool import NodePoolView
from training_platform.views.storage import RepositoryView
from training_platform.views.whole_stack import Program

_SCHEMA = "terraform-provider-google-beta 93c65b2, node_config.go, read 2026-08-21"
_SYSCTLS = (
    "compute-class-api 8067eae, sysctls of a class's nodes, read 2026-11-21; GKE docs, node system configuration, "
    "give the same limits for pools (general knowledge, not read)"
)
_CA = "GKE cluster-autoscaler 7d25050, read 2026-08-21"
COS = "COS_CONTAINERD"
GVNIC_IMAGES = ("COS", "UBUNTU")
SHARING = ("TIME_SHARING", "MPS")
SHARING_CLIENTS = (2, 48)
SHUTDOWN_SECONDS = (10, 10_000)
LABEL_VALUE = 63
_WHOLE = re.compile(r"-?[0-9]{1,19}")
_LABEL_VALUE = re.compile(rf"(?=.{{0,{LABEL_VALUE}}}\Z)([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?")
RESERVED = ("kubernetes.io", "k8s.io")
_BELOW_RESERVED = tuple(f".{domain}" for domain in RESERVED)
OURS = {f"cloud.google.com/{name}" for name in ("compute-class", "gke-networking-dra-driver", "gke-queued")}
SPEED_DISK = "hyperdisk-balanced"
SMALL_GB = 30
PAGES_OF_SMALL = 0.6
PAGES_OF_LARGE = 0.8


@rule("node-image", ruleset="nodes", source=_SCHEMA)
def node_image(pool: NodePoolView) -> Iterator[Draft]:
    """Find a node feature without the feature or image that it requires, such as gVNIC, image streaming or COS."""
    image = pool.image_type or COS
    if pool.fast_socket and not pool.gvnic:
        yield finding(pool, "fast_socket", "fast socket needs gVNIC", allowed="gvnic enabled", nearest="gvnic enabled")
    if pool.gvnic and not image.upper().startswith(GVNIC_IMAGES):
        yield finding(
            pool, "image_type", f"gVNIC is not supported on image {image}", allowed="COS or Ubuntu", nearest=COS
        )
    if pool.image_streaming and image.upper() != COS:
        yield finding(
            pool, "image_type", f"image streaming is not supported on image {image}", allowed=COS, nearest=COS
        )
    if image.upper().startswith("UBUNTU") and pool.machine is not None and pool.machine.kind == "tpu":
        yield finding(
            pool, "image_type", f"image {image} has no drivers for TPUs (inferred)", allowed=COS, nearest=COS,
            severity="warning",
        )  # fmt: skip
    if pool.secondary_disks and not pool.image_streaming:
        message = "secondary boot disks need image streaming (gcfs_config)"
        yield finding(pool, "secondary_disks", message, allowed="gcfs_config enabled", nearest="gcfs_config enabled")


@rule("node-sysctls", ruleset="nodes", when="sysctls", source=_SYSCTLS)
def node_sysctls(pool: NodePoolView) -> Iterator[Draft]:
    """Find a kernel parameter that is out of range, or that GKE does not set.

    The latter is a warning, because lists of parameters become outdated.
    """
    bounds = fields_at(COMPUTE_CLASS, "spec.priorities.nodeSystemConfig.linuxNodeConfig.sysctls")
    for name, value in sorted(pool.sysctls.items()):
        if name not in bounds:
            message = f"{name} is not a kernel parameter that GKE sets on nodes"
            nearest = find_nearest(name, bounds)
            allowed = "parameters of a ComputeClass's linuxNodeConfig.sysctls"
            yield finding(pool, "sysctls", message, allowed=allowed, nearest=nearest, severity="warning")
            continue
        minimum = bounds[name].limits.minimum
        maximum = bounds[name].limits.maximum
        if not isinstance(minimum, int) or not isinstance(maximum, int):
            continue
        if not _WHOLE.fullmatch(value) or not minimum <= int(value) <= maximum:
            nearest_number = min(max(int(value), minimum), maximum) if _WHOLE.fullmatch(value) else minimum
            message = f"{name} is {value}"
            yield finding(pool, "sysctls", message, allowed=f"{minimum} to {maximum}", nearest=nearest_number)


@rule(
    "node-huge-pages",
    ruleset="nodes",
    source="arithmetic; GKE docs, node system configuration: 60 % below 30 GB, else 80 % (general knowledge, not read)",
)
def node_huge_pages(pool: NodePoolView) -> Iterator[Draft]:
    """Find huge pages that exceed a machine's memory. More than the percentage that GKE allows is a warning."""
    machine = MACHINE_TYPES.get(pool.machine_type or "")
    pages_gib = (pool.huge_pages_2m or 0) / 512 + (pool.huge_pages_1g or 0)
    if machine is None or not pages_gib:
        return
    share = PAGES_OF_SMALL if machine.memory_gb < SMALL_GB else PAGES_OF_LARGE
    max_gib = machine.memory_gb * share
    if pages_gib > max_gib:
        field = "huge_pages_1g" if pool.huge_pages_1g else "huge_pages_2m"
        message = f"huge pages need {pages_gib:g} GiB, but {machine.name} has {machine.memory_gb:g} GB of memory"
        severity: Severity | None = None if pages_gib > machine.memory_gb else "warning"
        yield finding(pool, field, message, allowed=f"at most {share:.0%} of it, {max_gib:g} GiB", severity=severity)


@rule("gpu-driver-image", ruleset="nodes", when="driver", severity="warning", source=f"{_SCHEMA}; (inferred)")
def gpu_driver_image(pool: NodePoolView) -> Iterator[Draft]:
    """Find driver version LATEST on an image that supports only the default version."""
    if pool.driver == "LATEST" and (pool.image_type or COS).upper() != COS:
        message = f"driver LATEST needs image {COS}, but the image is {pool.image_type}"
        yield finding(pool, "driver", message, allowed="DEFAULT", nearest="DEFAULT")


@rule("gpu-sharing", ruleset="nodes", source=f"{_CA}; {_SCHEMA}")
def gpu_sharing(pool: NodePoolView) -> Iterator[Draft]:
    """Find a GPU partition, sharing strategy or number of pods per GPU that is not supported."""
    machine = pool.machine
    accelerator = machine.accelerator if machine is not None and machine.kind == "gpu" else None
    if accelerator and pool.partition and pool.partition not in accelerator.partitions:
        allowed = ", ".join(accelerator.partitions) or "none"
        message = f"{accelerator.title} does not support partition {pool.partition}"
        yield finding(pool, "partition", message, allowed=allowed, nearest=next(iter(accelerator.partitions), None))
    if pool.sharing is not None and pool.sharing not in SHARING:
        message = f"GPU sharing strategy {pool.sharing} is unknown"
        yield finding(pool, "sharing", message, allowed=", ".join(SHARING), nearest=SHARING[0])
    clients = pool.sharing_clients
    low, high = SHARING_CLIENTS
    if clients is not None and not low <= clients <= high:
        nearest = min(max(clients, low), high)
        yield finding(
            pool, "sharing_clients", f"{clients} pods share a GPU", allowed=f"{low} to {high}", nearest=nearest
        )


@rule(
    "e2-features",
    ruleset="nodes",
    severity="warning",
    source="Compute docs, general-purpose machine family (general knowledge, not read)",
)
def e2_features(pool: NodePoolView) -> Iterator[Draft]:
    """Find features that E2 machines do not support, and an Intel CPU platform on AMD machines (unverified)."""
    machine = pool.machine_type or ""
    if machine.startswith("e2-"):
        features = {
            "local_ssd_count": pool.local_ssd_count and "local SSDs",
            "nested": pool.nested and "nested virtualization",
            "confidential": pool.confidential and "Confidential VMs",
            "huge_pages_1g": pool.huge_pages_1g and "huge pages of 1 GiB",
        }
        for field, feature in features.items():
            if feature:
                yield finding(pool, field, f"{machine} does not support {feature}", allowed="none, or another machine")
    elif machine.startswith(("n2d-", "t2d-", "c2d-")) and (pool.min_cpu_platform or "").startswith("Intel"):
        message = f"{machine} has AMD CPUs, not {pool.min_cpu_platform}"
        yield finding(pool, "min_cpu_platform", message, allowed="AMD Rome or AMD Milan", nearest="AMD Milan")


@rule("confidential-gpu", ruleset="nodes", source="Compute docs, accelerator-optimized machines, read 2026-04")
def confidential_gpu(pool: NodePoolView) -> Iterator[Draft]:
    """Find Confidential VMs on a machine type with TPUs or GPUs that does not support them."""
    machine = pool.machine
    kind = pool.confidential
    if kind and machine is not None and machine.accelerator and kind not in machine.confidential:
        message = f"{machine.name} does not support Confidential VMs with {kind}"
        yield finding(pool, "confidential", message, allowed=", ".join(machine.confidential) or "none")


@rule("boot-disk-settings", ruleset="nodes", source=f"{_SCHEMA}; {_CA}")
def boot_disk_settings(pool: NodePoolView) -> Iterator[Draft]:
    """Find a boot disk with performance settings or a storage pool that its type does not support.

    Document rules report a disk that is set both in ``boot_disk`` and in the older fields.
    """
    kind = pool.disk_type or "not set"
    if pool.provisioned and kind != SPEED_DISK:
        message = f"only {SPEED_DISK} supports provisioned IOPS and throughput, but the disk type is {kind}"
        yield finding(pool, "provisioned", message, allowed=SPEED_DISK, nearest=SPEED_DISK)
    if pool.storage_pools and not kind.startswith("hyperdisk"):
        message = f"storage pools support only Hyperdisk, but the disk type is {kind}"
        yield finding(pool, "storage_pools", message, allowed=SPEED_DISK, nearest=SPEED_DISK)


@rule("node-labels", ruleset="nodes", source=f"{_SCHEMA}, labels; Cluster Toolkit v1.95.0")
def node_labels(pool: NodePoolView) -> Iterator[Draft]:
    """Find node labels that Kubernetes reserves or refuses. Labels that GKE sets itself are a warning."""
    for key, value in pool.node_labels.items():
        prefix = key.partition("/")[0] if "/" in key else ""
        if prefix in RESERVED or prefix.endswith(_BELOW_RESERVED):
            yield finding(pool, "node_labels", f"label {key} is reserved by Kubernetes", allowed="your own prefix")
        elif prefix == "cloud.google.com" and key not in OURS:
            message = (
                f"GKE sets label {key} itself: GKE would refuse this label, or every preview would show it as a "
                f"change (inferred)"
            )
            yield finding(pool, "node_labels", message, allowed="your own prefix", severity="warning")
        if not _LABEL_VALUE.fullmatch(value):
            message = f"label {key} has the value {value!r}"
            allowed = f"at most {LABEL_VALUE} letters, digits, -, _ and ., with a letter or digit at both ends"
            nearest = re.sub(r"[^-A-Za-z0-9_.]", "-", value)[:LABEL_VALUE].strip("-_.")
            yield finding(pool, "node_labels", message, allowed=allowed, nearest=nearest)


@rule(
    "node-taints",
    ruleset="nodes",
    when="taints",
    owner="kubernetes",
    source="Kubernetes API, validation of a node's taints: key and effect together are unique (general knowledge)",
)
def node_taints(pool: NodePoolView) -> Iterator[Draft]:
    """Find a duplicate taint, for example because GKE adds the same taint to every GPU pool."""
    for taint in dict.fromkeys(pool.taints):
        if pool.taints.count(taint) > 1:
            message = f"the nodes already have taint {taint.key} with effect {taint.effect}"
            yield finding(pool, "taints", message, allowed="taints with other keys, or none")


@rule("node-tags", ruleset="nodes", when="tags", source=f"{_SCHEMA}, resource_manager_tags")
def node_tags(pool: NodePoolView) -> Iterator[Draft]:
    """Find a pool with more resource manager tags than nodes support."""
    if pool.tags > MOST_TAGS:
        message = f"the nodes have {pool.tags} resource manager tags"
        yield finding(pool, "tags", message, allowed=f"at most {MOST_TAGS}", nearest=MOST_TAGS)


@rule("graceful-shutdown", ruleset="nodes", when="shutdown_seconds", source=f"{_SCHEMA}, kubelet_config")
def graceful_shutdown(pool: NodePoolView) -> Iterator[Draft]:
    """Find a shutdown grace period on VMs that are not spot, or one that is out of range."""
    seconds = pool.shutdown_seconds
    low, high = SHUTDOWN_SECONDS
    if not seconds:
        return
    if not pool.spot:
        yield finding(
            pool, "shutdown_seconds", "only spot VMs support a shutdown grace period", allowed="none", nearest=0
        )
    elif not low <= seconds <= high:
        nearest = min(max(seconds, low), high)
        yield finding(
            pool, "shutdown_seconds", f"the grace period is {seconds} s", allowed=f"{low} to {high}", nearest=nearest
        )


_SOCKETS = 2
_GPUS_OF_TWO_SOCKETS = 8


@rule(
    "numa-policy",
    ruleset="nodes",
    when="numa_policy",
    owner="house",
    severity="warning",
    source="Kubernetes docs, topology manager; pytorch/ci-infra #696, about machines with 4 of 8 GPUs on each "
    "socket; inferred for Google's machines with 8 GPUs",
)
def numa_policy(pool: NodePoolView) -> Iterator[Draft]:
    """Find a kubelet setting with which pods on both sockets of a VM are refused.

    This includes all pods that request more than half of the VM's GPUs.
    """
    if pool.numa_policy != "single-numa-node":
        return
    machine = pool.machine
    if machine is not None and machine.kind == "gpu" and machine.chips >= _GPUS_OF_TWO_SOCKETS:
        message = (
            f"the kubelet refuses pods with more than {machine.chips // _SOCKETS} of the {machine.chips} GPUs, and "
            f"pods for which no socket has enough GPUs: these pods fail with TopologyAffinityError after Kueue has "
            f"admitted them"
        )
        yield finding(pool, "numa_policy", message, allowed="best-effort, restricted, none", nearest="best-effort")


_WHOLE_FAMILIES = frozenset(row.name.partition("-")[0] for row in MACHINE_TYPES.values() if row.kind != "cpu")
_ALIKE = 0.85  # a3-higpu-8g; not a5-highgpu-8g, which may be younger than the catalogue
_ZONES = "SkyPilot catalog v8 006059e; Cloud TPU docs, regions and zones, read 2026-11-21"


@rule(
    "machine-type-known",
    ruleset="machines",
    severity="warning",
    source="the catalogue: a machine type that is not in it can be neither counted nor checked",
)
def machine_type_known(pool: NodePoolView) -> Iterator[Draft]:
    """Find a node pool without a machine type, or with a machine type that is not in the catalogue.

    It is an error if the name seems misspelled. The catalogue contains every size of the families with accelerators.
    """
    name = pool.machine_type
    if name is None:
        yield finding(pool, "machine_type", "is missing: GKE would use e2-medium", allowed="a machine type")
    elif name not in MACHINE_TYPES:
        nearest = find_nearest(name, MACHINE_TYPES)
        cpus = is_without_gpus(name)
        unchecked = "this pool is not counted" if cpus else "this pool is neither checked nor counted"
        message = f"{name!r} is not in the catalogue, so {unchecked}"
        misspelt = name.partition("-")[0] in _WHOLE_FAMILIES and get_close_matches(name, MACHINE_TYPES, 1, _ALIKE)
        severity: Severity | None = "error" if misspelt else None
        allowed = enumeration(MACHINE_TYPES)
        yield finding(pool, "machine_type", message, allowed=allowed, nearest=nearest, severity=severity)


@rule("machine-zone", ruleset="machines", severity="warning", source=_ZONES)
def machine_zone(pool: NodePoolView) -> Iterator[Draft]:
    """Find a zone that is not known to offer the machine type. It is a warning, because zone lists become outdated."""
    machine = pool.machine
    if machine is None:
        return
    for zone in pool.zones or ((pool.location,) if is_zone(pool.location) else ()):
        if not listed(machine, zone):
            gpus = f" with {pool.accelerator_type}" if MACHINE_TYPES[machine.name].kind != machine.kind else ""
            message = (
                f"{machine.name}{gpus} is not listed in {zone}; the list may be older than the zone ({machine.source})"
            )
            allowed = where_offered(machine, region_of(zone)) or None
            nearest = next(iter(nearest_first(zone, machine.zones)), None)
            yield finding(pool, "zones", message, allowed=allowed, nearest=nearest)


@rule(
    "pool-zone",
    ruleset="machines",
    spoils=True,
    source="Cluster Toolkit v1.95.0, gke-node-pool; terraform-provider-google-beta 93c65b2, node_locations",
)
def pool_zone(pool: NodePoolView) -> Iterator[Draft]:
    """Find a pool's zone outside the cluster's region, and a TPU or GPU pool without zones."""
    machine = pool.machine
    region = region_of(pool.location)
    accelerated = machine is not None and machine.accelerator is not None
    outside = [zone for zone in pool.zones if region_of(zone) != region]
    everywhere = accelerated and not pool.zones and not is_zone(pool.location)
    nearest: str | None = None
    if machine is None or not accelerated:
        allowed = f"zones of {region}"
    else:
        offered = [zone for zone in machine.zones if region_of(zone) == region]
        allowed = enumeration(offered) or f"no known zone of {region}"
        nearest = next(iter(sorted(offered)), None)
        if not offered and machine.zones:
            allowed += f"; {where_offered(machine, region)}"
    if everywhere and machine is not None:
        message = (
            f"is missing: GKE would create {machine.name} in every zone of {region}, and apply node counts to each zone"
        )
        yield finding(pool, "zones", message, allowed=allowed, nearest=nearest)
    for zone in outside:
        message = f"{zone} is not in {region}, the region of the cluster"
        yield finding(pool, "zones", message, allowed=allowed, nearest=nearest)


def listed(machine: MachineType, zone: str) -> bool:
    """Return True if a zone is known to offer a machine type.

    If the catalogue lists only regions for the machine type, the region of the zone is looked up.
    """
    if machine.zones or not machine.regions:
        return zone not in machine.missing_zones and (not machine.zones or zone in machine.zones)
    return region_of(zone) in machine.regions


def where_offered(machine: MachineType, region: str) -> str:
    """Return which zones of a region offer a machine type, if any, and which other regions offer it."""
    here = enumeration([zone for zone in machine.zones if region_of(zone) == region])
    elsewhere = enumeration({*map(region_of, machine.zones), *machine.regions} - {region}, max_names=40)
    return "; ".join(part for part in (here, f"regions {elsewhere}" if elsewhere else "") if part)


@rule(
    "images-streamed",
    ruleset="nodes",
    severity="warning",
    across=True,
    owner="house",
    source="house rule: containers with images of 10 to 20 GB start at once; GKE docs, image streaming, limitations, "
    "read 2026-11-23",
)
def images_streamed(repository: RepositoryView, program: Program) -> Iterator[Draft]:
    """Find an image repository in another region than the nodes. They then pull whole images and do not stream them."""
    if repository.format != "DOCKER" or repository.mode not in (None, "STANDARD_REPOSITORY"):
        return
    # A remote repository of the same name caches the same images.
    locations = [other.location for other in program.all(RepositoryView) if other.repository == repository.repository]
    regions = regions_of(program)
    far = sorted(region for region in regions if not any(serves(location, region) for location in locations))
    if far:
        whole = next((multi for multi in MULTI_REGIONS if all(serves(multi, region) for region in regions)), None)
        caches = dict.fromkeys(
            next((multi for multi in MULTI_REGIONS if serves(multi, region)), region) for region in far
        )
        yield finding(
            repository, "location",
            f"is {repository.location}: nodes in {enumeration(far)} cannot stream its images, so they pull whole "
            f"images",
            allowed=f"their region or multi-region; for an existing repository, caches: [{', '.join(caches)}]",
            nearest=whole or f"{repository.location}, with caches: [{', '.join(caches)}]",
        )  # fmt: skip
