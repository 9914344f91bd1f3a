from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tests.training_platform.jobs.conftest import ENVIRONMENT, write_lab
from training_platform.catalog import ACCELERATORS, MACHINE_TYPES
from training_platform.catalog.prices import machines_cost
from training_platform.cli.main import app
from training_platform.config.workspace import read_workspace
from training_platform.jobs.cost import cost_text, job_cost
from training_platform.jobs.resolve import ResolvedJob

Take = Callable[..., ResolvedJob]
H100 = "gke: {cluster: gpus, flavor: h100, nodes: 2}"
VERTEX = (
    "vertex: {region: us-central1, machine_type: a3-highgpu-8g, replicas: 3, capacity: flex-start, timeout_hours: 72}"
)


def test_every_vm_of_a_job_is_paid(take: Take) -> None:
    cost = job_cost(take(H100), "gke")

    each = machines_cost(MACHINE_TYPES["a3-highgpu-8g"], "on-demand", "us-central1", 0, 1).most
    assert cost.machines == (("a3-highgpu-8g", 2),)
    assert cost.an_hour["on-demand"].most == pytest.approx(2 * each)
    assert each > 0


def test_every_vm_of_every_slice_is_paid(take: Take) -> None:
    cost = job_cost(take("gke: {cluster: tpus, flavor: tpu-v5e-4x8, slices: 2}"), "gke")

    assert cost.machines == (("ct5lp-hightpu-4t", 2 * 8),)


def test_the_head_of_a_job_of_pathways_is_paid_on_demand_beside_its_slices(take: Take, tmp_path: Path) -> None:
    root = write_lab(tmp_path, lab=ENVIRONMENT.replace("us-west4", "us-central1"))  # where such VMs have a price
    slices = "command: [python, train.py]\noutput: checkpoints\ngke: {cluster: tpus, flavor: tpu-v5e-4x8, slices: 2"
    workspace = read_workspace(root)
    alone, headed = (job_cost(take(f"{slices}{end}", workspace=workspace), "gke") for end in ("}", ", pathways: true}"))

    head = machines_cost(MACHINE_TYPES["n2-standard-64"], "on-demand", "us-central1", 1, 1)
    assert headed.machines == (("n2-standard-64", 1), ("ct5lp-hightpu-4t", 2 * 8))
    assert head.most > 0
    for way in ("on-demand", "spot"):
        assert headed.an_hour[way].most == pytest.approx(alone.an_hour[way].most + head.most)
    assert "1 x n2-standard-64 and 16 x ct5lp-hightpu-4t" in cost_text(headed)


def test_a_head_without_a_price_is_said(take: Take) -> None:
    text = "command: [python, train.py]\noutput: checkpoints\n"
    cost = job_cost(take(f"{text}gke: {{cluster: tpus, flavor: tpu-v5e-4x8, slices: 2, pathways: true}}"), "gke")

    assert cost.machines[0] == ("n2-standard-64", 1)
    assert "no price known: n2-standard-64 on-demand" in cost_text(cost)


def test_a_topology_of_vertex_ai_is_so_many_vms(take: Take) -> None:
    cost = job_cost(take("vertex: {region: us-west4, machine_type: ct5lp-hightpu-4t, topology: 4x8}"), "vertex")

    assert cost.machines == (("ct5lp-hightpu-4t", 8),)


def test_the_longest_run_is_the_time_out_on_vertex_ai_and_nothing_limits_one_on_gke(take: Take) -> None:
    vertex, gke = job_cost(take(VERTEX), "vertex"), job_cost(take(H100), "gke")

    assert sum(each.vms for each in vertex.machines) == 3
    assert vertex.longest_run("spot") == pytest.approx(72 * vertex.an_hour["spot"].most)
    assert (gke.hours, gke.longest_run("spot")) == (None, None)


def test_every_trial_of_a_sweep_is_paid(take: Take) -> None:
    sweep = "sweep: {parameters: {lr: {values: [0.1, 0.2, 0.3]}}, metric: accuracy, parallel: 2}\n"
    one, swept = (job_cost(take(each + VERTEX), "vertex") for each in ("", sweep))

    assert (swept.trials, swept.parallel) == (3, 2)
    assert swept.longest_run("spot") == pytest.approx(3 * (one.longest_run("spot") or 0))
    assert "3 trials of it, up to 2 at a time" in cost_text(swept)


