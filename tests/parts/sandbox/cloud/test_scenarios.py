"""Scenario files, and a storm of faults: errors are Google's, and no change that took place is lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.parts.sandbox.cloud.client import LOCATION, PROJECT, Client, Json
from training_platform.parts.sandbox.cloud.faults.scenario import Scenario, ScenarioError, parse_scenario, read_scenario
from training_platform.parts.sandbox.cloud.http.server import serve
from training_platform.parts.sandbox.cloud.local_cloud import LocalCloud
from training_platform.parts.sandbox.cloud.state.cloud import CloudSettings
from training_platform.parts.sandbox.cloud.state.store import Record

ROOT = Path(__file__).parents[4]


def test_the_sample_scenario_has_a_fault_of_every_section() -> None:
    scenario = read_scenario(ROOT / "training_platform" / "parts" / "sandbox" / "scenarios" / "bad-day.yaml")

    assert {section for section, _, _ in scenario.faults()} == set(Scenario.model_fields)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("stockout: {}", "s.yaml:1:1: stockout: is not a field of this section"),
        ("stockout: {}", "Nearest: stockouts"),
        (
            "stockouts:\n  a: {machine_typ: x, location: us-central1-a}",
            "s.yaml:2:7: stockouts.a.machine_typ: is not a field of this section",
        ),
        ("stockouts:\n  a: {machine_typ: x, location: us-central1-a}", "stockouts.a.machine_type: is missing"),
        ("stockouts: {a: {machine_type: a3-higpu-8g, location: us-central1-a}}", "Nearest: a3-highgpu-8g"),
        ("stockouts: {a: {machine_type: e2-standard-4, location: us-central9-a}}", "'us-central9-a' is not a region"),
        ("bursts: {a: {code: 500}}", "bursts.a.code: 500 is not one of the allowed values"),
        ("bursts: {a: {code: 503, times: 0}}", "bursts.a.times: is 0"),
        ("bursts: {a: {code: 503, service: contaner}}", "Nearest: container"),
        ("failed_operations: {a: {kind: container.nodePool}}", "Nearest: container.nodePools"),
        ("failed_operations: {a: {kind: container.nodePools, at: 1.5}}", "Allowed: at most 1"),
        (
            "preemptions: {a: {}}\nlost_responses:\n  a: {}",
            "s.yaml:3:3: lost_responses.a: is also a fault of preemptions",
        ),
        ("preemptions: {A: {}}", "preemptions.A"),
        ("preemptions: {}", "s.yaml:1:1: has no fault"),
        ("", "has no value\n  Allowed: a mapping"),
        ("[1]", "is a list and not a mapping"),
        ("preemptions: {a: {for_seconds: 1_000}}", "read differently by different readers"),
        ("preemptions: {", "s.yaml:2:1: is not YAML"),
    ],
)
def test_a_scenario_that_cannot_be_played_says_what_and_where(text: str, message: str) -> None:
    with pytest.raises(ScenarioError) as error:
        parse_scenario(text, "s.yaml")

    assert message in str(error.value)


def test_all_mistakes_of_a_scenario_are_reported_at_once() -> None:
    with pytest.raises(ScenarioError) as error:
        parse_scenario("bursts: {a: {code: 1}, b: {code: 503, skip: -1}}", "s.yaml")

    assert len([line for line in str(error.value).splitlines() if line.startswith("s.yaml:")]) == 2


def test_a_missing_scenario_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="cannot be read"):
        read_scenario(tmp_path / "none.yaml")


def test_the_control_api_adds_lists_and_clears_and_says_what_it_cannot(cloud: LocalCloud) -> None:
    with serve(cloud) as port, httpx.Client(base_url=f"http://127.0.0.1:{port}/_sandbox", trust_env=False) as http:
        text = "bursts: {away: {code: 503, times: 2}}\npreemptions: {held: {}}"
        assert http.post("/faults", content=text).json() == {"added": ["held", "away"]}

        again = http.post("/faults", content="preemptions: {held: {}, other: {}}")
        assert (again.status_code, again.json()["error"]) == (409, "these faults exist: held; clear them first")
        wrong = http.post("/faults", content="burst: {}", params={"file": "day.yaml"})
        assert wrong.status_code == 400
        assert wrong.json()["error"].startswith("day.yaml:1:1: burst: is not a field of this section")
        unknown = http.delete("/faults/hold")
        assert (unknown.status_code, unknown.json()["error"]) == (404, "no fault is named 'hold'. Nearest: held")

        assert http.delete("/faults/held").json() == {"left": ["away"]}
        faults = http.get("/faults").json()
        assert [(fault["name"], fault["section"], fault["fired"]) for fault in faults] == [("away", "bursts", 0)]
        assert faults[0]["fault"] == {"code": 503, "times": 2}
        assert http.delete("/faults").json() == {"left": []}


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
    return st.tuples(*parts).map(lambda drawn: {key: value for part in drawn for key, value in part.items()})


operation = st.sampled_from(["container.nodePools", "compute.firewalls"]).map(lambda kind: {"kind": kind})
SECTIONS: dict[str, st.SearchStrategy[Json]] = {
    "stockouts": joined(times, st.just({"machine_type": "e2-standard-2", "location": "us-central1"})),
    "failed_operations": joined(times, operation, st.sampled_from([0, 0.25, 0.5, 1]).map(lambda share: {"at": share})),
    "bursts": joined(times, targets, st.sampled_from([401, 429, 503]).map(lambda code: {"code": code})),
    "lost_responses": joined(times, targets),
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
        answer = response_to(http, action, collection, name)
        after = names(cloud, collection)
        if answer is None and action == "create":  # the connection was closed, so it took effect
            assert name in after or any(operation.body.get("error") for operation in operations(cloud))
        elif answer is not None and answer.status_code in (401, 429, 503):
            assert after == before
        elif answer is not None and answer.status_code == 200 and action == "create":
            assert name in after or "error" in answer.json()

    http.delete("/_sandbox/faults")
    time[0] += 1000
    for collection, path in COLLECTIONS.items():
        listed = http.get(f"/{path}").json()
        listed_names = {resource["name"] for resource in listed.get("nodePools", listed.get("items", ()))} - {
            "default-pool"
        }
        assert listed_names == names(cloud, collection)
        for name in listed_names:
            assert http.get(f"/{path}/{name}").status_code == 200
            assert http.delete(f"/{path}/{name}").status_code == 200
        time[0] += 1000
        assert http.get(f"/{path}/{NAMES[0]}").status_code == 404


@pytest.fixture
def http(cloud: LocalCloud, ask: Client) -> Any:
    ask.network()
    ask.cluster()
    cloud.settings = CloudSettings(durations={"*": 10.0})
    with serve(cloud) as port, httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
        yield client


def response_to(http: httpx.Client, action: str, collection: str, name: str) -> httpx.Response | None:
    """Send a request, and check the form of a refusal; None if the connection was closed."""
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
    return {record.id for record in cloud.store.children(COLLECTIONS[collection].replace("/v1/", "/", 1))} - {
        "default-pool"
    }


def operations(cloud: LocalCloud) -> list[Record]:
    return [record for record in cloud.store.all() if "/operations/" in record.name]
