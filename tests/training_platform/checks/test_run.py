"""The check that a platform team runs, on a copy of the shipped stacks with planted errors."""

from __future__ import annotations

import shutil
from datetime import date
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support.places import ORGANISATION, ROOT
from training_platform.checks.outcome import Branch, branches
from training_platform.checks.process import progress_bar
from training_platform.checks.report import Report, ordered
from training_platform.checks.run import run_check
from training_platform.checks.stacks import CheckOptions
from training_platform.cli.main import app
from training_platform.config.reading.finding import Finding, Position, Severity, UserError
from training_platform.resources.stack_resource import StackResource
from training_platform.rules import view_rules

TODAY = date(2026, 11, 21)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copytree(ORGANISATION / "stacks", tmp_path / "stacks")
    shutil.copy(ROOT / "Pulumi.yaml", tmp_path)
    return tmp_path


def plant(root: Path, stack: str, old: str, new: str) -> int:
    """Replace the first ``old`` in a stack file, and return its line."""
    path = root / "stacks" / f"Pulumi.{stack}.yaml"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    return text[: text.index(old)].count("\n") + 1 + old[: len(old) - len(old.lstrip("\n"))].count("\n")


def errors(report: Report) -> list[Finding]:
    return [finding for finding in report.all_findings() if finding.severity == "error"]


def test_the_shipped_stacks_are_clean() -> None:
    report = run_check(ORGANISATION, CheckOptions(today=TODAY))

    assert [str(finding) for finding in report.all_findings()] == []
    assert report.failures == ()
    assert report.exit_code(strict=True) == 0
    assert len(report.stacks) == 5
    assert all(stack.planned for stack in report.stacks)


H100_MOST = "            max_nodes: 8\n            boot_disk: {size_gb: 200}"
PLANTED = {
    "over quota": ("prod", H100_MOST, H100_MOST.replace("8", "10", 1), "quota-exceeded"),
    "a disk of 700,000 GB": ("prod", "size_gb: 200}", "size_gb: 700000}", "boot-disk-size"),
    "an illegal topology": ("prod", "topology: 4x8", "topology: 4x5", "tpu-topology"),
    "a Filestore size between steps": ("prod", "capacity_gib: 2560", "capacity_gib: 2600", "filestore-capacity"),
    "teams promised more than there is": ("prod-nlp", "nominal_quota: 128", "nominal_quota: 192", "capacity-exceeded"),
}


def test_planted_errors_are_found_each_at_its_line(copy: Path) -> None:
    places = {
        name: (rule, f"stacks/Pulumi.{stack}.yaml", plant(copy, stack, old, new))
        for name, (stack, old, new, rule) in PLANTED.items()
    }

    report = run_check(copy, CheckOptions(today=TODAY), selected=["prod", "prod-nlp"])

    reported = {(finding.rule, finding.file, finding.position.line) for finding in errors(report) if finding.position}
    missed = [name for name, place in places.items() if place not in reported]
    assert missed == [], [str(finding) for finding in report.all_findings()]
    assert report.exit_code() == 1


def test_a_rejected_file_is_a_finding_and_hides_no_other_stack(copy: Path) -> None:
    plant(copy, "dev", "capacity: spot", "capacity: sport")

    report = run_check(copy, CheckOptions(today=TODAY))

    kinds = {stack.name: (stack.kind, stack.planned) for stack in report.stacks}
    assert kinds["dev"] == ("rejected", False)
    assert kinds["prod"] == ("environment", True)
    assert report.exit_code() == 1


def test_a_team_alone_is_not_clean_while_its_environment_is_rejected(copy: Path) -> None:
    plant(copy, "prod", "production: true", "production: perhaps")

    report = run_check(copy, CheckOptions(today=TODAY), selected=["prod-nlp"])
    whole = run_check(copy, CheckOptions(today=TODAY))

    (finding,) = [row for row in report.all_findings() if row.path == "environment"]
    assert (finding.stack, finding.severity) == ("prod-nlp", "error")
    assert finding.message == "stacks/Pulumi.prod.yaml is rejected, so nothing that needs prod is checked"
    assert [row for row in whole.all_findings() if row.stack == "prod-nlp"] == []


