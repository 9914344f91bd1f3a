"""An environment stack: what the platform team owns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from training_platform.catalog.nearest import find_nearest
from training_platform.config.reading.conflicts import Conflict, refuse_conflicts
from training_platform.config.reading.section import (
    ChartName,
    Cidr,
    Email,
    FilestoreTierName,
    FormerName,
    HostName,
    ImageName,
    Labels,
    Location,
    Members,
    Name,
    ProjectId,
    Region,
    Section,
    Version,
    enumeration,
    unique,
)
from training_platform.config.spec.cluster import ClusterSpec
from training_platform.config.spec.node_pool import MOST_SLICES
from training_platform.config.spec.quota_request import QuotaRequest, RequestName


class FilestoreSpec(Section):
    """A Filestore instance; its capacity is in GiB, though the API's field is called ``capacityGb``.

    A change of location, tier, share name or protocol replaces the instance: all data is lost.
    """

    location: Location = Field(description="A zone or a region, as the tier demands.")
    tier: FilestoreTierName = "ZONAL"
    capacity_gib: int = Field(ge=1)
    share: str = Field(default="share", pattern=r"^[a-z][a-z0-9_]{0,15}$")
    protocol: str = Field(default="NFS_V3", pattern=r"^NFS_V(3|4_1)$")
    reserved_range: Cidr | None = Field(default=None, description="Address range; default: Google Cloud picks one.")
    deletion_protection: bool = Field(
        default=True, description="false lets a change replace or remove it, where the environment protects."
    )


class ChartOverride(Section):
    """Another version or place for a Helm chart, such as a mirror that a private cluster reaches."""

    version: Version | None = None
    chart: str | None = Field(default=None, description="An OCI reference, a path, or a name in the repository.")
    repository: str | None = None


class ImageRepositorySpec(Section):
    """The Artifact Registry repository for the platform's and the teams' images."""

    location: Region
    keep_versions: int = Field(default=20, ge=1, description="Versions of each image that clean-up always keeps.")


class AlertsSpec(Section):
    """Who is told of what Cloud Monitoring finds."""

    emails: Annotated[tuple[Email, ...], AfterValidator(unique)] = Field(
        default=(), description="Addresses that get every alert."
    )
    enabled: bool = True


class Environment(Section):
    """Everything of one environment: project, network, clusters with their pools, Filestore, in-cluster software."""

    project: ProjectId
    production: bool | None = Field(
        default=None,
        description="Whether the rules for production hold here and for the teams: true or false. A file has to say.",
    )
    renamed_from: FormerName = None
    labels: Labels = Field(default={}, description="On every resource, beside environment and managed-by.")
    deletion_protection: bool = Field(default=True, description="What holds data or capacity refuses deletion.")
    google_groups_domain: HostName | None = Field(
        default=None, description="Domain whose group gke-security-groups@ lets Google Groups have rights in clusters."
    )
    admins: Members = Field(default=(), description="May administer the clusters.")
    clusters: dict[Name, ClusterSpec] = Field(min_length=1)
    filestore: dict[Name, FilestoreSpec] = {}
    images: ImageRepositorySpec | None = None
    charts: dict[ChartName, ChartOverride] = {}
    node_images: dict[ImageName, str] = Field(
        default={}, description="Other places of the images that nodes with GPUDirect run, such as a mirror's."
    )
    priorities: dict[Name, int] = Field(
        default={"low": 100, "normal": 500, "high": 1000}, description="WorkloadPriorityClasses of Kueue, by value."
    )
    alerts: AlertsSpec = AlertsSpec()
    quota_requests: dict[RequestName, QuotaRequest] = Field(
        default={}, description="Limits to ask Google Cloud for; a request that is taken out stays with Google."
    )

    @model_validator(mode="after")
    def _fields_go_together(self) -> Environment:
        refuse_conflicts(self._conflicts())
        return self

    def _conflicts(self) -> Iterator[Conflict]:
        slices = 0
        for name, cluster in self.clusters.items():
            slices += sum(pool.slices for pool in cluster.node_pools.values())
            if cluster.notebooks and cluster.notebooks.filestore not in self.filestore:
                wanted = cluster.notebooks.filestore
                yield Conflict(
                    ("clusters", name, "notebooks", "filestore"),
                    f"{wanted!r} is not a Filestore instance of this environment",
                    enumeration(self.filestore) or "none is declared under filestore",
                    find_nearest(wanted, self.filestore),
                )
        if slices > MOST_SLICES:
            message = f"has {slices:,} slices and node pools in all clusters together"
            yield Conflict(("clusters",), message, f"at most {MOST_SLICES:,}")
