"""The page is complete, fetches nothing and shows everything."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from html.parser import HTMLParser
from typing import Any

import pytest
from markupsafe import Markup

from training_platform.checks.outcome import ResourceTree
from training_platform.checks.output import render
from training_platform.checks.report import Report
from training_platform.checks.reports import html as html_stacks
from training_platform.checks.reports.html import html_report
from training_platform.checks.reports.markdown import markdown_report
from training_platform.checks.reports.markup import el
from training_platform.quota.charges import shown
from training_platform.quota.ledger import ClaimLine

Build = Callable[..., Any]
VOID = {"meta", "link", "rect", "path"}


class Elements(HTMLParser):
    """The elements of a page in order; fails on one that is not closed."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        assert tag in VOID
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_text_is_escaped_and_elements_are_not() -> None:
    assert el("p", "<b>", el("i", "&"), title='"') == '<p title="&#34;">&lt;b&gt;<i>&amp;</i></p>'
    assert el("p", ["a", Markup("<br>")], hidden=True, cls=None) == "<p hidden>a<br></p>"


@pytest.mark.parametrize("name", ["clean", "spoiled"])
def test_every_element_is_closed_and_nothing_is_fetched_or_run(name: str, request: pytest.FixtureRequest) -> None:
    page = Elements(html_report(request.getfixturevalue(name)))

    assert page.open == []
    assert {tag for tag, _ in page.elements}.isdisjoint({"script", "img", "iframe", "object", "form", "base"})
    addresses = [
        value
        for _, attributes in page.elements
        for key, value in attributes.items()
        if key in {"href", "src", "action"}
    ]
    assert all(address and address.startswith(("#", "data:,")) for address in addresses)
    assert "url(" not in html_report(request.getfixturevalue(name))
    (policy,) = (attributes["content"] for _, attributes in page.elements if "http-equiv" in attributes)
    assert str(policy).startswith("default-src 'none'; ")


def test_the_page_says_all_that_was_found_and_counted(spoiled: Report) -> None:
    text = html_report(spoiled)

    for finding in spoiled.all_findings():
        assert el("p", finding.message).removeprefix("<p>").removesuffix("</p>") in text
    for ledger in spoiled.ledgers:
        assert ledger.project in text
        assert all(f"{shown(line.used)} of" in text or "unlimited" in text for line in ledger.lines)
    for stack in spoiled.stacks:
        assert f"<strong>{stack.name}</strong>" in text
    assert "exempt until 2027-01-31 by ml-platform@example.com: The cache &lt;b&gt;moves&lt;/b&gt;" in text
    assert "Pulumi.broken.yaml" in text


def test_files_of_an_environment_stand_together_and_say_what_is_known(clean: Report) -> None:
    first = clean.files[0]
    claims = ClaimLine(environment="dev", instance="claims", spec=first.spec, shares=(), bound=1024)
    files = (
        html_report(dataclasses.replace(clean, files=(*clean.files, claims)))
        .partition('id="files"')[2]
        .partition("</section></section>")[0]
    )

    assert re.findall("<h3>(.*?)</h3>", files) == ["dev", "prod"]
    held = re.findall('class="held">(.*?)</span>', files)
    assert "" in held  # nobody knows how fast claims are
    assert [speed for speed in held if speed.endswith(";") or "?" in speed] == []


def test_links_are_made_only_with_an_address_for_them(build_report: Build, build_finding: Build) -> None:
    assert "Pulumi.prod.yaml#L14" not in html_report(build_report(build_finding()))
    assert 'href="https://git.example.com/x/stacks/Pulumi.prod.yaml#L14"' in html_report(
        build_report(build_finding()), "https://git.example.com/x/"
    )


