"""An environment stack, which the platform team owns."""

from collections.abc import Iterator, Mapping
from datetime import date
from ipaddress import ip_network
from typing import Annotated, ClassVar, Final, Literal, Self

from pydantic import AfterValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from training_platform.catalog import REGIONS, ZONES
from training_platform.catalog.locations import MULTI_REGIONS, region_of, serves
from training_platform.catalog.nearest import find_nearest
from training_platform.config.model.cluster import ClusterSpec
from training_platform.config.model.node_pool import MOST_SLICES
from training_platform.config.model.queues import CohortSpec, cohort_conflicts
from training_platform.config.model.storage import DataSetSpec, FilestoreSpec, LustreSpec
from training_platform.config.reading.finding import Path
from training_platform.config.reading.section import (
    CURRENCY,
    DIGEST,
    DOMAIN,
    KMS_KEY,
    NOTHING,
    QUOTA_ID,
    REGISTRY_URL,
    REQUEST_NAME,
    RESERVATION_NAME,
    SERVICE,
    ChartName,
    Cidr,
    Consistent,
    Email,
    FormerName,
    HostName,
    ImageLocation,
    ImageName,
    Labels,
    Members,
    Name,
    Problem,
    ProjectId,
    Region,
    Section,
    Version,
    enumeration,
    unique,
    unknown_name,
)


def key_region(key: str) -> str:
    """Return the location of a key, which is part of its name: ``projects/*/locations/{location}/keyRings/*/...``."""
    return key.split("/")[3]


def _one_per_region(keys: tuple[str, ...]) -> tuple[str, ...]:
    regions = [key_region(key) for key in keys]
    for region in regions:
        if region not in REGIONS and region not in MULTI_REGIONS:
            raise unknown_name("region", region, REGIONS, REGIONS)
    if twice := sorted({region for region in regions if regions.count(region) > 1}):
        raise PydanticCustomError("twice", f"has several keys in {', '.join(twice)}", {"allowed": "one key per region"})
    return keys


class EncryptionSpec(Section):
    """Keys of Cloud KMS for disks, buckets, images, Filestore and Vertex AI.

    Adding or changing a key replaces most of these resources.
    """

    keys: Annotated[
        tuple[Annotated[str, Field(pattern=KMS_KEY)], ...],
        AfterValidator(_one_per_region),
        Field(
            min_length=1,
            description="One key in each region that the environment and its teams use.",
            examples=[["projects/example-keys/locations/us-central1/keyRings/training/cryptoKeys/data"]],
        ),
    ]

    @property
    def projects(self) -> frozenset[str]:
        """The projects that contain the keys."""
        return frozenset(key.split("/")[1] for key in self.keys)

    @property
    def by_region(self) -> dict[str, str]:
        """The keys, keyed by the region of the data that each one encrypts."""
        return {key_region(key): key for key in self.keys}


class Destination(Consistent):
    """Addresses or a host that pods of teams may connect to, in addition to each other and Google's APIs."""

    cidr: Cidr | None = Field(default=None, description="Address range.", examples=["203.0.113.0/24"])
    host: str | None = Field(
        default=None,
        pattern=DOMAIN,
        description="A host name. `*.` matches exactly one label: neither the name itself nor names with more "
        "labels. Only "
        "in clusters with fqdn_policies.",
        examples=["api.wandb.ai", "*.example.com"],
    )
    ports: tuple[Annotated[int, Field(ge=1, le=65_535)], ...] = Field(
        default=(443,), min_length=1, description="Ports of the destination; default: only 443."
    )
    protocol: Literal["TCP", "UDP"] = Field(default="TCP", description="Protocol of the ports.")

    def conflicts(self) -> Iterator[Problem]:
        """Yield a problem unless exactly one of addresses and host name is set."""
        if (self.cidr is None) == (self.host is None):
            message = "has neither cidr nor host" if self.cidr is None else "has both cidr and host"
            yield Problem((), message, allowed="one of cidr and host")

    def covers(self, host: str) -> bool:
        """Return True if a host is part of the destination. `*` matches one label.

        Source: GKE docs, FQDN network policies.
        """
        if self.host is None or not self.host.startswith("*."):
            return host == self.host
        return host.partition(".")[2] == self.host.removeprefix("*.")