def test_a_team_alone_is_not_clean_while_its_environment_has_no_plan(copy: Path) -> None:
    program = "def add_resources(own):\n    if own.team is None:\n        raise ValueError('no')\n"
    (copy / "own_resources.py").write_text(program, encoding="utf-8")

    report = run_check(copy, CheckOptions(today=TODAY), selected=["prod-nlp"])

    messages = [row.message for row in report.all_findings() if row.path == "environment"]
    assert messages == ["stacks/Pulumi.prod.yaml cannot be planned, so nothing that needs prod is checked"]


def test_an_unreadable_file_is_exit_code_2_and_hides_no_other_stack(copy: Path) -> None:
    (copy / "stacks" / "Pulumi.broken.yaml").write_text("a: [", encoding="utf-8")

    report = run_check(copy, CheckOptions(today=TODAY))

    assert report.exit_code() == 2
    assert "Pulumi.broken.yaml" in report.failures[0]
    assert len(report.stacks) == 5


@pytest.mark.parametrize(
    "wrong",
    ["{limit: -5, region: us-central1}", "{limit: 5, region: us-central1, unit: GiBB}", "{limit: 5}"],
    ids=["a negative limit", "an unknown unit", "a missing region"],
)
def test_a_snapshot_with_an_error_is_exit_code_2_beside_its_finding(wrong: str, copy: Path) -> None:
    snapshot = copy / "stacks" / "quotas" / "example-train-prod.yaml"
    right = "{limit: 10000, region: us-central1}"
    text = snapshot.read_text(encoding="utf-8")
    assert right in text
    snapshot.write_text(text.replace(right, wrong), encoding="utf-8")

    report = run_check(copy, CheckOptions(today=TODAY))

    findings = [finding for finding in errors(report) if finding.rule == "quota-snapshot"]
    line = text[: text.index(right)].count("\n") + 1
    assert [(finding.file, finding.position and finding.position.line) for finding in findings] == [
        ("stacks/quotas/example-train-prod.yaml", line)
    ]
    assert report.exit_code() == 2
    assert report.failures == (
        "stacks/quotas/example-train-prod.yaml has errors, so it is not known what its limits allow.",
    )


OWN = """
from training_platform.resources.plan import Resource


def add_resources(own):
    if own.plan.name == "dev":
"""
TWICE = """
        for _ in range(2):
            own.plan.add(Resource(type="gcp:storage/bucket:Bucket", name="archive", inputs={}))
"""
CIRCLE = """
        first = own.plan.add(Resource(type="gcp:storage/bucket:Bucket", name="first", inputs={}))
        own.plan.add(Resource(type="gcp:storage/bucket:Bucket", name="second", inputs={}), after=[first])
        first.after.append(own.plan.children[-1])
"""


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (TWICE, "two resources have the same type and name: archive (gcp:storage/bucket:Bucket)"),
        (CIRCLE, "resources depend on each other in a circle: first -> second -> first"),
    ],
    ids=["repeated", "circle"],
)
def test_a_plan_that_cannot_be_registered_is_a_finding_of_only_its_stack(
    program: str, message: str, copy: Path
) -> None:
    (copy / "own_resources.py").write_text(OWN + program, encoding="utf-8")

    report = run_check(copy, CheckOptions(today=TODAY))

    (finding,) = errors(report)
    assert (finding.rule, finding.stack) == ("plan", "dev")
    assert message in finding.message
    assert {stack.name for stack in report.stacks if not stack.planned} == {"dev"}
    assert (report.failures, report.exit_code()) == ((), 1)


