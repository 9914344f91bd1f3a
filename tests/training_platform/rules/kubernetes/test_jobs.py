"""Rules of Jobs, JobSets, groups of LeaderWorkerSet, and TPU jobs beside their pools."""

from __future__ import annotations

from typing import Any

import pytest

from tests.training_platform.rules.objects import JOB, JOB_SET, LWS, job, wrong
from training_platform.resources.stack_resource import UNKNOWN
from training_platform.rules.kubernetes.jobs import jobset_policies, jobset_size
from training_platform.views.whole_stack import ObjectView


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"completionMode": "Indexed", "completions": 4.0}, None),
        ({"completionMode": "Indexed", "parallelism": 4.0}, "completions"),
        ({"completionMode": "Indexed"}, None),  # of one pod
        ({"completionMode": "Indexed", "completions": 2e5, "parallelism": 1e5}, None),
        ({"completionMode": "Indexed", "completions": 2e5, "parallelism": 1e5 + 1}, "parallelism"),
        ({"completionMode": "NonIndexed"}, None),
        ({"backoffLimitPerIndex": 1.0, "completionMode": "NonIndexed"}, "backoffLimitPerIndex"),
        ({"backoffLimitPerIndex": 1.0, "completionMode": "Indexed", "completions": 1.0}, None),
        ({"podFailurePolicy": {}, "template": {"spec": {"restartPolicy": "OnFailure"}}}, "template.spec.restartPolicy"),
        ({"podFailurePolicy": {}, "template": {"spec": {"restartPolicy": "Never"}}}, None),
    ],
)
def test_completions_and_policies_go_with_the_mode_of_a_job(spec: dict[str, Any], path: str | None) -> None:
    inside = {"replicatedJobs": [{"name": "a", "template": {"spec": spec}}]}

    assert wrong("job-completion", JOB, spec=spec) == [f"spec.{path}"] * bool(path)
    assert wrong("job-completion", JOB_SET, spec=inside) == [f"spec.replicatedJobs[0].template.spec.{path}"] * bool(
        path
    )


def test_a_job_of_a_job_set_is_indexed_unless_it_says_otherwise() -> None:
    spec = {"backoffLimitPerIndex": 1.0}

    assert wrong("job-completion", JOB, spec=spec) == ["spec.backoffLimitPerIndex"]
    assert wrong("job-completion", JOB_SET, spec={"replicatedJobs": [{"name": "a", "template": {"spec": spec}}]}) == []


@pytest.mark.parametrize(
    ("rule", "values", "path"),
    [
        ({"action": "FailIndex"}, {"backoffLimitPerIndex": 0.0}, None),
        ({"action": "FailIndex"}, {}, "action"),
        ({"action": "Count"}, {}, None),
        ({"onExitCodes": {"containerName": "train"}}, {}, None),
        ({"onExitCodes": {"containerName": "tune"}}, {}, "onExitCodes.containerName"),
    ],
)
def test_a_failure_policy_names_containers_and_retries_that_there_are(
    rule: dict[str, Any], values: dict[str, Any], path: str | None
) -> None:
    spec = {**job([{"name": "train"}]), "podFailurePolicy": {"rules": [rule]}, **values}

    assert wrong("job-policy", JOB, spec=spec) == [f"spec.podFailurePolicy.rules[0].{path}"] * bool(path)


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"podFailurePolicy": {"rules": [{"onExitCodes": {"operator": "In", "values": [1.0, 2.0]}}]}}, None),
        ({"podFailurePolicy": {"rules": [{"onExitCodes": {"operator": "NotIn", "values": [0.0]}}]}}, None),
        ({"podFailurePolicy": {"rules": [{"onExitCodes": {"operator": "In", "values": [2.0, 1.0]}}]}}, "codes"),
        ({"podFailurePolicy": {"rules": [{"onExitCodes": {"operator": "In", "values": [1.0, 1.0]}}]}}, "codes"),
        ({"podFailurePolicy": {"rules": [{"onExitCodes": {"operator": "In", "values": [0.0]}}]}}, "codes"),
        ({"completions": 4.0, "completionMode": "Indexed", "successPolicy": {"rules": [{"succeededIndexes": "0,2-3"}]}},
         None),
        ({"completions": 4.0, "completionMode": "Indexed", "successPolicy": {"rules": [{"succeededIndexes": "0-4"}]}},
         "successPolicy.rules[0].succeededIndexes"),
        ({"completions": 4.0, "successPolicy": {"rules": [{"succeededIndexes": "0-3"}]}}, "successPolicy"),
    ],
)  # fmt: skip
def test_policies_name_exit_codes_in_order_and_indexes_that_there_are(spec: dict[str, Any], path: str | None) -> None:
    where = "podFailurePolicy.rules[0].onExitCodes.values" if path == "codes" else path

    assert wrong("job-policy", JOB, spec=spec) == [f"spec.{where}"] * bool(path)


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
    rule = "jobset-coordinator" if path and "Index" in path else "jobset-references"

    assert found(rule, **spec) == [path] * bool(path)


