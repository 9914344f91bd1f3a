"""The site of docs/ builds offline, shows every page in its tree, and loads nothing from other hosts."""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.places import ROOT

pytestmark = pytest.mark.timeout(300)  # the build takes 10 s of an idle core
DOCS = ROOT / "docs"
NAVIGATION: dict[str, list[str]] = next(
    ast.literal_eval(
        statement.value
    )  # read and not imported: the library that draws would end the tests with its leaks
    for statement in ast.parse((DOCS / "site" / "conf.py").read_text(encoding="utf-8")).body
    if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "NAVIGATION"
)
SOURCES = sorted(path.relative_to(DOCS).with_suffix("") for path in DOCS.rglob("*.md"))


def build(docs: Path, site: Path) -> subprocess.CompletedProcess[str]:
    """Build as `make site` does, in a process that can open no connection: it knows no address but its own."""
    code = (
        "import socket, sys\n"
        "def refuse(*arguments, **options): raise OSError('a build reached for the network')\n"
        "socket.socket.connect = socket.getaddrinfo = refuse\n"
        "from sphinx.cmd.build import main\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    options = ["-q", "-W", "--keep-going", "-c", str(docs / "site"), "-d", str(site.parent / "doctrees")]
    command = [sys.executable, "-c", code, *options, str(docs), str(site)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built") / "site"
    built = build(DOCS, folder)
    assert built.returncode == 0, built.stderr
    return folder


def test_the_makefile_builds_it_as_the_tests_do() -> None:
    assert "sphinx-build -q -W --keep-going -c docs/site " in (ROOT / "Makefile").read_text(encoding="utf-8")


def test_every_page_is_built_and_is_in_the_tree_of_every_page(site: Path) -> None:
    named = {page for pages in NAVIGATION.values() for page in pages}
    home = (site / "index.html").read_text(encoding="utf-8")
    tree = home.partition('class="sidebar-tree"')[2].partition("</div>")[0]

    assert [path for path in SOURCES if not (site / f"{path}.html").is_file()] == []
    assert set(re.findall(r'href="([^"#]+)\.html"', tree)) >= named
    assert re.findall(r'class="caption-text">([^<]+)', tree) == list(NAVIGATION)
    assert {str(path) for path in SOURCES if path.parent.name not in {"decisions", "rules"}} == {*named, "index"}


def test_a_page_that_is_nowhere_and_what_it_gets_wrong_fail_the_build(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    (docs / "decisions").mkdir(parents=True)
    shutil.copytree(DOCS / "site", docs / "site")
    (docs / "index.md").write_text("# Home\n", encoding="utf-8")
    (docs / "pools.md").write_text("# Pools\n\n```mermaid\nflowchart LR\n  a -->\n```\n", encoding="utf-8")
    (docs / "dead.md").write_text("# Dead\n\n[gone](gone.md) and [lost](pools.md#lost)\n", encoding="utf-8")

    built = build(docs, tmp_path / "site")

    assert built.returncode == 1
    for message in (
        "dead.md: WARNING: document isn't included",
        "'gone.md'",
        "'lost'",
        "pools.md:3: WARNING: cannot draw",
    ):
        assert message in built.stderr


# What a browser loads without being asked: not links to click on, nor the names of SVG and the like.
LOADED = re.compile(
    r"""<(?:script|link|img|iframe|source)\b[^>]*\b(?:src|href|srcset)=["']((?:\w+:)?//[^"']+)"""
    r"""|(?:url\(|@import|fetch\(|import\()\s*["'`]?((?:https?:)?//[^"'`)\s]+)"""
)


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    files = [path for path in site.rglob("*") if path.suffix in {".html", ".css", ".js", ".svg"}]

    assert {path.suffix for path in files} >= {".html", ".css", ".js"}
    loaded = {str(path.relative_to(site)): LOADED.findall(path.read_text(encoding="utf-8")) for path in files}
    assert {name: addresses for name, addresses in loaded.items() if addresses} == {}


def diagrams(page: Path) -> list[str]:
    return re.findall(r"^```mermaid\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def test_every_diagram_of_a_page_is_drawn(site: Path) -> None:
    counts = {path: len(diagrams(DOCS / f"{path}.md")) for path in SOURCES}
    assert any(counts.values())

    for path, count in counts.items():
        if not count:
            continue
        built = (site / f"{path}.html").read_text(encoding="utf-8")
        assert built.count('<div class="diagram"') == len(re.findall(r'<svg id="diagram-\d+"', built)) == count


def test_japanese_is_apart_from_english(site: Path) -> None:
    *english, japanese = NAVIGATION.values()
    index = (site / "searchindex.js").read_text(encoding="utf-8")

    assert all(page.endswith(".ja") for page in japanese)
    assert not any(page.endswith(".ja") for pages in english for page in pages)
    for page in japanese:
        assert '<html class="no-js" lang="ja"' in (site / f"{page}.html").read_text(encoding="utf-8")
    words = index.partition('"terms":')[2].partition('"titles":')[0]
    assert "quota" in words
    assert re.findall("[ぁ-んァ-ヶ]", words) == []
    assert '<html class="no-js" lang="en"' in (site / "start.html").read_text(encoding="utf-8")


GUIDES = {
    "spot": "capacity",
    "DWS": "capacity",
    "rename a team": "lifecycle",
    "install": "start",
    "shared VPC": "existing",
}


@pytest.mark.parametrize(("words", "guide"), GUIDES.items())
def test_the_index_of_the_search_leads_to_one_guide(site: Path, words: str, guide: str) -> None:
    text = (site / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(text[text.index("(") + 1 : text.rindex(")")])

    main = [index["docnames"][page] for page, _, is_main in index["indexentries"][words.lower()] if is_main]

    assert main == [guide]  # Sphinx counts such an entry 100, a word of a title 15
