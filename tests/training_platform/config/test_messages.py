"""Messages about mistakes: each at its line, with a value that would pass if one exists, and all at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from training_platform.config.model.stack import parse_stack
from training_platform.config.reading.finding import Finding
from training_platform.config.reading.source import parse_source
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
MANY_LABELS = ", ".join(f"k{number}: v" for number in range(65))
BUDGET = "\n    billing_account: 01ABCD-23EF45-67AB89\n    budget: {a_month: 9, alert_at_percent: [50, 90, 90, 50]}"
INCLUDED = "leave it out if the machine type includes its GPUs"
BELOW_POOLS = "move the line below node_pools, and indent it and the lines below it by 2 more spaces"
SYSTEM = "'a3-highgpu-8g' is not a CPU-only machine type"


def findings(root: Path, old: str, new: str, team: str = "dev-vision") -> list[Finding]:
    """Read an environment and a team with one text replaced, and return their findings."""
    assert old in ENVIRONMENT + TEAM
    (root / "stacks").mkdir()
    (root / "stacks" / "Pulumi.dev.yaml").write_text(ENVIRONMENT.replace(old, new))
    (root / "stacks" / f"Pulumi.{team}.yaml").write_text(TEAM.replace(old, new))
    return [finding for stack in read_workspace(root).stacks.values() for finding in stack.findings]


@pytest.mark.parametrize(
    ("old", "new", "message", "nearest"),
    [
        ("production: false", "production: no", "'no' is not true or false", "false"),
        ("production: false", "production: production", "'production' is not true or false", "true"),
        ("training-platform:environment", "training-platform:env", "is not a setting", "training-platform:environment"),
        ("{location: us-central1-a, capacity_gib: 1024, tier: ZONAL}", "", "has no value", None),
        ("homes: {location: us-central1-a, capacity_gib: 1024, tier: ZONAL}", "[a, {b: 1}]", "is a list and not", None),
        ("capacity_gib: 1024", "capacity_gib: {a: 1}", "is a mapping and not an integer", None),
        ("capacity_gib: 1024", 'capacity_gib: "2048"', "'2048' is not an integer", "2048"),
        ("topology: 4x4", "topology: 16", "16 is not a string", None),
        (
            "location: us-central1-a\n        subnet",
            "location: us-central1-a\n        version: 1.30\n        subnet",
            "1.30 is not a string",
            '"1.30"',
        ),
        ("a2-highgpu-8g", "a2-highgpu-3g", "'a2-highgpu-3g' is not a machine type", "a2-highgpu-4g"),
        ("on-demand", "preemptible", "'preemptible' is not one of", "spot"),
        ("on-demand", "dws", "'dws' is not one of", "flex-start"),
        ("ZONAL", "PREMIUM", "'PREMIUM' is not a Filestore tier", "BASIC_SSD"),
        (
            "group:vision@example.com",
            "vision@example.com",
            "'vision@example.com' is not in the right form",
            "group:vision@example.com",
        ),
        ("group:vision@example.com", "team vision", "'team vision' is not in the right form", None),
        (
            "gpu: {",
            f"{'g' * 31}: {{",
            f"'{'g' * 31}' has 31 characters",
            None,
        ),
        (
            "capacity: on-demand",
            "capacity: reservation, reservation: projects/example-other/reservations/own",
            "'projects/example-other/reservations/own' is a full resource name",
            "{name: own, project: example-other}",
        ),
        (
            "capacity: on-demand",
            "capacity: reservation, reservation: projects/p-other/reservations/own/reservationBlocks/b1",
            "'projects/p-other/reservations/own/reservationBlocks/b1' is a full resource name",
            "{name: own, project: p-other, block: b1}",
        ),
        (
            "capacity: on-demand",
            "capacity: reservation, reservation: own/reservationBlocks/b1/reservationSubBlocks/s1",
            "'own/reservationBlocks/b1/reservationSubBlocks/s1' is a full resource name",
            "{name: own, block: b1, sub_block: s1}",
        ),
        ("gpu: {", "gpu: {accelerator: nvidia-tesla-a100, ", "'nvidia-tesla-a100' is not a GPU", INCLUDED),
        ("gpu: {", "gpu: {accelerator: nvidia-tesla-t4, ", "'nvidia-tesla-t4' is not a GPU", "t4"),
        (
            "gpu: {",
            "gpu: {accelerator: t4, ",
            "is not compatible with a2-highgpu-8g, which includes GPUs",
            "leave it out",
        ),
        ("node_pools:", "system_pool: {machine_type: a3-highgpu-8g}\n        node_pools:", SYSTEM, "n2-standard-8"),
        ("gpu: {", "gpu: {zone: us-central1-d, ", "'us-central1-d' is not a zone", "us-central1-a"),
        ("gpu: {", "gpu: {<<: {max_nodes: 2}, ", "is not a plain key; merge keys", None),
        ("production: false", "production: false\n    production: true", "is given twice, first on line 4", None),
        ("node_pools:", "one: {machine_type: a2-highgpu-8g}\n        node_pools:", "is not a field", BELOW_POOLS),
        ("name: vision", "name: true", "true is not a string", '"true"'),
        ("production: false", f"production: false{BUDGET}", "has 50, 90 twice", None),
        ("[group:vision@example.com]", "[]", "has 0 entries", None),
        ("production: false", f"production: false\n    labels: {{{MANY_LABELS}}}", "has 65 entries", None),
    ],
)
def test_a_mistake_is_one_finding_with_the_nearest_value(
    old: str, new: str, message: str, nearest: str | None, tmp_path: Path
) -> None:
    (finding,) = findings(tmp_path, old, new)

    assert finding.message.startswith(message)
    assert finding.nearest == nearest
    assert finding.position
    assert "None" not in str(finding)


def test_a_missing_field_is_described(tmp_path: Path) -> None:
    (finding,) = findings(tmp_path, "    project: example-a\n", "")

    assert finding.allowed
    assert finding.allowed.startswith("the field with its value: ")


def test_names_with_the_same_beginning_come_first(tmp_path: Path) -> None:
    (finding,) = findings(tmp_path, "gpu: {", "gpu: {zone: us-central1-d, ")

    assert finding.allowed
    assert finding.allowed.startswith("us-central1-a, ")


def test_a_boolean_in_place_of_a_string_is_still_read_differently_by_readers(tmp_path: Path) -> None:
    (finding,) = findings(tmp_path, "project: example-a", "project: example-a\n    labels: {a: no}")

    assert finding.rule == "stack-yaml"


@pytest.mark.parametrize(
    ("name", "nearest"),
    [("de_V", "de-v"), ("dev.eu", "dev-eu"), ("1dev", None), ("d" * 31, None), ("d" * 30, "")],
)
def test_an_environments_name_must_suit_everything_named_after_it(
    name: str, nearest: str | None, tmp_path: Path
) -> None:
    (tmp_path / "stacks").mkdir()
    (tmp_path / "stacks" / f"Pulumi.{name}.yaml").write_text(ENVIRONMENT)

    findings = read_workspace(tmp_path).stacks[name].findings

    if nearest == "":
        assert findings == ()
        return
    (finding,) = findings
    assert finding.message.startswith(f"{name!r} in the file's name cannot be the name of an environment")
    assert finding.allowed == "at most 30 lower-case letters, digits and dashes, starting with a letter"
    assert finding.nearest == (f"Pulumi.{nearest}.yaml" if nearest else None)


@pytest.mark.parametrize("name", ["Pulumi.dev.yml", "pulumi.dev.yaml", "Pulumi.dev eu.yaml", "Pulumi.dev\n.yaml"])
def test_a_file_that_nobody_would_read_is_reported(name: str, tmp_path: Path) -> None:
    (tmp_path / "stacks").mkdir()
    (tmp_path / "stacks" / name).write_text(ENVIRONMENT)
    (tmp_path / "stacks" / "exemptions.yaml").write_text("exemptions: []")

    (message,) = read_workspace(tmp_path).unreadable.values()

    assert message.startswith(
        f"stacks/{name}: a file of this name is not read as a stack. Allowed: Pulumi.<stack>.yaml"
    )


def test_a_folder_or_a_broken_link_of_a_files_name_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "stacks" / "dev-vision.yaml").mkdir(parents=True)
    (tmp_path / "stacks" / "lost.yaml").symlink_to(tmp_path / "nowhere")

    assert read_workspace(tmp_path).unreadable == {}


def test_a_team_in_a_file_that_says_another_environment_is_a_finding(tmp_path: Path) -> None:
    (tmp_path / "stacks").mkdir()
    (tmp_path / "stacks" / "Pulumi.dev-eu.yaml").write_text(ENVIRONMENT)
    (tmp_path / "stacks" / "Pulumi.prod.yaml").write_text(ENVIRONMENT)
    (tmp_path / "stacks" / "Pulumi.dev.yaml").write_text(ENVIRONMENT)
    for name in ("prod-vision", "dev-eu-vision", "robotics", "dev-nlp"):
        (tmp_path / "stacks" / f"Pulumi.{name}.yaml").write_text(TEAM.replace("vision", name))

    stacks = read_workspace(tmp_path).stacks

    (finding,) = [finding for stack in stacks.values() for finding in stack.findings]
    assert (finding.stack, finding.path) == ("prod-vision", "environment")
    assert finding.message == "is 'dev', but the file's name contains prod"


def test_notebooks_far_from_their_homes_are_found(tmp_path: Path) -> None:
    notebooks = "{filestore: homes, host: n.example.com, oauth_client_id: a, allowed_domain: example.com}"
    near = f"location: us-central1-a\n        notebooks: {notebooks}\n        subnet"
    (tmp_path / "near").mkdir()

    (finding,) = findings(tmp_path, "location: us-central1-a\n        subnet", near.replace("central1", "west4"))
    assert finding.path == "clusters.c.notebooks.filestore"
    assert finding.message == "'homes' is in us-central1-a: notebooks in us-west4 cannot mount it"
    assert finding.allowed == "an instance in us-west4, which you declare under filestore"
    assert findings(tmp_path / "near", "location: us-central1-a\n        subnet", near) == []


FILE = """\
config:
  training-platform:environment:
    project: example-train
    clusters:
      west:
        location: us-west4
        subnet: {nodes: 10.10.0.0/20, pods: 10.64.0.0/16, services: 10.10.16.0/20}
        node_pools:
          train:
