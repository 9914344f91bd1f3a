"""A plan of what an environment's project is given, and of one resource after it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from training_platform.checks.planning.recorder import Plan, record
from training_platform.resources.scope import Scope

Deploy = Callable[[Callable[[], object]], Plan]


@pytest.fixture
def scope() -> Scope:
    return Scope(
        environment="dev",
        team=None,
        project="example-train-dev",
        labels={"environment": "dev", "managed-by": "training-platform"},
        deletion_protection=False,
    )


@pytest.fixture
def deploy() -> Deploy:
    return lambda program: record(program, project="training-platform", stack_name="dev")
