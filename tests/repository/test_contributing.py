"""The page for contributors: its commands print the files that it names, and its rule is a rule."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.places import ORGANISATION, ROOT

PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (.+)\n((?:(?!^## ).*\n?)*)", PAGE, re.MULTILINE))
LISTED = {name: re.findall(r"^\| `([^`]+)` \|", text, re.MULTILINE) for name, text in SECTIONS.items()}
MOST = {
    "An option of a node pool": 4,
    "A kind of resource": 7,
    "A field of a Vertex AI job": 2,
    "A report format": 2,
}


def block(section: str, kind: str = "sh") -> str:
    (text,) = re.findall(rf"^```{kind}\n(.*?)^```$", SECTIONS[section], re.MULTILINE | re.DOTALL)
    return str(text)


@pytest.mark.parametrize("section", MOST)
def test_a_worked_example_names_every_file_that_it_touches(section: str) -> None:
    command = shlex.split(block(section))
    assert command[:2] == ["git", "grep"]

    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)

    assert sorted(LISTED[section]) == sorted(done.stdout.split())
    assert len(LISTED[section]) <= MOST[section]


@pytest.mark.timeout(120)
def test_the_rule_of_the_page_is_found_by_a_check_without_another_change(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "training_platform", tmp_path / "training_platform", ignore=shutil.ignore_patterns("*.pyc"))
    (file,) = re.findall(r"at the end of\s+`([^`]+)`", SECTIONS["A rule"])
    with (tmp_path / file).open("a", encoding="utf-8") as rules:
        rules.write(f"\n\n{block('A rule', 'python')}")
    script = "import sys; from training_platform.cli.main import main; sys.argv[0] = 'training-platform'; main()"
    arguments = ["check", "prod", "--format", "json", "--root", str(ORGANISATION)]

    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stdout + done.stderr
    findings = [finding for finding in json.loads(done.stdout)["findings"] if finding["rule"] == "spot-in-production"]
    text = (ORGANISATION / "stacks" / "Pulumi.prod.yaml").read_text(encoding="utf-8").splitlines()
    assert findings
    assert {text[finding["line"] - 1].strip() for finding in findings} == {"capacity: spot"}
