"""A job with several places: each is checked at its line, and a run starts at the first that has room."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.parts.jobs.lab import Lab
from tests.parts.jobs.runs.gke_cluster import TEAM
from tests.support.lab import TODAY
from training_platform.config.workspace import read_workspace
from training_platform.parts.jobs.job_checks import check_job, needs_of_jobs, notes_of_file
from training_platform.parts.jobs.job_cost import cost_of_file
from training_platform.parts.jobs.resolve import read_job
from training_platform.parts.jobs.runs.places import places, places_of_run

PLACES = """\
environment: lab
image: registry.example.com/train:1
command: [train]
gke:
  - {cluster: gpus, flavor: h100, nodes: 4}
  - {cluster: gpus, flavor: a100-40, nodes: 1, gpus: 1}
"""
VERTEX = """\
environment: lab
image: registry.example.com/train:1
command: [train]
gke: {cluster: gpus, flavor: h100, nodes: 4}
vertex:
  - {region: us-central1, machine_type: a3-highgpu-8g, capacity: spot, replicas: 4}
  - {region: us-central1, machine_type: a2-highgpu-1g, replicas: 8, timeout_hours: 48}
  - {region: us-central1, persistent_resource: tuning}
"""


def write(root: Path, text: str) -> Path:
    file = root / "jobs" / TEAM / "places.yaml"
    file.write_text(text)
    return file


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ("nodes: 4", "nodes: 9", "jobs/vision/places.yaml:5:35"),
        ("nodes: 4", "node: 4", "jobs/vision/places.yaml:5:35"),
        ("nodes: 1", "nodes: 99", "jobs/vision/places.yaml:6:38"),
        ("flavor: a100-40", "flavor: a100", "jobs/vision/places.yaml:6:21"),
    ],
)
def test_a_mistake_at_one_place_is_reported_at_its_line(new_lab: Lab, old: str, new: str, place: str) -> None:
    root = new_lab()
    file = write(root, PLACES.replace(old, new))

    findings = check_job(file, root, read_workspace(root), TODAY)

    assert {str(finding).partition(": ")[0] for finding in findings} == {place}


def test_valid_places_have_no_findings_and_the_first_is_used(new_lab: Lab) -> None:
    root = new_lab()
    file = write(root, PLACES)
    workspace = read_workspace(root)

    assert check_job(file, root, workspace, TODAY) == ()
    jobs = (read_job(file, root, workspace, place=index)[0] for index in range(2))
    flavors = [job.flavor.name for job in jobs if job and job.flavor]
    assert flavors == ["h100", "a100-40"]


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ("capacity: spot", "capacity: spots", "jobs/vision/places.yaml:6:56"),
        ("capacity: spot, replicas: 4", "replicas: 4, capacity: on-demand", "jobs/vision/places.yaml:6:56"),
        ("replicas: 8", "replica: 8", "jobs/vision/places.yaml:7:56"),
        ("replicas: 8", "replicas: 9", "jobs/vision/places.yaml:7:56"),
        ("resource: tuning", "resource: tune", "jobs/vision/places.yaml:8:27"),
        ("nodes: 4", "nodes: 9", "jobs/vision/places.yaml:4:36"),
    ],
)
def test_a_mistake_at_one_place_on_vertex_is_reported_once_at_its_line(
    new_lab: Lab, old: str, new: str, place: str
) -> None:
    root = new_lab()
    file = write(root, VERTEX.replace(old, new))

    findings = [
        finding for finding in check_job(file, root, read_workspace(root), TODAY) if finding.severity == "error"
    ]

    assert [str(finding).partition(": ")[0] for finding in findings] == [place]


def test_each_place_on_vertex_has_its_notes_and_its_cost(new_lab: Lab) -> None:
    root = new_lab()
    file = write(root, VERTEX)

    notes = notes_of_file(file, root, read_workspace(root), TODAY)
    costs, findings = cost_of_file(file, root, None, TODAY)
    on_vertex, _ = cost_of_file(file, root, "vertex", TODAY)

    assert [note for note in notes if "hours (timeout_hours" in note] == [
        "jobs/vision/places.yaml (vertex): runs for at most 24 hours (timeout_hours, the default)",
        "jobs/vision/places.yaml (vertex): runs for at most 48 hours (timeout_hours)",
        "jobs/vision/places.yaml (vertex): runs for at most 24 hours (timeout_hours, the default)",
    ]
    assert findings == ()
    assert [(cost.target, cost.capacity, cost.hours) for cost in costs] == [
        ("gke", "on-demand", None),
        ("vertex", "spot", 24),
        ("vertex", "on-demand", 48),
        ("vertex", "on-demand", 24),
    ]
    assert on_vertex == costs[1:]


def test_the_quotas_of_every_place_on_vertex_are_needed(new_lab: Lab) -> None:
    root = new_lab()
    write(root, VERTEX)

    needs = needs_of_jobs(root, read_workspace(root), TODAY)

    gpus = {key.quota_id: need for key, need in needs.items() if "GPUs" in key.quota_id}
    assert gpus == {
        "CustomModelTrainingPreemptibleH100GPUsPerProjectPerRegion": 4 * 8,
        "CustomModelTrainingA100GPUsPerProjectPerRegion": 8 + 4,  # with the replicas of the persistent resource
    }


def test_runs_are_looked_for_in_every_region_of_the_file(new_lab: Lab) -> None:
    root = new_lab()
    file = write(root, VERTEX.replace("us-central1, machine_type: a2", "europe-west4, machine_type: a2"))
    workspace = read_workspace(root)

    in_file, _ = places_of_run(root, workspace, f"{file.stem}-7x2kq")

    assert [(place.target, place.key) for place in in_file] == [
        ("gke", "gpus"),
        ("vertex", "us-central1"),
        ("vertex", "europe-west4"),
    ]
    regions = [place.key for place in places(root, workspace) if place.target == "vertex"]
    assert regions == ["us-central1", "europe-west4"]
