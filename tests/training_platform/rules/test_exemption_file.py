"""``stacks/exemptions.yaml``: its fields, the findings that an exemption covers, and its last day."""

from __future__ import annotations

import dataclasses
from datetime import date
from pathlib import Path

import pytest

from tests.support.places import ORGANISATION
from training_platform.config.reading.finding import Finding, Position
from training_platform.config.reading.source import parse_source
from training_platform.rules import RULES
from training_platform.rules.descriptions import GROUPS, describe
from training_platform.rules.exemptions import FILE, Exemptions, parse_exemptions, read_exemptions

TODAY = date(2026, 11, 21)
FINDING = Finding(
    rule="boot-disk-size", severity="error", message="is 9 GB", stack="prod", file="stacks/Pulumi.prod.yaml",
    path="clusters.main.node_pools.h100.boot_disk.size_gb", resource="gcp:container/nodePool:NodePool main-h100-pool",
)  # fmt: skip
FIELDS = {
    "rule": "boot-disk-size",
    "stack": "prod",
    "path": "clusters.main.node_pools.h100",
    "reason": "moves soon",
    "owner": "ml@example.com",
    "expires": '"2027-01-31"',
}


def written(**fields: str | None) -> str:
    """Return a file with one exemption; None leaves a field out."""
    written_fields = {name: value for name, value in {**FIELDS, **fields}.items() if value is not None}
    first, *other_lines = (f"{name}: {value}" for name, value in written_fields.items())
    return "\n".join(["exemptions:", f"  - {first}", *(f"    {line}" for line in other_lines)])


def read(today: date = TODAY, /, **fields: str | None) -> Exemptions:
    return parse_exemptions(parse_source(written(**fields), FILE), today)


def covered(exemptions: Exemptions, **changed: object) -> bool:
    assert exemptions.unreadable == ()
    finding = dataclasses.replace(FINDING, **changed)  # type: ignore[arg-type] # fields of a finding, by name
    return exemptions.of(finding) is not None


@pytest.mark.parametrize(
    ("fields", "changed", "expected"),
    [
        ({}, {}, True),
        ({}, {"path": "clusters.main.node_pools.h100"}, True),
        ({}, {"path": "clusters.main.node_pools.h100[0]"}, True),
        ({}, {"path": "clusters.main.node_pools.h100-b.boot_disk"}, False),
        ({}, {"rule": "boot-disk-type"}, False),
        ({}, {"stack": None}, False),
        ({"path": "clusters.*.node_pools.h100"}, {}, True),
        ({"path": "clusters.*.a100"}, {}, False),
        ({"path": '"*"'}, {"path": ""}, True),
        ({"path": "clusters.main.node_pools.h10[0]"}, {}, False),
        ({"path": None, "resource": "main-h100-pool"}, {}, True),
        ({"path": None, "resource": "main-h100"}, {}, False),
        ({"path": None, "resource": "data"}, {"resource": "gcp:storage/bucket:Bucket data.example.com"}, False),
        ({"path": None, "resource": '"*:NodePool main-h100-pool"'}, {}, True),
        ({"path": None, "resource": '"*"'}, {"resource": None}, True),
    ],
)
def test_an_exemption_covers_what_it_names(
    fields: dict[str, str | None], changed: dict[str, object], expected: bool
) -> None:
    assert covered(read(**fields), **changed) is expected


QUOTA = "NVIDIA-H100-GPUS in us-central1"
OF_QUOTA = {"rule": "quota-exceeded", "quota": QUOTA, "up_to": "48"}
H100 = ("prod", "clusters.main.node_pools.h100.max_nodes")
EVAL = ("prod", "clusters.main.node_pools.eval.max_nodes")
EXCESS = {"rule": "quota-exceeded", "path": EVAL[1], "about": QUOTA, "amount": 48.0, "holders": (EVAL, H100)}


@pytest.mark.parametrize(
    ("fields", "changed", "expected"),
    [
        (OF_QUOTA, EXCESS, True),  # at whichever holder the finding is
        (OF_QUOTA, {**EXCESS, "stack": "lab"}, True),
        (OF_QUOTA, {**EXCESS, "amount": 48.5}, False),
        (OF_QUOTA, {**EXCESS, "about": "CPUS in us-central1"}, False),
        (OF_QUOTA, {**EXCESS, "holders": (EVAL,)}, False),
        ({**OF_QUOTA, "quota": '"NVIDIA-*"'}, EXCESS, True),
        ({"rule": "quota-exceeded"}, EXCESS, False),  # an entry as before
        ({"rule": "quota-exceeded"}, {**EXCESS, "holders": (H100,)}, True),
    ],
)
def test_an_exemption_of_a_quota_names_the_quota_and_the_most(
    fields: dict[str, str | None], changed: dict[str, object], expected: bool
) -> None:
    assert covered(read(**fields), **changed) is expected


