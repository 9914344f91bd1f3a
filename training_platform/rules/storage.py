"""Rules about boot disks, local SSDs, locations of Cloud KMS keys, StorageClasses and volume claims."""

from __future__ import annotations

from collections.abc import Iterator

from training_platform.catalog import BOOT_DISK_LIMITS, MACHINE_TYPES, REGIONS
from training_platform.catalog.locations import region_of
from training_platform.catalog.nearest import find_nearest
from training_platform.catalog.refused_values import refused_disk_size, refused_disk_type, vertex_disk_types
from training_platform.config.reading.declaration import Draft, finding, rule
from training_platform.config.reading.finding import Severity
from training_platform.config.reading.section import enumeration
from training_platform.resources.filestore import GKE_CLASSES
from training_platform.views.node_pool import NodePoolView
from training_platform.views.storage import BucketView, EncryptedView, FilestoreView, StorageClassView, VolumeClaimView
from training_platform.views.vertex import PersistentPoolView

_DISKS_GO = "GKE cluster-autoscaler 7d25050, disks.go, read 2026-08-21"
_VERTEX = "Vertex AI docs, configure compute, and machine_resources.proto, read 2026-08-22"


@rule("boot-disk-size", ruleset="disks", source=f"{_DISKS_GO}; terraform-provider-google-beta 93c65b2, disk_size_gb")
def boot_disk_size(pool: NodePoolView) -> Iterator[Draft]:
    """Find a boot disk that is smaller or larger than GKE allows, in GB as the API counts them."""
    if pool.disk_gb is not None and (problem := refused_disk_size(pool.disk_gb, BOOT_DISK_LIMITS["gke"])):
        yield finding(pool, "disk_gb", **problem._asdict())


@rule("vertex-boot-disk-size", ruleset="disks", source=_VERTEX)
def vertex_boot_disk_size(pool: PersistentPoolView) -> Iterator[Draft]:
    """Find a boot disk that is smaller or larger than Vertex AI allows, in GB as its API counts them."""
    if pool.disk_gb is not None and (problem := refused_disk_size(pool.disk_gb, BOOT_DISK_LIMITS["vertex"])):
        yield finding(pool, "disk_gb", **problem._asdict())


@rule("vertex-boot-disk-written", ruleset="disks", severity="warning", source=f"{_VERTEX}; gcloud reference")
def vertex_boot_disk_written(pool: PersistentPoolView) -> Iterator[Draft]:
    """Find a persistent resource without a disk size or type. Sources disagree on the defaults, and jobs must match."""
    if pool.disk_gb is None:
        yield finding(pool, "disk_gb", "is not written", allowed="a size in GB", nearest=100)
    if pool.disk_type is None:
        yield finding(
            pool, "disk_type", "is not written", allowed=", ".join(vertex_disk_types(pool.machine)), nearest="pd-ssd"
        )


@rule("boot-disk-type", ruleset="disks", source=_DISKS_GO)
def boot_disk_type(pool: NodePoolView) -> Iterator[Draft]:
    """Find a boot disk type that the machine type does not support. Autoscaled pools would fail only at a scale-up."""
    machine = MACHINE_TYPES.get(pool.machine_type or "")
    if pool.disk_type is None or machine is None:
        return
    if problem := refused_disk_type(machine.name, pool.disk_type, machine.boot_disk_types):
        # The catalogue has CPU machines' disks from auto-provisioning, and owners deploy n2d with Hyperdisk.
        disputed = machine.kind == "cpu" or "boot_disk_types" in machine.unverified
        yield finding(pool, "disk_type", **problem._asdict(), severity="warning" if disputed else None)


@rule("vertex-boot-disk-type", ruleset="disks", source=_VERTEX)
def vertex_boot_disk_type(pool: PersistentPoolView) -> Iterator[Draft]:
    """Find a boot disk type that Vertex AI does not support on this machine type."""
    machine = pool.machine
    if pool.disk_type is None or machine is None:
        return
    if problem := refused_disk_type(machine.name, pool.disk_type, vertex_disk_types(machine)):
        yield finding(pool, "disk_type", **problem._asdict())


