"""A repository with one small, protected environment, and the command that a person would type in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.parts.sandbox.run.repositories import Sandbox, small


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    """Create a repository with the stack ``small``, and return its sandbox."""
    return small(tmp_path / "repository")
