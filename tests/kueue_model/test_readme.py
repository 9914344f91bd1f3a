"""The README's commands and program, run as it says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner

from kueue_model.cli import kueue_model

ROOT = Path(__file__).parents[2]
README = (ROOT / "kueue_model" / "README.md").read_text(encoding="utf-8")
EXAMPLE = ROOT / "kueue_model" / "example"


def test_the_example_prints_the_waits_of_the_page(tmp_path: Path) -> None:
    words = [str(EXAMPLE / "half.yaml"), str(EXAMPLE / "jobs.csv"), "--against", str(EXAMPLE / "queues.yaml")]

    done = CliRunner().invoke(kueue_model, [*words, "--plots", str(tmp_path)])

    assert done.exit_code == 0, done.output
    shown = README.partition("```text\n")[2].partition("```")[0].splitlines()[1:]
    assert shown
    assert [line for line in shown if line not in done.output.splitlines()] == []
    assert (tmp_path / "waits-half-vision.svg").read_text() == (EXAMPLE / "waits-half-vision.svg").read_text()


def test_the_program_of_the_page_runs() -> None:
    program = README.partition("```python\n")[2].partition("```")[0]

    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)

    assert float(done.stdout) > 3600
