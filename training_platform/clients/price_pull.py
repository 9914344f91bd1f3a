"""List prices of the catalogue's machine types and disks from the SKUs of the Cloud Billing Catalog API.

A SKU is known by its description, of which Google publishes no list (``skus`` of the catalogue): what is not found, not
read or not known is counted and named. Source of the answers' shape: discovery document cloudbilling v1, 20260901; the
ids of services: cloud.google.com/skus, as SkyPilot fetch_gcp.py 21fd5541 has them, read 2026-11-23.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Literal

import yaml

from training_platform.catalog.loader import default
from training_platform.catalog.prices import HOURS_OF_MONTH, LOCAL_SSD_SERVICE
from training_platform.catalog.types import Json, MachineType, Skus
from training_platform.clients.google_api import GoogleApi, checked_endpoint
from training_platform.config.reading.finding import UserError

SERVICES = {"Compute Engine": "6F81-5844-456A", "Cloud TPU": "E000-3F24-B8AA"}
_HEAD = """\
# List prices of the Cloud Billing Catalog in USD, written by `training-platform prices pull`: machines per VM and
# hour, services per GiB and month. Prices and discounts of a contract belong to stacks/prices.yaml, which comes first.
"""
_GROUPS = ("CPU", "RAM", "GPU", "N1Standard", "TPU")  # resource groups of machines' parts
_OTHER_WAYS = re.compile(r"\b(custom|premium|reserved|commitment|sole tenancy|dws|suspended)\b", re.IGNORECASE)
_AROUND = re.compile(
    r"^(spot preemptible |preemptible )?(.+?)( attached to spot preemptible vms)?( running)?( in .+)?$", re.IGNORECASE
)
_UNITS = ("h", "GiBy.h", "GiBy.mo")
_MOST_PAGES = 1000
Way = Literal["on-demand", "spot"]


@dataclass
class PulledPrices:
    """Prices by name, way and region: machines in USD per VM and hour, services per GiB and month.

    ``missing`` are machine types and services without a price in a region, ``unread`` SKUs that say no price that can
    be read, with the reason, and ``unknown`` counts SKUs of machines' parts that nothing in the catalogue is made of.
    """

    read: date
    regions: tuple[str, ...]
    machines: dict[str, dict[Way, dict[str, float]]] = field(default_factory=dict)
    services: dict[str, dict[str, float]] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    unknown: Counter[str] = field(default_factory=Counter)

    @property
    def text(self) -> str:
        """The file of prices for stacks and jobs."""
        body = {"read": self.read.isoformat(), "machines": self.machines, "services": self.services}
        return _HEAD + yaml.safe_dump(body, sort_keys=False, default_flow_style=None, width=120)


class CloudBilling(GoogleApi):
    """The public price catalogue; an ``endpoint`` is a local server."""

    def __init__(self, endpoint: str | None = None) -> None:
        super().__init__(
            "cloudbilling", "v1", checked_endpoint(endpoint), title="Cloud Billing", where="its price catalogue",
            read_only=True, extra="quota",
        )  # fmt: skip

    def skus(self, service: str) -> Iterable[Json]:
        """Yield every SKU of a service. Raises UserError, also for a page of another form."""
        for number, page in enumerate(self.pages(f"services/{service}/skus", pageSize=5000, currencyCode="USD")):
            rows = page.get("skus", [])
            if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows) or number == _MOST_PAGES:
                raise UserError(f"Cloud Billing answers for service {service} with pages that cannot be read.")
            yield from rows


def pull_prices(
    api: CloudBilling, regions: Collection[str], today: date, progress: Callable[[str], None] = lambda _: None
) -> PulledPrices:
    """Return the list prices of every machine type and disk with SKUs in the catalogue. Raises UserError."""
    pulled = PulledPrices(today, tuple(sorted(regions)))
    facts = default().skus
    sku_names = _sku_names(facts.values())
    rates: dict[tuple[str, Way, str], set[float]] = {}
    listed = 0
    for title, service in SERVICES.items():
        progress(f"{title}: SKUs")
        for sku in api.skus(service):
            listed += 1
            _add(sku, sku_names, pulled, rates)
    if not listed:
        raise UserError("Cloud Billing lists no SKU of Compute Engine, so no price is known; nothing was written.")
    if not rates:
        raise UserError(
            f"Cloud Billing lists no price of the catalogue's machines and disks in {', '.join(pulled.regions)} "
            f"({listed:,} SKUs read); nothing was written."
        )
    usd = _single_prices(rates, pulled)
    for name, machine in default().machine_types.items():
        _price_machine(machine, facts.get(name.rpartition("-")[0]), usd, pulled)
    for name, row in facts.items():
        if row.amount:
            _price_service(name, row, "on-demand", usd, pulled)
        if row.amount and name == LOCAL_SSD_SERVICE:
            _price_service(f"{name}-spot", row, "spot", usd, pulled)
    return pulled


def _sku_names(rows: Iterable[Skus]) -> frozenset[str]:
    names = [name for row in rows for name in (*row.vcpu, *row.memory, *row.chip, *row.amount)]
    return frozenset(name.casefold() for name in names)


def _single_prices(
    rates: dict[tuple[str, Way, str], set[float]], pulled: PulledPrices
) -> dict[tuple[str, Way, str], float]:
    """Return the rates with a single price; those with several are reported as unread."""
    usd: dict[tuple[str, Way, str], float] = {}
    for (name, way, region), prices in rates.items():
        if len(prices) == 1:
            usd[name, way, region] = min(prices)
        else:
            pulled.unread.append(f"{name} ({way}) in {region}: has {len(prices)} prices")
    return usd


def _price_service(
    name: str, row: Skus, way: Way, usd: dict[tuple[str, Way, str], float], pulled: PulledPrices
) -> None:
    """Add the price of a service in each region that lists one."""
    for region in pulled.regions:
        amount = _first(usd, row.amount, way, region)
        if amount is None:
            pulled.missing.append(f"{name} in {region}")
        else:
            pulled.services.setdefault(name, {})[region] = amount


def _add(
    sku: Json, sku_names: Collection[str], pulled: PulledPrices, rates: dict[tuple[str, Way, str], set[float]]
) -> None:
    """Add the prices of a SKU in the requested regions."""
    described = str(sku.get("description") or sku.get("skuId") or "a SKU without a description")
    category = sku.get("category") or {}
    regions = set(pulled.regions) & set(sku.get("serviceRegions") or ())
    usage = category.get("usageType")
    if not regions or usage not in {"OnDemand", "Preemptible"} or _OTHER_WAYS.search(described):
        return
    around = _AROUND.match(described)
    name = around[2].casefold() if around else described.casefold()
    if name not in sku_names:
        words = name.replace(",", " ").split()
        name = next((word for word in words if word in sku_names), name)
    if name not in sku_names:
        if category.get("resourceGroup") in _GROUPS:
            pulled.unknown[around[2] if around else described] += 1
        return
    try:
        usd = _usd(sku)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        pulled.unread.append(f"{described}: {error if isinstance(error, ValueError) else 'has no price'}")
        return
    way: Way = "spot" if usage == "Preemptible" or "preemptible" in described.casefold() else "on-demand"
    for region in regions:
        rates.setdefault((name, way, region), set()).add(usd)


def _usd(sku: Json) -> float:
    """Return the newest price in USD of one unit: the first rate that is not free. Raises ValueError and others."""
    expression: Any = sku["pricingInfo"][-1]["pricingExpression"]
    if expression["usageUnit"] not in _UNITS:
        raise ValueError(f"is priced by {expression['usageUnit']}")
    rates = []
    for tier in expression["tieredRates"]:
        price = tier["unitPrice"]
        if price.get("currencyCode", "USD") != "USD":
            raise ValueError(f"is priced in {price['currencyCode']}")
        rates.append(int(price.get("units", 0)) + int(price.get("nanos", 0)) / 1e9)  # JSON leaves zeros out
    return next((rate for rate in rates if rate > 0), rates[0])


def _first(usd: dict[tuple[str, Way, str], float], names: Iterable[str], way: Way, region: str) -> float | None:
    keys = ((name.casefold(), way, region) for name in names)
    return next((usd[key] for key in keys if key in usd), None)


def _price_machine(
    machine: MachineType, row: Skus | None, usd: dict[tuple[str, Way, str], float], pulled: PulledPrices
) -> None:
    """Add the price of a machine type in each region with prices of all its parts."""
    offered = {zone.rpartition("-")[0] for zone in machine.zones}
    for region in pulled.regions:
        if offered and region not in offered:
            continue
        for way in ("on-demand", "spot"):
            if way not in machine.capacities:
                continue
            parts = (
                [(row.vcpu, machine.vcpus), (row.memory, machine.memory_gb), (row.chip, machine.chips)] if row else []
            )
            if ssd := machine.local_ssd.bundled * machine.local_ssd.partition_gib:
                parts.append((default().skus[LOCAL_SSD_SERVICE].amount, ssd / HOURS_OF_MONTH))
            priced = [(_first(usd, names, way, region), amount) for names, amount in parts if names]
            if not priced or any(rate is None for rate, _ in priced):
                pulled.missing.append(f"{machine.name} {way} in {region}")
                continue
            total = sum((rate or 0) * amount for rate, amount in priced)
            pulled.machines.setdefault(machine.name, {}).setdefault(way, {})[region] = round(total, 6)
