"""One Kubernetes object before one rule, for the tests of rules that read objects as they are."""

from __future__ import annotations

from typing import Any

from training_platform.resources.stack_resource import StackResource
from training_platform.rules import RULES, evaluate, program, views_of_plan

JOB = "batch/v1:Job"
JOB_SET = "jobset.x-k8s.io/v1alpha2:JobSet"
LWS = "leaderworkerset.x-k8s.io/v1:LeaderWorkerSet"
QUEUE = "kueue.x-k8s.io/v1beta2:ClusterQueue"
COHORT = "kueue.x-k8s.io/v1beta2:Cohort"


def wrong(rule: str, kind: str, **inputs: Any) -> list[str]:
    """Return the paths that a rule finds in an object; each finding says what is allowed."""
    version, _, name = kind.partition(":")
    whole_object = {"apiVersion": version, "kind": name, **inputs}  # as Pulumi's SDK registers one
    planned = StackResource(stack="dev", type=f"kubernetes:{kind}", name="thing", inputs=whole_object)
    whole = program(views_of_plan([planned]), stack="dev", environment="dev", team=None, production=False)
    findings = evaluate(whole, [RULES[rule]])
    assert all(finding.allowed and finding.severity == "error" for finding in findings)
    assert not any(
        "None" in f"{finding.message} {finding.allowed} {finding.nearest or ''}" for finding in findings
    )  # not an input's
    return [finding.path for finding in findings]


def job(containers: list[dict[str, Any]], **pod: Any) -> dict[str, Any]:
    """Return the spec of a Job of such containers."""
    return {"template": {"spec": {"containers": containers, **pod}}}
