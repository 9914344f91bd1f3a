"""The exports of an environment stack, and how a team stack reads them. No Pulumi.

The team's own file and the environment's file decide what a team stack creates; outputs only fill in what a
deployment alone can tell. They are read once, as a whole, so that one sentence names everything that is missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

Item = TypeVar("Item")


class OutputsError(Exception):
    """An environment's outputs that a team stack cannot work with; the message says which stack to deploy first."""


class _Outputs(BaseModel):
    # Unknown keys pass: an environment deployed by a newer program exports more than an older team stack reads.
    model_config = ConfigDict(extra="ignore", frozen=True)


class ClusterOutputs(_Outputs):
    """A cluster: the host name of its DNS-based control-plane endpoint, without scheme, and its flavors.

    ``flavors`` is None where a program deployed it that did not export them yet.
    """

    endpoint: str
    flavors: tuple[str, ...] | None = None


class InstanceOutputs(_Outputs):
    """An instance of Filestore or Managed Lustre: its name in the API and the address that clients mount."""

    instance: str
    ip: str


class EnvironmentOutputs(_Outputs):
    """Everything that an environment exports, by the keys of its stack file."""

    environment: str
    clusters: dict[str, ClusterOutputs]
    filestore: dict[str, InstanceOutputs] = {}
    lustre: dict[str, InstanceOutputs] = {}
    google_apis: str | None = None  # the range that names of Google's APIs lead to; None where it is public

    def cluster(self, name: str) -> ClusterOutputs:
        """Return a cluster's outputs. Raises OutputsError where the deployed environment has no such cluster."""
        return self._of(self.clusters, "cluster", name)

    def cluster_with(self, name: str, flavors: Iterable[str]) -> ClusterOutputs:
        """Return a cluster that has these flavors. Raises OutputsError where it is deployed without one of them.

        A queue with a missing flavor admits nothing, not even on its other flavors.
        """
        outputs = self.cluster(name)
        missing = [flavor for flavor in flavors if outputs.flavors is not None and flavor not in outputs.flavors]
        if missing:
            what = f"flavor{'s' if len(missing) > 1 else ''} {', '.join(missing)}"
            raise OutputsError(
                f"Stack {self.environment} is deployed without {what} in cluster {name}: {_deploy(self.environment)}"
            )
        return outputs

    def instance(self, name: str) -> InstanceOutputs:
        """Return a Filestore instance's outputs. Raises OutputsError where the deployed environment has none."""
        return self._of(self.filestore, "Filestore instance", name)

    def lustre_instance(self, name: str) -> InstanceOutputs:
        """Return a Managed Lustre instance's outputs. Raises OutputsError where the deployed environment has none."""
        return self._of(self.lustre, "Managed Lustre instance", name)

    def check_google_apis(self, wanted: str) -> None:
        """Raise OutputsError where names of Google's APIs do not lead to a range: policies would close them to pods."""
        if self.google_apis != wanted:
            raise OutputsError(
                f"Stack {self.environment} is deployed without names of Google's APIs that lead to {wanted}: "
                f"{_deploy(self.environment)}"
            )

    def _of(self, items: Mapping[str, Item], what: str, name: str) -> Item:
        if name not in items:
            raise OutputsError(
                f"Stack {self.environment} is deployed without {what} {name}: {_deploy(self.environment)}"
            )
        return items[name]


def parse_outputs(environment: str, outputs: Mapping[str, Any]) -> EnvironmentOutputs:
    """Return an environment's outputs as a model. Raises OutputsError with one sentence for all that is missing."""
    try:
        return EnvironmentOutputs.model_validate({"environment": environment, **outputs})
    except ValidationError as error:
        missing = ", ".join(".".join(str(part) for part in detail["loc"]) for detail in error.errors())
        raise OutputsError(f"Stack {environment} does not export {missing}: {_deploy(environment)}") from error


def _deploy(environment: str) -> str:
    return f"run `pulumi up -s {environment}` first."
