"""Traces of other schedulers: the meaning of rows, rows that are left out and counted, and unreadable files."""

from __future__ import annotations

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
