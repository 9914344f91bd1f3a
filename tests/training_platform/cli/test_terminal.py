"""Sentences fold between words at the width of a terminal, and stay whole lines in a pipe."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support.places import ORGANISATION
from training_platform.cli.main import app
from training_platform.cli.shared import folded

COLUMNS = 60
WRONG = "environment: prod\nimage: a:1\ncommand: [a]\ntime: 4\ngke: {cluster: us-central1, flavor: a100-40}\n"


def on_a_terminal(*arguments: str) -> list[str]:
    """Return the lines that a command writes on a terminal of 60 columns."""
    ours, theirs = os.openpty()
    termios.tcsetwinsize(theirs, (50, COLUMNS))
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    environment |= {"NO_COLOR": "1", "TERM": "xterm"}
    command = [sys.executable, "-m", "training_platform.cli.main", *arguments]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, env=environment):
        os.close(theirs)
        written = b""
        try:
            while part := os.read(ours, 65_536):
                written += part
        except OSError:  # how Linux says that the other end is closed
            pass
    os.close(ours)
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", written.decode()).splitlines()


@pytest.fixture
def job(tmp_path: Path) -> Path:
    path = tmp_path / "jobs" / "vision" / "wrong.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(WRONG, encoding="utf-8")
    (tmp_path / "Pulumi.yaml").write_text("name: training-platform\nruntime: python\n", encoding="utf-8")
    shutil.copytree(ORGANISATION / "stacks", tmp_path / "stacks")
    return path


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("check", "prod-vision"), "time: is not a field of this section [job-model]"),
        (("job", "check"), "Nearest: gke.max_run_hours or vertex.timeout_hours"),
        (("init", "pool", "prod"), "--machine-type is missing: Machine type, or accelerator such as h100 or tpu-v5e."),
        (("submit", "jobs/vision/wrong.yaml"), "No such command 'submit'. Did you mean 'job submit'?"),
        (("check", "prod-visoin"), "training-platform: There is no stack prod-visoin. There are:"),
        (("check", "stacks/Pulumi.prod.yaml"), "Nearest: prod."),
        (("check", "production"), "Nearest: prod."),
    ],
)
def test_sentences_are_folded_between_words(job: Path, arguments: tuple[str, ...], sentence: str) -> None:
    lines = on_a_terminal(*arguments, "--root", str(job.parents[2]))

    assert [line for line in lines if len(line) > COLUMNS and " " in line.strip()] == []
    assert sentence in " ".join(" ".join(lines).split())


def test_a_folded_line_is_below_its_own_indentation_and_no_word_is_broken() -> None:
    text = "error here\n  Allowed: one, two, three. Nearest: us-docker.pkg.dev/example/images"

    assert folded(text, 24).splitlines() == [
        "error here",
        "  Allowed: one, two,",
        "  three. Nearest:",
        "  us-docker.pkg.dev/example/images",
    ]


def test_a_plan_fits_80_columns_and_names_each_line_of_the_stack_file() -> None:
    done = CliRunner().invoke(app, ["plan", "prod", "--root", str(ORGANISATION)])

    first, *lines = done.stdout.splitlines()
    assert first.endswith(" resources, each with its line in stacks/Pulumi.prod.yaml")
    assert [line for line in lines if len(line) > 80 and len(line.split()) > 1] == []
    assert any(re.fullmatch(r" +us-west4-cluster  Cluster  :\d+", line) for line in lines)
