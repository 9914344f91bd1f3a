"""Jobs of operators as members create them, held in a queue or refused; and the rights of a W&B Launch agent.

Definitions are bare ones that take any field: what is tried is admission, and none of the operators, which
``test_operators.py`` runs.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.kube.bodies import GPU_JOB
from tests.kube.bodies import job as admitted_job
from tests.kube.server import PLURALS, RBAC, Json, Server, role_objects
from training_platform.catalog import IMAGES
from training_platform.resources.admission import OperatorJob, queued_operator_jobs
from training_platform.resources.admission_policy import API_VERSION, PODSET_LABEL, Bounds
from training_platform.resources.launch_agent import (
    AGENT_LABELS,
    AGENT_QUOTA,
    agent_account,
    agent_namespace,
    agent_rules,
    key_secret,
)
from training_platform.resources.operators import OPERATORS
from training_platform.resources.tenancy import rules_of

pytestmark = [pytest.mark.kube, pytest.mark.timeout(300)]

GRACE = {"Impersonate-User": "grace@example.com"}
NAMES = {
    "rayclusters": "RayCluster", "rayjobs": "RayJob", "trainjobs": "TrainJob", "leaderworkersets": "LeaderWorkerSet",
    "trainingruntimes": "TrainingRuntime",
}  # fmt: skip
POD = {"spec": {"containers": [{"name": "a", "image": "example.com/a:1"}]}}
FORGED = {**POD, "metadata": {"labels": {PODSET_LABEL: "a"}}}
KINDS = {kind.resource: kind for operator in OPERATORS.values() for kind in operator.kinds}
QUEUED = [name for name, kind in KINDS.items() if kind.queued]


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
def members(server: Server) -> Server:
    """Return the server with the kinds, their policies, and somebody who has members' rights to them."""
    for kind in KINDS.values():
        PLURALS[NAMES[kind.resource]] = f"/apis/{kind.group}/{kind.version}/namespaces/{{}}/{kind.resource}"
        assert server.ask("CustomResourceDefinition", definition(kind), keep=True) == ""
    for policy in queued_operator_jobs(tuple(KINDS.values()), Bounds(), IMAGES):
        for part, body in (("Policy", policy.spec), ("PolicyBinding", policy.binding)):
            policy_object = {
                "apiVersion": API_VERSION,
                "kind": f"ValidatingAdmission{part}",
                "metadata": {"name": policy.name},
            }
            assert server.ask(str(policy_object["kind"]), {**policy_object, "spec": body}, keep=True) == ""
    rules = [
        {"apiGroups": [rule.api_group], "resources": list(rule.resources), "verbs": list(rule.verbs)}
        for rule in rules_of(KINDS.values())
    ]
    grace = {"kind": "User", "name": "grace@example.com", "apiGroup": RBAC}
    for grant in role_objects("operator-jobs", "vision", rules, grace):
        assert server.ask(grant["kind"], grant, keep=True) == ""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if all(PODSET_LABEL in server.ask(NAMES[kind], job(kind, FORGED), GRACE) for kind in KINDS):
            return server
        time.sleep(0.2)
    raise AssertionError("the policies are not evaluated")


def definition(kind: OperatorJob) -> Json:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": kind.version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": kind.resource, "kind": NAMES[kind.resource], "singular": NAMES[kind.resource].lower()}
    about = {"group": kind.group, "scope": "Namespaced", "names": names, "versions": [version]}
    name = {"name": f"{kind.resource}.{kind.group}"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": name,
        "spec": about,
    }


@pytest.mark.parametrize("kind", KINDS)
def test_a_job_in_a_queue_is_let_in(members: Server, kind: str) -> None:
    assert members.ask(NAMES[kind], job(kind), GRACE) == ""


