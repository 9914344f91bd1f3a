"""What an agent of W&B Launch may do, as its account: jobs in the team's queue, and nothing that passes it."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest

from tests.kube.server import Json, Server, role_objects
from tests.kube.test_admission import GPU_JOB, job
from training_platform.resources.operators import (
    AGENT_LABELS,
    AGENT_QUOTA,
    agent_account,
    agent_namespace,
    agent_rules,
    key_secret,
)

pytestmark = [pytest.mark.kube, pytest.mark.timeout(300)]

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
    grants = [each for where, rules in rights.items() for each in role_objects("agent", where, rules, account)]
    for made in (namespace, quota, *grants):
        assert server.ask(str(made["kind"]), made, keep=True) == ""
    server.wait_for_quota(OWN, 60)
    return server


def secret(name: str) -> Json:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": TEAM}}


def test_its_job_in_the_teams_queue_is_let_in_and_no_other(agent: Server) -> None:
    assert agent.ask("Job", job(), AGENT) == ""
    assert "Kueue does not hold this job" in agent.ask("Job", job(labels={}), AGENT)
    assert "Kueue does not hold this job" in agent.ask("Job", job(suspend=False), AGENT)


def test_its_jobset_in_the_teams_queue_is_let_in_and_no_other(agent: Server, rendered: Callable[[str], Json]) -> None:
    held = copy.deepcopy(rendered(GPU_JOB))
    held["spec"]["suspend"] = True  # by Kueue's webhook, which is not here

    assert agent.ask("JobSet", held, AGENT) == ""
    del held["metadata"]["labels"]["kueue.x-k8s.io/queue-name"]
    assert "Kueue does not hold this job" in agent.ask("JobSet", held, AGENT)


def test_it_makes_no_pods_and_reads_no_secret_but_the_copy_of_its_key(agent: Server) -> None:
    assert not agent.may("create", "pods", TEAM, AGENT)
    assert not agent.may("list", "secrets", TEAM, AGENT)
    assert agent.may("watch", "jobsets.jobset.x-k8s.io", TEAM, AGENT)
    assert agent.ask("Secret", secret(key_secret(TEAM)), AGENT) == ""
    assert agent.ask("Secret", secret("other"), keep=True) == ""
    for name, said in ((key_secret(TEAM), "not found"), ("other", "forbidden")):
        assert said in agent.find("Secret", secret(name), AGENT)


def test_another_teams_namespace_is_closed_to_it(agent: Server) -> None:
    assert "forbidden" in agent.ask("Job", job(namespace="nlp"), AGENT)


def test_its_own_namespace_has_no_room_for_jobs(agent: Server) -> None:
    assert "exceeded quota" in agent.ask("Job", job(namespace=OWN), AGENT)
