"""A slip in names, queues or notebooks, as ``check --fast`` tells it: at its line, with what is allowed and the fix."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from pathlib import Path

import pytest

from training_platform.checks.run import run_check
from training_platform.checks.stacks import Options
from training_platform.config.reading.finding import Finding

ENVIRONMENT = """\
config:
  training-platform:environment:
    project: example-train
    production: false
    google_groups_domain: example.com
    filestore: {homes: {location: us-central1-a, tier: ZONAL, capacity_gib: 1024}}
    clusters:
      main:
        location: us-central1-a
        subnet: {nodes: 10.0.0.0/20, pods: 10.64.0.0/16, services: 10.1.0.0/20}
        notebooks:
          filestore: homes
          oauth_client_id: notebooks.apps.example.com
          allowed_domain: example.com
          pools: [desks]
        node_pools:
          train: {machine_type: a3-highgpu-8g, capacity: reservation, reservation: h100, max_nodes: 4}
          spot: {machine_type: a3-highgpu-8g, capacity: spot, max_nodes: 2}
          desks: {machine_type: a2-highgpu-1g, max_nodes: 4}
"""
TEAM = """\
config:
  training-platform:team:
    environment: laboratory
    name: vision
    members: [group:vision@example.com]
    shares:
      main:
        h100-reservation: {nominal_quota: 16}
        h100-spot: {nominal_quota: 16}
    fallback:
      order:
        main: [h100-spot]
"""
FILES = {
    "laboratory": ENVIRONMENT,
    "laboratory-nlp": TEAM.replace("vision", "nlp").replace("quota: 16", "quota: 0"),
    "laboratory-vision": TEAM,
}


@dataclass(frozen=True)
class Slip:
    """A text of a stack's file and what stands there instead; the finding is at the line where that begins."""

    stack: str
    old: str
    new: str
    rule: str
    said: str
    allowed: str
    nearest: str | None = None


SLIPS = {
    "a namespace of another team": Slip(
        "laboratory-vision", "name: vision", "name: nlp", "stack-model", "'nlp' is also the name of the team at",
        "one stack per team",
    ),
    "a namespace of the cluster's own": Slip(
        "laboratory-vision", "name: vision", "name: kueue-system", "stack-model",
        "'kueue-system' is a namespace of the cluster's own software", "a name other than", "team-kueue-system",
    ),
    "a beginning that is Google's": Slip(
        "laboratory-vision", "name: vision", "name: gke-vision", "stack-model",
        "'gke-vision' is a namespace of the cluster's own software", "a name other than", "team-gke-vision",
    ),
    "a cluster's name with the environment's before it": Slip(
        "laboratory", " main:", f" {'m' * 30}:", "cluster-name", "has a name of 41 characters", "at most 40",
        f"laboratory-{'m' * 29}",
    ),
    "an order with a flavor that no pool is of": Slip(
        "laboratory-vision", "main: [h100-spot]", "main: [h100-sport]", "stack-model",
        "'h100-sport' is not a flavor that the team has a share of", "h100-reservation, h100-spot", "h100-spot",
    ),
    "a profile of a pool that a team was promised": Slip(
        "laboratory", "[desks]", "[spot]", "notebook-pool-promised",
        "spot is of h100-spot, of which teams were promised 16", "a pool that no team was promised",
    ),
}  # fmt: skip


def found(root: Path, files: dict[str, str], stack: str) -> list[Finding]:
    (root / "stacks").mkdir()
    for name, text in files.items():
        (root / "stacks" / f"Pulumi.{name}.yaml").write_text(text, encoding="utf-8")
    report = run_check(root, Options(today=date(2026, 11, 22), fast=True))
    file = f"stacks/Pulumi.{stack}.yaml"
    errors = (each for each in report.all_findings() if each.severity == "error" and each.file == file)
    return [each for each in errors if each.rule != "quota-no-snapshot"]  # limits are another matter


@pytest.mark.parametrize("stack", FILES)
def test_files_without_a_slip_are_taken(tmp_path: Path, stack: str) -> None:
    assert found(tmp_path, FILES, stack) == []


@pytest.mark.parametrize("case", SLIPS)
def test_a_slip_is_found_at_its_line_with_the_fix(case: str, tmp_path: Path) -> None:
    slip = SLIPS[case]
    before, _, after = FILES[slip.stack].partition(slip.old)
    assert after

    (finding,) = found(tmp_path, {**FILES, slip.stack: before + slip.new + after}, slip.stack)

    assert finding.position is not None
    assert finding.position.line == before.count("\n") + 1
    assert finding.rule == slip.rule
    assert slip.said in finding.message
    assert (finding.allowed or "").startswith(slip.allowed)
    assert finding.nearest == slip.nearest


def test_a_cluster_s_name_at_its_limit_is_taken(tmp_path: Path) -> None:
    assert found(tmp_path, {"laboratory": ENVIRONMENT.replace(" main:", f" {'m' * 29}:")}, "laboratory") == []
