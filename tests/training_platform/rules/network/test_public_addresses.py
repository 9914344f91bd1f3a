"""Rules about public addresses: happy path, then one spoiled value at a time, at the boundary."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from training_platform.config.reading.finding import Finding
from training_platform.rules import View
from training_platform.views.network import InterfaceView

Make = Callable[..., View]
Check = Callable[..., list[Finding]]


@pytest.mark.parametrize(("private", "count"), [(True, 0), (False, 1), (None, 1)])
def test_nodes_are_private(check: Check, cluster: Make, gpu_pool: Make, private: bool | None, count: int) -> None:
    assert len(check("private-nodes", gpu_pool(private_nodes=private))) == count
    assert len(check("private-cluster", cluster(private_nodes=private))) == count


@pytest.mark.parametrize(("public", "count"), [(False, 0), (True, 1)])
def test_control_plane_has_no_public_address(check: Check, cluster: Make, public: bool, count: int) -> None:
    assert len(check("private-control-plane", cluster(public_endpoint=public))) == count


def test_vm_with_a_public_address_is_found(check: Check) -> None:
    address = InterfaceView(stack="dev", type="gcp:compute/instance:Instance", name="vm", public=1)

    assert len(check("no-external-address", address)) == 1
    assert check("no-external-address", address.replaced(public=0)) == []
