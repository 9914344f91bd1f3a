"""A real API server stops each attack of a team's member, and so do the policies by themselves, in the same words.

Nodes enforce NetworkPolicies, and none are here: the API server takes them, and which connections they let through is
tested in tests/training_platform/resources/network.
"""

from __future__ import annotations

import re
import time

import pytest

from tests.kube.attempts import ACCEPTED, ATTEMPTS, GAINS, JOBS, PLACES_OF, RIGHTS, Accepted, Attempt
from tests.kube.bodies import QUEUED, job, mega, plain
from tests.kube.conftest import administrator
from tests.kube.offline import Offline
from tests.kube.server import JOB_CONTROLLER, MEMBER, Server
from tests.support.places import ROOT
from training_platform.parts.verify.tenancy_probes import EVERY_DAY, ProbeCommand, commands, writes

pytestmark = [pytest.mark.kube, pytest.mark.timeout(300)]


@pytest.mark.parametrize(("gain", "attempt"), ATTEMPTS, ids=[f"{gain}: {tried.way}" for gain, tried in ATTEMPTS])
def test_an_attempt_is_stopped(server: Server, offline: Offline, gain: str, attempt: Attempt) -> None:
    refusal = attempt.attempt(server)

    assert refusal, f"to {gain}: {attempt.way}"
    assert attempt.says in refusal
    if attempt.stopped_by.startswith("training-platform-"):
        assert f"ValidatingAdmissionPolicy '{attempt.stopped_by}'" in refusal
        policy, _, reason = refusal.partition("ValidatingAdmissionPolicy ")[2].partition(" with binding ")
        assert any(policy in words and reason in words for words in attempt.attempt(offline).splitlines())


@pytest.mark.parametrize("tried", list(commands()), ids=lambda tried: tried.way)
def test_a_command_is_refused_before_its_pod_is_looked_for(server: Server, tried: ProbeCommand) -> None:
    """So `verify` asks of a pod that does not exist, in which nothing can run."""
    nowhere = {"metadata": {"namespace": "vision", "name": "no-such-pod"}}

    assert tried.says[0] in server.run(nowhere, tried.container, MEMBER)
    assert '"no-such-pod" not found' in server.run(nowhere, "training", MEMBER)


@pytest.mark.parametrize("accepted", ACCEPTED, ids=[example.way for example in ACCEPTED])
def test_what_is_done_every_day_is_let_through(server: Server, offline: Offline, accepted: Accepted) -> None:
    assert server.ask(accepted.kind, accepted.body, accepted.who) == ""
    assert offline.ask(accepted.kind, accepted.body, accepted.who) == ""


@pytest.mark.parametrize(
    "user", ["system:node:a", "system:anonymous", "system:kube-scheduler", "system:serviceaccount:nlp:training"]
)
def test_only_controllers_are_let_through(server: Server, user: str) -> None:
    """Whoever becomes such a user makes no job past its queue; roles are taken out of the way."""
    binding = administrator("nlp:any") | {"subjects": [{"kind": "User", "name": user}]}
    binding["metadata"] = {"name": "any"}
    assert server.ask("ClusterRoleBinding", binding, keep=True) == ""
    try:
        deadline = time.monotonic() + 10
        who = {"Impersonate-User": user}
        while "cannot create resource" in (refusal := server.ask("Job", job(suspend=False), who)):
            assert time.monotonic() < deadline
            time.sleep(0.1)
    finally:
        server.delete("ClusterRoleBinding", binding)

    assert f"ValidatingAdmissionPolicy '{JOBS}'" in refusal


def test_what_members_do_every_day_is_let_through(server: Server) -> None:
    """Else all of the above would be stopped by what stops everything."""
    for right in RIGHTS[EVERY_DAY]:
        assert server.may(right.verb, right.resource, PLACES_OF[right.namespace], MEMBER), right
    assert server.ask("Job", job(labels=QUEUED), MEMBER) == ""
    assert server.ask("Pod", mega(), JOB_CONTROLLER) == ""


def test_a_pod_that_names_no_cpus_gives_way_to_those_that_do(server: Server) -> None:
    """It is counted as nothing by the quota; the kernel gives it what is idle, and it is the first to go."""
    held = plain("vision", labels={"attempt": "best-effort"})
    held["metadata"]["name"] = "idle"
    assert server.ask("Pod", held, JOB_CONTROLLER, keep=True) == ""
    try:
        (idle,) = (pod for pod in server.read("Pod", "vision") if pod["metadata"]["name"] == "idle")
        assert idle["status"]["qosClass"] == "BestEffort"
    finally:
        server.delete("Pod", held)


def test_a_namespace_is_closed_in_both_directions(server: Server) -> None:
    for namespace in ("vision", "nlp"):
        policies = {policy["metadata"]["name"]: policy["spec"] for policy in server.read("NetworkPolicy", namespace)}

        assert {name: spec["policyTypes"] for name, spec in policies.items()} == {
            "same-namespace": ["Ingress"],
            "egress": ["Egress"],
        }
        assert all(spec["podSelector"] == {} for spec in policies.values())


def test_the_namespace_bounds_objects_pods_cpus_and_memory(server: Server) -> None:
    for namespace in ("vision", "nlp"):
        (quota,) = server.read("ResourceQuota", namespace)

        assert {"pods", "requests.cpu", "requests.memory", "count/jobs.batch", "configmaps", "secrets"} <= quota[
            "spec"
        ]["hard"].keys()


def test_every_gain_of_the_list_is_tried() -> None:
    assert {
        *RIGHTS,
        *(listed.gain for listed in writes("vision", "vision")),
        *(listed.gain for listed in commands()),
    } == {
        EVERY_DAY,
        *GAINS,
    }


def test_the_page_names_what_stops_each() -> None:
    page = (ROOT / "docs" / "development" / "attacks.md").read_text(encoding="utf-8")
    table = page.partition("| what a member could gain |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| ([a-z][^|]+?) \|", table, re.MULTILINE)

    assert rows == list(GAINS)