@pytest.mark.parametrize(
    ("policy", "path"),
    [
        ({"rules": [{"name": "a", "action": "FailJobSet", "onJobFailureReasons": ["DeadlineExceeded"]}]}, None),
        ({"rules": [{"name": "a", "action": "FailJobSet", "onJobFailureReasons": ["Bored"]}]},
         "rules[0].onJobFailureReasons"),
        ({"rules": [{"name": "a"}, {"name": "a"}]}, "rules[1].name"),
        ({"rules": [{"action": "FailJobSet"}, {"action": "RestartJobSet"}]}, None),
        ({"restartStrategy": "BlockingRecreate"}, None),
    ],
)  # fmt: skip
def test_failure_policies_are_of_what_is_switched_on(policy: dict[str, Any], path: str | None) -> None:
    assert found("jobset-policies", failurePolicy=policy) == [f"spec.failurePolicy.{path}"] * bool(path)


@pytest.mark.parametrize(
    ("policy", "gate"),
    [
        ({"rules": [{"action": "RestartJob"}]}, "RestartJob"),
        ({"restartStrategy": "InPlaceRestart"}, "InPlaceRestart"),
    ],
)
def test_what_a_gate_that_is_off_refuses_is_a_warning_that_names_the_gate(policy: dict[str, Any], gate: str) -> None:
    view = ObjectView(stack="dev", type=JOB_SET, name="run", inputs={"spec": {"failurePolicy": policy}})

    (draft,) = jobset_policies(view)

    assert draft.severity == "warning"
    assert f"unless the feature gate {gate} is on" in draft.message


@pytest.mark.parametrize(
    ("replicas", "parallelism", "refused"), [(2**30, 1, False), (2**30, 2, True), (None, 2, False)]
)
def test_a_replicated_job_has_as_many_pods_as_can_be_counted(
    replicas: int | None, parallelism: int, refused: bool
) -> None:
    spec = {"replicatedJobs": [{"replicas": replicas, "template": {"spec": {"parallelism": parallelism}}}]}
    view = ObjectView(stack="dev", type=JOB_SET, name="run", inputs={"spec": spec})

    assert wrong("jobset-size", JOB_SET, spec=spec) == ["spec.replicatedJobs[0].replicas"] * refused
    assert [draft.nearest for draft in jobset_size(view)] == [str(2**30 - 1)] * refused


@pytest.mark.parametrize(
    ("topology", "chips", "pods", "path"),
    [
        ("4x8", 4, 4 * 8 // 4, None),
        ("4x8", 8, 4, "template.spec.containers"),
        ("4x8", 4, 7, "parallelism"),
        ("4x8", 4, 2 * 8, None),  # two slices
        ("2x4", 8, 1, None),
        ("2x4", 4, 2, None),
        ("2x2", 8, 1, "template.spec.containers"),
        ("1x1", 1, 3, None),
        ("Not a topology", 8, 3, None),
    ],
)
def test_pods_ask_for_the_chips_of_their_machines(topology: str, chips: int, pods: int, path: str | None) -> None:
    selector = {
        "cloud.google.com/gke-tpu-accelerator": "tpu-v5-lite-podslice", "cloud.google.com/gke-tpu-topology": topology,
    }  # fmt: skip
    container = {"name": "train", "resources": {"limits": {"google.com/tpu": str(chips)}}}
    spec = {**job([container], nodeSelector=selector), "parallelism": float(pods)}

    assert wrong("tpu-job-chips", JOB, spec=spec) == [f"spec.{path}"] * bool(path)


def test_a_pod_without_selectors_is_of_no_machine() -> None:
    spec = job([{"name": "train", "resources": {"limits": {"google.com/tpu": "64"}}}])

    assert wrong("tpu-job-chips", JOB, spec=spec) == []


@pytest.mark.parametrize(
    ("rollout", "replicas", "refused"),
    [({}, 2.0, 0), ({"maxUnavailable": 0.0}, 2.0, 1), ({"maxUnavailable": 0.0, "maxSurge": 1.0}, 2.0, 0),
     ({"maxUnavailable": "49%"}, 2.0, 1), ({"maxUnavailable": "50%"}, 2.0, 0), ({"maxUnavailable": 0.0}, 0.0, 0)],
)  # fmt: skip
def test_a_rollout_may_replace_a_group(rollout: dict[str, Any], replicas: float, refused: int) -> None:
    spec = {"replicas": replicas, "rolloutStrategy": {"rollingUpdateConfiguration": rollout},
            "leaderWorkerTemplate": {"size": 2.0}}  # fmt: skip
    path = "spec.rolloutStrategy.rollingUpdateConfiguration.maxUnavailable"

    assert wrong("lws-rollout", LWS, spec=spec) == [path] * refused
