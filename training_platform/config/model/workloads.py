"""Workloads other than jobs: JupyterHub of a cluster, and a team's model servers and W&B Launch agents."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import AfterValidator, Field

from training_platform.catalog import MODEL_SERVERS
from training_platform.catalog.nearest import find_nearest
from training_platform.catalog.types import ModelServer
from training_platform.config.reading.section import (
    NOTHING,
    Consistent,
    Email,
    HostName,
    ImageReference,
    Members,
    Name,
    OneOf,
    Problem,
    SecretVersion,
    Section,
    Variable,
    above,
    enumeration,
    form,
    unique,
)

NOTEBOOK_PRIORITY = "notebooks"


class OauthSecret(Section):
    """The location of the OAuth client secret. The secret itself is never in a stack file or in Pulumi's state."""

    name: Name = Field(
        default="jupyterhub-oauth", description="Name of the Secret in the hub's namespace, or in Secret Manager."
    )
    key: str = Field(default="client-secret", description="Key of the client secret in a Kubernetes Secret.")
    secret_manager: bool = Field(
        default=False,
        description="true keeps the secret in Secret Manager, where you add its value. false: you create a "
        "Kubernetes Secret by hand.",
    )


class NotebookTeam(Section):
    """Members of a team whose notebooks run in the team's namespace and queue, and use its share of the flavors."""

    users: Annotated[tuple[Email, ...], AfterValidator(unique)] = Field(
        min_length=1, description="Accounts that may start these notebooks.", examples=[["ada@example.com"]]
    )
    pools: Annotated[tuple[Name, ...], AfterValidator(unique)] = Field(
        min_length=1, description="Node pools of this cluster on which these notebooks may run.", examples=[["a100"]]
    )


class GatewaySpec(Section):
    """Access from the internet: a load balancer with Identity-Aware Proxy, which admits only the members."""

    address: Name = Field(
        description="Name of the reserved global address to which the host's DNS record points.", examples=["notebooks"]
    )
    certificate_map: Name = Field(
        description="Name of the Certificate Manager certificate map with the host's certificate.",
        examples=["notebooks"],
    )
    members: Members = Field(
        min_length=1, description="IAM members that Identity-Aware Proxy admits.", examples=[["group:ml@example.com"]]
    )


class Notebooks(Section):
    """JupyterHub in a cluster, with home directories on Filestore, and a profile for each pool in ``pools``."""

    filestore: Name = Field(
        description="Filestore instance of the environment for the home directories.", examples=["homes"]
    )
    host: HostName | None = Field(
        default=None, description="Host name at which browsers reach the hub; default: localhost, with port-forward."
    )
    gateway: GatewaySpec | None = Field(
        default=None, description="A load balancer for `host`; default: none, so you direct `host` to the hub yourself."
    )
    oauth_client_id: str = Field(
        min_length=1, description="OAuth client id of your Google sign-in.", examples=["notebooks.apps.example.com"]
    )
    oauth_secret: OauthSecret = Field(default=OauthSecret(), description="Location of the OAuth client secret.")
    allowed_domain: HostName = Field(description="Domain whose accounts may sign in.", examples=["example.com"])
    pools: tuple[Name, ...] = Field(
        default=(),
        description="Node pools of this cluster whose VMs notebooks may use. The capacity of these pools is promised "
        "to no team.",
        examples=[["gpu-notebooks"]],
    )
    teams: dict[Name, NotebookTeam] = Field(
        default=NOTHING,
        description="Teams whose members run notebooks in the team's queue, on its share and with a lower priority "
        "than its jobs, keyed by team.",
        examples=[{"vision": {"users": ["ada@example.com"], "pools": ["a100"]}}],
    )
    buckets: bool = Field(
        default=False,
        description="Gives all notebooks a service account that can read the buckets of data sets for all teams.",
    )
    idle_minutes: int = Field(
        default=60, ge=5, description="Minutes after which a notebook without a browser and without kernel output ends."
    )
    image: str | None = Field(
        default=None,
        description="Notebook image with its tag; default: the image in the catalogue.",
        examples=["us-docker.pkg.dev/example-train/images/notebook:2026-11"],
    )
    home_gib: int = Field(default=512, ge=1, description="Size of the volume claim for all home directories, in GiB.")

    def conflicts(self, pools: dict[str, object]) -> Iterator[Problem]:
        """Yield a problem for a gateway without host, unknown pools, and a team's pools that are in ``pools`` too."""
        if self.gateway and self.host is None:
            yield Problem(("notebooks", "host"), "is missing: the gateway needs a host name", allowed="a host name")
        named: dict[tuple[str | int, ...], str] = {("pools", number): pool for number, pool in enumerate(self.pools)}
        for team, spec in self.teams.items():
            named |= {("teams", team, "pools", number): pool for number, pool in enumerate(spec.pools)}
        for path, pool in named.items():
            field = ("notebooks", *path)
            if pool not in pools:
                allowed = enumeration(pools) or "none is declared under node_pools"
                yield Problem(
                    field,
                    f"{pool!r} is not a node pool of this cluster",
                    allowed=allowed,
                    nearest=find_nearest(pool, pools),
                )
            elif path[0] == "teams" and pool in self.pools:
                message = f"{pool!r} is in notebooks.pools, so its notebooks do not use the queue"
                yield Problem(field, message, allowed="a pool that is not in notebooks.pools")


