"""The summary of a check: one screen, and columns that go before an id is broken."""

from __future__ import annotations

import json
import re
import shutil
from datetime import date
from io import StringIO
from pathlib import Path
from typing import cast
from xml.etree import ElementTree as Xml

import pytest
from click.testing import CliRunner
from rich.console import Console
from rich.text import Text

from tests.places import ORGANISATION, ROOT
from training_platform.checks.output import FORMATS, render
from training_platform.checks.report import Report
from training_platform.checks.reports.text import fitting_table
from training_platform.checks.run import run_check
from training_platform.checks.stacks import CheckOptions
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
    said = check(160)
    (title,) = re.findall(r"(\d+) of (\d+) quotas more than 80% full", said)
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
    assert sorted(each for each in ids if each not in narrow) == []
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


FILE = "stacks/Pulumi.prod-nlp.yaml"
TODAY = date(2026, 11, 21)
# prod-vision has 4 replicas of one GPU, and prod's limit is 8: 5 more are too many, and as many as fit alone.
PLANTED = """\
    vertex:
      persistent_resources:
        search: {region: us-central1, machine_type: a2-highgpu-1g, replicas: %d}
"""
SAID = "needs 9, of which search 5 and tuning of prod-vision 4"
Planted = tuple[Report, int]


def planted(folder: Path, replicas: int) -> Planted:
    """Return the report of a repository whose nlp team wants some replicas, and the line that says so."""
    shutil.copytree(ORGANISATION / "stacks", folder / "stacks")
    shutil.copy(ROOT / "Pulumi.yaml", folder)
    path = folder / FILE
    path.write_text(path.read_text() + PLANTED % replicas)
    line = len(path.read_text().splitlines())
    return run_check(folder, CheckOptions(today=TODAY)), line


@pytest.fixture(scope="module")
def over(tmp_path_factory: pytest.TempPathFactory) -> Planted:
    return planted(tmp_path_factory.mktemp("over"), 5)


def test_what_fits_the_sum_to_the_last_gpu_is_clean(tmp_path: Path) -> None:
    report, _ = planted(tmp_path, 4)

    assert [str(finding) for finding in report.all_findings() if finding.rule == "quota-exceeded"] == []


def test_it_is_found_at_its_line_with_who_holds_the_rest_and_what_fits(over: Planted) -> None:
    report, line = over
    (mine, theirs) = [finding for finding in report.all_findings() if finding.rule == "quota-exceeded"]

    assert (mine.file, mine.path) == (FILE, "vertex.persistent_resources.search.replicas")
    assert mine.position is not None
    assert mine.position.line == line
    assert mine.message.endswith(SAID)
    assert (mine.allowed, mine.nearest) == (
        "8 GPUs",
        "replicas 4 for search; or request 9 GPUs (training-platform quota plan)",
    )
    assert (theirs.stack, theirs.path) == ("prod-vision", "vertex.persistent_resources.tuning.max_replicas")
    assert report.exit_code() == 1


@pytest.mark.parametrize("to", FORMATS)
def test_every_format_says_who_holds_what(over: Planted, to: str) -> None:
    plain = re.sub(r"<!--.*?-->|\\", "", render(over[0], to))

    assert SAID in plain
    assert FILE in plain


def test_every_format_has_the_line(over: Planted) -> None:
    report, line = over
    columns = {
        finding.position.column for finding in report.all_findings() if finding.file == FILE and finding.position
    }
    (column,) = columns

    assert f"error {FILE}:{line}:{column}:" in render(report, "text")
    assert f"[{FILE}:{line}]({FILE}#L{line})" in render(report, "markdown").replace("\\", "")
    assert f"::error file={FILE},line={line},col={column}," in render(report, "github")
    assert f"{FILE}:{line}" in render(report, "html")


def test_documents_for_programs_have_the_line(over: Planted) -> None:
    report, line = over
    found = [each for each in json.loads(render(report, "json"))["findings"] if each["file"] == FILE]
    (result,) = [
        each
        for each in json.loads(render(report, "sarif"))["runs"][0]["results"]
        if each["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == FILE
    ]
    entries = [each for each in json.loads(render(report, "gitlab")) if each["location"]["path"] == FILE]
    root = Xml.fromstring(render(report, "junit").encode())  # noqa: S314 # our own
    failures = [each.findtext("failure") for each in root.iter("testcase") if each.get("file") == FILE]

    assert [each["line"] for each in found] == [line]
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == line
    assert [each["location"]["lines"]["begin"] for each in entries] == [line]
    assert any(text and f"{FILE}:{line}:" in text for text in failures)
