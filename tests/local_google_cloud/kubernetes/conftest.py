"""The kubernetes plugin, served in process, and a client that is configured for one cluster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from local_google_cloud.kubernetes.object_store import ObjectStore
from local_google_cloud.kubernetes.plugin import serve
from tests.local_google_cloud.kubernetes.client import Client, connect
from training_platform.rules.documents.definitions import CrdSchema, load_crds


@pytest.fixture(scope="session")
def schemas() -> Path:
    """The folder of upstream CRDs, which is not part of this repository."""
    folder = Path(__file__).parents[3].parent / "shared" / "schemas"
    if not folder.is_dir():
        pytest.skip("the upstream CRDs are not beside this checkout, in ../shared/schemas")
    return folder


@pytest.fixture(scope="session")
def crds(schemas: Path) -> dict[tuple[str, str, str], CrdSchema]:
    return load_crds(schemas)


@pytest.fixture
def store() -> ObjectStore:
    return ObjectStore()


@pytest.fixture
def cluster(store: ObjectStore) -> Iterator[Client]:
    """A provider for the cluster ``tests``, without CRDs, whose objects are in ``store``."""
    with serve(store=store) as port, connect(port) as client:
        client.configure(clusterIdentifier="tests")
        yield client


@pytest.fixture
def strict(schemas: Path, store: ObjectStore) -> Iterator[Client]:
    """The same, with the upstream CRDs."""
    with serve(store=store, crds=[schemas]) as port, connect(port) as client:
        client.configure(clusterIdentifier="tests")
        yield client