Destinations = tuple[Destination, ...]
NFS_PORT: Final = 2049  # of every version; the other ports of version 3 lead to no file without it
_PRIVATE: Final = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")  # of which Google Cloud picks addresses
_NFS_ALLOWED: Final = "other ports, or addresses outside reserved_range and private_services_range"
KUBELET_PORTS: Final = (10250, 10255)  # Kubernetes docs, ports and protocols; GKE docs, read-only port; read 2026-11-29


class ExistingNetwork(Section):
    """An existing VPC. Its owner manages its subnets, routers and NAT gateways."""

    name: str = Field(pattern=RESERVATION_NAME, description="Name of the VPC.", examples=["shared-vpc"])
    project: ProjectId | None = Field(
        default=None, description="Host project of a Shared VPC; default: the environment's project."
    )
    grant_roles: bool = Field(
        default=False,
        description="Grants the service agents of GKE and Vertex AI their roles in the host project. false: its "
        "owner does that.",
    )


LEFT_TO_GOOGLE = ("user", "resource")
"""Dimensions that a quota preference never limits to one value. Source: pulumi-gcp 10.2.0, SQuotaPreference."""


def _no_foreign_dimension(value: dict[str, str]) -> dict[str, str]:
    if foreign := sorted(set(value) & set(LEFT_TO_GOOGLE)):
        context = {"allowed": "region, zone, and dimensions of the quota, such as gpu_family", "nearest": None}
        raise PydanticCustomError("dimension", f"a limit cannot be requested for a single {foreign[0]}", context)
    for place, locations in (("region", REGIONS), ("zone", ZONES)):
        if (name := value.get(place)) and name not in locations:
            raise unknown_name(place, name, locations, locations)
    return value


RequestName = Annotated[str, Field(pattern=REQUEST_NAME)]
"""The key of a request. It may be longer than other names, since it contains a quota id."""
PLACES = ("region", "zone")


class QuotaRequest(Section):
    """A quota limit to request, in the format of the Cloud Quotas API. ``quota plan`` prints the needed requests.

    Checks count the limit once Google has granted it and a snapshot contains it. A request cannot be withdrawn: if you
    remove it, Google keeps the preference and the limit.
    """

    service: str = Field(pattern=SERVICE, description="Service of the quota.", examples=["compute.googleapis.com"])
    quota_id: str = Field(pattern=QUOTA_ID, description="Quota id.", examples=["CPUS-per-project-region"])
    dimensions: Annotated[dict[str, str], AfterValidator(_no_foreign_dimension)] = Field(
        default=NOTHING,
        description="region or zone, and other dimensions of the quota; no dimensions for the whole project.",
        examples=[{"region": "us-central1", "gpu_family": "NVIDIA_H100"}],
    )
    value: int = Field(
        ge=-1, description="The limit to request, in the unit of the quota; -1 is unlimited.", examples=[64]
    )
    justification: str = Field(
        min_length=1, description="Reason, for Google's reviewers.", examples=["Pretraining of the vision models"]
    )
    contact: Email = Field(
        description="E-mail address for Google's questions, of an account that may change the quotas of the project."
    )
    ignore_safety_check: Literal["QUOTA_DECREASE_BELOW_USAGE", "QUOTA_DECREASE_PERCENTAGE_TOO_HIGH"] | None = Field(
        default=None,
        description="Safety check to skip for a decrease; default: none, and Google refuses an unsafe decrease.",
    )

    @property
    def place(self) -> str:
        """The zone or region of the limit, or "" for the whole project or all locations."""
        return self.dimensions.get("zone") or self.dimensions.get("region") or ""

    @property
    def other_dimensions(self) -> tuple[tuple[str, str], ...]:
        """The dimensions of the quota other than the location, in order."""
        return tuple(sorted((name, value) for name, value in self.dimensions.items() if name not in PLACES))


