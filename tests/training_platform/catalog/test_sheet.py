"""Sheets of facts: nothing that a row says is left out, and no mark of what is unverified is lost."""

from __future__ import annotations

import shutil
from dataclasses import fields
from pathlib import Path

import pytest

from training_platform.catalog import ACCELERATORS, MACHINE_TYPES
from training_platform.catalog.attachments import with_gpus
from training_platform.catalog.fact_sheets import KINDS, Fact, Sheet, sheets
from training_platform.catalog.loader import default, load
from training_platform.catalog.provisioning_models import Way, further_ways

DATA = Path(__file__).parents[3] / "training_platform" / "catalog" / "data"
FAMILY = """\
quotas:
  z9: {service: compute.googleapis.com, quota_id: Z9-GPUS, unit: GPUs, source: invented, unverified: [quota_id]}
accelerators:
  z9:
    {kind: gpu, title: Z9, gke_label: z9, hbm_gb: 7, peak_bf16_tflops: 1.5, topologies: null, quotas: {spot: z9},
     fallback: {}, vertex: null, partitions: {}, source: invented, unverified: [hbm_gb]}
machine_types:
  z9:
    rows:
      z9-max-2g:
        {kind: gpu, accelerator: z9, chips: 2, vcpus: 8, memory_gb: 16, boot_disk_types: [pd-ssd],
         capacities: [on-demand, spot], zones: [us-central1-a], cpu_quota: {}, source: invented,
         price: {unit: gpu, read: 2026-11-01, source: invented, usd: {spot: {us-central1: 1.25}, on-demand: {"*": 3}}},
         unverified: [price.spot, capacities.spot]}
"""


def sheet(name: str, all_sheets: list[Sheet] | None = None) -> Sheet:
    (matching,) = (row for row in (all_sheets or sheets()) if row.name == name)
    return matching


def fact(name: str, field: str) -> Fact:
    (matching,) = (row for row in sheet(name).facts if row.field == field)
    return matching


@pytest.mark.parametrize("kind", KINDS)
def test_every_row_has_a_sheet_with_every_field_and_its_source(kind: str) -> None:
    rows = getattr(default(), KINDS[kind])
    entries = {entry.name: entry for entry in sheets() if entry.kind == kind}

    assert list(entries) == list(rows)
    for name, row in rows.items():
        heads = {shown_fact.field.partition(".")[0] for shown_fact in entries[name].facts}
        apart = {"name", "source", "unverified", "calendar"}  # the last is among the ways to get a machine
        assert {field.name for field in fields(row)} - heads == apart & {field.name for field in fields(row)}
        assert entries[name].source == row.source


def test_no_mark_is_lost() -> None:
    entries = {(entry.kind, entry.name): entry for entry in sheets()}
    assert len(entries) == len(sheets())
    for kind, rows in KINDS.items():
        for name, row in getattr(default(), rows).items():
            entry = entries[kind, name]
            shown = [field.replace("price.usd.", "price.").removeprefix("ways.") for field in entry.unverified]
            for mark in row.unverified:
                assert any(f"{field}.".startswith(f"{mark}.") for field in shown), (name, mark)


def test_a_fact_has_its_unit() -> None:
    assert fact("a3-megagpu-8g", "memory_gb") == Fact("memory_gb", 1872.0, "GB")
    assert fact("a3-megagpu-8g", "chips") == Fact("chips", 8, "GPUs")
    assert fact("ct5lp-hightpu-4t", "chips") == Fact("chips", 4, "chips")
    assert fact("ct5lp-hightpu-4t", "price.usd.on-demand.us-west4").unit == "USD per chip and hour"
    assert fact("ZONAL", "bands").value == ["1024 to 9984 in steps of 256", "10240 to 102400 in steps of 2560"]


def test_a_tpu_shows_its_slices_with_the_vms_of_each() -> None:
    v5e = ["2x2 of 1", "2x4 of 2", "4x4 of 4", "4x8 of 8", "8x8 of 16", "8x16 of 32", "16x16 of 64"]
    assert fact("ct5lp-hightpu-4t", "slices") == Fact("slices", v5e, "VMs")
    assert sheet("ct5lp-hightpu-8t").value("slices") == ["2x4 of 1"]
    assert sheet("a3-highgpu-8g").value("slices") is None

    many = sheet("ct5p-hightpu-4t").value("slices")
    assert isinstance(many, list)
    assert many[:5] == ["2x2x1 of 1", "2x2x2 of 2", "2x2x4 of 4", "2x4x4 of 8", "4x4x4 of 16"]
    assert many[-1].endswith(f" of {96 * 4 * 4 * 4 // 4}")


def test_a_new_family_shows_with_its_marks_and_no_code(tmp_path: Path) -> None:
    shutil.copytree(DATA, tmp_path / "data")
    (tmp_path / "data" / "z9.yaml").write_text(FAMILY)

    new_sheet = sheet("z9-max-2g", sheets(load(tmp_path / "data")))

    assert new_sheet.value("accelerator.title") == "Z9"
    assert new_sheet.value("price.usd.on-demand.*") == 3.0
    assert new_sheet.unverified == (
        "accelerator.hbm_gb",
        "accelerator.quotas.spot",
        "capacities.spot",
        "price.usd.spot.us-central1",
    )


def ways(name: str) -> dict[str, bool | None]:
    return {way.name: way.offered for way in further_ways(MACHINE_TYPES[name])}


@pytest.mark.parametrize(
    ("name", "queued", "block", "calendar"),
    [
        ("a3-highgpu-8g", True, True, True),
        ("a3-highgpu-1g", True, False, False),  # no reservation of it
        ("a4x-highgpu-4g", False, True, True),
        ("a2-ultragpu-8g", True, None, False),  # calendar mode starts with A3
        ("g2-standard-4", True, None, False),
        ("g4-standard-48", True, None, None),
        ("ct6e-standard-4t", True, None, True),
        ("tpu7x-standard-4t", True, None, True),
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
    (sheet,) = (entry for entry in sheets() if entry.name == "tpu7x-standard-4t")

    assert sheet.facts[-1] == Fact("ways.calendar", True, "(on request)")


def test_the_sheet_of_a_machine_shows_them() -> None:
    (sheet,) = (entry for entry in sheets() if entry.name == "ct6e-standard-4t")

    assert [fact for fact in sheet.facts if fact.field.startswith("ways.")] == [
        Fact("ways.queued-provisioning", True, unverified=True),
        Fact("ways.reservation-block", None),
        Fact("ways.reservation-sub-block", None),
        Fact("ways.calendar", True),
    ]
