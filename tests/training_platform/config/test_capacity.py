"""Ways to get VMs in a stack file: what reservations are called, and what is refused with what would do."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from training_platform.config.model.capacity import charged_as
from training_platform.config.model.node_pool import NodePoolSpec


def pool(**fields: Any) -> NodePoolSpec:
    return NodePoolSpec.model_validate_json(json.dumps({"machine_type": "a3-highgpu-8g", **fields}))


def reserved(reservation: Any) -> tuple[str, str | None]:
    found = pool(capacity="reservation", reservation=reservation).reservation
    assert found is not None
    return found.affinity, found.path


@pytest.mark.parametrize(
    ("said", "path"),
    [
        ("h100", "h100"),
        ({"name": "h100"}, "h100"),
        ({"name": "h100", "project": "example-shared"}, "projects/example-shared/reservations/h100"),
        ({"name": "h100", "block": "b1"}, "h100/reservationBlocks/b1"),
        (
            {"name": "h100", "project": "example-shared", "block": "b1", "sub_block": "s1"},
            "projects/example-shared/reservations/h100/reservationBlocks/b1/reservationSubBlocks/s1",
        ),
    ],
)
def test_a_reservation_is_called_as_gke_calls_it(said: Any, path: str) -> None:
    assert reserved(said) == ("SPECIFIC_RESERVATION", path)


def test_any_reservation_has_no_name() -> None:
    assert reserved("any") == reserved({"name": "*"}) == ("ANY_RESERVATION", None)
    assert reserved({"name": "any"}) == ("SPECIFIC_RESERVATION", "any")


def test_queued_vms_are_charged_as_flex_start_vms() -> None:
    assert pool(capacity="queued-provisioning").charged == "flex-start"
    assert charged_as("spot") == "spot"


@pytest.mark.parametrize(
    ("fields", "at", "nearest"),
    [
        ({"capacity": "spot", "reservation": "h100"}, ("reservation",), "capacity: reservation"),
        ({"capacity": "queued-provisioning", "reservation": "h100"}, ("reservation",), "capacity: reservation"),
        ({"capacity": "reservation"}, ("capacity",), None),
    ],
)
def test_a_reservation_goes_with_reserved_vms_alone(fields: Any, at: tuple[str, ...], nearest: str | None) -> None:
    with pytest.raises(ValidationError) as refused:
        pool(**fields)

    (error,) = refused.value.errors()
    assert error["ctx"]["at"] == at
    assert error["ctx"]["nearest"] == nearest
    assert error["ctx"]["allowed"]


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"block": "b1"},
        {"name": "*", "block": "b1"},
        {"name": "h100", "sub_block": "s1"},
        {"name": "h100", "starts": "2026-12-02", "ends": "2026-12-01"},
        {"name": "h100", "starts": "2026-02-30"},
        {"name": "h100", "starts": "20261201"},
        "H100",
    ],
)
def test_half_a_reservation_is_refused(said: Any) -> None:
    with pytest.raises(ValidationError):
        reserved(said)


def test_a_future_reservation_may_last_a_day() -> None:
    assert reserved({"name": "h100", "starts": "2026-12-01", "ends": "2026-12-01"}) == ("SPECIFIC_RESERVATION", "h100")
