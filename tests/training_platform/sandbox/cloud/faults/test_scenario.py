"""Scenario files: what they may say, and what is said of those that cannot be played."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from tests.training_platform.sandbox.cloud.conftest import OTHER, PROJECT
from training_platform.sandbox.cloud.faults.scenario import Scenario, ScenarioError, parse_scenario, read_scenario
from training_platform.sandbox.cloud.http.server import serve
from training_platform.sandbox.cloud.local_cloud import LocalCloud

ROOT = Path(__file__).parents[5]


def test_the_sample_scenario_has_a_fault_of_every_section() -> None:
    scenario = read_scenario(ROOT / "training_platform" / "sandbox" / "scenarios" / "bad-day.yaml")

    assert {section for section, _, _ in scenario.faults()} == set(Scenario.model_fields)


@pytest.mark.parametrize(
    ("text", "said"),
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
        (
            "stockouts: {a: {machine_type: ct6e-standard-4t, location: us-central1, topology: 4x5}}",
            "s.yaml:1:72: stockouts.a.topology: '4x5' is not a valid topology for ct6e-standard-4t",
        ),
        ("bursts: {a: {code: 500}}", "bursts.a.code: 500 is not one of the allowed values"),
        ("bursts: {a: {code: 503, times: 0}}", "bursts.a.times: is 0"),
        ("bursts: {a: {code: 503, service: contaner}}", "Nearest: container"),
        ("failed_operations: {a: {kind: container.nodePool}}", "Nearest: container.nodePools"),
        ("failed_operations: {a: {kind: container.nodePools, at: 1.5}}", "Allowed: at most 1"),
        ("slow_operations: {a: {kind: container.nodePools}}", "takes either factor or seconds"),
        ("slow_operations: {a: {kind: container.nodePools, factor: 2, seconds: 1}}", "takes either factor or seconds"),
        ("stuck_pools: {a: {}}\nbursts:\n  a: {code: 503}", "s.yaml:3:3: bursts.a: is a fault of stuck_pools too"),
        ("stuck_pools: {A: {}}", "stuck_pools.A"),
        ("stuck_pools: {}", "s.yaml:1:1: has no fault"),
        ("", "has no value\n  Allowed: a mapping"),
        ("[1]", "is a list and not a mapping"),
        ("stuck_pools: {a: {for_seconds: 1_000}}", "read differently by different readers"),
        ("stuck_pools: {", "s.yaml:2:1: is not YAML"),
    ],
)
def test_a_scenario_that_cannot_be_played_says_what_and_where(text: str, said: str) -> None:
    with pytest.raises(ScenarioError) as error:
        parse_scenario(text, "s.yaml")

    assert said in str(error.value)


def test_everything_that_is_wrong_comes_at_once() -> None:
    with pytest.raises(ScenarioError) as error:
        parse_scenario("bursts: {a: {code: 1}, b: {code: 503, skip: -1}}", "s.yaml")

    assert len([line for line in str(error.value).splitlines() if line.startswith("s.yaml:")]) == 2


def test_a_scenario_that_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="cannot be read"):
        read_scenario(tmp_path / "none.yaml")


def test_the_control_api_adds_lists_and_clears_and_says_what_it_cannot(cloud: LocalCloud) -> None:
    with serve(cloud) as port, httpx.Client(base_url=f"http://127.0.0.1:{port}/_sandbox", trust_env=False) as http:
        text = "bursts: {away: {code: 503, times: 2}}\nstuck_pools: {held: {}}"
        assert http.post("/faults", content=text).json() == {"added": ["held", "away"]}

        again = http.post("/faults", content="stuck_pools: {held: {}, other: {}}")
        assert (again.status_code, again.json()["error"]) == (409, "there already: held; clear them first")
        wrong = http.post("/faults", content="burst: {}", params={"file": "day.yaml"})
        assert wrong.status_code == 400
        assert wrong.json()["error"].startswith("day.yaml:1:1: burst: is not a field of this section")
        unknown = http.delete("/faults/hold")
        assert (unknown.status_code, unknown.json()["error"]) == (404, "there is no fault 'hold'. Nearest: held")

        assert http.delete("/faults/held").json() == {"left": ["away"]}
        found = http.get("/faults").json()
        assert [(each["name"], each["section"], each["fired"]) for each in found] == [("away", "bursts", 0)]
        assert found[0]["fault"] == {"code": 503, "times": 2}
        http.post("/faults", content=f"expired_tokens: {{ours: {{project: {PROJECT}}}, theirs: {{project: {OTHER}}}}}")
        assert http.delete("/faults", params={"project": OTHER}).json() == {"left": ["away", "ours"]}
        assert http.delete("/faults").json() == {"left": []}