OTHER_PROJECT = """
        inputs = {"project": PROJECT, "role": "roles/storage.objectViewer", "member": "user:ada@example.com"}
        own.plan.add(Resource(type="gcp:projects/iAMMember:IAMMember", name="viewer", inputs=inputs))
"""


@pytest.mark.parametrize(("project", "verdict"), [("example-train-dev", ""), ("example-other", "project of no stack")])
def test_own_resources_in_a_project_of_no_stack_are_counted_as_not_judged(
    copy: Path, project: str, verdict: str
) -> None:
    (copy / "own_resources.py").write_text(OWN + OTHER_PROJECT.replace("PROJECT", repr(project)), encoding="utf-8")

    report = run_check(copy, CheckOptions(today=TODAY))

    rows = [row.unjudged for row in report.all_findings() if row.rule == "elsewhere-not-judged"]
    assert rows == [verdict] * bool(verdict)


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("import nothing_of_that_name", "own_resources.py"),
        ("x = 1", "own_resources.py:1:1: has no function add_resources"),
        ("def add_resources(own):\n    raise KeyError('boom')\n", "own_resources.py"),
    ],
    ids=["import", "no function", "raises"],
)
def test_own_resources_that_fail_are_a_sentence_that_names_their_file(program: str, message: str, copy: Path) -> None:
    (copy / "own_resources.py").write_text(program, encoding="utf-8")

    report = run_check(copy, CheckOptions(today=TODAY), selected=["dev"])

    sentences = [*(str(finding) for finding in errors(report)), *report.failures]
    assert sentences
    assert all(message in sentence for sentence in sentences), sentences
    assert report.exit_code() in (1, 2)


def test_an_unknown_stack_is_refused_with_the_nearest() -> None:
    with pytest.raises(UserError, match=r"no stack pord\..*Nearest: prod\."):
        run_check(ORGANISATION, CheckOptions(today=TODAY), selected=["pord"])


def test_an_old_snapshot_is_a_warning_that_only_strict_counts(copy: Path) -> None:
    report = run_check(copy, CheckOptions(today=date(2027, 1, 31)))

    assert {finding.rule for finding in report.all_findings()} == {"quota-snapshot-age"}
    assert report.exit_code() == 0
    assert report.exit_code(strict=True) == 1


def test_the_command_prints_a_report_and_ends_with_its_code(copy: Path) -> None:
    clean = CliRunner().invoke(app, ["check", "--root", str(copy)])
    assert clean.exit_code == 0
    assert clean.stdout.rstrip().endswith("5 stacks: clean")

    line = plant(copy, "prod", "topology: 4x8", "topology: 4x5")
    spoiled = CliRunner().invoke(app, ["check", "--root", str(copy)])
    assert spoiled.exit_code == 1
    assert f"stacks/Pulumi.prod.yaml:{line}:" in spoiled.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["check", "pord"], "no stack pord"),
        (["check", "--today", "yesterday"], "is not a date"),
        (["check", "--root", "/nowhere"], "not a training-platform repository"),
    ],
)
def test_wrong_usage_is_exit_code_2_and_one_sentence(arguments: list[str], message: str) -> None:
    root = [] if "--root" in arguments else ["--root", str(ORGANISATION)]

    result = CliRunner().invoke(app, [*arguments, *root])

    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.output


ENVIRONMENT = """\
config:
  training-platform:environment:
    project: example-small
    deletion_protection: false
    clusters:
      c:
        location: us-central1-a
        subnet: {nodes: 10.0.0.0/20, pods: 10.64.0.0/16, services: 10.1.0.0/20}
"""
TEAM = """\
config:
  training-platform:team:
    environment: prod-eu
    name: vision
    members: [group:vision@example.com]
    buckets: {checkpoints: {location: us-central1}}
"""
PROTECTION = {rule.id for rule in view_rules() if rule.ruleset == "protection"}
LINE = "    deletion_protection: false\n"


