"""A copy of the shipped stacks, and what a worker may answer."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.places import ORGANISATION, ROOT
from training_platform.checks.planning.outcome import Branch, Outcome, Resource
from training_platform.config.reading.finding import Finding, Position
from training_platform.resources.planned import UNKNOWN


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Return the root of a copy of the program and its stacks."""
    root = tmp_path / "copy"
    shutil.copytree(ORGANISATION / "stacks", root / "stacks")
    for name in ("Pulumi.yaml", "__main__.py"):
        shutil.copy(ROOT / name, root / name)
    return root


@pytest.fixture
def outcome() -> Outcome:
    """Return an outcome that has something of everything."""
    finding = Finding(
        rule="boot-disk-size", severity="error", message="is 9", stack="dev", position=Position(3, 7), path="a.b"
    )
    return Outcome(
        findings=(finding,),
        branches=(Branch(name="network", kinds={"Network": 1}),),
        resources=(
            Resource(
                name="network",
                kind="Network",
                custom=False,
                protected=False,
                children=(Resource(name="vpc", kind="Network", custom=True, protected=True),),
            ),
        ),
        outputs={"endpoint": UNKNOWN, "clusters": {"unknown": {"ip": UNKNOWN}, "names": ["a", UNKNOWN]}, "count": 3},
    )
