"""Addresses of NAT gateways: as many as the VMs behind them want when each has grown to its most ports."""

from __future__ import annotations

from typing import Any

import pytest

from tests.training_platform.rules import foreign
from training_platform.config.reading.finding import Finding
from training_platform.quota.charges import nat_addresses

PORTS = {"nat.enableDynamicPortAllocation": True, "nat.maxPortsPerVm": 4096.0}


def found(changes: dict[str, Any]) -> list[Finding]:
    return foreign.found(changes, rule="nat-addresses")


@pytest.mark.parametrize(
    ("vms", "ports", "addresses"),
    [(0, 4096, 1), (15, 4096, 1), (16, 4096, 2), (34, 4096, 3), (1_008, 64, 1), (1_009, 64, 2)],
)
def test_an_address_has_64_512_ports(vms: int, ports: int, addresses: int) -> None:
    assert nat_addresses(vms, ports) == addresses


def test_reserved_addresses_are_enough_for_all_vms_of_the_region() -> None:
    pools = {**PORTS, "slice": foreign.DROP, "reserved": foreign.DROP}  # the pool of GPUs, and 6 VMs of the other
    two = {**pools, "nat.natIps": ["one", "two"]}

    assert found({**two, "gpu.autoscaling.maxNodeCount": 25.0}) == []
    (each,) = found({**two, "gpu.autoscaling.maxNodeCount": 26.0})
    assert (each.severity, each.nearest) == ("warning", "3")
    assert "32 VMs of 4,096 ports need 3 addresses, but 2 are reserved" in each.message


def test_a_gateway_that_takes_addresses_by_itself_lacks_none() -> None:
    assert found({**PORTS, "gpu.autoscaling.maxNodeCount": 900.0}) == []


def test_vms_of_other_regions_do_not_count() -> None:
    west = {**PORTS, "nat.region": "us-west4", "gpu.autoscaling.maxNodeCount": 900.0, "nat.natIps": ["one"]}

    assert found(west) == []
