"""The admission policies refuse each attack of a member and let work through, evaluated without an API server.

``test_attempts.py`` holds these verdicts equal to a real server's. What a quota or Pod Security stops is
tried there alone.
"""

from __future__ import annotations

import pytest

from tests.kube.attempts import ACCEPTED, ATTEMPTS, POD_SECURITY, QUOTA, ROLES, Accepted, Attempt
from tests.kube.offline import Offline

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
