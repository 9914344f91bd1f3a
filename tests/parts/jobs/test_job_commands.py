from __future__ import annotations

import dataclasses
import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from tests.parts.jobs.lab import Lab, Take
from tests.support.lab import ENVIRONMENT, write_lab
from tests.support.places import ORGANISATION, ROOT
from training_platform.catalog import MACHINE_TYPES
from training_platform.catalog.prices import machines_cost
from training_platform.cli.main import app
from training_platform.config.workspace import read_workspace
from training_platform.parts.jobs.job_checks import targets
from training_platform.parts.jobs.job_cost import TeamCost, cost_text, job_cost, team_text

JOB = """\
environment: lab
image: registry.example.com/train:1
gke: {cluster: gpus, flavor: h100, nodes: 2}
vertex: {region: us-central1, machine_type: a3-highgpu-8g, capacity: flex-start}
command: [train]
"""


@pytest.fixture
def root(new_lab: Lab) -> Path:
    root = new_lab()
    (root / "jobs" / "vision" / "train.yaml").write_text(JOB)
    return root


def job(root: Path, command: str, *arguments: str) -> Result:
    files = [str(root / argument) if argument.startswith("jobs/") else argument for argument in arguments]
    return CliRunner().invoke(app, ["job", command, *files, "--root", str(root)])


def write(root: Path, old: str, new: str, name: str = "train") -> None:
    assert old in JOB
    (root / "jobs" / "vision" / f"{name}.yaml").write_text(JOB.replace(old, new))


def test_only_the_jobset_goes_to_standard_output(root: Path) -> None:
    result = job(root, "render", "jobs/vision/train.yaml", "--target", "gke")

    assert result.exit_code == 0
    assert yaml.safe_load(result.stdout)["kind"] == "JobSet"
    assert result.stderr.startswith("# requests 16 nvidia.com/gpu of h100 in gpus (2 VMs)")


def test_a_rendering_says_that_only_a_submission_uploads_the_source(root: Path) -> None:
    (root / "train.py").write_text("print('step 1')\n")
    file = root / "jobs" / "vision" / "train.yaml"
    file.write_text(
        JOB.replace("image: registry.example.com/train:1", "source: {file: train.py}").replace(
            "command: [train]", "output: checkpoints"
        )
    )

    result = job(root, "render", "jobs/vision/train.yaml", "--target", "gke")

    archive = re.search(r"gs://\S+/sources/\w+/train-0\.tar\.gz", result.stdout)
    assert archive
    assert f"# its source is uploaded by job submit only, to {archive[0]}\n" in result.stderr


def test_a_custom_job_is_yaml_or_json_and_its_charges_are_beside_it(root: Path) -> None:
    result = job(root, "render", "jobs/vision/train.yaml", "--target", "vertex")

    assert result.exit_code == 0
    assert yaml.safe_load(result.stdout)["jobSpec"]["scheduling"]["strategy"] == "FLEX_START"
    as_json = job(root, "render", "jobs/vision/train.yaml", "--target", "vertex", "--format", "json")
    assert json.loads(as_json.stdout) == yaml.safe_load(result.stdout)
    assert "# charges 8 GPUs to CustomModelTrainingPreemptibleH100GPUs" in result.stderr


def test_one_target_needs_no_name(root: Path) -> None:
    write(root, "gke: {cluster: gpus, flavor: h100, nodes: 2}\n", "")

    result = job(root, "render", "jobs/vision/train.yaml")

    assert result.exit_code == 0
    assert "jobSpec" in yaml.safe_load(result.stdout)


@pytest.mark.parametrize("broken", ["nodes: 20", "nodes: two"])
def test_errors_go_to_standard_error_and_nothing_is_rendered(root: Path, broken: str) -> None:
    write(root, "nodes: 2", broken)

    result = job(root, "render", "jobs/vision/train.yaml", "--target", "gke")

    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("error jobs/vision/train.yaml:3:36: gke.nodes: ")


def test_findings_are_in_the_order_of_the_file(root: Path) -> None:
    (root / "jobs" / "vision" / "train.yaml").write_text(f"cpu: x\nfoo: 1\nenv: {{A: 1}}\n{JOB}")

    output = job(root, "check", "jobs/vision/train.yaml").stdout

    assert re.findall(r"(?m)^error jobs/vision/train\.yaml:(\d+):", output) == ["1", "2", "3"]


