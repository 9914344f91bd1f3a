#!/usr/bin/env python3
"""Reads the two reports for a pull request from the archive of a run, which may be untrusted.

``read_report.py ARCHIVE FOLDER`` writes ``comment.md`` and ``check.sarif``. It uses no paths from the archive, reads
each report only up to a size limit, and leaves out a comment that is not text and a SARIF file that does not have
exactly one run. It needs only Python.
"""

from __future__ import annotations

import json
import lzma
import sys
import zipfile
import zlib
from pathlib import Path

BOUNDS = {"comment.md": 60_000, "check.sarif": 10_000_000}  # bytes; GitHub takes 65,536 characters, and 10 MB
_UNREADABLE = (OSError, EOFError, ValueError, RuntimeError, zipfile.BadZipFile, zlib.error, lzma.LZMAError)


def main(archive: Path, folder: Path) -> str | None:
    """Return the reason why nothing was written, or None on success."""
    folder.mkdir()
    try:
        with zipfile.ZipFile(archive) as read:
            texts = {name: _text(read, name, bound) for name, bound in BOUNDS.items()}
    except _UNREADABLE as error:
        return f"the archive cannot be read: {error}"
    if not texts["comment.md"]:
        return "the archive has no comment.md"
    if not _one_run(texts["check.sarif"]):
        del texts["check.sarif"]
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return None


def _text(archive: zipfile.ZipFile, name: str, bound: int) -> str:
    """Return the start of an archive member's text, without a truncated last character; "" if it does not exist."""
    if name not in archive.namelist():
        return ""
    with archive.open(name) as member:
        return member.read(bound).decode("utf-8", errors="ignore")


def _one_run(sarif: str) -> bool:
    try:
        document = json.loads(sarif)
        return document["version"] == "2.1.0" and len(document["runs"]) == 1
    except (ValueError, KeyError, TypeError, RecursionError):
        return False


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.stderr.write("usage: read_report.py ARCHIVE FOLDER\n")
        sys.exit(2)
    sys.exit(main(*map(Path, sys.argv[1:])))
