"""Several formats of one run, to standard output and to files, which appear atomically."""

from __future__ import annotations

import html
import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from tests.support.places import ORGANISATION
from training_platform.checks.output import FORMATS, check_writable, print_report, render, write_files
from training_platform.checks.report import Known, Report
from training_platform.checks.reports import sections
from training_platform.checks.reports.tables import ReportRow, ReportSection
from training_platform.checks.reports.wording import conclusion
from training_platform.cli.check import check as check_command
from training_platform.cli.main import app
from training_platform.config.reading.finding import UserError

Build = Callable[..., Any]


def check(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["check", "--root", str(ORGANISATION), *arguments])


def test_the_command_takes_every_format_that_there_is() -> None:
    (option,) = (option for option in check_command.params if option.name == "formats")

    assert isinstance(option.type, click.Choice)
    assert list(option.type.choices) == list(FORMATS)


def test_a_section_is_one_function_and_every_format_for_people_and_programs_has_it(
    clean: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [ReportRow(("prod <b>", "7"))]
    section = ReportSection(title="nights", columns=("stack", ">nights"), rows=rows, note="counted once")
    monkeypatch.setitem(vars(sections)["SECTIONS"], "nights", lambda _report: iter((section,)))

    text, markdown, page = (render(clean, to) for to in ("text", "markdown", "html"))

    assert re.search(r"(?m)^nights ─+\n  stack     nights\n  prod <b>       7\n  counted once$", text)
    assert "| stack | nights |\n| --- | ---: |\n| prod &lt;b&gt; | 7 |" in markdown
    assert '<section id="nights"><h2>Nights</h2>' in page
    assert '<td>prod &lt;b&gt;</td><td class="number" data-name="nights">7</td>' in page
    assert json.loads(render(clean, "json"))["nights"] == [{"stack": "prod <b>", "nights": "7"}]


@pytest.mark.parametrize("to", FORMATS)
def test_every_format_can_be_written_of_every_report(to: Any, clean: Report, spoiled: Report) -> None:
    assert render(clean, to) != render(spoiled, to)
    if to not in {"github", "json", "gitlab", "sarif"}:
        assert "5 stacks: clean" in render(clean, to)


@pytest.mark.parametrize("to", FORMATS)
def test_the_verdict_of_every_format_counts_what_was_not_judged_and_is_not_clean(
    to: Any, clean: Report, build_report: Build, build_finding: Build
) -> None:
    notes = [build_finding(severity="note", unjudged=kind) for kind in ("change of a stack", "quota", "quota")]
    text = html.unescape(render(build_report(*notes, known_stacks=frozenset({"prod"})), to))

    assert "1 stack: 3 notes; not judged: 1 change of a stack, 2 quotas" in text
    assert "not judged" not in render(clean, to)


def test_what_is_exempt_or_known_is_still_not_judged(build_report: Build, build_finding: Build) -> None:
    note = build_finding(severity="note", unjudged="quota")
    report = build_report(known_stacks=frozenset({"prod"}), known=(Known(note, "in the baseline"),))

    assert str(conclusion(report)) == "1 stack: 1 known; not judged: 1 quota"
    assert report.exit_code() == 0


@pytest.mark.parametrize("to", FORMATS)
def test_a_planted_error_is_in_every_format_with_its_line(to: Any, build_report: Build, build_finding: Build) -> None:
    text = render(build_report(build_finding("needs 80, and h100 of staging 32 of it")), to)

    assert "h100 of staging 32" in text
    assert "14" in text
    assert "stacks/Pulumi.prod.yaml" in text


def test_several_files_are_written_in_one_run(tmp_path: Path) -> None:
    names = {"sarif": "a.sarif", "markdown": "a.md", "html": "a.html", "gitlab": "a.json"}

    done = check(*(f"--output={to}={tmp_path / name}" for to, name in names.items()))

    assert done.exit_code == 0, done.output
    assert done.stdout.rstrip().endswith("5 stacks: clean")
    assert json.loads((tmp_path / "a.sarif").read_text())["version"] == "2.1.0"
    assert (tmp_path / "a.html").read_text().startswith("<!DOCTYPE html>")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names.values())


