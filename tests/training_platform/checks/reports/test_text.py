"""The summary of a check fits one screen, and drops columns before it breaks an id."""

from __future__ import annotations

import re
from io import StringIO
from typing import cast

import pytest
from click.testing import CliRunner
from rich.console import Console
from rich.text import Text

from tests.places import ORGANISATION
from training_platform.checks.reports.terminal_tables import fitting_table
from training_platform.cli.main import app

SCREEN = 40  # lines


def check(width: int, *arguments: str) -> str:
    done = CliRunner().invoke(app, ["check", "--root", str(ORGANISATION), *arguments], env={"COLUMNS": str(width)})
    assert done.exit_code == 0, done.output
    return done.stdout


def test_a_clean_check_is_one_screen_with_its_verdict_last() -> None:
    lines = check(100).splitlines()

    assert len(lines) <= SCREEN
    assert re.fullmatch(r"\d+ stacks: clean(, .*)?", lines[-1])


def test_the_summary_names_quotas_above_four_fifths_and_no_other() -> None:
    summary = check(160)
    (title,) = re.findall(r"(\d+) of (\d+) quotas more than 80% full", summary)
    every = check(160, "--verbose")
    rows = re.findall(r"\S \(\S+\) +([\d,]+) +([\d,]+)(?: \([\d,]+ requested\))? +[\d,-]+ ", every)

    used = [(int(needs.replace(",", "")), int(limit.replace(",", ""))) for needs, limit in rows]
    assert len(used) == int(title[1])
    assert sum(needs > 0.8 * limit for needs, limit in used) == int(title[0]) > 0


@pytest.mark.parametrize("width", [80, 60])
def test_no_id_is_broken_and_no_line_is_wider_than_the_terminal(width: int) -> None:
    lines = check(width).splitlines()

    assert not [line for line in lines if len(line) > width]
    assert not [line for line in lines if "…" in line]
    assert {line.split()[0] for line in lines if line} >= {"dev", "prod", "prod-vision"}


def test_no_id_is_broken_where_all_is_shown() -> None:
    wide, narrow = (check(width, "--verbose") for width in (400, 80))

    ids = set(re.findall(r"\S+-\S*[^\s,]", wide))
    assert {"prod/us-central1-system", "PREEMPTIBLE-NVIDIA-H100-MEGA-GPUS", "tpu-v5e-4x8-flex-start"} <= ids
    assert sorted(identifier for identifier in ids if identifier not in narrow) == []
    assert not [line for line in narrow.splitlines() if len(line) > 80]


def test_a_name_is_folded_before_a_number_is_cut() -> None:
    rows = [(Text("a" * 30), Text("6,000"), Text("12,000"))]
    console = Console(width=25, file=StringIO())

    console.print(fitting_table(("quota", ">needs", ">limit"), rows, console.width))

    printed = cast(StringIO, console.file).getvalue()
    assert printed.splitlines()[1:] == [f"{'a' * 10}  6,000  12,000", f"{'a' * 10:<25}", f"{'a' * 10:<25}"]


def test_a_column_goes_only_where_it_has_to_and_in_the_order_given() -> None:
    rows = [(Text("a" * 10), Text("b" * 10), Text("c" * 10))]

    def titles(width: int) -> list[object]:
        table = fitting_table(("one", "two", "three"), rows, width, drop=("two", "one"))
        return [column.header for column in table.columns]

    assert titles(34) == ["one", "two", "three"]
    assert titles(33) == ["one", "three"]
    assert titles(21) == ["three"]
