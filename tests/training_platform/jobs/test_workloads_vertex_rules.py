from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest

from training_platform.config.model.team import RaySpec, ResourcePoolSpec
from training_platform.config.reading.finding import Finding
from training_platform.jobs.resolve import ResolvedJob
from training_platform.jobs.vertex.custom_job import custom_job_spec
from training_platform.jobs.vertex.rules import vertex_findings

Take = Callable[..., ResolvedJob]
H100 = "region: us-central1, machine_type: a3-highgpu-8g"
N1 = "region: us-central1, machine_type: n1-standard-8"
CPU = "region: us-central1, machine_type: n2-standard-8"
TPU = "region: us-west4, machine_type: ct5lp-hightpu-4t"
TUNING = "region: us-central1, machine_type: a2-highgpu-1g, persistent_resource: tuning, boot_disk: {size_gb: 200}"


def found(take: Take, target: str, rest: str = "") -> list[Finding]:
    return vertex_findings(take(f"{rest}vertex: {{{target}}}"))


@pytest.mark.parametrize(
    "target",
    [
        H100,
        f"{H100}, replicas: 64",
        f"{H100}, capacity: flex-start, timeout_hours: 168, max_wait_hours: 0",
        f"{H100}, capacity: spot, timeout_hours: 169",
        f"{CPU}, capacity: spot",
        f"{N1}, accelerator: t4",
        f"{N1}, accelerator: v100, accelerator_count: 8, capacity: spot",
        f"{TPU}, topology: 4x8",
        f"{TPU}, topology: 2x2, capacity: spot",
        f"{TUNING}, replicas: 4",
        f"{H100}, boot_disk: {{size_gb: 64000}}",
        f"{H100}, boot_disk: {{type: pd-ssd, size_gb: 100}}",
    ],
)
def test_a_right_job_has_no_findings(take: Take, target: str) -> None:
    assert found(take, target) == []


