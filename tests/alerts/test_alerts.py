"""Each alert fires and keeps quiet over series as their exporters write them, by promtool's recorded verdicts.

Where promtool is named, or on PATH, it plays the scenarios again, also with faults planted in the alerts.
"""

from __future__ import annotations

import pytest

from tests.alerts.promtool import PROGRAM, digest, play, program, scenarios, verdicts
from training_platform.resources.monitoring import alert_rules

RULES = alert_rules()
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


@needs_promtool
@pytest.mark.parametrize("name", RULES)
def test_promtool_finds_each_scenario_as_it_says(name: str) -> None:
    assert play(name, RULES[name], scenarios()[name]) == ""
