"""The state that services read and write: projects, resources, operations, quota, settings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from local_google_cloud.requests.errors import not_found
from local_google_cloud.state.clock import Clock, stamp
from local_google_cloud.state.interference import Interference
from local_google_cloud.state.long_running import Operations
from local_google_cloud.state.projects import Projects
from local_google_cloud.state.questions import Judge
from local_google_cloud.state.quota_use import QuotaUse
from local_google_cloud.state.store import Record, Store

REAL_DURATIONS = {
    "container.clusters": 360.0,
    "container.nodePools": 180.0,
    "file.instances": 240.0,
    "lustre.instances": 900.0,
    "aiplatform.persistentResources": 600.0,
    "notebooks.instances": 180.0,
}
"""The approximate durations of Google's operations, in seconds (inferred)."""


class CloudSettings(BaseModel):
    """Settings that can change while the server runs.

    Durations are in seconds, keyed by kind: ``<service>.<collection>``, or ``*`` for every other kind.
    """

    # Errors that a client of the server gets name the title.
    model_config = ConfigDict(title="Settings", extra="forbid", strict=True, frozen=True)

    durations: dict[str, Annotated[float, Field(ge=0, allow_inf_nan=False)]] = Field(default_factory=dict)
    check_services: bool = Field(default=True, description="Refuse calls to an API that the project has not enabled.")
    accept_objects: bool = Field(default=True, description="Accept uploads to buckets without storing the data.")
    groups: dict[str, list[str]] = Field(
        default_factory=dict, description="Members of each group, by its e-mail address; a member may be group:..."
    )

    def seconds(self, kind: str) -> float:
        """Return how long an operation on this kind of resource takes."""
        return self.durations.get(kind, self.durations.get("*", 0.0))


class Cloud:
    """The state of the local cloud. Not thread-safe: it handles one request at a time."""

    def __init__(
        self,
        projects: Iterable[str],
        store: Store,
        clock: Clock,
        settings: CloudSettings,
        interference: Interference,
        *,
        judge: Judge,
    ) -> None:
        self.projects = Projects(projects, judge.project_number)
        self.store = store
        self.clock = clock
        self.settings = settings
        self.interference = interference
        self.judge = judge
        self.operations = Operations(store, clock, interference)
        self.quota = QuotaUse(judge, store)

    def existing(self, name: str) -> Record:
        """Return a resource. Raises Refusal if it does not exist."""
        record = self.store.get(name)
        if record is None:
            raise not_found(name.partition("/")[2])
        return record

    def number(self) -> str:
        """Return a new numeric id with 19 digits."""
        return str(4_000_000_000_000_000_000 + self.store.serial() * 7_919)

    def time(self) -> str:
        """Return the current time in the format of Google's APIs."""
        return stamp(self.clock.now())