def test_more_than_an_exemption_allows_is_told_with_both_amounts_and_the_entry_is_no_unused_one() -> None:
    exemptions = read(**OF_QUOTA)
    finding = dataclasses.replace(FINDING, **{**EXCESS, "amount": 56.0})  # type: ignore[arg-type] # fields by name

    ((counted,), exempted) = exemptions.split([finding])

    assert counted.message.endswith("; it is exempt up to 48, but needs 56")
    assert exempted == []
    assert exemptions.exceeded([counted]) == set(exemptions.entries)


def test_an_entry_that_names_no_amount_is_a_warning() -> None:
    for rule, allowed in (("quota-exceeded", "quota and up_to"), ("capacity-exceeded", "up_to")):
        (warning,) = read(rule=rule).findings(set(), stacks={"prod"}, checked={"prod"}, decided={"prod"})

        assert (warning.rule, warning.severity) == ("exemption-untyped", "warning")
        assert (warning.allowed or "").startswith(f"{allowed}, as")


@pytest.mark.parametrize("rule", ["capacity-exceeded", "file-capacity-exceeded", "reservation-exceeded"])
def test_an_exemption_of_a_capacity_names_the_most_of_all_its_holders(rule: str) -> None:
    excess = {**EXCESS, "rule": rule, "about": ""}
    entry: dict[str, str | None] = {"rule": rule, "up_to": "48"}

    assert covered(read(**entry), **excess)
    assert not covered(read(**entry), **{**excess, "amount": 56.0})
    assert not covered(read(**entry), **{**excess, "holders": (EVAL,)})
    assert not covered(read(rule=rule), **excess)
    assert covered(read(rule=rule), **{**excess, "holders": (H100,)})


def test_an_exemption_of_an_unknown_quota_names_all_who_hold_a_part_of_it() -> None:
    unknown = {"rule": "quota-unknown", "path": EVAL[1], "holders": (EVAL, H100)}

    assert not covered(read(rule="quota-unknown"), **unknown)
    assert covered(read(rule="quota-unknown", path="clusters.main.node_pools.*"), **unknown)


@pytest.mark.parametrize(("day", "expected"), [("2027-01-30", True), ("2027-01-31", True), ("2027-02-01", False)])
def test_an_exemption_holds_through_its_last_day(day: str, expected: bool) -> None:
    assert covered(read(date.fromisoformat(day))) is expected


WRONG: dict[str, tuple[dict[str, str | None], str]] = {
    "no reason": ({"reason": None}, "exemptions[0].reason: is missing"),
    "an empty reason": ({"reason": '" "'}, "stacks/exemptions.yaml:5:5: exemptions[0].reason: is blank"),
    "no owner": ({"owner": None}, "exemptions[0].owner: is missing"),
    "an owner who cannot be asked": ({"owner": "someone"}, "an address such as ml-platform@example.com"),
    "no last day": ({"expires": None}, "exemptions[0].expires: is missing"),
    "a day that is none": ({"expires": '"2027-02-30"'}, "stacks/exemptions.yaml:7:5: exemptions[0].expires"),
    "a day that readers differ on": ({"expires": "2027-01-31"}, 'Nearest: "2027-01-31"'),
    "an unknown rule": ({"rule": "boot-disk-sise"}, "is not a rule that can be exempt. Allowed: "),
    "a rejection of the file": ({"rule": "stack-model"}, "'stack-model' is not a rule that can be exempt"),
    "neither path nor resource": ({"path": None}, "exemptions[0]: needs either path or resource"),
    "both path and resource": ({"resource": "x"}, "exemptions[0]: needs either path or resource"),
    "a quota without an amount": ({**OF_QUOTA, "up_to": None}, "exemptions[0]: needs both quota and up_to, or neither"),
    "a quota of another rule": (
        {"quota": "CPUS", "up_to": "1"},
        "exemptions[0]: has `quota`, which needs rule quota-exceeded and a path",
    ),
    "an amount of a rule without one": (
        {"up_to": "1"},
        "has `up_to`, which needs a path and one of the rules capacity-",
    ),
    "an unknown field": ({"ends": "x"}, "is not a field of this section"),
    "the day under its old name": ({"until": '"2027-01-31"'}, "is no longer a field of this section. Allowed: expires"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_said_with_its_place_and_exempts_nothing(name: str) -> None:
    fields, message = WRONG[name]

    exemptions = read(**fields)

    assert len(exemptions.unreadable) == 1
    assert exemptions.unreadable[0].startswith("stacks/exemptions.yaml:")
    assert message.replace(". Allowed", " Allowed") in exemptions.unreadable[0].replace(". Allowed", " Allowed")
    assert exemptions.of(FINDING) is None


def test_an_acknowledgement_says_what_it_permits() -> None:
    entry = "{stack: dev, path: alerts, becomes: removed, reason: agreed, owner: ml@example.com, expires: '2027-01-31'}"

    (error,) = parse_exemptions(parse_source(f"acknowledged: [{entry}]", FILE), TODAY).unreadable

    assert "acknowledged[0]: needs takes or from_others" in error


def test_an_unknown_rule_is_answered_with_the_nearest() -> None:
    assert "Nearest: boot-disk-size" in read(rule="boot-disk-sise").unreadable[0]


def test_everything_that_is_wrong_comes_at_once() -> None:
    assert len(read(reason=None, owner=None, rule="x").unreadable) == 3


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "exemptions:\n", "exemptions: []\n"])
def test_a_file_may_exempt_nothing(text: str) -> None:
    assert parse_exemptions(parse_source(text, FILE), TODAY) == Exemptions(TODAY)


