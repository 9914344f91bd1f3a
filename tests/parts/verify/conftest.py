from __future__ import annotations

import pytest

from tests.parts.adopt.stacks import write_stacks
from tests.parts.verify.lab import HOME, TEAM, Lab, lab_of


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """Return the environment, planned and seeded once."""
    root = write_stacks(tmp_path_factory.mktemp("repository"), {"lab": HOME, "lab-vision": TEAM})
    return lab_of(root, ["lab", "lab-vision"])
