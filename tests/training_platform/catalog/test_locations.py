"""Regions and zones by their names, and the lists of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from training_platform.catalog import MACHINE_TYPES, REGIONS, ZONES, loader
from training_platform.catalog.locations import is_zone, region_of, serves
from training_platform.catalog.nearest import find_nearest
from training_platform.catalog.zones import zones_in


@pytest.mark.parametrize(
    ("location", "region"),
    [
        ("us-central1-a", "us-central1"),
        ("northamerica-northeast1-b", "northamerica-northeast1"),
        ("europe-west12-c", "europe-west12"),
        ("us-central1-ai1a", "us-central1"),
        ("us-south1-ai1b", "us-south1"),
    ],
)
def test_a_zone_lies_in_the_region_its_name_begins_with(location: str, region: str) -> None:
    assert is_zone(location)
    assert region_of(location) == region


@pytest.mark.parametrize("location", ["us-central1", "europe-west12", "us", "global", "", "us-central1-", "US-EAST1-B"])
def test_what_is_no_zone_is_its_own_region(location: str) -> None:
    assert not is_zone(location)
    assert region_of(location) == location


def test_the_zones_of_a_region_are_those_that_we_know() -> None:
    assert zones_in("us-central1") == (
        "us-central1-a",
        "us-central1-ai1a",
        "us-central1-b",
        "us-central1-c",
        "us-central1-f",
    )
    assert zones_in("us-central2") == ("us-central2-b",)
    assert zones_in("us-central") == ()


def test_every_zone_has_the_form_of_one_and_a_region_in_the_list() -> None:
    assert {zone for zone in ZONES if not is_zone(zone)} == set()
    assert {region_of(zone) for zone in ZONES} == set(REGIONS)
    assert {region for region in REGIONS if is_zone(region)} == set()


def test_every_zone_of_a_machine_is_in_the_list() -> None:
    named = {zone for machine in MACHINE_TYPES.values() for zone in (*machine.zones, *machine.missing_zones)}

    assert named <= ZONES


def test_no_machine_and_no_accelerator_names_a_region_that_the_general_list_lacks() -> None:
    general = yaml.safe_load((Path(loader.__file__).parent / "data" / "locations.yaml").read_text())

    assert set(general["locations"]["zones"]) == REGIONS
    assert [zone for zone in ZONES if not re.fullmatch(r"[a-f]|ai\d[a-z]", zone.rpartition("-")[2])] == []


def test_the_lists_hold_places_of_every_continent_and_every_ai_zone_of_our_sources() -> None:
    assert {"africa-south1", "asia-southeast3", "australia-southeast2", "me-west1", "southamerica-west1"} <= REGIONS
    assert {"us-central1-ai1a", "us-south1-ai1b", "europe-west1-d", "us-east1-d", "us-central2-b"} <= ZONES
    assert ZONES.isdisjoint({"us-east1-a", "europe-west1-a"})


def test_a_misspelt_name_finds_the_one_that_was_meant() -> None:
    assert find_nearest("a3-higpu-8g", ["a2-highgpu-8g", "a3-highgpu-8g", "a3-megagpu-8g"]) == "a3-highgpu-8g"


def test_a_name_like_none_finds_none() -> None:
    assert find_nearest("zebra", ["a3-highgpu-8g", "e2-standard-4"]) is None
    assert find_nearest("a3-highgpu-8g", []) is None


def test_upper_case_and_blanks_are_overlooked_and_the_value_keeps_its_own_case() -> None:
    assert find_nearest(" PD-SSD ", ["pd-ssd", "pd-standard"]) == "pd-ssd"
    assert find_nearest("zonal", ["REGIONAL", "ZONAL"]) == "ZONAL"


@given(st.text(), st.lists(st.text()))
def test_the_answer_is_an_allowed_value_whatever_their_order(name: str, allowed: list[str]) -> None:
    nearest = find_nearest(name, allowed)

    assert nearest is None or nearest in allowed
    assert find_nearest(name, reversed(allowed)) == nearest


@pytest.mark.parametrize(
    ("location", "region", "served"),
    [
        ("us-east1", "us-east1", True),
        ("us-east1", "us-east4", False),
        ("us", "us-east1", True),
        ("us", "northamerica-northeast1", False),
        ("europe", "europe-west4", True),
        ("europe", "europe-west2", False),
        ("asia", "australia-southeast1", False),
    ],
)
def test_a_region_is_served_by_itself_and_by_the_multi_region_around_it(
    location: str, region: str, served: bool
) -> None:
    assert serves(location, region) is served
