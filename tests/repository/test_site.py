"""The site of docs/ builds offline, shows every page in its tree, and loads nothing from other hosts."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from html.parser import HTMLParser
from pathlib import Path

import mermaidx
import pytest

from docs.site.conf import DIAGRAMS, NAVIGATION
from tests.browser import Page
from tests.places import ROOT

pytestmark = pytest.mark.timeout(300)  # the build takes 10 s of an idle core
DOCS = ROOT / "docs"
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


class Loads(HTMLParser):
    """The addresses that a browser loads for a page without being asked: not those of links to click on."""

    TAKEN = ("src", "srcset", "poster", "data", "background", "xlink:href", "ping", "manifest", "action", "formaction")

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[str] = []
        self.inside = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        self.inside = tag
        for name, value in attrs:
            if name in self.TAKEN or (name == "href" and tag != "a"):
                self.found.append(value or "")
            elif name == "style" or name.startswith("on") or (tag == "meta" and name == "content"):
                self.found += addresses(value or "")

    handle_startendtag = handle_starttag

    def handle_data(self, data: str) -> None:
        if self.inside in {"style", "script"}:
            self.found += addresses(data)


def addresses(code: str) -> Iterator[str]:
    """Yield the addresses of other hosts in a style sheet or script, without those in comments."""
    code = re.sub(r"/\*.*?\*/|^\s*//.*$|\s// .*$", "", code, flags=re.DOTALL | re.MULTILINE)
    yield from re.findall(r"(?:\b(?:https?|wss?|ftp):|(?<=[\"'`(=]))//[^\s\"'`)]+", code)


NAMES = re.compile(r"http://www\.w3\.org/\d+/\w+")  # the names of SVG and the like


def loaded_from_elsewhere(file: Path) -> list[str]:
    text = file.read_text(encoding="utf-8")
    references = Loads(text).found if file.suffix == ".html" else [*addresses(text)]
    return [reference for reference in references if re.match(r"(\w+:)?//", reference) and not NAMES.match(reference)]


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    files = [path for path in site.rglob("*") if path.suffix in {".html", ".css", ".js", ".svg"}]

    assert {path.suffix for path in files} >= {".html", ".css", ".js"}
    references = {str(path.relative_to(site)): loaded_from_elsewhere(path) for path in files}
    assert {name: elsewhere for name, elsewhere in references.items() if elsewhere} == {}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.html", '<script src="https://cdn.example.com/x.js"></script>'),
        ("a.html", '<link rel="preconnect" href="//fonts.example.com">'),
        ("a.html", '<img srcset="https://example.com/x.png 2x">'),
        ("a.html", "<p style=\"background: url('https://example.com/x.png')\">"),
        ("a.html", '<style>@import "https://example.com/x.css";</style>'),
        ("a.html", "<script>import('https://cdn.example.com/mermaid.mjs')</script>"),
        ("a.html", '<meta http-equiv="refresh" content="0; url=https://example.com">'),
        ("a.css", "@font-face { src: url(https://fonts.example.com/x.woff2) }"),
        ("a.css", "a { background: url(//example.com/x.png) }"),
        ("a.js", 'fetch("https://example.com/x")'),
        ("a.js", "const socket = new WebSocket(`wss://example.com`)"),
        ("a.js", "element.src='//example.com/x.js'"),
    ],
)
def test_what_would_be_loaded_is_found(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")

    assert len(loaded_from_elsewhere(tmp_path / name)) == 1


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.html", '<a href="https://example.com">elsewhere</a><script src="_static/x.js"></script>'),
        ("a.css", "/* https://example.com */ a { background: url(x.png) }"),
        ("a.js", "// see https://example.com\nfetch('x.html')"),
        ("a.js", 'document.createElementNS("http://www.w3.org/2000/svg", "svg")'),
    ],
)
def test_links_and_comments_load_nothing(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")

    assert loaded_from_elsewhere(tmp_path / name) == []


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


def test_the_picture_of_the_readme_can_be_drawn() -> None:
    (source,) = diagrams(ROOT / "README.md")  # the Japanese one has the same: test_docs.py

    assert "<svg" in mermaidx.render(source, config=DIAGRAMS).svg()


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


@pytest.mark.browser
@pytest.mark.parametrize("width", [390, 1280])
def test_every_page_fits_a_screen_and_asks_nobody_for_anything(site: Path, page: Page, width: int) -> None:
    wide = {}
    for path in SOURCES:
        page.open((site / f"{path}.html").as_uri(), width=width)
        requests = [request for request in page.requests() if not request.startswith(("file:", "data:"))]
        assert requests == [], path
        if page.run("document.documentElement.scrollWidth") > width:
            wide[path] = page.run("document.documentElement.scrollWidth")
    assert wide == {}


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


def found_by_search(site: Path, page: Page, words: str) -> list[str]:
    page.open(f"{(site / 'search.html').as_uri()}?q={words.replace(' ', '+')}")
    links = "[...document.querySelectorAll('#search-results a')].map((each) => each.getAttribute('href'))"
    waited = f"new Promise((done) => setInterval(() => {{ const f = {links}; if (f.length) done(f) }}, 50))"
    result = page.call("Runtime.evaluate", expression=waited, awaitPromise=True, returnByValue=True)
    return list(result["result"]["value"])


@pytest.mark.browser
def test_the_search_finds_a_rule_by_its_name(site: Path, page: Page) -> None:
    assert any("reference/rules/tpu.html#tpu-topology" in link for link in found_by_search(site, page, "tpu-topology"))


@pytest.mark.browser
@pytest.mark.parametrize(("words", "guide"), GUIDES.items())
def test_the_search_shows_a_guide_first(site: Path, page: Page, words: str, guide: str) -> None:
    first, *_ = found_by_search(site, page, words)

    assert f"{guide}.html" in first


@pytest.mark.browser
@pytest.mark.parametrize(("scheme", "dark"), [("light", False), ("dark", True)])
def test_pages_and_diagrams_follow_the_readers_light_or_dark(site: Path, page: Page, scheme: str, dark: bool) -> None:
    page.open((site / "queues.html").as_uri(), scheme=scheme)
    colour = page.run("getComputedStyle(document.body).backgroundColor")

    assert (sum(map(int, re.findall(r"\d+", colour)[:3])) < 3 * 128) == dark
    assert (page.run("getComputedStyle(document.querySelector('.diagram svg')).filter") != "none") == dark
