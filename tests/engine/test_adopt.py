"""A stack comes up under the real engine, loses its state, and is adopted from what the local cloud holds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.engine.adoption import adopt, first_preview, throw_away_state
from tests.parts.sandbox.run.repositories import Sandbox, small
from training_platform.parts.sandbox.run.servers import announced, serving
from training_platform.parts.sandbox.run.session import read_stacks

pytestmark = [pytest.mark.engine, pytest.mark.timeout(900)]

STACK = """\
config:
  training-platform:environment:
    project: example-train-small
    production: false
    labels: {cost-center: lab}
    admins: [group:ml-platform@example.com]
    nat_addresses: 1
    alerts: {emails: [oncall@example.com]}
    images: {location: us-central1}
    filestore:
      homes: {location: us-central1-a, tier: ZONAL, capacity_gib: 1024, reserved_range: 10.12.32.0/26}
    clusters:
      main:
        location: us-central1
        subnet: {nodes: 10.12.0.0/20, pods: 10.66.0.0/16, services: 10.12.16.0/20}
        system_pool: {machine_type: e2-standard-8, min_nodes: 3, max_nodes: 6}
        node_pools:
          h100:
            machine_type: a3-highgpu-8g
            zone: us-central1-a
            capacity: flex-start
            max_run_hours: 24
            max_nodes: 2
          slices: {machine_type: ct5lp-hightpu-4t, zone: us-central1-a, topology: 4x4, slices: 2}
          shared: {machine_type: a2-highgpu-1g, zone: us-central1-a, sharing: {max_clients: 2}, taints: {a: {value: b}}}
"""


@dataclass
class Adopted:
    """The report of ``adopt`` on the stack, and what the first preview planned."""

    report: dict[str, Any]
    settled: list[str]
    steps: dict[str, list[str]]


@pytest.fixture(scope="module")
def brought_up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Sandbox, int]]:
    sandbox = small(tmp_path_factory.mktemp("adopt") / "repository", STACK)
    folder = sandbox.folder
    with (
        folder.locked(),
        serving(folder, read_stacks(folder.root, ()), durations={}) as servers,
        announced(folder, servers),
    ):
        ran = sandbox("up", "small")
        assert ran.returncode == 0, ran.stderr
        throw_away_state(sandbox)
        yield sandbox, servers.cloud


@pytest.fixture(scope="module", name="adopted")
def _adopted(brought_up: tuple[Sandbox, int]) -> Adopted:
    sandbox, port = brought_up
    ran = adopt(sandbox, port, "--format", "json")
    assert ran.exit_code == 0, (ran.output, ran.stderr, ran.exception)
    root = sandbox.folder.root
    names, steps = first_preview(sandbox, [root / "import-small.json"])
    report = json.loads(ran.stdout)
    assert report["unplanned"] == []
    return Adopted(report["stacks"][0], names, steps)


def test_an_adopted_stack_is_previewed_with_the_announced_changes_alone(adopted: Adopted) -> None:
    announced = {resource["name"] for resource in adopted.report["new"]}
    created = {name for name in adopted.steps["create"] if not name.startswith("pulumi:")}

    assert adopted.steps.keys() == {"same", "create"}, adopted.steps
    assert announced <= created
    assert (adopted.report["changes"], adopted.report["unsaid"]) == ([], [])
    assert len(adopted.steps["same"]) > adopted.report["imported"]  # and the components above them


def test_nothing_of_google_cloud_is_created_but_what_only_adds(adopted: Adopted) -> None:
    kinds = {resource["type"] for resource in adopted.report["new"] if resource["type"].startswith("gcp:")}

    assert kinds == {
        "gcp:artifactregistry/repositoryIamMember:RepositoryIamMember",
        "gcp:projects/iAMMember:IAMMember",
        "gcp:projects/serviceIdentity:ServiceIdentity",
    }


def test_the_state_is_put_right_where_an_import_could_not_know(adopted: Adopted) -> None:
    assert {"main-cluster", "main-h100-pool", "filestore-homes-instance"} <= set(adopted.settled)
