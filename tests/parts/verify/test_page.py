"""The page of verify has every probe with its stage, its minutes and its roles."""

from __future__ import annotations

import re

from tests.places import ROOT
from training_platform.parts.verify.probe_table import PROBES
from training_platform.parts.verify.probes import STAGES

HEADS = ("stage", "probe", "---")
PAGE = (ROOT / "docs" / "verify.md").read_text(encoding="utf-8")


def rows(columns: int) -> dict[str, list[str]]:
    """Return the page's table with this number of columns, by its first one."""
    lines = [line.strip("| ").split(" | ") for line in PAGE.splitlines() if line.startswith("| ")]
    return {cells[0].strip("`"): cells[1:] for cells in lines if len(cells) == columns and cells[0] not in HEADS}


def test_the_table_has_the_probes_minutes_and_roles_of_each_stage() -> None:
    table = rows(4)

    assert list(table) == list(STAGES)
    for stage, (names, minutes, roles) in table.items():
        probes = [probe for probe in PROBES.values() if probe.stage == stage and not probe.by_name]
        assert sorted(re.findall(r"`([\w-]+)`", names)) == sorted(probe.name for probe in probes)
        assert float(minutes) == sum(probe.minutes for probe in probes)
        assert set(roles.split(", ")) == {role for probe in probes for role in probe.roles}


def test_probes_that_are_chosen_by_name_have_a_row_of_their_own() -> None:
    table = rows(6)

    assert list(table) == [probe.name for probe in PROBES.values() if probe.by_name]
    for name, (proves, makes, minutes, needs, roles) in table.items():
        probe = PROBES[name]
        assert (f"{proves}.", makes, float(minutes)) == (probe.proves, probe.makes, probe.minutes)
        assert (re.findall(r"--(\w+)", needs), roles.split(", ")) == (list(probe.needs), list(probe.roles))


def test_the_default_list_fits_into_an_hour() -> None:
    probes = [probe for probe in PROBES.values() if not probe.by_name]

    assert sum(probe.minutes for probe in probes) <= 60


def test_each_probe_comes_after_what_it_needs() -> None:
    earlier: set[str] = set()
    for probe in PROBES.values():
        assert set(probe.after) <= earlier
        earlier.add(probe.name)
