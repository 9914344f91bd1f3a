"""The order in which Kueue tries a team's flavors, and when it goes on to the next."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Annotated, Literal, TypeVar

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from training_platform.catalog.nearest import find_nearest
from training_platform.config.reading.section import Name, Section, enumeration, unique

Search = Literal["MayStopSearch", "TryNextFlavor"]
Value = TypeVar("Value")


class Fallback(Section):
    """Which flavor Kueue uses for a job: it tries them in order and takes the first with enough quota.

    The order is a list: the engine sorts the keys of a mapping, so that the order of shares in a file says nothing.
    """

    order: dict[Name, Annotated[tuple[str, ...], AfterValidator(unique)]] = Field(
        default={},
        description="Flavors of each cluster in the order in which Kueue tries them; the others follow.",
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
        """Return a cluster's flavors, or what is kept by their names, in the order in which Kueue is to try them."""
        first = {name: flavors[name] for name in self.order.get(cluster, ()) if name in flavors}
        return {**first, **flavors}


def check_order(fallback: Fallback, shares: Mapping[str, Collection[str]]) -> None:
    """Refuse an order of flavors of which the team has no share: Kueue would never try them."""
    for cluster, order in fallback.order.items():
        for name in order:
            if name not in shares.get(cluster, ()):
                known = shares.get(cluster, ())
                context = {
                    "allowed": enumeration(known) or f"none in {cluster}",
                    "nearest": find_nearest(name, known),
                    "at": ("fallback", "order", cluster, order.index(name)),
                }
                raise PydanticCustomError(
                    "order", f"{name!r} is not a flavor that the team has a share of".replace("{", "{{"), context
                )
