from datetime import date

from training_platform.checks.planning.outcome import Branch, branches, kind_of
from training_platform.checks.planning.recorder import Plan
from training_platform.checks.report import Report, ordered
from training_platform.config.reading.finding import Finding, Position, Severity
from training_platform.resources.planned import Planned

PART = ("x:y:Part", "part")


def resource(type_: str, name: str, parent: tuple[str, str] | None = None, *, custom: bool = True) -> Planned:
    return Planned(stack="dev", type=type_, name=name, inputs={}, parent=parent, custom=custom)


def finding(severity: Severity, line: int, file: str = "a", rule: str = "r") -> Finding:
    return Finding(rule=rule, severity=severity, message="m", file=file, position=Position(line, 1))


def test_a_part_holds_everything_below_it_and_no_component_is_counted() -> None:
    inner = ("x:y:Inner", "inner")
    plan = Plan(
        [
            resource(*PART, custom=False),
            resource(*inner, PART, custom=False),
            resource("gcp:compute/network:Network", "a", PART),
            resource("gcp:compute/network:Network", "b", inner),
            resource("pulumi:providers:kubernetes", "k", inner),
            resource("gcp:storage/bucket:Bucket", "alone"),
        ]
    )

    assert branches(plan.resources) == (
        Branch(name="(stack)", kinds={"Bucket": 1}),
        Branch(name="part", kinds={"Network": 2, "Provider (kubernetes)": 1}),
    )
    assert branches(plan.resources)[1].count == 3


def test_a_kind_is_the_last_part_of_a_type() -> None:
    assert kind_of("gcp:container/nodePool:NodePool") == "NodePool"


def test_findings_are_in_the_order_of_the_file_errors_first() -> None:
    wanted = [
        finding("error", 1),
        finding("error", 2),
        finding("warning", 2),
        finding("note", 2),
        finding("error", 1, "b"),
    ]

    assert ordered(reversed(wanted)) == wanted


def test_notes_and_warnings_do_not_fail_a_check_unless_it_is_strict() -> None:
    def code(*severities: Severity, strict: bool = False) -> int:
        found = tuple(finding(severity, 1) for severity in severities)
        return Report(today=date(2026, 1, 1), findings=found).exit_code(strict=strict)

    assert code() == 0
    assert code("note", "warning") == 0
    assert code("note", strict=True) == 0
    assert code("warning", strict=True) == 1
    assert code("error") == 1
