"""Each alert fires and keeps quiet over series as their exporters write them, by promtool's recorded verdicts.

Where promtool is named, or on PATH, it plays the scenarios again, also with faults planted in the alerts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.alerts.promtool import PROGRAM, digest, play, program, scenarios, verdicts, written
from tests.support.promql import selectors
from training_platform.resources.monitoring import AlertRule, alert_rules

RULES = alert_rules()
OPPOSITE = {" < ": " > ", " > ": " < ", " >= ": " < ", " == ": " != "}
needs_promtool = pytest.mark.skipif(program() is None, reason=f"{PROGRAM} names no promtool, and none is on PATH")


def test_every_alert_has_a_scenario_that_makes_it_fire_and_one_that_keeps_it_quiet() -> None:
    assert scenarios().keys() == RULES.keys()
    assert [
        name for name, played in scenarios().items() if {scenario.fires for scenario in played} != {True, False}
    ] == []


@pytest.mark.parametrize("name", RULES)
def test_the_verdict_is_on_the_expression_and_the_scenarios_of_today(name: str) -> None:
    today = {scenario.name: digest(name, scenario) for scenario in scenarios()[name]}

    assert verdicts()["passed"][name] == today, "play it: python -m tests.alerts.promtool"


def test_no_verdict_is_on_an_alert_that_is_gone() -> None:
    assert verdicts()["passed"].keys() == RULES.keys()
    assert verdicts()["promtool"] == "0.310.0"


@pytest.mark.parametrize("name", RULES)
def test_an_alert_that_has_to_hold_is_quiet_before_its_time(name: str) -> None:
    for scenario in (firing for firing in scenarios()[name] if firing.fires):
        quiet = [time for time, incidents in scenario.open.items() if not incidents]
        assert quiet, scenario.name


@pytest.mark.parametrize("name", RULES)
def test_a_scenario_has_series_that_the_alert_asks_for_and_no_other(name: str) -> None:
    metrics_of_query = {str(selector.name) for selector in selectors(RULES[name].query(("a",), "p"))}
    for scenario in scenarios()[name]:
        assert {text.partition("{")[0] for text in scenario.series} <= metrics_of_query

    played = {text.partition("{")[0] for scenario in scenarios()[name] for text in scenario.series}
    assert played == metrics_of_query


def test_a_series_has_all_labels_of_its_source() -> None:
    assert written('kube_jobset_restarts{jobset_name="b"}', "jobset") == (
        'kube_jobset_restarts{cluster="prod-us-central1",location="us-central1",project_id="example-train-prod",'
        'namespace="vision",job="kube-state-metrics",instance="kube-state-metrics-0:k8s-objects",jobset_name="b"}'
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("kube_jobset_restart", "jobset has no metric kube_jobset_restart"),
        ('kube_jobset_restarts{condition="Failed"}', "kube_jobset_restarts has no label condition"),
    ],
)
def test_a_series_that_no_source_writes_is_refused(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        written(text, "jobset")


@needs_promtool
@pytest.mark.parametrize("name", RULES)
def test_promtool_finds_each_scenario_as_it_says(name: str) -> None:
    assert play(name, RULES[name], scenarios()[name]) == ""


def faults(rule: AlertRule) -> Iterator[tuple[str, AlertRule]]:
    """Yield an alert with one fault at a time: another waiting time, or a reversed comparison."""
    if rule.for_seconds:
        yield "for_seconds is 0", rule.model_copy(update={"for_seconds": 0})
        yield "for_seconds is doubled", rule.model_copy(update={"for_seconds": rule.for_seconds * 2})
    for match in re.finditer(" (<|>|>=|==) ", rule.expr):
        turned = rule.expr[: match.start()] + OPPOSITE[match[0]] + rule.expr[match.end() :]
        yield f"{match[0].strip()} at {match.start()} is turned", rule.model_copy(update={"expr": turned})


@needs_promtool
@pytest.mark.parametrize("name", RULES)
def test_a_fault_planted_in_an_alert_is_noticed(name: str) -> None:
    unnoticed = [fault for fault, rule in faults(RULES[name]) if not play(name, rule, scenarios()[name])]

    assert unnoticed == []
