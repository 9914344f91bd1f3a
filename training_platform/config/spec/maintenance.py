"""When GKE may upgrade a cluster by itself, and when it may not."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from training_platform.config.reading.section import NOTHING, Name, Section, Time


class MaintenanceExclusion(Section):
    """A time in which GKE does not upgrade the cluster, such as a long training run."""

    start: Time = Field(description="Start, in UTC.")
    end: Time = Field(description="End, in UTC.")
    scope: Literal["no-upgrades", "no-minor-upgrades", "no-minor-or-node-upgrades"] = Field(
        default="no-upgrades", description="Which upgrades are excluded."
    )


class Maintenance(Section):
    """When GKE may upgrade, in UTC: by default at weekends, in 24 of the week's 168 hours.

    To upgrade a TPU slice, GKE recreates it as a whole, and jobs restart from their last checkpoint. GKE requires at
    least 48 hours in every 32 days (newer documents say 92), in windows of at least 4 hours.
    """

    start: Time = Field(default="2026-01-03T06:00:00Z", description="Start of the first window; the others follow it.")
    end: Time = Field(default="2026-01-03T18:00:00Z", description="End of the first window.")
    recurrence: str = Field(
        default="FREQ=WEEKLY;BYDAY=SA,SU",
        description="How the window repeats: an RRULE of RFC 5545.",
        examples=["FREQ=WEEKLY;BYDAY=SA,SU"],
    )
    upgrade_freeze: bool | None = Field(
        default=None,
        description="Keep minor versions and nodes until their support ends; default: where there are node_pools.",
    )
    exclusions: dict[Name, MaintenanceExclusion] = Field(
        default=NOTHING, description="Times without upgrades, by name."
    )
