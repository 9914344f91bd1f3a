"""The step of ``.github/workflows/check.yml``, run unchanged with a ``make`` that only runs the command."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import yaml

from tests.support.places import ORGANISATION, ROOT

MAKE = """\
#!/bin/sh
[ "$1 $2" = "--silent .venv/.base" ] || exit 99
"""
COMMAND = """\
#!/bin/sh
cd {root}
exec {python} -m training_platform.cli.main "$@"
"""


def test_the_step_annotates_writes_the_summary_and_keeps_the_page(tmp_path: Path) -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "check.yml").read_text())
    step, show, keep = workflow["jobs"]["check"]["steps"][-3:]
    (tmp_path / "pipelines").mkdir()
    shutil.copy(ROOT / "pipelines" / "check", tmp_path / "pipelines")
    owners_current = "#!/bin/sh\nexit 0\n"
    programs = {"make": MAKE, ".venv/bin/python": owners_current, ".venv/bin/training-platform": COMMAND}
    for name, text in programs.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text.format(python=sys.executable, root=ORGANISATION))
        (tmp_path / name).chmod(0o755)
    summary = tmp_path / "summary.md"
    summary.touch()
    environment = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "GITHUB_STEP_SUMMARY": str(summary),
        "BASE": "HEAD",
        "REPORT": str(tmp_path / "report"),
        "TEXT": str(tmp_path / "check.txt"),
        "LINKS": "https://git.example.com/o/r/blob/abc/",
        "PYTHONPATH": str(ROOT),
    }

    done = subprocess.run(
        ["bash", "-e", "-c", step["run"] + show["run"]],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert re.search(r"^no stack is affected: clean$", done.stdout, re.MULTILINE)
    assert re.search(r"^### no stack is affected: clean$", summary.read_text(), re.MULTILINE)
    assert keep["with"]["path"] == step["env"]["REPORT"] == "${{ runner.temp }}/report"
    assert {path.name for path in (tmp_path / "report").iterdir()} == {"check.html", "check.sarif", "comment.md"}
    assert (tmp_path / "report" / "comment.md").read_text() == summary.read_text()
    assert workflow["permissions"] == {"contents": "read"}
