"""Plans of dev and its team after edits of their stack files."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from tests.support.places import ORGANISATION, ROOT
from tests.support.plans import PlannedStack, planned_stacks
from training_platform.config.workspace import read_workspace


def plans_of_dev(root: Path, edits: Mapping[str, tuple[str, str]]) -> dict[str, PlannedStack]:
    """Plan dev and dev-vision by name, in a copy below ``root`` where a text of each file became another."""
    shutil.copytree(ORGANISATION / "stacks", root / "stacks")
    for name in ("Pulumi.yaml", "__main__.py"):
        shutil.copy(ROOT / name, root / name)
    for name, (before, after) in edits.items():
        file = root / "stacks" / f"Pulumi.{name}.yaml"
        text = file.read_text(encoding="utf-8")
        assert before in text
        file.write_text(text.replace(before, after, 1), encoding="utf-8")
    workspace = read_workspace(root)
    stacks = [workspace.stacks[name] for name in ("dev", "dev-vision")]
    assert not any(stack.findings for stack in stacks)
    return {stack.name: plan for stack, plan in planned_stacks(workspace, stacks)}
