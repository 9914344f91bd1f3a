"""The summary of a check fits one screen, and drops columns before it breaks an id."""

from __future__ import annotations

import re

from click.testing import CliRunner
from rich.text import Text

from tests.support.places import ORGANISATION
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


def test_a_column_goes_only_where_it_has_to_and_in_the_order_given() -> None:
    rows = [(Text("a" * 10), Text("b" * 10), Text("c" * 10))]

    def titles(width: int) -> list[object]:
        table = fitting_table(("one", "two", "three"), rows, width, drop=("two", "one"))
        return [column.header for column in table.columns]

    assert titles(34) == ["one", "two", "three"]
    assert titles(33) == ["one", "three"]
    assert titles(21) == ["three"]
