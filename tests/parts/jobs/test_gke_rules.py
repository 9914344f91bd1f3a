"""Jobs on GKE against shares, pools, images, volumes and run times of their flavors."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.parts.jobs.lab import Judge, Lab, Read, Take, container, insert, pod, with_pool, with_team
from tests.support.lab import ENVIRONMENT, NLP, VISION
from training_platform.catalog import MACHINE_TYPES
from training_platform.config.model.environment import Destination
from training_platform.config.names import data_variable
from training_platform.config.reading.declaration import located
from training_platform.config.reading.finding import Finding
from training_platform.config.workspace import Workspace, read_workspace
from training_platform.parts.jobs.common_rules import job_findings
from training_platform.parts.jobs.container import mount_variables
from training_platform.parts.jobs.gke.gke_job import on_gke
from training_platform.parts.jobs.gke.jobset import jobset
from training_platform.parts.jobs.gke.pod_sizes import usable_disk_gib
from training_platform.parts.jobs.gke.rules import gke_findings
from training_platform.parts.jobs.gke.team_quota import reach
from training_platform.parts.jobs.gke.volumes import volumes
from training_platform.parts.jobs.job_cost import cost_text, job_cost
from training_platform.parts.jobs.resolve import ResolvedJob
from training_platform.parts.jobs.storage_rules import bucket_findings, data_set_findings
from training_platform.parts.jobs.vertex.worker_pools import references, vertex_target, worker_pools


def tpu(flavor: str, count: str) -> str:
    return f"gke: {{cluster: tpus, flavor: {flavor}, {count}}}"


def gpu(flavor: str, count: str) -> str:
    return f"gke: {{cluster: gpus, flavor: {flavor}, {count}}}"


def rules(findings: list[Finding]) -> list[tuple[str, str, str | None]]:
    return [(finding.rule, finding.path, finding.nearest) for finding in findings]


def test_a_team_of_another_environment_lends_nothing(take: Take, new_lab: Lab) -> None:
    root = new_lab()
    for name in ("Pulumi.lab.yaml", "Pulumi.lab-nlp.yaml"):
        text = (root / "stacks" / name).read_text()
        other = name.replace("lab", "lob")
        (root / "stacks" / other).write_text(text.replace("environment: lab", "environment: lob"))

    assert reach(on_gke(take(gpu("h100", "nodes: 1"), workspace=read_workspace(root)))) == (32, 32 + 8)
    (root / "stacks" / "Pulumi.lab-nlp.yaml").unlink()
    assert reach(on_gke(take(gpu("h100", "nodes: 1"), workspace=read_workspace(root)))) == (32, 32)


def test_the_lending_of_a_rejected_file_is_unknown(take: Take, new_lab: Lab) -> None:
    workspace = read_workspace(new_lab(lab_nlp="config: {}"))

    assert reach(on_gke(take(gpu("h100", "nodes: 1"), workspace=workspace))) == (32, 32 + 8)
    assert reach(on_gke(take(tpu("tpu-v5e-2x4", "slices: 1"), workspace=workspace))) == (64, math.inf)
    findings = gke_findings(take(tpu("tpu-v5e-4x4-spot", "slices: 13"), workspace=workspace))
    assert "job-fits-share" not in [finding.rule for finding in findings]


@pytest.mark.parametrize(("flavor", "fits", "cluster"), [("tpu-v5e-4x8", 96 // 32, "tpus"), ("h100", 40 // 8, "gpus")])
def test_a_job_may_ask_for_what_the_team_can_ever_have_and_no_more(
    take: Take, flavor: str, fits: int, cluster: str
) -> None:
    field = "slices" if cluster == "tpus" else "nodes"

    def errors(count: int) -> list[Finding]:
        job = take(f"gke: {{cluster: {cluster}, flavor: {flavor}, {field}: {count}}}")
        return [finding for finding in gke_findings(job) if finding.severity == "error"]

    assert errors(fits) == []
    (finding,) = errors(fits + 1)
    assert (finding.rule, finding.path) == ("job-fits-share", f"gke.{field}")
    assert (finding.allowed, finding.nearest) == (f"at most {fits}", str(fits))
    assert f"at most {96 if fits == 3 else 40} with borrowing" in finding.message


@pytest.mark.parametrize(
    ("share", "other_share", "nearest"),
    [
        ("{nominal_quota: 4, borrowing_limit: 0}", "{nominal_quota: 56}",
         "nominal_quota: 8 at stacks/Pulumi.lab-vision.yaml:14"),
        ("{nominal_quota: 4, borrowing_limit: 0}", "{nominal_quota: 60}",
         "borrowing_limit: 4 at stacks/Pulumi.lab-vision.yaml:14"),
        ("{nominal_quota: 4}", "{nominal_quota: 60, lending_limit: 0}", "larger pools of h100 (h100)"),
    ],
)  # fmt: skip
def test_a_share_smaller_than_a_vm_is_found_with_the_field_to_raise(
    take: Take, new_lab: Lab, share: str, other_share: str, nearest: str
) -> None:
    vision = VISION.replace("{nominal_quota: 32, borrowing_limit: 8}", share)
    nlp = NLP.replace("h100: {nominal_quota: 32}", f"h100: {other_share}")

    job = take(gpu("h100", "nodes: 1"), workspace=read_workspace(new_lab(lab_vision=vision, lab_nlp=nlp)))

    (finding,) = (finding for finding in gke_findings(job) if finding.severity == "error")
    assert finding.message.startswith("1 VM of h100 is 8 nvidia.com/gpu, but team vision has 4, and at most 4 with")
    assert (finding.allowed, finding.nearest) == ("a team that can use at least 8, for one VM", nearest)


def test_a_job_may_not_ask_for_more_than_the_pools_hold(take: Take) -> None:
    assert gke_findings(take(tpu("tpu-v5e-4x4-spot", "slices: 12"))) == []

    findings = gke_findings(take(tpu("tpu-v5e-4x4-spot", "slices: 13")))

    assert rules(findings)[:1] == [("job-fits-pools", "gke.slices", "12")]
    assert "job-fits-share" not in {finding.rule for finding in findings}  # one cause is one finding
    assert findings[0].message.startswith("13 slices of tpu-v5e-4x4-spot are 208 google.com/tpu, but the pools of ")
    assert "tpu-v5e-4x4-spot have 192" in findings[0].message


@pytest.mark.parametrize(
    ("zone", "nodes", "max_nodes"),
    [("zone: us-central1-a, ", 6, 5), ("zone: us-central1-a, ", 5, 0), ("", 6, 5), ("", 5, 0)],
    ids=["two pools", "the larger pool", "three zones", "one of three zones"],
)
def test_queued_vms_of_a_job_come_from_one_zone_of_one_pool(
    take: Take, new_lab: Lab, zone: str, nodes: int, max_nodes: int
) -> None:
    root = new_lab()
    queued = f"machine_type: a3-highgpu-8g, {zone}capacity: queued-provisioning"
    pools = f"""\
          first: {{{queued}, max_nodes: 5}}
          second: {{machine_type: a3-highgpu-8g, zone: us-central1-c, capacity: queued-provisioning, max_nodes: 3}}
