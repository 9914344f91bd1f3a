"""Which views a rule looks at: those that have the field that it reads first, or of which it is not known."""

from __future__ import annotations

from typing import Any

import pytest

from training_platform.resources.resource_types import NODE_POOL
from training_platform.resources.stack_resource import UNKNOWN, StackResource
from training_platform.rules import RULES, evaluate, program, views_of_plan
from training_platform.rules.declaration import rule
from training_platform.views.node_pool import NodePoolView

GUARDED = sorted(each.id for each in RULES.values() if each.when)


class _ReadError(Exception):
    pass


class _Reads:
    """A view that says which field of it is read first."""

    def __getattr__(self, name: str) -> Any:
        raise _ReadError(name)


@pytest.mark.parametrize("rule_id", GUARDED)
def test_the_field_that_a_rule_declares_is_the_first_that_it_reads(rule_id: str) -> None:
    found = RULES[rule_id]
    assert found.when in found.reads.FIELDS

    with pytest.raises(_ReadError, match=rf"\A{found.when}\Z"):
        list(found.check(_Reads(), None) if found.whole else found.check(_Reads()))


def test_a_rule_looks_at_views_that_have_its_field_and_at_those_of_which_it_is_not_known() -> None:
    tags: dict[str, Any] = {"many": {str(number): "a" for number in range(99)}, "unknown": UNKNOWN, "none": {}}
    pools = [
        StackResource(stack="s", type=NODE_POOL, name=name, inputs={"nodeConfig": {"resourceManagerTags": value}})
        for name, value in tags.items()
    ]
    whole = program(views_of_plan(pools), stack="s", environment="s", team=None, production=None)

    assert [view.name for view in whole.all(NodePoolView, "tags")] == ["many", "unknown"]
    found = evaluate(whole, [RULES["node-tags"]])
    assert [(each.resource or "").rpartition(" ")[2] for each in found] == ["many", "unknown"]
    assert [each.severity for each in found] == ["error", "note"]


def test_a_rule_is_a_generator() -> None:
    with pytest.raises(TypeError, match="rule no-generator has to be a generator"):
        rule("no-generator", ruleset="nodes", source="none")(lambda pool: iter([pool]))
