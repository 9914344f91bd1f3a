"""Simulated queues beside real Kueue: repeated scenarios, and a trace of what a cluster ran."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kueue_model import amount, read_manifests
from tests.kube.clusters import needed_binaries
from tests.kube.queues import KUEUE, until
from tests.kueue_model.record import Cluster, Played, play_for_real, running_cluster
from tests.kueue_model.recorded_plays import is_played
from tests.kueue_model.scenarios import GPU, Json, queues_of, random_scenario
from tests.parts.simulate.clusters import sections, shares
from training_platform.cli.main import app
from training_platform.config.reading.finding import UserError
from training_platform.parts.simulate.now import predict

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
    steps = ["+ended", "-ended", "+running"]
    scenario = queues_of({"name": "pull", "mode": "fair", "teams": teams, "jobs": jobs, "steps": steps})
    played = Played(cluster, scenario, "vision")
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


FLAVOR = "h100-spot"


def quota(limits: Json, **spec: Any) -> Json:
    """Return the spec of a ClusterQueue or Cohort with 8 GPUs, and limits of them."""
    row = {"name": GPU, "nominalQuota": 8, **limits}
    flavors = [{"name": FLAVOR, "resources": [row]}]
    return {"resourceGroups": [{"coveredResources": [GPU], "flavors": flavors}], **spec}


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("ClusterQueue", quota({"lendingLimit": 8, "borrowingLimit": 9}, cohortName="all")),
        ("ClusterQueue", quota({"lendingLimit": 9}, cohortName="all")),
        ("ClusterQueue", quota({"lendingLimit": 8})),
        ("ClusterQueue", quota({"borrowingLimit": 8})),
        ("ClusterQueue", quota({"lendinglimit": 8}, cohortName="all")),
        ("Cohort", quota({"lendingLimit": 9}, parentName="all")),
        ("Cohort", quota({"lendingLimit": 8})),
        ("Cohort", quota({"borrowingLimit": 8})),
    ],
)
def test_limits_that_kueue_refuses_are_refused_in_manifests_and_no_others(
    cluster: Cluster, tmp_path: Path, kind: str, spec: Json
) -> None:
    body = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": "tried"}, "spec": spec}
    queue = {**body, "kind": "ClusterQueue", "metadata": {"name": "beside"}, "spec": quota({})}
    manifests = tmp_path / "queues.json"
    manifests.write_text(json.dumps({"items": [body, queue]}), encoding="utf-8")

    query = {"dryRun": "All", "fieldValidation": "Strict"}
    answer = cluster.client.post(f"{KUEUE}/{kind.lower()}s", json=body, params=query)
    try:
        read_manifests(manifests)
        is_read = True
    except UserError:
        is_read = False

    assert is_read is answer.is_success, answer.text


def container(name: str, gpus: int, cpu: str, **more: Any) -> Json:
    quantities = {GPU: str(gpus), "cpu": cpu}
    return {"name": name, "image": "a", "resources": {"requests": quantities, "limits": quantities}, **more}


PODS: dict[str, Json] = {
    "one": {"containers": [container("a", 2, "1500m")]},
    "two": {"containers": [container("a", 2, "1"), container("b", 1, "250m")]},
    "sidecar": {
        "initContainers": [container("s", 1, "1", restartPolicy="Always"), container("i", 4, "100m")],
        "containers": [container("a", 2, "2")],
    },
    "init": {
        "initContainers": [container("i", 1, "4"), container("j", 3, "1")],
        "containers": [container("a", 2, "2")],
    },
    "overhead": {"containers": [container("a", 2, "2")], "overhead": {"cpu": "250m"}, "runtimeClassName": "boxed"},
    "limits": {"containers": [{"name": "a", "image": "a", "resources": {"limits": {GPU: "2", "cpu": "3"}}}]},
    "whole": {"containers": [container("a", 2, "1")], "resources": {"requests": {"cpu": "5"}, "limits": {"cpu": "5"}}},
}


def test_pods_are_counted_as_kueue_counts_them(cluster: Cluster, tmp_path: Path) -> None:
    """Kueue admits the workloads; the model reads the same objects as if nobody had counted them yet."""
    rows = [{"name": GPU, "nominalQuota": 1000}, {"name": "cpu", "nominalQuota": 1000}]
    groups = [{"coveredResources": [GPU, "cpu"], "flavors": [{"name": FLAVOR, "resources": rows}]}]
    spec = {"resourceGroups": groups, "namespaceSelector": {}}
    cluster.apply("/api/v1/namespaces", "Namespace", "counted")
    cluster.apply(f"{KUEUE}/clusterqueues", "ClusterQueue", "counted", spec=spec)
    local = f"{KUEUE}/namespaces/counted/localqueues"
    cluster.apply(local, "LocalQueue", "all", spec={"clusterQueue": "counted"})
    workloads = f"{KUEUE}/namespaces/counted/workloads"
    for name, pod in PODS.items():
        template = {"spec": {"restartPolicy": "Never", **pod}}
        pod_sets = [{"name": "main", "count": 2, "template": template}]
        cluster.apply(workloads, "Workload", name, spec={"queueName": "all", "podSets": pod_sets})
    admitted = until(
        lambda: cluster.get(workloads)["items"],
        lambda items: all("admission" in item.get("status", {}) for item in items),
    )
    counted = {}
    for item in admitted:
        usage = item.pop("status")["admission"]["podSetAssignments"][0]["resourceUsage"]
        counted[item["metadata"]["name"]] = {name: amount(name, quantity) for name, quantity in usage.items()}
    queues = [cluster.get(f"{KUEUE}/clusterqueues/counted"), *cluster.get(local)["items"]]
    for body, kind in zip(queues, ("ClusterQueue", "LocalQueue"), strict=True):
        body |= {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind}
    (tmp_path / "queues.json").write_text(json.dumps({"items": queues}), encoding="utf-8")
    (tmp_path / "workloads.json").write_text(json.dumps({"items": admitted}), encoding="utf-8")

    waits = predict(tmp_path / "workloads.json", read_manifests(tmp_path / "queues.json"), [0], datetime.now(UTC))

    predicted = {}
    for job in waits.jobs:
        words = job.needs.split()
        quantities = zip(words[1::2], words[::2], strict=True)
        predicted[job.job] = {name: amount(name, quantity) for name, quantity in quantities}
    assert predicted == counted
