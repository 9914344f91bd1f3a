"""The Japanese pages keep step with the English ones: structure, commands, links and figures."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.places import ROOT

PAIRS = {"README.md": "README.ja.md", "docs/start.md": "docs/start.ja.md"}
_BLOCK = re.compile(r"^ *```.*?^ *```", re.DOTALL | re.MULTILINE)


class Skeleton(NamedTuple):
    """What a translation has to have alike: a link to a page that is translated is one to either."""

    blocks: list[str]
    outline: list[str]
    code: Counter[str]
    links: Counter[str]
    figures: Counter[str]


def skeleton(text: str) -> Skeleton:
    prose = _BLOCK.sub("", text)
    words = re.sub(r"\]\([^)]*\)|`[^`]*`", "", prose)
    return Skeleton(
        blocks=_BLOCK.findall(text),
        outline=re.findall(r"^(#+|\d+\.|\|(?= ))", prose, re.MULTILINE),
        code=Counter(" ".join(each.split()) for each in re.findall(r"`([^`]+)`", prose)),
        links=Counter(target.replace(".ja.md", ".md") for target in re.findall(r"\]\(([^)]+)\)", prose)),
        figures=Counter(re.findall(r"(?<![\w.])\d+\.\d+(?![\w.])", words)),
    )


@pytest.mark.parametrize(("english", "japanese"), PAIRS.items())
def test_a_translation_keeps_step(english: str, japanese: str) -> None:
    assert skeleton((ROOT / japanese).read_text("utf-8")) == skeleton((ROOT / english).read_text("utf-8"))


@pytest.mark.parametrize(
    ("part", "old", "new"),
    [
        ("blocks", "make test ", "make tests "),
        ("outline", "\n## ", "\n### "),
        ("code", "`--fast`", "`--fats`"),
        ("links", "(docs/quota.md)", "(docs/pools.md)"),
        ("figures", "3.11", "3.12"),
    ],
)
def test_a_difference_is_found(part: str, old: str, new: str) -> None:
    text = (ROOT / "README.ja.md").read_text("utf-8")
    assert old in text

    same, changed = skeleton(text), skeleton(text.replace(old, new, 1))

    assert [name for name in Skeleton._fields if getattr(same, name) != getattr(changed, name)] == [part]


def test_each_page_links_to_the_other_language() -> None:
    for english, japanese in PAIRS.items():
        name = Path(japanese).name
        assert f"]({name})" in (ROOT / english).read_text("utf-8").splitlines()[2]
