"""``pipelines/read_report.py``: of an archive that may be anybody's two texts are read, within their bounds."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SARIF = json.dumps({"version": "2.1.0", "runs": [{"results": []}]})


def read(archive: Path) -> tuple[int, str, dict[str, str]]:
    folder = archive.parent / "report"
    command = [sys.executable, str(ROOT / "pipelines" / "read_report.py"), str(archive), str(folder)]
    ran = subprocess.run(command, cwd=archive.parent, capture_output=True, text=True, check=False)
    return ran.returncode, ran.stderr, {path.name: path.read_text() for path in folder.iterdir()}


def write(archive: Path, **members: str) -> Path:
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for name, text in members.items():
            file.writestr(name, text)
    return archive


def test_two_reports_are_read_and_nothing_else(tmp_path: Path) -> None:
    members = {"comment.md": "ünd", "check.sarif": SARIF, "../out": "a", "/out": "a", "check.html": "a"}

    assert read(write(tmp_path / "a.zip", **members)) == (0, "", {"comment.md": "ünd", "check.sarif": SARIF})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.zip", "report"]


def test_a_link_is_a_text_like_any_other(tmp_path: Path) -> None:
    link = zipfile.ZipInfo("comment.md")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as file:
        file.writestr(link, "/etc/passwd")

    assert read(tmp_path / "a.zip") == (0, "", {"comment.md": "/etc/passwd"})


def test_no_more_is_read_than_a_comment_holds(tmp_path: Path) -> None:
    _, _, files = read(write(tmp_path / "a.zip", **{"comment.md": "ü" * 50_000_000}))

    assert files == {"comment.md": "ü" * 30_000}


@pytest.mark.parametrize(
    "sarif", ["[" * 100_000, "[]", "{}", '{"version": "2.1.0", "runs": []}', '{"version": 2, "runs": [1]}', "\x00"]
)
def test_what_is_not_sarif_of_one_run_is_left_out(sarif: str, tmp_path: Path) -> None:
    code, _, files = read(write(tmp_path / "a.zip", **{"comment.md": "a", "check.sarif": sarif}))

    assert (code, files) == (0, {"comment.md": "a"})


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04" + b"\xff" * 100, b"no archive"])
def test_what_is_no_archive_is_one_sentence(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(data)

    code, said, files = read(tmp_path / "a.zip")

    assert (code, files) == (1, {})
    assert said.startswith("the archive cannot be read: ")
    assert said.count("\n") == 1


def test_a_report_that_is_damaged_is_one_sentence(tmp_path: Path) -> None:
    archive = write(tmp_path / "a.zip", **{"comment.md": "abc" * 1000})
    data = bytearray(archive.read_bytes())
    data[45:55] = b"\xff" * 10
    archive.write_bytes(data)

    code, said, files = read(archive)

    assert (code, files) == (1, {})
    assert "Traceback" not in said


def test_without_an_archive_and_a_folder_it_says_how_it_is_called() -> None:
    command = [sys.executable, str(ROOT / "pipelines" / "read_report.py")]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)

    assert (ran.returncode, ran.stderr) == (2, "usage: read_report.py ARCHIVE FOLDER\n")
