"""Refusals of the fact sheet that job files can run into: each is refused by the rules that coverage.yaml names."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.parts.jobs.test_bad_input import (
    A100,
    DATA,
    FLEX,
    GPU,
    GRID,
    IN,
    TUNING,
    V5E,
    above,
    check,
    mounted,
    put,
)

Lab = Callable[..., Path]
ROOT = Path(__file__).resolve().parents[3]
TABLE: dict[str, dict[str, Any]] = yaml.safe_load(
    (ROOT / "training_platform" / "rules" / "coverage.yaml").read_text(encoding="utf-8")
)
OTHER_REGION = f"network_attachment: {IN}/regions/us-east4/networkAttachments/a"
RESERVED = f"reservation: {IN}/zones/us-central1-a/reservations/a"
V5E_2X4 = "gke: {cluster: tpus, flavor: tpu-v5e-2x4, slices: 2}"
FLEX_START = "gke: {cluster: tpus, flavor: tpu-v5e-2x4-flex-start, slices: 1}"
MANY = "gke: {cluster: tpus, flavor: tpu-v5e-4x8, slices: 13}"
CASES: dict[str, dict[str, str]] = {
    "TPU-16": {"job-multislice": V5E_2X4},
    "CON-06": {"job-run-time": put(GPU, "max_run_hours: 49")},
    "VPR-07": {
        "job-vertex-resource": TUNING.replace("200", "100"),
        "job-vertex-reservation": put(TUNING, RESERVED),
    },
    "VJB-02": {
        "job-vertex-capacity": put(V5E, "capacity: spot"),
        "job-vertex-replicas": put(V5E, "replicas: 2"),
        "job-vertex-topology": V5E.replace(", topology: 4x8", ""),
        "job-vertex-tpu-pool": put(V5E, "evaluator: {machine_type: n1-standard-16}"),
        "job-vertex-tpu-sweep": above(f"sweep: {GRID}", V5E),
    },
    "VJB-03": {"job-vertex-machine": A100.replace("a2-highgpu-1g", "n2d-standard-8")},
    "VJB-04": {
        "job-vertex-capacity": put(V5E, "capacity: flex-start"),
        "job-vertex-flex-pools": put(FLEX, "reducers: {replicas: 2}"),
        "job-vertex-reservation": put(FLEX, RESERVED),
        "job-vertex-timeout": put(FLEX, "timeout_hours: 169"),
    },
    "VJB-05": {"job-vertex-wait": put(A100, "max_wait_hours: 1")},
    "VJB-07": {
        "job-model": above("output: far\ntensorboard: true", A100.replace("us-central1", "europe-west4")),
    },
    "VJB-08": {
        "job-vertex-args": above(f"args: [{'a' * 100_001}]", A100),
        "job-vertex-env": above(f"env: {{{', '.join(f'A{number}: b' for number in range(101))}}}", A100),
        "job-vertex-mount": mounted(DATA, on=A100),
        "job-vertex-network": put(A100, "network: projects/1/global/networks/lab", OTHER_REGION),
        "job-vertex-output": above("output: far", A100),
    },
    "VJB-09": {
        "job-vertex-failed-trials": above(f"sweep: {GRID[:-1]}, max_failed_trials: 3}}", A100),
        "job-vertex-metric": above(f"sweep: {GRID.replace('loss', 'the loss')}", A100),
        "job-vertex-parallel": above(f"sweep: {GRID[:-1]}, parallel: 3}}", A100),
        "job-vertex-reservation": put(A100, "capacity: spot", RESERVED),
    },
    "KUE-07": {
        "job-fits-pools": "gke: {cluster: gpus, flavor: a100-40, nodes: 9, gpus: 2}",
        "job-fits-share": MANY,
    },
    "KUE-11": {"job-placement": put(GPU, "placement: {level: block}")},
    "JBS-01": {"job-name": GPU},  # the test gives the file a long name
    "JBS-06": {"job-slices-from-zero": "gke: {cluster: tpus, flavor: tpu-v5e-4x8, slices: 3}"},
    "REG-03": {"job-vertex-output": above("output: far", A100), "job-vertex-place": put(A100, OTHER_REGION)},
}


def test_the_table_names_the_rules_that_the_cases_show() -> None:
    named = {fact: row["jobs"] for fact, row in TABLE.items() if "jobs" in row}

    assert named == {fact: sorted(cases) for fact, cases in CASES.items()}


@pytest.mark.parametrize(("fact", "rule"), [(fact, rule) for fact, cases in CASES.items() for rule in cases])
def test_what_is_refused_is_found_in_a_job_file(new_lab: Lab, fact: str, rule: str) -> None:
    name = "a" * 60 if rule == "job-name" else "train"
    text = f"environment: lab\nimage: registry.example.com/train:1\n{CASES[fact][rule]}"

    root = new_lab()
    if rule == "job-run-time":  # of VMs that are not there for longer; here of what the team may
        team = root / "stacks" / "Pulumi.lab-vision.yaml"
        team.write_text(f"{team.read_text().rstrip()}\n    max_run_hours: 48\n")

    assert rule in {found.rule for found in check(root, text, name)}


def test_what_cannot_happen_is_shown_by_tests_of_what_is_rendered() -> None:
    there = {
        name
        for path in Path(__file__).parent.glob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    named = {fact: set(row["tests"]) for fact, row in TABLE.items() if "tests" in row}

    assert {fact: tests - there for fact, tests in named.items() if tests - there} == {}
