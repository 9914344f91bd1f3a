"""Plans as JSON: what a process takes from another one is the plan."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.places import ORGANISATION
from tests.support.stack_files import environment, workspace_of
from training_platform.config.workspace import read_workspace
from training_platform.resources.own_worker import plan_in_worker
from training_platform.resources.plan import Computed, Plan, PlanError, Resource, in_order
from training_platform.resources.stack_plan import stack_plan
from training_platform.resources.transfer import document_of_plan, plan_of_document

WORKSPACE = read_workspace(ORGANISATION)


def transferred(plan: Plan) -> Plan:
    return plan_of_document(json.loads(json.dumps(document_of_plan(plan))))


@pytest.mark.parametrize("stack", WORKSPACE.stacks)
def test_a_plan_is_the_same_after_its_transfer(stack: str) -> None:
    plan = stack_plan(WORKSPACE.stacks[stack], WORKSPACE)
    assert plan is not None

    copy = transferred(plan)

    assert copy.planned() == plan.planned()
    assert copy.preview_outputs() == plan.preview_outputs()
    assert [node.key for node in in_order(copy)] == [node.key for node in in_order(plan)]


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ({1, 2}, "an input of type set"),
        ({"a": {1: "b"}}, "a key of type int"),
        (Computed(len, ("abc",)), "with its own function"),
    ],
)
def test_a_value_that_another_process_cannot_have_is_refused(value: Any, sentence: str) -> None:
    plan = Plan("own")
    plan.add(Resource(type="gcp:pubsub/topic:Topic", name="events", inputs={"labels": value}))

    with pytest.raises(PlanError, match=sentence):
        document_of_plan(plan)


def test_own_code_reads_nothing_and_what_it_prints_is_in_no_plan(tmp_path: Path) -> None:
    code = "import sys\n\n\ndef add_resources(own):\n    print(sys.stdin.read(), flush=True)\n"
    (tmp_path / "own_resources.py").write_text(code, encoding="utf-8")
    workspace = workspace_of({"lab": {"environment": environment()}}, tmp_path)

    assert plan_in_worker(workspace.stacks["lab"], workspace, "").planned()
