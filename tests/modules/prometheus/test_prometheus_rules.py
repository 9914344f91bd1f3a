"""Alert rules: they parse, they can find something where they are evaluated, and they say what is wrong."""

from __future__ import annotations

import re
from typing import Any

import promql_parser
import pulumi
import pulumi_kubernetes as kubernetes
import pytest

from modules.prometheus.monitoring import JOBSET, KUEUE, cluster_pod_monitoring
from modules.prometheus.rules import AlertRules, AlertRulesArgs, cluster_rules
from training_platform.checks.planning.recorder import Plan, record
from training_platform.resources.scope import Scope
from training_platform.sandbox.kubernetes.schemas.crds import CrdSchema

RULES = [rule for group in cluster_rules()["groups"] for rule in group["rules"]]
WRITTEN = "kubernetes:monitoring.googleapis.com/v1:ClusterRules"
# Kueue 0.19's page of metrics, and GKE's of its monitoring component JOBSET; read 2026-11-21.
METRICS = {
    *("up", "kueue_pending_workloads", "kueue_admitted_workloads_total", "kueue_evicted_workloads_total"),
    *("kueue_preempted_workloads_total", "kueue_admission_wait_time_seconds_bucket", "kueue_cluster_queue_status"),
    *("kueue_admission_checks_wait_time_seconds_bucket", "kueue_cluster_queue_resource_usage"),
    *("kueue_cluster_queue_nominal_quota", "kube_jobset_status_condition", "kube_jobset_restarts"),
    *(f"kube_jobset_{state}_replicas" for state in ("specified", "ready", "succeeded", "suspended")),
}

each = pytest.mark.parametrize("rule", RULES, ids=[rule["alert"] for rule in RULES])


def plan(scope: Scope) -> Plan:
    def program() -> None:
        provider = kubernetes.Provider("cluster", kubeconfig="{}")
        AlertRules("main-alerts", AlertRulesArgs(scope=scope), pulumi.ResourceOptions(provider=provider))

    return record(program, project="training-platform", stack_name="prod")


def selectors(node: Any) -> list[Any]:
    """Return every selector below an expression."""
    if isinstance(node, promql_parser.VectorSelector):
        return [node]
    parts = ("expr", "lhs", "rhs", "param", "vector_selector")
    below = [getattr(node, part) for part in parts if getattr(node, part, None) is not None]
    return [found for part in (*below, *getattr(node, "args", ())) for found in selectors(part)]


def test_the_rules_are_ones_that_the_crd_takes(scope: Scope, crds: dict[tuple[str, str, str], CrdSchema]) -> None:
    planned = plan(scope).one(WRITTEN)

    assert crds["monitoring.googleapis.com", "v1", "ClusterRules"].errors(planned.inputs) == []
    assert planned.inputs["spec"] == cluster_rules()
    assert planned.options["provider"] == "cluster"


@each
def test_an_expression_parses_and_asks_for_metrics_that_are_there(rule: dict[str, Any]) -> None:
    found = selectors(promql_parser.parse(rule["expr"]))

    assert found
    assert {selector.name for selector in found} <= METRICS


@each
def test_an_expression_needs_no_label_that_only_cloud_monitoring_has(rule: dict[str, Any]) -> None:
    assert not re.search(r"kubernetes_io|cluster_name|monitored_resource", rule["expr"])


@each
def test_an_alert_says_how_bad_it_is_and_what_to_do(rule: dict[str, Any]) -> None:
    assert rule["labels"]["severity"] in {"page", "ticket"}
    assert rule["annotations"].keys() == {"summary", "description"}
    assert all(text.endswith(".") for text in rule["annotations"].values())


@each
def test_a_label_that_an_alert_shows_is_one_that_its_expression_keeps(rule: dict[str, Any]) -> None:
    shown = set(re.findall(r"\$labels\.(\w+)", " ".join(rule["annotations"].values())))
    kept = set(re.findall(r"\w+", " ".join(re.findall(r"by \(([^)]*)\)", rule["expr"]))))

    # Without an aggregation, kube_jobset_* keep all their labels.
    assert shown <= (kept or {"namespace", "jobset_name"})


def test_no_two_alerts_have_one_name() -> None:
    assert len({rule["alert"] for rule in RULES}) == len(RULES)


def test_the_label_job_is_the_name_of_a_scrape(scope: Scope) -> None:
    jobs = {job for rule in RULES for job in re.findall(r'job="([^"]*)"', rule["expr"])}

    assert jobs == {KUEUE.name, JOBSET.name}


def test_an_interval_of_scrapes_is_shorter_than_the_shortest_look_back() -> None:
    (endpoint,) = cluster_pod_monitoring(KUEUE)["endpoints"]

    assert endpoint["interval"] == "60s"
    assert all(group["interval"] == "60s" for group in cluster_rules()["groups"])
