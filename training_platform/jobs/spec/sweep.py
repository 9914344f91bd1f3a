"""A sweep: one job with several values of its parameters, as a grid or as a search."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from training_platform.config.reading.conflicts import Conflict, Consistent
from training_platform.jobs.spec.values import Parameter

Value = int | float | str


class Range(Consistent):
    """The values of one parameter: a list, or for a search everything between two bounds."""

    values: tuple[Value, ...] = Field(default=(), description="The values, each of them tried by a grid.")
    min: int | float | None = Field(default=None, description="Search: least value.")
    max: int | float | None = Field(default=None, description="Search: largest value.")
    scale: Literal["linear", "log"] = Field(default="linear", description="Search: how values lie between the bounds.")

    def conflicts(self) -> Iterator[Conflict]:
        """Yield the fields that do not go together."""
        bounds = [name for name in ("min", "max") if getattr(self, name) is not None]
        if self.values and bounds:
            yield Conflict((bounds[0],), "stands beside values", "values, or min and max")
        elif not self.values and len(bounds) < 2:
            yield Conflict((), "has no values", "values, or min and max")
        if len(set(self.values)) < len(self.values):
            yield Conflict(("values",), "has a value twice", "each once")
        if self.min is not None and self.max is not None and self.min >= self.max:
            yield Conflict(("max",), f"is {self.max}, and min is {self.min}", f"more than {self.min}")
        if self.scale == "log" and self.min is not None and self.min <= 0:
            yield Conflict(("min",), f"is {self.min}, and has no logarithm", "more than 0")


class Sweep(Consistent):
    """What is tried: every combination of the parameters' values, or those that a search picks."""

    parameters: dict[Parameter, Range] = Field(
        min_length=1,
        description="Parameters by name; each is an argument, --NAME=VALUE.",
    )
    method: Literal["grid", "random", "bayesian"] = Field(
        default="grid", description="grid: every combination. random, bayesian: a search, on Vertex AI alone."
    )
    metric: str | None = Field(
        default=None, min_length=1, description="Metric that trials report (cloudml-hypertune); Vertex AI needs it."
    )
    goal: Literal["maximize", "minimize"] = Field(default="maximize", description="What is best of the metric.")
    trials: Annotated[int, Field(ge=1)] | None = Field(default=None, description="Search: trials in all.")
    parallel: int = Field(
        default=1, ge=1, description="Vertex AI: trials at a time. On GKE the team's queue says how many run."
    )
    max_failed_trials: int = Field(
        default=0, ge=0, description="Vertex AI: failed trials that end it; default: the service decides."
    )

    def conflicts(self) -> Iterator[Conflict]:
        """Yield the fields that do not go together."""
        if self.method == "grid":
            for name, values in self.parameters.items():
                if not values.values:
                    yield Conflict(("parameters", name), "has bounds, and a grid tries values", "values")
            if self.trials is not None:
                yield Conflict(("trials",), "is for a search: a grid tries every combination", "none")
        elif self.trials is None:
            yield Conflict((), f"does not say how many trials a {self.method} search has", "trials")
        if self.trials is not None and self.max_failed_trials > self.trials:
            yield Conflict(("max_failed_trials",), f"is {self.max_failed_trials}", f"at most {self.trials} (trials)")

    @property
    def size(self) -> int:
        """Trials in all: those of the search, or the combinations of the grid."""
        size = 1
        for values in self.parameters.values():
            size *= len(values.values)
        return size if self.trials is None else self.trials
