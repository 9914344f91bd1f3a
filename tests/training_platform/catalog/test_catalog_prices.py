"""List prices: dated, of the source, and absent where no source is reliable."""

from __future__ import annotations

from datetime import date

import pytest

from training_platform.catalog import ACCELERATORS, MACHINE_TYPES, REGIONS
from training_platform.catalog.types import Capacity, MachineType

MACHINES = [pytest.param(machine, id=name) for name, machine in MACHINE_TYPES.items()]
GPUS = [machine for machine in MACHINE_TYPES.values() if machine.kind == "gpu"]
TPUS = [machine for machine in MACHINE_TYPES.values() if machine.kind == "tpu"]


@pytest.mark.parametrize("machine", MACHINES)
def test_a_price_is_dated_and_for_a_capacity_and_region_that_exist(machine: MachineType) -> None:
    if machine.price is None:
        return
    assert machine.price.read <= date(2026, 11, 21)
    assert set(machine.price.usd) <= set(machine.capacities)
    for by_region in machine.price.usd.values():
        assert by_region
        assert set(by_region) <= REGIONS
        assert all(usd > 0 for usd in by_region.values())
    if "on-demand" in machine.price.usd:
        assert machine.price.usd["reservation"] == machine.price.usd["on-demand"]
        spot = machine.price.usd.get("spot", {})
        assert all(usd < machine.price.usd["on-demand"][region] for region, usd in spot.items())


def test_prices_are_per_chip_for_tpus_and_per_vm_otherwise() -> None:
    assert {machine.price.unit for machine in TPUS if machine.price} == {"chip"}
    assert {machine.price.unit for machine in GPUS if machine.price} == {"vm"}
    assert {a.price.unit for a in ACCELERATORS.values() if a.price} == {"gpu"}
    v5e, e2 = MACHINE_TYPES["ct5lp-hightpu-8t"].price, MACHINE_TYPES["e2-standard-4"].price
    assert v5e is not None
    assert v5e.usd["on-demand"]["europe-west4"] == 1.56
    assert e2 is not None
    assert e2.unit == "vm"
    assert e2.usd["on-demand"]["us-central1"] == pytest.approx(4 * 0.021811 + 4 * 4 * 0.002923)


@pytest.mark.parametrize(
    ("name", "capacity", "region", "usd"),
    [
        ("ct5p-hightpu-4t", "on-demand", "us-south1", 4.779), ("ct5p-hightpu-4t", "spot", "us-east5", 1.68),
        ("ct6e-standard-8t", "reservation", "asia-south1", 3.24), ("ct6e-standard-1t", "spot", "us-central1", 0.544),
        ("g2-standard-24", "on-demand", "us-central1", 2.11), ("a3-edgegpu-8g", "spot", "us-central1", 35.67),
    ],
)  # fmt: skip
def test_a_machine_has_the_price_of_its_source(name: str, capacity: Capacity, region: str, usd: float) -> None:
    price = MACHINE_TYPES[name].price

    assert price is not None
    assert price.usd[capacity][region] == usd


def test_what_no_source_prices_has_no_price() -> None:
    assert {m.name for m in GPUS + TPUS if m.price is None} == {
        "a3-ultragpu-8g", "a4-highgpu-8g", "a4x-highgpu-4g", *(f"g4-standard-{n}" for n in (48, 96, 192, 384)),
        "tpu7x-standard-1t", "tpu7x-standard-4t",
    }  # fmt: skip


def test_the_price_of_a_gpu_alone_is_dated_and_below_that_of_its_machine() -> None:
    eighths = {"h200": (74.494, 37.247), "b200": (90.216, 32.606)}
    for name, (on_demand, spot) in eighths.items():
        price = ACCELERATORS[name].price
        assert price is not None
        assert price.usd["on-demand"]["us-central1"] * 8 == pytest.approx(on_demand)
        assert price.usd["spot"]["us-central1"] * 8 == pytest.approx(spot)
    for machine in GPUS:
        alone = machine.accelerator.price if machine.accelerator else None
        if alone is not None and machine.price is not None:
            assert alone.read <= date(2026, 11, 21)
            whole = machine.price.usd.get("on-demand", {}).get("us-central1", float("inf"))
            assert alone.usd["on-demand"]["us-central1"] * machine.chips < whole