@pytest.mark.parametrize(
    ("target", "rule", "path", "allowed", "nearest"),
    [
        ("region: us-central2, machine_type: ct4p-hightpu-4t", "job-vertex-machine", "machine_type", "a2-", "ct5lp-"),
        (
            "region: us-west4, machine_type: n2d-standard-8",
            "job-vertex-machine",
            "machine_type",
            "a2-",
            "n2-standard-8",
        ),
        (f"{N1}, accelerator: t4, accelerator_count: 3", "job-vertex-accelerator", "accelerator_count", "1, 2, 4", "2"),
        (f"{CPU}, accelerator: t4", "job-vertex-accelerator", "accelerator", "an N1 machine type", None),
        (f"{N1}, accelerator: t4, capacity: flex-start", "job-vertex-capacity", "capacity", "on-demand", None),
        (
            f"{N1}, accelerator: t4, persistent_resource: tuning, boot_disk: {{size_gb: 200}}",
            "job-vertex-resource",
            "machine_type",
            "a2-highgpu-1g",
            "a2-highgpu-1g",
        ),
        (TPU, "job-vertex-topology", "topology", "2x2, 2x4, 4x4", "2x2"),
        (f"{TPU}, topology: 8x4", "job-vertex-topology", "topology", "2x2, 2x4, 4x4", "4x8"),
        (f"{TPU}, topology: round", "job-vertex-topology", "topology", "2x2, 2x4, 4x4", None),
        (f"{H100}, topology: 4x8", "job-vertex-topology", "topology", "none", None),
        (f"{TPU}, topology: 4x8, replicas: 8", "job-vertex-replicas", "replicas", "1", "1"),
        (f"{TPU}, topology: 4x8, capacity: spot", "job-vertex-capacity", "capacity", "on-demand", "on-demand"),
        (f"{TPU}, topology: 4x8, capacity: flex-start", "job-vertex-capacity", "capacity", "on-demand, spot", "spot"),
        (f"{CPU}, capacity: flex-start", "job-vertex-capacity", "capacity", "on-demand, spot", "spot"),
        (
            f"{H100}, capacity: flex-start, timeout_hours: 169",
            "job-vertex-timeout",
            "timeout_hours",
            "at most 168",
            "168",
        ),
        (f"{H100}, max_wait_hours: 0", "job-vertex-wait", "max_wait_hours", "no max_wait_hours", None),
        (f"{H100}, capacity: spot, max_wait_hours: 1", "job-vertex-wait", "max_wait_hours", "no max_wait_hours", None),
        (f"{H100}, boot_disk: {{size_gb: 99}}", "vertex-boot-disk-size", "boot_disk.size_gb", "100 to 64,000", "100"),
        (
            f"{H100}, boot_disk: {{size_gb: 64001}}",
            "vertex-boot-disk-size",
            "boot_disk.size_gb",
            "100 to 64,000",
            "64000",
        ),
        (f"{H100}, boot_disk: {{type: pd-balanced}}", "vertex-boot-disk-type", "boot_disk.type", "pd-ssd", None),
        (f"{TUNING}, replicas: 5", "job-vertex-resource", "replicas", "at most 4", "4"),
        (f"{TUNING}, capacity: spot", "job-vertex-resource", "capacity", "on-demand", "on-demand"),
        (f"{TUNING}, capacity: flex-start", "job-vertex-resource", "capacity", "on-demand", "on-demand"),
        (TUNING.replace("200", "201"), "job-vertex-resource", "boot_disk.size_gb", "200", "200"),
        (TUNING.replace("-1g", "-2g"), "job-vertex-resource", "machine_type", "a2-highgpu-1g", "a2-highgpu-1g"),
        (TUNING.replace("us-central1", "europe-west4"), "job-vertex-resource", "region", "us-central1", "us-central1"),
        (
            TUNING.replace("size_gb: 200", "size_gb: 200, type: pd-standard"),
            "job-vertex-resource",
            "boot_disk.type",
            "pd-ssd",
            "pd-ssd",
        ),
    ],
)
def test_one_spoiled_value_is_one_error_at_its_place(
    take: Take, *, target: str, rule: str, path: str, allowed: str, nearest: str | None
) -> None:
    (finding,) = found(take, target)

    assert (finding.rule, finding.severity, finding.path) == (rule, "error", f"vertex.{path}")
    assert finding.position is not None
    assert finding.position.line == 3
    assert allowed in (finding.allowed or "")
    assert nearest is None or (finding.nearest or "").startswith(nearest)


def test_a_region_that_is_not_listed_is_a_warning(take: Take) -> None:
    (finding,) = found(take, H100.replace("us-central1", "me-west1"))

    assert (finding.rule, finding.severity, finding.path) == ("vertex-region", "warning", "vertex.region")
    assert "us-central1" in (finding.allowed or "")


def test_all_that_is_wrong_comes_at_once(take: Take) -> None:
    target = f"{TPU}, topology: 4x9, replicas: 2, capacity: flex-start, timeout_hours: 200, boot_disk: {{size_gb: 1}}"

    assert sorted(finding.path for finding in found(take, target)) == [
        "vertex.boot_disk.size_gb",
        "vertex.capacity",
        "vertex.replicas",
        "vertex.timeout_hours",
        "vertex.topology",
    ]


@pytest.mark.parametrize(("own", "findings"), [(99, []), (100, ["env"])])
def test_a_container_has_100_variables_at_most_with_that_of_the_output(
    take: Take, own: int, findings: list[str]
) -> None:
    variables = ", ".join(f"V{index}: a" for index in range(own))

    rest = f"output: checkpoints\nenv: {{{variables}}}\n"

    assert [finding.path for finding in found(take, H100, rest)] == findings


@pytest.mark.parametrize(("length", "findings"), [(50_000, []), (50_001, ["args"])])
def test_arguments_have_100000_characters_at_most(take: Take, length: int, findings: list[str]) -> None:
    rest = f"args: [{'a' * 50_000}, {'b' * length}]\n"

    assert [finding.path for finding in found(take, H100, rest)] == findings


