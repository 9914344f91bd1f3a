from __future__ import annotations

import dataclasses
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from tests.parts.jobs.lab import Judge, Lab, Read, Take, with_team
from tests.support.lab import TODAY
from training_platform.config.model.team import ResourcePoolSpec
from training_platform.config.reading.finding import Finding
from training_platform.config.reading.source import UnreadableError
from training_platform.config.workspace import read_workspace
from training_platform.parts.jobs.job_checks import Judgement, judge
from training_platform.parts.jobs.resolve import ResolvedJob
from training_platform.parts.jobs.vertex.custom_job import custom_job_spec
from training_platform.parts.jobs.vertex.rules import vertex_findings
from training_platform.parts.jobs.vertex.worker_pools import vertex_target

H100 = "region: us-central1, machine_type: a3-highgpu-8g"
N1 = "region: us-central1, machine_type: n1-standard-8"
CPU = "region: us-central1, machine_type: n2-standard-8"
TPU = "region: us-west4, machine_type: ct5lp-hightpu-4t"
KEY = "projects/example-keys/locations/us-central1/keyRings/training/cryptoKeys/data"
TUNING = "region: us-central1, machine_type: a2-highgpu-1g, persistent_resource: tuning, boot_disk: {size_gb: 200}"


def findings_for(take: Take, target: str, fields: str = "") -> list[Finding]:
    return vertex_findings(take(f"{fields}vertex: {{{target}}}"))


@pytest.mark.parametrize(
    "target",
    [
        H100,
        f"{H100}, replicas: 64",
        f"{H100}, capacity: flex-start, timeout_hours: 168, max_wait: 0s",
        f"{N1}, accelerator: t4",
        f"{N1}, accelerator: t4, accelerator_count: 4, capacity: spot",
        f"{TPU}, topology: 4x8",
        f"{TPU}, topology: 2x2, capacity: spot",
        f"{TUNING}, replicas: 4",
        f"{H100}, boot_disk: {{size_gb: 64000}}",
        f"{H100}, boot_disk: {{type: pd-ssd, size_gb: 100}}",
    ],
)
def test_a_valid_job_has_no_findings(take: Take, target: str) -> None:
    assert findings_for(take, target) == []


