"""JupyterHub in a cluster: who signs in, on which machines notebooks run, and whose they are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import AfterValidator, Field

from training_platform.catalog.nearest import find_nearest
from training_platform.config.reading.conflicts import Conflict
from training_platform.config.reading.section import (
    NOTHING,
    Email,
    HostName,
    Members,
    Name,
    Section,
    enumeration,
    unique,
)

NOTEBOOK_PRIORITY = "notebooks"


class OauthSecret(Section):
    """Where the OAuth client secret is kept: no secret enters a stack file or a state."""

    name: Name = Field(
        default="jupyterhub-oauth", description="Name of the Secret in the hub's namespace, or in Secret Manager."
    )
    key: str = Field(default="client-secret", description="Key of a Kubernetes Secret that holds the client secret.")
    secret_manager: bool = Field(
        default=False,
        description="Keep it in Secret Manager, where you add its value; false: a Secret that you create by hand.",
    )


class NotebookTeam(Section):
    """People of a team, whose notebooks run in the team's namespace and queue, on its share of the pools' flavors."""

    users: Annotated[tuple[Email, ...], AfterValidator(unique)] = Field(
        min_length=1, description="Accounts that may start them.", examples=[["ada@example.com"]]
    )
    pools: Annotated[tuple[Name, ...], AfterValidator(unique)] = Field(
        min_length=1, description="Node pools of this cluster that they may run on.", examples=[["a100"]]
    )


class GatewaySpec(Section):
    """A way in from the internet: a load balancer that lets nobody past Identity-Aware Proxy but its members."""

    address: Name = Field(
        description="Reserved global address, to which the host's DNS record leads, by name.", examples=["notebooks"]
    )
    certificate_map: Name = Field(
        description="Certificate map of Certificate Manager with the host's certificate, by name.",
        examples=["notebooks"],
    )
    members: Members = Field(
        min_length=1, description="IAM members that Identity-Aware Proxy lets in.", examples=[["group:ml@example.com"]]
    )


class Notebooks(Section):
    """JupyterHub in a cluster, with home directories on Filestore, and profiles of the pools that it names."""

    filestore: Name = Field(
        description="Filestore instance of the environment that holds the home directories.", examples=["homes"]
    )
    host: HostName | None = Field(
        default=None, description="Host name at which browsers reach the hub; default: localhost, by port-forward."
    )
    gateway: GatewaySpec | None = Field(
        default=None, description="A load balancer for host; default: none, so that host leads to what you put there."
    )
    oauth_client_id: str = Field(
        min_length=1, description="OAuth client id of your Google sign-in.", examples=["notebooks.apps.example.com"]
    )
    oauth_secret: OauthSecret = Field(default=OauthSecret(), description="Where the OAuth client secret is.")
    allowed_domain: HostName = Field(description="Domain whose accounts may sign in.", examples=["example.com"])
    pools: tuple[Name, ...] = Field(
        default=(),
        description="Node pools of this cluster that notebooks may take hosts of; no team is promised what they hold.",
        examples=[["gpu-notebooks"]],
    )
    teams: dict[Name, NotebookTeam] = Field(
        default=NOTHING,
        description="Teams whose people have notebooks on the team's own share, in its queue, below its jobs.",
        examples=[{"vision": {"users": ["ada@example.com"], "pools": ["a100"]}}],
    )
    buckets: bool = Field(
        default=False,
        description="Gives everybody's notebooks a service account that reads buckets of data sets for all teams.",
    )
    idle_minutes: int = Field(default=60, ge=5, description="Minutes after which a notebook that does nothing ends.")
    image: str | None = Field(
        default=None,
        description="Notebook image with its tag; default: the one in the catalogue.",
        examples=["us-docker.pkg.dev/example-train/images/notebook:2026-11"],
    )
    home_gib: int = Field(default=512, ge=1, description="Size of the volume claim for all home directories, in GiB.")

    def conflicts(self, pools: dict[str, object]) -> Iterator[Conflict]:
        """Yield a gateway without host, pools that are not the cluster's, and those that are nobody's and a team's."""
        if self.gateway and self.host is None:
            yield Conflict(("notebooks", "host"), "is missing: a gateway is for one host name", "a host name")
        named: dict[tuple[str | int, ...], str] = {("pools", number): pool for number, pool in enumerate(self.pools)}
        for team, spec in self.teams.items():
            named |= {("teams", team, "pools", number): pool for number, pool in enumerate(spec.pools)}
        for path, pool in named.items():
            at = ("notebooks", *path)
            if pool not in pools:
                allowed = enumeration(pools) or "none is declared under node_pools"
                yield Conflict(at, f"{pool!r} is not a node pool of this cluster", allowed, find_nearest(pool, pools))
            elif path[0] == "teams" and pool in self.pools:
                message = f"{pool!r} is for notebooks that ask no queue, as notebooks.pools says"
                yield Conflict(at, message, "a pool that is not in notebooks.pools")
