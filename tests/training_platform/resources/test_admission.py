"""Bounds of the policies on pods, each at its limit; the attacks of members are in tests/kube/test_policies.py."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kube.offline import OfflinePolicy
from training_platform.catalog import IMAGES
from training_platform.config.expansion import SYSTEM_TAINT
from training_platform.resources.admission import queued_jobs
from training_platform.resources.admission_policy import JOB_KEY, Bounds, ExclusiveNodes
from training_platform.resources.pod_admission import accelerator_pods
from training_platform.resources.scope import TEAM_LABEL

PODS = {"group": "", "version": "v1", "resource": "pods"}


def refusals(bounds: Bounds, **spec: Any) -> list[str]:
    """Return the messages about a pod without chips in a team's namespace."""
    policy = accelerator_pods(bounds)
    judge = OfflinePolicy({"metadata": {"name": policy.name}, "spec": policy.spec})
    request = {"operation": "CREATE", "resource": PODS, "subResource": "", "userInfo": {"username": "ada@example.com"}}
    namespace = {"metadata": {"labels": {TEAM_LABEL: "vision"}}}
    pod = {"metadata": {"labels": {JOB_KEY: "1"}}, "spec": {"containers": [{"name": "main"}], **spec}}
    data = {"object": pod, "oldObject": None, "request": request, "namespaceObject": namespace}
    return list(judge.refusals(request, data))


@pytest.mark.parametrize(("priorities", "highest"), [({}, 0), ({"low": -5}, 0), ({"low": 1, "high": 50}, 50)])
def test_a_pod_has_at_most_the_highest_priority_of_its_environment(priorities: dict[str, int], highest: int) -> None:
    bounds = Bounds(priorities=priorities)

    assert refusals(bounds, priority=highest) == []
    assert refusals(bounds, priority=highest + 1) == [f"pods of teams must not have a priority above {highest}"]


def test_a_pod_ends_within_15_minutes_unless_the_environment_says_otherwise() -> None:
    assert refusals(Bounds(), terminationGracePeriodSeconds=15 * 60) == []
    assert refusals(Bounds(), terminationGracePeriodSeconds=15 * 60 + 1) != []
    assert refusals(Bounds(grace_seconds=1000), terminationGracePeriodSeconds=1000) == []


@pytest.mark.parametrize(
    ("key", "refused"),
    [(SYSTEM_TAINT[0], True), ("nvidia.com/gpu", True), ("google.com/tpu", True), ("", True), ("team", False)],
)
def test_a_pod_without_chips_tolerates_no_nodes_of_the_system_or_with_chips(key: str, refused: bool) -> None:
    assert bool(refusals(Bounds(), tolerations=[{"key": key, "operator": "Exists"}])) is refused


POOL = "cloud.google.com/gke-nodepool"
SLICE = {"training-platform/flavor": "tpu-v5e-4x4", "cloud.google.com/gke-tpu-topology": "4x4"}
SLICES = Bounds(exclusive=[ExclusiveNodes(SLICE, POOL)])


def leading(nodes: dict[str, str] = SLICE, key: str = "1", priority: str = "0", **term: Any) -> dict[str, Any]:
    """Return the first pod of a slice as JobSet's webhook makes it; its own key is 1 and its priority 0."""
    expressions = [
        {"key": JOB_KEY, "operator": "Exists"},
        {"key": JOB_KEY, "operator": "NotIn", "values": [key]},
        {"key": "jobset.sigs.k8s.io/priority", "operator": "In", "values": [priority]},
    ]
    selector = {"matchExpressions": expressions}
    affinity_term = {"topologyKey": POOL, "labelSelector": selector, "namespaceSelector": {}, **term}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [affinity_term]}}
    return {"nodeSelector": nodes, "affinity": apart}


@pytest.mark.parametrize(
    ("bounds", "pod", "refused"),
    [
        (SLICES, leading(), False),
        (SLICES, leading({**SLICE, "some": "other"}), False),
        (SLICES, leading({}), True),
        (SLICES, leading({**SLICE, "training-platform/flavor": "h100"}), True),
        (SLICES, leading(topologyKey="cloud.google.com/gke-accelerator"), True),
        (SLICES, leading(key="2"), True),
        (SLICES, leading(priority="1"), True),
        (SLICES, leading(labelSelector={"matchLabels": {"jobset.sigs.k8s.io/jobset-name": "finetune"}}), True),
        (SLICES, leading(labelSelector={"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}), True),
        (SLICES, leading(labelSelector={"matchExpressions": [{"key": "a", "operator": "Exists"}]}), True),
        (SLICES, leading(namespaces=["nlp"]), True),
        (Bounds(), leading(), True),
    ],
)
def test_other_teams_jobs_are_kept_away_only_from_slices_and_only_as_jobset_does(
    bounds: Bounds, pod: dict[str, Any], refused: bool
) -> None:
    assert any("own namespace" in message for message in refusals(bounds, **pod)) is refused


@pytest.mark.parametrize(
    ("before", "after", "refused"),
    [
        ({"parallelism": 2}, {"parallelism": 2}, False),
        ({"parallelism": 2}, {"parallelism": 4}, True),
        ({"completions": 2}, {"completions": 4}, True),
        ({"parallelism": 2}, {"parallelism": 4, "suspend": True}, False),
        ({"parallelism": 2, "suspend": True}, {"parallelism": 4, "suspend": True}, False),
    ],
)
def test_a_job_that_runs_keeps_its_size(before: dict[str, Any], after: dict[str, Any], refused: bool) -> None:
    policy = queued_jobs(Bounds(), IMAGES)
    judge = OfflinePolicy({"metadata": {"name": policy.name}, "spec": policy.spec})
    jobs = {"group": "batch", "version": "v1", "resource": "jobs"}
    request = {"operation": "UPDATE", "resource": jobs, "subResource": "", "userInfo": {"username": "ada@example.com"}}

    def job(fields: dict[str, Any]) -> dict[str, Any]:
        template = {"metadata": {}, "spec": {"containers": [{"name": "main"}]}}
        labels = {"kueue.x-k8s.io/queue-name": "vision"}
        return {"metadata": {"labels": labels}, "spec": {"suspend": False, "template": template, **fields}}

    data = {"object": job(after), "oldObject": job(before), "request": request}
    data["namespaceObject"] = {"metadata": {"labels": {TEAM_LABEL: "vision"}}}

    kept = [message for message in judge.refusals(request, data) if message.startswith("a running job keeps its size")]
    assert bool(kept) is refused
