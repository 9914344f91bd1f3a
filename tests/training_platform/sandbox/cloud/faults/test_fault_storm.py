"""Whatever goes wrong: errors are Google's, and what took place is there afterwards."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.training_platform.sandbox.cloud.conftest import LOCATION, PROJECT, Client, Json
from training_platform.sandbox.cloud.http.server import serve
from training_platform.sandbox.cloud.local_cloud import LocalCloud
from training_platform.sandbox.cloud.state.cloud import Settings
from training_platform.sandbox.cloud.state.store import Record

POOLS = f"container/v1/{LOCATION}/clusters/one/nodePools"
FIREWALLS = f"compute/v1/projects/{PROJECT}/global/firewalls"
COLLECTIONS = {"pools": POOLS, "firewalls": FIREWALLS}
NAMES = ("a", "b")

times = st.fixed_dictionaries(
    {}, optional={"times": st.integers(1, 3), "skip": st.integers(0, 2), "for_seconds": st.integers(1, 50)}
)
targets = st.fixed_dictionaries(
    {},
    optional={"service": st.sampled_from(["container", "compute"]), "verb": st.sampled_from(["GET", "POST", "DELETE"])},
)


def joined(*parts: st.SearchStrategy[Any]) -> st.SearchStrategy[Json]:
    return st.tuples(*parts).map(lambda found: {key: value for part in found for key, value in part.items()})


operation = st.sampled_from(["container.nodePools", "compute.firewalls"]).map(lambda kind: {"kind": kind})
SECTIONS: dict[str, st.SearchStrategy[Json]] = {
    "stockouts": joined(times, st.just({"machine_type": "e2-standard-2", "location": "us-central1"})),
    "failed_operations": joined(times, operation, st.sampled_from([0, 0.25, 0.5, 1]).map(lambda at: {"at": at})),
    "slow_operations": joined(times, operation, st.integers(1, 60).map(lambda seconds: {"seconds": seconds})),
    "stuck_pools": times,
    "bursts": joined(times, targets, st.sampled_from([429, 503]).map(lambda code: {"code": code})),
    "lost_responses": joined(
        times, targets, st.sampled_from(["closed", "unavailable"]).map(lambda seen: {"client_sees": seen})
    ),
    "expired_tokens": joined(times, targets),
}


def named(section: str) -> st.SearchStrategy[Json]:
    return SECTIONS[section].map(lambda fault: {section.replace("_", "-"): fault})


scenarios = st.sets(st.sampled_from(sorted(SECTIONS)), min_size=1, max_size=4).flatmap(
    lambda chosen: st.fixed_dictionaries({section: named(section) for section in sorted(chosen)})
)
steps = st.lists(
    st.tuples(
        st.sampled_from(["create", "read", "delete", "wait"]),
        st.sampled_from(sorted(COLLECTIONS)),
        st.sampled_from(NAMES),
    ),
    min_size=1,
    max_size=10,
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(scenario=scenarios, plan=steps)
def test_whatever_goes_wrong_is_an_error_of_googles_and_nothing_that_took_place_is_lost(
    http: httpx.Client, cloud: LocalCloud, time: list[float], scenario: Json, plan: list[tuple[str, str, str]]
) -> None:
    assert http.post("/_sandbox/faults", json=scenario).status_code == 200

    for action, collection, name in plan:
        if action == "wait":
            time[0] += 20
            continue
        before = names(cloud, collection)
        answer = asked(http, action, collection, name)
        after = names(cloud, collection)
        if answer is None and action == "create":  # the connection was closed, so it took effect
            assert name in after or any(each.body.get("error") for each in operations(cloud))
        elif answer is not None and answer.status_code in (401, 429):
            assert after == before
        elif answer is not None and answer.status_code == 200 and action == "create":
            assert name in after or "error" in answer.json()

    http.delete("/_sandbox/faults")
    time[0] += 1000
    for collection, path in COLLECTIONS.items():
        listed = http.get(f"/{path}").json()
        found = {each["name"] for each in listed.get("nodePools", listed.get("items", ()))} - {"default-pool"}
        assert found == names(cloud, collection)
        for name in found:
            assert http.get(f"/{path}/{name}").status_code == 200
            assert http.delete(f"/{path}/{name}").status_code == 200
        time[0] += 1000
        assert http.get(f"/{path}/{NAMES[0]}").status_code == 404


@pytest.fixture
def http(cloud: LocalCloud, ask: Client) -> Any:
    ask.network()
    ask.cluster()
    cloud.settings = Settings(durations={"*": 10.0})
    with serve(cloud) as port, httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
        yield client


def asked(http: httpx.Client, action: str, collection: str, name: str) -> httpx.Response | None:
    """Ask, and check the form of a refusal; None where the connection was closed."""
    path = COLLECTIONS[collection]
    pool = {"name": name, "initialNodeCount": 1, "config": {"machineType": "e2-standard-2"}}
    rule = {"name": name, "network": "global/networks/net", "allowed": [{"IPProtocol": "tcp"}]}
    try:
        if action == "create":
            answer = http.post(f"/{path}", json={"nodePool": pool} if collection == "pools" else rule)
        elif action == "read":
            answer = http.get(f"/{path}/{name}")
        else:
            answer = http.delete(f"/{path}/{name}")
    except (httpx.RemoteProtocolError, httpx.ReadError):
        return None
    assert answer.status_code != 500
    if answer.status_code != 200:
        error = answer.json()["error"]
        assert error["code"] == answer.status_code
        assert error["message"]
        assert error["status"]
    return answer


def names(cloud: LocalCloud, collection: str) -> set[str]:
    cloud.operations.settle()
    return {each.id for each in cloud.store.children(COLLECTIONS[collection].replace("/v1/", "/", 1))} - {
        "default-pool"
    }


def operations(cloud: LocalCloud) -> list[Record]:
    return [each for each in cloud.store.all() if "/operations/" in each.name]
