"""Model servers of a team: pods on TPUs or GPUs that answer requests, as many as their load asks for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from training_platform.catalog import MODEL_SERVERS
from training_platform.catalog.types import ModelServer
from training_platform.config.reading.conflicts import Conflict, Consistent, above
from training_platform.config.reading.section import NOTHING, Name, OneOf
from training_platform.config.reading.texts import Image, SecretVersion, Variable

SERVING_PRIORITY = "serving"
Port = Annotated[int, Field(ge=1, le=65535)]
ServerName = Annotated[str, OneOf("model server", MODEL_SERVERS)]


class ServerSpec(Consistent):
    """A model server: replicas of one image, each on one VM, part of a VM or several VMs, scaled between two bounds."""

    flavor: str = Field(description="Flavor that the team has a share of.", examples=["h100-reservation"])
    server: ServerName = Field(
        default="vllm", description="Program of the image, which decides its ports, its health and its metric."
    )
    image: Image = Field(
        description="Container image with its tag or digest.",
        examples=["us-docker.pkg.dev/example-train/images/vllm:0.11"],
    )
    command: tuple[str, ...] = Field(default=(), description="Program of the container; default: the image's.")
    args: tuple[str, ...] = Field(
        default=(), description="Arguments of the program.", examples=[["--model=google/gemma-3-27b-it"]]
    )
    vms: int | None = Field(
        default=None, ge=1, description="VMs of each replica; default: all VMs of one TPU slice, or one VM with GPUs."
    )
    worker_command: tuple[str, ...] = Field(
        default=(),
        description="Program on all VMs of a replica but the first; default: the same as on the first.",
        examples=[["sh", "-c", "ray start --address=$LWS_LEADER_ADDRESS:6379 --block"]],
    )
    port: Port | None = Field(default=None, description="Port that it answers on; default: the server's own.")
    env: dict[Variable, str] = Field(default=NOTHING, description="Variables of the container.")
    secrets: dict[Variable, SecretVersion] = Field(
        default=NOTHING, description="Variables whose values are secrets of the team, by name; they need a command."
    )
    chips: int | None = Field(default=None, ge=1, description="Chips or GPUs of a pod; default: all of a VM.")
    min_replicas: int = Field(default=1, ge=1, description="Minimum number of replicas.")
    max_replicas: int = Field(
        default=1, ge=1, description="Maximum number of replicas; the team's share has to hold them."
    )
    metric: str | None = Field(
        default=None,
        pattern=r"^[a-zA-Z_:][a-zA-Z0-9_:]*$",
        description="Gauge metric of the server that it is scaled by; default: its queue of requests.",
        examples=["vllm:gpu_cache_usage_perc"],
    )
    target: int | None = Field(
        default=None, ge=1, description="Mean of the metric over all replicas, above which replicas are added."
    )
    priority: Name = Field(
        default=SERVING_PRIORITY, description="Priority of its pods in Kueue; default: above all of the environment's."
    )

    @property
    def known(self) -> ModelServer:
        """The server's row in the catalogue."""
        return MODEL_SERVERS[self.server]

    @property
    def metrics_port(self) -> int:
        """The port of its metrics: a port of their own, or the one that it answers on."""
        own = self.known.metrics_port
        return own if own != self.known.port else self.port or own

    def conflicts(self) -> Iterator[Conflict]:
        """Yield the fields that do not go together."""
        yield from above("min_replicas", self.min_replicas, "max_replicas", self.max_replicas)
        if self.secrets and not self.command:
            message = "is missing: secrets are fetched before the program starts, and only the image knows its own"
            yield Conflict(("command",), message, "the program of the image", None)
        for name in sorted(self.secrets.keys() & self.env.keys()):
            yield Conflict(("secrets", name), "is a variable of env too", "one of the two")
        if self.metric and not self.target:
            yield Conflict(("target",), f"is missing: {self.metric} has no default", "a mean over all replicas")
