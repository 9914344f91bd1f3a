"""Versions of APIs that no server has any more, each with what replaced it."""

from __future__ import annotations

import pytest

from training_platform.resources.planned import Planned
from training_platform.rules import RULES, evaluate, program, views_of_plan


@pytest.mark.parametrize(
    ("kind", "instead"),
    [
        ("batch/v1beta1:CronJob", "batch/v1"),
        ("policy/v1beta1:PodDisruptionBudget", "policy/v1"),
        ("policy/v1beta1:PodSecurityPolicy", "nothing: it has no replacement"),
        ("autoscaling/v2beta2:HorizontalPodAutoscaler", "autoscaling/v2"),
        ("extensions/v1beta1:Deployment", "apps/v1"),
        ("extensions/v1beta1:Ingress", "networking.k8s.io/v1"),
        ("apps/v1beta2:StatefulSet", "apps/v1"),
        ("flowcontrol.apiserver.k8s.io/v1beta3:FlowSchema", "flowcontrol.apiserver.k8s.io/v1"),
        ("batch/v1:CronJob", None),
        ("policy/v1beta1:Eviction", None),
        ("kueue.x-k8s.io/v1beta1:ClusterQueue", None),
        ("admissionregistration.k8s.io/v1beta1:ValidatingAdmissionPolicy", None),
    ],
)
def test_a_version_that_is_gone_names_the_one_that_is_there(kind: str, instead: str | None) -> None:
    planned = Planned(stack="dev", type=f"kubernetes:{kind}", name="thing", inputs={})
    whole = program(views_of_plan([planned]), stack="dev", environment="dev", team=None, production=False)
    found = evaluate(whole, [RULES["removed-version"]])

    assert [(each.path, each.allowed, each.severity) for each in found] == (
        [("apiVersion", instead, "error")] if instead else []
    )