def test_the_file_may_be_missing_or_broken(tmp_path: Path) -> None:
    assert read_exemptions(tmp_path, TODAY) == Exemptions(TODAY)

    (tmp_path / "stacks").mkdir()
    (tmp_path / FILE).write_text("a: [")
    assert "exemptions.yaml:2:1: is not YAML" in read_exemptions(tmp_path, TODAY).unreadable[0]


def test_the_shipped_file_is_right_and_so_is_its_example() -> None:
    text = (ORGANISATION / FILE).read_text(encoding="utf-8")
    assert read_exemptions(ORGANISATION, TODAY) == Exemptions(TODAY)

    lines = text.splitlines()
    example = [line.removeprefix("#") for line in lines if line.startswith("#   ")]
    parsed = parse_exemptions(parse_source("\n".join(["exemptions:", *example]), FILE), TODAY)
    assert parsed.unreadable == ()
    assert len(parsed.entries) == 1


def test_an_expired_exemption_is_an_error_whether_or_not_something_needs_it() -> None:
    old = read(date(2027, 2, 2))

    (finding,) = old.findings((), stacks={"prod"}, checked={"prod"}, decided=())

    assert (finding.rule, finding.severity, finding.position) == ("exemption-expired", "error", Position(2, 5))
    assert "expired 2 days ago" in finding.message
    assert "ml@example.com" in (finding.allowed or "")
    (warning,) = old.findings((), stacks={"dev", "prod"}, checked={"dev"}, decided={"dev"})
    assert (warning.rule, warning.severity) == ("exemption-expired", "warning")


@pytest.mark.parametrize(
    ("fields", "rules"),
    [
        ({"path": '"*"'}, ["exemption-wide"]),
        ({"path": None, "resource": '"**"'}, ["exemption-wide"]),
        ({"path": "clusters.*"}, []),
        ({"rule": "quota-exceeded", "quota": "X", "up_to": "48", "path": '"*"'}, []),
    ],
)
def test_an_exemption_of_everything_is_a_warning(fields: dict[str, str | None], rules: list[str]) -> None:
    exemptions = read(**fields)

    findings = exemptions.findings(exemptions.entries, stacks={"prod"}, checked={"prod"}, decided={"prod"})

    assert [(finding.rule, finding.severity) for finding in findings] == [(rule, "warning") for rule in rules]


@pytest.mark.parametrize(
    ("decided", "checked", "stacks", "rules"),
    [
        (["prod"], ["prod"], ["prod"], ["exemption-unused"]),
        ([], ["prod"], ["prod"], []),  # not planned: nobody can say
        ([], ["dev"], ["prod", "dev"], []),  # another stack was asked for
        (["prd"], ["prd"], ["prd"], ["exemption-unused"]),  # there is no such stack
    ],
)
def test_an_unused_exemption_is_a_warning_where_its_stack_was_planned(
    decided: list[str], checked: list[str], stacks: list[str], rules: list[str]
) -> None:
    findings = list(read().findings((), stacks=stacks, checked=checked, decided=decided))

    assert [finding.rule for finding in findings] == rules
    assert all(finding.severity == "warning" for finding in findings)
    if stacks == ["prd"]:
        assert findings[0].nearest == "prd"


def test_a_used_exemption_is_no_finding() -> None:
    exemptions = read()

    counted, exempted = exemptions.split([FINDING, dataclasses.replace(FINDING, stack="dev")])

    assert [finding.stack for finding in counted] == ["dev"]
    used = {exemption.entry for exemption in exempted}
    assert list(exemptions.findings(used, stacks={"prod"}, checked={"prod"}, decided={"prod"})) == []
    assert str(exempted[0]) == "exempt until 2027-01-31 by ml@example.com: moves soon"


def test_every_rule_is_described() -> None:
    for rule in RULES.values():
        assert rule.title.endswith(".")
        assert rule.ruleset in GROUPS
    assert describe("from-elsewhere").title == "from-elsewhere"
