"""A real API server stops each attack of a team's member, and so do the policies by themselves, in the same words.

Nodes enforce NetworkPolicies, and none are here: the API server takes them, and which connections they let through is
tested in tests/training_platform/resources/network.
"""

from __future__ import annotations

import time

import pytest

from tests.kube.attempts import ACCEPTED, ATTEMPTS, JOBS, PLACES_OF, RIGHTS, Accepted, Attempt
from tests.kube.bodies import job
from tests.kube.conftest import administrator
from tests.kube.offline import Offline
from tests.kube.server import MEMBER, Server
from training_platform.parts.verify.tenancy_probes import EVERY_DAY, ProbeCommand, commands

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


def test_members_have_the_rights_that_they_need_every_day(server: Server) -> None:
    for right in RIGHTS[EVERY_DAY]:
        assert server.may(right.verb, right.resource, PLACES_OF[right.namespace], MEMBER), right
