"""The job file: a program and its targets. One file can serve GKE and Vertex AI."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import Field, model_validator

from training_platform.config.model.node_pool import VmSpec
from training_platform.config.model.team import VertexBootDisk
from training_platform.config.reading.section import (
    AnyImage,
    Consistent,
    ImageReference,
    MachineTypeName,
    Name,
    Problem,
    Region,
    SecretVersion,
    Section,
    Variable,
    form,
)

_PROJECT = r"projects/[a-z0-9.:-]+"
_PART = r"[A-Za-z0-9._-]+"

Module = Annotated[str, form(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", "a Python module", "such as finetune.train")]
Parameter = Annotated[
    str,
    form(r"[A-Za-z_][A-Za-z0-9_.-]{0,62}", "a parameter's name", "letters, digits, ., _ and -, starting with a letter"),
]
InFolder = Annotated[
    str,
    form(r"(?!/)(?!.*(^|/)\.\.(/|$))[^\0]+", "a path below the repository's folder", "such as src/train.py"),
]
Absolute = Annotated[
    str, form(r"(/(?!\.{1,2}(/|$))[\w.{}-]+)+", "an absolute path in the container", "such as /mnt/data")
]
ExperimentName = Annotated[
    str, form(r"[a-z0-9][a-z0-9-]{0,127}", "an experiment's name", "lower-case letters, digits and dashes")
]
Duration = Annotated[str, form(r"[0-9]{1,9}[smhd]", "a duration", "a number and s, m, h or d, such as 30m")]
Topic = Annotated[str, form(rf"{_PROJECT}/topics/{_PART}", "a Pub/Sub topic", "projects/PROJECT/topics/TOPIC")]
Network = Annotated[
    str,
    form(
        rf"projects/[0-9]+/global/networks/{_PART}",
        "a peered network with its project number",
        "projects/NUMBER/global/networks/NAME",
    ),
]
NetworkAttachment = Annotated[
    str,
    form(
        rf"environment|{_PROJECT}/regions/{_PART}/networkAttachments/{_PART}",
        "a network attachment",
        "environment, or projects/PROJECT/regions/REGION/networkAttachments/NAME",
    ),
]
KmsKey = Annotated[
    str,
    form(
        rf"{_PROJECT}/locations/{_PART}/keyRings/{_PART}/cryptoKeys/{_PART}",
        "a key of Cloud KMS",
        "projects/PROJECT/locations/REGION/keyRings/RING/cryptoKeys/KEY",
    ),
]
Reservation = Annotated[
    str,
    form(
        rf"{_PROJECT}/zones/{_PART}/reservations/{_PART}",
        "a reservation",
        "projects/PROJECT/zones/ZONE/reservations/NAME",
    ),
]


_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def seconds(duration: str) -> int:
    """Return a duration in seconds."""
    return int(duration[:-1]) * _SECONDS[duration[-1]]


class PythonSource(Consistent):
    """A file, a package or a folder that is uploaded to the team's bucket at submission."""

    file: InFolder | None = Field(
        default=None, description="One Python file; path from the repository's root.", examples=["src/train.py"]
    )
    package: InFolder | None = Field(
        default=None,
        description="Folder with pyproject.toml or setup.py; path from the repository's root.",
        examples=["src"],
    )
    folder: InFolder | None = Field(
        default=None,
        description="Folder of the working tree; path from the repository's root. command runs in a copy of it, "
        "without an image build. Hidden files and files that git ignores are left out.",
        examples=["src"],
    )
    module: Module | None = Field(default=None, description="package: module to run.", examples=["finetune.train"])
    requirements: tuple[str, ...] = Field(
        default=(), description="With file: packages that pip installs. A package declares its own requirements."
    )
    image: AnyImage | None = Field(
        default=None,
        description="Image with Python; default: Vertex AI's prebuilt one for the accelerator.",
    )
    bucket: Name | None = Field(
        default=None, description="The team's bucket for the upload; default: the bucket of output."
    )

    def conflicts(self) -> Iterator[Problem]:
        """Yield a problem unless exactly one kind of source is set. If one is, yield conflicts with other fields."""
        kinds = [name for name in ("file", "package", "folder") if getattr(self, name) is not None]
        if len(kinds) != 1:
            message = f"{' and '.join(kinds)} are given together" if kinds else "no file, package or folder is given"
            yield Problem((), message, allowed="file, package or folder")
            return
        if self.package and not self.module:
            yield Problem(("package",), "needs the module to run", allowed="package and module")
        if not self.package and self.module:
            runs = "the file itself" if self.file else "command"
            yield Problem(("module",), f"is for a package: {runs} runs", allowed="none")
        if not self.file and self.requirements:
            yield Problem(
                ("requirements",),
                "is for a file: a package declares its own requirements, and for a folder the image must contain them",
                allowed="none",
            )


