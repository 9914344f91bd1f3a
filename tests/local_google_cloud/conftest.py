from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from local_google_cloud.http.server import serve
from local_google_cloud.local_cloud import LocalCloud
from local_google_cloud.state.clock import Clock
from local_google_cloud.state.store import Store
from tests.local_google_cloud.client import APIS, OTHER, PROJECT, Client
from training_platform.parts.sandbox.google_rules import judged_cloud
from training_platform.quota.snapshot import read_snapshots

LIMITS = """
project: example-lab
taken: "2026-11-01"
limits:
  compute.googleapis.com:
    CPUS-per-project-region:
      - {limit: 64, region: us-central1}
    INSTANCES-per-project-region:
      - {limit: 10, region: us-central1}
    NETWORKS-per-project: [{limit: 15}]
    SUBNETWORKS-per-project: [{limit: 2}]
    SSD-TOTAL-GB-per-project-region:
      - {limit: 2000, region: us-central1}
  file.googleapis.com:
    HighScaleSSDStorageGibPerRegion:
      - {limit: 20480, region: us-central1}
    PremiumStorageGbPerRegion:
      - {limit: 4096, region: us-central1}
"""


@pytest.fixture
def snapshots(tmp_path: Path) -> Any:
    folder = tmp_path / "stacks" / "quotas"
    folder.mkdir(parents=True)
    (folder / "example-lab.yaml").write_text(LIMITS, encoding="utf-8")
    all_snapshots = read_snapshots(tmp_path, date(2026, 11, 2))
    assert all_snapshots.findings == ()
    return all_snapshots.by_project


@pytest.fixture
def time() -> list[float]:
    """The time of the clock, as a list of one number that tests change."""
    return [1_800_000_000.0]


@pytest.fixture
def make(snapshots: Any, time: list[float]) -> Callable[..., LocalCloud]:
    """Return a function that makes clouds; two with one file are one cloud before and after a restart."""

    def made(path: Path | None = None) -> LocalCloud:
        return judged_cloud([OTHER], snapshots, store=Store(path), clock=Clock(lambda: time[0]))

    return made


@pytest.fixture
def cloud(make: Callable[..., LocalCloud]) -> LocalCloud:
    return make()


@pytest.fixture
def ask(cloud: LocalCloud) -> Client:
    """Return a client of a cloud with the project's APIs enabled."""
    client = Client(cloud)
    client.enable(PROJECT, *APIS)
    return client


@pytest.fixture
def port(cloud: LocalCloud, ask: Client) -> Iterator[int]:  # the project of ``ask`` has its APIs
    """Return the port of a served cloud with the project's APIs enabled."""
    with serve(cloud) as bound:
        yield bound
