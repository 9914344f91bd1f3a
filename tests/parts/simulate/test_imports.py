"""Traces of other schedulers: the meaning of rows, rows that are left out and counted, and unreadable files."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from training_platform.cli.main import app

SLURM = """JobID|Submit|Account|ElapsedRaw|AllocTRES
100|2026-10-01T09:30:00|physics|7200|billing=64,cpu=64,gres/gpu:a100=8,gres/gpu=8,mem=1T,node=1
100.batch|2026-10-01T09:30:00|physics|7200|cpu=64,gres/gpu:a100=8
101|2026-10-01T10:00:00|biology|60|cpu=8
102|2026-10-01T10:00:00|biology|0|cpu=8,gres/gpu=1
103|2026-10-01T11:00:00|biology|90061|gres/gpu=4
"""
NAMES = "teams: {physics: vision, '*': nlp}\nneeds: {a100: a100-80, gpu: h100, '1': h100, h100-spot: h100-spot}\n"


def imported(folder: Path, kind: str, text: str, names: str = NAMES) -> Result:
    (folder / "file").write_text(text, encoding="utf-8")
    (folder / "names.yaml").write_text(names, encoding="utf-8")
    arguments = ("trace", "import", kind, str(folder / "file"), "--names", str(folder / "names.yaml"))
    return CliRunner().invoke(app, arguments)


def test_slurm_jobs_have_their_gpus_once_and_everything_else_is_counted(tmp_path: Path) -> None:
    done = imported(tmp_path, "slurm", SLURM)

    assert done.stdout.splitlines() == [
        "submitted,team,needs,seconds,job",
        "2026-10-01T09:30:00,vision,8 a100-80,7200,100",
        "2026-10-01T11:00:00,nlp,4 h100,90061,103",
    ]
    assert done.stderr.splitlines() == [
        "Left out: 1 jobs that never ran.",
        "Left out: 1 jobs without GPUs.",
        "Left out: 1 steps of jobs.",
        "2 jobs.",
    ]
    assert done.exit_code == 0


def test_what_a_table_lacks_is_counted_and_named_and_without_a_table_names_stay(tmp_path: Path) -> None:
    lacking = imported(tmp_path, "slurm", SLURM, "teams: {physics: vision}\nneeds: {gpu: h100}\n")
    without = CliRunner().invoke(app, ["trace", "import", "slurm", str(tmp_path / "file")])

    assert lacking.stdout == "submitted,team,needs,seconds\n"
    assert "Left out: 1 jobs of 'biology', which the table of names does not list under teams." in lacking.stderr
    assert "Left out: 1 jobs on 'a100', which the table of names does not list under needs." in lacking.stderr
    assert "physics,8 a100,7200" in without.stdout


def test_slurm_times_may_be_days_hours_minutes_and_seconds(tmp_path: Path) -> None:
    text = SLURM.replace("ElapsedRaw", "Elapsed").replace("|90061|", "|1-01:01:01|")

    assert imported(tmp_path, "slurm", text).stdout.splitlines()[-1] == "2026-10-01T11:00:00,nlp,4 h100,90061,103"


def test_unreadable_rows_of_slurm_are_reported_at_once_with_line_and_column(tmp_path: Path) -> None:
    text = SLURM.replace("103|2026-10-01T11:00:00", "103|Unknown").replace("|7200|billing", "|soon|billing")

    done = imported(tmp_path, "slurm", text + "104|a\n")

    assert done.exit_code == 1
    places = [line.removeprefix(f"{tmp_path}/") for line in done.stderr.splitlines() if line.startswith(str(tmp_path))]
    assert places == [
        "file:2:33: 'soon' is not a duration", "file:6:5: 'Unknown' is not a point in time",
        "file:7:1: has 2 cells, not 5",
    ]  # fmt: skip


def test_jobs_of_the_standard_workload_format_are_those_that_used_processors(tmp_path: Path) -> None:
    columns = "-1 -1 16 7200 -1 1 5 7 -1 -1 1 -1 -1"  # group 7, partition 1
    text = f"; a header\n1 0 10 3600 8 {columns}\n2 60 10 3600 -1 {columns}\n3 90 -1 -1 8 {columns}\nbroken\n"

    done = imported(tmp_path, "swf", text)

    assert done.stdout.splitlines()[1:] == ["0,nlp,8 h100,3600,1", "60,nlp,16 h100,3600,2"]
    assert "Left out: 1 jobs that never ran" in done.stderr
    assert "file:5:1: is not a job in the Standard Workload Format" in done.stderr


def workload(name: str, conditions: dict[str, str], **flavors: str) -> dict[str, Any]:
    rows = [{"type": kind, "status": "True", "lastTransitionTime": moment} for kind, moment in conditions.items()]
    usage = dict.fromkeys(flavors.values(), "8")
    sets = [
        {"flavors": {resource: flavor.replace("_", "-")}, "resourceUsage": usage}
        for flavor, resource in flavors.items()
    ]
    admission = {"clusterQueue": "physics", "podSetAssignments": sets}
    metadata = {"name": name, "creationTimestamp": "2026-10-01T09:00:00Z"}
    return {"metadata": metadata, "spec": {"priority": 5}, "status": {"conditions": rows, "admission": admission}}


def test_workloads_that_ended_are_jobs(tmp_path: Path) -> None:
    ended = {"Admitted": "2026-10-01T10:00:00Z", "Finished": "2026-10-01T10:30:00Z"}
    items = [
        workload("a", ended, h100_spot="nvidia.com/gpu"),
        workload("b", {"Admitted": "2026-10-01T10:00:00Z"}, h100_spot="nvidia.com/gpu"),
        workload("c", ended, cpus="cpu"),
    ]

    done = imported(tmp_path, "kueue", json.dumps({"items": items}))

    assert done.stdout.splitlines()[1:] == ["2026-10-01T09:00:00Z,vision,8 h100-spot,1800,5,a"]
    assert "Left out: 1 workloads that have not ended" in done.stderr
    assert "Left out: 1 workloads without GPUs or TPUs." in done.stderr


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ("|90061|", f"|{'9' * 400}|", "6:33"),
        ("|90061|", f"|{'9' * 5000}|", "6:33"),
        ("|90061|", "|9999999999-00:00:00|", "6:33"),
        ("gres/gpu=4", f"gres/gpu={'9' * 5000}", "6:39"),
    ],
)
def test_a_row_of_slurm_beyond_all_measure_costs_that_row(tmp_path: Path, old: str, new: str, place: str) -> None:
    done = imported(tmp_path, "slurm", SLURM.replace(old, new))

    assert done.exit_code == 1, done.exception
    assert f"file:{place}: " in done.stderr
    assert "1 jobs." in done.stderr


@pytest.mark.parametrize("cell", ["nan", "inf", "1e300", "1e15"])
@pytest.mark.parametrize("column", range(18))
def test_a_number_of_the_standard_workload_format_beyond_all_measure_costs_that_row(
    tmp_path: Path, cell: str, column: int
) -> None:
    cells = ["1", "0", "10", "3600", "8", "-1", "-1", "16", "7200", "-1", "1", "5", "7", "-1", "-1", "1", "-1", "-1"]
    spoiled = " ".join([*cells[:column], cell, *cells[column + 1 :]])

    done = imported(tmp_path, "swf", f"{spoiled}\n{' '.join(cells)}\n")

    assert done.exit_code == 1, done.exception
    assert "file:1:" in done.stderr
    assert "1 jobs." in done.stderr


SPOILED: list[Callable[[dict[str, Any]], object]] = [
    lambda row: row.update(metadata=None),
    lambda row: row["metadata"].update(creationTimestamp="soon"),
    lambda row: row["spec"].update(priority=math.inf),
    lambda row: row["status"].update(conditions=[None]),
    lambda row: row["status"]["conditions"][0].update(lastTransitionTime="2026-10-01T10:00:00"),
    lambda row: row["status"].pop("admission"),
    lambda row: row["status"]["admission"]["podSetAssignments"][0].update(resourceUsage={}),
    lambda row: row["status"]["admission"]["podSetAssignments"][0].update(flavors=["a"]),
]


@pytest.mark.parametrize("spoil", SPOILED, ids=range(len(SPOILED)))
def test_a_workload_without_the_fields_of_one_costs_that_one(
    tmp_path: Path, spoil: Callable[[dict[str, Any]], object]
) -> None:
    ended = {"Admitted": "2026-10-01T10:00:00Z", "Finished": "2026-10-01T10:30:00Z"}
    bad, good = (workload(name, ended, h100_spot="nvidia.com/gpu") for name in ("bad", "good"))
    spoil(bad)

    done = imported(tmp_path, "kueue", json.dumps({"kind": "List", "items": [bad, good, None]}, indent=1))

    assert done.exit_code == 1, done.exception
    assert "file:4:3: " in done.stderr
    assert "1 jobs." in done.stderr


@pytest.mark.parametrize(
    ("kind", "text", "names", "message"),
    [
        ("slurm", "JobID|Submit\n", NAMES, "file:1: the header has no account, elapsed, reqtres"),
        ("kueue", "[]", NAMES, "is not a list of workloads"),
        ("kueue", '{"items": null}', NAMES, "is not a list of workloads"),
        ("kueue", "[" * 100_000, NAMES, "is not a list of workloads"),
        ("swf", "", "team: {}", "names.yaml:1:1: team: is not a field"),
    ],
)
def test_files_of_another_shape_end_with_2(tmp_path: Path, kind: str, text: str, names: str, message: str) -> None:
    done = imported(tmp_path, kind, text, names)

    assert done.exit_code == 2
    assert message in done.stderr
