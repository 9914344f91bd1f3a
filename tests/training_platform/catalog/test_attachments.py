"""GPUs attached to CPU machines: valid combinations, and the catalogue row of a combination."""

from __future__ import annotations

from dataclasses import replace

import pytest

from training_platform.catalog import ACCELERATORS, MACHINE_TYPES, ZONES
from training_platform.catalog.attachments import attached, gpu_counts, vertex_counts
from training_platform.catalog.types import MachineType

T4 = ACCELERATORS["t4"]


def n1(vcpus: int, count: int = 4) -> MachineType:
    """Return the row of an n1-standard machine with attached T4 GPUs."""
    row = attached(MACHINE_TYPES[f"n1-standard-{vcpus}"], T4, count)
    assert row is not None
    return row


@pytest.mark.parametrize(
    ("machine", "counts"),
    [
        ("n1-standard-1", (1, 2, 4)),
        ("n1-standard-8", (1, 2, 4)),
        ("n1-standard-16", (1, 2, 4)),
        ("n1-standard-32", (1, 2, 4)),
        ("n1-standard-64", (4,)),
        ("n1-highmem-96", (4,)),
        ("n2-standard-8", ()),
        ("e2-standard-8", ()),
        ("a2-highgpu-1g", ()),
        ("g2-standard-4", ()),
    ],
)
def test_a_vm_takes_as_many_gpus_as_its_vcpus_allow(machine: str, counts: tuple[int, ...]) -> None:
    assert gpu_counts(MACHINE_TYPES[machine], T4) == counts


def test_vcpus_are_counted_up_to_the_bound_and_not_one_more() -> None:
    at_most = replace(MACHINE_TYPES["n1-standard-8"], vcpus=48)

    assert gpu_counts(at_most, T4)[0] == 1
    assert gpu_counts(replace(at_most, vcpus=49), T4)[0] == 4


@pytest.mark.parametrize(("machine", "count"), [("n1-standard-8", 3), ("n1-standard-64", 1), ("n2-standard-8", 1)])
def test_a_pair_that_does_not_exist_has_no_row(machine: str, count: int) -> None:
    assert attached(MACHINE_TYPES[machine], T4, count) is None


def test_the_row_is_the_machine_with_the_gpus_places_and_capacities() -> None:
    row = n1(8, count=2)
    host = MACHINE_TYPES["n1-standard-8"]

    assert (row.name, row.kind, row.accelerator, row.chips) == ("n1-standard-8", "gpu", T4, 2)
    assert (row.vcpus, row.memory_gb, row.boot_disk_types) == (host.vcpus, host.memory_gb, host.boot_disk_types)
    assert row.capacities == ("on-demand", "spot", "flex-start", "reservation")
    assert "us-west2-b" in row.zones
    assert set(row.zones) <= ZONES
    assert row.minimum_gke == {"flex-start": "1.32.2-gke.1652000"}
    assert host.chips == 0


def test_its_vcpus_are_charged_in_every_capacity() -> None:
    charged = {capacity: quota.quota_id for capacity, quota in n1(8).cpu_quota.items()}

    assert charged == {
        "on-demand": "CPUS-per-project-region",
        "reservation": "CPUS-per-project-region",
        "spot": "PREEMPTIBLE-CPUS-per-project-region",
        "flex-start": "PREEMPTIBLE-CPUS-per-project-region",
    }


def test_its_price_is_the_sum_of_both_where_both_are_known() -> None:
    price = n1(8, count=2).price
    host = MACHINE_TYPES["n1-standard-8"].price

    assert price is not None
    assert host is not None
    whole = host.usd["on-demand"]["us-central1"] + 2 * 0.35
    assert price.usd == {"on-demand": {"us-central1": pytest.approx(whole)}, "reservation": {"us-central1": whole}}
    assert price.unit == "vm"
    assert price.read == min(host.read, T4.price.read if T4.price else host.read)
    assert attached(replace(MACHINE_TYPES["n1-standard-8"], price=None), T4, 2) == replace(n1(8, count=2), price=None)


@pytest.mark.parametrize(
    ("vcpus", "count", "taken"),
    [(4, 1, True), (32, 1, False), (32, 2, True), (2, 1, False)],
)
def test_vertex_takes_fewer_pairs(vcpus: int, count: int, taken: bool) -> None:
    row = n1(vcpus, count=count)

    assert row.vertex is taken
    assert "vertex" in row.unverified


def test_vertex_gives_no_gpus_to_a_machine_that_it_does_not_take() -> None:
    assert vertex_counts(MACHINE_TYPES["n1-standard-2"], T4) == ()
    assert 1 in vertex_counts(MACHINE_TYPES["n1-standard-4"], T4)


def test_every_family_that_is_named_has_machines() -> None:
    assert T4.attachment is not None
    families = {name.rpartition("-")[0] for name in MACHINE_TYPES}
    assert set(T4.attachment.families) <= families
    assert str(T4.attachment.counts[0]) == "1 with up to 48 vCPUs"


def test_zones_that_lack_the_machine_are_not_repeated_beside_those_that_have_the_gpu() -> None:
    host = replace(MACHINE_TYPES["n1-standard-8"], missing_zones=("us-central2-b",))

    row = attached(host, T4, 1)
    assert row is not None
    assert row.missing_zones == ()