SERVING_PRIORITY = "serving"
Port = Annotated[int, Field(ge=1, le=65535)]
ServerName = Annotated[str, OneOf("model server", MODEL_SERVERS)]


class ServerSpec(Consistent):
    """A model server: replicas of an image, from a minimum to a maximum number, each on VMs or on a part of a VM."""

    flavor: str = Field(description="Flavor in which the team has a share.", examples=["h100-reservation"])
    server: ServerName = Field(
        default="vllm", description="Server program in the image; it determines the port and the metric."
    )
    image: ImageReference = Field(
        description="Container image with its tag or digest.",
        examples=["us-docker.pkg.dev/example-train/images/vllm:0.11"],
    )
    command: tuple[str, ...] = Field(default=(), description="Command of the container; default: the image's command.")
    args: tuple[str, ...] = Field(
        default=(), description="Arguments of the program.", examples=[["--model=google/gemma-3-27b-it"]]
    )
    vms: int | None = Field(
        default=None,
        ge=1,
        description="Number of VMs of each replica; default: all VMs of one TPU slice, or one VM with GPUs.",
    )
    worker_command: tuple[str, ...] = Field(
        default=(),
        description="Command on all VMs of a replica except the first; default: the command of the first VM.",
        examples=[["sh", "-c", "ray start --address=$LWS_LEADER_ADDRESS:6379 --block"]],
    )
    port: Port | None = Field(
        default=None, description="Port of the server; default: the default port of the software."
    )
    env: dict[Variable, str] = Field(default=NOTHING, description="Variables of the container.")
    secrets: dict[Variable, SecretVersion] = Field(
        default=NOTHING,
        description="Secrets of the team, keyed by the variable that gets the value. They need `command`.",
    )
    chips: int | None = Field(
        default=None, ge=1, description="Chips or GPUs of a pod; default: all chips or GPUs of a VM."
    )
    min_replicas: int = Field(default=1, ge=1, description="Minimum number of replicas.")
    max_replicas: int = Field(
        default=1, ge=1, description="Maximum number of replicas, which must fit in the team's share."
    )
    metric: str | None = Field(
        default=None,
        pattern=r"^[a-zA-Z_:][a-zA-Z0-9_:]*$",
        description="The server's gauge metric that determines the number of replicas; default: the length of its "
        "request queue.",
        examples=["vllm:gpu_cache_usage_perc"],
    )
    target: int | None = Field(
        default=None,
        ge=1,
        description="If the mean of the metric over all replicas is above this value, replicas are added.",
    )
    priority: Name = Field(
        default=SERVING_PRIORITY,
        description="Priority of the pods in Kueue; default: above all priorities of the environment.",
    )

    @property
    def known(self) -> ModelServer:
        """The server's row in the catalogue."""
        return MODEL_SERVERS[self.server]

    def conflicts(self) -> Iterator[Problem]:
        """Yield a problem for each combination of fields that is not allowed."""
        yield from above("min_replicas", self.min_replicas, "max_replicas", self.max_replicas)
        if self.secrets and not self.command:
            message = (
                "is missing: secrets are fetched before the program starts, and the command of the image is not "
                "known here"
            )
            yield Problem(("command",), message, allowed="the command of the image", nearest=None)
        for name in sorted(self.secrets.keys() & self.env.keys()):
            yield Problem(("secrets", name), "is also a variable in env", allowed="one of the two")
        if self.metric and not self.target:
            yield Problem(
                ("target",), f"is missing: {self.metric} has no default", allowed="the mean over all replicas"
            )


AGENT_BEGINNING = "wandb-"  # of the namespaces of agents, and the team's name
Entity = Annotated[str, form(r"[A-Za-z0-9][\w.-]*", "an entity of W&B", "the name of a team or user of W&B")]
QueueNames = Annotated[tuple[str, ...], AfterValidator(unique), Field(min_length=1)]
Address = Annotated[str, form(r"https://[\w.-]+(:\d+)?(/\S*)?", "an address of a W&B server", "https://HOST")]


class LaunchSpec(Section):
    """A W&B Launch agent. It runs outside the team's namespace; its jobs run in the namespace, in the team's queue."""

    entity: Entity = Field(description="W&B team or user that owns the queues.", examples=["example-vision"])
    queues: QueueNames = Field(description="W&B Launch queues from which the agent takes jobs.", examples=[["gpus"]])
    max_jobs: int = Field(
        default=10, ge=1, description="Maximum number of jobs at the same time, including jobs that wait for quota."
    )
    base_url: Address = Field(default="https://api.wandb.ai", description="Address of the W&B server.")
    image: ImageReference | None = Field(
        default=None,
        description="Container image of the agent, for example in a mirror; default: the image in the catalogue.",
        examples=["us-docker.pkg.dev/example-train/images/launch-agent:0.17.3"],
    )
