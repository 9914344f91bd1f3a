"""Ways to get a machine beside the four that are charged apart."""

from __future__ import annotations

import pytest

from training_platform.catalog import ACCELERATORS, MACHINE_TYPES
from training_platform.catalog.attachments import with_gpus
from training_platform.catalog.fact_sheets import Fact, sheets
from training_platform.catalog.provisioning_models import Way, further_ways


def ways(name: str) -> dict[str, bool | None]:
    return {way.name: way.offered for way in further_ways(MACHINE_TYPES[name])}


@pytest.mark.parametrize(
    ("name", "queued", "block", "calendar"),
    [
        ("a3-highgpu-8g", True, True, True),
        ("a3-highgpu-1g", True, False, False),  # no reservation of it
        ("a3-edgegpu-8g", False, True, True),  # no flex-start
        ("a4x-highgpu-4g", False, True, True),
        ("a2-ultragpu-8g", True, None, False),  # calendar mode starts with A3
        ("g2-standard-4", True, None, False),
        ("g4-standard-48", True, None, None),
        ("ct6e-standard-4t", True, None, True),
        ("tpu7x-standard-4t", True, None, True),
        ("ct5l-hightpu-4t", False, None, None),
        ("ct4p-hightpu-4t", False, None, False),
    ],
)
def test_a_machine_can_be_had_as_its_sources_say(
    name: str, queued: bool, block: bool | None, calendar: bool | None
) -> None:
    assert ways(name) == {
        "queued-provisioning": queued,
        "reservation-block": block,
        "reservation-sub-block": block,
        "calendar": calendar,
    }


@pytest.mark.parametrize(
    ("name", "unverified"),
    [
        ("a3-highgpu-8g", {"reservation-sub-block"}),
        ("a3-edgegpu-8g", {"calendar", "reservation-sub-block"}),
        ("a3-highgpu-1g", set()),
        ("ct6e-standard-4t", {"queued-provisioning"}),
        ("tpu7x-standard-4t", {"queued-provisioning"}),
    ],
)
def test_what_sources_leave_open_is_marked(name: str, unverified: set[str]) -> None:
    assert {way.name for way in further_ways(MACHINE_TYPES[name]) if way.unverified} == unverified


def test_attached_gpus_are_had_as_their_own_row_says() -> None:
    t4 = with_gpus("n1-standard-8", ACCELERATORS["t4"].gke_label, 1)

    assert Way("calendar", offered=False) in further_ways(t4)


def test_machines_without_accelerators_have_no_further_ways() -> None:
    assert further_ways(MACHINE_TYPES["n2-standard-8"]) == ()


def test_the_calendar_of_tpu_7x_is_opened_on_request() -> None:
    (sheet,) = (each for each in sheets() if each.name == "tpu7x-standard-4t")

    assert sheet.facts[-1] == Fact("ways.calendar", True, "(on request)")


def test_the_sheet_of_a_machine_shows_them() -> None:
    (sheet,) = (each for each in sheets() if each.name == "ct6e-standard-4t")

    assert [fact for fact in sheet.facts if fact.field.startswith("ways.")] == [
        Fact("ways.queued-provisioning", True, unverified=True),
        Fact("ways.reservation-block", None),
        Fact("ways.reservation-sub-block", None),
        Fact("ways.calendar", True),
    ]
