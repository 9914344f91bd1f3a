"""A rule finds one spoiled value in a program that is not ours, and is silent without it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.training_platform.rules.foreign import RESOURCES, found
from tests.training_platform.rules.spoiled import ROWS, Row
from tests.violations.records import RECORDED
from tests.violations.records import found as recorded
from training_platform.rules import documents, view_rules

WHOLE_OBJECTS = {  # rules of kubernetes/test_jobs.py, test_kueue.py, and the next test
    "elastic-job", "lws-rollout", "quota-uncounted", "topology-group", "tpu-job-chips",
}  # fmt: skip


def test_a_program_that_is_not_ours_breaks_no_rule_and_hears_what_is_not_judged() -> None:
    assert [f"{finding.rule}: {finding.message}" for finding in found()] == [
        "quota-uncounted: reserved has its own VMs, accelerators or disks, which no ledger counts",
        "quota-uncounted: vm has its own VMs, accelerators or disks, which no ledger counts",
        "elsewhere-not-judged: fast is not in this program, so rules that compare it with gpu-subnet do not run",
    ]


def test_every_rule_has_a_value_that_breaks_it() -> None:
    """Here, among the violations that others refused first, or in the tests of whole objects of Kubernetes."""
    elsewhere = {finding.rule for row in RECORDED for finding in recorded(row)} | WHOLE_OBJECTS

    assert {row.rule for row in ROWS} | elsewhere == {rule.id for rule in view_rules()}


@pytest.mark.parametrize("row", ROWS, ids=[f"{row.rule}-{index}" for index, row in enumerate(ROWS)])
def test_a_rule_finds_one_spoiled_value_and_nothing_without_it(row: Row) -> None:
    before = found(row.besides, rule=row.rule)
    after = found(row.besides, row.spoiled, rule=row.rule)

    assert [finding for finding in before if finding.severity != "note"] == []
    assert {finding.severity for finding in after} == {row.severity}
    for finding in after:
        assert finding.message
        assert finding.allowed
        assert finding.source
        assert (finding.resource or "").rpartition(" ")[2] in {*RESOURCES, *row.besides, *row.spoiled, "dev"}


def test_no_finding_of_a_program_that_is_not_ours_speaks_of_stack_files() -> None:
    """It names the input as the program writes it, in sentences; a name in snake case is Pulumi's own in Python."""
    shapes = json.loads((Path(documents.__file__).parent / "google.json").read_text())["shapes"]
    names = {re.sub(r"([A-Z])", r"_\1", field).lower() for shape in shapes for field in shape.get("fields", ())}
    names |= {"ignore_changes", "delete_before_replace"}
    wrong = []
    for row in ROWS:
        for finding in found(row.besides, row.spoiled, rule=row.rule):
            text = " ".join(filter(None, (finding.message, finding.allowed, finding.nearest)))
            strange = {word for word in re.findall(r"\b[a-z]+(?:_[a-z]+)+\b", text) if word not in names}
            if strange or not finding.path or "_" in finding.path or finding.message.startswith(("is ", "are ")):
                wrong.append((finding.rule, finding.path, finding.message, strange))

    assert wrong == []
