"""A job's target on Vertex AI: machines, network, and what turns it into a training pipeline."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from training_platform.config.reading.section import MachineTypeName, Name, Region, Section
from training_platform.config.reading.texts import Image
from training_platform.config.spec.node_options import VmSpec
from training_platform.config.spec.team import VertexBootDisk
from training_platform.jobs.spec.values import KmsKey, Network, NetworkAttachment, Reservation

INT32 = 2**31 - 1
_MOST_HOURS = 10_000 * 365 * 24  # a protobuf Duration ends at 10,000 years


class OtherMachine(VmSpec):
    """One replica of a role of its own, on a machine of its own."""


class Reducers(Section):
    """Reduction Server: VMs without GPUs that add up the gradients of the workers."""

    replicas: int = Field(
        ge=1, le=INT32, description="VMs; together they send as much as the workers do.", examples=[4]
    )
    machine_type: MachineTypeName = Field(default="n1-highcpu-16", description="Machine type; no GPUs.")
    image: Image | None = Field(default=None, description="Image of the server; default: Google's.")


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
    image: Image = Field(
        description="Image that serves it.", examples=["us-docker.pkg.dev/vertex-ai/prediction/tf2-gpu.2-15:latest"]
    )


class Pipeline(Section):
    """A training pipeline around the job: a managed data set before it, the Model Registry after it."""

    data_set: str | None = Field(
        default=None, pattern=r"^[0-9]+$", description="Id of a managed data set of Vertex AI.", examples=["1234567890"]
    )
    read_as: Literal["files", "bigquery"] = Field(
        default="files", description="How the job reads it: files below output, or a table of BigQuery."
    )
    annotation_schema: str | None = Field(
        default=None,
        pattern=r"^gs://.+$",
        description="Images, text and video: schema of the annotations to export; tables have none.",
    )
    split: Split = Field(default=Split(), description="How the data set is divided.")
    model: UploadedModel | None = Field(default=None, description="The model to upload; default: none.")


class VertexTarget(VmSpec):
    """A CustomJob of Vertex AI. ``replicas`` counts VMs; a TPU takes a topology instead, and one replica."""

    region: Region = Field(description="Region of Vertex AI.")
    topology: str | None = Field(default=None, description="TPU: shape of the slice, such as 4x8.")
    replicas: int = Field(default=1, ge=1, le=INT32, description="GPU and CPU: VMs that train together.")
    chief: OtherMachine | None = Field(
        default=None, description="Another machine for the first replica, such as the scheduler of a Dask cluster."
    )
    reducers: Reducers | None = Field(default=None, description="Reduction Server, for all-reduce over many GPU VMs.")
    evaluator: OtherMachine | None = Field(default=None, description="One more replica that evaluates checkpoints.")
    capacity: Literal["on-demand", "spot", "flex-start"] = Field(
        default="on-demand",
        description="Provisioning model of the VMs; spot and flex-start charge the preemptible quota.",
    )
    reservation: Reservation | None = Field(
        default=None,
        description="on-demand: a reservation, shared with Vertex AI, whose VMs are just like the job's.",
    )
    timeout_hours: int = Field(default=24, ge=1, le=_MOST_HOURS, description="Longest run, in hours.")
    max_wait_hours: int | None = Field(
        default=None, ge=0, le=_MOST_HOURS, description="flex-start: longest wait; 0: for ever; default: 24 hours."
    )
    boot_disk: VertexBootDisk = Field(default=VertexBootDisk(), description="Boot disk of each VM.")
    network: Network | None = Field(default=None, description="Peered network that the VMs are in.")
    network_attachment: NetworkAttachment | None = Field(
        default=None,
        description="PSC interface to a network, environment for that one's own; H100 Mega, H200 and B200 need it.",
    )
    kms_key: KmsKey | None = Field(default=None, description="Key of Cloud KMS that encrypts the job's data.")
    web_access: bool = Field(default=False, description="Let people open a shell in its containers.")
    persistent_resource: Name | None = Field(default=None, description="The team's, to run on instead of new VMs.")
    pipeline: Pipeline | None = Field(default=None, description="Run it as a training pipeline.")
