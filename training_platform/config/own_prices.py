"""An organisation's own prices and discounts: ``stacks/prices.yaml``."""

from __future__ import annotations

from datetime import date
from pathlib import Path as FilePath
from typing import Annotated

from pydantic import Field

from training_platform.catalog import MACHINE_TYPES
from training_platform.catalog.loader import default
from training_platform.catalog.prices import LIST, PriceBook
from training_platform.catalog.types import ChargedCapacity
from training_platform.config.reading.declaration import declare, finding, located
from training_platform.config.reading.finding import Anchor, Finding, Position
from training_platform.config.reading.rejection import validated
from training_platform.config.reading.section import MachineTypeName, OneOf, Section
from training_platform.config.reading.source import read_source

FILE = "stacks/prices.yaml"
PULLED_FILE = "stacks/list-prices.yaml"
OWN_PRICES = declare(
    "own-prices",
    "Find errors in a repository's own prices.",
    ruleset="files",
)
_SERVICES = (
    *(name for name in default().service_prices if not name.startswith("filestore-")),  # Lustre, Hyperdisk, buckets...
    *(f"filestore-{tier}" for tier in default().filestore_tiers),
)
_ALL = ("machines", "services")
Usd = Annotated[float, Field(ge=0)]
ByRegion = dict[str, Usd]
PricedService = Annotated[str, OneOf("service with a price", _SERVICES)]
Discounted = Annotated[str, OneOf("machine type or service", (*MACHINE_TYPES, *_SERVICES, *_ALL))]


class OwnPrices(Section):
    """The whole file, in USD: machines per VM and hour, storage per GiB and month, all other prices per hour."""

    read: date
    machines: dict[MachineTypeName, dict[ChargedCapacity, ByRegion]] = {}
    services: dict[PricedService, ByRegion] = {}
    most_more_per_hour: Usd | None = None  # `check --base` reports a change that costs more than this
    discounts: dict[Discounted, Annotated[float, Field(ge=0, le=1)]] = {}


def read_own_prices(root: FilePath) -> tuple[PriceBook, list[Finding]]:
    """Return a repository's own prices, completed by the catalogue's prices. Raises UnreadableError.

    List prices that earlier versions downloaded are ignored, and a finding says where they belong.
    """
    findings: list[Finding] = []
    if (root / PULLED_FILE).exists():
        message = "is no longer read: the command that wrote this file was removed"
        allowed = f"its `read`, `machines` and `services` in {FILE}, with services in the units of the catalogue"
        place = Anchor(file=PULLED_FILE, position=Position(1, 1))
        findings = located([finding(place, (), message, rule=OWN_PRICES, severity="warning", allowed=allowed)])
    path = root / FILE
    if not path.exists():
        return LIST, findings
    source = read_source(path, FILE)
    prices, rejected = validated(OwnPrices, source.value, source, rule=OWN_PRICES)
    if prices is None:
        return LIST, [*findings, *rejected]
    book = PriceBook(
        machines=prices.machines,
        services=prices.services,
        discounts=prices.discounts,
        read=prices.read,
        most_more_per_hour=prices.most_more_per_hour,
    )
    return book, findings
