"""What is said of the mistakes that people make first: what it is, and a value that would pass, or none."""

from __future__ import annotations

from pathlib import Path

import pytest

from training_platform.config.reading.finding import Finding
from training_platform.config.workspace import read_workspace

ENVIRONMENT = """\
config:
  training-platform:environment:
    project: example-a
    production: false
    filestore:
      homes: {location: us-central1-a, capacity_gib: 1024, tier: ZONAL}
    clusters:
      c:
        location: us-central1-a
        subnet: {nodes: 10.0.0.0/20, pods: 10.64.0.0/16, services: 10.1.0.0/20}
        node_pools:
          gpu: {machine_type: a2-highgpu-8g, capacity: on-demand, max_nodes: 2}
          tpu: {machine_type: ct5lp-hightpu-4t, topology: 4x4, slices: 2}
"""
TEAM = """\
config:
  training-platform:team:
    environment: dev
    name: vision
    members: [group:vision@example.com]
"""
BUDGET = "\n    billing_account: 01ABCD-23EF45-67AB89\n    budget: {a_month: 9, alert_at_percent: [50, 90, 90, 50]}"
INCLUDED = "leave it out where the machine type includes its GPUs"
SYSTEM = "'a3-highgpu-8g' is not a CPU-only machine type"


def findings(root: Path, old: str, new: str, team: str = "dev-vision") -> list[Finding]:
    """Read an environment and a team, in one of which a text stands for another."""
    assert old in ENVIRONMENT + TEAM
    (root / "stacks").mkdir()
    (root / "stacks" / "Pulumi.dev.yaml").write_text(ENVIRONMENT.replace(old, new))
    (root / "stacks" / f"Pulumi.{team}.yaml").write_text(TEAM.replace(old, new))
    return [each for stack in read_workspace(root).stacks.values() for each in stack.findings]


@pytest.mark.parametrize(
    ("old", "new", "said", "nearest"),
    [
        ("production: false", "production: no", "'no' is not true or false", "false"),
        ("production: false", "production: production", "'production' is not true or false", "true"),
        ("training-platform:environment", "training-platform:env", "is not a setting", "training-platform:environment"),
        ("{location: us-central1-a, capacity_gib: 1024, tier: ZONAL}", "", "has no value", None),
        ("homes: {location: us-central1-a, capacity_gib: 1024, tier: ZONAL}", "[a, {b: 1}]", "is a list and not", None),
        ("capacity_gib: 1024", "capacity_gib: {a: 1}", "is a mapping and not a whole number", None),
        ("capacity_gib: 1024", 'capacity_gib: "2048"', "'2048' is not a whole number", "2048"),
        ("topology: 4x4", "topology: 16", "16 is not a text", None),
        (
            "location: us-central1-a\n        subnet",
            "location: us-central1-a\n        version: 1.30\n        subnet",
            "1.30 is not a text",
            '"1.30"',
        ),
        ("a2-highgpu-8g", "a2-highgpu-3g", "'a2-highgpu-3g' is not a machine type", "a2-highgpu-4g"),
        ("on-demand", "preemptible", "'preemptible' is not one of", "spot"),
        ("ZONAL", "PREMIUM", "'PREMIUM' is not a Filestore tier", "BASIC_SSD"),
        (
            "group:vision@example.com",
            "vision@example.com",
            "'vision@example.com' is not in the right form",
            "group:vision@example.com",
        ),
        ("group:vision@example.com", "team vision", "'team vision' is not in the right form", None),
        ("gpu: {", "gpu: {accelerator: nvidia-tesla-a100, ", "'nvidia-tesla-a100' is not a GPU", INCLUDED),
        ("gpu: {", "gpu: {accelerator: nvidia-tesla-t4, ", "'nvidia-tesla-t4' is not a GPU", "t4"),
        ("gpu: {", "gpu: {accelerator: t4, ", "does not go with a2-highgpu-8g, which includes GPUs", "leave it out"),
        ("node_pools:", "system_pool: {machine_type: a3-highgpu-8g}\n        node_pools:", SYSTEM, "n2-standard-8"),
        ("gpu: {", "gpu: {zone: us-central1-d, ", "'us-central1-d' is not a zone", "us-central1-f"),
        ("gpu: {", "gpu: {<<: {max_nodes: 2}, ", "is not a plain key; merge keys", None),
        ("production: false", "production: false\n    production: true", "is given twice, first on line 4", None),
        ("name: vision", "name: true", "true is not a text", '"true"'),
        ("production: false", f"production: false{BUDGET}", "has 50, 90 twice", None),
        ("[group:vision@example.com]", "[]", "has 0 entries", None),
    ],
)
def test_a_mistake_is_one_finding_with_the_nearest_value(
    old: str, new: str, said: str, nearest: str | None, tmp_path: Path
) -> None:
    (finding,) = findings(tmp_path, old, new)

    assert finding.message.startswith(said)
    assert finding.nearest == nearest
    assert finding.position
    assert "None" not in str(finding)