@rule(
    "local-ssd-count",
    ruleset="disks",
    source="Cluster Toolkit v1.95.0, disk_definitions.tf; GKE cluster-autoscaler 7d25050, read 2026-08-21",
)
def local_ssd_count(pool: NodePoolView) -> Iterator[Draft]:
    """Find a number of local SSDs that the machine type does not support, or no number for a type with bundled SSDs."""
    machine = pool.machine
    count = pool.local_ssd_count
    if machine is None or MACHINE_TYPES[machine.name].kind == "cpu":
        return  # the catalogue does not have the counts of CPU machines
    bundled = machine.local_ssd.bundled
    allowed = (bundled,) if bundled else (0, *machine.local_ssd.allowed)
    if count is None and bundled:
        ignored = [field.lower() for field in pool.ignored or () if f"{field}.".startswith("nodeConfig.")]
        if not any(field == "nodeconfig" or "ssd" in field for field in ignored):
            message = (
                "the number of local SSDs is not set; the API sets a number, so later previews would replace the pool"
            )
            yield finding(pool, "local_ssd_count", message, allowed=bundled, nearest=bundled, severity="warning")
    elif count is not None and count not in allowed:
        nearest = min(allowed, key=lambda fitting: abs(fitting - count))
        message = f"{machine.name} does not support {count} local SSDs"
        yield finding(pool, "local_ssd_count", message, allowed=", ".join(map(str, allowed)), nearest=nearest)


@rule(
    "local-ssd-forms",
    ruleset="disks",
    severity="warning",
    source="gcloud's flags of node pools exclude each other, read 2026-11-22; the behaviour of the API is (inferred)",
)
def local_ssd_forms(pool: NodePoolView) -> Iterator[Draft]:
    """Find local SSDs set in several ways: ephemeral storage, raw blocks, and the older count exclude each other."""
    forms = [name for name in _FORMS if getattr(pool, name)]
    if len(forms) > 1:
        requested = " and ".join(_FORMS[name] for name in forms)
        message = f"local SSDs are requested as {requested}, but a pool can have only one form"
        yield finding(pool, forms[1], message, allowed="one form", nearest=_FORMS[forms[0]])
    if pool.data_cache_ssds and pool.data_cache_ssds > (pool.ephemeral_ssds or pool.data_cache_ssds):
        message = f"{pool.data_cache_ssds} local SSDs are for the data cache, but the nodes have {pool.ephemeral_ssds}"
        maximum = pool.ephemeral_ssds
        yield finding(pool, "data_cache_ssds", message, allowed=f"at most {maximum}", nearest=maximum)


_FORMS = {"ephemeral_ssds": "ephemeral storage", "block_ssds": "raw blocks", "legacy_ssds": "the older count"}


_PAGES = "Filestore docs, CMEK, and Artifact Registry docs, CMEK, both read 2026-11-22 as of 2026-04"
WITHOUT_KEYS = ("BASIC_HDD", "BASIC_SSD", "STANDARD", "PREMIUM")
WITH_KEYS = ("ZONAL", "REGIONAL", "ENTERPRISE")


@rule(
    "key-location",
    ruleset="encryption",
    source=f"{_PAGES}; Vertex AI, encryption_spec.proto; for buckets and clusters (general knowledge)",
)
def key_location(resource: EncryptedView) -> Iterator[Draft]:
    """Find a key in another region than the resource that it encrypts. A zonal resource belongs to the zone's region.

    Services differ on multi-region and global keys, so these are warnings.
    """
    if resource.encryption is not None:
        yield from _elsewhere(resource, resource.location, resource.encryption)


@rule(
    "disk-key-location",
    ruleset="encryption",
    source="gcloud reference, compute disks update-kms-key, read 2026-11-22; for the region (general knowledge)",
)
def disk_key_location(pool: NodePoolView) -> Iterator[Draft]:
    """Find a key in another region than the boot disks that it encrypts. Disks also accept a global key."""
    if pool.encryption is not None and _location(pool.encryption) != "global":
        yield from _elsewhere(pool, pool.location, pool.encryption)


@rule("filestore-key", ruleset="encryption", source="Filestore docs, CMEK, read 2026-11-22")
def filestore_key(instance: FilestoreView) -> Iterator[Draft]:
    """Find a key on a Filestore tier that does not support keys."""
    if instance.encrypted and instance.tier in WITHOUT_KEYS:
        message = f"{instance.tier} does not support your own keys"
        yield finding(instance, "tier", message, allowed=enumeration(WITH_KEYS), nearest=WITH_KEYS[0])


def _location(key: str) -> str:
    """Return the location in a Cloud KMS key's name, or "" for a name of another form."""
    before, _, after = key.partition("/locations/")
    return after.partition("/")[0] if before else ""


