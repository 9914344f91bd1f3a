"""Rules of single Kubernetes objects: expressions, network policies, removed versions, Secrets."""

from __future__ import annotations

from typing import Any

import pytest

from tests.training_platform.rules.objects import wrong
from training_platform.resources.stack_resource import UNKNOWN, StackResource
from training_platform.rules import RULES, evaluate, program, views_of_plan

POLICY = "admissionregistration.k8s.io/v1:ValidatingAdmissionPolicy"


@pytest.mark.parametrize(
    ("expression", "refused"),
    [
        ("object.spec.suspend == true", False),
        ("has(object.metadata.labels) && 'own/queue' in object.metadata.labels", False),
        ("object.spec.list.all(each, each in [1, 2]) // all of them (", False),
        ("'a ( of a text' == \"]\"", False),
        (r"'it\'s' == r'\'", False),
        ('"""a "quoted"\ntext""" == object.a', False),
        ("object.?spec.orValue({'a': 1}).a == 1", False),
        (UNKNOWN, False),
        ("object.spec.suspend ==", True),
        ("object.spec.suspend == true &&\n", True),
        ("object.a in ", True),
        ("object.spec.", True),
        ("(object.a == 1", True),
        ("object.a == 1)", True),
        ("object.a[0) == 1", True),
        ("object.a == 'b", True),
        ("  // nothing but a comment", True),
        ("", True),
    ],
)
def test_an_expression_comes_to_its_end(expression: object, refused: bool) -> None:
    spec = {"validations": [{"expression": "true"}, {"expression": expression}]}

    assert wrong("admission-expression", POLICY, spec=spec) == ["spec.validations[1].expression"] * refused


@pytest.mark.parametrize(
    ("part", "name"),
    [
        ("validations", "messageExpression"),
        ("matchConditions", "expression"),
        ("variables", "expression"),
        ("auditAnnotations", "valueExpression"),
    ],
)
def test_every_expression_of_a_policy_is_read(part: str, name: str) -> None:
    assert wrong("admission-expression", POLICY, spec={part: [{name: "a +"}]}) == [f"spec.{part}[0].{name}"]


@pytest.mark.parametrize(
    ("cidr", "hole", "refused"),
    [
        ("10.0.0.0/24", "10.0.0.16/28", False),
        ("10.0.0.0/24", "10.0.0.0/25", False),
        ("10.0.0.0/24", "10.0.0.0/24", True),
        ("10.0.0.0/24", "10.0.1.0/28", True),
        ("10.0.0.0/24", "10.0.0.0/23", True),
        ("10.0.0.0/24", "fd00::/64", True),
        ("fd00::/48", "fd00::/64", False),
        ("10.0.0.0/24", "all", True),
        ("all", "10.0.0.0/24", False),  # the range is what is wrong there
    ],
)
@pytest.mark.parametrize(("part", "peers"), [("ingress", "from"), ("egress", "to")])
def test_an_exception_is_a_part_of_its_range(part: str, peers: str, cidr: str, hole: str, refused: bool) -> None:
    spec = {part: [{peers: [{"podSelector": {}}, {"ipBlock": {"cidr": cidr, "except": [hole]}}]}]}
    path = f"spec.{part}[0].{peers}[1].ipBlock.except[0]"

    assert wrong("policy-exceptions", "networking.k8s.io/v1:NetworkPolicy", spec=spec) == [path] * refused


@pytest.mark.parametrize(
    ("kind", "instead"),
    [
        ("batch/v1beta1:CronJob", "batch/v1"),
        ("policy/v1beta1:PodDisruptionBudget", "policy/v1"),
        ("policy/v1beta1:PodSecurityPolicy", "none: it has no replacement"),
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
    planned = StackResource(stack="dev", type=f"kubernetes:{kind}", name="thing", inputs={})
    whole = program(views_of_plan([planned]), stack="dev", environment="dev", team=None, production=False)
    findings = evaluate(whole, [RULES["removed-version"]])

    assert [(finding.path, finding.allowed, finding.severity) for finding in findings] == (
        [("apiVersion", instead, "error")] if instead else []
    )


@pytest.mark.parametrize(
    ("inputs", "count"),
    [
        ({"type": "kubernetes.io/tls", "data": {"tls.crt": "YQ=="}, "stringData": {"tls.key": "a"}}, 0),
        ({"type": "kubernetes.io/tls", "data": {"tls.crt": "YQ=="}}, 1),
        ({"type": "kubernetes.io/tls", "data": UNKNOWN}, 0),
        ({"type": "kubernetes.io/tls"}, 2),
        ({"type": "kubernetes.io/basic-auth", "stringData": {"password": "a"}}, 0),
        ({"type": "kubernetes.io/basic-auth", "stringData": {"user": "a"}}, 1),
        ({"type": "Opaque"}, 0),
        ({"type": UNKNOWN}, 0),
        ({}, 0),
    ],
)
def test_a_secret_of_a_known_type_has_its_keys(inputs: dict[str, Any], count: int) -> None:
    assert wrong("secret-keys", "core/v1:Secret", **inputs) == ["stringData"] * count