class BudgetSpec(Section):
    """A Cloud Billing budget for all costs that have the label of a team or an environment. It only notifies people."""

    a_month: int = Field(ge=1, description="Amount for each calendar month.", examples=[5000])
    currency: str = Field(
        default="USD",
        pattern=CURRENCY,
        description="Currency of the billing account; Google Cloud refuses other currencies.",
        examples=["EUR"],
    )
    alert_at_percent: Annotated[tuple[Annotated[int, Field(ge=1)], ...], AfterValidator(unique)] = Field(
        default=(50, 90, 100), min_length=1, description="Percentages of the amount at which people are notified."
    )
    emails: Annotated[tuple[Email, ...], AfterValidator(unique)] = Field(
        default=(),
        max_length=5,
        description="E-mail addresses to notify, at most 5, in addition to the administrators of the billing account.",
        examples=[["vision-leads@example.com"]],
    )


# Up to a slash, so that no other registry or repository begins with it.
ImageSource = Annotated[str, Field(pattern=r"^[a-z0-9.-]+(:[0-9]+)?/([a-z0-9._-]+/)*$")]


class ChartOverride(Consistent):
    """Another version or source for a Helm chart, such as a mirror that a private cluster can reach."""

    version: Version | None = Field(
        default=None, description="Version of the chart, in quotes; default: the version in the catalogue."
    )
    chart: str | None = Field(
        default=None,
        description="An OCI reference, a path, or a name in the repository; default: the chart in the catalogue.",
        examples=["oci://us-docker.pkg.dev/example-train/charts/kueue"],
    )
    repository: str | None = Field(
        default=None, description="URL of the chart repository.", examples=["https://charts.example.com"]
    )
    digest: str | None = Field(
        default=None,
        pattern=DIGEST,
        description="Digest of the chart, only for an OCI reference. Another package with the same version is then "
        "refused.",
        examples=[f"sha256:{'0' * 64}"],
    )
    ready_minutes: int = Field(
        default=10,
        ge=1,
        le=120,
        description="Minutes within which the chart's pods have to be ready. Otherwise a first installation is "
        "removed, and an upgrade is rolled back.",
    )

    def conflicts(self) -> Iterator[Problem]:
        """Yield a problem for a digest if the chart is not in a registry that supports digests."""
        if self.digest and (self.repository or not (self.chart or "oci://").startswith("oci://")):
            message = "needs an OCI reference: charts in chart repositories and folders have no digest"
            yield Problem(("digest",), message, allowed="chart: oci://..., or no digest")


class ImageRepositorySpec(Consistent):
    """The Artifact Registry repository for images of the platform and the teams. A change of location replaces it."""

    location: ImageLocation = Field(
        description="Region of the repository, or us, europe or asia. Nodes can stream images only from their own "
        "region or multi-region.",
        examples=["us"],
    )
    caches: Annotated[tuple[ImageLocation, ...], AfterValidator(unique)] = Field(
        default=(),
        description="Further regions or multi-regions; each gets a remote repository that caches the images that "
        "nodes pull there.",
        examples=[["europe-west4"]],
    )
    remotes: dict[Name, Annotated[str, Field(pattern=REGISTRY_URL)]] = Field(
        default=NOTHING,
        description="Registries of other owners, keyed by name. Each location gets a remote repository for each "
        "registry.",
        examples=[{"docker-hub": "https://registry-1.docker.io"}],
    )
    keep_versions: int = Field(
        default=20, ge=1, description="Number of versions that the clean-up keeps of each image."
    )

    def conflicts(self) -> Iterator[Problem]:
        """Yield a problem for a cache that is declared in the repository's own location."""
        if self.location in self.caches:
            path = ("caches", self.caches.index(self.location))
            yield Problem(path, "is the location of the repository itself", allowed="another location, or no cache")

    @property
    def locations(self) -> tuple[str, ...]:
        """All locations of the repository, starting with the location of the images themselves."""
        return (self.location, *self.caches)

    def nearest(self, region: str) -> str:
        """Return the location from which nodes of a region pull: a cache that serves it, else where the images are."""
        return next((location for location in self.locations if serves(location, region)), self.location)


