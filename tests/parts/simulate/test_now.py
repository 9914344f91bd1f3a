"""When waiting jobs will start: running jobs hold their quota until they end, and waiting ones take turns."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from kueue_model import read_manifests
from tests.parts.simulate.clusters import sections, shares
from tests.support.places import ORGANISATION
from training_platform.cli.main import app
from training_platform.parts.jobs.runs.waits import Waits
from training_platform.parts.simulate.now import predict

API = "kueue.x-k8s.io/v1beta2"
NOW = datetime(2026, 11, 2, 12, tzinfo=UTC)
QUEUE = {
    "resourceGroups": [{
        "coveredResources": ["nvidia.com/gpu"],
        "flavors": [
            {"name": name, "resources": [{"name": "nvidia.com/gpu", "nominalQuota": 8}]} for name in ("spot", "kept")
        ],
    }],
}  # fmt: skip
OBJECTS = [
    {"kind": "ClusterQueue", "metadata": {"name": "vision-queue"}, "spec": QUEUE},
    {
        "kind": "LocalQueue",
        "metadata": {"name": "own", "namespace": "vision"},
        "spec": {"clusterQueue": "vision-queue"},
    },
    *(
        {"kind": "ResourceFlavor", "metadata": {"name": name}, "spec": {"nodeLabels": {"kind": name}}}
        for name in ("spot", "kept")
    ),
]


def hours_ago(hours: float) -> str:
    return (NOW - timedelta(hours=hours)).isoformat()


def workload(name: str, created: float, *, gpus: int = 8, kind: str = "kept", **spec: Any) -> dict[str, Any]:
    """Return a waiting workload of a JobSet."""
    pods = {"nodeSelector": {"kind": kind}, "containers": [{"resources": {"requests": {"nvidia.com/gpu": "1"}}}]}
    sets = [{"name": "main", "count": gpus, "template": {"spec": pods}}]
    owners = [{"kind": "JobSet", "name": name, "controller": True}]
    metadata = {"name": f"jobset-{name}", "namespace": "vision", "creationTimestamp": hours_ago(created)}
    return {
        "metadata": {**metadata, "ownerReferences": owners},
        "spec": {"queueName": "own", "podSets": sets, **spec},
    }


def admitted(name: str, since: float, *, ended: float | None = None, **more: Any) -> dict[str, Any]:
    """Return a workload that holds the quota of the flavor ``kept``, or held it until it ended."""
    times = {"QuotaReserved": since, "Admitted": since}
    if ended is not None:
        times["Finished"] = ended
    conditions = [
        {"type": kind, "status": "True", "lastTransitionTime": hours_ago(moment)} for kind, moment in times.items()
    ]
    held = {"flavors": {"nvidia.com/gpu": "kept"}, "resourceUsage": {"nvidia.com/gpu": "8"}}
    admission = {"clusterQueue": "vision-queue", "podSetAssignments": [held]}
    return {**workload(name, since + 1, **more), "status": {"conditions": conditions, "admission": admission}}


def predicted(folder: Path, *items: Any, objects: Sequence[Any] = OBJECTS) -> Waits:
    path = folder / "workloads.json"
    queues = folder / "queues.yaml"
    path.write_text(json.dumps({"items": items}), encoding="utf-8")
    queues.write_text(yaml.safe_dump_all({"apiVersion": API, **body} for body in objects), encoding="utf-8")
    return predict(path, read_manifests(queues), range(10), NOW)


def hours(waits: Waits) -> dict[str, tuple[float, ...] | None]:
    return {job.job: job.start and tuple(round(seconds / 3600, 2) for seconds in job.start) for job in waits.jobs}


def test_a_job_starts_when_what_runs_has_run_as_long_as_one_that_has_ended(tmp_path: Path) -> None:
    ended = admitted("ended", 20, ended=14)
    runs = admitted("runs", 4)  # for six hours; two are left

    waits = predicted(tmp_path, ended, runs, workload("second", 1), workload("first", 3))

    assert hours(waits) == {"first": (2, 2, 2), "second": (8, 8, 8)}


@pytest.mark.parametrize(("of_the_queue", "start"), [([admitted("ended", 20, ended=14)], 2), ([], 36)])
def test_jobs_of_other_queues_count_only_if_none_of_the_queue_has_ended(
    tmp_path: Path, of_the_queue: list[Any], start: int
) -> None:
    other = admitted("other", 50, ended=10)
    other["status"]["admission"]["clusterQueue"] = "another"

    waits = predicted(tmp_path, *of_the_queue, other, admitted("runs", 4), workload("waits", 1))

    assert hours(waits) == {"waits": (start, start, start)}


def test_a_range_is_between_the_run_times_of_jobs_that_have_ended(tmp_path: Path) -> None:
    lengths = [admitted(f"ended-{length}", 100 + length, ended=100) for length in (5, 9)]

    (start,) = hours(predicted(tmp_path, *lengths, admitted("runs", 4), workload("waits", 1))).values()

    assert start is not None
    assert (start[0], start[2]) == (1, 5)
    assert start[1] in (1, 5)


def test_a_job_longer_than_all_ended_ones_still_ends(tmp_path: Path) -> None:
    waits = predicted(tmp_path, admitted("ended", 20, ended=14), admitted("runs", 10), workload("waits", 1))

    assert hours(waits) == {"waits": (6, 6, 6)}


def test_a_node_selector_that_no_flavor_fits_is_never_fulfilled(tmp_path: Path) -> None:
    (job,) = predicted(tmp_path, workload("waits", 1, kind="another")).jobs

    assert (job.start, job.why) == (None, "no flavor of vision-queue has the labels that its pods select")


def test_a_flavor_without_a_label_takes_pods_that_select_it(tmp_path: Path) -> None:
    queue, local, spot, kept = OBJECTS
    other = {**spot, "spec": {"nodeLabels": {"zone": "a"}}}
    items = (admitted("ended", 20, ended=14), admitted("runs", 4), workload("waits", 1))

    waits = predicted(tmp_path, *items, objects=(queue, local, other, kept))

    assert hours(waits) == {"waits": (0, 0, 0)}


def test_pods_are_counted_with_sidecars_init_containers_and_overhead(tmp_path: Path) -> None:
    def container(gpus: int, **more: Any) -> dict[str, Any]:
        return {"name": "a", "resources": {"requests": {"nvidia.com/gpu": str(gpus)}}, **more}

    specs = {
        "two-containers": {"containers": [container(3), container(2)]},
        "sidecar": {"initContainers": [container(2, restartPolicy="Always")], "containers": [container(3)]},
        "init": {"initContainers": [container(5), container(1)], "containers": [container(2)]},
        "overhead": {"containers": [container(4)], "overhead": {"nvidia.com/gpu": "1"}},
        "limits": {"containers": [{"name": "a", "resources": {"limits": {"nvidia.com/gpu": "5"}}}]},
        "of-the-pod": {"containers": [container(1)], "resources": {"requests": {"nvidia.com/gpu": "5"}}},
    }
    items = []
    for name, spec in specs.items():
        item = workload(name, 1)
        item["spec"]["podSets"] = [{"name": "main", "count": 2, "template": {"spec": spec}}]
        items.append(item)

    waits = predicted(tmp_path, *items)

    assert {job.job: job.needs for job in waits.jobs} == dict.fromkeys(specs, f"{2 * 5} nvidia.com/gpu")


def test_what_never_starts_says_why_and_what_is_not_played_is_counted(tmp_path: Path) -> None:
    inactive = workload("off", 1, active=False)
    elsewhere = workload("lost", 1, queueName="another")

    waits = predicted(tmp_path, workload("huge", 1, gpus=16), inactive, elsewhere, {"metadata": {}})

    assert [(job.job, job.start, job.why) for job in waits.jobs] == [
        ("huge", None, "needs 16, but the queue can use at most 8")
    ]
    names = "Not simulated, because they are inactive, unreadable or in an unknown queue: "
    assert any(note.startswith(names) and "/jobset-off" in note and "/jobset-lost" in note for note in waits.notes)
    assert any("run times are invented, with a median of 4.0 h" in note for note in waits.notes)


def test_a_table_says_when_a_run_starts_by_the_moment_at_which_it_was_made(tmp_path: Path) -> None:
    waits = predicted(tmp_path, admitted("ended", 20, ended=14), admitted("runs", 4), workload("waits", 1))
    sentence = "waits starts at 2026-11-02 14:00 UTC, in 8 of 10 runs"

    (prediction,) = waits.said_of("vision", "waits")

    assert prediction.startswith(f"According to the table of 2026-11-02 12:00 UTC, {sentence}")
    assert waits.said_of("nlp", "waits") == []
    assert sentence in waits.said_of_team("vision")
    assert waits.said_of_team("nlp") == "According to the table of 2026-11-02 12:00 UTC, no job of nlp waited."


def test_the_command_prints_a_table_and_json_that_is_read_again(tmp_path: Path) -> None:
    predicted(tmp_path, workload("huge", 1, gpus=16), workload("waits", 1))
    command = ["simulate", str(tmp_path / "workloads.json"), "--now", "--manifests", str(tmp_path / "queues.yaml")]

    text, document = (CliRunner().invoke(app, [*command, *more]) for more in ((), ("--format", "json")))

    assert text.exit_code == document.exit_code == 1  # one never starts
    assert "vision/huge" in text.stdout
    assert "never: needs 16" in text.stdout
    assert [job.job for job in Waits.model_validate_json(document.stdout).jobs] == ["waits", "huge"]


def test_the_queues_of_stack_files_are_played_on_from_the_workloads_of_a_cluster(tmp_path: Path) -> None:
    (tmp_path / "stacks").mkdir()
    (tmp_path / "Pulumi.yaml").write_text("name: training-platform\nruntime: python\n", encoding="utf-8")
    for name, text in sections({"vision": shares(h100_reservation=8, h100_spot=8)}).items():
        (tmp_path / "stacks" / f"Pulumi.{name}.yaml").write_text(text, encoding="utf-8")
    held = {"flavors": {"nvidia.com/gpu": "h100-reservation"}, "resourceUsage": {"nvidia.com/gpu": "8"}}
    runs = admitted("runs", 4)
    runs["status"]["admission"] = {"clusterQueue": "vision", "podSetAssignments": [held]}
    waits = workload("waits", 1, queueName="vision")
    pods = waits["spec"]["podSets"][0]["template"]["spec"]
    pods["nodeSelector"] = {"training-platform/flavor": "h100-reservation"}
    pods["containers"][0]["resources"]["requests"]["cpu"] = "100"  # counts in no queue of stack files
    predicted(tmp_path, runs, waits)
    command = ["simulate", str(tmp_path / "workloads.json"), "--now", "--root", str(tmp_path), "--format", "json"]

    done, wrong = (CliRunner().invoke(app, [*command, "--cluster", name]) for name in ("main", "man"))

    assert done.exit_code == 0, done.output
    (job,) = Waits.model_validate_json(done.stdout).jobs
    assert (job.job, job.queue, job.needs) == ("waits", "vision", "8 nvidia.com/gpu 800 cpu on h100-reservation")
    assert job.start is not None
    assert job.start.early > 0  # not while the other job has the quota
    assert "'man' is not a cluster of lab with a share: main." in wrong.stderr


def test_one_of_several_clusters_is_named(tmp_path: Path) -> None:
    predicted(tmp_path)
    command = ["simulate", str(tmp_path / "workloads.json"), "--now", "--root", str(ORGANISATION)]

    done = CliRunner().invoke(app, [*command, "--environment", "prod"])

    assert done.exit_code == 2
    assert "clusters us-central2, us-west4, us-central1: choose the workloads' cluster" in done.stderr


@pytest.mark.parametrize("more", [["--format", "html"], ["--base", "main"], ["--cluster", "x", "--manifests", "y"]])
def test_now_draws_no_page_and_compares_nothing(tmp_path: Path, more: list[str]) -> None:
    done = CliRunner().invoke(app, ["simulate", str(tmp_path / "workloads.json"), "--now", *more])

    assert done.exit_code == 2
    assert "--now accepts" in done.stderr or "--manifests simulates no stack files" in done.stderr
