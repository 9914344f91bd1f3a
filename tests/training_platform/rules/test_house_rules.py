"""Labels, addresses, and what Kueue takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from training_platform.config.reading.finding import Finding
from training_platform.resources.planned import UNKNOWN
from training_platform.rules import View
from training_platform.rules.views.network import InterfaceView

Make = Callable[..., View]
Check = Callable[..., list[Finding]]


@pytest.mark.parametrize(
    ("labels", "missing"),
    [
        ({"environment": "dev", "team": "vision", "more": "x"}, []),
        ({"environment": "dev"}, ["team: vision"]),
        ({"team": "vision"}, ["environment: dev"]),
        ({"environment": "prod", "team": "vision"}, ["environment: dev"]),
        ({}, ["environment: dev", "team: vision"]),
        (None, ["environment: dev", "team: vision"]),
    ],
)
def test_resource_carries_environment_and_team(
    check: Check, labelled: Make, labels: dict[str, str] | None, missing: list[str]
) -> None:
    found = check("labels", labelled(labels=labels))

    assert [finding.nearest for finding in found] == missing
    assert {finding.path for finding in found} <= {"labels"}


def test_one_resource_with_unknown_labels_hides_no_other(check: Check, labelled: Make) -> None:
    found = check("labels", labelled(labels=UNKNOWN), labelled(labels={"environment": "dev"}))

    assert [finding.severity for finding in found] == ["note", "error"]


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


@pytest.mark.parametrize(
    ("changes", "paths"),
    [
        ({"cohort": None}, ["borrowing_limit", "lending_limit"]),
        ({"cohort": None, "lending_limit": None}, ["borrowing_limit"]),
        ({"cohort": None, "borrowing_limit": 0, "lending_limit": None}, ["borrowing_limit"]),
        ({"cohort": None, "borrowing_limit": None, "lending_limit": None}, []),
        ({}, []),
    ],
)
def test_limits_need_a_cohort(check: Check, flavor_quota: Make, changes: dict[str, Any], paths: list[str]) -> None:
    found = check("kueue-limits-need-cohort", flavor_quota(**changes))

    assert [finding.path for finding in found] == [f"section.tpu-v5e-4x8.{path}" for path in paths]


@pytest.mark.parametrize(("lent", "count"), [(None, 0), (0, 0), (64, 0), (65, 1)])
def test_team_lends_at_most_what_it_has(check: Check, flavor_quota: Make, lent: int | None, count: int) -> None:
    found = check("kueue-lending-limit", flavor_quota(lending_limit=lent))

    assert [finding.nearest for finding in found] == ["64"] * count


@pytest.mark.parametrize("field", ["nominal_quota", "borrowing_limit", "lending_limit"])
@pytest.mark.parametrize(("amount", "count"), [(0, 0), (-1, 1)])
def test_no_quantity_is_negative(check: Check, flavor_quota: Make, field: str, amount: int, count: int) -> None:
    assert len(check("kueue-quantities", flavor_quota(**{field: amount}))) == count