def test_names_that_begin_like_it_are_said_first(tmp_path: Path) -> None:
    (finding,) = findings(tmp_path, "gpu: {", "gpu: {zone: us-central1-d, ")

    assert finding.allowed
    assert finding.allowed.startswith("us-central1-a, ")


def test_a_switch_in_a_text_s_place_is_still_read_differently_by_different_readers(tmp_path: Path) -> None:
    (finding,) = findings(tmp_path, "project: example-a", "project: example-a\n    labels: {a: no}")

    assert finding.rule == "stack-yaml"


@pytest.mark.parametrize(
    ("name", "nearest"),
    [("de_V", "de-v"), ("dev.eu", "dev-eu"), ("1dev", None), ("d" * 31, None), ("d" * 30, "")],
)
def test_an_environment_is_called_as_what_is_called_after_it_can_be(
    name: str, nearest: str | None, tmp_path: Path
) -> None:
    (tmp_path / "stacks").mkdir()
    (tmp_path / "stacks" / f"Pulumi.{name}.yaml").write_text(ENVIRONMENT)

    found = read_workspace(tmp_path).stacks[name].findings

    if nearest == "":
        assert found == ()
        return
    (finding,) = found
    assert finding.message.startswith(f"{name!r}, which the file's name says, cannot be an environment")
    assert finding.allowed == "lower-case letters, digits and dashes, a letter first, at most 30"
    assert finding.nearest == (f"Pulumi.{nearest}.yaml" if nearest else None)


@pytest.mark.parametrize("name", ["Pulumi.dev.yml", "pulumi.dev.yaml", "Pulumi.dev eu.yaml", "Pulumi.dev\n.yaml"])
def test_a_file_that_nobody_would_read_is_said(name: str, tmp_path: Path) -> None:
    (tmp_path / "stacks").mkdir()
    (tmp_path / "stacks" / name).write_text(ENVIRONMENT)
    (tmp_path / "stacks" / "exemptions.yaml").write_text("exemptions: []")

    (said,) = read_workspace(tmp_path).unreadable

    assert said.startswith(f"stacks/{name}: no stack is read from a file of this name. Allowed: Pulumi.<stack>.yaml")


def test_a_team_in_a_file_that_says_another_environment_is_a_finding(tmp_path: Path) -> None:
    (tmp_path / "stacks").mkdir()
    (tmp_path / "stacks" / "Pulumi.dev-eu.yaml").write_text(ENVIRONMENT)
    (tmp_path / "stacks" / "Pulumi.prod.yaml").write_text(ENVIRONMENT)
    (tmp_path / "stacks" / "Pulumi.dev.yaml").write_text(ENVIRONMENT)
    for name in ("prod-vision", "dev-eu-vision", "robotics", "dev-nlp"):
        (tmp_path / "stacks" / f"Pulumi.{name}.yaml").write_text(TEAM.replace("vision", name))

    stacks = read_workspace(tmp_path).stacks

    (finding,) = [each for stack in stacks.values() for each in stack.findings]
    assert (finding.stack, finding.path) == ("prod-vision", "environment")
    assert finding.message == "is 'dev', and the file's name says prod"


def test_notebooks_far_from_their_homes_are_found(tmp_path: Path) -> None:
    notebooks = "{filestore: homes, host: n.example.com, oauth_client_id: a, allowed_domain: example.com}"
    near = f"location: us-central1-a\n        notebooks: {notebooks}\n        subnet"
    (tmp_path / "near").mkdir()

    (finding,) = findings(tmp_path, "location: us-central1-a\n        subnet", near.replace("central1", "west4"))
    assert finding.path == "clusters.c.notebooks.filestore"
    assert finding.message == "'homes' is in us-central1-a: notebooks in us-west4 cannot mount it"
    assert finding.allowed == "an instance in us-west4, to be declared under filestore"
    assert findings(tmp_path / "near", "location: us-central1-a\n        subnet", near) == []
