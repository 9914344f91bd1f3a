"""Rules of jobs: what goes together in the spec of one, alone and within a JobSet."""

from __future__ import annotations

from typing import Any

import pytest

from tests.training_platform.rules.objects import JOB, JOB_SET, job, wrong


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
