"""The arguments of the components in ``training_platform.modules``: sections of stack files, and outputs of resources.

``make schema`` generates the classes for programs, ``training_platform/modules/args.py``, from these models.
"""

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, GetCoreSchemaHandler
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, core_schema

from training_platform.catalog.nearest import find_nearest
from training_platform.config.expansion import flavors
from training_platform.config.model.cluster import ClusterSpec
from training_platform.config.model.environment import ChartOverride
from training_platform.config.model.queues import CohortSpec, Fallback, Preemption, Share, Weight, cohort_conflicts
from training_platform.config.model.storage import FilestoreSpec
from training_platform.config.model.team import BucketSpec, PersistentResourceSpec
from training_platform.config.model.workloads import Notebooks
from training_platform.config.reading.section import (
    KMS_KEY,
    NOTHING,
    Cidr,
    Consistent,
    HostName,
    Labels,
    Members,
    Name,
    Problem,
    ProjectId,
    Region,
    Section,
    enumeration,
    unique,
)


class FromDeployment:
    """Marks a string that may be unknown until another resource is deployed: ``pulumi.Input[str]``."""

    def __get_pydantic_core_schema__(self, _source: Any, _handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return the schema of a string."""
        return core_schema.str_schema()


Deployed = Annotated[Any, FromDeployment()]
"""A string or an output. Its type is Any, since the functions that plan resources accept outputs as well as strings."""


class Place(Section):
    """The project, environment, labels, protection and keys that all resources of an environment share."""

    project: ProjectId
    environment: Name = Field(
        description="Name of the environment; names in Google Cloud begin with it.", examples=["dev"]
    )
    team: Name | None = Field(default=None, description="Team that the resources are for; default: all teams.")
    labels: Labels = Field(
        default=NOTHING,
        description="Labels of every resource, in addition to environment, team and managed-by.",
        examples=[{"cost-center": "research"}],
    )
    deletion_protection: bool = Field(
        default=True, description="false lets a change delete clusters, node pools, buckets and instances."
    )
    keys: dict[Region, Annotated[str, Field(pattern=KMS_KEY)]] = Field(
        default=NOTHING, description="Cloud KMS keys that encrypt data, keyed by region; default: Google's own keys."
    )


class TeamPlace(Place):
    """The project, environment, team, labels, protection and keys that all resources of a team share."""

    team: Name = Field(description="Team that the resources are for.", examples=["vision"])


InPlace = Annotated[Place, Field(description="Project, environment, labels, protection and keys.")]
OfTeam = Annotated[TeamPlace, Field(description="Project, environment, team, labels, protection and keys.")]


class Arguments(Consistent):
    """The arguments of a component.

    ``spec`` is a section of stack files. Its fields are arguments of the component itself: only those in ``FIELDS``, or
    all of them if ``FIELDS`` is empty.
    """

    FIELDS: ClassVar[tuple[str, ...]] = ()


class PoolsSpec(ClusterSpec):
    """The node pools of a cluster. Its other fields are set elsewhere."""

    def conflicts(self) -> Iterator[Problem]:
        """Yield the conflicts between fields of a cluster, except for a missing subnet."""
        return (problem for problem in super().conflicts() if problem.path != ("subnet",))


_POOLS = ("location", "system_pool", "cpu_pools", "pathways", "node_pools")
ClusterKey = Annotated[Name, Field(description="Name of the GkeCluster.", examples=["main"])]


class NetworkArguments(Arguments):
    """A VPC with a NAT gateway in each region. It has no subnets; clusters add them."""

    place: InPlace
    regions: Annotated[tuple[Region, ...], AfterValidator(unique)] = Field(
        description="Regions with clusters; each gets a NAT gateway.", examples=[["us-central1"]]
    )
    nat_addresses: int = Field(default=0, ge=0, description="Number of addresses to reserve for each gateway.")
    services_range: Cidr | None = Field(
        default=None, description="Address range for private service access; default: none.", examples=["10.90.0.0/20"]
    )
    google_apis: Literal["private", "restricted"] | None = Field(
        default=None,
        description="Kind of addresses to which the names of Google's APIs resolve in the VPC; "
        "default: public addresses.",
    )


class GkeClusterSpec(ClusterSpec):
    """A private GKE cluster in one region or zone, with a DNS-based control-plane endpoint."""

    operators: tuple[Literal["slice-controller", "ml-diagnostics"], ...] = Field(
        default=(),
        description="GKE add-ons: the slice controller for TPU 7x, and profiling of training (ml-diagnostics).",
    )


class GkeClusterArguments(Arguments):
    """A GKE cluster with its subnet, the service account of its nodes, and its node pools."""

    FIELDS = (
        "location",
        "existing",
        "subnet",
        "release_channel",
        "version",
        "maintenance",
        "gpu_networks",
        "system_pool",
        "cpu_pools",
        "pathways",
        "node_pools",
        "auto_provisioning",
        "binary_authorization",
        "fqdn_policies",
        "operators",
        "provider_inputs",
        "deletion_protection",
    )
    place: InPlace
    spec: GkeClusterSpec
    network: Deployed = Field(
        default=None,
        description="Id of the VPC, projects/*/global/networks/*; required unless the cluster is existing.",
        examples=["projects/example-train-dev/global/networks/dev"],
    )
    service_account: Deployed = Field(
        default=None,
        description="E-mail address of the nodes' service account; default: a new account with the "
        "roles that nodes need.",
    )
    host_project: ProjectId | None = Field(
        default=None, description="Host project of a Shared VPC; default: the project of the place."
    )
    google_groups_domain: HostName | None = Field(
        default=None, description="Domain whose Google groups can get rights in the cluster.", examples=["example.com"]
    )

    def conflicts(self) -> Iterator[Problem]:
        """Yield an error for a new cluster without a network."""
        if self.spec.existing is None and self.network is None:
            yield Problem(("network",), "is missing", allowed="the id of a VPC, or the field existing")


class NodePoolsArguments(Arguments):
    """The node pools of a cluster that a ``GkeCluster`` does not create."""

    FIELDS = (*_POOLS, "gpu_networks")
    place: InPlace
    spec: PoolsSpec
    cluster: Deployed = Field(description="Name of the cluster in Google Cloud.", examples=["dev-main"])
    service_account: Deployed = Field(description="E-mail address of the nodes' service account.")


class FilestoreInstanceArguments(Arguments):
    """A Filestore instance with one share, its snapshots and its backups."""

    place: InPlace
    spec: FilestoreSpec
    network: Deployed = Field(
        description="Name or id of the VPC.", examples=["projects/example-train-dev/global/networks/dev"]
    )
    services_range: Deployed = Field(
        default=None,
        description="Name of the VPC's address range for private service access, if the instance joins the VPC that "
        "way.",
        examples=["dev-services"],
    )


class JobSetArguments(Arguments):
    """The JobSet controller, installed from its Helm chart."""

    chart: ChartOverride | None = Field(default=None, description="Another version or source of the chart.")


class KueueArguments(Arguments):
    """The Kueue controller, installed from its Helm chart. The node pools determine its size and its time-outs."""

    FIELDS = (*_POOLS, "serving", "operators", "deletion_protection")
    place: InPlace
    spec: PoolsSpec
    cluster: ClusterKey
    chart: ChartOverride | None = Field(default=None, description="Another version or source of the chart.")
    fair_sharing: bool = Field(default=True, description="true lets teams borrow in proportion to their weights.")


class PrometheusArguments(Arguments):
    """The collection of a controller's metrics by Managed Service for Prometheus."""

    place: InPlace
    controller: Literal["jobset", "kueue"] = Field(description="Controller whose metrics are scraped.")


class HubSpec(PoolsSpec):
    """The node pools of a cluster with JupyterHub."""

    notebooks: Notebooks = Field(
        description="JupyterHub. This component does not use the name of its Filestore instance."
    )


class JupyterHubArguments(Arguments):
    """JupyterHub: notebooks for everyone in a domain."""

    FIELDS = ("location", "node_pools", "notebooks", "deletion_protection")
    place: InPlace
    spec: HubSpec
    cluster: ClusterKey
    home_claim: Deployed = Field(
        description="PersistentVolumeClaim for all home directories, in the hub's namespace, jupyterhub.",
        examples=["homes"],
    )
    chart: ChartOverride | None = Field(default=None, description="Another version or source of the chart.")


class ResourceFlavorsArguments(Arguments):
    """The ResourceFlavors of a cluster's node pools with their Topologies, job priorities, and cohorts of teams."""

    FIELDS = ("location", "node_pools")
    place: InPlace
    spec: PoolsSpec
    cluster: ClusterKey
    priorities: dict[Name, int] = Field(
        default=NOTHING,
        description="Priorities of jobs, keyed by name; a higher number comes first.",
        examples=[{"high": 1000}],
    )
    cohorts: dict[Name, CohortSpec] = Field(
        default=NOTHING, description="Cohorts of teams, keyed by name; default: only the cluster's cohort."
    )

    def conflicts(self) -> Iterator[Problem]:
        """Yield an error for each unknown parent cohort, and for each share of an unknown cluster or flavor."""
        yield from cohort_conflicts(self.cohorts)
        names = flavors(self.cluster, self.spec)
        for cohort, spec in self.cohorts.items():
            for cluster, shares in spec.shares.items():
                path = ("cohorts", cohort, "shares", cluster)
                if cluster != self.cluster:
                    yield Problem(
                        path, f"is not the cluster {self.cluster}", allowed=self.cluster, nearest=self.cluster
                    )
                else:
                    yield from _unknown_flavors(path, tuple(shares), tuple(names))


class TeamQueuesArguments(Arguments):
    """A team's ClusterQueue in one cluster, and the LocalQueues of its namespace."""

    FIELDS = ("location", "node_pools")
    place: OfTeam
    spec: PoolsSpec
    cluster: ClusterKey
    namespace: Deployed = Field(description="Namespace of the team.", examples=["vision"])
    shares: dict[str, Share] = Field(
        min_length=1, description="Shares of the team, keyed by flavor.", examples=[{"h100": {"nominal_quota": 16}}]
    )
    fallback: Fallback = Field(default=Fallback(), description="The order in which Kueue tries flavors.")
    cohort: Name | None = Field(
        default=None,
        description="Cohort in which the team borrows; default: the cluster's cohort.",
        examples=["research"],
    )
    weight: Weight = 1
    preemption: Preemption = Field(default=Preemption(), description="Running jobs that the team's jobs may preempt.")

    def conflicts(self) -> Iterator[Problem]:
        """Yield an error for each share of a flavor that the cluster does not have."""
        return _unknown_flavors(("shares",), tuple(self.shares), tuple(flavors(self.cluster, self.spec)))


def _unknown_flavors(path: tuple[str, ...], shares: tuple[str, ...], names: tuple[str, ...]) -> Iterator[Problem]:
    for share in shares:
        if share not in names:
            message = "is not a flavor of the cluster's node_pools"
            allowed = enumeration(names) or "none: the cluster has no node_pools"
            yield Problem((*path, share), message, allowed=allowed, nearest=find_nearest(share, names))


class TeamNamespaceArguments(Arguments):
    """A team's namespace, with its members' roles, its jobs' account, and a network policy against other teams."""

    place: OfTeam
    members: Members = Field(description="IAM members of the team.", examples=[["group:vision@example.com"]])
    google_service_account: Deployed = Field(
        description="E-mail address of the Google Cloud service account of the jobs.",
        examples=["dev-vision-jobs@example-train-dev.iam.gserviceaccount.com"],
    )
    quota: dict[str, str] = Field(
        default=NOTHING,
        description="Limits of the namespace, as in `hard` of a ResourceQuota; default: no limits.",
        examples=[{"requests.nvidia.com/gpu": "16"}],
    )
    egress: dict[str, Any] = Field(
        default=NOTHING,
        description="Destinations that the team's pods may connect to, as the spec of a NetworkPolicy; default: all.",
        examples=[{"policyTypes": ["Egress"]}],
    )


class TeamBucketArguments(Arguments):
    """A team's Cloud Storage bucket. Members can read it, and jobs can write to it."""

    FIELDS = tuple(name for name in BucketSpec.model_fields if name not in ("readers", "writers"))
    place: OfTeam
    spec: BucketSpec
    members: Members = Field(
        default=(),
        description="IAM members of the team, who may read and add objects.",
        examples=[["group:v@example.com"]],
    )
    jobs: Deployed = Field(
        description="E-mail address of the service account of the team's jobs, which may read and write objects.",
        examples=["dev-vision-jobs@example-train-dev.iam.gserviceaccount.com"],
    )


class PersistentResourceArguments(Arguments):
    """Machines that Vertex AI keeps running, and bills, between training jobs."""

    FIELDS = tuple(name for name in PersistentResourceSpec.model_fields if name != "network_attachment")
    place: OfTeam
    spec: PersistentResourceSpec
    network_attachment: Deployed = Field(
        default=None,
        description="Network attachment through which the VMs reach a VPC; default: none.",
        examples=["projects/example-train/regions/us-central1/networkAttachments/vertex"],
    )


COMPONENTS: dict[str, type[Arguments]] = {
    "Network": NetworkArguments,
    "GkeCluster": GkeClusterArguments,
    "NodePools": NodePoolsArguments,
    "FilestoreInstance": FilestoreInstanceArguments,
    "JobSet": JobSetArguments,
    "Kueue": KueueArguments,
    "Prometheus": PrometheusArguments,
    "ResourceFlavors": ResourceFlavorsArguments,
    "TeamNamespace": TeamNamespaceArguments,
    "TeamQueues": TeamQueuesArguments,
    "TeamBucket": TeamBucketArguments,
    "JupyterHub": JupyterHubArguments,
    "PersistentResource": PersistentResourceArguments,
}
"""The arguments of each component, keyed by the name of its class."""


def flat_fields(arguments: type[Arguments]) -> dict[str, FieldInfo]:
    """Return all arguments of a component as pydantic fields, keyed by name: its own, then those of its ``spec``."""
    direct = {name: field for name, field in arguments.model_fields.items() if name != "spec"}
    spec = arguments.model_fields.get("spec")
    if spec is None:
        return direct
    section: Any = spec.annotation
    fields = section.model_fields
    return {**direct, **{name: fields[name] for name in arguments.FIELDS or fields}}