class MountSource(Consistent):
    """The source of a mount. Exactly one of the fields has to be set."""

    directory: Name | None = Field(default=None, description="Directory of the team, on Filestore.")
    bucket: Name | None = Field(default=None, description="Bucket of the team, mounted by Cloud Storage FUSE.")
    data_set: Name | None = Field(default=None, description="Data set of the environment, in any storage.")

    def conflicts(self) -> Iterator[Problem]:
        """Yield a problem unless exactly one source is set."""
        kinds = [name for name, value in self if value is not None]
        if len(kinds) != 1:
            message = f"{' and '.join(kinds)} are both given" if kinds else "has no source"
            yield Problem((), message, allowed=f"one of {' or '.join(type(self).model_fields)}")


class Mount(Section):
    """A directory, bucket or data set in the job's containers. The variable MOUNT_<NAME> contains its path."""

    name: Name = Field(description="Name of the mount in this job.", examples=["data"])
    source: MountSource = Field(description="Source of the mount.")
    path: Absolute | None = Field(
        default=None,
        description="Path in the container; default: /mnt/nfs/NAME or /gcs/BUCKET, which is fixed on Vertex AI.",
    )
    read_only: bool = Field(default=False, description="Mount it read-only.")
    caches: bool = Field(
        default=False, description="Keep caches of models and compilers here: sets HF_HOME and similar variables."
    )
    file_cache_gib: int = Field(
        default=0, ge=0, description="Bucket on GKE: GiB of the boot disk that cache its files; default: none."
    )


class LocalCheckpoints(Section):
    """A folder in each pod for checkpoints. It survives restarts of the container, but not of the pod."""

    size_gib: int = Field(
        ge=1, description="GiB on each VM, enough for two checkpoints of the VM's part of the model.", examples=[400]
    )
    medium: Literal["ssd", "memory"] = Field(
        default="ssd", description="ssd: the VM's local SSD. memory: counted as memory of the pod."
    )
    restarts: int = Field(
        default=3,
        ge=0,
        le=100,
        description="Restarts of a failed program in its container, which has the checkpoints, before the whole job "
        "restarts.",
    )


Value = int | float | str


class Range(Consistent):
    """The values of one parameter: a list, or for a search a range with two bounds."""

    ELSEWHERE: ClassVar[Mapping[str, str]] = {
        "distribution": "scale",
        "value": "values",
        **dict.fromkeys(("low", "lower"), "min"),
        **dict.fromkeys(("high", "upper"), "max"),
    }

    values: tuple[Value, ...] = Field(default=(), description="The values; a grid tries each.")
    min: int | float | None = Field(default=None, description="Search: minimum.")
    max: int | float | None = Field(default=None, description="Search: maximum.")
    scale: Literal["linear", "log"] = Field(
        default="linear", description="Search: distribution of values between the bounds."
    )

    def conflicts(self) -> Iterator[Problem]:
        """Yield a problem for each combination of fields that is not allowed."""
        bounds = [name for name in ("min", "max") if getattr(self, name) is not None]
        if self.values and bounds:
            yield Problem((bounds[0],), "conflicts with values", allowed="values, or min and max")
        elif not self.values and len(bounds) < 2:
            yield Problem((), "has no values", allowed="values, or min and max")
        if len(set(self.values)) < len(self.values):
            yield Problem(("values",), "has a value twice", allowed="each once")
        if self.min is not None and self.max is not None and self.min >= self.max:
            yield Problem(("max",), f"is {self.max}, but min is {self.min}", allowed=f"more than {self.min}")
        if self.scale == "log" and self.min is not None and self.min <= 0:
            yield Problem(("min",), f"is {self.min}, which has no logarithm", allowed="more than 0")