@pytest.mark.parametrize("kind", KINDS)
def test_pods_that_pass_for_admitted_ones_are_refused(members: Server, kind: str) -> None:
    assert "only Kueue may set the label" in members.ask(NAMES[kind], job(kind, FORGED), GRACE)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("pod", "container", "why"),
    [
        ({"hostNetwork": True}, {}, "hostNetwork, hostPID and hostIPC may not be set"),
        ({"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}, {}, "a hostPath volume may only be"),
        ({"serviceAccountName": "other"}, {}, "pods of a team must run as training or default"),
        ({}, {"securityContext": {"privileged": True}}, "a container may not be privileged"),
        ({}, {"securityContext": {"capabilities": {"add": ["SYS_PTRACE"]}}}, "may add only capabilities of Pod"),
    ],
    ids=["host network", "host path", "account", "privileged", "capability"],
)
def test_a_job_whose_pods_would_be_refused_is_refused(
    members: Server, kind: str, pod: Json, container: Json, why: str
) -> None:
    containers = [{**POD["spec"]["containers"][0], **container}]

    assert why in members.ask(NAMES[kind], job(kind, {"spec": {**pod, "containers": containers}}), GRACE)


@pytest.mark.parametrize("kind", QUEUED)
@pytest.mark.parametrize(
    ("spoiled", "why"),
    [
        ({"labels": {}}, "Kueue does not manage this job"),
        (
            {"ownerReferences": [{"apiVersion": "v1", "kind": "A", "name": "a", "uid": "1", "controller": True}]},
            "must have no controller",
        ),
    ],
)
def test_a_job_past_the_queue_is_refused(members: Server, kind: str, spoiled: Json, why: str) -> None:
    assert why in members.ask(NAMES[kind], job(kind, **spoiled), GRACE)


@pytest.mark.parametrize("kind", [name for name in QUEUED if KINDS[name].suspends])
def test_a_job_that_would_start_at_once_is_refused(members: Server, kind: str) -> None:
    running = job(kind)
    running["spec"]["suspend"] = False

    assert "Kueue does not manage this job" in members.ask(NAMES[kind], running, GRACE)


def test_a_ray_job_may_carry_a_template_of_its_submitter_but_no_forged_one(members: Server) -> None:
    ray_job = job("rayjobs")

    ray_job["spec"]["submitterPodTemplate"] = POD
    assert members.ask("RayJob", ray_job, GRACE) == ""
    ray_job["spec"]["submitterPodTemplate"] = FORGED
    assert "only Kueue may set the label" in members.ask("RayJob", ray_job, GRACE)


TEAM = "vision"
OWN = agent_namespace(TEAM)
AGENT = {"Impersonate-User": f"system:serviceaccount:{OWN}:{agent_account(TEAM)}"}
# What the chart grants it in its own namespace: wandb/helm-charts 82d5626, launch-agent, rbac.yaml, read 2026-11-22.
OF_THE_CHART = [
    {"apiGroups": [""], "resources": ["pods", "configmaps", "secrets"], "verbs": ["create", "get", "list"]},
    {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["create", "get", "list"]},
]


@pytest.fixture(scope="module")
def agent(server: Server) -> Server:
    """Return the server with the agent's namespace, its quota, and its rights there and in the team's."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": OWN, "labels": AGENT_LABELS}}
    quota = {
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "agent", "namespace": OWN},
        "spec": {"hard": AGENT_QUOTA},
    }  # fmt: skip
    account = {"kind": "ServiceAccount", "name": agent_account(TEAM), "namespace": OWN}
    rights = {TEAM: agent_rules(TEAM), OWN: OF_THE_CHART}
    grants = [grant for where, rules in rights.items() for grant in role_objects("agent", where, rules, account)]
    for body in (namespace, quota, *grants):
        assert server.ask(str(body["kind"]), body, keep=True) == ""
    server.wait_for_quota(OWN, 60)
    return server


def secret(name: str) -> Json:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": TEAM}}


def test_its_job_in_the_teams_queue_is_let_in_and_no_other(agent: Server) -> None:
    assert agent.ask("Job", admitted_job(), AGENT) == ""
    assert "Kueue does not manage this job" in agent.ask("Job", admitted_job(labels={}), AGENT)
    assert "Kueue does not manage this job" in agent.ask("Job", admitted_job(suspend=False), AGENT)


def test_its_jobset_in_the_teams_queue_is_let_in_and_no_other(agent: Server, rendered: Callable[[str], Json]) -> None:
    held = copy.deepcopy(rendered(GPU_JOB))
    held["spec"]["suspend"] = True  # by Kueue's webhook, which is not here
    del held["metadata"]["name"]
    assert "name or generateName is required" in agent.ask("JobSet", held, AGENT)
    held["metadata"]["generateName"] = "finetune-"

    assert agent.ask("JobSet", held, AGENT) == ""
    del held["metadata"]["labels"]["kueue.x-k8s.io/queue-name"]
    assert "Kueue does not manage this job" in agent.ask("JobSet", held, AGENT)


def test_it_makes_no_pods_and_reads_no_secret_but_the_copy_of_its_key(agent: Server) -> None:
    assert not agent.may("create", "pods", TEAM, AGENT)
    assert not agent.may("list", "secrets", TEAM, AGENT)
    assert agent.may("watch", "jobsets.jobset.x-k8s.io", TEAM, AGENT)
    assert agent.ask("Secret", secret(key_secret(TEAM)), AGENT) == ""
    assert agent.ask("Secret", secret("other"), keep=True) == ""
    for name, answer in ((key_secret(TEAM), "not found"), ("other", "forbidden")):
        assert answer in agent.find("Secret", secret(name), AGENT)


def test_another_teams_namespace_is_closed_to_it(agent: Server) -> None:
    assert "forbidden" in agent.ask("Job", admitted_job(namespace="nlp"), AGENT)


def test_its_own_namespace_has_no_room_for_jobs(agent: Server) -> None:
    assert "exceeded quota" in agent.ask("Job", admitted_job(namespace=OWN), AGENT)
