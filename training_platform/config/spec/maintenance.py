"""When GKE may upgrade a cluster by itself, and when it may not."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from training_platform.config.reading.section import Name, Section, Time


class MaintenanceExclusion(Section):
    """A time in which GKE does not upgrade, such as a long run before a deadline."""

    start: Time
    end: Time
    scope: Literal["no-upgrades", "no-minor-upgrades", "no-minor-or-node-upgrades"] = "no-upgrades"


class Maintenance(Section):
    """When GKE may upgrade, in UTC: by default at weekends, in 24 of the week's 168 hours.

    GKE recreates a TPU slice as a whole to upgrade it, and jobs start from their last checkpoint. It asks for 48 hours
    in every 32 days, or of late 92, in parts of 4 at least. ``start`` and ``end`` only anchor the recurrence: the
    default is a Saturday.
    """

    start: Time = "2026-01-03T06:00:00Z"
    end: Time = "2026-01-03T18:00:00Z"
    recurrence: str = Field(default="FREQ=WEEKLY;BYDAY=SA,SU", description="An RRULE of RFC 5545.")
    exclusions: dict[Name, MaintenanceExclusion] = {}