class Sweep(Consistent):
    """Runs with different parameters: every combination of their values, or the values that a search chooses."""

    ELSEWHERE: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("algorithm", "search_alg", "strategy"), "method"),
        **dict.fromkeys(("count", "max_trials", "num_samples", "run_cap"), "trials"),
        **dict.fromkeys(("max_parallel", "parallel_trials", "concurrency"), "parallel"),
    }

    parameters: dict[Parameter, Range] = Field(
        min_length=1,
        description="Parameters by name; each is an argument, --NAME=VALUE.",
    )
    method: Literal["grid", "random", "bayesian"] = Field(
        default="grid", description="grid: every combination. random, bayesian: a search, only on Vertex AI."
    )
    metric: str | None = Field(
        default=None, min_length=1, description="Metric that trials report (examples/jobs/tune); required on Vertex AI."
    )
    goal: Literal["maximize", "minimize"] = Field(
        default="maximize", description="Whether a larger or a smaller metric is better."
    )
    trials: Annotated[int, Field(ge=1)] | None = Field(default=None, description="Search: total number of trials.")
    parallel: int = Field(
        default=1, ge=1, description="Vertex AI: parallel trials. On GKE the team's queue decides how many run."
    )
    max_failed_trials: int = Field(
        default=0,
        ge=0,
        description="Vertex AI: failed trials after which the search ends; default: the service decides.",
    )

    def conflicts(self) -> Iterator[Problem]:
        """Yield a problem for each combination of fields that is not allowed."""
        if self.method == "grid":
            for name, values in self.parameters.items():
                if not values.values:
                    yield Problem(("parameters", name), "has bounds, but a grid tries values", allowed="values")
            if self.trials is not None:
                yield Problem(("trials",), "is for a search: a grid tries every combination", allowed="none")
        elif self.trials is None:
            yield Problem((), f"a {self.method} search needs a number of trials", allowed="trials")
        if self.trials is not None and self.max_failed_trials > self.trials:
            yield Problem(
                ("max_failed_trials",), f"is {self.max_failed_trials}", allowed=f"at most {self.trials} (trials)"
            )

    @property
    def size(self) -> int:
        """The number of trials of the search, or of combinations in the grid."""
        size = 1
        for values in self.parameters.values():
            size *= len(values.values)
        return size if self.trials is None else self.trials


class Placement(Section):
    """How close to each other Kueue places the VMs of a job."""

    level: str = Field(
        description="Level of the flavor's topology that the VMs share: block, subblock or host.",
        examples=["block"],
    )
    required: bool = Field(
        default=False,
        description="true waits until one domain has room for all VMs; false lets Kueue use several domains.",
    )


class GkeTarget(Consistent):
    """A JobSet in the team's queue of one cluster. TPUs need ``slices``; GPUs and CPUs need ``nodes``."""

    ELSEWHERE: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(
            ("topology", "machine_type", "accelerator", "accelerator_type", "capacity", "spot", "zone", "partition"),
            "flavor; its node pools set this",
        ),
        **dict.fromkeys(("region", "location"), "cluster"),
        **dict.fromkeys(("replicas", "num_nodes", "completions", "parallelism"), "nodes or slices"),
        **dict.fromkeys(("gpus_per_node", "gpu"), "gpus"),
        **dict.fromkeys(("time", "time_limit", "timeout", "timeout_hours", "walltime"), "max_run_hours"),
        "queue": "cluster and flavor",
    }

    cluster: Name = Field(description="Cluster of the environment in which the team has a share.")
    flavor: str | None = Field(
        default=None, description="Flavor of the team's shares in that cluster.", examples=["h100-spot"]
    )
    pool: Name | None = Field(
        default=None,
        description="Instead of flavor: one of the cluster's cpu_pools, without TPUs or GPUs; it uses no share.",
        examples=["general"],
    )
    slices: int | None = Field(
        default=None, ge=1, description="TPU: slices that train together; more than one is multislice."
    )
    nodes: int | None = Field(
        default=None,
        ge=1,
        description="GPU: VMs that train together, each with all its GPUs. CPU: pods, each on its own VM unless cpu is "
        "set.",
    )
    gpus: int | None = Field(
        default=None,
        ge=1,
        description="GPU: number of GPUs on each VM, if not all; other jobs may use the others. nodes is then 1 by "
        "default.",
    )
    priority: Name | None = Field(default=None, description="One of the environment's priorities; default: 0.")
    max_run_hours: int | None = Field(
        default=None,
        ge=1,
        le=8_760,
        description="Longest run over all restarts and evictions; then Kueue ends the job. Default: the limit of the "
        "environment or, with queued-provisioning, of the pools.",
    )
    placement: Placement | None = Field(
        default=None,
        description="Flavor with a topology: how close the VMs are; default: as close as possible, without waiting for "
        "it.",
    )
    grace_seconds: int = Field(
        default=120,
        ge=0,
        le=3600,
        description="Time between SIGTERM and the end, for a checkpoint; GKE gives spot VMs 25 seconds at most.",
    )
    pathways: bool = Field(
        default=False,
        description="TPU: one program controls all slices through Pathways, from a VM of the cluster's pathways pool.",
    )
    host_network: bool = Field(
        default=False,
        description="Use the VM's network: faster between slices, but pods act as the node's service account.",
    )
    unconfined: bool = Field(
        default=False,
        description="Turns off the filter of system calls, and lets setuid programs work: for numactl, perf, sudo, "
        "and containers in the container.",
    )

    @model_validator(mode="before")
    @classmethod
    def _part_of_one_vm(cls, value: Any) -> Any:
        """Return the target with ``nodes: 1`` if only ``gpus`` is given."""
        counted = isinstance(value, dict) and value.get("gpus") and not {"nodes", "slices", "pool"} & value.keys()
        return {**value, "nodes": 1} if counted else value

    def conflicts(self) -> Iterator[Problem]:
        """Yield problems: not one of flavor and pool, not one of the counts, or a field that CPU pools do not have."""
        if (self.flavor is None) == (self.pool is None):
            subject = "neither flavor nor pool is" if self.flavor is None else "flavor and pool are both"
            yield Problem((), f"{subject} given", allowed="flavor, or pool for VMs without TPUs or GPUs")
        for field in ("slices", "gpus", "placement", "pathways"):
            if self.pool and getattr(self, field):
                yield Problem((field,), f"is for flavors: VMs of pool {self.pool} have no TPUs or GPUs", allowed="none")
        if self.pool and self.nodes is None:
            yield Problem((), "has no number of pods", allowed="nodes", nearest="nodes: 1")
        elif not self.pool and (self.slices is None) == (self.nodes is None):
            subject = "neither slices nor nodes is" if self.slices is None else "slices and nodes are both"
            yield Problem((), f"{subject} given", allowed="slices for a flavor of TPUs, nodes for a flavor of GPUs")


