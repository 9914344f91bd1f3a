"""Bounds of the policies on pods, each at its limit; the attacks of members are in tests/kube/test_policies.py."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kube.bodies import QUEUED, job, mega, plain
from tests.kube.offline import judging
from tests.kube.server import KUEUE
from training_platform.catalog import IMAGES
from training_platform.config.expansion import SYSTEM_TAINT
from training_platform.resources.admission import MAX_RUN_SECONDS, claims, objects, queued_jobs
from training_platform.resources.admission_policy import JOB_KEY, Bounds, ExclusiveNodes
from training_platform.resources.kueue import RUN_LABEL
from training_platform.resources.pod_admission import ALLOW_LABEL, accelerator_pods, pod_baseline, pod_images


def refusals(bounds: Bounds, **spec: Any) -> list[str]:
    """Return the messages about a pod without chips in a team's namespace."""
    pod = plain("vision", labels={JOB_KEY: "1"}, **spec)
    lines = judging([accelerator_pods(bounds)]).ask("Pod", pod).splitlines()
    return [line.partition("denied request: ")[2] for line in lines]


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
    cluster = judging([queued_jobs(Bounds(), IMAGES)], controllers=["kueue-system:kueue-controller-manager"])
    held = job(QUEUED)
    held["spec"] |= {"suspend": False, **before}
    assert cluster.ask("Job", held, KUEUE, keep=True) == ""

    assert ("a running job keeps its size" in cluster.change("Job", held, {"spec": after}, {})) is refused


def test_a_job_needs_a_limit_of_time_if_its_team_has_one() -> None:
    limited = judging([queued_jobs(Bounds(), IMAGES)], annotations={MAX_RUN_SECONDS: "3600"})

    assert limited.ask("Job", job({**QUEUED, RUN_LABEL: "3600"})) == ""
    for seconds in ("3601", "0", "1h", "9999999999"):
        assert "is missing, or above" in limited.ask("Job", job({**QUEUED, RUN_LABEL: seconds}))
    assert "is missing, or above" in limited.ask("Job", job(QUEUED))


def test_images_come_from_the_repositories_that_the_environment_names() -> None:
    cluster = judging([pod_images(["example.com/"], IMAGES)])

    assert cluster.ask("Pod", plain("vision")) == ""
    assert cluster.ask("Pod", mega()) == ""  # with the daemon of GPUDirect, whose image is Google's
    refused: list[dict[str, Any]] = [
        {"container": {"image": "example.com.evil.org/a:1"}},
        {"container": {"image": "a"}},
        {"initContainers": [{"name": "i", "image": "docker.io/a:1"}]},
        {"volumes": [{"name": "v", "image": {"reference": "docker.io/a:1"}}]},
    ]
    for fields in refused:
        assert "an image must come from" in cluster.ask("Pod", plain("vision", **fields))


@pytest.mark.parametrize(
    ("gpu", "refused"), [("nvidia-h100-mega-80gb", False), ("nvidia-h100-80gb", True), ("nvidia-tesla-t4", True)]
)
def test_devices_of_gpudirect_are_injected_only_on_nodes_with_that_kind_of_it(gpu: str, refused: bool) -> None:
    cluster = judging([pod_baseline(IMAGES)], labels={f"{ALLOW_LABEL}tcpxo": "true"})

    answer = cluster.ask("Pod", mega(nodeSelector={"cloud.google.com/gke-accelerator": gpu}))

    assert ("may use devices of the node" in answer) is refused


EXACTLY = {"deviceClassName": "mrdma.google.com", "allocationMode": "ExactCount", "count": 8}
EVERY = {"deviceClassName": "mrdma.google.com", "allocationMode": "All"}


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        ({"exactly": EXACTLY}, ""),
        ({"exactly": EVERY}, "a claim must have allocationMode ExactCount"),
        ({"exactly": {**EXACTLY, "deviceClassName": "gpu.nvidia.com"}}, "a claim must request exactly one of"),
        ({"firstAvailable": [{"name": "one", **EXACTLY}]}, "a claim must request exactly one of"),
    ],
)
def test_claims_are_for_network_devices_by_an_exact_count(request_: dict[str, Any], says: str) -> None:
    spec = {"devices": {"requests": [{"name": "devices", **request_}]}}
    about = {"name": "cards", "namespace": "vision"}
    cluster = judging([claims()])

    for kind, fields in {"ResourceClaim": spec, "ResourceClaimTemplate": {"spec": spec}}.items():
        refusal = cluster.ask(kind, {"metadata": about, "spec": fields})
        assert says in refusal
        assert bool(says) is bool(refusal)


def test_a_finalizer_that_exists_may_stay_or_be_removed() -> None:
    """An administrator frees an object of a controller that is gone."""
    cluster = judging([objects(())], controllers=["kueue-system:kueue-controller-manager"])
    kept = job(QUEUED, finalizers=["example.com/kept"])
    assert cluster.ask("Job", kept, KUEUE, keep=True) == ""

    assert cluster.change("Job", kept, {"metadata": {"annotations": {"note": "mine"}}}, {}) == ""
    assert cluster.change("Job", kept, {"metadata": {"finalizers": []}}, {}) == ""
