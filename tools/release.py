"""Prepare a release: ``make release VERSION=0.3.0``, which runs ``python -m tools.release 0.3.0``.

The version is written to each file that names it, the fragments in changelog.d/ are moved to CHANGELOG.md, and
docs/upgrade.md gets a row for the new version. Nothing is committed. docs/development/release.md describes the other
steps.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
UPGRADE_PAGE = Path("docs/upgrade.md")
_VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)")
_UPGRADE_ROWS = "| after | what the next `up` replaces or deletes | why, and what to do first |\n| --- | --- | --- |\n"


def main() -> int:
    """Prepare the release. If it is not possible, return 2 and print the reason on standard error."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("version", help="such as 0.3.0")
    version: str = parser.parse_args().version
    reason = refusal(ROOT, version)
    if reason:
        print(reason, file=sys.stderr)
        return 2
    try:
        write_version(ROOT, version)
        add_upgrade_row(ROOT, version)
    except LookupError as error:
        print(error, file=sys.stderr)
        return 2
    fold = [sys.executable, "-m", "towncrier", "build", "--yes", "--version", version, "--dir", str(ROOT)]
    subprocess.run(fold, cwd=ROOT, check=True)
    print("Shorten the new section of CHANGELOG.md by hand; docs/development/release.md has the next steps.")
    return 0


def current_version(root: Path) -> str:
    """Return the version in pyproject.toml, such as ``0.2.0``."""
    project: str = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    return project


def refusal(root: Path, version: str) -> str | None:
    """Return the reason why this version cannot be released here, or None if it can."""
    current = current_version(root)
    if not _VERSION.fullmatch(version):
        return f"VERSION: {version!r} is not a version. Allowed: three numbers, such as 0.3.0"
    if _numbers(version) <= _numbers(current):
        return f"VERSION: {version} is not later than {current}, the version in pyproject.toml"
    if not list((root / "changelog.d").glob("*.*.md")):
        return "changelog.d: contains no fragments, so there is nothing to release"
    status = ["git", "status", "--porcelain"]
    if subprocess.run(status, cwd=root, check=True, capture_output=True, text=True).stdout:
        return "The checkout has changes that are not committed: commit them first, since a release is one commit"
    return None


def write_version(root: Path, version: str) -> None:
    """Write the new version to each file that names the current one. Only the line with that version changes."""
    current = re.escape(current_version(root))
    texts: dict[Path, str] = {}
    lines = {
        "pyproject.toml": rf'^(version = "){current}(")$',
        "policies/PulumiPolicy.yaml": rf"^(version: ){current}( )",
        "docs/reference/ci.md": rf"^( *rev: v){current}()$",
    }
    for file, line in lines.items():
        path = root / file
        text, count = re.subn(line, rf"\g<1>{version}\g<2>", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        if count != 1:
            raise LookupError(f"{file}: {count} lines contain the version; expected one")
        texts[path] = text
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")


def add_upgrade_row(root: Path, version: str) -> None:
    """Add an empty table for the resources that an update after this version replaces."""
    path = root / UPGRADE_PAGE
    text = path.read_text(encoding="utf-8")
    if _UPGRADE_ROWS not in text:
        raise LookupError(f"{UPGRADE_PAGE}: has no table of versions")
    path.write_text(text.replace(_UPGRADE_ROWS, f"{_UPGRADE_ROWS}| {version} | nothing so far | |\n"), encoding="utf-8")


def _numbers(version: str) -> list[int]:
    return [int(number) for number in version.split(".")]


if __name__ == "__main__":
    raise SystemExit(main())
