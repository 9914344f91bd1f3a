"""What a change does, in every format."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from typing import Any

import pytest
from rich.console import Console

from training_platform.checks.change_report import (
    AcceleratorChange,
    Act,
    Amount,
    CapacityChange,
    Comparison,
    Consequence,
    InputChange,
    QuotaChange,
    ResourceChange,
    StackChange,
)
from training_platform.checks.effect_kinds import Effect, EffectKind
from training_platform.checks.output import FORMATS, render
from training_platform.checks.report import Known, Report
from training_platform.checks.reports.sections import MOST_INPUTS, amount, change_summary, effects, resource_rows
from training_platform.checks.reports.text import print_report
from training_platform.checks.reports.wording import conclusion
from training_platform.config.reading.finding import Finding, Position
from training_platform.quota.charges import QuotaKey
from training_platform.rules.exemptions import Acknowledgement, Exempted, ExemptionEntry

NODE_POOL = "gcp:container/nodePool:NodePool"
NO_VMS = Amount(0, 0)
REPLACED = ResourceChange(
    kind="replaced",
    type=NODE_POOL,
    name="c-h100-pool",
    inputs=(
        InputChange("autoscaling.maxNodeCount", 8, 6, False),
        InputChange("nodeConfig.spot", None, True, True, Effect("jobs", "its VMs are deleted", "let them end")),
    ),
)
ADDED = ResourceChange(kind="added", type="gcp:storage/bucket:Bucket", name="bucket-<b>-bucket")
CHANGES = Comparison(
    ref="origin/main",
    commit="0123456789abcdef",
    stacks=(
        StackChange(
            name="prod",
            kind="changed",
            resources=(REPLACED, ADDED),
            accelerators=(AcceleratorChange("us-central1", "h100", "GPUs", Amount(64, 48)),),
            least_usd=Amount(10, 10),
            most_usd=Amount(700.5, None),
        ),
        StackChange(name="prod-sight", kind="renamed", was="prod-vision"),
    ),
    other_stacks=3,
    quotas=(
        QuotaChange(
            QuotaKey("example", "compute.googleapis.com", "GPUS-per-project-region", "us-central1"),
            "GPU",
            Amount(64, 48),
            Amount(72, 72),
        ),
    ),
    capacity=(CapacityChange("prod", "c", "h100", Amount(64, 48), Amount(40, 40)),),
)
SHOWN = ("text", "markdown", "html")


@pytest.fixture
def report(build_report: Callable[..., Report]) -> Report:
    return build_report(comparison=CHANGES)


@pytest.mark.parametrize("to", SHOWN)
def test_a_change_that_affects_no_stack_says_so(to: str, build_report: Callable[..., Report]) -> None:
    text = render(build_report(comparison=replace(CHANGES, stacks=(), other_stacks=5)), to).replace("\\", "")

    assert "Since origin/main (0123456789ab): no file changed that a stack depends on" in text


@pytest.mark.parametrize("to", SHOWN)
def test_people_read_what_happens_to_what_and_what_forces_it(to: str, report: Report) -> None:
    text = render(report, to).replace("\\", "").replace("<br>", "\n")

    for sentence in (
        "Since origin/main (0123456789ab): 1 replaced, 1 added in 2 stacks; 3 others cannot be affected",
        "NodePool c-h100-pool",
        "nodeConfig.spot: nothing → true, replaces it, stops jobs",
        "autoscaling.maxNodeCount: 8 → 6",
        "prod-sight: was prod-vision",
        "64 → 48 (-16)",
        "64 → 48 (-16) GPUs",
        "700.50 → ?",
    ):
        assert sentence in text, sentence


def test_a_stack_that_was_not_planned_is_not_reported_as_unchanged(build_report: Callable[..., Report]) -> None:
    unplanned = replace(CHANGES.stacks[0], kind="removed", resources=(), unknown="not planned in the base")

    part = render(
        build_report(comparison=replace(CHANGES, stacks=(*CHANGES.stacks, unplanned), other_stacks=0)), "text"
    )
    nothing = render(build_report(comparison=replace(CHANGES, stacks=(unplanned,), other_stacks=0)), "text")

    assert ": 1 replaced, 1 added in 2 stacks; resources of 1 stack were not compared" in part
    assert "(0123456789ab): resources of 1 stack were not compared" in nothing
    assert "0 resources" not in nothing


def test_of_many_quotas_a_terminal_lists_those_with_a_higher_demand(report: Report) -> None:
    key, unit, less, limit = CHANGES.quotas[0]
    fewer = [QuotaChange(key._replace(location=f"us-central{number}"), unit, less, limit) for number in range(13)]
    more = QuotaChange(key._replace(location="europe-west4"), unit, Amount(0, 8), limit)
    changed = replace(report, comparison=replace(CHANGES, quotas=(*fewer, more)))
    short = io.StringIO()
    everything = io.StringIO()

    print_report(changed, Console(file=short, width=120), verbose=False)
    print_report(changed, Console(file=everything, width=120))

    assert "europe-west4" in short.getvalue()
    assert "us-central12" not in short.getvalue()
    assert "13 other quotas with a lower need (--verbose shows each)" in short.getvalue()
    assert "us-central12" in everything.getvalue()


def test_a_page_escapes_the_names_of_resources(report: Report) -> None:
    assert "bucket-&lt;b&gt;-bucket" in render(report, "html")


def test_programs_read_everything(report: Report) -> None:
    changes = json.loads(render(report, "json"))["changes"]

    assert (changes["base"], changes["commit"], changes["other_stacks"]) == ("origin/main", "0123456789abcdef", 3)
    pool = changes["stacks"][0]["resources"][0]
    assert (pool["kind"], pool["type"]) == ("replaced", NODE_POOL)
    assert pool["inputs"][1] == {
        "path": "nodeConfig.spot",
        "old": None,
        "new": True,
        "replaces": True,
        "effect": "jobs",
    }
    assert changes["stacks"][0]["usd_per_hour"]["max"] == {"before": 700.5, "after": None}
    assert changes["stacks"][1]["was"] == "prod-vision"
    assert changes["quotas"][0]["used"] == {"before": 64, "after": 48}
    assert changes["capacity"][0]["capacity"] == {"before": 64, "after": 48}


def test_without_a_base_no_format_speaks_of_changes(build_report: Callable[..., Report]) -> None:
    plain = build_report()

    assert "changes" not in json.loads(render(plain, "json"))
    assert not any("Since " in render(plain, to) for to in FORMATS)


def _costs(*maxima: Amount, unpriced: Amount = NO_VMS) -> Comparison:
    stacks = tuple(
        StackChange(name=f"s{number}", kind="changed", most_usd=maximum, unpriced=unpriced)
        for number, maximum in enumerate(maxima)
    )
    return Comparison(ref="main", commit="0" * 40, stacks=stacks)


def test_the_summary_says_what_a_change_costs() -> None:
    more = change_summary(_costs(Amount(100, 185.62), Amount(10, 9), Amount(None, 5)))
    less = change_summary(_costs(Amount(100, 20)))

    assert more.endswith("; up to 84.62 USD per hour more")
    assert less.endswith("; up to 80.00 USD per hour less")
    assert "USD" not in change_summary(_costs(Amount(100, 100.001)))


def test_a_cost_is_not_compared_if_vms_without_a_price_differ() -> None:
    summary = change_summary(_costs(Amount(1054, 369), unpriced=Amount(3, 11)))

    assert summary.endswith("; the difference in cost is not known, because the number of VMs without a price differs")


def test_an_unknown_base_is_reported(build_report: Callable[..., Report]) -> None:
    unknown = Comparison(ref="main", commit="0" * 40, unknown="its program cannot be run")
    report = build_report(comparison=unknown)

    assert change_summary(unknown) == "Since main (000000000000): what changed is not known"
    assert "its program cannot be run" in render(report, "text")
    assert "its program cannot be run" in render(report, "html")


@pytest.mark.parametrize("to", FORMATS)
def test_a_known_finding_is_shown_and_fails_nothing(
    to: str, build_report: Callable[..., Report], build_finding: Callable[..., Any]
) -> None:
    report = build_report(known=(Known(build_finding("is known"), "main has it as well"),))

    text = render(report, to)

    assert report.exit_code(strict=True) == 0
    shown = "is known" in text and "main has it as well" in text
    assert shown is (to in (*SHOWN, "json"))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Amount(1, 3), "1 → 3 (+2)"),
        (Amount(3, 1), "3 → 1 (-2)"),
        (Amount(3, 3), "3"),
        (Amount(None, 3), "? → 3"),
        (Amount(3, None), "3 → ?"),
    ],
)
def test_an_amount_says_what_it_was_what_it_is_and_the_difference(value: Amount, text: str) -> None:
    assert amount(value) == text


def test_what_forces_a_replacement_comes_first_and_a_long_list_is_counted() -> None:
    many = tuple(InputChange(f"a{index:03}", 1, 2, False) for index in range(MOST_INPUTS + 3))
    resource = ResourceChange(kind="replaced", type="x:y:Z", name="z", inputs=(*many, InputChange("z", 1, 2, True)))

    ((_, _, lines),) = resource_rows(StackChange(name="s", kind="changed", resources=(resource,)))

    assert lines[0] == "z: 1 → 2, replaces it"
    assert lines[-1] == "and 4 more inputs"
    assert len(lines) == MOST_INPUTS + 1


def test_a_type_without_known_fields_is_reported() -> None:
    resource = ResourceChange(kind="changed", type="x:y:Z", name="z", undecided=True)

    ((_, _, lines),) = resource_rows(StackChange(name="s", kind="changed", resources=(resource,)))

    assert lines == ["it is not known whether this change replaces a resource of this type"]


LOSS = Act(
    verb="changed",
    consequences=(
        Consequence(kind="data", subjects=("bucket <b> of prod", "bucket two of prod", "bucket three of prod")),
    ),
    finding=Finding(
        rule="loses-data", severity="error", message="loses data: bucket <b>", stack="prod",
        file="stacks/Pulumi.prod.yaml", position=Position(24, 9), first="copy it", becomes="us-west4",
    ),
)  # fmt: skip
ENTRY = ExemptionEntry(
    Acknowledgement(
        takes=("data",), stack="prod", path="a", becomes="us-west4", reason="It is copied.",
        owner="ml@example.com", expires=date(2026, 12, 31),
    ),
    Position(1, 1),
)  # fmt: skip


@pytest.mark.parametrize("to", SHOWN)
def test_a_loss_is_the_headline_and_comes_first(
    to: str, build_report: Callable[..., Report], build_finding: Callable[..., Any]
) -> None:
    other = build_finding("is another", file="stacks/Pulumi.a.yaml")
    report = build_report(other, LOSS.finding, comparison=replace(CHANGES, acts=(LOSS,)))

    text = render(report, to).replace("\\", "").replace("&lt;", "<").replace("&gt;", ">")

    assert "loses data: bucket <b> of prod, bucket two of prod and 1 more; 2 errors" in text
    assert text.index("loses data: bucket <b>") < text.index("is another")
    assert "stacks/Pulumi.prod.yaml:24" in text
    assert "Compared with origin/main in git" in text


def test_taken_rights_are_no_finding_and_nothing_is_clean_over_them(build_report: Callable[..., Report]) -> None:
    taken = Consequence(kind="revokes", subjects=("ada@example.com in team vision",))
    grant = replace(taken, kind="grants")

    def headline(consequence: Consequence) -> str:
        act = replace(LOSS, consequences=(consequence,))
        return str(conclusion(build_report(comparison=replace(CHANGES, acts=(act,)))))

    assert headline(taken).endswith(": revokes rights: ada@example.com in team vision")
    assert headline(grant).endswith(": clean")


def test_of_many_effects_the_headline_names_the_gravest(
    build_report: Callable[..., Report],
) -> None:
    kinds: tuple[EffectKind, ...] = ("data", "jobs", "opens")
    many = tuple(Consequence(kind=kind, subjects=(f"pool {kind} (8 VMs)", "another")) for kind in kinds)

    text = str(conclusion(build_report(comparison=replace(CHANGES, acts=(replace(LOSS, consequences=many),)))))

    assert "loses data: pool data and 1 more; stops jobs: 2; opens access: 2" in text


def test_a_terminal_counts_what_is_known(
    build_report: Callable[..., Report], build_finding: Callable[..., Any]
) -> None:
    report = build_report(
        known=tuple(Known(build_finding(f"is {number}"), "main has it as well") for number in range(3))
    )
    short = io.StringIO()

    print_report(report, Console(file=short, width=120), verbose=False)

    assert "3 known findings: main has it as well (--verbose shows each)" in short.getvalue()
    assert "is 1" not in short.getvalue()


def test_code_scanning_has_losses_first(build_report: Callable[..., Report], build_finding: Callable[..., Any]) -> None:
    report = build_report(build_finding("is another", file="stacks/Pulumi.a.yaml"), LOSS.finding)

    results = json.loads(render(report, "sarif"))["runs"][0]["results"]

    assert [result["ruleId"] for result in results] == ["loses-data", "boot-disk-size"]
    assert "First: copy it." in results[0]["message"]["text"]


@pytest.mark.parametrize("to", SHOWN)
def test_an_acknowledged_loss_is_never_reported_as_clean(to: str, build_report: Callable[..., Report]) -> None:
    losses = tuple(replace(row, acknowledged=True) for row in LOSS.consequences)
    acknowledged = replace(LOSS, consequences=losses, acknowledged=Exempted(LOSS.finding, ENTRY))
    report = build_report(comparison=replace(CHANGES, acts=(acknowledged,)))

    text = render(report, to).replace("\\", "")

    assert report.exit_code(strict=True) == 0
    assert conclusion(report).state == "findings"
    assert "(acknowledged); 1 exempt" in text
    assert "until 2026-12-31 by ml@" in text
    assert "clean" not in text.partition("<details>")[0].replace('"clean', "").replace(".clean", "")


def test_texts_that_are_cut_show_what_differs() -> None:
    old, new = (f"{'same ' * 30}{word}{' rest' * 30}" for word in ("one", "other"))
    resource = ResourceChange(kind="changed", type="x:y:Z", name="z", inputs=(InputChange("text", old, new, False),))

    ((_, _, (line,)),) = resource_rows(StackChange(name="s", kind="changed", resources=(resource,)))

    assert line.startswith("text: …")
    assert "same one rest" in line
    assert "same other rest" in line


def test_changes_without_effect_are_counted_and_unknown_ones_are_reported() -> None:
    unfelt = ResourceChange(kind="changed", type="x:y:Alert", name="a", inputs=(InputChange("query", 1, 2, False),))
    unknown = InputChange("other", 1, 2, False, Effect("unknown", "no row"))
    resources = (
        unfelt,
        replace(unfelt, name="b"),
        ResourceChange(kind="changed", type="x:y:Z", name="c", inputs=(unknown,)),
    )
    comparison = replace(CHANGES, stacks=(StackChange(name="s", kind="changed", resources=resources),))

    (section,) = effects(comparison)

    assert "2 resources change without effect on people. Effect unknown: 1 input." in section.note
