"""Queues: shares of flavors, cohorts that lend to each other, preemption, and the order of flavors."""

from collections.abc import Collection, Iterator, Mapping
from typing import Annotated, Literal, TypeVar

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from training_platform.catalog.nearest import find_nearest
from training_platform.config.reading.section import (
    NOTHING,
    Consistent,
    Name,
    Problem,
    Section,
    enumeration,
    unique,
)

Search = Literal["MayStopSearch", "TryNextFlavor"]
Value = TypeVar("Value")
ROOT_COHORT = "training-platform"  # one per cluster, which all others are in; it has an object only where it has quota
Weight = Annotated[
    int,
    Field(
        ge=0,
        description="Weight in fair sharing: weight 2 borrows twice as much as weight 1; weight 0 "
        "borrows only what no other team wants.",
    ),
]


class Share(Section):
    """A share of a ResourceFlavor in a cluster, in chips or GPUs. A cohort's share belongs to all of its members."""

    nominal_quota: int = Field(
        ge=0, description="Nominal quota: number of chips or GPUs that the team can always reclaim.", examples=[16]
    )
    borrowing_limit: int | None = Field(
        default=None, ge=0, description="Maximum number of chips or GPUs that the team may borrow; default: no limit."
    )
    lending_limit: int | None = Field(
        default=None,
        ge=0,
        description="Maximum number of chips or GPUs that other teams may borrow from the share; default: all.",
    )


class CohortSpec(Section):
    """Teams that borrow from each other first, such as a department. A cohort can have its own quota."""

    parent: Name | None = Field(
        default=None, description="Parent cohort; default: the cluster's cohort, which contains all others."
    )
    weight: Weight = 1
    shares: dict[Name, dict[str, Share]] = Field(
        default=NOTHING,
        description="Quota that belongs to no team of the cohort and that all its teams may borrow, keyed by cluster "
        "and flavor.",
        examples=[{"us-central1": {"h100-reservation": {"nominal_quota": 16}}}],
    )


class Preemption(Consistent):
    """The running jobs that a waiting job of the team may stop."""

    within_queue: Literal["Never", "LowerPriority", "LowerOrNewerEqualPriority"] = Field(
        default="LowerPriority", description="Which of the team's own jobs may be preempted."
    )
    reclaim: Literal["Never", "LowerPriority", "Any"] = Field(
        default="Any",
        description="Which jobs of other teams may be preempted if they use quota that the team has lent.",
    )
    borrow_within_cohort: Literal["Never", "LowerPriority"] = Field(
        default="Never",
        description="Which jobs of other teams may be preempted so that the team can borrow their quota; only "
        "without fair sharing.",
    )

    def conflicts(self) -> Iterator[Problem]:
        """Yield a problem if the team may preempt while borrowing, but may not preempt to reclaim its own quota."""
        if self.reclaim == "Never" and self.borrow_within_cohort != "Never":
            message = f"is Never, but borrow_within_cohort is {self.borrow_within_cohort}"
            allowed = "LowerPriority, Any, or borrow_within_cohort: Never"
            yield Problem(("reclaim",), message, allowed=allowed, nearest="LowerPriority")


class Fallback(Section):
    """The order in which Kueue tries flavors for a job. It uses the first with enough quota.

    The order is a list because the engine sorts the keys of a mapping. The order of shares in a file has no effect.
    """

    order: dict[Name, Annotated[tuple[str, ...], AfterValidator(unique)]] = Field(
        default=NOTHING,
        description="Flavors in the order in which Kueue tries them, keyed by cluster. Kueue tries other flavors "
        "after these.",
        examples=[{"us-central1": ["h100-reservation", "h100-spot"]}],
    )
    when_can_borrow: Search = Field(
        default="MayStopSearch",
        description="If a job fits by borrowing: MayStopSearch borrows, TryNextFlavor tries the next flavor first.",
    )
    when_can_preempt: Search = Field(
        default="TryNextFlavor",
        description="If a job fits by preemption: MayStopSearch preempts, TryNextFlavor tries the next flavor first.",
    )

    def ordered(self, cluster: str, flavors: Mapping[str, Value]) -> dict[str, Value]:
        """Return a cluster's flavors, or any mapping keyed by flavor, in the order in which Kueue tries them."""
        first = {name: flavors[name] for name in self.order.get(cluster, ()) if name in flavors}
        return {**first, **flavors}


def check_order(fallback: Fallback, shares: Mapping[str, Collection[str]]) -> None:
    """Raise an error for an order that names a flavor without a share of the team: Kueue would never try it."""
    for cluster, order in fallback.order.items():
        for name in order:
            if name not in shares.get(cluster, ()):
                flavors = shares.get(cluster, ())
                context = {
                    "allowed": enumeration(flavors) or f"none in {cluster}",
                    "nearest": find_nearest(name, flavors),
                    "at": ("fallback", "order", cluster, order.index(name)),
                }
                raise PydanticCustomError(
                    "order", f"{name!r} is not a flavor with a share of the team".replace("{", "{{"), context
                )


def cohort_conflicts(cohorts: Mapping[str, CohortSpec]) -> Iterator[Problem]:
    """Yield a problem for each unknown parent, and for each cohort that contains itself."""
    if ROOT_COHORT in cohorts and cohorts[ROOT_COHORT].parent:
        yield Problem(
            ("cohorts", ROOT_COHORT, "parent"),
            "cannot be set: this cohort contains all others",
            allowed="the field left out",
        )
        return
    names = {*cohorts, ROOT_COHORT}
    for name, cohort in cohorts.items():
        path = ("cohorts", name, "parent")
        if cohort.parent and cohort.parent not in names:
            message = f"{cohort.parent!r} is not a cohort of this environment"
            yield Problem(path, message, allowed=enumeration(names), nearest=find_nearest(cohort.parent, names))
        elif name in (above := _above(name, cohorts)):
            message = f"puts cohort {name} inside itself: {' in '.join((name, *above))}"
            yield Problem(path, message, allowed="a cohort outside {name}, or the field left out", nearest=ROOT_COHORT)


def _above(name: str, cohorts: Mapping[str, CohortSpec]) -> list[str]:
    """Return the ancestors of a cohort, nearest first, without repetition."""
    parents: list[str] = []
    while name in cohorts and (parent := cohorts[name].parent) and parent not in parents:
        parents.append(parent)
        name = parent
    return parents
