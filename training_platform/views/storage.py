"""Views of storage: Filestore and Managed Lustre instances, buckets, Kubernetes volumes. Field names end in units."""

from __future__ import annotations

from typing import Any, NamedTuple

from training_platform.resources import resource_types
from training_platform.resources.filestore import LOCATION, MOST
from training_platform.views import fields
from training_platform.views import inputs as of
from training_platform.views.view import Settings, View


class Export(NamedTuple):
    """An export of a share: the address ranges of its clients, and whether their root becomes the anonymous user."""

    ranges: tuple[str, ...]
    squashed: bool

    @classmethod
    def of(cls, entry: Any) -> Export:
        """Return an entry of ``nfsExportOptions`` as an export."""
        return cls(of.as_texts(of.at(entry, ("ipRanges",))), of.at(entry, ("squashMode",)) == "ROOT_SQUASH")


class FilestoreView(View):
    """A Filestore instance with its one share. Its capacity is in GiB (the API's ``capacityGb``)."""

    TYPES = (resource_types.FILESTORE,)

    project = fields.project()
    instance = fields.text("name", place="")
    tier = fields.required("tier")
    location = fields.located("location", "zone")
    capacity_gib = fields.size("fileShares.capacityGb")
    protocol = fields.text("protocol")
    connect_mode = fields.text("networks.connectMode", place="connection")
    reserved_range = fields.text("networks.reservedIpRange")
    deletion_protection = fields.flag("deletionProtectionEnabled", default=False)  # the provider's default
    labels = fields.labels("labels")
    encrypted = fields.written("kmsKeyName", place="")
    iops_per_tb = fields.whole("performanceConfig.iopsPerTb.maxIopsPerTb", place="iops_per_tib")
    fixed_iops = fields.whole("performanceConfig.fixedIops.maxIops", place="iops")
    exports = fields.entries("fileShares.nfsExportOptions", Export.of)
    directory_services = fields.written("directoryServices", place="")
    network = fields.reference("networks.network", resource_types.NETWORK, place="")

    @fields.field("networks.network", place="")
    def network_project(self) -> str | None:
        """The project in the name of the instance's network, or None if the name contains no project."""
        network = of.as_text(self.read("networks.network"))
        parts = network.split("/") if isinstance(network, str) else ()  # an unknown one counts as the program's own
        return parts[parts.index("projects") + 1] if "projects" in parts[:-1] else None


class LustreView(View):
    """A Managed Lustre instance. Its capacity is in GiB, its throughput in MB/s per TiB."""

    TYPES = (resource_types.LUSTRE,)

    project = fields.project()
    location = fields.required("location")
    capacity_gib = fields.size("capacityGib")
    mbps_per_tib = fields.whole("perUnitStorageThroughput", place="mbps_per_tib")
    network = fields.reference("network", resource_types.NETWORK, place="")


class SnapshotView(View):
    """A snapshot of a Filestore instance."""

    TYPES = (resource_types.FILESTORE_SNAPSHOT,)

    instance = fields.reference("instance", resource_types.FILESTORE, place="snapshots")


class EncryptedView(View):
    """A resource, other than a pool's disks, that a Cloud KMS key may encrypt.

    ``encryption`` is None for Google's own key.
    """

    TYPES = (
        resource_types.BUCKET,
        resource_types.CLUSTER,
        resource_types.FILESTORE,
        resource_types.LUSTRE,
        resource_types.METADATA_STORE,
        resource_types.PERSISTENT_RESOURCE,
        resource_types.REPOSITORY,
        resource_types.TENSORBOARD,
        resource_types.WORKBENCH,
    )

    location = fields.located("location", "region", "zone")
    encryption = fields.text(
        "kmsKeyName",
        "kmsKey",
        "databaseEncryption.keyName",
        "encryption.defaultKmsKeyName",
        "encryptionSpec.kmsKeyName",
        "gceSetup.bootDisk.kmsKey",
        "gceSetup.dataDisks.kmsKey",
    )


class RepositoryView(View):
    """An Artifact Registry repository. A repository with the same id in another location may have the same images."""

    TYPES = (resource_types.REPOSITORY,)

    location = fields.required("location")
    repository = fields.text("repositoryId", place="")
    format = fields.text("format", place="")
    mode = fields.text("mode", place="")


class BucketView(View):
    """A Cloud Storage bucket. With ``force_destroy``, its objects are deleted with it."""

    TYPES = (resource_types.BUCKET,)

    location = fields.required("location")
    force_destroy = fields.flag("forceDestroy", default=False, place="")
    versioning = fields.flag("versioning.enabled", default=False)
    hierarchical = fields.flag("hierarchicalNamespace.enabled", default=False, place="hierarchical_namespace")


class StorageClassView(Settings):
    """A Kubernetes StorageClass."""

    TYPES = (resource_types.STORAGE_CLASS,)

    class_name = fields.text("metadata.name")
    provisioner = fields.required("provisioner")
    parameters = fields.texts_by_key("parameters")
    tier = fields.text("parameters.tier")
    largest_share = fields.text("parameters.max-volume-size", place="largest_share_gib")
    most_gib = fields.whole(f"metadata.annotations.{MOST}", place="teams")
    location = fields.required(f"metadata.annotations.{LOCATION}", place="")


class VolumeClaimView(Settings):
    """A PersistentVolumeClaim; ``class_name`` is None for the cluster's default class."""

    TYPES = (resource_types.PERSISTENT_VOLUME_CLAIM,)

    class_name = fields.text("spec.storageClassName")
