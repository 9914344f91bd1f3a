"""The cost of a stack: machines and the resources around them, at list prices or own prices."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.support import stack_files
from tests.support.places import ORGANISATION
from training_platform.catalog import MACHINE_TYPES
from training_platform.catalog.loader import default
from training_platform.catalog.prices import HOURS_OF_MONTH, LIST, Cost, PriceBook, machines_cost, service_cost
from training_platform.checks.cost import stack_cost
from training_platform.checks.reports.wording import price, price_note
from training_platform.config.model.environment import Environment
from training_platform.config.model.team import Team
from training_platform.config.own_prices import read_own_prices
from training_platform.config.workspace import read_workspace

H100 = MACHINE_TYPES["a3-highgpu-8g"]
assert H100.accelerator is not None
WITHOUT = replace(H100, price=None, accelerator=replace(H100.accelerator, price=None))
DAY = date(2026, 11, 1)


def environment(**fields: Any) -> Environment:
    system = {"machine_type": "e2-standard-8", "min_nodes": 1, "max_nodes": 3}
    clusters = {"c": stack_files.cluster(system_pool=system)}
    return Environment.model_validate(stack_files.environment(**{"clusters": clusters, **fields}), strict=False)


def test_the_environment_s_reserved_and_standing_machines_are_its_least_cost() -> None:
    section = read_workspace(ORGANISATION).stacks["prod"].section
    assert section is not None

    cost = stack_cost(section)

    assert 0 < cost.minimum < cost.maximum


def test_every_sum_is_a_least_one_and_says_what_it_leaves_out() -> None:
    cost = machines_cost(MACHINE_TYPES["ct5lp-hightpu-4t"], "on-demand", "us-west4", 1, 1)

    assert price(cost).startswith("at least $")
    assert "without traffic, backups, buckets without size_gib, volume claims on storage classes" in price_note(
        cost, DAY
    )


def test_a_sum_names_the_machines_that_it_leaves_out_beside_it() -> None:
    priced = machines_cost(H100, "spot", "us-central1", 0, 2)
    unpriced = machines_cost(WITHOUT, "spot", "us-central1", 0, 2)

    half = price(priced + unpriced)

    assert half == f"at least $0.00 to ${priced.maximum:,.2f} per hour; 2 VMs without a price: a3-highgpu-8g spot"


def test_there_is_no_sum_where_more_than_half_of_the_vms_have_no_price() -> None:
    fee = service_cost("cluster-fee", "us-central1", 1, 1)
    priced = machines_cost(H100, "spot", "us-central1", 0, 2)
    unpriced = machines_cost(WITHOUT, "spot", "us-central1", 0, 3)

    named = "no sum: 3 of 5 VMs without a price: a3-highgpu-8g spot; add your prices to stacks/prices.yaml"
    assert price(fee + priced + unpriced) == named


def test_a_machine_without_a_price_of_its_own_costs_at_least_what_its_gpus_cost() -> None:
    cost = machines_cost(MACHINE_TYPES["a4-highgpu-8g"], "spot", "us-central1", 0, 2)

    assert cost.maximum > 2 * 8 * 4.07575  # of the list of 2026-08-19; and its local SSD
    assert cost.read is not None
    assert cost.sums_up
    assert "prices not verified: GPUs of a4-highgpu-8g" in price_note(cost, DAY)
    assert "no price known: vCPUs and memory of a4-highgpu-8g" in price_note(cost, DAY)


@pytest.mark.parametrize(("days", "example"), [(90, False), (91, True)])
def test_shipped_prices_are_examples_after_90_days(days: int, example: bool) -> None:
    cost = service_cost("cluster-fee", "us-central1", 1, 1)
    assert cost.shipped is not None
    day = cost.shipped + timedelta(days=days)

    assert cost.is_example(day) is example
    assert ("the catalogue's prices are only examples" in price_note(cost, day)) is example
    own_prices = PriceBook(services={"cluster-fee": {"*": 0.1}}, read=cost.shipped)
    assert not service_cost("cluster-fee", "us-central1", 1, 1, own_prices).is_example(day)


def test_resources_around_machines_are_in_the_sum() -> None:
    bare = stack_cost(environment())
    more = stack_cost(environment(nat_addresses=3))
    machine = machines_cost(MACHINE_TYPES["e2-standard-8"], "on-demand", "us-central1", 1, 3)
    disk = 100 * 0.1 / HOURS_OF_MONTH

    assert bare.minimum == pytest.approx(machine.minimum + disk + 0.10 + 0.0448 + 0.005)
    assert bare.maximum == pytest.approx(machine.maximum + 3 * disk + 0.10 + 0.0448 + 0.005)
    assert more.minimum - bare.minimum == pytest.approx(2 * 0.005)


def test_pools_of_cpus_are_in_the_sum_up_to_their_most_vms() -> None:
    pool = {"machine_type": "n2-standard-16", "min_nodes": 1, "max_nodes": 4}
    cluster = environment().clusters["c"].model_dump(mode="json", exclude_unset=True)
    bare = stack_cost(environment())
    more = stack_cost(environment(clusters={"c": {**cluster, "cpu_pools": {"a": pool}}}))
    machine = machines_cost(MACHINE_TYPES["n2-standard-16"], "on-demand", "us-central1", 1, 4)
    disk = 100 * 0.1 / HOURS_OF_MONTH

    assert more.minimum - bare.minimum == pytest.approx(machine.minimum + disk)
    assert more.maximum - bare.maximum == pytest.approx(machine.maximum + 4 * disk)


def test_local_ssd_of_h100_is_in_the_price_of_its_vms() -> None:
    ssd = 16 * 375

    on_demand = machines_cost(H100, "on-demand", "us-central1", 1, 2)
    spot = machines_cost(H100, "spot", "us-central1", 1, 1)

    assert on_demand.unpriced == spot.unpriced == ()
    alone = service_cost("local-ssd", "us-central1", ssd, 2 * ssd)
    assert alone.minimum == pytest.approx(ssd * 0.08 / HOURS_OF_MONTH)
    assert on_demand.maximum > 2 * alone.minimum
    assert H100.price is not None
    assert spot.maximum == pytest.approx(H100.price.usd["spot"]["us-central1"] + ssd * 0.032 / HOURS_OF_MONTH)


def test_what_no_source_prices_is_named_and_makes_the_sum_a_least_one() -> None:
    files = {"a": {"location": "us-central1-a", "capacity_gib": 1024, "iops": 4000}}
    data = {"d": {"hyperdisk_ml": {"zone": "us-central1-a", "size_gib": 100}}}
    cost = stack_cost(environment(filestore=files, data_sets=data))

    assert cost.unpriced == (
        "filestore-ZONAL with its own IOPS", "IOPS of Filestore", "hyperdisk-ml in us-central1",
        "default throughput of Hyperdisk ML",
    )  # fmt: skip
    assert "no price known: filestore-ZONAL with its own IOPS" in price_note(cost, DAY)


def test_a_price_of_ones_own_holds_for_instances_with_iops_of_their_own_too(tmp_path: Path) -> None:
    files = {"a": {"location": "us-central1-a", "capacity_gib": 1024, "iops": 4000}}
    own_prices = book(tmp_path, "read: 2026-11-01\nservices: {filestore-ZONAL: {us-central1: 0.1}}\n")

    more = stack_cost(environment(filestore=files), own_prices).minimum - stack_cost(environment(), own_prices).minimum
    assert more == pytest.approx(1024 * 0.1 / HOURS_OF_MONTH)


def test_managed_lustre_is_named_by_its_throughput_and_takes_an_own_price(tmp_path: Path) -> None:
    lustre = {"x": {"location": "us-central1-a", "capacity_gib": 36000, "mbps_per_tib": 500}}
    having = environment(lustre=lustre, private_services_range="10.200.0.0/20")
    own_prices = book(tmp_path, "read: 2026-11-01\nservices: {lustre-500: {us-central1: 0.3}}\n")

    listed = stack_cost(having).minimum - stack_cost(environment()).minimum
    assert listed == pytest.approx(36000 * 0.34 / HOURS_OF_MONTH)
    more = stack_cost(having, own_prices).minimum - stack_cost(environment(), own_prices).minimum
    assert more == pytest.approx(36000 * 0.3 / HOURS_OF_MONTH)


@pytest.mark.parametrize(
    ("name", "region", "month", "elsewhere"),
    [
        ("filestore-ZONAL", "us-central1", 256 / 1024, "europe-west4"),
        ("bucket-STANDARD", "us-central1", 0.000027397 * HOURS_OF_MONTH, "us-central9"),
    ],
)
def test_storage_has_a_price_only_where_its_source_has_one(
    name: str, region: str, month: float, elsewhere: str
) -> None:
    assert service_cost(name, region, 1, 1).minimum * HOURS_OF_MONTH == pytest.approx(month, rel=0.001)
    assert service_cost(name, elsewhere, 1, 1).unpriced == (f"{name} in {elsewhere}",)


def test_what_somebody_else_read_in_the_billing_catalogue_is_marked() -> None:
    marked = {name for name, row in default().service_prices.items() if row.unverified}

    assert {name.partition("-")[0] for name in marked} == {"lustre", "hyperdisk"}
    cost = service_cost("lustre-500", "us-central1", 1, 1) + service_cost("pd-ssd", "us-central1", 1, 1)
    assert cost.unverified == ("lustre-500 in us-central1",)
    assert "prices not verified: lustre-500 in us-central1" in price_note(cost, DAY)
    own_prices = PriceBook(services={"lustre-500": {"us-central1": 0.3}})
    assert service_cost("lustre-500", "us-central1", 1, 1, own_prices).unverified == ()


def test_hyperdisk_ml_pays_for_the_throughput_that_it_was_given() -> None:
    disk = {"zone": "southamerica-east1-a", "size_gib": 1000, "throughput_mibps": 1200}
    cost = stack_cost(environment(data_sets={"d": {"hyperdisk_ml": disk}}))

    assert cost.unpriced == ()
    more = (cost.minimum - stack_cost(environment()).minimum) * HOURS_OF_MONTH
    assert more == pytest.approx(1000 * 0.127 + 1200 * 0.191)


def test_a_bucket_is_priced_by_class_and_size_and_left_out_without() -> None:
    def team(**fields: Any) -> Team:
        bucket = {"location": "us-central1", "storage_class": "NEARLINE", **fields}
        return Team.model_validate(stack_files.team("dev", buckets={"b": bucket}), strict=False)

    assert stack_cost(team(size_gib=5000)).minimum == pytest.approx(5000 * 0.01 / HOURS_OF_MONTH)
    assert stack_cost(team()) == Cost()


def book(root: Path, text: str) -> PriceBook:
    (root / "stacks").mkdir(exist_ok=True)
    (root / "stacks" / "prices.yaml").write_text(text, encoding="utf-8")
    price_book, findings = read_own_prices(root)
    assert findings == []
    return price_book


def test_own_prices_come_before_list_prices(tmp_path: Path) -> None:
    own_prices = book(
        tmp_path,
        """
