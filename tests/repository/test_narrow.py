"""Every table of every command on a narrow terminal: nothing is cut, and rows stay distinguishable."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from rich.table import Table
from rich.text import Text

from tests.places import ORGANISATION
from training_platform.checks.reports import terminal_tables
from training_platform.cli.main import app
from training_platform.cli.shared import say_beside
from training_platform.parts.jobs.cli import inside
from training_platform.parts.jobs.cli.runs import print_runs
from training_platform.parts.jobs.runs.state import Run
from training_platform.parts.verify.probe_table import chosen_probes

WIDTHS = [80, 60]
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
OTHERS = {
    "adopt", "adopt-state", "schema", "init environment", "init team", "init job", "init pool", "image build",
    "job render", "job init", "job submit", "job cancel", "job wait", "job logs", "job why",
    "job debug", "job exec", "job port-forward", "job requeue", "job usage",
    "quota init", "quota pull", "quota request", "software outdated", "software digests",
    "sandbox up", "sandbox preview", "sandbox refresh", "sandbox destroy", "sandbox serve", "sandbox status",
    "persistent-resource list", "persistent-resource reboot", "recommend", "trace make", "trace import",
    "trace pull", "plan", "pipeline-accounts",
}  # fmt: skip
"""Commands that print sentences, files, or what another program says."""
RUNS = {"job list", "job status", "job top", "simulate"}  # their table is tried by itself


def leaves(command: click.Command, name: str = "") -> Iterator[str]:
    if isinstance(command, click.Group):
        for part, child in command.commands.items():
            yield from leaves(child, f"{name} {part}".strip())
    else:
        yield name


def test_every_command_that_prints_a_table_is_tried_here() -> None:
    assert set(leaves(app)) - {*WALKED, *RUNS} - OTHERS == set()


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


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("command", [f"{name} {how}".strip() for name, hows in WALKED.items() for how in hows])
def test_no_line_is_too_wide_and_no_two_rows_look_alike(command: str, width: int, tables: list[Table]) -> None:
    words = [str(ORGANISATION / word) if word.startswith("jobs/") else word for word in command.split()]
    rooted = [] if words[0] in {"catalog", "rules", "explain"} else ["--root", str(ORGANISATION)]

    done = CliRunner().invoke(app, [*words, *rooted], env={"COLUMNS": str(width)})

    assert done.exit_code == 0, done.output
    assert done.stdout
    # A finding is one line in a pipe, and folded on a terminal only.
    lines = [line for line in done.stdout.splitlines() if not line.startswith("note ")]
    assert [line for line in lines if len(line.rstrip()) > width and len(line.split()) > 1] == []
    assert "…" not in done.stdout
    for table in tables:
        rows = told_apart(table)
        assert len(rows) == len(set(rows)), [row for row in rows if rows.count(row) > 1]


@pytest.mark.parametrize("width", WIDTHS)
def test_no_line_of_simulated_queues_is_too_wide(width: int, tmp_path: Path, tables: list[Table]) -> None:
    trace = tmp_path / "trace.csv"
    rows = "".join(f"{number},{team},8 h100,7200\n" for number in range(9) for team in ("vision", "nlp"))
    trace.write_text(f"submitted,team,needs,seconds\n{rows}", encoding="utf-8")
    words = ["simulate", str(trace), "--environment", "prod", "--root", str(ORGANISATION)]

    done = CliRunner().invoke(app, words, env={"COLUMNS": str(width)})

    assert done.exit_code == 0, done.output
    assert [line for line in done.stdout.splitlines() if len(line.rstrip()) > width and len(line.split()) > 1] == []
    assert "…" not in done.stdout
    for table in tables:
        assert len(told_apart(table)) == len(set(told_apart(table)))


def test_a_summary_has_tables_to_look_at(tables: list[Table]) -> None:
    CliRunner().invoke(app, ["check", "--root", str(ORGANISATION)], env={"COLUMNS": "60"})

    assert len(tables) >= 2
    assert {"dev", "prod"} <= {row[0] for row in told_apart(tables[0])}


RUN = Run(
    name="finetune-20261122-140559-x7k2",
    job="finetune",
    team="vision",
    target="gke",
    place="us-central1",
    identity="finetune",
    state="running",
    created="2026-11-22T14:05:59Z",
)


@pytest.mark.parametrize("width", [*WIDTHS, 200])
def test_runs_keep_their_names_and_places_whole(
    width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))

    print_runs([RUN], "text")

    output = capsys.readouterr().out
    assert [line for line in output.splitlines() if len(line) > width] == []
    assert all(part in output for part in ("finetune-20261122-140559-x7k2", "vision", "us-central1", "running"))
    assert ("2026-11-22T14:05:59Z" in output) == (width == 200)


@pytest.mark.parametrize("width", WIDTHS)
def test_containers_keep_their_names_whole(
    width: int, tmp_path: Path, tables: list[Table], monkeypatch: pytest.MonkeyPatch
) -> None:
    kubectl = tmp_path / "kubectl"
    kubectl.write_text("#!/bin/sh\nprintf '0, 97, 70123, 81559\\n1, 3, 512, 81559\\n'\n", encoding="utf-8")
    kubectl.chmod(0o755)
    names = [f"finetune-x7k2q-node-0-{number}-8w5zv" for number in range(2)]
    pods = [{"metadata": {"name": name}} for name in names]
    monkeypatch.setattr(inside, "_pods", lambda *_: (pods, [str(kubectl)]))

    done = CliRunner().invoke(app, ["job", "top", "finetune-x7k2q"], env={"COLUMNS": str(width)})

    assert done.exit_code == 0, done.output
    assert [line for line in done.stdout.splitlines() if len(line) > width] == []
    assert [done.stdout.count(name) for name in names] == [2, 2]
    assert all(part in done.stdout for part in ("97", "70123", "81559"))
    (table,) = tables
    assert len(set(told_apart(table))) == 4


@pytest.mark.parametrize("width", [*WIDTHS, 100, 160])
def test_a_plan_of_probes_keeps_the_names_of_stages_and_probes_whole(width: int) -> None:
    words = ["verify", "prod", "--plan", "--root", str(ORGANISATION)]

    words_printed = CliRunner().invoke(app, words, env={"COLUMNS": str(width)}).stdout.split()

    planned = chosen_probes()
    assert planned
    assert {word for probe in planned for word in (probe.stage, probe.name)} <= set(words_printed)
    assert {role for probe in planned for role in probe.roles} <= {word.rstrip(",") for word in words_printed}


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
