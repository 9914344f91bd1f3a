"""The comment on a pull request: its first lines, no accidental markup, and its length."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from tests.support.places import ROOT
from training_platform.checks.report import Report, folded
from training_platform.checks.reports.markdown import MARKER, MOST_CHARACTERS, markdown_report

Build = Callable[..., Any]


def table(text: str, first: str) -> list[list[str]]:
    """Return the rows of the table with this first column."""
    lines = text[text.index(f"| {first} |") :].partition("\n\n")[0].splitlines()
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines[2:]]


def items(text: str) -> list[dict[str, str]]:
    """Return the findings of the first list, each with its severity, place and text."""
    pattern = (
        r"^- \*\*(?P<severity>\w+)\*\* (?P<place>\[.+?\]\(.+?\)) (?P<text>.+) \[`(?P<rule>[^`]+)`\]\((?P<page>[^)#]+)#"
    )
    return [match.groupdict() for match in re.finditer(pattern, text, re.MULTILINE)]


def test_the_verdict_comes_first(clean: Report, spoiled: Report) -> None:
    assert markdown_report(clean).startswith(f"{MARKER}\n\n### 5 stacks: clean\n")
    assert re.match(
        re.escape(MARKER)
        + r"\n\n### 6 stacks: \d+ errors, 1 warning, 1 exempt, 1 thing not checked\n\n- not checked: ",
        markdown_report(spoiled),
    )


def test_every_finding_is_an_item_with_a_link_to_its_line(spoiled: Report) -> None:
    text = markdown_report(spoiled)

    places = [row["place"] for row in items(text)]
    rows = [finding for finding, _ in folded(spoiled.all_findings())]
    with_line = [finding for finding in rows if finding.position]
    assert len(places) == len(rows)
    for listed in with_line:
        assert listed.position
        line = listed.position.line
        assert f"[{listed.file}:{line}]({listed.file}#L{line})" in places


def test_the_name_of_a_rule_links_to_its_heading_in_the_reference(spoiled: Report) -> None:
    links = re.findall(r" \[`([^`]+)`\]\(([^)#]+)#([^)]+)\)", markdown_report(spoiled))

    assert {rule for rule, _, _ in links} == {finding.rule for finding, _ in folded(spoiled.all_findings())}
    for rule, page, anchor in links:
        assert anchor == rule
        assert f"\n## {rule}\n" in (ROOT / page).read_text(encoding="utf-8")


def test_links_may_lead_to_the_repository(build_report: Build, build_finding: Build) -> None:
    text = markdown_report(build_report(build_finding()), "https://git.example.com/platform/blob/abc/")

    assert "(https://git.example.com/platform/blob/abc/stacks/Pulumi.prod.yaml#L14)" in text


def test_errors_come_first(build_report: Build, build_finding: Build) -> None:
    text = markdown_report(
        build_report(build_finding(severity="note"), build_finding(severity="error"), build_finding(severity="warning"))
    )

    assert [row["severity"] for row in items(text)] == ["error", "warning", "note"]


def test_nothing_that_a_file_says_is_markup_or_a_mention(build_report: Build, build_finding: Build) -> None:
    text = markdown_report(build_report(build_finding("<img src=x> | **b** `c` [d](e) @team\n# f")))

    (row,) = items(text)
    assert r"&lt;img src=x&gt; \| \*\*b\*\* \`c\` \[d\](e) @<!-- -->team<br># f" in row["text"]


def test_quotas_are_listed_from_four_fifths_and_where_more_is_requested_and_those_over_first(
    spoiled: Report, clean: Report
) -> None:
    rows = table(markdown_report(spoiled), "project")
    lines = [line for ledger in spoiled.ledgers for line in ledger.lines if line.limit]
    full = {line.key for line in lines if line.limit and line.used / line.limit > 0.8}
    requested = {line.key for line in lines if line.key.quota_id.startswith("TPU-PODSLICE-V4") and line.limit == 192}

    assert len(requested - full) == 1
    assert len(rows) == len(full | requested)
    bold = [row[3].startswith("**") for row in rows if row[0] == "example-train-prod"]
    assert bold == sorted(bold, reverse=True)
    assert any(bold)
    assert not any(row[3].startswith("**") for row in table(markdown_report(clean), "project"))


def test_cost_and_what_it_leaves_out_are_said(clean: Report) -> None:
    rows = {row[0]: row for row in table(markdown_report(clean), "stack")}

    (prod,) = (stack for stack in clean.stacks if stack.name == "prod")
    without = f"{prod.cost.vms_without} VMs without a price: n2-standard-8 on-demand"
    assert rows["prod"][1] == f"at least ${prod.cost.minimum:,.2f} to ${prod.cost.maximum:,.2f} per hour; {without}"
    assert "no price known: " in rows["prod"][2]
    assert "n2-standard-8 on-demand" in rows["prod"][2]
    assert "filestore-REGIONAL in us-central1" not in rows["prod"][2]


def test_details_are_folded_and_balanced(spoiled: Report) -> None:
    text = markdown_report(spoiled)

    assert text.count("<details>") == text.count("</details>") >= 4
    assert "<details><summary>1 exempt finding</summary>" in text
    assert r"The cache &lt;b&gt;moves&lt;/b&gt; \| to Filestore." in text


def test_a_comment_is_never_longer_than_github_takes(build_report: Build, build_finding: Build) -> None:
    report = build_report(
        *(build_finding(f"is {number} GB " + "x" * 400, path=f"a.b{number}") for number in range(500))
    )

    text = markdown_report(report)

    assert len(text) <= MOST_CHARACTERS
    rows = len(items(text))
    assert rows > 50
    assert f"and {500 - rows} more findings" in text
