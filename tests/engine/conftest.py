"""The stand-in for the Kubernetes provider, and workspaces in which the engine previews."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from local_google_cloud.kubernetes import serve
from tests.engine.workspace import MakeWorkspace, Workspace
from tests.support.places import ORGANISATION, ROOT
from tests.support.plans import planned_stacks
from training_platform.config.workspace import read_workspace
from training_platform.resources.stack_plan import plannable
from training_platform.resources.stack_resource import UNKNOWN

PLAUSIBLE = {
    "endpoint": "gke-0123456789.us-central1.gke.goog", "google_apis": "199.36.153.8/30", "ip": "10.128.0.2",
}  # fmt: skip
"""What a deployment would tell, by the name of the output."""


@pytest.fixture(scope="session")
def kubernetes() -> Iterator[int]:
    """The port of the stand-in; it validates custom objects by the upstream CRDs if they are beside this checkout."""
    schemas = ROOT.parent / "shared" / "schemas"
    with serve(crds=[schemas] if schemas.is_dir() else []) as port:
        yield port


@pytest.fixture(scope="session")
def workspace(tmp_path_factory: pytest.TempPathFactory, kubernetes: int) -> MakeWorkspace:
    """Make a workspace with the repository as it is; without stacks in its state."""
    return lambda name: Workspace(tmp_path_factory.mktemp(name), kubernetes)


@pytest.fixture(scope="session")
def deployed_outputs() -> dict[str, Mapping[str, Any]]:
    """What each stack exports, with plausible values where only a deployment would tell."""
    repository = read_workspace(ORGANISATION)
    plans = planned_stacks(repository, plannable(repository, repository.stacks))
    return {stack.name: _filled("outputs", plan.outputs) for stack, plan in plans}


def _filled(name: str, value: Any) -> Any:
    if value is UNKNOWN:
        return PLAUSIBLE.get(name, f"{name}-0123")
    if isinstance(value, Mapping):
        # Flavors are left out, as by a program that did not export them yet: what is plausible names none of a team's.
        told = {key: inner for key, inner in value.items() if key != "flavors" or inner is not UNKNOWN}
        return {key: _filled(key, inner) for key, inner in told.items()}
    return value
