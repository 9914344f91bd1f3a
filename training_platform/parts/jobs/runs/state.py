"""A run of a job, in a common form for GKE and Vertex AI."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Literal

State = Literal["waiting", "starting", "running", "cancelling", "succeeded", "failed", "cancelled", "unknown"]
ENDED: frozenset[State] = frozenset({"succeeded", "failed", "cancelled"})
EXIT_CODES: dict[State, int] = {"succeeded": 0, "failed": 1, "cancelled": 1}


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run. Times are RFC 3339 in UTC. ``reason`` is the platform's own message, or "".

    - ``place`` is the cluster, or the region of Vertex AI; ``identity`` is the run's name in its API.
    - ``gone`` is True if its objects no longer exist, so that the data are from Cloud Logging.
    - ``user`` is the submitter according to the run itself; ``accelerators`` are those of all its VMs.
    - ``waiting_reason`` is Kubernetes' reason why containers of a starting run wait, such as ImagePullBackOff.
    - ``restarts`` counts restarts of the whole job after failures; ``interruptions`` counts interruptions of VMs.
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
    waiting_reason: str = ""
    started: str = ""
    ended: str = ""
    restarts: int = 0
    interruptions: int = 0
    user: str = ""
    priority: str = ""
    accelerators: int = 0
    gone: bool = False

    @property
    def done(self) -> bool:
        """Whether the run has ended, successfully or not."""
        return self.state in ENDED

    def as_json(self) -> dict[str, Any]:
        """Return every field as JSON data."""
        return asdict(self)


def since(start: str, end: str, now: datetime) -> str:
    """Return the time from ``start`` to ``end`` or now, such as ``3d``, ``5h`` or ``12m``; "-" without a start."""
    if not start:
        return "-"
    seconds = ((datetime.fromisoformat(end) if end else now) - datetime.fromisoformat(start)).total_seconds()
    minutes = max(0, int(seconds)) // 60
    if minutes >= 2880:
        return f"{minutes // 1440}d"
    if minutes >= 120:
        return f"{minutes // 60}h"
    return f"{minutes}m"


def quoted(message: str) -> str:
    """Return the platform's own message in quotation marks, in one line and without its full stop."""
    return f'"{" ".join(message.split()).rstrip(".")}"'
