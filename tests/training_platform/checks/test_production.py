"""Whether an environment is production is what its file says: for a full check, a fast one and the pack alike."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from training_platform.checks.run import run_check
from training_platform.checks.stacks import Options
from training_platform.config.reading.finding import Finding
from training_platform.rules import RULES

TODAY = date(2026, 11, 21)
ENVIRONMENT = """\
config:
  training-platform:environment:
    project: example-small
    deletion_protection: false
    clusters:
      c:
        location: us-central1-a
        subnet: {nodes: 10.0.0.0/20, pods: 10.64.0.0/16, services: 10.1.0.0/20}
"""
TEAM = """\
config:
  training-platform:team:
    environment: prod-eu
    name: vision
    members: [group:vision@example.com]
    buckets: {checkpoints: {location: us-central1}}
"""
PROTECTION = {rule.id for rule in RULES.values() if rule.ruleset == "protection"}
LINE = "    deletion_protection: false\n"


@pytest.fixture(params=[True, False], ids=["fast", "planned"])
def fast(request: pytest.FixtureRequest) -> bool:
    """Return whether a check plans nothing."""
    return bool(request.param)


def found(root: Path, said: str, *, fast: bool) -> dict[str, dict[str, Finding]]:
    """Return what the protection rules find by stack and rule, where the environment's file says ``said`` besides."""
    (root / "stacks").mkdir(exist_ok=True)
    for name in ("Pulumi.yaml", "__main__.py"):
        (root / name).write_bytes((Path(__file__).parents[3] / name).read_bytes())
    (root / "stacks" / "Pulumi.prod-eu.yaml").write_text(ENVIRONMENT.replace(LINE, LINE + said))
    (root / "stacks" / "Pulumi.prod-eu-vision.yaml").write_text(TEAM)
    report = run_check(root, Options(today=TODAY, fast=fast))
    return {
        stack.name: {each.rule: each for each in stack.findings if each.rule in PROTECTION} for stack in report.stacks
    }


def test_a_file_that_does_not_say_is_an_error_with_the_line_to_add(tmp_path: Path, *, fast: bool) -> None:
    by_stack = found(tmp_path, "", fast=fast)

    (finding,) = by_stack["prod-eu"].values()
    assert (finding.rule, finding.severity, finding.nearest) == ("production-said", "error", "production: true")
    assert "production: true or production: false" in str(finding.allowed)
    assert finding.file == "stacks/Pulumi.prod-eu.yaml"
    assert finding.position
    assert finding.position.line == 2
    assert by_stack["prod-eu-vision"] == {}  # said once, where the line goes


def test_production_of_any_name_refuses_deletion_and_so_do_its_teams(tmp_path: Path, *, fast: bool) -> None:
    by_stack = found(tmp_path, "    production: true\n", fast=fast)

    assert set(by_stack["prod-eu"]) == {"cluster-deletion-protection"}
    assert set(by_stack["prod-eu-vision"]) == {"bucket-force-destroy"}


def test_an_environment_that_is_not_production_may_be_deleted(tmp_path: Path, *, fast: bool) -> None:
    assert found(tmp_path, "    production: false\n", fast=fast) == {"prod-eu": {}, "prod-eu-vision": {}}
