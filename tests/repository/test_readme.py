"""What the README shows is what one gets."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import yaml
from click.testing import CliRunner

from tests.places import ORGANISATION, ROOT
from training_platform.cli.main import app
from training_platform.config.model.stack import parse_stack
from training_platform.config.reading.source import parse_source

README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


def test_the_example_of_a_team_is_a_stack_file() -> None:
    (example,) = [text for kind, text in BLOCKS if kind == "yaml"]

    stack = parse_stack("prod-vision", parse_source(example, "README.md"))

    assert not stack.findings
    assert stack.team is not None
    assert yaml.safe_load(example)


def test_the_example_of_a_finding_is_what_the_command_prints(tmp_path: Path) -> None:
    (example,) = [text for _, text in BLOCKS if text.startswith("$ training-platform check --fast prod\n")]
    shutil.copytree(ORGANISATION / "stacks", tmp_path / "stacks")
    shutil.copy(ROOT / "Pulumi.yaml", tmp_path)
    prod = tmp_path / "stacks" / "Pulumi.prod.yaml"
    prod.write_text(prod.read_text(encoding="utf-8").replace("topology: 2x2x4", "topology: 2x3x4"), encoding="utf-8")

    result = CliRunner().invoke(app, ["check", "--fast", "prod", "--root", str(tmp_path)])

    assert result.exit_code == 1
    assert result.stdout.endswith(example.split("\n", 1)[1])


def test_the_readme_is_read_in_two_minutes() -> None:
    assert len(README.splitlines()) <= 90