"""
FIRST_LINE = FILE.count("\n") + 1
V5E = ["machine_type: ct5lp-hightpu-4t", "zone: us-west4-a"]
SLICE = [*V5E, "topology: 4x8"]
A100 = ["machine_type: a2-highgpu-8g", "zone: us-west4-b"]
N1 = ["machine_type: n1-standard-8", "zone: us-west4-a"]


def findings_of(lines: list[str]) -> list[Finding]:
    text = FILE + "".join(f"            {line}\n" for line in lines)
    return list(parse_stack("dev", parse_source(text, "stacks/Pulumi.dev.yaml")).findings)


CASES = {
    "VMs of TPUs": (SLICE, "max_nodes: 8", "topology, slices and min_slices", "slices: 1"),
    "VMs of several slices": (SLICE, "max_nodes: 9", "topology, slices and min_slices", "slices: 2"),
    "least VMs of TPUs": (SLICE, "min_nodes: 0", "topology, slices and min_slices", "min_slices: 0"),
    "a driver of TPUs": (SLICE, "driver: latest", "the field left out", "leave it out"),
    "compact TPUs": (SLICE, "compact: true", "the field left out", "leave it out"),
    "slices of GPUs": (A100, "slices: 3", "min_nodes and max_nodes", "max_nodes: 3"),
    "least slices of GPUs": (A100, "min_slices: 1", "min_nodes and max_nodes", "min_nodes: 1"),
    "a topology of GPUs": (A100, "topology: 2x2", "min_nodes and max_nodes", "leave it out"),
    "T4 on A100": (A100, "accelerator: t4", "the field left out", "leave it out"),
    "GPUs on TPUs": (SLICE, "accelerator_count: 2", "the field left out", "leave it out"),
    "least above most": ([*A100, "max_nodes: 4"], "min_nodes: 5", "at most 4, or max_nodes of at least 5", "4"),
    "least slices above most": (SLICE, "min_slices: 2", "at most 1, or slices of at least 2", "1"),
    "spot with a reservation": (
        [*A100, "capacity: spot"], "reservation: a100", "capacity: reservation, or no reservation",
        "capacity: reservation",
    ),
    "reserved from nowhere": (A100, "capacity: reservation", "the additional field reservation: NAME", None),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_field_that_does_not_fit_is_found_at_its_line(case: str) -> None:
    pool, line, allowed, nearest = CASES[case]

    (finding,) = findings_of([*pool, line])

    assert finding.position is not None
    assert finding.position.line == FIRST_LINE + len(pool)
    assert finding.path == f"clusters.west.node_pools.train.{line.partition(':')[0]}"
    assert (finding.allowed, finding.nearest) == (allowed, nearest)


@pytest.mark.parametrize("case", CASES)
def test_a_pool_without_the_field_is_taken(case: str) -> None:
    pool = [line for line in CASES[case][0] if not line.startswith("capacity")]

    assert findings_of(pool) == []


@pytest.mark.parametrize(
    ("pool", "field", "nearest"),
    [(V5E, "topology", "topology: 2x2"), (N1, "accelerator", "accelerator: t4")],
)
def test_a_field_that_is_missing_is_named_at_the_pools_line(pool: list[str], field: str, nearest: str) -> None:
    (finding,) = findings_of(pool)

    assert finding.position is not None
    assert finding.position.line == FIRST_LINE - 1
    assert finding.path == f"clusters.west.node_pools.train.{field}"
    assert finding.nearest == nearest
    assert nearest.partition(": ")[2] in (finding.allowed or "")


def test_all_conflicts_of_a_pool_are_reported_at_once() -> None:
    lines = ["driver: latest", "compact: true", "min_slices: 2", "reservation: v5e", "accelerator: t4"]

    findings = findings_of([*SLICE, *lines])

    places = {finding.path.rpartition(".")[2]: finding.position.line for finding in findings if finding.position}
    assert places == {line.partition(":")[0]: FIRST_LINE + 3 + index for index, line in enumerate(lines)}


def test_a_count_of_the_other_kind_is_not_found_twice() -> None:
    (finding,) = findings_of([*A100, "min_nodes: 4", "slices: 8"])

    assert finding.nearest == "max_nodes: 8"


def test_the_least_of_a_system_pool_is_found_at_its_line() -> None:
    pool = (
        "        system_pool:\n          min_nodes: 4\n          max_nodes: 3\n        node_pools:\n          train:\n"
    )
    text = FILE.replace("        node_pools:\n          train:\n", pool) + "".join(
        f"            {line}\n" for line in A100
    )

    (finding,) = parse_stack("dev", parse_source(text, "stacks/Pulumi.dev.yaml")).findings

    assert finding.position is not None
    assert finding.position.line == FIRST_LINE - 1
    assert finding.nearest == "3"