def test_files_are_written_although_there_are_findings(tmp_path: Path) -> None:
    done = check("--today", "2027-06-01", "--strict", f"--output=gitlab={tmp_path / 'x.json'}")

    assert done.exit_code == 1
    assert {entry["check_name"] for entry in json.loads((tmp_path / "x.json").read_text())} == {"quota-snapshot-age"}


def test_formats_that_are_no_whole_document_may_follow_one_another() -> None:
    done = check("--format", "text", "--format", "github", "--today", "2027-06-01")

    assert "5 stacks: clean, 2 warnings" in done.stdout
    assert done.stdout.count("::warning file=stacks/quotas/") == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--format=json", "--format=text"], "--format json is a whole document"),
        (["--output=sraif=x"], "Nearest: sarif=FILE."),
        (["--output=sarif"], "write it as FORMAT=FILE"),
        (["--output=sarif="], "write it as FORMAT=FILE"),
        (["--output=sarif=x", "--output=json=./x"], "x is given twice"),
        (["--output=sarif=/nowhere/at/all.sarif"], "there is no folder /nowhere/at"),
        (["--output=sarif=."], "it is a folder"),
    ],
)
def test_wrong_usage_is_one_sentence_and_nothing_is_checked(arguments: list[str], message: str) -> None:
    done = check(*arguments)

    assert done.exit_code == 2
    assert message in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.output


def test_no_file_is_written_if_one_cannot_be(tmp_path: Path) -> None:
    good = tmp_path / "good.json"
    bad = tmp_path / "gone" / "bad.json"
    good.write_text("before")

    with pytest.raises(UserError, match=r"gone/bad\.json cannot be written: No such file or directory\."):
        write_files({good: "after", bad: "after"})

    assert good.read_text() == "before"
    assert [path.name for path in tmp_path.iterdir()] == ["good.json"]


def test_the_command_ends_with_2_where_a_file_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, *_: object, **__: object) -> int:
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(Path, "write_text", full)

    done = check(f"--output=sarif={tmp_path / 'x.sarif'}")

    assert done.exit_code == 2
    assert "x.sarif cannot be written: No space left on device." in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_files_are_written_although_nobody_reads_standard_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(*_: object, **__: object) -> None:
        raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr("training_platform.cli.check.print_report", closed)

    check(f"--output=sarif={tmp_path / 'x.sarif'}")

    assert json.loads((tmp_path / "x.sarif").read_text())["version"] == "2.1.0"


def test_in_a_log_no_line_ends_in_blanks(spoiled: Report, capsys: pytest.CaptureFixture[str]) -> None:
    print_report(spoiled, "text")

    printed = capsys.readouterr().out
    assert [line for line in printed.splitlines() if line != line.rstrip()] == []
    assert printed == f"{render(spoiled, 'text')}\n"


def test_a_terminal_of_another_encoding_gets_the_report_nevertheless() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "training_platform.cli.main", "check"],
        cwd=ORGANISATION,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        encoding="ascii",
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert "5 stacks: clean" in done.stdout


def test_a_file_keeps_its_mode_and_a_link_stays_a_link(tmp_path: Path) -> None:
    real = tmp_path / "real.json"
    link = tmp_path / "link.json"
    real.write_text("before")
    real.chmod(0o640)
    link.symlink_to(real)

    write_files({link: "after"})

    assert link.is_symlink()
    assert real.read_text() == "after\n"
    assert stat.S_IMODE(real.stat().st_mode) == 0o640


def test_a_pipe_is_written_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        check_writable({pipe: "json"})
        write_files({pipe: "text"})

        assert os.read(reader, 100) == b"text\n"
        assert stat.S_ISFIFO(pipe.stat().st_mode)
    finally:
        os.close(reader)


@pytest.mark.parametrize(("columns", "widest"), [("90", 90), ("", 160), ("0", 160), ("wide", 160)])
def test_text_is_as_wide_as_columns_says(
    columns: str, widest: int, clean: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)

    rules = [line for line in render(clean, "text").splitlines() if line.endswith("──")]

    assert rules
    assert {len(line) for line in rules} == {widest}
