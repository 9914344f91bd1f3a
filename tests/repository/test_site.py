"""The site of docs/ builds offline, shows every page in its tree, and loads nothing from other hosts."""

from __future__ import annotations

import ast
import re
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


def test_every_page_is_built_and_is_in_the_tree_of_every_page(site: Path) -> None:
    named = {page for pages in NAVIGATION.values() for page in pages}
    home = (site / "index.html").read_text(encoding="utf-8")
    tree = home.partition('class="sidebar-tree"')[2].partition("</div>")[0]

    assert [path for path in SOURCES if not (site / f"{path}.html").is_file()] == []
    assert set(re.findall(r'href="([^"#]+)\.html"', tree)) >= named
    assert re.findall(r'class="caption-text">([^<]+)', tree) == list(NAVIGATION)
    assert {str(path) for path in SOURCES if path.parent.name not in {"decisions", "rules"}} == {*named, "index"}


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
