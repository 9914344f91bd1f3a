"""The pipeline in ``.github/workflows/check.yml``: its step run as it stands, by a make that only runs the command."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[4]
MAKE = """\
#!/bin/sh
[ "$1 $2" = "--silent check" ] || exit 99
exec {python} -m training_platform.cli.main check --fast ${{3#ARGS=}}
"""


def test_the_step_annotates_writes_the_summary_and_keeps_the_page(tmp_path: Path) -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "check.yml").read_text())
    step, keep = workflow["jobs"]["check"]["steps"][-2:]
    make = tmp_path / "make"
    make.write_text(MAKE.format(python=sys.executable))
    make.chmod(0o755)
    summary = tmp_path / "summary.md"
    summary.touch()
    environment = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "GITHUB_STEP_SUMMARY": str(summary),
        "BASE": "HEAD",
        "REPORT": str(tmp_path / "report"),
        "LINKS": "https://git.example.com/o/r/blob/abc/",
        "PYTHONPATH": str(ROOT),
    }

    done = subprocess.run(
        ["bash", "-e", "-c", step["run"]], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    assert re.search(r"^\d stacks: clean$", done.stdout, re.MULTILINE)
    assert re.search(r"^### \d stacks: clean$", summary.read_text(), re.MULTILINE)
    assert keep["with"]["path"] == step["env"]["REPORT"] == "${{ runner.temp }}/report"
    assert {path.name for path in (tmp_path / "report").iterdir()} == {"check.html", "check.sarif", "comment.md"}
    assert (tmp_path / "report" / "comment.md").read_text() == summary.read_text()
    assert workflow["permissions"] == {"contents": "read"}