def protection_findings(root: Path, addition: str) -> dict[str, dict[str, Finding]]:
    """Return what the protection rules find by stack and rule, for an environment with an addition to its file."""
    (root / "stacks").mkdir(exist_ok=True)
    (root / "stacks" / "Pulumi.prod-eu.yaml").write_text(ENVIRONMENT.replace(LINE, LINE + addition))
    (root / "stacks" / "Pulumi.prod-eu-vision.yaml").write_text(TEAM)
    report = run_check(root, CheckOptions(today=TODAY))
    return {
        stack.name: {finding.rule: finding for finding in stack.findings if finding.rule in PROTECTION}
        for stack in report.stacks
    }


def test_a_file_that_does_not_say_is_an_error_with_the_line_to_add(tmp_path: Path) -> None:
    by_stack = protection_findings(tmp_path, "")

    (finding,) = by_stack["prod-eu"].values()
    assert (finding.rule, finding.severity, finding.nearest) == ("production-said", "error", "production: true")
    assert "production: true or production: false" in str(finding.allowed)
    assert finding.file == "stacks/Pulumi.prod-eu.yaml"
    assert finding.position
    assert finding.position.line == 2
    assert by_stack["prod-eu-vision"] == {}  # said once, where the line goes


@pytest.mark.parametrize(
    ("production", "of_environment", "of_team"),
    [("true", {"cluster-deletion-protection"}, {"bucket-force-destroy"}), ("false", set(), set())],
)
def test_production_of_any_name_refuses_deletion_and_so_do_its_teams(
    production: str, of_environment: set[str], of_team: set[str], tmp_path: Path
) -> None:
    by_stack = protection_findings(tmp_path, f"    production: {production}\n")

    assert (set(by_stack["prod-eu"]), set(by_stack["prod-eu-vision"])) == (of_environment, of_team)


PART = ("x:y:Part", "part")


def resource(type_: str, name: str, parent: tuple[str, str] | None = None, *, custom: bool = True) -> StackResource:
    return StackResource(stack="dev", type=type_, name=name, inputs={}, parent=parent, custom=custom)


def finding(severity: Severity, line: int, file: str = "a", rule: str = "r") -> Finding:
    return Finding(rule=rule, severity=severity, message="m", file=file, position=Position(line, 1))


def test_a_part_holds_everything_below_it_and_no_component_is_counted() -> None:
    inner = ("x:y:Inner", "inner")
    resources = [
        resource(*PART, custom=False),
        resource(*inner, PART, custom=False),
        resource("gcp:compute/network:Network", "a", PART),
        resource("gcp:compute/network:Network", "b", inner),
        resource("pulumi:providers:kubernetes", "k", inner),
        resource("gcp:storage/bucket:Bucket", "alone"),
    ]

    assert branches(resources) == (
        Branch(name="(stack)", kinds={"Bucket": 1}),
        Branch(name="part", kinds={"Network": 2, "Provider (kubernetes)": 1}),
    )
    assert branches(resources)[1].count == 3


def test_findings_are_in_the_order_of_the_file_errors_first() -> None:
    expected = [
        finding("error", 1),
        finding("error", 2),
        finding("warning", 2),
        finding("note", 2),
        finding("error", 1, "b"),
    ]

    assert ordered(reversed(expected)) == expected


def test_notes_and_warnings_do_not_fail_a_check_unless_it_is_strict() -> None:
    def code(*severities: Severity, strict: bool = False) -> int:
        findings = tuple(finding(severity, 1) for severity in severities)
        return Report(today=date(2026, 1, 1), findings=findings).exit_code(strict=strict)

    assert code() == 0
    assert code("note", "warning") == 0
    assert code("note", strict=True) == 0
    assert code("warning", strict=True) == 1
    assert code("error") == 1


def test_a_terminal_shows_progress_and_keeps_nothing_of_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    with progress_bar() as show:
        show("planning", 1, 2)

    written = capsys.readouterr().err
    assert "planning" in written
    assert written.endswith("\x1b[1A\x1b[2K")  # one line up, which is then erased
