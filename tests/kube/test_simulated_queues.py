"""Simulated queues beside real Kueue: repeated scenarios, and a trace of what a cluster ran."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.kube.clusters import needed_binaries
from tests.parts.simulate.clusters import sections, shares
from tests.parts.simulate.record import Cluster, Played, is_played, play_for_real, running_cluster
from tests.parts.simulate.scenarios import GPU, Json, random_scenario
from training_platform.cli.main import app

pytestmark = [pytest.mark.kube, pytest.mark.timeout(900)]

SEEDS = range(9001, 9021)  # whose scenarios hang on no tie, and have no loop
SCENARIOS = [random_scenario(seed, "fair", (12, 16)) for seed in SEEDS]
TRIES = 2  # a busy machine lets a step be taken before Kueue is done


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    needed_binaries(("kueue",))
    with running_cluster("fair") as running:
        yield running


def test_the_model_does_what_kueue_does_in_new_scenarios(cluster: Cluster) -> None:
    def is_alike(scenario: Json) -> bool:
        names = (f"{scenario['name']}-{number}" for number in range(TRIES))
        return any(is_played(scenario, play_for_real(cluster, scenario, name)) for name in names)

    with ThreadPoolExecutor(len(SCENARIOS)) as pool:
        alike = dict(zip((scenario["name"] for scenario in SCENARIOS), pool.map(is_alike, SCENARIOS), strict=True))

    assert [name for name, same in alike.items() if not same] == []


def test_a_trace_of_what_a_cluster_ran_can_be_simulated(cluster: Cluster, tmp_path: Path) -> None:
    jobs = {name: {"team": "a", "priority": 100, "pods": [[GPU, 8]]} for name in ("ended", "running")}
    teams = {"a": {"shares": {"h100-spot": {"nominal_quota": 8}}}}
    scenario: Json = {"name": "pull", "mode": "fair", "teams": teams, "jobs": jobs}
    played = Played(cluster, {**scenario, "steps": ["+ended", "-ended", "+running"]}, "vision")
    played.deploy()
    assert [step.admitted for step in played.play()][-1] == {"running": "h100-spot"}
    (tmp_path / "stacks").mkdir()
    (tmp_path / "Pulumi.yaml").write_text("name: training-platform\nruntime: python\n", encoding="utf-8")
    for name, text in sections({"vision": shares(h100_spot=8)}).items():
        (tmp_path / "stacks" / f"Pulumi.{name}.yaml").write_text(text, encoding="utf-8")
    (tmp_path / "kubeconfig").write_text(cluster.server.kubeconfig("lab-main"), encoding="utf-8")
    trace = tmp_path / "pulled.csv"

    pulled = CliRunner().invoke(
        app, ["trace", "pull", "--kubeconfig", str(tmp_path / "kubeconfig"), "--root", str(tmp_path)]
    )
    trace.write_text(pulled.stdout, encoding="utf-8")
    simulated = CliRunner().invoke(app, ["simulate", str(trace), "--root", str(tmp_path)])

    assert (pulled.exit_code, pulled.stderr.splitlines()) == (
        0, ["Left out: 1 workloads that have not ended, or never ran.", "1 jobs."],
    )  # fmt: skip
    (row,) = csv.DictReader(pulled.stdout.splitlines())
    assert [row[name] for name in ("team", "needs", "cluster", "priority")] == ["vision", "8 h100-spot", "main", "100"]
    assert row["job"].startswith("jobset-ended-")
    assert simulated.exit_code == 0
    assert "Jobs that start: 1." in simulated.stdout
