"""Volumes: StorageClasses of Filestore, and claims on classes that reach no network of ours."""

from __future__ import annotations

from collections.abc import Iterator

from training_platform.catalog.nearest import find_nearest
from training_platform.resources.filestore.classes import GKE_CLASSES
from training_platform.rules.registry import Draft, finding, rule
from training_platform.views.storage import BucketView, StorageClassView, VolumeClaimView

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


@rule("filestore-class", ruleset="volumes", facts=("FST-07",), source=f"{_CSI}; CSI #1346")
def filestore_class(each: StorageClassView) -> Iterator[Draft]:
    """Find a StorageClass with a parameter or connect mode that the Filestore CSI driver does not support."""
    if each.provisioner != PROVISIONER:
        return
    for key, value in each.parameters.items():
        if key not in PARAMETERS and not key.startswith("csi.storage.k8s.io/"):
            message = f"the Filestore CSI driver does not support parameter {key}"
            nearest = find_nearest(key, PARAMETERS)
            yield finding(each, "parameters", message, allowed=", ".join(sorted(PARAMETERS)), nearest=nearest)
        elif key == "connect-mode" and value not in CONNECT_MODES:
            message = f"the Filestore CSI driver does not support connect mode {value}"
            yield finding(each, "parameters", message, allowed=", ".join(CONNECT_MODES), nearest=CONNECT_MODES[1])


@rule(
    "filestore-multishare",
    ruleset="volumes",
    owner="kubernetes",
    source="Filestore CSI driver 2edb466, multishare_controller.go and multishare_defs.go, read 2026-06-24",
)
def filestore_multishare(each: StorageClassView) -> Iterator[Draft]:
    """Find shares of an instance on another tier than ENTERPRISE, or of a size that no instance is divided into."""
    if each.provisioner != PROVISIONER:
        return
    tier, shared = each.parameters.get("tier", "standard"), each.parameters.get("multishare") == "true"
    largest = each.largest_share
    if shared and tier.lower() != "enterprise":
        message = f"claims share instances of tier {tier}, which has one share"
        yield finding(each, "tier", message, allowed="ENTERPRISE", nearest="ENTERPRISE")
    if largest is not None and (not shared or largest not in SHARES):
        message = f"the largest share is {largest}" + ("" if shared else ", and no claims share an instance")
        yield finding(each, "largest_share", message, allowed=f"multishare, and {', '.join(SHARES)}")


@rule("bucket-hierarchical", ruleset="volumes", severity="warning", source=_HNS)
def bucket_hierarchical(bucket: BucketView) -> Iterator[Draft]:
    """Find a bucket with a hierarchical namespace that is to keep versions."""
    if bucket.hierarchical and bucket.versioning:
        message = "keeps versions of objects, which a hierarchical namespace does not support"
        yield finding(bucket, "versioning", message, allowed="one of the two", nearest="false")


@rule(
    "built-in-class",
    ruleset="volumes",
    severity="warning",
    facts=("FST-07",),
    source="comment of a third-party storage class; CSI #43",
)
def built_in_class(claim: VolumeClaimView) -> Iterator[Draft]:
    """Find a claim on a StorageClass of GKE, whose instances are in the VPC named default."""
    if claim.class_name in GKE_CLASSES:
        message = f"class {claim.class_name} creates Filestore instances in the VPC named default"
        allowed = "a StorageClass with parameter network, unless the cluster is in that VPC"
        yield finding(claim, "class_name", message, allowed=allowed)