INT32 = 2**31 - 1
_MOST_HOURS = 10_000 * 365 * 24  # a protobuf Duration ends at 10,000 years


class OtherMachine(VmSpec):
    """One replica with a separate role and machine type."""


class Reducers(Section):
    """Reduction Server: VMs without GPUs that add up the gradients of the workers."""

    replicas: int = Field(
        ge=1, le=INT32, description="Number of VMs; together they need the bandwidth of the workers.", examples=[4]
    )
    machine_type: MachineTypeName = Field(default="n1-highcpu-16", description="Machine type; no GPUs.")
    image: ImageReference | None = Field(default=None, description="Image of the server; default: Google's.")


class Split(Section):
    """How a managed data set is divided, in percent."""

    training: int = Field(default=80, ge=0, le=100, description="Percent for training.")
    validation: int = Field(default=10, ge=0, le=100, description="Percent for validation.")
    test: int = Field(default=10, ge=0, le=100, description="Percent for the test.")


class UploadedModel(Section):
    """The model that the pipeline uploads to the Model Registry, from AIP_MODEL_DIR."""

    name: str = Field(
        min_length=1, max_length=128, description="Name of the model in the registry.", examples=["ranker"]
    )
    image: ImageReference = Field(
        description="Image that serves it.", examples=["us-docker.pkg.dev/vertex-ai/prediction/tf2-gpu.2-15:latest"]
    )


class Pipeline(Section):
    """A training pipeline around the job. Its input is a managed data set, and its output is a registered model."""

    data_set: str | None = Field(
        default=None, pattern=r"^[0-9]+$", description="ID of a managed data set of Vertex AI.", examples=["1234567890"]
    )
    read_as: Literal["files", "bigquery"] = Field(
        default="files", description="How the job reads the data set: as files below output, or as a BigQuery table."
    )
    annotation_schema: str | None = Field(
        default=None,
        pattern=r"^gs://.+$",
        description="Images, text and video: schema of the exported annotations; tables have none.",
    )
    split: Split = Field(default=Split(), description="How the data set is divided.")
    model: UploadedModel | None = Field(default=None, description="The model to upload; default: none.")


