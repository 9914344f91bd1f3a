from dataclasses import replace

import pytest

from training_platform.catalog import MACHINE_TYPES
from training_platform.catalog.prices import Cost, hourly_usd, machines_cost


def test_a_price_per_chip_counts_all_chips_of_a_vm() -> None:
    machine = MACHINE_TYPES["ct5lp-hightpu-4t"]
    assert machine.price is not None
    per_chip = machine.price.usd["on-demand"]["us-central1"]

    assert hourly_usd(machine, "on-demand", "us-central1") == pytest.approx(4 * per_chip)


def test_a_region_without_a_price_is_said_and_never_counted_as_free() -> None:
    cost = machines_cost(MACHINE_TYPES["ct4p-hightpu-4t"], "on-demand", "europe-west4", 1, 2)

    assert cost.unpriced == ("ct4p-hightpu-4t on-demand",)
    assert cost.most == 0


def test_no_machines_cost_nothing_and_need_no_price() -> None:
    assert machines_cost(MACHINE_TYPES["ct4p-hightpu-4t"], "on-demand", "europe-west4", 0, 0) == Cost()


def test_a_reservation_is_paid_for_whether_it_is_used_or_not() -> None:
    machine = MACHINE_TYPES["ct5lp-hightpu-4t"]

    cost = machines_cost(machine, "reservation", "us-west4", 0, 8)

    assert cost.least == cost.most == pytest.approx(8 * (hourly_usd(machine, "on-demand", "us-west4") or 0))
    assert cost.most > 0


def test_on_demand_costs_between_its_fewest_and_its_most_machines() -> None:
    machine = MACHINE_TYPES["ct5lp-hightpu-4t"]
    each = hourly_usd(machine, "on-demand", "us-west4") or 0

    cost = machines_cost(machine, "on-demand", "us-west4", 1, 8)

    assert cost.least == pytest.approx(each)
    assert cost.most == pytest.approx(8 * each)


def test_a_sum_keeps_the_oldest_date_and_every_machine_without_a_price() -> None:
    priced = machines_cost(MACHINE_TYPES["ct5lp-hightpu-4t"], "on-demand", "us-west4", 1, 1)
    total = Cost(unpriced=("x",)) + priced + Cost(unpriced=("y", "x"))

    assert total.unpriced == ("x", "y")
    assert total.read == priced.read
    assert total.least == priced.least


def test_what_a_price_leaves_out_of_a_vm_is_said() -> None:
    machine = MACHINE_TYPES["a3-highgpu-8g"]
    assert machine.price is not None
    priced = replace(machine.price, usd={"on-demand": {"*": 80.0}}, without=("local SSD", "licence"))
    cost = machines_cost(replace(machine, price=priced), "on-demand", "us-central2", 0, 1)

    assert cost.most == 80
    assert cost.unpriced == ("local-ssd in us-central2", "licence of a3-highgpu-8g")