def test_every_resource_stands_in_its_stacks_tree_until_there_are_too_many(
    clean: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    def names(resources: tuple[ResourceTree, ...]) -> list[str]:
        return [name for resource in resources for name in (resource.name, *names(resource.children))]

    planned = [name for stack in clean.stacks for name in names(stack.resources)]
    whole = html_report(clean)
    assert len(planned) > 400
    assert all(f"<code>{name}</code>" in whole for name in planned)
    (prod,) = (stack for stack in clean.stacks if stack.name == "prod")
    (count,) = (branch.count for branch in prod.branches if branch.name == "us-central1")
    assert f'<code>us-central1</code> <span class="kind">GkeCluster</span><span class="kind"> {count}</span>' in whole

    monkeypatch.setattr(html_stacks, "MOST_RESOURCES", 100)
    short = html_report(clean)
    assert "<code>us-central1-h100-pool</code>" not in short
    assert "<strong>us-central1</strong>" in short


def test_the_graph_draws_each_stack_below_what_it_hangs_on(clean: Report) -> None:
    picture = html_stacks.stack_graph(clean)

    assert picture.count("<rect ") == len(clean.stacks) + 2  # two projects
    assert picture.count("<path ") == len(clean.stacks)


def test_a_team_alone_is_drawn_below_its_environment(clean: Report) -> None:
    team = next(stack for stack in clean.stacks if stack.name == "prod-nlp")

    picture = html_stacks.stack_graph(dataclasses.replace(clean, stacks=(team,)))

    assert ">prod</text>" in picture
    assert picture.count("<path ") == 1


def row(text: str, name: str) -> str:
    """Return the bar of a quota with the numbers beside it."""
    return next(part for part in text.split("<li") if f'class="name">{name} ' in part)


def test_an_over_full_bar_is_marked_at_the_limit(spoiled: Report) -> None:
    mega = row(html_report(spoiled), "PREEMPTIBLE-NVIDIA-H100-MEGA-GPUS")

    assert '<b style="left:80.00%"></b>' in mega  # 64 of 80
    assert "80 of 64 GPUs, 16 too many" in mega
    assert "requested" not in mega


@pytest.mark.parametrize(
    ("name", "mark", "outline", "held"),
    [
        ("GPUS-PER-GPU-FAMILY NVIDIA_H100", 72 / 96, 24 / 96, 80 / 96),
        ("TPU-PODSLICE-V4", 192 / 256, 64 / 256, 128 / 256),
    ],
)
def test_what_is_requested_is_outlined_from_the_limit_on(
    spoiled: Report, name: str, mark: float, outline: float, held: float
) -> None:
    (bar,) = (part for part in html_report(spoiled).split("<li") if f'class="name">{name} ' in part and "<u " in part)

    assert f'<b style="left:{mark:.2%}"></b>' in bar
    assert f'<u style="left:{mark:.2%};width:{outline:.2%}"' in bar
    assert f'<i style="width:{held:.2%}"' in bar


@pytest.mark.parametrize("writer", [html_report, markdown_report, partial(render, to="text")])
def test_every_format_for_people_shows_what_is_requested(
    writer: Callable[[Report], str], spoiled: Report, clean: Report
) -> None:
    assert "96 requested" in writer(spoiled)
    assert "256 requested" in writer(spoiled)
    assert "requested<" not in writer(clean)
    assert "requested)" not in writer(clean)


def cards(text: str) -> dict[str, int]:
    """Count the cards of each severity in the sections whose cards the headline counts."""
    sections = re.findall(r'<section id="(?:findings|unchecked)">(.*?)</section>', text, re.DOTALL)
    counts = Counter(re.findall(r'<li class="(\w+)"><p><span class="severity">', "".join(sections)))
    return dict(counts)


@pytest.mark.parametrize("name", ["clean", "spoiled"])
def test_the_headline_counts_the_cards(name: str, request: pytest.FixtureRequest) -> None:
    text = html_report(request.getfixturevalue(name))
    (headline,) = re.findall(r'<p class="verdict \w+">(.*?)</p>', text)
    words = re.findall(r"(\d+) (?:(error|warning|note)s?|things? not (checked))\b", headline)
    counts = {severity or f"un{other}": int(number) for number, severity, other in words}

    assert counts == cards(text)
    assert (name == "clean") == (counts == {})


def test_findings_that_follow_from_another_and_failures_are_counted_as_they_are_shown(
    build_report: Build, build_finding: Build
) -> None:
    cause = build_finding(rule="tpu-topology")
    report = build_report(
        cause, build_finding("of it", follows=cause.place), build_finding("by itself", severity="note")
    )
    text = html_report(dataclasses.replace(report, failures=("stacks/x.yaml cannot be read",)))

    assert '<p class="verdict unchecked">no stack in stacks/ yet: 1 error, 1 note, 1 thing not checked</p>' in text
    assert cards(text) == {"error": 1, "note": 1, "unchecked": 1}


def test_the_page_says_which_commit_was_checked_and_when(build_report: Build) -> None:
    moment = datetime(2026, 11, 22, 14, 5, 59, tzinfo=UTC)
    text = html_report(dataclasses.replace(build_report(), commit="0123456789ab", checked=moment))

    assert "Commit 0123456789ab. Checked on 2026-11-22 at 14:05 UTC. " in text.partition("<nav")[0]
    assert "Commit" not in html_report(build_report())
