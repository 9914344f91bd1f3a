"""What the tests of Kueue share: clusters, a scope, the upstream CRDs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from training_platform.config.model.cluster import ClusterSpec
from training_platform.config.model.queues import Share
from training_platform.config.model.team import Team
from training_platform.config.pools import Flavor
from training_platform.resources import kueue
from training_platform.sandbox.kubernetes.definitions import CrdSchema, load_crds

Build = Callable[..., ClusterSpec]
Crds = dict[tuple[str, str, str], CrdSchema]
SUBNET = {"nodes": "10.0.0.0/20", "pods": "10.64.0.0/16", "services": "10.1.0.0/20"}


def cluster_queue(
    name: str, shares: Mapping[str, Share], flavors: Mapping[str, Flavor], **fields: object
) -> dict[str, Any]:
    """Return the ClusterQueue of a team with these shares in the cluster ``main``."""
    return kueue.cluster_queue(team_of(name, {"main": dict(shares)}, **fields), "main", flavors)


def team_of(name: str, shares: Mapping[str, Mapping[str, Share]], **fields: object) -> Team:
    """Return a team with these shares by cluster; ``fields`` are those of its stack file."""
    whole = {"environment": "prod", "name": name, "members": ("group:a@example.com",), "shares": shares, **fields}
    return Team.model_validate(whole)


@pytest.fixture
def cluster() -> Build:
    """Return a function that makes a cluster in one zone: ``cluster(gpus={"machine_type": ...})``."""

    def build(**pools: object) -> ClusterSpec:
        return ClusterSpec.model_validate({"location": "us-central1-a", "subnet": SUBNET, "node_pools": pools})

    return build


@pytest.fixture(scope="session")
def crds() -> Crds:
    """The upstream CRDs, which are not part of this repository."""
    folder = Path(__file__).parents[3].parent / "shared" / "schemas" / "kueue"
    if not folder.is_dir():
        pytest.skip("the upstream CRDs are not beside this checkout, in ../shared/schemas")
    return load_crds(folder)
