"""When machines of each provisioning model arrive and are lost, from a file or from assumptions.

The file has a section for each provisioning model::

    spot:
      arrive_minutes: {median: 5, p90: 30}
      lost_hours: {mean: 24}
      source: measured in October

Missing values have defaults. These are assumptions, not figures of Google Cloud.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pydantic import RootModel

from kueue_model import ArrivalTime, CapacityTimes, LossTime
from training_platform.config.model.capacity import Capacity
from training_platform.config.reading.rejection import read_section


class MachineFile(RootModel[dict[Capacity, CapacityTimes]]):
    """A file with times, keyed by provisioning model."""


DEFAULTS: Final[Mapping[str, CapacityTimes]] = {
    "reservation": CapacityTimes(),
    "on-demand": CapacityTimes(arrive_minutes=ArrivalTime(median=5, p90=15)),
    "flex-start": CapacityTimes(arrive_minutes=ArrivalTime(median=60, p90=480)),
    "queued-provisioning": CapacityTimes(arrive_minutes=ArrivalTime(median=60, p90=480)),
    "spot": CapacityTimes(arrive_minutes=ArrivalTime(median=10, p90=60), lost_hours=LossTime(mean=24)),
}


def read_machines(path: Path | None) -> dict[str, CapacityTimes]:
    """Return the times of every provisioning model. Raises UserError with every error in the file."""
    times = dict(DEFAULTS)
    if path is not None:
        times.update({str(name): row for name, row in read_section(path, MachineFile).root.items()})
    return times