def test_chief_reducers_and_evaluator_are_paid_too(take: Take) -> None:
    roles = "chief: {machine_type: n1-standard-16}, reducers: {replicas: 5}, capacity: on-demand"
    cost = job_cost(take(VERTEX.replace("capacity: flex-start", roles)), "vertex")

    assert cost.machines == (("n1-standard-16", 1), ("a3-highgpu-8g", 2), ("n1-highcpu-16", 5))


def test_what_a_persistent_resource_pays_is_said(take: Take) -> None:
    job = take("vertex: {region: us-central1, machine_type: a2-highgpu-1g, persistent_resource: tuning}")

    assert job_cost(job, "vertex").paid_already == "persistent resource tuning"
    assert job_cost(take(VERTEX), "vertex").paid_already == ""


def test_a_machine_without_a_price_is_never_free(take: Take) -> None:
    cost = job_cost(take("vertex: {region: asia-southeast1, machine_type: a3-highgpu-8g, capacity: spot}"), "vertex")

    assert cost.an_hour["spot"].unpriced
    assert cost.longest_run("spot") is None
    assert cost.as_json()["at_least_usd"]["spot"]["an_hour"] is None


@pytest.fixture
def root(new_lab: Callable[..., Path]) -> Path:
    root = new_lab()
    text = f"environment: lab\nimage: registry.example.com/train:1\n{H100}\n{VERTEX}\n"
    (root / "jobs" / "vision" / "train.yaml").write_text(text)
    return root


def asked(root: Path, *arguments: str) -> Result:
    where = [str(root / "jobs" / "vision" / "train.yaml"), "--root", str(root)]
    return CliRunner().invoke(app, ["job", "cost", *where, *arguments])


def test_costs_are_at_least_and_the_job_s_own_provisioning_model_is_marked(root: Path) -> None:
    result = asked(root, "--target", "vertex")

    assert result.exit_code == 0
    first, head, *rows, note = result.stdout.splitlines()
    assert first == "On vertex in us-central1: 1 x a3-highgpu-8g and 2 x a3-highgpu-8g"
    assert "longest run, 72 hours" in head
    assert [row.split()[0] for row in rows] == list(MACHINE_TYPES["a3-highgpu-8g"].capacities)
    assert [row for row in rows if "(this job)" in row] == [row for row in rows if row.split()[0] == "flex-start"]
    assert all("at least $" in row for row in rows)
    assert "without disks, storage, network, Vertex AI's own fee" in note


def test_costs_of_every_target_are_for_programs_too(root: Path) -> None:
    gke, vertex = json.loads(asked(root, "--format", "json").stdout)

    assert (gke["target"], vertex["target"]) == ("gke", "vertex")
    assert gke["longest_run_hours"] is None
    on_demand = vertex["at_least_usd"]["on-demand"]
    assert on_demand["longest_run"] == pytest.approx(72 * on_demand["an_hour"], rel=1e-3)


def test_a_job_whose_limits_nobody_knows_yet_costs_what_it_costs(root: Path) -> None:
    known = asked(root).stdout
    (root / "stacks" / "quotas" / "example-lab.yaml").unlink()

    result = asked(root)

    assert (result.exit_code, result.stdout) == (1, known)
    assert "no quotas of example-lab are known" in result.stderr


def test_a_job_with_errors_costs_nothing_that_could_be_said(root: Path) -> None:
    path = root / "jobs" / "vision" / "train.yaml"
    path.write_text(path.read_text().replace("nodes: 2", "nodes: 20"))

    result = asked(root)

    assert (result.exit_code, result.stdout) == (1, "")
    assert "jobs/vision/train.yaml:3:" in result.stderr


def test_a_machine_with_attached_gpus_costs_both(take: Take) -> None:
    job = take("vertex: {region: us-central1, machine_type: n1-standard-8, accelerator: t4, accelerator_count: 2}")
    plain = take("vertex: {region: us-central1, machine_type: n1-standard-8}")
    t4 = ACCELERATORS["t4"].price
    assert t4

    cost = job_cost(job, "vertex")

    assert cost.machines == (("n1-standard-8 with 2 t4", 1),)
    assert cost.an_hour["on-demand"].most == pytest.approx(
        job_cost(plain, "vertex").an_hour["on-demand"].most + 2 * t4.usd["on-demand"]["us-central1"]
    )
