"""A team stack: one team's part of an environment."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from training_platform.config.model.environment import BudgetSpec, Destinations, RetiredSpec
from training_platform.config.model.node_pool import BootDiskSpec, VmSpec
from training_platform.config.model.queues import Fallback, Preemption, Share, Weight, check_order
from training_platform.config.model.storage import FilestoreSpec, TeamDataSpec
from training_platform.config.model.workloads import AGENT_BEGINNING, LaunchSpec, ServerSpec
from training_platform.config.reading.section import (
    NOTHING,
    DeletionProtection,
    DiskTypeName,
    FormerName,
    Labels,
    Members,
    Name,
    ProjectId,
    ProviderInputs,
    Region,
    Section,
    above,
    refuse_conflicts,
    unique,
)


class DirectorySpec(Section):
    """A volume on one of the environment's Filestore instances, for the team's pods."""

    filestore: Name = Field(description="Filestore instance of the environment.", examples=["datasets"])
    size_gib: int = Field(
        ge=1, description="Size of the volume claim in GiB; Filestore does not enforce it.", examples=[1024]
    )
    whole_share: bool = Field(
        default=False,
        description="true if only this team uses the instance. false: the volume is the folder with the team's name.",
    )

    def of_folder(self, instance: FilestoreSpec) -> bool:
        """Return True if the volume is one of several folders on an instance that teams share."""
        return instance.team is None and not self.whole_share


OtherTeams = Annotated[tuple[Name, ...], AfterValidator(unique)]


class BucketSpec(Section):
    """A Cloud Storage bucket of the team.

    Another team gets a role on it only if two files agree: ``readers`` or ``writers`` names that team, and the team's
    own file declares a data set with this bucket.
    """

    REMOVED: ClassVar[Mapping[str, str]] = {"access_logs": "provider_inputs: {logging: {log_bucket: NAME}}"}

    location: Region = Field(description="Region of the bucket.")
    storage_class: Literal["STANDARD", "NEARLINE", "COLDLINE", "ARCHIVE"] = Field(
        default="STANDARD", description="Storage class."
    )
    size_gib: int | None = Field(
        default=None,
        ge=1,
        description="Expected size in GiB, to estimate the cost; default: no estimate.",
    )
    delete_after_days: int | None = Field(
        default=None, ge=1, description="Days after which objects are deleted; default: never."
    )
    versioning: bool = Field(default=False, description="Keep old versions of objects.")
    hierarchical_namespace: bool = Field(
        default=False,
        description="Gives the bucket real folders, so that renaming a folder is a single operation. Changing this "
        "field replaces the bucket.",
    )
    members_write: bool = Field(
        default=False,
        description="Lets members overwrite and delete objects; otherwise they can only read and add objects.",
    )
    readers: OtherTeams = Field(
        default=(),
        description="Other teams that may declare data sets in the bucket. Give a team's name, or its stack if it is "
        "in another environment.",
        examples=[["vision"]],
    )
    writers: OtherTeams = Field(
        default=(), description="Other teams that may declare writable data sets in the bucket.", examples=[["vision"]]
    )
    provider_inputs: ProviderInputs = Field(
        default=NOTHING,
        description="Inputs of the bucket that have no field here, under their Python names in pulumi-gcp.",
        examples=[{"logging": {"log_bucket": "example-train-access-logs"}}],
    )


class VertexBootDisk(BootDiskSpec):
    """The boot disk of a VM of Vertex AI.

    Both fields are always sent to Vertex AI, since sources disagree on its defaults, which differ from those of GKE.
    """

    type: DiskTypeName = Field(default="pd-ssd", description="Disk type.")


class ResourcePoolSpec(VmSpec):
    """Identical VMs of a persistent resource, with the same machine type and boot disk."""

    replicas: int = Field(default=1, ge=1, description="Number of VMs; with max_replicas, the minimum.")
    max_replicas: int | None = Field(
        default=None, ge=1, description="Maximum number of VMs; this field turns autoscaling on."
    )
    boot_disk: VertexBootDisk = Field(default=VertexBootDisk(), description="Boot disks of the VMs.")

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.max_replicas is not None:
            refuse_conflicts(above("replicas", self.replicas, "max_replicas", self.max_replicas))
        return self

    @property
    def max_vms(self) -> int:
        """The maximum number of VMs that the pool can have."""
        return self.max_replicas or self.replicas


FIRST_POOL = "machines"  # the id of the pool that the fields of the persistent resource itself describe
OWN_ATTACHMENT = "environment"  # the environment's network attachment in a region


class PersistentResourceSpec(ResourcePoolSpec):
    """A Vertex AI persistent resource: VMs that keep running, and are billed, between training jobs.

    Its own fields describe its first pool. Most persistent resources have only this one.
    """

    REMOVED: ClassVar[Mapping[str, str]] = {
        "ray": "a Ray cluster on GKE with `operators: [ray]`, or one on Vertex AI with its SDK: docs/vertex.md "
        "describes both"
    }
    region: Region = Field(description="Region of Vertex AI.")
    more_pools: dict[Name, ResourcePoolSpec] = Field(
        default=NOTHING,
        description="Further pools, keyed by name. A job runs on the pools that have its machine types and disks.",
    )
    network_attachment: str | None = Field(
        default=None,
        pattern=r"^(environment|projects/[^/]+/regions/[^/]+/networkAttachments/[^/]+)$",
        description="Network attachment through which the VMs reach a VPC; `environment` means the environment's own "
        "attachment.",
        examples=["projects/example-train/regions/us-central1/networkAttachments/vertex"],
    )
    provider_inputs: ProviderInputs = Field(
        default=NOTHING,
        description="Inputs of the persistent resource that have no field here, under their Python names in "
        "pulumi-gcp.",
        examples=[{"resource_pools": [{"machine_spec": {"min_cpu_platform": "Intel Ice Lake"}}]}],
    )
    deletion_protection: DeletionProtection = True

    @model_validator(mode="after")
    def _pools_have_names(self) -> Self:
        if FIRST_POOL in self.more_pools:
            raise ValueError(f"more_pools has {FIRST_POOL}, which is already the name of the first pool")
        return self

    @property
    def pools(self) -> dict[str, ResourcePoolSpec]:
        """All pools, keyed by id."""
        return {FIRST_POOL: self, **self.more_pools}

    def pool_for(self, vms: VmSpec, disk: VertexBootDisk) -> ResourcePoolSpec:
        """Return a pool that has the same VMs, preferably also the same disk. If none has, return the first pool."""
        with_vms = [pool for pool in self.pools.values() if pool.title == vms.title]
        for pool in with_vms:
            if pool.boot_disk == disk:
                return pool
        return with_vms[0] if with_vms else self


def pool_path(pool: str) -> tuple[str, ...]:
    """Return the path of a pool in the section of its persistent resource."""
    if pool == FIRST_POOL:
        return ()
    return ("more_pools", pool)


class Vertex(Section):
    """A team's resources on Vertex AI."""

    REMOVED: ClassVar[Mapping[str, str]] = {
        "workbench": "notebooks of a cluster (docs/notebooks.md), or an instance in own_resources.py: docs/vertex.md"
    }
    persistent_resources: dict[Name, PersistentResourceSpec] = Field(
        default=NOTHING, description="Persistent resources, keyed by name."
    )
    tensorboards: Annotated[tuple[Region, ...], AfterValidator(unique)] = Field(
        default=(), description="Regions in which the team gets a TensorBoard instance."
    )
    members_submit: bool = Field(
        default=False,
        description="Lets members start jobs on Vertex AI, in a project that only this team uses.",
    )
    registry: bool = Field(
        default=False,
        description="Lets the team's jobs read managed data sets and register models. This includes those of other "
        "teams in its project.",
    )


