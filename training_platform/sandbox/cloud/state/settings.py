"""What a person can set while the server runs."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

NodeQuota = Literal["current", "maximum"]


class Settings(BaseModel):
    """Durations are seconds by kind, ``<service>.<collection>``, or ``*`` for every other one.

    ``node_quota`` says which VMs of a pool are charged: those that it has, as Google charges them, or those that the
    autoscaler may add, which shows on the first day what would fail on the busiest.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    durations: dict[str, Annotated[float, Field(ge=0, allow_inf_nan=False)]] = Field(default_factory=dict)
    node_quota: NodeQuota = "current"
    check_services: bool = Field(default=True, description="Refuse calls to an API that the project has not enabled.")

    def seconds(self, kind: str) -> float:
        """Return how long an operation on a kind takes."""
        return self.durations.get(kind, self.durations.get("*", 0.0))


REAL_DURATIONS = {
    "container.clusters": 360.0,
    "container.nodePools": 180.0,
    "file.instances": 240.0,
    "lustre.instances": 900.0,
    "aiplatform.persistentResources": 600.0,
    "notebooks.instances": 180.0,
}
"""Roughly what Google takes, in seconds (inferred)."""
