"""Each row of ``upstream.md`` is still true here, and each difference has its reason."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.parts.jobs.upstream import value

TEXT = Path(__file__).with_name("upstream.md").read_text(encoding="utf-8")


class Row(NamedTuple):
    """A field of a machine, as upstream has it and as it is here."""

    machine: str
    field: str
    upstream: str
    here: str
    reason: str


def rows() -> list[Row]:
    table_rows = []
    for part in re.split(r"^## ", TEXT, flags=re.MULTILINE)[1:]:
        machine, *lines = part.splitlines()
        cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]
        table_rows += [Row(machine, *row) for row in cells[2:]]
    return table_rows


@pytest.mark.parametrize("row", rows(), ids=lambda row: f"{row.machine} {row.field}")
def test_a_row_is_true_and_a_difference_has_a_reason(row: Row) -> None:
    same = row.here == "same"

    assert value(row.machine, row.field) == (row.upstream if same else row.here)
    assert row.here != row.upstream
    assert bool(row.reason) is not same