RESERVED_NAMES = (
    "cert-manager", "config-management-system", "default", "gatekeeper-system", "istio-system", "jobset-system",
    "jupyterhub", "kubeflow-system", "kuberay-system", "kueue-system", "lws-system", "monitoring",
)  # fmt: skip
"""Namespaces of GKE's add-ons and of software that the platform installs. A team cannot have these names."""
RESERVED_BEGINNINGS = ("gke-", "gmp-", "kube-", AGENT_BEGINNING)
"""Prefixes of namespaces that Google, Kubernetes and agents use."""


def _own_namespace(value: str) -> str:
    if value in RESERVED_NAMES or value.startswith(RESERVED_BEGINNINGS):
        prefixes = [f"{beginning}..." for beginning in RESERVED_BEGINNINGS]
        context = {
            "allowed": f"a name other than {', '.join((*RESERVED_NAMES, *prefixes))}",
            "nearest": f"team-{value}"[:30].rstrip("-"),
        }
        raise PydanticCustomError("reserved", f"{value!r} is a namespace that the cluster's own software uses", context)
    return value


class Team(Section):
    """A team stack: members, shares of the clusters, directories, buckets, Vertex AI."""

    environment: Name = Field(
        description="Stack of the environment, as in stacks/Pulumi.ENVIRONMENT.yaml.", examples=["prod"]
    )
    name: Annotated[Name, AfterValidator(_own_namespace)] = Field(
        description="Name of the team, and of its namespace in each cluster in which it has a share."
    )
    project: ProjectId | None = Field(
        default=None, description="Project of the buckets and Vertex AI; default: the project of the environment."
    )
    renamed_from: FormerName = None
    retired: RetiredSpec | None = Field(default=None, description="How the stack is retired; default: it is not.")
    labels: Labels = Field(
        default=NOTHING, description="Labels of every resource, in addition to team, environment and managed-by."
    )
    members: Members = Field(
        min_length=1, description="IAM members of the team.", examples=[["group:vision@example.com"]]
    )
    shares: dict[Name, dict[str, Share]] = Field(
        default=NOTHING,
        description="Shares, keyed by cluster and flavor.",
        examples=[{"us-central1": {"h100-spot": {"nominal_quota": 16}}}],
    )
    max_run_hours: int | None = Field(
        default=None,
        ge=1,
        le=8_760,
        description="Maximum run time of the team's jobs on GKE, if it is shorter than the environment's "
        "max_run_hours.",
    )
    monthly_chip_hours: dict[Name, Annotated[int, Field(ge=1)]] = Field(
        default=NOTHING,
        description="Budget for a calendar month (UTC) in chip-hours or GPU-hours of all flavors together, keyed by "
        "cluster.",
        examples=[{"us-central1": 20_000}],
    )
    fallback: Fallback = Field(default=Fallback(), description="The order in which Kueue tries flavors.")
    cohort: Name | None = Field(
        default=None,
        description="Cohort of the environment in which the team borrows; default: the cluster's cohort.",
        examples=["research"],
    )
    weight: Weight = 1
    preemption: Preemption = Field(default=Preemption(), description="Running jobs that the team's jobs may preempt.")
    hold: dict[Name, Literal["Hold", "HoldAndDrain"]] = Field(
        default=NOTHING,
        description="Clusters in which no job of the team starts. HoldAndDrain also stops running jobs.",
        examples=[{"us-central1": "Hold"}],
    )
    host_network: bool = Field(
        default=False,
        description="Lets the team's pods use the network of their VM. They can then act as the service account of "
        "the VM.",
    )
    confined: bool = Field(
        default=False,
        description="Refuses pods of the team that have no seccomp filter or that allow privilege escalation, for "
        "example by setuid programs.",
    )
    writes_metrics: bool = Field(
        default=False,
        description="Lets the team's jobs write all metrics of their project, including metrics from which budgets "
        "are calculated.",
    )
    egress: Destinations = Field(
        default=(),
        description="Destinations that the team's pods may connect to, in addition to the environment's destinations.",
        examples=[[{"host": "huggingface.co"}]],
    )
    directories: dict[Name, DirectorySpec] = Field(default=NOTHING, description="Volumes on Filestore, keyed by name.")
    buckets: dict[Name, BucketSpec] = Field(default=NOTHING, description="Cloud Storage buckets, keyed by name.")
    data_sets: dict[Name, TeamDataSpec] = Field(
        default=NOTHING, description="Data sets in buckets that only this team mounts, keyed by name."
    )
    secrets: Annotated[tuple[Name, ...], AfterValidator(unique)] = Field(
        default=(),
        description="Names of secrets that the team's jobs can read. People add the values with `gcloud secrets`.",
        examples=[["hugging-face"]],
    )
    serving: dict[Name, dict[Name, ServerSpec]] = Field(
        default=NOTHING,
        description="Model servers, keyed by cluster and name. Their pods have priority over the team's training jobs.",
    )
    wandb_launch: dict[Name, LaunchSpec] = Field(
        default=NOTHING,
        description="Agents of W&B Launch, keyed by cluster. People add the API key as a Secret in the cluster.",
    )
    budget: BudgetSpec | None = Field(
        default=None, description="Budget for the team's labelled resources; needs the environment's billing_account."
    )
    vertex: Vertex = Field(default=Vertex(), description="The team's resources on Vertex AI.")

    @model_validator(mode="after")
    def _order_is_of_shares(self) -> Self:
        check_order(self.fallback, self.shares)
        return self
