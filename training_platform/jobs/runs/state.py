"""A run of a job, wherever it runs: what a person wants to know of it, in one form for GKE and Vertex AI."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

State = Literal["waiting", "starting", "running", "cancelling", "succeeded", "failed", "cancelled", "unknown"]
ENDED: frozenset[State] = frozenset({"succeeded", "failed", "cancelled"})
EXIT_CODES: dict[State, int] = {"succeeded": 0, "failed": 1, "cancelled": 1}


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run. Times are RFC 3339 in UTC; ``reason`` is the platform's own words, empty where it has none.

    ``place`` is the cluster, or the region of Vertex AI; ``identity`` is the name by which its API knows the run.
    ``gone`` says that its objects are, and that this is what Cloud Logging saw of it.
    ``restarts`` counts restarts of the whole job after failures; interruptions of VMs are in ``interruptions``.
    """

    name: str
    job: str
    team: str
    target: Literal["gke", "vertex"]
    place: str
    identity: str
    state: State
    created: str
    reason: str = ""
    started: str = ""
    ended: str = ""
    restarts: int = 0
    interruptions: int = 0
    gone: bool = False

    @property
    def done(self) -> bool:
        """Whether it has ended, well or not."""
        return self.state in ENDED

    def as_json(self) -> dict[str, Any]:
        """Return every field, for programs."""
        return asdict(self)


def quoted(message: str) -> str:
    """Return the platform's own words in quotation marks, on one line, without the full stop that ours brings."""
    return f'"{" ".join(message.split()).rstrip(".")}"'
