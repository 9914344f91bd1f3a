from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from training_platform.config.model.stack import parse_stack
from training_platform.config.reading.declaration import RULES, Draft, Owner, finding, rule
from training_platform.config.reading.finding import Severity
from training_platform.config.reading.source import parse_source
from training_platform.config.workspace import Workspace
from training_platform.resources.stack_resource import UNKNOWN
from training_platform.rules import view_rules, views_of_model
from training_platform.rules.descriptions import TITLES
from training_platform.rules.evaluation import evaluate
from training_platform.views.access import LabelledView
from training_platform.views.whole_stack import Program, program

HEAD: dict[str, Any] = {"stack": "dev", "type": "t"}
LABELLED = LabelledView(**HEAD, name="a", labels={"x": "1"})
HIDDEN: Any = UNKNOWN


@pytest.fixture
def _only_rules_of_the_test() -> Iterator[None]:
    """Empty the registry for a test, and restore it."""
    declared = dict(RULES)
    RULES.clear()
    yield
    RULES.clear()
    RULES.update(declared)


def whole(*views: LabelledView) -> Program:
    return program(views, stack="dev", environment="dev", team=None, production=False)


@pytest.mark.usefixtures("_only_rules_of_the_test")
def test_rule_reads_the_views_of_its_first_parameter() -> None:
    @rule("sample", ruleset="samples", source="here")
    def sample(view: LabelledView) -> Iterator[Draft]:
        """Find everything."""
        yield finding(view, "labels", "is set", allowed=1, nearest=2)

    (sample_finding,) = evaluate(whole(LABELLED), view_rules())

    assert (sample_finding.rule, sample_finding.message, sample_finding.allowed, sample_finding.nearest) == (
        "sample",
        "labels is set",
        "1",
        "2",
    )
    assert (sample_finding.path, sample_finding.resource, sample_finding.file) == ("labels", "t a", None)
    assert RULES["sample"].title == "Find everything."


@pytest.mark.usefixtures("_only_rules_of_the_test")
def test_rule_with_a_second_parameter_is_given_the_program() -> None:
    @rule("sample", ruleset="samples", source="here", severity="warning")
    def sample(view: LabelledView, program: Program) -> Iterator[Draft]:
        """Find everything."""
        yield finding(view, "labels", program.environment, severity="error")

    (sample_finding,) = evaluate(whole(LABELLED), view_rules())

    assert (sample_finding.message, sample_finding.severity) == ("dev", "error")


@pytest.mark.usefixtures("_only_rules_of_the_test")
def test_second_use_of_an_id_is_refused() -> None:
    def sample(view: LabelledView) -> Iterator[Draft]:
        """Find nothing."""
        yield from ()

    rule("sample", ruleset="samples", source="here")(sample)
    with pytest.raises(ValueError, match="registered twice"):
        rule("sample", ruleset="samples", source="here")(sample)


@pytest.mark.usefixtures("_only_rules_of_the_test")
def test_unknown_value_is_a_note_that_names_the_field() -> None:
    @rule("sample", ruleset="samples", source="here")
    def sample(view: LabelledView) -> Iterator[Draft]:
        """Find labels."""
        if view.labels:
            yield finding(view, "labels", "is set")

    findings = evaluate(whole(LabelledView(**HEAD, name="b", labels=HIDDEN), LABELLED), view_rules())

    assert [(row.severity, row.message) for row in findings] == [
        ("note", "sample is not decided: labels is not known before deployment"),
        ("error", "labels is set"),
    ]


@pytest.mark.usefixtures("_only_rules_of_the_test")
def test_a_rule_that_fails_is_named_for_each_view_and_no_other_is_silent() -> None:
    @rule("broken", ruleset="samples", source="here", severity="warning")
    def broken(view: LabelledView) -> Iterator[Draft]:
        """Fail for one of two."""
        if view.name == "a":
            raise KeyError("a value of the file")
        yield finding(view, "labels", "is found by the broken rule")

    @rule("other", ruleset="samples", source="here")
    def other(view: LabelledView) -> Iterator[Draft]:
        """Find everything."""
        yield finding(view, "labels", "is found by another rule")

    findings = evaluate(whole(LABELLED, LabelledView(**HEAD, name="b", labels={})), view_rules())

    failed, *other_findings = findings
    assert (failed.rule, failed.severity, failed.failed, failed.resource) == ("broken", "error", True, "t a")
    assert failed.message.startswith("broken did not check a because of a bug in training-platform: KeyError in ")
    assert "a value" not in failed.message
    assert [(row.rule, row.resource, row.failed) for row in other_findings] == [
        ("broken", "t b", False), ("other", "t a", False), ("other", "t b", False),
    ]  # fmt: skip


def test_finding_has_the_line_of_its_field_in_the_stack_file() -> None:
    text = """\
config:
  training-platform:environment:
    project: example-train
    clusters:
      main:
        location: us-central1-a
        subnet: {nodes: 10.10.0.0/20, pods: 10.64.0.0/16, services: 10.10.16.0/20}
        node_pools:
          h100:
            machine_type: a3-highgpu-8g
            boot_disk: {size_gb: 700000}
"""
    stack = parse_stack("dev", parse_source(text, "stacks/Pulumi.dev.yaml"))
    views = views_of_model(stack, Workspace(Path(), {"dev": stack}))

    findings = evaluate(
        program(views, stack="dev", environment="dev", team=None, production=False), view_rules(), stack
    )

    (size,) = [row for row in findings if row.rule == "boot-disk-size"]
    assert size.file == "stacks/Pulumi.dev.yaml"
    assert size.position == (11, 25)
    assert size.path == "clusters.main.node_pools.h100.boot_disk.size_gb"


def test_every_rule_set_has_a_title_of_its_own() -> None:
    assert {rule.ruleset for rule in view_rules()} == TITLES.keys()
    assert len(set(TITLES.values())) == len(TITLES)
    assert all(title.endswith(".") for title in TITLES.values())


@pytest.mark.parametrize(
    ("owner", "severity", "field", "rules"),
    [
        ("google", "error", "labels", ["ours"]),
        ("kueue", "error", "labels", ["ours"]),
        ("google", "warning", "labels", ["document", "ours"]),
        ("house", "error", "labels", ["document", "ours"]),
        ("google", "error", "other", ["document", "ours"]),
    ],
)
@pytest.mark.usefixtures("_only_rules_of_the_test")
def test_a_value_that_a_rule_and_its_document_refuse_is_said_once(
    owner: Owner, severity: Severity, field: str, rules: list[str]
) -> None:
    @rule("document", ruleset="documents", source="here", owner="documents")
    def document(view: LabelledView) -> Iterator[Draft]:
        """Find what a document refuses."""
        yield finding(view, "labels", "is out of range")

    @rule("ours", ruleset="samples", source="here", owner=owner, severity=severity)
    def ours(view: LabelledView) -> Iterator[Draft]:
        """Find the same and know why."""
        yield finding(view, field, "is below 10 GB")

    assert [row.rule for row in evaluate(whole(LABELLED), view_rules())] == rules
