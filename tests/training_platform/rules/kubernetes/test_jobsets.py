"""Rules of JobSets: names, what they refer to, and their policies."""

from __future__ import annotations

from typing import Any

import pytest

from tests.training_platform.rules.objects import JOB_SET, wrong
from training_platform.resources.planned import UNKNOWN

TEMPLATE = {"spec": {"parallelism": 8.0, "completions": 8.0}}
JOBS = [{"name": name, "replicas": 2.0, "template": TEMPLATE} for name in ("driver", "slice")]


def found(rule: str, **spec: Any) -> list[str]:
    return wrong(rule, JOB_SET, metadata={"name": "train"}, spec={"replicatedJobs": JOBS, **spec})


@pytest.mark.parametrize(("letters", "fits"), [(63 - len("slice0") - 1 - 9, True), (64 - len("slice0") - 1 - 9, False)])
def test_names_leave_room_for_those_of_pods(letters: int, fits: bool) -> None:
    """A pod's name has the index of its job, its own index, and 9 more letters."""
    paths = wrong("jobset-names", JOB_SET, metadata={"name": "a" * letters}, spec={"replicatedJobs": JOBS[1:]})

    assert paths == ([] if fits else ["metadata.name"])


def test_a_name_that_is_not_known_yet_is_not_counted() -> None:
    assert wrong("jobset-names", JOB_SET, metadata={"name": UNKNOWN}, spec={"replicatedJobs": JOBS}) == []


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"successPolicy": {"targetReplicatedJobs": ["slice"]}}, None),
        ({"successPolicy": {"targetReplicatedJobs": ["other"]}}, "spec.successPolicy.targetReplicatedJobs"),
        ({"failurePolicy": {"rules": [{"name": "a", "targetReplicatedJobs": ["other"]}]}},
         "spec.failurePolicy.rules[0].targetReplicatedJobs"),
        ({"coordinator": {"replicatedJob": "driver", "jobIndex": 1.0, "podIndex": 7.0}}, None),
        ({"coordinator": {"replicatedJob": "driver", "jobIndex": 2.0, "podIndex": 7.0}}, "spec.coordinator.jobIndex"),
        ({"coordinator": {"replicatedJob": "driver", "jobIndex": 1.0, "podIndex": 8.0}}, "spec.coordinator.podIndex"),
        ({"coordinator": {"replicatedJob": "other"}}, "spec.coordinator.replicatedJob"),
        ({"replicatedJobs": [JOBS[0], {**JOBS[1], "dependsOn": [{"name": "driver"}]}]}, None),
        ({"replicatedJobs": [{**JOBS[0], "dependsOn": [{"name": "slice"}]}, JOBS[1]]},
         "spec.replicatedJobs[0].dependsOn[0].name"),
    ],
)  # fmt: skip
def test_what_a_jobset_refers_to_is_in_it(spec: dict[str, Any], path: str | None) -> None:
    assert found("jobset-references", **spec) == [path] * bool(path)


@pytest.mark.parametrize(
    ("policy", "path"),
    [
        ({"rules": [{"name": "a", "action": "FailJobSet", "onJobFailureReasons": ["DeadlineExceeded"]}]}, None),
        ({"rules": [{"name": "a", "action": "FailJobSet", "onJobFailureReasons": ["Bored"]}]},
         "rules[0].onJobFailureReasons"),
        ({"rules": [{"name": "a"}, {"name": "a"}]}, "rules[1].name"),
        ({"rules": [{"action": "FailJobSet"}, {"action": "RestartJobSet"}]}, None),
        ({"rules": [{"action": "RestartJob"}]}, "rules[0].action"),
        ({"restartStrategy": "BlockingRecreate"}, None),
        ({"restartStrategy": "InPlaceRestart"}, "restartStrategy"),
    ],
)  # fmt: skip
def test_failure_policies_are_of_what_is_switched_on(policy: dict[str, Any], path: str | None) -> None:
    assert found("jobset-policies", failurePolicy=policy) == [f"spec.failurePolicy.{path}"] * bool(path)


@pytest.mark.parametrize(
    ("replicas", "parallelism", "refused"), [(2**30, 1, False), (2**30, 2, True), (None, 2, False)]
)
def test_a_replicated_job_has_as_many_pods_as_can_be_counted(
    replicas: int | None, parallelism: int, refused: bool
) -> None:
    spec = {"replicatedJobs": [{"replicas": replicas, "template": {"spec": {"parallelism": parallelism}}}]}

    assert wrong("jobset-size", JOB_SET, spec=spec) == ["spec.replicatedJobs[0].replicas"] * refused
