from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from training_platform.config.reading.finding import UserError
from training_platform.config.workspace import read_workspace
from training_platform.jobs.runs.places import places, places_of_run

Lab = Callable[..., Path]
BOTH = """\
environment: lab
image: registry.example.com/train:1
gke: {cluster: gpus, flavor: h100, nodes: 2}
vertex: {region: us-central1, machine_type: a3-highgpu-8g, capacity: flex-start}
"""


@pytest.fixture
def root(new_lab: Lab) -> Path:
    root = new_lab()
    (root / "jobs" / "vision" / "train.yaml").write_text(BOTH)
    return root


def test_a_run_is_looked_for_where_its_job_says(root: Path) -> None:
    found, others = places_of_run(root, read_workspace(root), "train-bcdfg")

    assert [(place.target, place.key) for place in found] == [("gke", "gpus"), ("vertex", "us-central1")]
    assert [(place.target, place.key) for place in others] == [("gke", "tpus")]
    assert found[0].contexts == ("gke_example-lab_us-central1_lab-gpus", "lab-gpus")
    assert found[0].log_in == (
        "gcloud container clusters get-credentials lab-gpus --location us-central1 --project example-lab --dns-endpoint"
    )


def test_a_run_of_no_job_is_said_with_the_nearest(root: Path) -> None:
    with pytest.raises(UserError, match=r"No job file is called 'trian'.*Allowed: train\. Nearest: train\."):
        places_of_run(root, read_workspace(root), "trian-bcdfg")


def test_a_job_of_two_teams_wants_the_team(root: Path) -> None:
    (root / "jobs" / "nlp").mkdir()
    (root / "jobs" / "nlp" / "train.yaml").write_text(BOTH)
    workspace = read_workspace(root)

    with pytest.raises(UserError, match="Teams nlp and vision have a job 'train' each: say which with --team"):
        places_of_run(root, workspace, "train-bcdfg")
    found, others = places_of_run(root, workspace, "train-bcdfg", team="nlp")
    assert {place.team.name for place in (*found, *others)} == {"nlp"}


def test_all_places_of_a_team_are_its_clusters_and_the_regions_of_its_jobs(root: Path) -> None:
    found = places(root, read_workspace(root), team="vision")

    assert sorted((place.target, place.key) for place in found) == [
        ("gke", "gpus"), ("gke", "tpus"), ("vertex", "us-central1"),
    ]  # fmt: skip


def test_a_team_that_is_not_there_is_said_with_the_nearest(root: Path) -> None:
    with pytest.raises(UserError, match=r"no team stack of team vison\. Allowed: nlp, vision\. Nearest: vision\."):
        places(root, read_workspace(root), team="vison")
