"""The outputs that an environment stack exports, and how a team stack reads them. Pulumi is not imported.

The team's file and the environment's file determine what a team stack creates. Outputs only add values that exist after
a deployment. They are read together, so a single message names everything that is missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

Item = TypeVar("Item")


class OutputsError(Exception):
    """Outputs of an environment are missing. The message names the stack to deploy first."""


class _Outputs(BaseModel):
    # Unknown keys pass: an environment deployed by a newer program exports more than an older team stack reads.
    model_config = ConfigDict(extra="ignore", frozen=True)


class ClusterOutputs(_Outputs):
    """A cluster: the host name of its DNS-based control-plane endpoint, without a scheme, and its flavors.

    ``flavors`` is None if the environment was deployed by an older program that did not export them.
    """

    endpoint: str
    flavors: tuple[str, ...] | None = None


class InstanceOutputs(_Outputs):
    """An instance of Filestore or Managed Lustre: its name in the API and the address that clients mount."""

    instance: str
    ip: str


class EnvironmentOutputs(_Outputs):
    """Everything that an environment exports. Clusters and instances have the same keys as in its stack file."""

    environment: str
    clusters: dict[str, ClusterOutputs]
    filestore: dict[str, InstanceOutputs] = {}
    lustre: dict[str, InstanceOutputs] = {}
    google_apis: str | None = None  # the range to which names of Google's APIs lead; None if it is the public one

    def cluster(self, name: str) -> ClusterOutputs:
        """Return a cluster's outputs. Raises OutputsError if the deployed environment has no such cluster."""
        return self._deployed(self.clusters, "cluster", name)

    def cluster_with(self, name: str, flavors: Iterable[str]) -> ClusterOutputs:
        """Return a cluster's outputs. Raises OutputsError if one of these flavors is missing from the deployed cluster.

        A queue in which one flavor is missing admits nothing, not even on its other flavors.
        """
        outputs = self.cluster(name)
        missing = [flavor for flavor in flavors if outputs.flavors is not None and flavor not in outputs.flavors]
        if missing:
            plural = "s" if len(missing) > 1 else ""
            raise OutputsError(
                f"Stack {self.environment} is deployed without flavor{plural} {', '.join(missing)} in cluster {name}: "
                f"{_deploy(self.environment)}"
            )
        return outputs

    def instance(self, name: str) -> InstanceOutputs:
        """Return a Filestore instance's outputs. Raises OutputsError if the deployed environment does not have it."""
        return self._deployed(self.filestore, "Filestore instance", name)

    def lustre_instance(self, name: str) -> InstanceOutputs:
        """Return a Managed Lustre instance's outputs. Raises OutputsError if it is not deployed."""
        return self._deployed(self.lustre, "Managed Lustre instance", name)

    def check_google_apis(self, addresses: str) -> None:
        """Raise OutputsError unless names of Google's APIs resolve to the addresses that network policies allow."""
        if self.google_apis != addresses:
            raise OutputsError(
                f"Stack {self.environment} is deployed without DNS names of Google's APIs that resolve to {addresses}: "
                f"{_deploy(self.environment)}"
            )

    def _deployed(self, items: Mapping[str, Item], kind: str, name: str) -> Item:
        """Return the deployed item with this name; ``kind`` describes it in the message. Raises OutputsError."""
        if name not in items:
            raise OutputsError(
                f"Stack {self.environment} is deployed without {kind} {name}: {_deploy(self.environment)}"
            )
        return items[name]


def parse_outputs(environment: str, outputs: Mapping[str, Any]) -> EnvironmentOutputs:
    """Return an environment's outputs as a model. Raises OutputsError with one sentence about all missing keys."""
    try:
        return EnvironmentOutputs.model_validate({"environment": environment, **outputs})
    except ValidationError as error:
        missing = ", ".join(".".join(str(part) for part in detail["loc"]) for detail in error.errors())
        raise OutputsError(f"Stack {environment} does not export {missing}: {_deploy(environment)}") from error


def _deploy(environment: str) -> str:
    return f"first run `pulumi up -s {environment}`."
