"""Estimated hourly prices of machines, disks, file systems and network components, based on dated list prices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date

from training_platform.catalog.loader import default
from training_platform.catalog.types import ChargedCapacity, MachineType, Price

LEFT_OUT = (
    "traffic", "backups", "buckets without size_gib", "volume claims on storage classes without a limit",
    "Vertex AI's own fee and disks",
)  # fmt: skip
"""Costs that no total includes. Every total is therefore a lower bound."""
FRESH_DAYS = 90  # of the catalogue's prices; older ones are examples
HOURS_OF_MONTH = 730  # as Google's pages on prices count
EXAMPLES = (
    f"the catalogue's prices are only examples, more than {FRESH_DAYS} days old; add current prices to "
    f"stacks/prices.yaml"
)
LOCAL_SSD = "local SSD"  # the note of a machine's price that leaves it out
LOCAL_SSD_SERVICE = "local-ssd"


@dataclass(frozen=True, kw_only=True)
class PriceBook:
    """An organisation's own prices and discounts, which take precedence over the catalogue's list prices.

    - ``machines`` are in USD per VM and hour, keyed by machine type, capacity and region.
    - ``services`` are in USD per unit of the catalogue's price, keyed by name and region.
    - ``discounts`` are the fractions of a list price by which it is reduced. They are keyed by the name of a machine
      type or service; the keys ``machines`` and ``services`` apply to all others.

    The region "*" means every other region.
    """

    machines: Mapping[str, Mapping[ChargedCapacity, Mapping[str, float]]] = field(default_factory=dict)
    services: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    discounts: Mapping[str, float] = field(default_factory=dict)
    read: date | None = None
    most_more_per_hour: float | None = None

    def share(self, name: str, kind: str) -> float:
        """Return the fraction of the list price that the organisation pays."""
        return 1 - self.discounts.get(name, self.discounts.get(kind, 0.0))


LIST = PriceBook()


@dataclass(frozen=True, kw_only=True)
class Cost:
    """The cost in USD per hour of the minimum and the maximum number of machines, as far as prices are known.

    - ``unpriced`` names everything that has no price, so a partial sum is not mistaken for the total.
    - ``machines`` names the machine types in ``unpriced``.
    - ``vms_without`` is how many of the ``vms`` have no price.
    - ``unverified`` names everything whose price was read by somebody else.
    - ``read`` is the date of the oldest price in the sum, and ``shipped`` is the date of the oldest catalogue
      price in it.

    The costs in ``LEFT_OUT`` are never included.
    """

    minimum: float = 0.0
    maximum: float = 0.0
    unpriced: tuple[str, ...] = ()
    machines: tuple[str, ...] = ()
    unverified: tuple[str, ...] = ()
    read: date | None = None
    shipped: date | None = None
    vms: int = 0
    vms_without: int = 0

    @property
    def sums_up(self) -> bool:
        """Whether at least half of the VMs have a price; otherwise the sum is meaningless."""
        return 2 * self.vms_without <= self.vms

    def is_example(self, today: date) -> bool:
        """Return True if the sum includes catalogue prices that are so old that they serve only as examples."""
        return self.shipped is not None and (today - self.shipped).days > FRESH_DAYS

    def __add__(self, other: Cost) -> Cost:
        """Return the sum of two costs."""
        read = [day for day in (self.read, other.read) if day]
        shipped = [day for day in (self.shipped, other.shipped) if day]
        return Cost(
            minimum=self.minimum + other.minimum,
            maximum=self.maximum + other.maximum,
            unpriced=tuple(dict.fromkeys((*self.unpriced, *other.unpriced))),
            machines=tuple(dict.fromkeys((*self.machines, *other.machines))),
            unverified=tuple(dict.fromkeys((*self.unverified, *other.unverified))),
            read=min(read, default=None),
            shipped=min(shipped, default=None),
            vms=self.vms + other.vms,
            vms_without=self.vms_without + other.vms_without,
        )


def machines_cost(
    machine: MachineType, capacity: ChargedCapacity, region: str, min_vms: int, max_vms: int, *, book: PriceBook = LIST
) -> Cost:
    """Return the cost of VMs of one type. A reservation costs the same whether it is used or not."""
    if not max_vms:
        return Cost()
    paid = max_vms if capacity == "reservation" else min_vms
    agreed = _at(book.machines.get(machine.name, {}).get(capacity, {}), region)
    if agreed is not None:
        return Cost(minimum=paid * agreed, maximum=max_vms * agreed, read=book.read, vms=max_vms)
    usd = hourly_usd(machine, capacity, region)
    price = list_price(machine)
    if usd is None or price is None:
        name = f"{machine.name} {capacity}"
        return Cost(unpriced=(name,), machines=(name,), vms=max_vms, vms_without=max_vms)
    usd *= book.share(machine.name, "machines")
    unverified = () if price is machine.price else (f"GPUs of {machine.name}",)
    bare = Cost(
        minimum=paid * usd,
        maximum=max_vms * usd,
        read=price.read,
        shipped=price.read,
        vms=max_vms,
        unverified=unverified,
    )
    for part in price.without:
        if part == LOCAL_SSD:
            gib = machine.local_ssd.bundled * machine.local_ssd.partition_gib
            bare += local_ssd_cost(gib, capacity, region, paid, max_vms, book=book)
        else:
            bare += Cost(unpriced=(f"{part} of {machine.name}",))
    return bare


def service_cost(name: str, region: str, min_amount: float, max_amount: float, book: PriceBook = LIST) -> Cost:
    """Return the cost of things other than machines: GiB of storage, gateways, addresses, clusters."""
    if not max_amount:
        return Cost()
    listed = default().service_prices.get(name)
    agreed = _at(book.services.get(name, {}), region)
    usd = agreed
    if usd is None and listed:
        usd = _at(listed.usd, region)
    if usd is None:
        return Cost(unpriced=(f"{name} in {region}",))
    usd *= book.share(name, "services") if agreed is None else 1
    # Services without a list price here are counted by GiB and month, like all storage.
    usd /= HOURS_OF_MONTH if listed is None or listed.per != "hour" else 1
    if agreed is not None or listed is None:
        return Cost(minimum=min_amount * usd, maximum=max_amount * usd, read=book.read)
    unverified = (f"{name} in {region}",) if "usd" in listed.unverified else ()
    return Cost(
        minimum=min_amount * usd, maximum=max_amount * usd, unverified=unverified, read=listed.read, shipped=listed.read
    )


def local_ssd_cost(
    gib: int, capacity: ChargedCapacity, region: str, min_vms: int, max_vms: int, *, book: PriceBook = LIST
) -> Cost:
    """Return the cost of local SSD for VMs that have ``gib`` GiB each."""
    name = f"{LOCAL_SSD_SERVICE}-spot" if capacity == "spot" else LOCAL_SSD_SERVICE
    return service_cost(name, region, gib * min_vms, gib * max_vms, book)


def list_price(machine: MachineType) -> Price | None:
    """Return the list price of a VM, or that of its GPUs if the VM has no price; None if neither has one."""
    of_gpus = machine.accelerator.price if machine.accelerator else None
    if machine.price or of_gpus is None:
        return machine.price
    without = ["vCPUs and memory"]
    if machine.local_ssd.bundled:
        without.append(LOCAL_SSD)
    return replace(of_gpus, without=tuple(without))


def hourly_usd(machine: MachineType, capacity: ChargedCapacity, region: str) -> float | None:
    """Return the list price of one VM in USD per hour, or None if the catalogue has none for the region.

    A reservation costs the same as on-demand. Flex-start has no published list price. Its price is at most the
    on-demand price, which is used here.
    """
    price = list_price(machine)
    if price is None:
        return None
    usd = _of_region(price, capacity, region)
    if usd is None and capacity in ("reservation", "flex-start"):
        usd = _of_region(price, "on-demand", region)
    return None if usd is None else usd * (1 if price.unit == "vm" else machine.chips)


def _of_region(price: Price, capacity: ChargedCapacity, region: str) -> float | None:
    return _at(price.usd.get(capacity, {}), region)


def _at(by_region: Mapping[str, float], region: str) -> float | None:
    return by_region.get(region, by_region.get("*"))