read: 2026-11-01
machines: {a3-highgpu-8g: {on-demand: {us-central1: 60.0}}}
services: {filestore-ZONAL: {us-central1: 0.25}, address: {"*": 0.001}}
""",
    )

    assert machines_cost(H100, "on-demand", "us-central1", 1, 2, book=own_prices).maximum == 120
    assert machines_cost(H100, "on-demand", "us-central1", 1, 2, book=own_prices).read == own_prices.read
    assert machines_cost(H100, "spot", "us-central1", 1, 1, book=own_prices) == machines_cost(
        H100, "spot", "us-central1", 1, 1
    )
    assert service_cost("filestore-ZONAL", "us-central1", 1024, 1024, own_prices).maximum == pytest.approx(
        1024 * 0.25 / HOURS_OF_MONTH
    )
    assert service_cost("address", "us-west4", 1, 1, own_prices).maximum == 0.001


def test_a_discount_is_a_share_of_the_list_price_and_never_of_an_own_price(tmp_path: Path) -> None:
    own_prices = book(
        tmp_path,
        """
read: 2026-11-01
services: {address: {"*": 0.004}}
discounts: {machines: 0.25, a3-highgpu-8g: 0.5, services: 0.1, cluster-fee: 1}
""",
    )
    tpu = MACHINE_TYPES["ct5lp-hightpu-4t"]

    ssd = service_cost("local-ssd", "us-central1", 6000, 6000, own_prices).maximum
    listed = machines_cost(H100, "on-demand", "us-central1", 1, 1).maximum - ssd / 0.9
    assert machines_cost(H100, "on-demand", "us-central1", 1, 1, book=own_prices).maximum == pytest.approx(
        listed * 0.5 + ssd
    )
    assert machines_cost(tpu, "on-demand", "us-west4", 1, 1, book=own_prices).maximum == pytest.approx(
        machines_cost(tpu, "on-demand", "us-west4", 1, 1).maximum * 0.75
    )
    assert service_cost("nat-gateway", "us-west4", 1, 1, own_prices).maximum == pytest.approx(0.0448 * 0.9)
    assert service_cost("cluster-fee", "us-west4", 1, 1, own_prices).maximum == 0
    assert service_cost("address", "us-west4", 1, 1, own_prices).maximum == 0.004


def test_a_mistake_in_own_prices_is_found_at_its_line(tmp_path: Path) -> None:
    (tmp_path / "stacks").mkdir()
    text = "read: 2026-11-01\nservices: {filestore-ZONNAL: {us-central1: 0.25}}\ndiscounts: {machines: 1.5}\n"
    (tmp_path / "stacks" / "prices.yaml").write_text(text, encoding="utf-8")

    used, (service, discount) = read_own_prices(tmp_path)

    assert used is LIST
    assert (service.nearest, service.position and service.position.line) == ("filestore-ZONAL", 2)
    assert (discount.file, discount.position and discount.position.line) == ("stacks/prices.yaml", 3)


def test_prices_that_an_earlier_version_pulled_are_told_and_not_read(tmp_path: Path) -> None:
    (tmp_path / "stacks").mkdir()
    (tmp_path / "stacks" / "list-prices.yaml").write_text("read: 2026-11-23\n", encoding="utf-8")

    book, (finding,) = read_own_prices(tmp_path)

    assert book == LIST
    assert (finding.severity, finding.file) == ("warning", "stacks/list-prices.yaml")
    assert "stacks/prices.yaml" in (finding.allowed or "")