class RetiredSpec(Section):
    """The end of a stack. After an approval, pipelines destroy its resources, except sections in ``keeps``.

    Then delete its file.
    """

    since: date = Field(description="First day on which pipelines may destroy the stack.", examples=["2027-01-31"])
    keeps: Annotated[tuple[str, ...], AfterValidator(unique)] = Field(
        default=(),
        description="Sections of this file whose resources are kept. Google Cloud continues to bill them, and Pulumi "
        "no longer manages them.",
        examples=[["buckets.checkpoints"]],
    )
    paid_by: Email | None = Field(default=None, description="Address of the person who pays for the kept resources.")

    @model_validator(mode="after")
    def _somebody_pays(self) -> Self:
        if self.keeps and self.paid_by is None:
            raise ValueError("keeps needs paid_by, because kept resources are still billed")
        return self

    def keeps_section(self, path: str) -> bool:
        """Return True if the resources of a section are kept. ``path`` is its dotted path."""
        return any(path == kept or path.startswith(f"{kept}.") for kept in self.keeps)


class AlertsSpec(Section):
    """Alerts of Cloud Monitoring, and their recipients."""

    emails: Annotated[tuple[Email, ...], AfterValidator(unique)] = Field(
        default=(), description="E-mail addresses that receive every alert."
    )
    enabled: bool = Field(default=True, description="false creates no alert policies.")
    undocumented: bool = Field(
        default=False,
        description="true also creates alerts on undocumented metrics: docs/reference/alerts.md.",
    )


