"""The page of verify has every probe with its stage, its cost and its roles."""

from __future__ import annotations

import re
import subprocess
import sys

from tests.places import ROOT
from training_platform.verify.probes import STAGES, probes

PAGE = (ROOT / "docs" / "verify.md").read_text(encoding="utf-8")


def test_the_table_has_the_probes_cost_and_roles_of_each_stage() -> None:
    rows = {
        cells[0]: cells[1:]
        for cells in re.findall(r"^\| (\w+) \| (`[^|]+) \| ([\d.]+) \| (\d+) \| ([^|]+) \|$", PAGE, re.MULTILINE)
    }

    assert list(rows) == list(STAGES)
    for stage, (names, usd, minutes, roles) in rows.items():
        own = [one for one in probes().values() if one.stage == stage and not one.by_name]
        assert sorted(re.findall(r"`([\w-]+)`", names)) == sorted(one.name for one in own)
        assert float(usd) == sum(one.usd for one in own)
        assert float(minutes) == sum(one.minutes for one in own)
        assert set(roles.split(", ")) == {role.removeprefix("roles/") for one in own for role in one.roles}


def test_probes_that_start_vms_are_named_with_their_cost() -> None:
    for one in probes().values():
        if one.by_name:
            assert f"`{one.name}` (up to {one.usd:g} USD and {one.minutes:g} minutes" in PAGE


def test_the_default_list_fits_into_five_dollars_and_an_hour() -> None:
    own = [one for one in probes().values() if not one.by_name]

    assert sum(one.usd for one in own) <= 5
    assert sum(one.minutes for one in own) <= 60


def test_the_order_of_probes_is_the_same_whoever_imported_a_file_first() -> None:
    """The page on what is proven is written in this order."""
    program = "import training_platform.verify.{}\nfrom training_platform.verify.probes import probes\nprint(*probes())"
    said = [
        subprocess.run([sys.executable, "-c", program.format(name)], capture_output=True, text=True, check=True).stdout
        for name in ("google_cloud", "tenancy")
    ]

    assert said[0] == said[1]
    assert said[0].split() == list(probes())
