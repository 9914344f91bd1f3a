"""The pages of the reference are what the code says today, and the site of docs/ has no dead link."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from docs.reference.write import FOLDER, pages
from tests.places import ROOT
from training_platform.rules import RULES

DOCS = ROOT / "docs"


def build(folder: Path, site: Path) -> subprocess.CompletedProcess[str]:
    shutil.copy(ROOT / "mkdocs.yml", folder)
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", ["commands.md", "job-file.md", "rules.md", "stack-file.md"])
def test_a_page_of_the_reference_is_current(name: str) -> None:
    assert (FOLDER / name).read_text(encoding="utf-8") == pages()[name], "run `make reference`"


def test_every_rule_has_its_heading() -> None:
    headings = set(re.findall(r"^### (\S+)$", pages()["rules.md"], re.MULTILINE))

    assert headings >= set(RULES)


def test_the_site_builds_without_a_dead_link(tmp_path: Path) -> None:
    shutil.copytree(DOCS, tmp_path / "docs")

    built = build(tmp_path, tmp_path / "site")

    assert built.returncode == 0, built.stderr
    assert (tmp_path / "site" / "reference" / "rules.html").is_file()


def test_a_dead_link_is_found(tmp_path: Path) -> None:
    shutil.copytree(DOCS, tmp_path / "docs")
    (tmp_path / "docs" / "dead.md").write_text("[gone](gone.md) and [lost](pools.md#lost)\n", encoding="utf-8")

    built = build(tmp_path, tmp_path / "site")

    assert built.returncode == 1
    assert "gone.md" in built.stderr + built.stdout
    assert "lost" in built.stderr + built.stdout
