"""List prices per hour: of one VM, and of a number of them. Estimates, with their date."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from training_platform.catalog.types import Capacity, MachineType, Price

LEFT_OUT = ("disks", "Filestore", "network", "control planes")
"""What no sum holds, so that every sum is a least one."""


@dataclass(frozen=True, kw_only=True)
class Cost:
    """USD per hour at the fewest and the most machines, of the machines that have a price.

    ``unpriced`` names what has none, so that a sum is never taken for the whole; ``read`` is the date of the oldest
    price in it. ``LEFT_OUT`` is never in it.
    """

    least: float = 0.0
    most: float = 0.0
    unpriced: tuple[str, ...] = ()
    read: date | None = None

    def __add__(self, other: Cost) -> Cost:
        """Return the cost of both."""
        dates = [day for day in (self.read, other.read) if day]
        return Cost(
            least=self.least + other.least,
            most=self.most + other.most,
            unpriced=tuple(dict.fromkeys((*self.unpriced, *other.unpriced))),
            read=min(dates, default=None),
        )


def machines_cost(machine: MachineType, capacity: Capacity, region: str, least: int, most: int) -> Cost:
    """Return the cost of VMs of one type; a reservation is paid for whether it is used or not."""
    usd = hourly_usd(machine, capacity, region)
    if usd is None or machine.price is None:
        return Cost(unpriced=(f"{machine.name} {capacity}",)) if most else Cost()
    paid = most if capacity == "reservation" else least
    without = tuple(f"{part} of {machine.name}" for part in machine.price.without if most)
    return Cost(least=paid * usd, most=most * usd, read=machine.price.read, unpriced=without)


def hourly_usd(machine: MachineType, capacity: Capacity, region: str) -> float | None:
    """Return the list price of one VM in USD per hour, None where the catalogue has none for the region.

    A reservation costs what on-demand costs. Flex-start has no published list price: it counts as on-demand, of
    which it is at most the whole.
    """
    price = machine.price
    if price is None:
        return None
    usd = _of_region(price, capacity, region)
    if usd is None and capacity in ("reservation", "flex-start"):
        usd = _of_region(price, "on-demand", region)
    return None if usd is None else usd * (1 if price.unit == "vm" else machine.chips)


def _of_region(price: Price, capacity: Capacity, region: str) -> float | None:
    by_region = price.usd.get(capacity, {})
    return by_region.get(region, by_region.get("*"))
