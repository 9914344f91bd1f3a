"""Expressions of admission policies: brackets and quotes are closed, and something follows an operator."""

from __future__ import annotations

import pytest

from tests.training_platform.rules.objects import wrong
from training_platform.resources.planned import UNKNOWN

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
