"""Expected start times of waiting jobs, which the platform team publishes for members.

``stacks/waits/ENVIRONMENT-CLUSTER.json`` is the output of ``training-platform simulate --now --format json``. With it,
members see when their jobs may start, without permission to read the queues of others.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from training_platform.config.reading.finding import UserError
from training_platform.config.reading.section import counted

FOLDER = Path("stacks") / "waits"


class Start(NamedTuple):
    """Seconds until a job starts. In a tenth of the simulations it is before ``early``, in a tenth after ``late``."""

    early: float
    median: float
    late: float


class WaitingJob(BaseModel):
    """A waiting job. If it does not start in most simulations, ``start`` is None, and ``why`` gives the reason."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    namespace: str
    job: str
    queue: str
    needs: str
    priority: int
    waits_seconds: float
    start: Start | None
    why: str = ""


class Waits(BaseModel):
    """The waiting jobs of a cluster at a point in time, in the order of their expected start."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    moment: datetime
    runs: int
    notes: tuple[str, ...]
    jobs: tuple[WaitingJob, ...]

    def said_of(self, namespace: str, job: str) -> list[str]:
        """Return sentences about the expected start of a waiting job."""
        rows = [row for row in self.jobs if (row.namespace, row.job) == (namespace, job)]
        return [f"According to the table of {_moment(self.moment)}, {self._start(row)}" for row in rows]

    def said_of_team(self, namespace: str) -> str:
        """Return a sentence about the expected starts of a team's jobs."""
        rows = [row for row in self.jobs if row.namespace == namespace]
        if not rows:
            return f"According to the table of {_moment(self.moment)}, no job of {namespace} waited."
        jobs = counted(len(rows), "job")
        return (
            f"According to the table of {_moment(self.moment)}, {jobs} of {namespace} waited; {self._start(rows[-1])}"
        )

    def _start(self, row: WaitingJob) -> str:
        if row.start is None:
            return f"{row.job} does not start: {row.why}."
        early, median, late = (_moment(self.moment + timedelta(seconds=seconds)) for seconds in row.start)
        return f"{row.job} starts at {median}, in 8 of 10 runs of a simulation between {early} and {late}."


def _moment(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M %Z")


def read_waits(root: Path, environment: str, cluster: str) -> Waits | None:
    """Return the published table of a cluster, given its key in the stack file, or None.

    Raises UserError if the file is not a valid table.
    """
    path = root / FOLDER / f"{environment}-{cluster}.json"
    if not path.is_file():
        return None
    try:
        return Waits.model_validate_json(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, ValidationError) as error:
        command = "training-platform simulate WORKLOADS --now --format json"
        raise UserError(f"{path} is not a table of waits; to print one: {command}.") from error
