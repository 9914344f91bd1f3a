"""Tables of commands on a narrow terminal: nothing is cut, and rows stay distinguishable."""

from __future__ import annotations

import pytest
from click.testing import CliRunner
from rich.table import Table
from rich.text import Text

from tests.support.places import ORGANISATION
from training_platform.checks.reports import terminal_tables
from training_platform.cli.main import app
from training_platform.cli.shared import say_beside

WALKED = {
    "check": ["", "--verbose"],
    "quota show": ["", "--by region", "--by quota", "--by stack", "--by team"],
    "quota plan": [""],
    "catalog list": [""],
    "catalog show": ["a3-highgpu-8g", "ct5lp-hightpu-4t", "vllm"],
    "explain": ["boot-disk-size", "a3-highgpu-8g", "GPUS-PER-GPU-FAMILY-per-project-region"],
    "stacks": ["", "prod"],
    "job check": [""],
    "job cost": ["jobs/vision/finetune.yaml"],
    "verify": ["prod --plan"],
}
"""Commands that print tables or lists and read only files, and how each is run."""


def told_apart(table: Table) -> list[tuple[str, ...]]:
    """Return the cells of each row that are no numbers; a blank cell says what the one above it says."""
    names = [column for column in table.columns if column.justify != "right"]
    last = [""] * len(names)
    rows = []
    for row in zip(*(column.cells for column in names), strict=True):
        last = [str(cell) or above for cell, above in zip(row, last, strict=True)]
        rows.append(tuple(last))
    return rows


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> list[Table]:
    """Return a list that will have every table that reports print."""
    printed: list[Table] = []
    make = terminal_tables._table

    def record(*arguments: object) -> Table:
        printed.append(make(*arguments))  # type: ignore[arg-type]
        return printed[-1]

    monkeypatch.setattr(terminal_tables, "_table", record)
    return printed


@pytest.mark.parametrize("command", [f"{name} {how}".strip() for name, hows in WALKED.items() for how in hows])
def test_no_line_is_too_wide_and_no_two_rows_look_alike(command: str, tables: list[Table]) -> None:
    words = [str(ORGANISATION / word) if word.startswith("jobs/") else word for word in command.split()]
    rooted = [] if words[0] in {"catalog", "rules", "explain"} else ["--root", str(ORGANISATION)]

    done = CliRunner().invoke(app, [*words, *rooted], env={"COLUMNS": "60"})

    assert done.exit_code == 0, done.output
    assert done.stdout
    # A finding is one line in a pipe, and folded on a terminal only.
    lines = [line for line in done.stdout.splitlines() if not line.startswith("note ")]
    assert [line for line in lines if len(line.rstrip()) > 60 and len(line.split()) > 1] == []
    assert "…" not in done.stdout
    for table in tables:
        rows = told_apart(table)
        assert len(rows) == len(set(rows)), [row for row in rows if rows.count(row) > 1]


def test_a_note_is_folded_before_the_subject_of_its_row() -> None:
    rows = [[Text("network-egress"), Text("not decided"), Text("one two three " * 4), Text("four five " * 9)]]
    columns = ("probe", "verdict", "answer", "evidence")

    for width in (100, 60, 45):
        lines = terminal_tables.table_text(
            terminal_tables.noted_table(columns, rows, width, below=0), width
        ).splitlines()
        assert lines[1].startswith("network-egress")
        assert max(map(len, lines)) <= width
        assert ("evidence" in lines[0]) == (width == 100)


def test_columns_by_which_rows_are_told_apart_are_a_line_above_where_they_do_not_fit_beside() -> None:
    rows = [
        [Text("example-train-dev"), Text("us-central2"), Text("N2-CPUS"), Text("20")],
        [Text("example-train-prod"), Text("us-central2"), Text("N2-CPUS"), Text("20")],
    ]

    narrow = terminal_tables.fitting_table(
        ("project", "location", "quota", ">left"), rows, 36, drop=(">left",), subject=2
    )
    wide = terminal_tables.fitting_table(
        ("project", "location", "quota", ">left"), rows, 50, drop=(">left",), subject=2
    )

    assert told_apart(narrow) == [
        ("example-train-dev us-central2\nN2-CPUS",),
        ("example-train-prod us-central2\nN2-CPUS",),
    ]
    assert len(told_apart(wide)[0]) == 3


def test_text_beside_a_head_is_folded_below_itself_and_whole_in_a_pipe(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = "one two three four five six seven eight nine"
    for columns in ("40", "20", ""):
        monkeypatch.setenv("COLUMNS", columns)
        say_beside("  head  ", words)

    assert capsys.readouterr().out == (
        "  head  one two three four five six\n        seven eight nine\n"
        "  head\n    one two three\n    four five six\n    seven eight nine\n"
        f"  head  {words}\n"
    )