def test_a_warning_does_not_stop_the_rendering(root: Path) -> None:
    (root / "jobs" / "vision" / "train.yaml").write_text(f"{JOB}output: far\n")

    result = job(root, "render", "jobs/vision/train.yaml", "--target", "vertex")

    assert result.exit_code == 0
    assert result.stderr.startswith("warning jobs/vision/train.yaml:6:1: output: far is in europe-west4")
    assert yaml.safe_load(result.stdout)


def test_findings_of_the_other_target_do_not_count(root: Path) -> None:
    write(root, "nodes: 2", "nodes: 20")

    assert job(root, "render", "jobs/vision/train.yaml", "--target", "vertex").exit_code == 0


@pytest.mark.parametrize(
    ("text", "arguments", "sentence"),
    [
        (
            JOB,
            ["jobs/vision/train.yaml"],
            "jobs/vision/train.yaml can run on gke and on vertex: choose one with --target.",
        ),
        (
            JOB.replace("gke: ", "# gke: "),
            ["jobs/vision/train.yaml", "--target", "gke"],
            "jobs/vision/train.yaml has no gke target; it has vertex.",
        ),
        ("[", ["jobs/vision/train.yaml"], "jobs/vision/train.yaml:2:1: is not YAML: "),
        (JOB, ["jobs/vision/none.yaml"], "jobs/vision/none.yaml: cannot be read: No such file or directory."),
        (
            JOB,
            ["jobs/train.yaml"],
            "jobs/train.yaml: is not a job of this repository: jobs are jobs/<team>/<job>.yaml in",
        ),
        (JOB, ["jobs/vision/train.yaml", "--today", "soon"], "--today: 'soon' is not a date"),
    ],
)
def test_a_rendering_with_impossible_options_gives_one_sentence(
    root: Path, text: str, arguments: list[str], sentence: str
) -> None:
    (root / "jobs" / "vision" / "train.yaml").write_text(text)

    result = job(root, "render", *arguments)

    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"training-platform: {sentence}")
    assert result.stderr.count("\n") == 1


def test_what_is_not_judged_of_a_job_is_in_both_verdicts(root: Path) -> None:
    write(root, "registry.example.com/train:1", "us-docker.pkg.dev/example-other/images/train:1")

    verdict = job(root, "check", "jobs/vision/train.yaml").stdout.splitlines()[-1]
    of_stacks = json.loads(CliRunner().invoke(app, ["check", "--format", "json", "--root", str(root)]).stdout)

    assert verdict == "1 job: 2 notes; not judged: 1 image of another project"
    assert of_stacks["verdict"]["not_judged"]["image of another project"] == 1


def test_all_jobs_are_checked_for_all_targets(root: Path) -> None:
    write(root, "nodes: 2", "nodes: 6", "big")
    write(root, "flex-start}", "flex-start, replicas: 9}", "long")

    result = job(root, "check")

    assert result.exit_code == 1
    assert [line.split(":")[0] for line in result.stdout.splitlines() if line.startswith("error")] == [
        "error jobs/vision/big.yaml",
        "error jobs/vision/long.yaml",
    ]
    last = "3 jobs: 2 errors, 3 notes\nMore about it: training-platform explain job-fits-share\n"
    assert result.stdout.endswith(last)


def test_valid_jobs_are_counted(root: Path) -> None:
    result = job(root, "check", "jobs/vision/train.yaml")

    note, last = result.stdout.splitlines()
    assert (result.exit_code, last) == (0, "1 job: clean, 1 note")
    assert note.endswith("[job-vertex-submission]")

    result = job(root, "check", "jobs/vision/train.yaml", "jobs/vision/none.yaml")

    assert (result.exit_code, result.stdout.splitlines()[-1]) == (2, "1 job: 1 note, 1 thing not checked")


def test_a_file_that_cannot_be_read_hides_no_other(root: Path) -> None:
    write(root, "nodes: 2", "nodes: 6", "big")
    (root / "jobs" / "vision" / "broken.yaml").write_text("[")
    (root / "jobs" / "lost.yml").write_text(JOB)

    result = job(root, "check")

    assert result.exit_code == 2
    assert "error jobs/vision/big.yaml" in result.stdout
    assert [line.split(":")[1] for line in result.stderr.splitlines()] == [" jobs/lost.yml", " jobs/vision/broken.yaml"]


