from __future__ import annotations

import pytest

from tests.parts.adopt.stacks import Repository, write_stacks


@pytest.fixture(scope="session")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """Return a function that makes a repository with stacks, by name."""
    return lambda stacks: write_stacks(tmp_path_factory.mktemp("repository"), stacks)
