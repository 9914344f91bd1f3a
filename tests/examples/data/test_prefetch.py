"""A folder is filled from another, and an interrupted copy goes on with the very next byte."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.places import ROOT

PROGRAM = ROOT / "examples" / "data" / "prefetch.py"


def run(source: Path, destination: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(PROGRAM), str(source), str(destination), "--threads=4"]
    return subprocess.run(command, check=False, capture_output=True, text=True)


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    source = tmp_path / "bucket"
    for index in range(20):
        path = source / f"class-{index % 3}" / f"{index}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes([index]) * (1000 + index))
    return source, tmp_path / "volume"


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_every_file_is_copied_and_a_second_run_copies_nothing(folders: tuple[Path, Path]) -> None:
    source, volume = folders
    total = sum(1000 + index for index in range(20))

    first, second = run(source, volume), run(source, volume)

    assert first.stdout == f"20 copied ({total} bytes), 0 there already, 0 failed, 0 in the destination alone\n"
    assert second.stdout == "0 copied (0 bytes), 20 there already, 0 failed, 0 in the destination alone\n"
    assert contents(volume) == contents(source)


def test_a_file_that_was_under_way_goes_on_from_its_last_byte(folders: tuple[Path, Path]) -> None:
    source, volume = folders
    large, text = source / "large.bin", os.urandom(300_000)
    large.write_bytes(text)
    os.utime(large, (1_700_000_000, 1_700_000_000))
    run(source, volume)
    (volume / "large.bin").unlink()
    (volume / "large.bin.300000-1700000000.part").write_bytes(text[:200_000])

    again = run(source, volume)

    assert again.stdout.startswith("1 copied (100000 bytes), 20 there already")
    assert (volume / "large.bin").read_bytes() == text
    assert not list(volume.rglob("*.part"))


def test_a_part_of_another_version_is_not_gone_on_with(folders: tuple[Path, Path]) -> None:
    source, volume = folders
    volume.mkdir()
    (volume / "large.bin.5-1.part").write_bytes(b"wrong")
    (source / "large.bin").write_bytes(b"right")

    run(source, volume)

    assert (volume / "large.bin").read_bytes() == b"right"


def test_a_source_that_changed_is_copied_again(folders: tuple[Path, Path]) -> None:
    source, volume = folders
    run(source, volume)
    changed = source / "class-0" / "0.jpg"
    changed.write_bytes(b"x" * 1000)  # of the same size
    os.utime(changed, (1_800_000_000, 1_800_000_000))

    assert run(source, volume).stdout.startswith("1 copied (1000 bytes), 19 there already")
    assert contents(volume) == contents(source)


def test_what_cannot_be_read_fails_the_run_and_hinders_no_other_file(folders: tuple[Path, Path]) -> None:
    source, volume = folders
    (volume / "class-1").mkdir(parents=True)
    (volume / "class-1" / "1.jpg").mkdir()  # a folder stands where a file is to be

    ran = run(source, volume)

    assert ran.returncode == 1
    assert "19 copied" in ran.stdout
    assert "1 failed" in ran.stdout
    assert "1.jpg" in ran.stderr


def test_what_the_source_has_no_more_stays_and_is_counted(folders: tuple[Path, Path]) -> None:
    source, volume = folders
    run(source, volume)
    (source / "class-0" / "0.jpg").unlink()

    assert run(source, volume).stdout.endswith("1 in the destination alone\n")
    assert (volume / "class-0" / "0.jpg").is_file()
