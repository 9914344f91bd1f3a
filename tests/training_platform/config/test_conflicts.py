"""Fields of a pool that do not go together: each at its own line, with what it takes, and all of them at once."""

from __future__ import annotations

import pytest

from training_platform.config.model.stack import parse_stack
from training_platform.config.reading.finding import Finding
from training_platform.config.reading.source import parse_source

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


def found(lines: list[str]) -> list[Finding]:
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
    "reserved from nowhere": (A100, "capacity: reservation", "reservation: NAME beside it", None),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_field_that_does_not_fit_is_found_at_its_line(case: str) -> None:
    pool, line, allowed, nearest = CASES[case]

    (finding,) = found([*pool, line])

    assert finding.position is not None
    assert finding.position.line == FIRST_LINE + len(pool)
    assert finding.path == f"clusters.west.node_pools.train.{line.partition(':')[0]}"
    assert (finding.allowed, finding.nearest) == (allowed, nearest)


@pytest.mark.parametrize("case", CASES)
def test_a_pool_without_the_field_is_taken(case: str) -> None:
    pool = [line for line in CASES[case][0] if not line.startswith("capacity")]

    assert found(pool) == []


@pytest.mark.parametrize(
    ("pool", "field", "nearest"),
    [(V5E, "topology", "topology: 2x2"), (N1, "accelerator", "accelerator: t4")],
)
def test_a_field_that_is_missing_is_named_at_the_pools_line(pool: list[str], field: str, nearest: str) -> None:
    (finding,) = found(pool)

    assert finding.position is not None
    assert finding.position.line == FIRST_LINE - 1
    assert finding.path == f"clusters.west.node_pools.train.{field}"
    assert finding.nearest == nearest
    assert nearest.partition(": ")[2] in (finding.allowed or "")


def test_all_conflicts_of_a_pool_come_at_once() -> None:
    lines = ["driver: latest", "compact: true", "min_slices: 2", "reservation: v5e", "accelerator: t4"]

    findings = found([*SLICE, *lines])

    places = {finding.path.rpartition(".")[2]: finding.position.line for finding in findings if finding.position}
    assert places == {line.partition(":")[0]: FIRST_LINE + 3 + index for index, line in enumerate(lines)}


def test_a_count_of_the_other_kind_is_not_found_twice() -> None:
    (finding,) = found([*A100, "min_nodes: 4", "slices: 8"])

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
