"""A rule sees only views where the field that it reads first is set or unknown."""

from __future__ import annotations

from typing import Any

import pytest

from training_platform.config.reading.declaration import rule
from training_platform.resources.resource_types import NODE_POOL
from training_platform.resources.stack_resource import UNKNOWN, StackResource
from training_platform.rules import RULES, evaluate, program, view_rules, views_of_plan
from training_platform.views.node_pool import NodePoolView

GUARDED = sorted(rule.id for rule in view_rules() if rule.when)


class _ReadError(Exception):
    pass


class _Reads:
    """A view that says which field of it is read first."""

    def __getattr__(self, name: str) -> Any:
        raise _ReadError(name)


@pytest.mark.parametrize("rule_id", GUARDED)
def test_the_field_that_a_rule_declares_is_the_first_that_it_reads(rule_id: str) -> None:
    guarded = RULES[rule_id]
    check = guarded.check
    assert check is not None
    assert guarded.when in guarded.reads.FIELDS

    with pytest.raises(_ReadError, match=rf"\A{guarded.when}\Z"):
        list(check(_Reads(), None) if guarded.whole else check(_Reads()))


def test_a_rule_looks_at_views_that_have_its_field_and_at_those_of_which_it_is_not_known() -> None:
    tags: dict[str, Any] = {"many": {str(number): "a" for number in range(99)}, "unknown": UNKNOWN, "none": {}}
    pools = [
        StackResource(stack="s", type=NODE_POOL, name=name, inputs={"nodeConfig": {"resourceManagerTags": value}})
        for name, value in tags.items()
    ]
    whole = program(views_of_plan(pools), stack="s", environment="s", team=None, production=None)

    assert [view.name for view in whole.all(NodePoolView, "tags")] == ["many", "unknown"]
    findings = evaluate(whole, [RULES["node-tags"]])
    assert [(finding.resource or "").rpartition(" ")[2] for finding in findings] == ["many", "unknown"]
    assert [finding.severity for finding in findings] == ["error", "note"]


def test_a_rule_is_a_generator() -> None:
    with pytest.raises(TypeError, match="rule no-generator has to be a generator"):
        rule("no-generator", ruleset="nodes", source="none")(lambda pool: iter([pool]))
