from __future__ import annotations

from collections.abc import Callable

import pytest

from training_platform.jobs.naming import as_run, job_of, new_run
from training_platform.jobs.resolve import ResolvedJob

JOB = """\
command: [torchrun]
args: ["--rdzv-endpoint={run}-slice-0-0.{run}:29500", "--title={title}"]
env: {NAME: "{run}"}
output: checkpoints
gke: {cluster: gpus, flavor: h100, nodes: 2}
"""


@pytest.mark.parametrize("job", ["train", "a", "train-2", "fine-tune-vit"])
def test_a_runs_name_leads_back_to_its_job(job: str) -> None:
    names = {new_run(job) for _ in range(50)}

    assert len(names) > 45
    assert {job_of(name) for name in names} == {job}


@pytest.mark.parametrize("name", ["train", "train-again", "train-aeiou", "train-bcdfgh", "-bcdfg"])
def test_a_name_that_no_run_is_given_is_its_own_job(name: str) -> None:
    assert job_of(name) == name


def test_a_run_has_its_own_name_in_everything_that_asks_for_it(take: Callable[[str], ResolvedJob]) -> None:
    run = as_run(take(JOB), "train-bcdfg")

    assert run.name == "train-bcdfg"
    assert run.spec.args == ("--rdzv-endpoint=train-bcdfg-slice-0-0.train-bcdfg:29500", "--title={title}")
    assert run.spec.env == {"NAME": "train-bcdfg"}