def test_a_bucket_in_another_region_is_a_warning_with_one_that_is_near(take: Take) -> None:
    assert found(take, H100, "output: checkpoints\n") == []

    (finding,) = found(take, H100, "output: far\n")

    assert (finding.rule, finding.severity, finding.path) == ("job-vertex-output", "warning", "output")
    assert (finding.allowed, finding.nearest) == ("a bucket in us-central1: checkpoints", "checkpoints")


ATTACHMENT = "network_attachment: projects/example-lab/regions/us-central1/networkAttachments/vertex"


def with_servers(job: ResolvedJob) -> ResolvedJob:
    """Return a job whose team's persistent resource has a second pool, of at most two VMs."""
    servers = ResourcePoolSpec(machine_type="n2-standard-8", replicas=2)
    tuning = job.team.vertex.persistent_resources["tuning"].model_copy(update={"more_pools": {"servers": servers}})
    vertex = job.team.vertex.model_copy(update={"persistent_resources": {"tuning": tuning}})
    return dataclasses.replace(job, team=job.team.model_copy(update={"vertex": vertex}))


def test_a_job_runs_on_the_further_pools_of_a_persistent_resource(take: Take) -> None:
    small = "region: us-central1, machine_type: n2-standard-8, persistent_resource: tuning"

    def findings(target: str) -> list[tuple[str, str | None]]:
        job = with_servers(take(f"vertex: {{{target}}}"))
        return [(each.path, each.nearest) for each in vertex_findings(job)]

    assert findings(f"{small}, replicas: 2") == []
    assert findings(f"{small}, replicas: 3") == [("vertex.replicas", "2")]
    assert findings(f"{small}, boot_disk: {{size_gb: 200}}") == [("vertex.boot_disk.size_gb", "100")]


def test_a_job_does_not_run_on_a_ray_cluster(take: Take) -> None:
    job = take(f"vertex: {{{TUNING}}}")
    tuning = job.team.vertex.persistent_resources["tuning"].model_copy(update={"ray": RaySpec()})
    vertex = job.team.vertex.model_copy(update={"persistent_resources": {"tuning": tuning}})
    of_ray = dataclasses.replace(job, team=job.team.model_copy(update={"vertex": vertex}))

    (finding,) = vertex_findings(of_ray)

    assert (finding.rule, finding.path) == ("job-vertex-resource", "vertex.persistent_resource")
    assert "tuning is a Ray cluster, which runs only Ray jobs" in finding.message


def test_the_environment_s_attachment_is_the_same_by_its_name(take: Take) -> None:
    name = "projects/example-lab/regions/us-central1/networkAttachments/lab-vertex-us-central1"
    job = take(f"vertex: {{{TUNING}, network_attachment: environment}}")
    tuning = job.team.vertex.persistent_resources["tuning"].model_copy(update={"network_attachment": name})
    vertex = job.team.vertex.model_copy(update={"persistent_resources": {"tuning": tuning}})
    there = dataclasses.replace(job, team=job.team.model_copy(update={"vertex": vertex}))

    assert custom_job_spec(job)["pscInterfaceConfig"] == {"networkAttachment": name}
    assert [each.path for each in vertex_findings(job)] == ["vertex.network_attachment"]
    assert list(vertex_findings(there)) == []


@pytest.mark.parametrize(
    ("asked", "path"),
    [
        (ATTACHMENT, "vertex.network_attachment"),
        ("network: projects/123456/global/networks/train", "vertex.network"),
        (
            "kms_key: projects/example-lab/locations/us-central1/keyRings/train/cryptoKeys/train",
            "vertex.kms_key",
        ),
    ],
)
def test_a_job_has_the_network_and_the_key_of_its_persistent_resource(take: Take, asked: str, path: str) -> None:
    assert [(each.rule, each.path) for each in found(take, f"{TUNING}, {asked}")] == [("job-vertex-resource", path)]
