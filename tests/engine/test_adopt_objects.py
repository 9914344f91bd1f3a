"""An environment and its team lose their states and are adopted, with the objects in real API servers.

Objects reach those by the stand-in for the Kubernetes provider, which imports by the ids that the released one takes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.engine.adoption import adopt, first_preview, rows_of, throw_away_state
from tests.engine.fleet import SCHEMAS
from tests.kube.sandboxes import api_folder, serving_with_api_servers
from tests.parts.sandbox.run.repositories import Sandbox, small
from training_platform.parts.sandbox.run.servers import announced
from training_platform.parts.sandbox.run.session import read_stacks

pytestmark = [
    pytest.mark.engine,
    pytest.mark.kube,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not SCHEMAS.is_dir(), reason="the upstream CRDs are not beside this checkout"),
]

CLUSTER = "projects/example-train-small/locations/us-central1/clusters/small-main"
STACK = """\
config:
  training-platform:environment:
    project: example-train-small
    production: false
    cohorts:
      research: {weight: 2}
    clusters:
      main:
        location: us-central1
        subnet: {nodes: 10.12.0.0/20, pods: 10.66.0.0/16, services: 10.12.16.0/20}
        node_pools:
          a100: {machine_type: a2-highgpu-8g, zone: us-central1-a, max_nodes: 2}
"""
TEAM = """\
config:
  training-platform:team:
    environment: small
    name: vision
    members: [group:vision@example.com]
    shares:
      main:
        a100-40: {nominal_quota: 8, borrowing_limit: 8}
    cohort: research
    secrets: [hugging-face]
    buckets:
      data: {location: us-central1}
    vertex:
      tensorboards: [us-central1]
"""
STACKS = {"small": STACK, "small-vision": TEAM}
Steps = dict[str, list[str]]


@dataclass
class Adopted:
    """The reports of ``adopt`` by stack, what it wrote, and what each first preview planned."""

    reports: dict[str, dict[str, Any]]
    imports: dict[str, list[dict[str, Any]]]
    steps: dict[str, Steps]


def kubeconfig(sandbox: Sandbox) -> Path:
    """Write a kubeconfig whose context is called as ``gcloud container clusters get-credentials`` calls it."""
    config = yaml.safe_load((api_folder(sandbox.folder) / CLUSTER / "kubeconfig").read_text())
    _, project, _, location, _, name = CLUSTER.split("/")
    config["contexts"][0]["name"] = config["current-context"] = f"gke_{project}_{location}_{name}"
    path = sandbox.folder.root / "clusters.yaml"
    path.write_text(yaml.safe_dump(config))
    return path


@pytest.fixture(scope="module", name="adopted")
def _adopted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Adopted]:
    sandbox = small(tmp_path_factory.mktemp("adopt") / "repository", STACK)
    folder = sandbox.folder
    root = sandbox.folder.root
    (root / "stacks" / "Pulumi.small-vision.yaml").write_text(TEAM)
    with (
        folder.locked(),
        serving_with_api_servers(folder, read_stacks(root, ()), [SCHEMAS]) as servers,
        announced(folder, servers),
    ):
        sandbox.steps("up", "small-vision")
        for stack in STACKS:
            throw_away_state(sandbox, stack)
        ran = adopt(sandbox, servers.cloud, "--kubeconfig", str(kubeconfig(sandbox)), "--format", "json")
        assert ran.exit_code == 0, (ran.output, ran.stderr, ran.exception)
        files = {stack: [root / f"import-{stack}.json", root / f"import-{stack}-objects.json"] for stack in STACKS}
        _, home = first_preview(sandbox, files["small"])
        sandbox.steps("up", "small")  # which exports what the team reads
        _, team = first_preview(sandbox, files["small-vision"], "small-vision")
        yield Adopted(
            {stack_report["stack"]: stack_report for stack_report in json.loads(ran.stdout)["stacks"]},
            {stack: rows_of(stack_files) for stack, stack_files in files.items()},
            {"small": home, "small-vision": team},
        )


@pytest.mark.parametrize("stack", STACKS)
def test_nothing_changes_but_what_was_announced(stack: str, adopted: Adopted) -> None:
    report = adopted.reports[stack]
    steps = adopted.steps[stack]
    created = {name for name in steps.get("create", ()) if not name.startswith("pulumi:")}

    assert (report["changes"], report["unsaid"]) == ([], [])
    assert steps.keys() <= {"same", "create", "read"}, steps
    assert {resource["name"] for resource in report["new"]} <= created
    assert len(steps["same"]) > report["imported"]


@pytest.mark.parametrize("stack", STACKS)
def test_every_object_and_every_release_is_imported(stack: str, adopted: Adopted) -> None:
    assert [resource for resource in adopted.reports[stack]["new"] if resource["type"].startswith("kubernetes:")] == []


def test_objects_have_the_ids_that_the_provider_takes(adopted: Adopted) -> None:
    every = [row for rows in adopted.imports.values() for row in rows]
    ids = {(row["type"].rpartition(":")[2], row["id"]) for row in every if row["type"].startswith("kubernetes:")}

    assert ids >= {
        ("ClusterQueue", "vision"), ("Cohort", "research"), ("LocalQueue", "vision/vision"), ("Namespace", "vision"),
        ("Release", "kueue-system/kueue"), ("ResourceFlavor", "a100-40"), ("ResourceQuota", "vision/team"),
        ("WorkloadPriorityClass", "high"),
    }  # fmt: skip