class VertexTarget(VmSpec):
    """A CustomJob of Vertex AI. ``replicas`` is the number of VMs. A TPU has a topology and one replica instead."""

    REMOVED: ClassVar[Mapping[str, str]] = {"max_wait_hours": "max_wait, which takes a unit: 48h instead of 48"}

    ELSEWHERE: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("nodes", "replica_count", "num_nodes"), "replicas"),
        **dict.fromkeys(("gpus", "gpu"), "a machine_type with that many GPUs, or accelerator_count for N1"),
        **dict.fromkeys(("zone", "location"), "region"),
        **dict.fromkeys(("time", "max_run_hours", "walltime"), "timeout_hours"),
        "flavor": "machine_type and capacity",
        "spot": "capacity: spot",
        "service_account": "nothing: the job always runs as the team's account",
    }

    region: Region = Field(description="Region of Vertex AI.")
    topology: str | None = Field(default=None, description="TPU: shape of the slice, such as 4x8.")
    replicas: int = Field(default=1, ge=1, le=INT32, description="GPU and CPU: VMs that train together.")
    chief: OtherMachine | None = Field(
        default=None, description="Other machine type for the first replica, such as the scheduler of a Dask cluster."
    )
    reducers: Reducers | None = Field(default=None, description="Reduction Server, for all-reduce over many GPU VMs.")
    evaluator: OtherMachine | None = Field(default=None, description="One more replica that evaluates checkpoints.")
    capacity: Literal["on-demand", "spot", "flex-start"] = Field(
        default="on-demand",
        description="Provisioning model of the VMs; spot and flex-start charge the preemptible quota.",
    )
    reservation: Reservation | None = Field(
        default=None,
        description="on-demand: reservation that is shared with Vertex AI and has the same VMs as the job.",
    )
    timeout_hours: int = Field(
        default=24,
        ge=1,
        le=_MOST_HOURS,
        description="Longest run, in hours; then Vertex AI ends it. Vertex AI's own default is 168.",
    )
    max_wait: Duration | None = Field(
        default=None,
        description="flex-start, Dynamic Workload Scheduler: longest wait for VMs, which costs nothing; 0s: no limit; "
        "default: 1d.",
        examples=["30m", "2h"],
    )
    boot_disk: VertexBootDisk = Field(default=VertexBootDisk(), description="Boot disk of each VM.")
    network: Network | None = Field(default=None, description="Peered network of the VMs.")
    network_attachment: NetworkAttachment | None = Field(
        default=None,
        description="Network attachment for a PSC interface; `environment` means the environment's own. H100 Mega, "
        "H200 and B200 "
        "need one.",
    )
    kms_key: KmsKey | None = Field(default=None, description="Key of Cloud KMS that encrypts the job's data.")
    web_access: bool = Field(default=False, description="Allow opening a shell in its containers.")
    persistent_resource: Name | None = Field(
        default=None,
        description="Persistent resource of the team to use instead of new VMs; the default machine type and disk are "
        "those of its first pool.",
    )
    pipeline: Pipeline | None = Field(default=None, description="Run it as a training pipeline.")


Target = Literal["gke", "vertex"]
TARGETS: Final[tuple[Target, ...]] = ("gke", "vertex")


