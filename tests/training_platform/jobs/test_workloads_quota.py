from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest

from training_platform.config.reading.source import UnreadableError
from training_platform.config.workspace import read_workspace
from training_platform.jobs.render import Rendered, judge
from training_platform.jobs.resolve import ResolvedJob

Take = Callable[..., ResolvedJob]
Judge = Callable[[str, str], Rendered]
Lab = Callable[..., Path]
TODAY = date(2026, 11, 21)
FLEX = "vertex: {region: us-central1, machine_type: a3-highgpu-8g, capacity: flex-start, replicas: %d}"
A100 = "vertex: {region: us-central1, machine_type: a2-highgpu-%dg}"
TPU = "vertex: {region: us-west4, machine_type: ct5lp-hightpu-4t, topology: %s}"
SNAPSHOT = "stacks/quotas/example-lab.yaml"


def edited(take: Take, root: Path, old: str, new: str, *, target: str = FLEX % 1, today: date = TODAY) -> Rendered:
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
    left = f"{4_000 - 4 * 200:,}"  # the stacks hold 4 VMs of 200 GB at most, those of the persistent resource
    assert rendered.findings == ()
    assert rendered.notes == (
        f"charges {2 * 8} GPUs to {h100} of example-lab; limit 32, {day}; headroom 32 beside the stacks",
        f"charges {2 * 100} GB to {disks} of example-lab; limit 4,000, {day}; headroom {left} beside the stacks",
    )


def test_an_unlimited_quota_has_no_end(verdict: Judge) -> None:
    rendered = verdict(TPU % "8x8", "vertex")

    assert rendered.findings == ()
    assert "limit unlimited, as of 2026-11-01; headroom unlimited" in rendered.notes[1]


@pytest.mark.parametrize(
    ("fits", "beyond", "path", "column", "nearest"),
    [
        (FLEX % 4, FLEX % 5, "vertex.replicas", 82, "replicas 4"),
        (TPU % "8x8", TPU % "8x16", "vertex.topology", 60, None),
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


def test_what_stacks_hold_is_no_error_but_a_warning(verdict: Judge) -> None:
    # Of 8 GPUs the persistent resource holds 4 at most.
    assert verdict(A100 % 4, "vertex").findings == ()

    (finding,) = verdict(A100 % 8, "vertex").findings

    assert (finding.rule, finding.severity, finding.allowed) == ("job-quota-headroom", "warning", "at most 4 GPUs")
    assert "is charged 8 GPUs, and the stacks, with all that they may run, leave 4 of 8" in finding.message


def test_the_nearest_is_the_most_replicas_that_the_stacks_leave(verdict: Judge) -> None:
    (warning,) = verdict((A100 % 1).replace("-1g", "-1g, replicas: 5"), "vertex").findings
    (error,) = verdict((A100 % 4).replace("-4g", "-4g, replicas: 3"), "vertex").findings

    assert (warning.severity, warning.nearest) == ("warning", "replicas 4")
    assert (error.severity, error.nearest) == ("error", "replicas 2")


def test_a_region_that_the_snapshot_does_not_list_has_no_quota(verdict: Judge) -> None:
    found = verdict((FLEX % 1).replace("us-central1", "us-east4"), "vertex").findings

    assert [(finding.rule, finding.allowed, finding.nearest) for finding in found] == [
        ("job-quota-exceeded", "at most 0 GPUs", None),
        ("job-quota-exceeded", "at most 0 GB", None),
    ]


def test_an_id_that_the_snapshot_does_not_list_is_an_error(take: Take, new_lab: Lab) -> None:
    rendered = edited(take, new_lab(), "TrainingPreemptibleH100", "TrainingPreemptibleH200")

    (finding,) = rendered.findings
    assert (finding.rule, finding.severity) == ("job-quota-unknown", "error")
    assert "CustomModelTrainingPreemptibleH100GPUsPerProjectPerRegion of aiplatform.googleapis.com" in finding.message
    assert "limit not known; headroom not known" in rendered.notes[0]


def test_a_project_without_a_snapshot_is_one_error(take: Take, new_lab: Lab) -> None:
    root = new_lab()
    (root / SNAPSHOT).unlink()

    (finding,) = judge(take(FLEX % 1, workspace=read_workspace(root)), "vertex", TODAY).findings

    assert (finding.rule, finding.nearest) == ("job-quota-snapshot", "training-platform quota pull example-lab")


def test_a_rejected_snapshot_shows_its_own_errors(take: Take, new_lab: Lab) -> None:
    found = edited(take, new_lab(), "limit: 32", "limit: many").findings

    assert [(finding.rule, finding.file) for finding in found] == [
        ("quota-snapshot", SNAPSHOT),
        ("job-quota-snapshot", "jobs/vision/train.yaml"),
    ]


def test_an_unreadable_snapshot_stops_the_job(take: Take, new_lab: Lab) -> None:
    with pytest.raises(UnreadableError, match=f"^{SNAPSHOT}:3:1: is not YAML"):
        edited(take, new_lab(), "project: example-lab", "project: [")


def test_a_snapshot_of_another_project_does_not_matter(take: Take, new_lab: Lab) -> None:
    root = new_lab()
    (root / "stacks" / "quotas" / "other.yaml").write_text("[")
    (root / "stacks" / "quotas" / "third.yaml").write_text("{}")

    assert judge(take(FLEX % 1, workspace=read_workspace(root)), "vertex", TODAY).findings == ()


def test_limits_that_are_too_old_are_a_warning(take: Take, new_lab: Lab) -> None:
    rendered = edited(take, new_lab(), "2026-11-01", "2026-11-02", today=date(2026, 12, 3))

    assert [(finding.rule, finding.severity) for finding in rendered.findings] == [("quota-snapshot-age", "warning")]
    assert not rendered.failed


def test_machines_of_a_persistent_resource_are_charged_already(verdict: Judge) -> None:
    disk = "persistent_resource: tuning, boot_disk: {size_gb: 200}"
    rendered = verdict((A100 % 1).replace("-1g", f"-1g, {disk}"), "vertex")

    assert rendered.findings == ()
    assert rendered.notes == ("charges nothing: persistent resource tuning has been charged already",)


def test_what_a_wrong_machine_would_charge_is_not_asked(take: Take, new_lab: Lab) -> None:
    rendered = edited(take, new_lab(), "limits:", "limits: []\nx:", target=TPU % "4x9")

    assert [finding.rule for finding in rendered.findings] == ["job-vertex-topology"]
    assert rendered.notes == ()