def _elsewhere(view: EncryptedView | NodePoolView, location: str, key: str) -> Iterator[Draft]:
    key_region = _location(key)
    region = region_of(location.lower())  # a bucket's multi-region is in capitals
    if key_region and key_region != region:
        message = f"{view.name} is in {region}, but its key is in {key_region}"
        severity: Severity = "error" if key_region in REGIONS else "warning"
        nearest = key.replace(f"/locations/{key_region}/", f"/locations/{region}/")
        allowed = f"a key in {region}"
        yield finding(view, "encryption", message, allowed=allowed, nearest=nearest, severity=severity)


_HNS = "Cloud Storage docs, hierarchical namespace, limitations: no object versioning (general knowledge, not read)"
_CSI = "Filestore CSI driver 2edb466, parameters, read 2026-06-24"
PROVISIONER = "filestore.csi.storage.gke.io"
SHARES = ("128Gi", "256Gi", "512Gi", "1024Gi")
CONNECT_MODES = ("DIRECT_PEERING", "PRIVATE_SERVICE_ACCESS")
PARAMETERS = frozenset({
    "tier", "network", "connect-mode", "reserved-ipv4-cidr", "reserved-ip-range", "multishare",
    "instance-storageclass-label", "max-volume-size", "instance-encryption-kms-key", "nfs-export-options-on-create",
    "protocol", "labels", "resource-tags", "mount-options",
})  # fmt: skip


@rule("filestore-class", ruleset="volumes", source=f"{_CSI}; CSI #1346")
def filestore_class(view: StorageClassView) -> Iterator[Draft]:
    """Find a StorageClass with a parameter or connect mode that the Filestore CSI driver does not support."""
    if view.provisioner != PROVISIONER:
        return
    for key, value in view.parameters.items():
        if key not in PARAMETERS and not key.startswith("csi.storage.k8s.io/"):
            message = f"the Filestore CSI driver does not support parameter {key}"
            nearest = find_nearest(key, PARAMETERS)
            yield finding(view, "parameters", message, allowed=", ".join(sorted(PARAMETERS)), nearest=nearest)
        elif key == "connect-mode" and value not in CONNECT_MODES:
            message = f"the Filestore CSI driver does not support connect mode {value}"
            yield finding(view, "parameters", message, allowed=", ".join(CONNECT_MODES), nearest=CONNECT_MODES[1])


@rule(
    "filestore-multishare",
    ruleset="volumes",
    owner="kubernetes",
    source="Filestore CSI driver 2edb466, multishare_controller.go and multishare_defs.go, read 2026-06-24",
)
def filestore_multishare(view: StorageClassView) -> Iterator[Draft]:
    """Find multishare on a tier other than ENTERPRISE, or with a share size that no instance supports."""
    if view.provisioner != PROVISIONER:
        return
    tier = view.parameters.get("tier", "standard")
    shared = view.parameters.get("multishare") == "true"
    largest = view.largest_share
    if shared and tier.lower() != "enterprise":
        message = f"claims would share instances of tier {tier}, but an instance of this tier has only one share"
        yield finding(view, "tier", message, allowed="ENTERPRISE", nearest="ENTERPRISE")
    if largest is not None and (not shared or largest not in SHARES):
        message = f"the largest share is {largest}" + ("" if shared else ", but multishare is off")
        yield finding(view, "largest_share", message, allowed=f"multishare, and {', '.join(SHARES)}")


@rule("bucket-hierarchical", ruleset="volumes", severity="warning", source=_HNS)
def bucket_hierarchical(bucket: BucketView) -> Iterator[Draft]:
    """Find a bucket with a hierarchical namespace and object versioning, which exclude each other."""
    if bucket.hierarchical and bucket.versioning:
        message = "keeps old versions of objects, which a hierarchical namespace does not support"
        yield finding(bucket, "versioning", message, allowed="one of the two", nearest="false")


@rule(
    "built-in-class",
    ruleset="volumes",
    severity="warning",
    source="comment in a third-party storage class; CSI #43",
)
def built_in_class(claim: VolumeClaimView) -> Iterator[Draft]:
    """Find a claim on one of GKE's StorageClasses, which create instances in the VPC named default."""
    if claim.class_name in GKE_CLASSES:
        message = f"class {claim.class_name} creates Filestore instances in the VPC named default"
        allowed = "a StorageClass with the parameter network, unless the cluster is in the VPC `default`"
        yield finding(claim, "class_name", message, allowed=allowed)