@pytest.mark.parametrize(
    ("target", "rule", "path", "allowed", "nearest"),
    [
        ("region: us-central2, machine_type: ct4p-hightpu-4t", "job-vertex-machine", "machine_type", "a2-", "ct5lp-"),
        (f"{N1}, accelerator: t4, accelerator_count: 3", "job-vertex-accelerator", "accelerator_count", "1, 2, 4", "2"),
        (f"{CPU}, accelerator: t4", "job-vertex-accelerator", "accelerator", "an N1 machine type", None),
        (f"{N1}, accelerator: t4, capacity: flex-start", "job-vertex-capacity", "capacity", "on-demand", None),
        (TPU, "job-vertex-topology", "topology", "2x2, 2x4, 4x4", "2x2"),
        (f"{TPU}, topology: 8x4", "job-vertex-topology", "topology", "2x2, 2x4, 4x4", "4x8"),
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
        (f"{H100}, max_wait: 0s", "job-vertex-wait", "max_wait", "no max_wait", None),
        (f"{H100}, capacity: spot, max_wait: 1h", "job-vertex-wait", "max_wait", "no max_wait", None),
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
def test_one_wrong_value_is_one_error_at_its_place(
    take: Take, *, target: str, rule: str, path: str, allowed: str, nearest: str | None
) -> None:
    (finding,) = findings_for(take, target)

    assert (finding.rule, finding.severity, finding.path) == (rule, "error", f"vertex.{path}")
    assert finding.position is not None
    assert finding.position.line == 3
    assert allowed in (finding.allowed or "")
    assert nearest is None or (finding.nearest or "").startswith(nearest)


def test_a_region_that_is_not_listed_is_a_warning(take: Take) -> None:
    (finding,) = findings_for(take, H100.replace("us-central1", "me-west1"))

    assert (finding.rule, finding.severity, finding.path) == ("vertex-region", "warning", "vertex.region")
    assert "us-central1" in (finding.allowed or "")


@pytest.mark.parametrize(("count", "findings"), [(99 - 12, []), (100 - 12, [("job-vertex-env", "env")])])
def test_a_container_has_100_variables_at_most_with_those_of_the_platform(
    take: Take, count: int, findings: list[tuple[str, str]]
) -> None:
    variables = ", ".join(f"V{index}: a" for index in range(count))

    fields = f"output: checkpoints\nenv: {{{variables}}}\n"

    assert [(finding.rule, finding.path) for finding in findings_for(take, H100, fields)] == findings


@pytest.mark.parametrize(("length", "findings"), [(50_000, []), (50_001, [("job-vertex-args", "args")])])
def test_arguments_have_100000_characters_at_most(take: Take, length: int, findings: list[tuple[str, str]]) -> None:
    fields = f"args: [{'a' * 50_000}, {'b' * length}]\n"

    assert [(finding.rule, finding.path) for finding in findings_for(take, H100, fields)] == findings


def test_a_bucket_in_another_region_is_a_warning_with_one_that_is_near(take: Take) -> None:
    assert findings_for(take, H100, "output: checkpoints\n") == []

    (finding,) = findings_for(take, H100, "output: far\n")

    assert (finding.rule, finding.severity, finding.path) == ("job-vertex-output", "warning", "output")
    assert (finding.allowed, finding.nearest) == ("a bucket in us-central1: checkpoints", "checkpoints")


ATTACHMENT = "network_attachment: projects/example-lab/regions/us-central1/networkAttachments/vertex"


def with_tuning(job: ResolvedJob, **changes: Any) -> ResolvedJob:
    """Return a job whose team's persistent resource has other fields."""
    tuning = job.team.vertex.persistent_resources["tuning"].model_copy(update=changes)
    return with_team(job, vertex=job.team.vertex.model_copy(update={"persistent_resources": {"tuning": tuning}}))


def test_a_job_runs_on_the_further_pools_of_a_persistent_resource(take: Take) -> None:
    small = "region: us-central1, machine_type: n2-standard-8, persistent_resource: tuning"
    servers = ResourcePoolSpec(machine_type="n2-standard-8", replicas=2)

    def findings(target: str) -> list[tuple[str, str | None]]:
        job = with_tuning(take(f"vertex: {{{target}}}"), more_pools={"servers": servers})
        return [(finding.path, finding.nearest) for finding in vertex_findings(job)]

    assert findings(f"{small}, replicas: 2") == []
    assert findings(f"{small}, replicas: 3") == [("vertex.replicas", "2")]
    assert findings(f"{small}, boot_disk: {{size_gb: 200}}") == [("vertex.boot_disk.size_gb", "100")]


def test_the_environment_s_attachment_is_the_same_by_its_name(take: Take) -> None:
    name = "projects/example-lab/regions/us-central1/networkAttachments/lab-vertex-us-central1"
    job = take(f"vertex: {{{TUNING}, network_attachment: environment}}")

    assert custom_job_spec(job)["pscInterfaceConfig"] == {"networkAttachment": name}
    assert [finding.path for finding in vertex_findings(job)] == ["vertex.network_attachment"]
    assert list(vertex_findings(with_tuning(job, network_attachment=name))) == []


@pytest.mark.parametrize(
    ("field", "path"),
    [
        (ATTACHMENT, "vertex.network_attachment"),
        ("network: projects/123456/global/networks/train", "vertex.network"),
        (
            "kms_key: projects/example-lab/locations/us-central1/keyRings/train/cryptoKeys/train",
            "vertex.kms_key",
        ),
    ],
)
def test_a_job_has_the_network_and_the_key_of_its_persistent_resource(take: Take, field: str, path: str) -> None:
    assert [(finding.rule, finding.path) for finding in findings_for(take, f"{TUNING}, {field}")] == [
        ("job-vertex-resource", path)
    ]


@pytest.mark.parametrize(
    ("target", "paths"),
    [
        (H100, ["vertex.kms_key"]),
        (f"{H100}, kms_key: {KEY}", []),
        (TPU, []),  # in a region without a key
    ],
)
def test_a_job_has_a_key_where_its_environment_has_one(take: Take, target: str, paths: list[str]) -> None:
    job = take(f"vertex: {{{target}}}")
    encrypted = dataclasses.replace(job, scope=dataclasses.replace(job.scope, keys={"us-central1": KEY}))

    findings = [row for row in vertex_findings(encrypted) if row.rule == "job-vertex-key"]

    assert [(row.path, row.nearest, row.severity) for row in findings] == [(path, KEY, "warning") for path in paths]


FLEX = "vertex: {region: us-central1, machine_type: a3-highgpu-8g, capacity: flex-start, replicas: %d}"
A100 = "vertex: {region: us-central1, machine_type: a2-highgpu-%dg}"
QUOTA_TPU = "vertex: {region: us-west4, machine_type: ct5lp-hightpu-4t, topology: %s}"
SNAPSHOT = "stacks/quotas/example-lab.yaml"


def edited(take: Take, root: Path, old: str, new: str, *, target: str = FLEX % 1, today: date = TODAY) -> Judgement:
    path = root / SNAPSHOT
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    return judge(take(target, workspace=read_workspace(root)), "vertex", today)


def test_a_charge_is_shown_with_limit_and_headroom(verdict: Judge) -> None:
    rendered = verdict(FLEX % 2, "vertex")

    h100 = "CustomModelTrainingPreemptibleH100GPUsPerProjectPerRegion in us-central1"
    disks = "CustomModelTrainingPDSSDPerProjectPerRegion in us-central1"
    day = "as of 2026-11-01"
    headroom = f"{4_000 - 4 * 200:,}"  # the stacks hold 4 VMs of 200 GB at most, those of the persistent resource
    assert rendered.findings == ()
    assert rendered.notes[:-1] == (
        f"charges {2 * 8} GPUs to {h100} of example-lab; limit 32, {day}; headroom 32 left by the stacks",
        f"charges {2 * 100} GB to {disks} of example-lab; limit 4,000, {day}; headroom {headroom} left by the stacks",
    )


def test_an_unlimited_quota_has_no_end(verdict: Judge) -> None:
    rendered = verdict(QUOTA_TPU % "8x8", "vertex")

    assert rendered.findings == ()
    assert "limit unlimited, as of 2026-11-01; headroom unlimited" in rendered.notes[1]


@pytest.mark.parametrize(
    ("fits", "beyond", "path", "column", "nearest"),
    [
        (FLEX % 4, FLEX % 5, "vertex.replicas", 82, "replicas 4"),
        (
            QUOTA_TPU % "8x8",
            QUOTA_TPU % "8x16",
            "vertex.topology",
            60,
            "request 128 chips (training-platform quota plan)",
        ),
    ],
)
def test_a_job_may_charge_the_limit_and_no_more(
    verdict: Judge, *, fits: str, beyond: str, path: str, column: int, nearest: str | None
) -> None:
    assert verdict(fits, "vertex").findings == ()

    (finding,) = verdict(beyond, "vertex").findings

    assert (finding.rule, finding.severity, finding.path) == ("job-quota-exceeded", "error", path)
    assert finding.nearest == nearest
    assert (finding.file, finding.position) == ("jobs/vision/train.yaml", (3, column))


def test_exceeding_what_stacks_leave_is_a_warning_and_no_error(verdict: Judge) -> None:
    # Of 8 GPUs the persistent resource holds 4 at most.
    assert verdict(A100 % 4, "vertex").findings == ()

    (finding,) = verdict(A100 % 8, "vertex").findings

    assert (finding.rule, finding.severity, finding.allowed) == ("job-quota-headroom", "warning", "at most 4 GPUs")
    assert finding.nearest == (
        "lower vertex.persistent_resources.tuning.max_replicas of lab-vision by 4 GPUs; "
        "or request 12 GPUs (training-platform quota plan)"
    )
    assert "is charged 8 GPUs, and the stacks at their maximum size leave 4 of 8" in finding.message


def test_the_nearest_is_the_most_replicas_that_the_stacks_leave(verdict: Judge) -> None:
    (warning,) = verdict((A100 % 1).replace("-1g", "-1g, replicas: 5"), "vertex").findings
    (error,) = verdict((A100 % 4).replace("-4g", "-4g, replicas: 3"), "vertex").findings

    assert (warning.severity, warning.nearest) == ("warning", "replicas 4")
    assert (error.severity, error.nearest) == ("error", "replicas 2")


def test_a_region_that_the_snapshot_does_not_list_has_no_quota(verdict: Judge) -> None:
    findings = verdict((FLEX % 1).replace("us-central1", "us-east4"), "vertex").findings

    assert [(finding.rule, finding.allowed, finding.nearest) for finding in findings] == [
        ("job-quota-exceeded", "a limit of 8 GPUs", "request 8 GPUs (training-platform quota plan)"),
        ("job-quota-exceeded", "a limit of 100 GB", "request 100 GB (training-platform quota plan)"),
    ]


def test_a_limit_of_one_is_one_that_a_job_may_use(take: Take, new_lab: Lab) -> None:
    (finding,) = edited(take, new_lab(), "limit: 8,", "limit: 1,", target=A100 % 4).findings

    assert (finding.rule, finding.allowed) == ("job-quota-exceeded", "at most 1 GPUs")


def test_an_id_that_the_snapshot_does_not_list_is_an_error(take: Take, new_lab: Lab) -> None:
    rendered = edited(take, new_lab(), "TrainingPreemptibleH100", "TrainingPreemptibleH200")

    (finding,) = rendered.findings
    assert (finding.rule, finding.severity) == ("job-quota-unknown", "error")
    assert "CustomModelTrainingPreemptibleH100GPUsPerProjectPerRegion of aiplatform.googleapis.com" in finding.message
    assert "which anybody with roles/cloudquotas.viewer can pull" in (finding.allowed or "")
    assert "limit not known; headroom not known" in rendered.notes[0]


def test_a_project_without_a_snapshot_is_one_error(take: Take, new_lab: Lab) -> None:
    root = new_lab()
    (root / SNAPSHOT).unlink()

    (finding,) = judge(take(FLEX % 1, workspace=read_workspace(root)), "vertex", TODAY).findings

    assert (finding.rule, finding.nearest) == ("job-quota-snapshot", "training-platform quota pull example-lab")


def test_an_unreadable_snapshot_stops_the_job(take: Take, new_lab: Lab) -> None:
    with pytest.raises(UnreadableError, match=f"^{SNAPSHOT}:1:10: is not YAML"):
        edited(take, new_lab(), "project: example-lab", "project: [")


def test_machines_of_a_persistent_resource_are_charged_already(verdict: Judge) -> None:
    disk = "persistent_resource: tuning, boot_disk: {size_gb: 200}"
    rendered = verdict((A100 % 1).replace("-1g", f"-1g, {disk}"), "vertex")

    assert rendered.findings == ()
    assert rendered.notes[:-1] == ("charges nothing: persistent resource tuning already charges the quota",)


ON_TUNING = "vertex: {region: us-central1, persistent_resource: tuning"


def test_a_job_on_a_persistent_resource_has_its_machine_and_disk(take: Take) -> None:
    target = vertex_target(take(f"{ON_TUNING}}}"))

    assert (target.machine_type, target.boot_disk.type, target.boot_disk.size_gb) == ("a2-highgpu-1g", "pd-ssd", 200)
    assert vertex_findings(take(f"{ON_TUNING}}}")) == []


def test_a_target_without_a_resource_needs_a_machine(read: Read) -> None:
    _, findings = read("vertex: {region: us-central1}")

    assert [row.path for row in findings] == ["vertex.machine_type"]
