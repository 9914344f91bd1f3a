"""Prices: the hourly cost of machines, and the catalogue's list prices."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest

from training_platform.catalog import MACHINE_TYPES, REGIONS
from training_platform.catalog.locations import region_of
from training_platform.catalog.prices import Cost, hourly_usd, machines_cost
from training_platform.catalog.types import MachineType


def test_a_price_per_chip_counts_all_chips_of_a_vm() -> None:
    machine = MACHINE_TYPES["ct5lp-hightpu-4t"]
    assert machine.price is not None
    per_chip = machine.price.usd["on-demand"]["us-central1"]

    assert hourly_usd(machine, "on-demand", "us-central1") == pytest.approx(4 * per_chip)


def test_a_region_without_a_price_is_reported_and_never_counted_as_free() -> None:
    cost = machines_cost(MACHINE_TYPES["ct4p-hightpu-4t"], "on-demand", "europe-west4", 1, 2)

    assert cost.unpriced == ("ct4p-hightpu-4t on-demand",)
    assert cost.maximum == 0


def test_no_machines_cost_nothing_and_need_no_price() -> None:
    assert machines_cost(MACHINE_TYPES["ct4p-hightpu-4t"], "on-demand", "europe-west4", 0, 0) == Cost()


def test_a_reservation_is_paid_for_whether_it_is_used_or_not() -> None:
    machine = MACHINE_TYPES["ct5lp-hightpu-4t"]

    cost = machines_cost(machine, "reservation", "us-west4", 0, 8)

    assert cost.minimum == cost.maximum == pytest.approx(8 * (hourly_usd(machine, "on-demand", "us-west4") or 0))
    assert cost.maximum > 0


def test_on_demand_costs_between_its_fewest_and_its_most_machines() -> None:
    machine = MACHINE_TYPES["ct5lp-hightpu-4t"]
    one_vm = hourly_usd(machine, "on-demand", "us-west4") or 0

    cost = machines_cost(machine, "on-demand", "us-west4", 1, 8)

    assert cost.minimum == pytest.approx(one_vm)
    assert cost.maximum == pytest.approx(8 * one_vm)


def test_a_sum_keeps_the_oldest_date_and_every_machine_without_a_price() -> None:
    priced = machines_cost(MACHINE_TYPES["ct5lp-hightpu-4t"], "on-demand", "us-west4", 1, 1)
    total = Cost(unpriced=("x",)) + priced + Cost(unpriced=("y", "x"))

    assert total.unpriced == ("x", "y")
    assert total.read == priced.read
    assert total.minimum == priced.minimum
    assert ((priced + priced).minimum, (priced + priced).maximum) == (2 * priced.minimum, 2 * priced.maximum)


def test_what_a_price_leaves_out_of_a_vm_is_said() -> None:
    machine = MACHINE_TYPES["a3-highgpu-8g"]
    assert machine.price is not None
    priced = replace(machine.price, usd={"on-demand": {"*": 80.0}}, without=("local SSD", "licence"))
    cost = machines_cost(replace(machine, price=priced), "on-demand", "us-central2", 0, 1)

    assert cost.maximum == 80
    assert cost.unpriced == ("local-ssd in us-central2", "licence of a3-highgpu-8g")


def test_flex_start_and_a_reservation_cost_what_vms_on_demand_do_and_spot_has_its_own_price() -> None:
    machine = MACHINE_TYPES["a3-highgpu-8g"]
    assert machine.price is not None
    priced = replace(machine, price=replace(machine.price, usd={"on-demand": {"*": 80.0}}))

    assert [hourly_usd(priced, capacity, "us-central1") for capacity in ("reservation", "flex-start")] == [80, 80]
    assert hourly_usd(priced, "spot", "us-central1") is None


def test_prices_of_half_of_the_vms_are_a_sum_and_of_less_are_none() -> None:
    assert Cost().vms == 0
    assert Cost(vms=2, vms_without=1).sums_up
    assert not Cost(vms=3, vms_without=2).sums_up


@pytest.mark.parametrize("machine", MACHINE_TYPES.values(), ids=MACHINE_TYPES)
def test_a_price_is_dated_and_for_a_capacity_and_region_that_exist(machine: MachineType) -> None:
    if machine.price is None:
        return
    assert machine.price.unit == ("chip" if machine.kind == "tpu" else "vm")
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


@pytest.mark.parametrize("machine", [machine for machine in MACHINE_TYPES.values() if machine.kind == "gpu"])
def test_the_price_of_an_attached_gpu_is_dated_and_below_that_of_its_machine(machine: MachineType) -> None:
    alone = machine.accelerator.price if machine.accelerator else None
    if alone is not None and machine.price is not None:
        assert alone.unit == "gpu"
        assert alone.read <= date(2026, 11, 21)
        whole = machine.price.usd.get("on-demand", {}).get("us-central1", float("inf"))
        assert alone.usd["on-demand"]["us-central1"] * machine.chips < whole


def test_system_pools_have_prices_wherever_there_are_accelerators_but_beside_v4() -> None:
    regions = {region_of(zone) for machine in MACHINE_TYPES.values() if machine.kind != "cpu" for zone in machine.zones}

    for name in ("e2-standard-8", "n2-standard-8"):
        unpriced = {region for region in regions if hourly_usd(MACHINE_TYPES[name], "on-demand", region) is None}
        assert unpriced == {"us-central2"}, name

    assert hourly_usd(MACHINE_TYPES["n2-standard-8"], "on-demand", "us-west4") == pytest.approx(0.437496)
    assert hourly_usd(MACHINE_TYPES["e2-highmem-8"], "reservation", "us-east4") == pytest.approx(2 * 0.20361348)