def test_the_age_of_limits_is_counted_to_the_given_day(root: Path) -> None:
    result = job(root, "check", "--today", "2027-11-21")

    assert result.exit_code == 0
    assert "warning stacks/quotas/example-lab.yaml:2:1: taken: is 385 days ago" in result.stdout


def test_a_rendering_for_gke_imports_nothing_of_vertex_ai_stacks_and_rules() -> None:
    not_imported = (
        "parts.jobs.vertex",
        "parts.jobs.job_cost",
        "parts.jobs.cli.runs",
        "rules",
        "quota.ledger",
        "resources.plan",
    )
    unused = {f"training_platform.{name}" for name in not_imported}
    assert [name for name in unused if find_spec(name) is None] == []
    argv = ["training-platform", "job", "render", "jobs/nlp/pretrain.yaml", "--target", "gke"]
    code = f"""
import sys
from training_platform.cli.main import main
sys.argv = {argv!r}
try:
    main()
finally:
    print(sorted({unused!r} & set(sys.modules)), file=sys.stderr)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ORGANISATION, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False,
        capture_output=True, text=True,
    )  # fmt: skip

    assert (done.returncode, done.stderr.splitlines()[-1]) == (0, "[]")


H100 = "gke: {cluster: gpus, flavor: h100, nodes: 2}"
VERTEX = (
    "vertex: {region: us-central1, machine_type: a3-highgpu-8g, replicas: 3, capacity: flex-start, timeout_hours: 72}"
)


def test_machines_are_paid_by_the_hour(take: Take) -> None:
    one_vm = machines_cost(MACHINE_TYPES["a3-highgpu-8g"], "on-demand", "us-central1", 0, 1).maximum

    assert job_cost(take(H100), "gke").an_hour["on-demand"].maximum == pytest.approx(2 * one_vm)
    assert one_vm > 0


ROLES = "chief: {machine_type: n1-standard-16}, reducers: {replicas: 5}, capacity: on-demand"


@pytest.mark.parametrize(
    ("target", "machines"),
    [
        (H100, [("a3-highgpu-8g", 2)]),
        ("gke: {cluster: tpus, flavor: tpu-v5e-4x8, slices: 2}", [("ct5lp-hightpu-4t", 2 * 8)]),
        ("vertex: {region: us-west4, machine_type: ct5lp-hightpu-4t, topology: 4x8}", [("ct5lp-hightpu-4t", 8)]),
        (VERTEX.replace("capacity: flex-start", ROLES),
         [("n1-standard-16", 1), ("a3-highgpu-8g", 2), ("n1-highcpu-16", 5)]),
    ],
    ids=["VMs", "slices", "a topology", "chief, workers and reducers"],
)  # fmt: skip
def test_every_vm_of_a_job_is_paid(take: Take, target: str, machines: list[tuple[str, int]]) -> None:
    job = take(target)
    (where,) = targets(job)

    assert list(job_cost(job, where).machines) == machines


def test_the_head_of_a_job_of_pathways_is_paid_on_demand_beside_its_slices(take: Take, tmp_path: Path) -> None:
    priced_root = write_lab(tmp_path, lab=ENVIRONMENT.replace("us-west4", "us-central1"))  # where such VMs have a price
    slices = "command: [python, train.py]\noutput: checkpoints\ngke: {cluster: tpus, flavor: tpu-v5e-4x8, slices: 2"
    workspace = read_workspace(priced_root)
    alone, headed = (job_cost(take(f"{slices}{end}", workspace=workspace), "gke") for end in ("}", ", pathways: true}"))

    head = machines_cost(MACHINE_TYPES["n2-standard-64"], "on-demand", "us-central1", 1, 1)
    assert headed.machines == (("n2-standard-64", 1), ("ct5lp-hightpu-4t", 2 * 8))
    assert head.maximum > 0
    for way in ("on-demand", "spot"):
        assert headed.an_hour[way].maximum == pytest.approx(alone.an_hour[way].maximum + head.maximum)
    assert "1 x n2-standard-64 and 16 x ct5lp-hightpu-4t" in cost_text(headed)


def test_a_head_without_a_price_is_reported(take: Take, tmp_path: Path) -> None:
    heads = "pathways: {max_nodes: 2, machine_type: n2d-standard-64}"  # which has a price in us-central1 only
    workspace = read_workspace(write_lab(tmp_path, lab=ENVIRONMENT.replace("pathways: {max_nodes: 2}", heads)))
    text = "command: [python, train.py]\noutput: checkpoints\n"
    job = take(f"{text}gke: {{cluster: tpus, flavor: tpu-v5e-4x8, slices: 2, pathways: true}}", workspace=workspace)

    cost = job_cost(job, "gke")

    assert cost.machines[0] == ("n2d-standard-64", 1)
    assert "No price is known for n2d-standard-64 on-demand" in cost_text(cost)


def test_the_longest_run_is_the_time_out_on_vertex_ai_and_nothing_limits_one_on_gke(take: Take) -> None:
    vertex = job_cost(take(VERTEX), "vertex")
    gke = job_cost(take(H100), "gke")

    assert sum(machine.vms for machine in vertex.machines) == 3
    assert vertex.longest_run("spot") == pytest.approx(72 * vertex.an_hour["spot"].maximum)
    assert (gke.hours, gke.longest_run("spot")) == (None, None)


def test_every_trial_of_a_sweep_is_paid(take: Take) -> None:
    sweep = "sweep: {parameters: {lr: {values: [0.1, 0.2, 0.3]}}, metric: accuracy, parallel: 2}\n"
    single, swept = (job_cost(take(head + VERTEX), "vertex") for head in ("", sweep))

    assert (swept.trials, swept.parallel) == (3, 2)
    assert swept.longest_run("spot") == pytest.approx(3 * (single.longest_run("spot") or 0))
    assert "for each of 3 trials, up to 2 at a time" in cost_text(swept)


def test_a_job_on_a_persistent_resource_is_reported_as_paid_already(take: Take) -> None:
    job = take("vertex: {region: us-central1, machine_type: a2-highgpu-1g, persistent_resource: tuning}")

    assert job_cost(job, "vertex").paid_already == "persistent resource tuning"
    assert job_cost(take(VERTEX), "vertex").paid_already == ""


def test_a_machine_without_a_price_is_never_free(take: Take) -> None:
    cost = job_cost(take("vertex: {region: asia-southeast1, machine_type: a3-highgpu-8g, capacity: spot}"), "vertex")

    assert cost.an_hour["spot"].unpriced
    assert cost.longest_run("spot") is None
    assert cost.as_json()["at_least_usd"]["spot"]["an_hour"] is None


@pytest.mark.parametrize(("difference", "is_shown"), [(0.003, False), (1.0, True)])
def test_a_difference_in_price_of_less_than_a_cent_is_not_shown(take: Take, difference: float, is_shown: bool) -> None:
    cost = job_cost(take(VERTEX), "vertex")
    current = dataclasses.replace(cost.an_hour[cost.capacity], maximum=20.004)
    spot = dataclasses.replace(current, maximum=20.004 - difference)
    cost = dataclasses.replace(cost, an_hour={**cost.an_hour, cost.capacity: current, "spot": spot})
    (advice,) = (line for line in cost_text(cost).splitlines() if line.startswith("  spot: "))

    assert ("% less than this job" in advice) is is_shown


@pytest.fixture
def priced_root(new_lab: Lab) -> Path:
    priced_root = new_lab()
    text = f"environment: lab\nimage: registry.example.com/train:1\n{H100}\n{VERTEX}\n"
    (priced_root / "jobs" / "vision" / "train.yaml").write_text(text)
    return priced_root


def cost_result(priced_root: Path, *arguments: str) -> Result:
    where = [str(priced_root / "jobs" / "vision" / "train.yaml"), "--root", str(priced_root)]
    return CliRunner().invoke(app, ["job", "cost", *where, *arguments])


def test_costs_are_of_machines_and_the_job_s_own_provisioning_model_is_marked(priced_root: Path) -> None:
    result = cost_result(priced_root, "--target", "vertex")

    assert result.exit_code == 0
    first, head, *lines = result.stdout.splitlines()
    rows = lines[:4]
    assert first == "On vertex in us-central1: 3 x a3-highgpu-8g"
    assert "longest run, 72 hours" in head
    assert [row.split()[0] for row in rows] == list(MACHINE_TYPES["a3-highgpu-8g"].capacities)
    assert [row.split()[0] for row in rows if "(this job)" in row] == ["flex-start"]
    assert "The prices are as of 20" in result.stdout  # all of one day
    assert "without disks, storage, network, Vertex AI's own fee." in result.stdout
    assert lines[-1].endswith(
        "% less than this job; Google may stop the VMs at any time, so write checkpoints; set vertex.capacity to spot."
    )


def test_the_cost_of_a_job_on_gke_names_flavors_and_pools_with_other_provisioning_models(priced_root: Path) -> None:
    advice = cost_result(priced_root, "--target", "gke").stdout.splitlines()[-3:]

    assert [line.split(":")[0].strip() for line in advice] == ["spot", "flex-start", "reservation"]
    pool = "no pool of gpus has it; to add one: "
    pool += "training-platform init pool lab --machine-type a3-highgpu-8g --capacity spot."
    assert advice[0].endswith(pool)
    assert advice[2].endswith("--machine-type a3-highgpu-8g --capacity reservation --reservation NAME.")


def test_old_prices_of_the_catalogue_are_examples_in_the_cost_of_a_job_too(priced_root: Path) -> None:
    assert "older than 90 days" not in cost_result(priced_root, "--today", "2025-04-01").stdout
    assert (
        "The catalogue's prices are only examples, more than 90 days old"
        in cost_result(priced_root, "--today", "2030-01-01").stdout
    )


def test_costs_of_every_target_are_for_programs_too(priced_root: Path) -> None:
    gke, vertex = json.loads(cost_result(priced_root, "--format", "json").stdout)

    assert (gke["target"], vertex["target"]) == ("gke", "vertex")
    assert gke["longest_run_hours"] is None
    on_demand = vertex["at_least_usd"]["on-demand"]
    assert on_demand["longest_run"] == pytest.approx(72 * on_demand["an_hour"], rel=1e-3)


def test_a_job_without_known_limits_has_the_same_cost(priced_root: Path) -> None:
    cost_before = cost_result(priced_root).stdout
    (priced_root / "stacks" / "quotas" / "example-lab.yaml").unlink()

    result = cost_result(priced_root)

    assert (result.exit_code, result.stdout) == (1, cost_before)
    assert "no quotas of example-lab are known" in result.stderr


def test_a_job_with_errors_has_no_cost(priced_root: Path) -> None:
    path = priced_root / "jobs" / "vision" / "train.yaml"
    path.write_text(path.read_text().replace("nodes: 2", "nodes: 20"))

    result = cost_result(priced_root)

    assert (result.exit_code, result.stdout) == (1, "")
    assert "jobs/vision/train.yaml:3:" in result.stderr


def test_a_team_is_told_what_part_of_its_budget_it_used() -> None:
    cost = TeamCost(month="2026-11", rows=(("gpus", "h100", 101.0, None),), budgets={"gpus": 1000}, held=("gpus",))

    assert team_text(cost).endswith("\ngpus: 101.0 of 1,000 chip-hours of 2026-11 (10%), and is held")


def test_a_verbose_check_lists_the_resources_of_each_pod(root: Path) -> None:
    result = job(root, "check", "--verbose", "jobs/vision/train.yaml")

    assert "jobs/vision/train.yaml (gke): each pod has at most 1,644 GiB of memory, 822 GiB of them for /dev/shm" in (
        result.stdout
    )
    assert "jobs/vision/train.yaml (gke)" not in job(root, "check", "jobs/vision/train.yaml").stdout


def test_a_sweep_on_gke_is_a_list_as_json(root: Path) -> None:
    write(root, "gke:", "sweep: {parameters: {lr: {values: [1, 2]}}}\ngke:")

    document = json.loads(job(root, "render", "jobs/vision/train.yaml", "--target", "gke", "--format", "json").stdout)

    assert (document["kind"], [item["kind"] for item in document["items"]]) == ("List", ["JobSet", "JobSet"])