"""
    insert(root / "stacks" / "Pulumi.lab.yaml", "          h100:", pools)
    share = "        h100-queued-provisioning: {nominal_quota: 64}\n"
    insert(root / "stacks" / "Pulumi.lab-vision.yaml", "        h100:", share)

    findings = gke_findings(take(gpu("h100-queued-provisioning", f"nodes: {nodes}"), workspace=read_workspace(root)))

    expected = [("job-fits-pools", "gke.nodes", str(max_nodes))] if max_nodes else []
    assert rules([finding for finding in findings if finding.severity == "error"]) == expected
    for finding in findings:
        assert finding.message.endswith("come from one zone of one node pool, and the largest has 40")


def test_pools_of_smaller_vms_do_not_count(take: Take) -> None:
    (finding,) = gke_findings(take(gpu("a100-40", "nodes: 3")))

    assert (finding.rule, finding.nearest) == ("job-fits-pools", "2")
    assert "3 VMs of a100-40 are 12 nvidia.com/gpu, but the pools of a100-40 have 8" in finding.message


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (tpu("tpu-v5e-4x8", "nodes: 2"), ("job-count", "gke.nodes", "slices: 1")),
        (gpu("h100", "slices: 2"), ("job-count", "gke.slices", "nodes")),
        (tpu("tpu-v5e-2x4", "slices: 2"), ("job-multislice", "gke.slices", "1")),  # of one VM each
        (gpu("h100", "nodes: 100"), ("job-fits-share", "gke.nodes", "5")),  # pools hold 8, which the share does not
        (tpu("tpu-v5e-2x4", "slices: 1, gpus: 4"), ("job-part", "gke.gpus", None)),
    ],
)
def test_an_impossible_number_is_one_finding_with_the_nearest(
    take: Take, target: str, expected: tuple[str, str, str | None]
) -> None:
    assert rules(gke_findings(take(target))) == [expected]


def test_a_flavor_of_slices_with_different_numbers_of_vms_is_refused(take: Take) -> None:
    findings = gke_findings(take(tpu("tpu-v5e-2x4-flex-start", "slices: 1")))

    assert findings[0].rule == "job-flavor-shape"
    assert "pool one of 1 and two of 2" in findings[0].message


def test_slices_that_an_autoscaler_creates_from_zero_are_a_warning(take: Take) -> None:
    (finding,) = gke_findings(take(tpu("tpu-v5e-4x8", "slices: 3")))

    assert (finding.rule, finding.severity, finding.nearest) == ("job-slices-from-zero", "warning", "2")
    assert finding.allowed == "at most 2, or min_slices that add up to 3 in the flavor's pools"


@pytest.mark.parametrize(
    ("slices", "longest"),
    [(10, 63 - len("-7x2kq-slice-9-3-abcde")), (12, 63 - len("-7x2kq-slice-11-3-abcde"))],
)
def test_names_of_pods_have_63_characters_at_most(take: Take, slices: int, longest: int) -> None:
    target = tpu("tpu-v5e-4x4-spot", f"slices: {slices}")

    assert gke_findings(take(target, file=f"jobs/vision/{'a' * longest}.yaml")) == []
    (finding,) = gke_findings(take(target, file=f"jobs/vision/{'a' * (longest + 1)}.yaml"))
    assert (finding.rule, finding.allowed) == ("job-name", f"a file name of at most {longest} characters")


def test_the_note_has_the_jobs_demand_and_the_teams_share(verdict: Judge) -> None:
    note, parts, _ = verdict(tpu("tpu-v5e-4x8", "slices: 2"), "gke").notes

    assert note.startswith("requests 64 google.com/tpu of tpu-v5e-4x8 in tpus (2 x 8 VMs); ")
    assert note.endswith("team vision: nominal quota 32, with borrowing 96")
    assert parts.startswith("each pod has at most 163 GiB of memory, 81 GiB of them for /dev/shm, and ")
    assert parts.endswith(" GiB of disk; all vCPUs of its VM")


def test_an_image_from_elsewhere_is_found_before_the_cluster_refuses_its_pods(take: Take, new_lab: Lab) -> None:
    root = new_lab()
    file = root / "stacks" / "Pulumi.lab.yaml"
    sources = "    image_sources: [us-docker.pkg.dev/example-lab/images/]\n    clusters:\n"
    file.write_text(file.read_text().replace("    clusters:\n", sources, 1))
    workspace = read_workspace(root)

    (finding,) = gke_findings(take(gpu("h100", "nodes: 1"), workspace=workspace))
    assert (finding.rule, finding.path, finding.allowed) == (
        "job-image-source", "image", "images of us-docker.pkg.dev/example-lab/images/"
    )  # fmt: skip
    named = "image: us-docker.pkg.dev/example-lab/images/train:1\nenvironment: lab\n" + gpu("h100", "nodes: 1")
    assert gke_findings(take(named, workspace=workspace)) == []


DIGEST = f"@sha256:{'5e' * 32}"


@pytest.mark.parametrize(
    ("image", "count"),
    [
        ("train:latest", 1),
        ("train", 1),
        ("registry:5000/train", 1),
        ("registry:5000/train:latest", 1),
        ("train:1", 0),
        (f"train{DIGEST}", 0),
        (f"train:latest{DIGEST}", 0),
        ("us-docker.pkg.dev/vertex-ai/training/pytorch-gpu.2-4.py310:latest", 0),
    ],
)
def test_an_image_has_a_version(take: Take, image: str, count: int) -> None:
    job = take(f"image: {image}\nenvironment: lab\n" + gpu("h100", "nodes: 1"))

    tags = [finding for finding in job_findings(job) if finding.rule == "job-image-tag"]
    assert [(finding.severity, finding.path) for finding in tags] == [("warning", "image")] * count


@pytest.mark.parametrize(
    ("variable", "reported"),
    [
        ("HF: hf_abcdefghijklmnop", True),
        ("WANDB_API_KEY: abc123", True),
        ("API_TOKEN: /run/token", False),
        ("USE_TOKEN: 'true'", False),
        ("MODE: abc123", False),
    ],
)
def test_a_secret_in_a_plain_variable_is_found(take: Take, variable: str, reported: bool) -> None:
    job = take(f"env: {{{variable}}}\n" + gpu("h100", "nodes: 1"))

    paths = [finding.path for finding in job_findings(job) if finding.rule == "job-secret"]
    assert paths == [f"env.{variable.partition(':')[0]}"] * reported


@pytest.mark.parametrize(
    ("images", "pulled"),
    [
        ("{location: us}", "us"),
        ("{location: europe, caches: [us, us-central1]}", "us"),
        ("{location: europe, caches: [us-west4, us-central1]}", "us-central1"),
        ("{location: europe, caches: [asia]}", "europe"),
    ],
)
def test_nodes_pull_from_the_location_that_serves_them(take: Take, new_lab: Lab, images: str, pulled: str) -> None:
    root = new_lab(lab=ENVIRONMENT.replace("    labels:", f"    images: {images}\n    labels:", 1))
    location_match = re.search("location: ([a-z]+)", images)
    assert location_match is not None
    image_path = "docker.pkg.dev/example-lab/lab-images/train:1"
    for name, expected in (
        (f"{location_match[1]}-{image_path}", f"{pulled}-{image_path}"),
        ("ghcr.io/train:1", "ghcr.io/train:1"),
    ):
        job = take(f"image: {name}\nenvironment: lab\n" + gpu("h100", "nodes: 1"), workspace=read_workspace(root))

        assert container(job)["image"] == expected


ONE_GPU = gpu("a100-40", "gpus: 1")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("command: [python train.py --lr 3e-4]", ("job-words", "error", "command[0]", None)),
        ("command: [python, train.py, --out=$OUTPUT_URI/x]", ("job-words", "warning", "command[2]", "$(OUTPUT_URI)")),
        ("args: [--rank, '${NODE_RANK}']", ("job-words", "warning", "args[1]", "$(NODE_RANK)")),
        ("args: [--rank=$SLURM_PROCID]", ("job-words", "warning", "args[0]", None)),
        ("command: [sh, -c, 'cd src && srun python train.py']", ("job-launcher", "warning", "command[0]", "torchrun")),
        ("output: checkpoints\ncommand: [torchrun, a.py]", ("job-output", "note", "output", None)),
        ("mounts: [{name: a, source: {bucket: far}, path: /usr}]", ("job-mount", "warning", "mounts[0].path", None)),
        ("output: checkpoints\ntensorboard: true", ("job-tensorboard", "warning", "tensorboard", None)),
        ("sweep: {parameters: {lr: {values: [1, 2]}, b: {values: [1, 2]}}}", ("job-sweep", "note", "sweep", None)),
    ],
)
def test_settings_that_break_a_program_are_found(
    verdict: Judge, text: str, expected: tuple[str, str, str, str | None]
) -> None:
    findings = verdict(f"{text}\n{ONE_GPU}", "gke").findings

    rows = [(row.rule, row.severity, row.path, row.nearest) for row in findings if row.rule != "job-bucket-region"]
    assert set(rows) == {expected}


@pytest.mark.parametrize(
    "text",
    [
        "command: [bash, -c, 'python train.py --out $OUTPUT_URI']",
        "command: [/bin/sh, -c]\nargs: [python train.py $OUTPUT_URI]",
        "command: [/opt/my tools/train]",
        "command: [python, train.py]\nargs: [--out=$(OUTPUT_URI), --price=$5, '$$HOME', 'lr=${model.lr}']",
        "mounts: [{name: a, source: {bucket: checkpoints}, path: /usr/data}]",
        "output: checkpoints\nmounts: [{name: a, source: {bucket: checkpoints}}]\ncommand: [torchrun, a.py]",
        "output: checkpoints\ncommand: [python, a.py]",
    ],
)
def test_variables_that_a_shell_or_kubernetes_expands_are_valid(verdict: Judge, text: str) -> None:
    assert verdict(f"{text}\n{ONE_GPU}", "gke").findings == ()


@pytest.mark.parametrize(("values", "severity"), [(100, "note"), (101, "warning")])
def test_a_sweep_of_many_runs_is_a_warning(verdict: Judge, values: int, severity: str) -> None:
    text = f"sweep: {{parameters: {{seed: {{values: {list(range(values))}}}}}}}\n{ONE_GPU}"

    finding, at_once = sorted(verdict(text, "gke").findings, key=lambda row: "at once" in row.message)

    assert (finding.severity, finding.message.split()[1]) == (severity, str(values))
    assert at_once.message.endswith("at most 16 at the same time")  # of one GPU each, on 16


def test_a_job_on_some_gpus_that_asks_for_more_than_a_vm_is_told_its_part(take: Take) -> None:
    target = gpu("h100", "gpus: 2")
    (finding,) = (row for row in gke_findings(take("disk_gib: 50000\n" + target)) if row.path == "disk_gib")
    (too_much,) = (row for row in gke_findings(take("disk_gib: 2000\n" + target)) if row.path == "disk_gib")

    assert (finding.rule, too_much.rule) == ("job-machine", "job-part")
    assert finding.nearest == too_much.nearest


def test_a_cache_of_a_bucket_fits_the_disk(take: Take) -> None:
    def cache_findings(target: str, *sizes: int) -> list[tuple[str, str, str | None, bool]]:
        mounts = [f"{{name: m{size}, source: {{bucket: checkpoints}}, file_cache_gib: {size}}}" for size in sizes]
        findings = gke_findings(take(f"mounts: [{', '.join(mounts)}]\n{target}"))
        rows = [row for row in findings if row.rule == "job-file-cache"]
        return [(row.severity, row.path, row.nearest, "for this job" in row.message) for row in rows]

    whole = usable_disk_gib(on_gke(take(gpu("a100-40", "nodes: 1"))).pool)
    half = gpu("h100", "gpus: 4")
    part = int(cache_findings(half, 10_000)[0][2] or 0)
    path = "mounts[1].file_cache_gib"

    assert cache_findings(gpu("a100-40", "nodes: 1"), whole) == []
    assert cache_findings(gpu("a100-40", "nodes: 1"), 1, whole) == [("error", path, str(whole), False)]
    assert cache_findings(half, part) == []
    assert cache_findings(half, 1, part) == [("warning", path, str(part), True)]


POOLS = """\
          queue:
            {machine_type: a3-highgpu-8g, zone: us-central1-a, capacity: queued-provisioning, max_run_hours: 48,
             max_nodes: 2}
          classed: {machine_type: a3-highgpu-8g, zone: us-central1-a, max_nodes: 2}
          flexible: {machine_type: a3-highgpu-8g, zone: us-central1-a, capacity: flex-start, max_run_hours: 24,
                     max_nodes: 2}
