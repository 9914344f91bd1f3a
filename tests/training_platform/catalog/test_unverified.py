"""Every unverified fact of the catalogue names the command that decides it, or the reason why none can."""

from __future__ import annotations

import re
import shlex
from fnmatch import fnmatchcase

import click
import pytest
from click.testing import CliRunner

from tests.support.places import ROOT
from training_platform.catalog import fact_sheets
from training_platform.catalog.fact_sheets import decision, undecided
from training_platform.catalog.reading import table
from training_platform.cli.main import app

ROWS = table(fact_sheets.__file__, "deciding.yaml")
CODE = table(fact_sheets.__file__, "deciding-code.yaml")
DATA = ROOT / "training_platform" / "catalog" / "data"
MARK = re.compile(r"\(unverified[):, ]|; unverified|unverified here|Unverified:|is unverified\b")
READERS = ("training_platform/cli/catalog.py", "training_platform/catalog/deciding-code.yaml")  # which print the word


def test_none_is_left_over() -> None:
    without_decision = [key for key in undecided() if decision(*key) is None]

    assert len(undecided()) > 90
    assert without_decision == []


@pytest.mark.parametrize("pattern", [pattern for row in ROWS for pattern in row["facts"]])
def test_no_row_is_about_nothing(pattern: str) -> None:
    assert any(fnmatchcase(f"{kind} {field}", pattern) for kind, field in undecided())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["facts"][0])
def test_a_row_has_a_command_that_exists_or_a_reason(row: dict[str, str]) -> None:
    assert ("command" in row) == ("says" in row) == ("reason" not in row)
    command: click.Command = app
    words = shlex.split(row.get("command", ""))
    for word in words:
        if isinstance(command, click.Group):
            command = command.commands[word]


def marks() -> dict[str, int]:
    """Return how many facts each file of the code marks as unverified; data of the catalogue has marks of its own."""
    files = [path for part in ("training_platform", "local_google_cloud") for path in (ROOT / part).rglob("*.*")]
    texts = {path: path.read_text() for path in files if path.suffix in (".py", ".yaml") and path.parent != DATA}
    counts = {str(path.relative_to(ROOT)): len(MARK.findall(text)) for path, text in texts.items()}
    return {name: count for name, count in counts.items() if count and name not in READERS}


def test_every_fact_that_the_code_marks_has_a_row() -> None:
    assert {name: len(rows) for name, rows in CODE.items()} == marks()


@pytest.mark.parametrize("row", [row for rows in CODE.values() for row in rows], ids=lambda row: row["fact"])
def test_a_fact_of_the_code_has_a_command_or_a_reason(row: dict[str, str]) -> None:
    test_a_row_has_a_command_that_exists_or_a_reason(row)


def test_the_command_lists_them() -> None:
    done = CliRunner().invoke(app, ["catalog", "list", "--unverified"])

    assert done.exit_code == 0, done.output
    assert "machine type max_gbps" in done.output
    assert "None" not in done.output
    facts = [line for line in done.output.splitlines() if not line.startswith(" ")]
    assert len(facts) == len(undecided()) + sum(map(len, CODE.values()))
    assert "code a constant is taken as a condition: training_platform/parts/verify/google_cloud.py" in done.output
