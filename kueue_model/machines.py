"""When machines arrive and are lost: waiting times and interruptions.

``arrive_minutes`` defines a log-normal distribution of the time from a job's admission to the arrival of its machines.
``lost_hours`` defines an exponential distribution of the time until a job is interrupted::

    arrive_minutes: {median: 5, p90: 30}
    lost_hours: {mean: 24}
    source: measured in October

The model leaves out the reuse of idle machines, and failures that affect several jobs.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from typing import Final

from pydantic import Field, model_validator

from training_platform.config.reading.section import Section

_P90: Final = 1.2815515655446004  # standard deviations above the median of a normal distribution
_YEAR_MINUTES: Final = 366 * 24 * 60


class ArrivalTime(Section):
    """How long machines take to arrive, in minutes."""

    median: float = Field(default=0.0, ge=0, le=_YEAR_MINUTES)
    p90: float | None = Field(default=None, gt=0, le=_YEAR_MINUTES)

    @model_validator(mode="after")
    def _ordered(self) -> ArrivalTime:
        if self.p90 is not None and (not self.median or self.p90 < self.median):
            raise ValueError("p90 is below the median, or the median is 0")
        if self.p90 is not None and self.p90 > 1000 * self.median:
            raise ValueError("p90 is more than 1000 times the median")
        return self


class LossTime(Section):
    """How long a job runs until it loses its machines, in hours."""

    mean: float = Field(gt=0, le=_YEAR_MINUTES)


class CapacityTimes(Section):
    """When machines arrive and are lost. Without ``lost_hours``, they are never lost."""

    arrive_minutes: ArrivalTime = ArrivalTime()
    lost_hours: LossTime | None = None
    source: str = "invented"

    def draw(self, draw: random.Random) -> tuple[float, float]:
        """Return two random times in seconds: until the machines arrive, and until they are then lost (or inf)."""
        minutes = self.arrive_minutes.median
        p90 = self.arrive_minutes.p90
        if minutes and p90 is not None:
            minutes = draw.lognormvariate(math.log(minutes), math.log(p90 / minutes) / _P90)
        seconds_until_loss = math.inf
        if self.lost_hours:
            seconds_until_loss = draw.expovariate(1 / (self.lost_hours.mean * 3600))
        return minutes * 60, seconds_until_loss


def expected_losses(
    times: Mapping[str, CapacityTimes], capacities: frozenset[str], seconds: float, checkpoint: float
) -> float:
    """Return how many times, on average, a job loses its machines until it has completed ``seconds`` of work.

    The number grows exponentially with the time between checkpoints, since each loss discards the work that was done
    after the last checkpoint.
    """
    losses = (times[name].lost_hours for name in capacities)
    rate = sum(1 / (loss.mean * 3600) for loss in losses if loss)
    exponent = min(checkpoint, seconds) * rate
    if exponent > 700:  # more than a float holds
        return math.inf
    return seconds * rate * (math.expm1(exponent) / exponent if exponent else 1.0)


def draw_times(times: Mapping[str, CapacityTimes], capacities: frozenset[str], key: str) -> tuple[float, float]:
    """Return two random times in seconds: until a job's machines arrive, and from then until they are lost.

    If a job has several kinds of machines, the last arrival and the first loss count. The same ``key`` always gives the
    same times.
    """
    if all(not times[name].arrive_minutes.median and not times[name].lost_hours for name in capacities):
        return 0.0, math.inf
    draw = random.Random(key)
    arrivals, losses = zip(*(times[name].draw(draw) for name in sorted(capacities)), strict=True)
    return max(arrivals), min(losses)
