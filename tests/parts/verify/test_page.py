"""The page of verify has every probe with its stage, its minutes and its roles."""

from __future__ import annotations

import re

from tests.places import ROOT
from training_platform.parts.verify.probe_table import PROBES
from training_platform.parts.verify.probes import STAGES

HEADS = ("stage", "probe", "---")
PAGE = (ROOT / "docs" / "verify.md").read_text(encoding="utf-8")


def rows(columns: int) -> dict[str, list[str]]:
    """Return the page's table of so many columns, by the first one."""
    lines = [line.strip("| ").split(" | ") for line in PAGE.splitlines() if line.startswith("| ")]
    return {cells[0].strip("`"): cells[1:] for cells in lines if len(cells) == columns and cells[0] not in HEADS}


def test_the_table_has_the_probes_minutes_and_roles_of_each_stage() -> None:
    table = rows(4)

    assert list(table) == list(STAGES)
    for stage, (names, minutes, roles) in table.items():
        own = [one for one in PROBES.values() if one.stage == stage and not one.by_name]
        assert sorted(re.findall(r"`([\w-]+)`", names)) == sorted(one.name for one in own)
        assert float(minutes) == sum(one.minutes for one in own)
        assert set(roles.split(", ")) == {role for one in own for role in one.roles}


def test_probes_that_are_chosen_by_name_have_a_row_of_their_own() -> None:
    table = rows(6)

    assert list(table) == [one.name for one in PROBES.values() if one.by_name]
    for name, (proves, makes, minutes, needs, roles) in table.items():
        one = PROBES[name]
        assert (f"{proves}.", makes, float(minutes)) == (one.proves, one.makes, one.minutes)
        assert (re.findall(r"--(\w+)", needs), roles.split(", ")) == (list(one.needs), list(one.roles))


def test_the_default_list_fits_into_an_hour() -> None:
    own = [one for one in PROBES.values() if not one.by_name]

    assert sum(one.minutes for one in own) <= 60


def test_each_probe_comes_after_what_it_needs() -> None:
    earlier: set[str] = set()
    for probe in PROBES.values():
        assert set(probe.after) <= earlier
        earlier.add(probe.name)
