"""Scopes, with and without deletion protection, and a plan of a program."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from training_platform.checks.planning.recorder import Plan, record
from training_platform.resources.scope import Scope

Deploy = Callable[[Callable[[], object]], Plan]


@pytest.fixture(params=[False, True], ids=["dev", "protected"])
def scope(request: pytest.FixtureRequest) -> Scope:
    return Scope(
        environment="dev",
        team=None,
        project="example-train-dev",
        labels={"environment": "dev", "managed-by": "training-platform"},
        deletion_protection=request.param,
    )


@pytest.fixture
def deploy() -> Deploy:
    return lambda program: record(program, project="training-platform", stack_name="dev")
