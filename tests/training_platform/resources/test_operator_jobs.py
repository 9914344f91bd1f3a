"""The policies of jobs of operators, evaluated without an API server.

``tests/kube/test_operators.py`` runs the operators under these policies.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.kube.offline import Offline, judging
from tests.kube.server import PLURALS, Json
from training_platform.catalog import IMAGES
from training_platform.resources.admission import queued_operator_jobs
from training_platform.resources.admission_policy import PODSET_LABEL, Bounds
from training_platform.resources.operators import OPERATORS

NAMES = {
    "rayclusters": "RayCluster", "rayjobs": "RayJob", "trainjobs": "TrainJob", "leaderworkersets": "LeaderWorkerSet",
    "trainingruntimes": "TrainingRuntime",
}  # fmt: skip
POD = {"spec": {"containers": [{"name": "a", "image": "example.com/a:1"}]}}
FORGED = {**POD, "metadata": {"labels": {PODSET_LABEL: "a"}}}
KINDS = {kind.resource: kind for operator in OPERATORS.values() for kind in operator.kinds}
QUEUED = [name for name, kind in KINDS.items() if kind.queued]
CONTROLLER = {"apiVersion": "v1", "kind": "A", "name": "a", "uid": "1", "controller": True}


def spec(kind: str, pod: Json) -> Json:
    """Return a job whose last template is ``pod``."""
    ray = {"headGroupSpec": {"template": POD}, "workerGroupSpecs": [{"template": POD}, {"template": pod}]}
    replicated = [{"name": "other"}, {"name": "node", "template": {"spec": {"template": pod}}}]
    patch = {"trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": replicated}}}}
    specs: dict[str, Json] = {
        "rayclusters": {"suspend": True, **ray},
        "rayjobs": {"suspend": True, "rayClusterSpec": ray},
        "trainjobs": {"suspend": True, "runtimePatches": [{"manager": "example.com/other"}, patch]},
        "trainingruntimes": {"template": {"spec": {"replicatedJobs": replicated}}},
        "leaderworkersets": {"leaderWorkerTemplate": {"workerTemplate": pod}},
    }
    return specs[kind]


def job(kind: str, pod: Json = POD, **metadata: Any) -> Json:
    about = {"name": "j", "namespace": "vision", "labels": {"kueue.x-k8s.io/queue-name": "vision"}, **metadata}
    api = f"{KINDS[kind].group}/{KINDS[kind].version}"
    return {"apiVersion": api, "kind": NAMES[kind], "metadata": about, "spec": spec(kind, pod)}


@pytest.fixture(scope="module")
def members() -> Offline:
    for kind in KINDS.values():
        PLURALS[NAMES[kind.resource]] = f"/apis/{kind.group}/{kind.version}/namespaces/{{}}/{kind.resource}"
    return judging(queued_operator_jobs(tuple(KINDS.values()), Bounds(), IMAGES))


@pytest.mark.parametrize("kind", KINDS)
def test_only_a_job_whose_pods_may_be_created_is_let_in(members: Offline, kind: str) -> None:
    privileged = {**POD["spec"]["containers"][0], "securityContext": {"privileged": True}}

    assert members.ask(NAMES[kind], job(kind)) == ""
    for pod, why in (
        (FORGED, "only Kueue may set the label"),
        ({"spec": {**POD["spec"], "hostNetwork": True}}, "hostNetwork, hostPID and hostIPC may not be set"),
        ({"spec": {"containers": [privileged]}}, "a container may not be privileged"),
    ):
        assert why in members.ask(NAMES[kind], job(kind, pod))


@pytest.mark.parametrize("kind", QUEUED)
def test_a_job_past_the_queue_is_refused(members: Offline, kind: str) -> None:
    assert "Kueue does not manage this job" in members.ask(NAMES[kind], job(kind, labels={}))
    assert "must have no controller" in members.ask(NAMES[kind], job(kind, ownerReferences=[CONTROLLER]))
    if KINDS[kind].suspends:
        running = job(kind)
        running["spec"]["suspend"] = False
        assert "Kueue does not manage this job" in members.ask(NAMES[kind], running)


def test_a_ray_job_may_carry_a_template_of_its_submitter_but_no_forged_one(members: Offline) -> None:
    ray_job = job("rayjobs")

    ray_job["spec"]["submitterPodTemplate"] = POD
    assert members.ask("RayJob", ray_job) == ""
    ray_job["spec"]["submitterPodTemplate"] = FORGED
    assert "only Kueue may set the label" in members.ask("RayJob", ray_job)


@pytest.mark.parametrize(
    ("field", "why"),
    [
        ({"enableInTreeAutoscaling": True}, "cannot scale its cluster"),
        ({"headGroupSpec": {"enableIngress": True, "template": POD}}, "cannot have an Ingress"),
    ],
)
def test_a_ray_cluster_may_neither_scale_itself_nor_have_an_ingress(members: Offline, field: Json, why: str) -> None:
    cluster = job("rayclusters")
    cluster["spec"] |= field
    of_job = job("rayjobs")
    of_job["spec"]["rayClusterSpec"] |= field

    assert why in members.ask("RayCluster", cluster)
    assert why in members.ask("RayJob", of_job)


def test_a_patch_may_tolerate_the_nodes_of_what_its_runtime_requests(members: Offline) -> None:
    tolerating = {"spec": {"tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}]}}

    assert members.ask("TrainJob", job("trainjobs", tolerating)) == ""
