from __future__ import annotations

import re
from typing import Any

import promql_parser
import pytest
from pydantic import ValidationError

from tests.modules.monitoring.promql import matchers, problems, selectors
from tests.places import ROOT
from training_platform.resources.monitoring import UNTRIED, AlertRule, alert_rules

RULES = alert_rules()
CLUSTERS = ("prod-us-central1", "prod-us-west4")
PROJECT = "example-train-prod"
LIMIT_CHARACTERS, LIMIT_BYTES = 8192, 10240  # of the documentation of an alert policy
ROW: dict[str, Any] = {
    "title": "Something",
    "severity": "WARNING",
    "needs": "system",
    "for_seconds": 30,
    "expr": 'up{cluster=~"${clusters}"} == 0',
    "meaning": "It is so.",
    "action": "Look.",
    "source": "nowhere",
}


def test_what_google_cloud_measures_itself_is_watched() -> None:
    assert {name for name, rule in RULES.items() if rule.needs == "system"} == {
        "AcceleratorIdle",
        "GcsFuseErrors",
        "JobSetGoodputLow",
        "NodeInterruptions",
        "NodeNotReady",
        "TpuNodePoolUnavailable",
        "TpuTensorcoreIdle",
    }


@pytest.mark.parametrize("name", RULES)
def test_every_expression_is_promql(name: str) -> None:
    assert promql_parser.parse(RULES[name].query(CLUSTERS, PROJECT)).prettify()


@pytest.mark.parametrize("name", RULES)
def test_no_expression_looks_at_another_environment(name: str) -> None:
    rule = RULES[name]
    label = {"system": "cluster_name", "quota": "project_id", "filestore": "project_id"}.get(rule.needs, "cluster")
    found = selectors(rule.query(CLUSTERS, PROJECT))

    assert found
    matched = {matchers(selector)[label] for selector in found}
    together = PROJECT if label == "project_id" else "|".join(CLUSTERS)
    assert matched == (set(CLUSTERS) if rule.each_cluster else {together})


@pytest.mark.parametrize("name", RULES)
def test_every_metric_and_label_has_a_source(name: str) -> None:
    rule = RULES[name]

    assert problems(rule.query(CLUSTERS, PROJECT), rule.needs) == []


@pytest.mark.parametrize("name", RULES)
def test_system_metrics_say_which_resource_they_are_of(name: str) -> None:
    rule = RULES[name]
    for selector in selectors(rule.query(CLUSTERS, PROJECT)):
        of_google = rule.needs in ("system", "quota", "filestore")
        assert of_google == ("monitored_resource" in matchers(selector))
        assert of_google == (":" in str(selector.name))
        assert (rule.needs == "system") == str(selector.name).startswith("kubernetes_io:")


def test_idle_quota_counts_every_job_that_waits() -> None:
    # A waiting job of a BestEffortFIFO queue, which ours are, counts as inadmissible and not as active.
    waiting = [
        each
        for each in selectors(RULES["QuotaIdleWhileJobsWait"].query(CLUSTERS, PROJECT))
        if "pending" in str(each.name)
    ]

    assert [set(matchers(each)) for each in waiting] == [{"cluster"}]


def test_what_is_scarce_in_the_project_is_told_of_before_it_is_used_up() -> None:
    assert RULES["QuotaNearlyUsed"].query(CLUSTERS, PROJECT).endswith("> 0.8")
    assert RULES["FilestoreNearlyFull"].query(CLUSTERS, PROJECT).endswith("> 90")


def test_a_gpus_fault_is_one_of_hardware_and_new() -> None:
    query = RULES["GpuXid"].query(CLUSTERS, PROJECT)
    codes = {int(code) for code in re.findall(r"== (\d+)", query)}

    assert {48, 64, 79, 95} <= codes
    assert codes.isdisjoint({13, 31, 43, 45})  # a program's own
    assert "changes(DCGM_FI_DEV_XID_ERRORS" in query


def test_what_the_controllers_measure_reaches_people_too() -> None:
    assert {name for name, rule in RULES.items() if rule.needs in ("kueue", "jobset", "jobset-controller")} >= {
        "AdmissionChecksSlow", "JobSetControllerDown", "JobSetFailed", "JobSetNotReady", "KueueControllerDown",
        "KueueReplicaDown", "ManyPreemptions", "QuotaIdleWhileJobsWait",
    }  # fmt: skip


@pytest.mark.parametrize("query", ["up{", "sum by up", "rate(up)", "up == on"])
def test_a_broken_expression_is_no_promql(query: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        promql_parser.parse(query)


@pytest.mark.parametrize("name", RULES)
def test_who_is_told_reads_what_it_means_what_to_do_and_that_the_threshold_is_untried(name: str) -> None:
    text = RULES[name].documentation

    assert RULES[name].meaning in text
    assert f"**What to do:** {RULES[name].action}" in text
    assert text.endswith(UNTRIED)
    assert len(text) <= LIMIT_CHARACTERS
    assert len(text.encode()) <= LIMIT_BYTES


def test_no_two_rules_have_one_title() -> None:
    assert len({rule.title for rule in RULES.values()}) == len(RULES)


@pytest.mark.parametrize("name", RULES)
def test_a_rules_name_is_a_prometheus_label_name(name: str) -> None:
    assert re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_]*", name)


def test_a_rule_for_each_cluster_is_true_where_it_is_true_for_one() -> None:
    rule = AlertRule(**{**ROW, "each_cluster": True, "expr": 'absent(up{cluster="${cluster}"})'})

    assert rule.query(("a", "b"), PROJECT) == 'absent(up{cluster="a"}) or absent(up{cluster="b"})'


def test_other_rules_match_all_clusters_at_once() -> None:
    assert AlertRule(**ROW).query(("a", "b"), PROJECT) == 'up{cluster=~"a|b"} == 0'


def test_a_placeholder_of_the_other_kind_is_refused() -> None:
    with pytest.raises(KeyError, match="clusters"):
        AlertRule(**{**ROW, "each_cluster": True}).query(("a",), PROJECT)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("severity", "PAGE"),
        ("needs", "loki"),
        ("for_seconds", -30),
        ("for_seconds", 31),
        ("title", ""),
        ("expr", ""),
        ("meaning", ""),
        ("action", ""),
        ("source", ""),
        ("runbook", "a key that no rule has"),
    ],
)
def test_a_spoiled_rule_is_refused(field: str, value: Any) -> None:
    assert AlertRule(**ROW).for_seconds == 30
    with pytest.raises(ValidationError, match=field):
        AlertRule(**{**ROW, field: value})


def test_the_page_for_who_is_on_call_has_a_section_for_each_alert_and_no_other() -> None:
    sections = re.split(r"^### (\w+)$", (ROOT / "docs" / "alerts.md").read_text(encoding="utf-8"), flags=re.MULTILINE)

    assert sorted(sections[1::2]) == sorted(RULES)
    assert [name for name, text in zip(sections[1::2], sections[2::2], strict=True) if len(text.split()) < 10] == []