class Job(Consistent):
    """A training job with the name of its file. Its folder is named after its team. {run} is the run's name."""

    ELSEWHERE: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("time", "time_limit", "timeout", "walltime"), "gke.max_run_hours or vertex.timeout_hours"),
        "gpu": "gke.gpus",
        "resources": "gke.gpus, cpu and memory_gib",
        "script": "command, or source.file",
        "entrypoint": "command",
        "name": "the file's name, which names the job",
        "team": "the folder's name, which names the team",
        "queue": "gke.cluster and gke.flavor",
        "partition": "gke.flavor",
        **dict.fromkeys(("workers", "num_workers"), "data_loaders"),
        **dict.fromkeys(("volumes", "volume_mounts", "volumeMounts"), "mounts"),
        **dict.fromkeys(("accelerator", "accelerators", "gpu_type"), "gke.flavor or vertex.machine_type"),
        **dict.fromkeys(("spot", "capacity", "use_spot"), "a gke.flavor with spot VMs, or vertex.capacity"),
    }
    environment: Name = Field(description="Environment of the team: ENVIRONMENT in stacks/Pulumi.ENVIRONMENT.yaml.")
    image: AnyImage | None = Field(default=None, description="Container image with tag or digest; or use source.")
    source: PythonSource | None = Field(default=None, description="Python source to run without building an image.")
    command: tuple[str, ...] = Field(default=(), description="Command of the container; default: the image's.")
    args: tuple[str, ...] = Field(default=(), description="Arguments of the program.")
    env: dict[Variable, str] = Field(
        default={},
        description="Environment variables of the container; OUTPUT_URI is the URI of the run's output folder.",
    )
    secrets: dict[Variable, SecretVersion] = Field(
        default={},
        description="Environment variables and the team's secret for each: the secret's name, never its value.",
    )
    cpu: int | None = Field(
        default=None,
        ge=1,
        description="vCPUs that the job needs on each VM; default: all free vCPUs, or the part for its GPUs.",
    )
    memory_gib: int | None = Field(
        default=None,
        ge=1,
        description="Maximum GiB of memory that the job uses on each VM; default on GKE: nine tenths of the VM's "
        "memory, or of the part for its GPUs.",
    )
    disk_gib: int | None = Field(
        default=None,
        ge=1,
        description="GKE: GiB of the VM's own disk that the job may fill; default: three quarters of the free space, "
        "or the part for its GPUs, and at least 30 GiB.",
    )
    shared_memory_gib: int | None = Field(
        default=None,
        ge=0,
        description="GKE: size of /dev/shm in GiB, which counts as memory; 0: the runtime's 64 MiB. Default: half of "
        "the memory; on VMs without accelerators, only if data_loaders is set.",
    )
    data_loaders: int = Field(
        default=0,
        ge=0,
        le=1024,
        description="Processes on each VM that load data and pass it through /dev/shm; DATA_LOADERS is their number.",
    )
    mounts: tuple[Mount, ...] = Field(default=(), description="Directories, buckets and data sets to mount.")
    local_checkpoints: LocalCheckpoints | None = Field(
        default=None,
        description="GKE: a folder on each VM for frequent checkpoints; LOCAL_CHECKPOINT_DIR contains its path.",
    )
    retries: int = Field(
        default=3,
        ge=0,
        le=INT32,
        description="Restarts of the whole job after failures; interruptions do not count. On Vertex AI, 0 disables "
        "restarts, and any other value selects the service's own number. If one of several VMs is interrupted, "
        "programs on the others may fail first, which counts as a failure: set 0 only for one VM.",
    )
    retry_on: tuple[Annotated[int, Field(ge=1, le=255)], ...] = Field(
        default=(),
        description="GKE: exit codes of the program after which the job restarts; any other code ends it. Default: it "
        "restarts after every code. Include the exit codes for lost connections: programs end with them when the job "
        "loses another VM.",
        examples=[[75]],
    )
    count_interruptions: bool = Field(
        default=False,
        description="GKE: count interruptions of VMs as retries too, so that `retries` limits all restarts; "
        "otherwise a "
        "run that is interrupted repeatedly ends only at its max_run_hours.",
    )
    output: Name | None = Field(
        default=None, description="Bucket of the team for checkpoints and results; each run has its own folder."
    )
    tensorboard: bool = Field(default=False, description="Show the logs in output in the team's TensorBoard.")
    experiment: ExperimentName | None = Field(
        default=None, description="Experiment of Vertex AI that keeps the run and its logged metrics."
    )
    profiler: bool = Field(default=False, description="Set PROFILE_URI, and open the profiler's port on Vertex AI.")
    notify: Topic | None = Field(
        default=None,
        description="Pub/Sub topic that gets a message when the program starts and ends.",
    )
    sweep: Sweep | None = Field(default=None, description="Run it with several values of its parameters.")
    gke: GkeTarget | None = Field(
        default=None, description="Run it on GKE; a list has several places in order of preference."
    )
    vertex: VertexTarget | None = Field(
        default=None, description="Run it on Vertex AI; a list has several places in order of preference."
    )

    def conflicts(self) -> Iterator[Problem]:
        """Yield a problem for each combination of fields that is not allowed."""
        if self.gke is None and self.vertex is None:
            yield Problem((), "the job has no target", allowed="gke, vertex or both")
        if (self.image is None) == (self.source is None):
            subject = "neither image nor source is" if self.image is None else "image and source are both"
            yield Problem(() if self.image is None else ("source",), f"{subject} given", allowed="image or source")
        if self.source and self.source.folder and not self.command:
            yield Problem(("source", "folder"), "needs the program to run", allowed="source and command")
        if self.source and not self.source.folder and self.command:
            yield Problem(("command",), "conflicts with source, which has the program", allowed="only args")
        for name in self.secrets.keys() & self.env.keys():
            yield Problem(("secrets", name), "is also a variable of env", allowed="one of the two")
        names = [mount.name for mount in self.mounts]
        for index, name in enumerate(names):
            if name in names[:index]:
                yield Problem(("mounts", index, "name"), f"{name!r} is the name of another mount", allowed="each once")
