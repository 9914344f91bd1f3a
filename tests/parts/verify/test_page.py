"""The page of verify has every probe with its stage, its cost and its roles."""

from __future__ import annotations

import re
from importlib import import_module

import pytest

from tests.parts.verify.lab import Lab
from tests.places import ROOT
from training_platform.catalog import MACHINE_TYPES
from training_platform.catalog.prices import hourly_usd
from training_platform.parts.verify import google_cloud
from training_platform.parts.verify.probes import STAGES, chosen, priced, probes
from training_platform.resources.resource_types import RESOURCE_TYPES

HEADS = ("stage", "probe", "---")
PAGE = (ROOT / "docs" / "verify.md").read_text(encoding="utf-8")


def rows(columns: int) -> dict[str, list[str]]:
    """Return the page's table of so many columns, by the first one."""
    lines = [line.strip("| ").split(" | ") for line in PAGE.splitlines() if line.startswith("| ")]
    return {cells[0].strip("`"): cells[1:] for cells in lines if len(cells) == columns and cells[0] not in HEADS}


def test_the_table_has_the_probes_cost_and_roles_of_each_stage() -> None:
    table = rows(5)

    assert list(table) == list(STAGES)
    for stage, (names, usd, minutes, roles) in table.items():
        own = [one for one in probes().values() if one.stage == stage and not one.by_name]
        assert sorted(re.findall(r"`([\w-]+)`", names)) == sorted(one.name for one in own)
        assert float(usd) == pytest.approx(sum(one.usd for one in own))
        assert float(minutes) == sum(one.minutes for one in own)
        assert set(roles.split(", ")) == {role for one in own for role in one.roles}


def test_probes_that_are_chosen_by_name_have_a_row_of_their_own() -> None:
    table = rows(7)

    assert list(table) == [one.name for one in probes().values() if one.by_name]
    for name, (proves, makes, usd, minutes, needs, roles) in table.items():
        one = probes()[name]
        assert (f"{proves}.", makes, float(usd), float(minutes)) == (one.proves, one.makes, one.usd, one.minutes)
        assert (re.findall(r"--(\w+)", needs), roles.split(", ")) == (list(one.needs), list(one.roles))


def test_the_default_list_fits_into_five_dollars_and_an_hour() -> None:
    own = [one for one in probes().values() if not one.by_name]

    assert sum(one.usd for one in own) <= 5
    assert sum(one.minutes for one in own) <= 60


def test_each_probe_has_a_function_or_kinds_whose_state_is_asked_and_comes_after_what_it_needs() -> None:
    kinds = {RESOURCE_TYPES[token].kind for token in google_cloud._STATES}
    seen: set[str] = set()
    for one in probes().values():
        assert one.ready or one.by
        assert set(one.ready) <= kinds
        assert not one.by or callable(
            getattr(import_module(f"training_platform.parts.verify.{one.by}"), one.name.replace("-", "_"))
        )
        assert set(one.after) <= seen
        seen.add(one.name)


def test_vms_of_a_named_pool_cost_their_list_price_for_the_minutes_of_the_probe(lab: Lab) -> None:
    usd, machine = priced(lab.environment, "main.a100"), MACHINE_TYPES["a2-highgpu-8g"]
    hourly = hourly_usd(machine, "on-demand", "us-central1")

    assert hourly is not None
    assert usd["pools-node"] == round(hourly * probes()["pools-node"].minutes / 60, 2)
    assert usd["pools-bandwidth"] == round(2 * hourly * probes()["pools-bandwidth"].minutes / 60, 2)
    assert usd.keys() == {one.name for one in probes().values() if one.vms}
    assert priced(lab.environment, "none") == {}
    assert [one.usd for one in chosen(names=["pools-node"], usd=usd)[0] if one.vms] == [usd["pools-node"]]
