"""The admission policies refuse each attack of a member and let work through, evaluated without an API server.

``test_attempts.py`` holds these verdicts equal to a real server's. What a quota or Pod Security stops is
tried there alone.
"""

from __future__ import annotations

import re

import pytest

from tests.kube.attempts import ACCEPTED, ATTEMPTS, POD_SECURITY, QUOTA, ROLES, Accepted, Attempt
from tests.kube.offline import Offline
from tests.support.places import ROOT

OFFLINE = [(gain, attempt) for gain, attempt in ATTEMPTS if attempt.stopped_by not in (QUOTA, POD_SECURITY)]


@pytest.mark.parametrize(("gain", "attempt"), OFFLINE, ids=[f"{gain}: {tried.way}" for gain, tried in OFFLINE])
def test_an_attempt_is_refused(offline: Offline, gain: str, attempt: Attempt) -> None:
    refusal = attempt.attempt(offline)

    if attempt.stopped_by == ROLES:
        assert refusal, f"to {gain}: {attempt.way}"
    else:
        assert f"ValidatingAdmissionPolicy '{attempt.stopped_by}'" in refusal, f"to {gain}: {attempt.way}"
        assert attempt.says in refusal


@pytest.mark.parametrize("accepted", ACCEPTED, ids=[example.way for example in ACCEPTED])
def test_what_is_done_every_day_is_let_through(offline: Offline, accepted: Accepted) -> None:
    assert offline.ask(accepted.kind, accepted.body, accepted.who) == ""


PAGE = [
    ("a privileged pod,", "privileged|host network|host processes|root of the node|no seccomp|no AppArmor|SELinux"),
    ("a pod or template without", ".* in a confined team"),
    (
        "a Job without a queue,",
        "start a Job past its queue|pose as a part .*|make a Job a part of an admitted one|change the labels of .*",
    ),
    (
        "starting a Job that waits;",
        "start a Job that waits|start a Job that waits, by a change|enlarge a Job that runs",
    ),
    ("a job without `kueue", "test_job_ends.py::test_a_job_without_the_teams_limit_of_time_is_refused"),
    ("any template whose pods", "end 901 seconds .*|run as gmp-critical.*|put a finalizer on pods"),
    ("another spec for a Train", "test_operators.py::test_a_runtime_does_not_shrink_while_jobs_of_it_wait"),
    ("deleting a job but not", "delete a Job.*"),
    ("deleting or evicting a", "(delete pods|deletecollection pods|create pods/eviction) in vision .*"),
    ("a claim of GPUs or other", "test_admission.py::test_claims_are_for_network_devices_by_an_exact_count"),
    (
        "a finalizer on a job,",
        "put a finalizer (of claims )?on a (Job|Secret|ConfigMap|Persist.*)|keep a Secret with a lasting token",
    ),
    ("a pod with TPUs or GPUs", "take [GT]PUs without quota|take GPUs at a gate of its own|sit on nodes with GPUs"),
    ("a pod on a chosen node,", "(choose a node|preempt pods of the system|end a pod a year after eviction).*"),
    ("a pod with the labels of", "have the token of .*"),
    ("affinity to, or away", "keep another team's pods away, by .*|pose as another team's job towards JobSet's .*"),
    ("any server's NFS share,", "mount its (Filestore|disk) .*|mount a share by a driver"),
    ("another team's folder of", "(not tested on a cluster"),
    ("another service account", "run under an account that is not the team's"),
    (
        "an image from elsewhere,",
        "test_admission.py::test_images_come_from_the_environments_repositories_where_it_says_so",
    ),
    ("a device of the node,", "have /dev/.* injected"),
    ("a container with the", "be the daemon of .*|(run|give|load|start|mount) .* the daemon.*"),
    ("a command in the daemon", "(exec|attach): .*"),
    ("more objects, CPUs or", "take all (CPUs|memory)"),
    ("connections to another", "(not tested on a cluster"),
]
"""Each attack of the page, by its first words: ways of the list, a test of another file, or that nobody tried it."""


def test_each_attack_of_the_page_is_in_the_list_is_tested_elsewhere_or_says_that_nobody_tried_it() -> None:
    page = (ROOT / "docs" / "development" / "attacks.md").read_text(encoding="utf-8")
    table = page.partition("| attempt of a member |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| (.+?) \| (.+?) \|$", table, re.MULTILINE)[1:]

    for (attack, refused_by), (words, tried) in zip(rows, PAGE, strict=True):
        assert attack.startswith(words)
        if tried.startswith("(not tested"):
            assert tried in refused_by, attack
        elif "::" in tried:
            file, _, name = tried.partition("::")
            assert f"\ndef {name}(" in (ROOT / "tests" / "kube" / file).read_text(encoding="utf-8"), attack
        else:
            attempts = [attempt for _, attempt in ATTEMPTS if re.fullmatch(tried, attempt.way)]
            policies = {
                attempt.stopped_by for attempt in attempts if attempt.stopped_by.startswith("training-platform-")
            }
            assert attempts, attack
            assert {name for name in policies if f"`{name}`" not in refused_by} == set(), attack
    named = {attempt.stopped_by for _, attempt in ATTEMPTS if attempt.stopped_by.startswith("training-")}
    assert {name for name in named if f"`{name}`" not in table} == set()