class Environment(Consistent):
    """An environment stack: project, network, clusters with their node pools, Filestore, in-cluster software."""

    REMOVED: ClassVar[Mapping[str, str]] = {"metadata_stores": "a metadata store in own_resources.py: docs/vertex.md"}
    project: ProjectId
    production: bool | None = Field(
        default=None,
        description="Whether the rules for production apply to the environment and its teams. This field has no "
        "default.",
    )
    renamed_from: FormerName = None
    retired: RetiredSpec | None = Field(default=None, description="How the stack is retired; default: it is not.")
    labels: Labels = Field(
        default=NOTHING,
        description="Labels of resources, in addition to environment and managed-by. Filestore instances of volume "
        "claims do not get them.",
    )
    deletion_protection: bool = Field(
        default=True,
        description="Protects clusters, Filestore instances, buckets and other resources with data from deletion.",
    )
    encryption: EncryptionSpec | None = Field(
        default=None, description="Your own keys for stored data; default: Google's keys."
    )
    google_groups_domain: HostName | None = Field(
        default=None,
        description="Domain of the group gke-security-groups@. With it, RBAC in clusters can refer to Google Groups.",
    )
    admins: Members = Field(
        default=(), description="IAM members that may administer the clusters and view the whole project."
    )
    vertex_submitters: Members = Field(
        default=(),
        description="IAM members that may start jobs on Vertex AI for all teams, such as a pipeline's account. "
        "People are not allowed.",
        examples=[["serviceAccount:submit@example-ci.iam.gserviceaccount.com"]],
    )
    nightly_account: Email | None = Field(
        default=None,
        description="Service account that searches for drift. It may read the Secrets in the platform's own "
        "namespaces.",
        examples=["nightly@example-admin.iam.gserviceaccount.com"],
    )
    clusters: dict[Name, ClusterSpec] = Field(
        default=NOTHING, description="GKE clusters, keyed by name; none if teams use only Vertex AI."
    )
    network: ExistingNetwork | None = Field(
        default=None, description="An existing VPC; default: one that the environment creates."
    )
    nat_addresses: int = Field(
        default=0,
        ge=0,
        description="Number of addresses to reserve for each region's NAT gateway. 0: Google Cloud allocates as many "
        "as the load needs.",
    )
    private_services_range: Cidr | None = Field(
        default=None, description="Address range for Google services that join the VPC by private service access."
    )
    google_apis: Literal["private", "restricted", "public"] = Field(
        default="private",
        description="Kind of addresses to which the names of Google's APIs resolve: restricted for VPC Service "
        "Controls, public with open_egress.",
    )
    egress: Destinations = Field(
        default=(),
        description="Destinations that pods of all teams may connect to, in addition to each other and Google's APIs.",
        examples=[[{"cidr": "203.0.113.0/24"}]],
    )
    open_egress: bool = Field(default=False, description="Lets pods of teams connect to any destination.")
    filestore: dict[Name, FilestoreSpec] = Field(default=NOTHING, description="Filestore instances, keyed by name.")
    network_attachments: dict[Region, Cidr] = Field(
        default=NOTHING,
        description="Address range for VMs of Vertex AI that connect to the VPC, keyed by region. Each range becomes "
        "a separate subnet.",
        examples=[{"us-central1": "10.30.0.0/24"}],
    )
    team_logs_days: int | None = Field(
        default=30,
        ge=1,
        le=3650,
        description="Days for which each team's log bucket keeps the logs of its pods; null: teams have no log "
        "buckets.",
    )
    lustre: dict[Name, LustreSpec] = Field(default=NOTHING, description="Managed Lustre instances, keyed by name.")
    data_sets: dict[Name, DataSetSpec] = Field(
        default=NOTHING, description="Data sets that jobs mount by name, wherever they are stored."
    )
    images: ImageRepositorySpec | None = Field(
        default=None, description="Artifact Registry repository for images; default: none."
    )
    python_repository: ImageLocation | None = Field(
        default=None,
        description="Location of an Artifact Registry repository that mirrors the public Python index. From it, jobs "
        "install the packages of their source without internet access; default: none.",
        examples=["us"],
    )
    charts: dict[ChartName, ChartOverride] = Field(
        default=NOTHING, description="Other versions or sources for the installed Helm charts, keyed by chart."
    )
    image_sources: Annotated[tuple[ImageSource, ...], AfterValidator(unique)] = Field(
        default=(),
        description="Prefixes of images, up to a slash. Teams' pods with other images are refused; default: any "
        "image is allowed.",
        examples=[["us-central1-docker.pkg.dev/example-train/images/"]],
    )
    node_images: dict[ImageName, str] = Field(
        default=NOTHING,
        description="Other sources, such as a mirror, for the images of Pathways and of GPUDirect's node software.",
    )
    priorities: dict[Name, Annotated[int, Field(ge=-(2**31), lt=2**31)]] = Field(
        default={"low": 100, "normal": 500, "high": 1000},
        description="WorkloadPriorityClasses of Kueue with their values.",
    )
    max_grace_seconds: int = Field(
        default=900,
        ge=30,
        le=86_400,
        description="Maximum time that pods of teams may take to end. Meanwhile they still occupy GPUs that Kueue no "
        "longer counts.",
    )
    max_run_hours: int | None = Field(
        default=None,
        ge=1,
        le=8_760,
        description="Maximum run time of teams' jobs on GKE, and the run time of jobs that set none; default: no "
        "limit. Jobs that members submit with other tools are refused unless they have Kueue's label for the run time.",
    )
    cohorts: dict[Name, CohortSpec] = Field(
        default=NOTHING,
        description="Cohorts of teams, keyed by name. The root of all cohorts is named training-platform.",
        examples=[{"research": {"weight": 2}}],
    )
    fair_sharing: bool = Field(
        default=True,
        description="true lends idle quota to the team that borrows least in relation to its weight; false lends it "
        "to the first job.",
    )
    lend_unpromised: bool = Field(
        default=False,
        description="true lets all teams with a share of the flavor borrow capacity that was promised to no team; "
        "false leaves it idle.",
    )
    alerts: AlertsSpec = Field(default=AlertsSpec(), description="Alerts of Cloud Monitoring.")
    dashboards: bool = Field(
        default=True, description="false creates no dashboards, neither for the platform nor for its teams."
    )
    billing_account: str | None = Field(
        default=None,
        pattern=r"^[0-9A-F]{6}(-[0-9A-F]{6}){2}$",
        description="Cloud Billing account of the projects and of the teams' budgets.",
        examples=["01ABCD-23EF45-67AB89"],
    )
    budget: BudgetSpec | None = Field(
        default=None,
        description="Budget for all resources with the environment's label, including those of its teams; needs "
        "billing_account.",
    )
    quota_requests: dict[RequestName, QuotaRequest] = Field(
        default=NOTHING,
        description="Quota limits to request from Google Cloud; removing a request does not withdraw it.",
    )

    def conflicts(self) -> Iterator[Problem]:
        """Yield a problem for each combination of fields that is not allowed."""
        slices = 0
        for name, cluster in self.clusters.items():
            slices += sum(pool.slices for pool in cluster.node_pools.values())
            if cluster.notebooks:
                path = ("clusters", name, "notebooks", "filestore")
                yield from self._conflicts_of_homes(path, cluster.notebooks.filestore, region_of(cluster.location))
        if self.private_services_range is None and self.network is None:
            yield from self._without_services_range()
        if self.google_apis == "public" and self.clusters and not self.open_egress:
            message = "is public, but pods of teams could not reach Google's APIs, whose public addresses change"
            yield Problem(
                ("google_apis",), message, allowed="private, restricted, or open_egress: true", nearest="private"
            )
        for number, row in enumerate(self.egress):
            for message, allowed in self.guarded_behind(row):
                yield Problem(("egress", number), message, allowed=allowed)
        without = [name for name, cluster in self.clusters.items() if not cluster.fqdn_policies]
        for number in (number for number, row in enumerate(self.egress) if row.host and without):
            message = f"is a host name, which needs fqdn_policies in clusters {enumeration(without)}"
            yield Problem(("egress", number, "host"), message, allowed="cidr, or clusters with fqdn_policies: true")
        yield from self._conflicts_of_network()
        yield from self._regions_without_key()
        if self.budget and self.billing_account is None:
            yield Problem(
                ("budget",),
                "needs billing_account, which is not set",
                allowed="no budget, or the field billing_account",
            )
        yield from cohort_conflicts(self.cohorts)
        yield from self._data_set_conflicts()
        if slices > MOST_SLICES:
            message = f"has {slices:,} slices and node pools in all its clusters"
            yield Problem(("clusters",), message, allowed=f"at most {MOST_SLICES:,}")

    def guarded_behind(self, destination: Destination) -> Iterator[tuple[str, str]]:
        """Yield a message and the allowed values if a destination gives pods access to data or nodes of all teams."""
        if instance := self._instance_behind(destination):
            message = (
                f"opens port {NFS_PORT}, NFS, to addresses that instance {instance} may have: root in a pod could "
                f"read every team's"
            )
            yield f"{message} files", _NFS_ALLOWED
        for name, cluster in self.clusters.items():
            ports = [port for port in destination.ports if port in KUBELET_PORTS]
            if not (ports and destination.cidr and cluster.subnet and destination.protocol == "TCP"):
                continue
            if ip_network(destination.cidr).overlaps(ip_network(cluster.subnet.nodes)):
                message = f"opens port {ports[0]} of the nodes of {name}: their kubelets expose the pods of all teams"
                yield message, f"other ports than 10250 and 10255, or addresses outside {cluster.subnet.nodes}"
                return

    def _instance_behind(self, destination: Destination) -> str | None:
        """Return the name of the Filestore instance whose files a destination may expose, or None."""
        if destination.cidr is None or NFS_PORT not in destination.ports:
            return None
        opened = ip_network(destination.cidr)
        for name, instance in self.filestore.items():
            addresses = instance.reserved_range
            if instance.connection == "private-service-access":
                addresses = self.private_services_range
            ranges = [addresses] if addresses else _PRIVATE
            if any(ip_network(taken).overlaps(opened) for taken in ranges):
                return name
        return None

    def _without_services_range(self) -> Iterator[Problem]:
        """Yield a problem for each instance that needs private service access, if no range for it is declared."""
        message = "needs private_services_range of the environment, which is not set"
        for name, instance in self.filestore.items():
            if instance.connection == "private-service-access":
                yield Problem(
                    ("filestore", name, "connection"),
                    message,
                    allowed="direct-peering, or the field private_services_range",
                )
        if self.lustre:
            yield Problem(
                ("lustre",),
                message,
                allowed="private_services_range, with a /23 or larger for each instance",
                nearest="10.200.0.0/20",
            )

    def _conflicts_of_network(self) -> Iterator[Problem]:
        """Yield a problem for missing subnets, and for fields that only the owner of an existing network may set."""
        shared = self.host_project is not None
        if self.network:
            for field in sorted({"nat_addresses", "private_services_range"} & self.model_fields_set):
                message = (
                    "cannot be combined with `network`: the owner of that network manages its gateways and peerings"
                )
                yield Problem((field,), message, allowed="the field left out", nearest="leave it out")
        if self.network and self.network.grant_roles and not shared:
            message = "is true, but the network does not belong to another project"
            yield Problem(
                ("network", "grant_roles"), message, allowed="false, or the host project in `project`", nearest="false"
            )
        if shared and self.network_attachments:
            message = f"need subnets of the network, which are in the host project {self.host_project}"
            yield Problem(
                ("network_attachments",),
                message,
                allowed="the field left out, or attachments that the owner of the network creates",
            )
        for name, cluster in self.clusters.items():
            named = cluster.subnet.name if cluster.subnet else None
            if named and self.network is None:
                message = f"is {named!r}, but the environment creates the network and its subnets itself"
                yield Problem(("clusters", name, "subnet", "name"), message, allowed="the field left out, or network")
            if shared and cluster.subnet and not named:
                message = f"is missing: the subnets of the network are in project {self.host_project}"
                yield Problem(
                    ("clusters", name, "subnet", "name"), message, allowed="name of a subnet with these ranges"
                )

    @property
    def own_clusters(self) -> dict[str, ClusterSpec]:
        """The clusters that the environment creates, keyed by name, without existing clusters of other owners."""
        return {name: cluster for name, cluster in self.clusters.items() if cluster.existing is None}

    @property
    def host_project(self) -> str | None:
        """The host project of a Shared VPC, or None if the network is in the environment's own project."""
        project = self.network.project if self.network else None
        return project if project != self.project else None

    @property
    def network_project(self) -> str:
        """The project of the VPC and its subnets."""
        return self.host_project or self.project

    @property
    def granted_host_project(self) -> str | None:
        """The host project, if the environment's stack grants roles in it to Google's agents."""
        return self.host_project if self.network and self.network.grant_roles else None

    def _conflicts_of_homes(self, path: tuple[str, ...], instance: str, region: str) -> Iterator[Problem]:
        """Yield a problem if the instance for notebook homes is missing, belongs to a team, or is in another region."""
        shared_instances = [name for name, spec in self.filestore.items() if spec.team is None]
        near = [name for name in shared_instances if region_of(self.filestore[name].location) == region]
        if instance not in self.filestore:
            message = f"{instance!r} is not a Filestore instance of this environment"
            allowed = enumeration(self.filestore) or "none is declared under filestore"
            yield Problem(path, message, allowed=allowed, nearest=find_nearest(instance, self.filestore))
        elif instance not in shared_instances:
            message = (
                f"belongs to team {self.filestore[instance].team}, but all users of notebooks have their homes on "
                f"the instance"
            )
            allowed = enumeration(shared_instances) or "an instance without team, which you declare under filestore"
            yield Problem(path, message, allowed=allowed, nearest=min(shared_instances, default=None))
        elif instance not in near:
            message = f"{instance!r} is in {self.filestore[instance].location}: notebooks in {region} cannot mount it"
            allowed = enumeration(near) or f"an instance in {region}, which you declare under filestore"
            yield Problem(path, message, allowed=allowed, nearest=min(near, default=None))

    def _regions_without_key(self) -> Iterator[Problem]:
        """Yield a problem for each location that has no key, if the environment encrypts with its own keys."""
        if self.encryption is None:
            return
        places: dict[Path, str] = {
            **{("clusters", name, "location"): spec.location for name, spec in self.clusters.items()},
            **{("filestore", name, "location"): spec.location for name, spec in self.filestore.items()},
            **{("lustre", name, "location"): spec.location for name, spec in self.lustre.items()},
        }
        if self.python_repository:
            places[("python_repository",)] = self.python_repository
        if self.images:
            places[("images", "location")] = self.images.location
            places |= {("images", "caches", number): cache for number, cache in enumerate(self.images.caches)}
        for path, location in places.items():
            if region_of(location) not in self.encryption.by_region:
                message = f"is in {region_of(location)}, but encryption.keys has no key for that region"
                yield Problem(path, message, allowed=f"a region of {enumeration(self.encryption.by_region)}")

    def _data_set_conflicts(self) -> Iterator[Problem]:
        """Yield a problem for data sets whose instance is missing, or has other content that readers must not see."""
        homes = {cluster.notebooks.filestore for cluster in self.clusters.values() if cluster.notebooks}
        for name, data in self.data_sets.items():
            if data.lustre and not data.lustre.elsewhere and data.lustre.instance not in self.lustre:
                instance = data.lustre.instance
                message = f"{instance!r} is not a Managed Lustre instance of this environment"
                allowed = (
                    f"{enumeration(self.lustre) or 'an instance under lustre'}, or its location, address and filesystem"
                )
                path = ("data_sets", name, "lustre", "instance")
                yield Problem(path, message, allowed=allowed, nearest=find_nearest(instance, self.lustre))
            if data.filestore is None:
                continue
            path = ("data_sets", name, "filestore", "instance")
            instance = data.filestore.instance
            other_instances = (
                enumeration(self.filestore.keys() - homes) or "another instance, which you declare under filestore"
            )
            if instance not in self.filestore:
                message = f"{instance!r} is not a Filestore instance of this environment"
                allowed = enumeration(self.filestore) or other_instances
                yield Problem(path, message, allowed=allowed, nearest=find_nearest(instance, self.filestore))
            elif instance in homes:
                message = f"{instance!r} contains the home directories of all users of notebooks"
                yield Problem(
                    path, message, allowed=other_instances, nearest=min(self.filestore.keys() - homes, default=None)
                )
            elif (team := self.filestore[instance].team) and (
                not data.teams or {*data.teams, data.writer or team} != {team}
            ):
                message = f"can be read by teams other than {team}, which owns {instance!r}"
                yield Problem(
                    ("data_sets", name, "teams"), message, allowed=f"[{team}], or another instance", nearest=f"[{team}]"
                )