"""
CLASSES = "        compute_classes: {best: {priorities: [{node_pools: [classed]}]}}\n"
SHARES = """\
        h100-queued-provisioning: {nominal_quota: 16}
        class-best: {nominal_quota: 16}
        h100-flex-start: {nominal_quota: 16}
"""


@pytest.fixture
def workspace(new_lab: Lab) -> Workspace:
    root = new_lab()
    insert(root / "stacks" / "Pulumi.lab.yaml", "          h100:", POOLS)
    insert(root / "stacks" / "Pulumi.lab.yaml", "        subnet: {nodes: 10.11.0.0/20,", CLASSES)
    insert(root / "stacks" / "Pulumi.lab-vision.yaml", "        h100:", SHARES)
    return read_workspace(root)


@pytest.fixture
def job(take: Take, workspace: Workspace) -> Callable[[str], ResolvedJob]:
    return lambda target: take(f"gke: {{cluster: gpus, {target}}}", workspace=workspace)


def test_a_queued_job_says_how_long_it_needs_its_vms(job: Callable[[str], ResolvedJob]) -> None:
    queued = job("flavor: h100-queued-provisioning, nodes: 2, max_run_hours: 12")

    assert jobset(queued)["metadata"]["annotations"] == {"provreq.kueue.x-k8s.io/maxRunDurationSeconds": str(12 * 3600)}
    assert pod(queued)["nodeSelector"]["cloud.google.com/gke-queued"] == "true"
    assert {"nvidia.com/gpu", "cloud.google.com/gke-queued"} == {
        toleration["key"] for toleration in pod(queued)["tolerations"]
    }


def test_a_queued_job_without_a_time_asks_for_the_pools(job: Callable[[str], ResolvedJob]) -> None:
    annotations = jobset(job("flavor: h100-queued-provisioning, nodes: 2"))["metadata"]["annotations"]

    assert annotations == {"provreq.kueue.x-k8s.io/maxRunDurationSeconds": str(48 * 3600)}


@pytest.mark.parametrize("target_fields", ["", ", max_run_hours: 3"])
def test_a_job_on_other_flavors_says_no_time_to_gke(job: Callable[[str], ResolvedJob], target_fields: str) -> None:
    assert "annotations" not in jobset(job(f"flavor: class-best, nodes: 2{target_fields}"))["metadata"]


def test_a_job_of_a_class_selects_the_class_and_no_pool(job: Callable[[str], ResolvedJob]) -> None:
    spec = pod(job("flavor: class-best, nodes: 2"))

    assert spec["nodeSelector"] == {"cloud.google.com/compute-class": "best"}
    assert {toleration["key"]: toleration["value"] for toleration in spec["tolerations"]} == {
        "cloud.google.com/compute-class": "best",
        "nvidia.com/gpu": "present",
    }


@pytest.mark.parametrize(
    ("target", "nearest"),
    [
        ("flavor: h100-queued-provisioning, nodes: 2, max_run_hours: 48", []),
        ("flavor: h100-queued-provisioning, nodes: 2, max_run_hours: 49", ["48"]),
        ("flavor: h100-flex-start, nodes: 2, max_run_hours: 24", []),
        ("flavor: h100-flex-start, nodes: 2, max_run_hours: 25", ["24"]),
        ("flavor: class-best, nodes: 2, max_run_hours: 100", []),
        ("flavor: class-best, nodes: 2", []),
    ],
)
def test_a_run_is_no_longer_than_its_vms_live(
    job: Callable[[str], ResolvedJob], target: str, nearest: list[str | None]
) -> None:
    findings = [finding for finding in gke_findings(job(target)) if finding.rule == "job-run-time"]

    assert [finding.nearest for finding in findings] == nearest
    assert all(finding.path == "gke.max_run_hours" for finding in findings)


def test_a_run_that_outlasts_its_flex_start_vms_is_a_warning(job: Callable[[str], ResolvedJob]) -> None:
    flexible, queued = (
        f"flavor: h100-{way}, nodes: 2, max_run_hours: 49" for way in ("flex-start", "queued-provisioning")
    )

    assert [finding.severity for finding in gke_findings(job(flexible))] == ["warning"]
    assert [finding.severity for finding in gke_findings(job(queued))] == ["error"]


@pytest.mark.parametrize(("target_fields", "hours"), [("", 24), (", max_run_hours: 3", 3), (", max_run_hours: 30", 30)])
def test_the_cost_of_a_run_on_flex_start_ends_with_its_vms(
    job: Callable[[str], ResolvedJob], target_fields: str, hours: int
) -> None:
    assert job_cost(job(f"flavor: h100-flex-start, nodes: 2{target_fields}"), "gke").hours == hours


def test_a_path_below_gcs_is_of_a_bucket_that_the_job_mounts(verdict: Judge) -> None:
    (misspelt,) = verdict(f"args: [/gcs/example-lab-lab-vision-chekpoints/x]\n{ONE_GPU}", "gke").findings
    (unmounted,) = verdict(f"args: [/gcs/example-far/x]\n{ONE_GPU}", "gke").findings

    assert misspelt.nearest == "/gcs/example-lab-lab-vision-checkpoints/x"
    assert unmounted.message.startswith("/gcs/example-far is a folder only on Vertex AI")


def test_a_run_is_no_longer_than_its_team_may_run(take: Take) -> None:
    job = take(gpu("h100", "nodes: 1, max_run_hours: 49"))

    def nearest(hours: int) -> list[str | None]:
        limited = with_team(job, max_run_hours=hours)
        return [finding.nearest for finding in gke_findings(limited) if finding.rule == "job-run-time"]

    assert (nearest(48), nearest(49)) == (["48"], [])


JOB = """
mounts: [{name: data, source: {data_set: SET}}]
command: [python, train.py]
gke: {cluster: gpus, flavor: h100, nodes: 1}
vertex: {region: us-central1, machine_type: a2-highgpu-1g, boot_disk: {type: pd-ssd}}
"""
PLACES = {"images": "/gcs/example-images/food101", "files": "/mnt/nfs/data", "fast": "/mnt/lustre/data"}


def findings(take: Take, data_set: str, region: str = "us-central1", *, vertex: bool = False) -> list[Any]:
    return located(data_set_findings(take(JOB.replace("SET", data_set)), region, vertex=vertex))


@pytest.mark.parametrize("data_set", [*PLACES, "disk"])
def test_a_pod_mounts_the_claim_of_the_data_set_and_reads_it_only(take: Take, data_set: str) -> None:
    pod_volumes = volumes(on_gke(take(JOB.replace("SET", data_set))), chips=1)
    mine = data_set == "files"  # team vision fills it

    expected: dict[str, Any] = {"claimName": f"data-set.{data_set}"}
    if not mine:
        expected["readOnly"] = True
    assert pod_volumes.volumes[0]["persistentVolumeClaim"] == expected
    assert pod_volumes.mounts[0].get("readOnly", False) is not mine
    assert ("gke-gcsfuse/volumes" in pod_volumes.annotations) is (data_set == "images")


@pytest.mark.parametrize(("data_set", "path"), PLACES.items())
def test_one_variable_says_where_it_is_on_both_targets(take: Take, data_set: str, path: str) -> None:
    job = take(JOB.replace("SET", data_set))

    assert mount_variables(job)["MOUNT_DATA"] == path
    assert mount_variables(job)[data_variable(data_set)] == path  # as in notebooks
    assert volumes(on_gke(job), chips=1).mounts[0]["mountPath"] == path


def test_vertex_ai_is_given_addresses_of_file_shares_and_lustre(take: Take) -> None:
    (files,) = worker_pools(job := take(JOB.replace("SET", "files")), vertex_target(job))
    (fast,) = worker_pools(job := take(JOB.replace("SET", "fast")), vertex_target(job))

    assert (files["nfsMounts"][0]["path"], files["nfsMounts"][0]["mountPoint"]) == ("/share/food101", "data")
    assert fast["lustreMounts"] == [
        {
            "instanceIp": "10.90.0.2", "volumeHandle": "example-lab/us-central1-a/one", "filesystem": "lustre",
            "mountPoint": "data",
        }
    ]  # fmt: skip


def test_the_address_of_the_environment_s_own_lustre_is_left_to_the_submission(take: Take) -> None:
    (worker_pool,) = worker_pools(job := take(JOB.replace("SET", "own")), vertex_target(job))

    assert worker_pool["lustreMounts"] == [
        {
            "instanceIp": "{lustre:example-lab/us-central1-a/lab-scratch}", "filesystem": "own",
            "volumeHandle": "example-lab/us-central1-a/lab-scratch", "mountPoint": "data",
        }
    ]  # fmt: skip
    assert {reference.kind for reference in references(worker_pool)} == {"lustre"}


@pytest.mark.parametrize("data_set", ["images", "files", "disk", "fast"])
def test_data_in_the_jobs_region_is_mounted_without_findings(take: Take, data_set: str) -> None:
    assert findings(take, data_set) == []


def test_a_bucket_of_another_region_is_a_warning_that_names_what_each_pass_sends(take: Take) -> None:
    (finding,) = findings(take, "far")

    assert (finding.rule, finding.severity, finding.path) == (
        "job-data-set-region", "warning", "mounts[0].source.data_set",
    )  # fmt: skip
    assert "each pass over it sends 5 GiB between regions" in finding.message
    assert finding.position is not None


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("output: far", "output"),
        ("mounts: [{name: weights, source: {bucket: far}}]", "mounts[0].source.bucket"),
    ],
)
def test_a_bucket_of_another_region_is_a_warning_with_the_price_of_its_traffic(
    take: Take, line: str, path: str
) -> None:
    job = take(f"{line}\ngke: {{cluster: gpus, flavor: h100, nodes: 1}}")

    (finding,) = located(bucket_findings(job, "us-central1"))

    assert (finding.rule, finding.severity, finding.path) == ("job-bucket-region", "warning", path)
    assert "about 0.02 USD" in finding.message
    assert finding.nearest in job.team.buckets
    assert job.team.buckets[finding.nearest].location == "us-central1"
    assert list(bucket_findings(job, "europe-west4")) == []
    assert finding in gke_findings(job)


@pytest.mark.parametrize("data_set", ["files", "disk", "fast"])
def test_a_volume_of_another_region_is_an_error_that_names_nearer_ones(take: Take, data_set: str) -> None:
    (finding,) = findings(take, data_set, region="europe-west4")

    assert (finding.severity, finding.allowed) == ("error", "far")


def test_the_rules_of_gke_look_at_the_zones_of_the_flavor(take: Take) -> None:
    job = take(JOB.replace("SET", "disk").partition("vertex:")[0])

    assert "job-data-set" not in [finding.rule for finding in gke_findings(job)]
    assert "job-data-set" in [finding.rule for finding in gke_findings(with_pool(job, zone="us-central1-b"))]


def test_vertex_ai_mounts_no_hyperdisk(take: Take) -> None:
    (finding,) = findings(take, "disk", vertex=True)

    assert "which Vertex AI does not mount" in finding.message


def test_a_disk_that_is_being_filled_is_only_for_its_writer(take: Take) -> None:
    (finding,) = findings(take, "empty")

    assert "is not filled yet: only its writer, team nlp, may mount it" in finding.message


def test_a_data_set_of_other_teams_is_unknown_to_this_one(read: Read) -> None:
    job, (finding,) = read(JOB.replace("SET", "theirs"))

    assert job is None
    assert "'theirs' is not a data set for members of team vision" in finding.message
    assert "images" in (finding.allowed or "")


ALL = "gke: {cluster: gpus, flavor: h100, nodes: "


@pytest.mark.parametrize(
    ("nodes", "gpus", "expected"),
    [
        (1, 1, []),
        (1, 8, []),
        (1, 9, [("job-part", "error", "gke.gpus", "8")]),
        (2, 8, []),
        (2, 7, [("job-part", "error", "gke.gpus", "8")]),
    ],
)
def test_gpus_of_a_vm_are_at_most_its_own_and_all_with_gpudirect(
    take: Take, nodes: int, gpus: int, expected: list[tuple[str, str, str, str]]
) -> None:
    job = take(f"{ALL}{nodes}, gpus: {gpus}}}")

    rows = [(finding.rule, finding.severity, finding.path, finding.nearest) for finding in gke_findings(job)]
    assert [row for row in rows if row[0] == "job-part"] == expected


def test_a_part_of_queued_vms_leaves_the_rest_idle(take: Take, new_lab: Lab) -> None:
    queued = "capacity: queued-provisioning, zone: us-central1-a, max_nodes: 8}"
    root = new_lab(
        lab=ENVIRONMENT.replace("a3-highgpu-8g, zone: us-central1-a, max_nodes: 8}", f"a3-highgpu-8g, {queued}"),
        lab_vision=VISION.replace("        h100:", "        h100-queued-provisioning:"),
        lab_nlp=NLP.replace("        h100:", "        h100-queued-provisioning:"),
    )
    text = gpu("h100-queued-provisioning", "nodes: 1, gpus: 1")
    job = take(text, workspace=read_workspace(root))

    assert [(finding.rule, finding.severity) for finding in gke_findings(job)] == [("job-part", "warning")]


def test_quota_and_pools_are_counted_in_the_gpus_of_each_vm(take: Take) -> None:
    two = take("gke: {cluster: gpus, flavor: a100-40, nodes: 9, gpus: 2}")  # 2 VMs of 4 hold 4 pods, the others none

    rows = {finding.rule: finding for finding in gke_findings(two)}

    assert on_gke(two).demand == 9 * 2
    assert rows["job-fits-pools"].nearest == str(2 * (4 // 2))
    assert "job-fits-share" not in rows  # 8 fit it, more than the pools hold
    assert container(two)["resources"]["requests"]["nvidia.com/gpu"] == "2"
    assert {"name": "PET_NPROC_PER_NODE", "value": "2"} in container(two)["env"]


def test_a_part_of_a_vm_costs_that_part(take: Take) -> None:
    whole, part = (job_cost(take(f"{ALL}1{gpus}}}"), "gke") for gpus in ("", ", gpus: 2"))

    assert part.an_hour["spot"].maximum == pytest.approx(whole.an_hour["spot"].maximum * 2 / 8)
    assert "1 x a3-highgpu-8g, 2 of 8 GPUs each" in cost_text(part)
    assert "each" not in cost_text(whole)


@pytest.mark.parametrize(
    ("fields", "field", "idle"),
    [
        ("memory_gib: 73\n", "memory_gib", 0),
        ("memory_gib: 75\n", "memory_gib", 1),
        ("cpu: 40\n", "cpu", 3),
        ("disk_gib: 30\n", "disk_gib", 3),
    ],
)
def test_gpus_that_stand_idle_beside_a_large_job_are_counted(take: Take, fields: str, field: str, idle: int) -> None:
    findings = gke_findings(take(f"{fields}gke: {{cluster: gpus, flavor: a100-40, gpus: 1}}"))

    assert [(row.rule, row.path, row.severity) for row in findings] == [("job-part", field, "warning")] * bool(idle)
    assert all(f"{idle} of the 3 other GPUs of its VM stay idle" in row.message for row in findings)


def test_more_gpus_than_a_vm_has_are_so_many_vms(take: Take) -> None:
    (finding,) = gke_findings(take("gke: {cluster: gpus, flavor: h100, nodes: 1, gpus: 16}"))

    assert finding.rule == "job-part"
    assert finding.allowed == "at most 8; for 16 in total: nodes: 2, without gpus"


@pytest.mark.parametrize(
    ("fields", "path", "answer"),
    [
        ("command: [bash, -c, pip install torch && python train.py]\n", "command", "PIP_INDEX_URL under env"),
        ("command: [a]\nargs: [--model=google/gemma-3-27b-it]\n", "args", "transfer.xethub.hf.co"),
        ("command: [a]\nargs: [--data, 'https://data.example.org/a.tar']\n", "args", "data.example.org"),
        ("env: {PROXY: 'http://proxy.example.com:3128'}\n", "env.PROXY", "proxy.example.com"),
        ("command: [a]\nargs: [--model=/mnt/models/gemma, --data=gs://bucket/a]\n", None, ""),
        ("command: [a]\nargs: ['https://storage.googleapis.com/a', --model=a/b/c]\n", None, ""),
        ("command: [pip, install, --no-index, wheels]\n", None, ""),
    ],
)
def test_a_host_that_egress_does_not_allow_is_found(take: Take, fields: str, path: str | None, answer: str) -> None:
    findings = [row for row in gke_findings(take(fields + gpu("a100-40", "nodes: 1"))) if row.rule == "job-egress"]

    assert [(row.path, row.severity) for row in findings] == ([(path, "warning")] if path else [])
    assert all(answer in str(row.allowed) for row in findings)


@pytest.mark.parametrize(
    ("egress", "closed"),
    [
        ([{"host": "*.example.org"}], ["example.org", "eu.data.example.org"]),
        ([{"host": "example.org"}], ["data.example.org", "eu.data.example.org"]),
        ([{"host": "example.org"}, {"host": "*.example.org"}, {"host": "*.data.example.org"}], []),
        ([{"cidr": "203.0.113.0/24"}], []),
    ],
)
def test_a_host_is_open_by_its_name_or_by_a_wildcard_for_one_label(
    take: Take, egress: list[dict[str, str]], closed: list[str]
) -> None:
    hosts = ("example.org", "data.example.org", "eu.data.example.org")
    addresses = [f"https://{host}/a" for host in hosts]
    job = take(f"args: {addresses}\n" + gpu("a100-40", "nodes: 1"))

    findings = gke_findings(with_team(job, egress=tuple(map(Destination.model_validate, egress))))

    rows = ", ".join(f"{{host: {host}}}" for host in closed)
    allowed = [str(row.allowed) for row in findings if row.rule == "job-egress"]
    assert [text.partition(" in the team's")[0] for text in allowed] == ([f"egress: [{rows}]"] if closed else [])


@pytest.mark.parametrize(
    ("env", "command", "rule"),
    [
        ("{}", "pip install torch", "job-egress"),
        ("{PIP_INDEX_URL: 'https://packages.example.org/simple'}", "pip install torch", None),
        ("{PIP_INDEX_URL: 'https://packages.example.com/simple'}", "pip install torch", "job-egress"),
        ("{}", "pip install --index" + "-url https://packages.example.org/simple torch", None),
        ("{UV_DEFAULT_INDEX: 'https://packages.example.org/simple'}", "uv pip install torch", None),
    ],
)
def test_an_open_host_is_the_package_index_only_of_a_job_that_names_it(
    take: Take, env: str, command: str, rule: str | None
) -> None:
    job = take(f"env: {env}\ncommand: [bash, -c, {command}]\n" + gpu("a100-40", "nodes: 1"))
    opened = Destination(host="packages.example.org")

    findings = gke_findings(with_team(job, egress=(opened,)))

    assert [row.rule for row in findings if row.rule == "job-egress"] == ([rule] if rule else [])


@pytest.mark.parametrize(
    ("source", "path"),
    [
        ("{file: train.py, requirements: [torch]}", "source.requirements"),
        ("{package: src, module: train}", "source.package"),
        ("{file: train.py}", None),
    ],
)
def test_packages_of_source_need_an_index_or_the_environments_repository(
    take: Take, new_lab: Lab, source: str, path: str | None
) -> None:
    root = new_lab()
    (root / "src").mkdir()
    for name in ("train.py", "src/pyproject.toml"):
        (root / name).write_text("")
    text = f"environment: lab\nsource: {source}\noutput: checkpoints\n{gpu('h100', 'nodes: 1')}"
    job = take(text, workspace=read_workspace(root))
    environment = job.environment.model_copy(update={"python_repository": "us"})
    with_repository = dataclasses.replace(job, environment=environment)

    assert [row.path for row in gke_findings(job) if row.rule == "job-egress"] == ([path] if path else [])
    assert [row.path for row in gke_findings(with_repository) if row.rule == "job-egress"] == []


def test_vms_whose_domain_no_pod_reaches_are_best_used_one_at_a_time(take: Take) -> None:
    job = with_pool(take(gpu("a100-40", "nodes: 2")), machine=MACHINE_TYPES["a4x-maxgpu-4g-metal"])

    findings = [row for row in gke_findings(job) if row.rule == "job-flavor-networks"]

    assert [(row.path, row.severity, row.nearest) for row in findings] == [("gke.nodes", "warning", "1")]


@pytest.mark.parametrize(
    ("text", "note"),
    [
        (gpu("h100", "nodes: 1"), "without a time limit (max_run_hours)"),
        (gpu("h100", "nodes: 1, max_run_hours: 3"), "at most 3 hours (max_run_hours"),
    ],
)
def test_a_job_says_how_long_it_may_run(verdict: Judge, text: str, note: str) -> None:
    assert note in verdict(text, "gke").notes[-1]
