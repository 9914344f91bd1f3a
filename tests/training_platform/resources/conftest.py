"""Clusters in one zone, hubs of notebooks, and the upstream CRDs of Kueue."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.places import ROOT
from tests.support.stack_files import RANGES
from training_platform.config.model.cluster import ClusterSpec
from training_platform.config.model.workloads import Notebooks
from training_platform.rules.documents.definitions import CrdSchema, load_crds


@pytest.fixture
def cluster() -> Callable[..., ClusterSpec]:
    """Return a function that makes a cluster in one zone: ``cluster(gpus={"machine_type": ...})``."""

    def build(**pools: object) -> ClusterSpec:
        return ClusterSpec.model_validate({"location": "us-central1-a", "subnet": RANGES, "node_pools": pools})

    return build


@pytest.fixture
def notebooks() -> Callable[..., Notebooks]:
    """Return a function that makes the section of a stack file."""

    def build(**changes: object) -> Notebooks:
        section = {
            "filestore": "homes",
            "host": "notebooks.example.com",
            "oauth_client_id": "notebooks.apps.example.com",
            "allowed_domain": "example.com",
            "pools": ("host", "slices", "gpus", "cpu", "pool"),
        }
        return Notebooks.model_validate({**section, **changes})

    return build


@pytest.fixture(scope="session")
def crds() -> dict[tuple[str, str, str], CrdSchema]:
    """The upstream CRDs, which are not part of this repository."""
    folder = ROOT.parent / "shared" / "schemas" / "kueue"
    if not folder.is_dir():
        pytest.skip("the upstream CRDs are not beside this checkout, in ../shared/schemas")
    return load_crds(folder)
