"""What the program takes from Pulumi's configuration if environments of Pulumi ESC add to it."""

from __future__ import annotations

import json
import runpy
import shutil
from pathlib import Path

import pulumi
import pytest

from tests.support.places import ORGANISATION, ROOT
from tests.support.recording_monitor import record
from training_platform.config.workspace import read_workspace

NAME = "dev"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository whose stack has an environment of Pulumi ESC."""
    shutil.copytree(ORGANISATION / "stacks", tmp_path / "stacks")
    shutil.copy(ROOT / "__main__.py", tmp_path)
    file = tmp_path / "stacks" / f"Pulumi.{NAME}.yaml"
    file.write_text(f"environment: [platform/dev]\n{file.read_text(encoding='utf-8')}", encoding="utf-8")
    return tmp_path


def registered(root: Path, **further: str) -> int:
    """Return the number of registrations if the engine gives the file's configuration and ``further``."""
    stack = read_workspace(root).stacks[NAME]
    config = {key: json.dumps(value) for key, value in stack.config.items()} | further
    main = str(root / "__main__.py")
    return len(record(lambda: runpy.run_path(main, run_name="__main__"), NAME, config, root).registrations)


def test_settings_of_providers_may_come_from_an_environment(root: Path) -> None:
    assert registered(root, **{"gcp:region": "us-central1"}) > 100


def test_a_section_that_an_environment_changes_is_refused(root: Path) -> None:
    section = read_workspace(root).stacks[NAME].config["training-platform:environment"]
    changed = json.dumps({**section, "project": "example-elsewhere"})

    with pytest.raises(pulumi.RunError, match="environment differs from the file, because an environment"):
        registered(root, **{"training-platform:environment": changed})
