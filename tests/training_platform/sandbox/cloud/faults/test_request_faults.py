"""Requests that are turned away or whose answers are lost: what a client sees, and what is there afterwards."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest

from tests.training_platform.sandbox.cloud.faults.conftest import CLUSTER, NETWORKS, hits


@pytest.mark.parametrize(
    ("code", "status", "reason"),
    [(429, "RESOURCE_EXHAUSTED", "rateLimitExceeded"), (503, "UNAVAILABLE", "backendError")],
)
def test_a_burst_turns_requests_away_so_often_and_then_lets_them_through(
    http: httpx.Client, add: Callable[..., None], code: int, status: str, reason: str
) -> None:
    add("bursts", code=code, service="compute", verb="POST", path="v1/*/networks", times=2, retry_after_seconds=7)
    body = {"name": "it", "autoCreateSubnetworks": False}

    for _ in range(2):
        refused = http.post(f"/{NETWORKS}", json=body)
        error = refused.json()["error"]
        assert (refused.status_code, error["code"], error["status"]) == (code, code, status)
        assert error["errors"][0]["reason"] == reason
        assert refused.headers["retry-after"] == "7"
        assert http.get(f"/{NETWORKS}/it").status_code == 404

    assert http.post(f"/{NETWORKS}", json=body).status_code == 200
    assert hits(http) == [f"POST /{NETWORKS}"] * 2


def test_a_burst_lasts_from_a_time_for_a_time(
    http: httpx.Client, add: Callable[..., None], pass_time: Callable[[float], None]
) -> None:
    add("bursts", code=503, from_seconds=10, for_seconds=20)

    seen = []
    for wait in (9, 1, 19, 1):
        pass_time(wait)
        seen.append(http.get(f"/{NETWORKS}").status_code)

    assert seen == [200, 503, 503, 200]
    assert "retry-after" not in http.get(f"/{NETWORKS}").headers


def test_an_expired_token_is_401_with_the_reason_and_a_challenge(http: httpx.Client, add: Callable[..., None]) -> None:
    add("expired_tokens", service="container", times=1)

    refused = http.get(f"/{CLUSTER}")

    error = refused.json()["error"]
    assert (refused.status_code, error["status"]) == (401, "UNAUTHENTICATED")
    assert error["details"][0]["reason"] == "ACCESS_TOKEN_EXPIRED"
    assert 'error="invalid_token"' in refused.headers["www-authenticate"]
    assert http.get(f"/{CLUSTER}").status_code == 200


def test_an_answer_that_is_lost_closes_the_connection_after_the_effect(
    http: httpx.Client, add: Callable[..., None]
) -> None:
    add("lost_responses", times=1)
    body = {"name": "it", "autoCreateSubnetworks": False}

    with pytest.raises((httpx.RemoteProtocolError, httpx.ReadError)):
        http.post(f"/{NETWORKS}", json=body)

    assert http.get(f"/{NETWORKS}/it").status_code == 200
    assert http.post(f"/{NETWORKS}", json=body).status_code == 409


def test_an_answer_that_is_lost_may_look_like_an_outage(http: httpx.Client, add: Callable[..., None]) -> None:
    add("lost_responses", client_sees="unavailable", path="*/networks", times=1)

    lost = http.post(f"/{NETWORKS}", json={"name": "it", "autoCreateSubnetworks": False})

    assert (lost.status_code, lost.json()["error"]["status"]) == (503, "UNAVAILABLE")
    assert http.get(f"/{NETWORKS}/it").status_code == 200


def test_reads_and_refusals_are_not_lost(http: httpx.Client, add: Callable[..., None]) -> None:
    add("lost_responses")

    assert http.get(f"/{CLUSTER}").status_code == 200
    assert http.post(f"/{NETWORKS}", json={"name": "NOT A NAME"}).status_code == 400
    assert hits(http) == []
