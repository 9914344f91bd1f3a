"""The site of docs/, as Sphinx wants it: `make site`. Pages stay plain Markdown, which GitHub shows as well.

Neither the build nor a reader fetches anything: diagrams are drawn here, and the theme loads no fonts or scripts of
others. Decision 18 has the reasons.
"""

from __future__ import annotations

import re
from typing import Any

import mermaidx
from docutils import nodes
from sphinx.addnodes import index
from sphinx.application import Sphinx
from sphinx.util.logging import getLogger

project = "training-platform"
root_doc = "index"
extensions = ["myst_parser"]
exclude_patterns = ["**/*.py", "site"]
myst_heading_anchors = 4
# A link with a scheme leads out of the site; any other one has to lead to a page, and to a heading that the page has.
myst_url_schemes = ["http", "https", "mailto"]

html_theme = "furo"
html_title = project
html_static_path = ["site.css"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_use_index = False
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"

NAVIGATION = {
    "Start": ["tutorial", "start", "sandbox", "verify"],
    "Define the platform": ["pools", "capacity", "data", "existing", "tenancy", "security"],
    "Share it between teams": ["queues", "quota", "simulate"],
    "Run work": ["jobs", "experiment", "vertex", "notebooks", "serving"],
    "Check changes": ["changes", "lifecycle", "reports", "pipelines", "esc", "policies"],
    "Operate": ["reference/alerts", "upgrade", "recover", "adopt"],
    "Extend": ["own-resources", "components"],
    "Look up": [
        "reference/environment",
        "reference/stack-file",
        "reference/job-files",
        "reference/job-file",
        "reference/commands",
        "reference/rules",
        "reference/rights",
        "reference/types",
        "reference/ci",
        "reference/quota-counts",
        "reference/traces",
        "reference/adopted",
        "reference/glossary",
    ],
    "Develop it": [
        "development/architecture",
        "development/tests",
        "development/release",
        "development/words",
        "development/status",
        "development/documents",
        "development/performance",
        "development/fidelity",
        "development/simulation",
        "development/outages",
        "development/containers",
        "development/surprises",
        "development/attacks",
        "development/local-cloud",
    ],
    "日本語": ["start.ja"],
}
"""The tree beside each page, by task. A page that is missing here, or is here twice, fails the build."""
SUBJECTS = {
    "capacity": ["spot", "flex-start", "dws", "dynamic workload scheduler", "queued provisioning", "reservation"],
    "changes": ["replace a pool", "deletion protection"],
    "data": ["filestore", "bucket", "lustre", "hyperdisk", "price"],
    "existing": ["shared vpc"],
    "jobs": ["submit a job", "why does my job wait"],
    "lifecycle": ["rename a team", "rename a stack", "retire a team", "remove a team"],
    "pools": ["node pool", "gpudirect", "image"],
    "queues": ["borrow", "cohort", "preemption", "priority"],
    "quota": ["limit", "quota"],
    "recover": ["locked stack", "already exists"],
    "reference/environment": ["example", "sample"],
    "reference/job-files": ["sweep", "checkpoint"],
    "start": ["install", "deploy", "add a team"],
}
"""What a search shows a page first for: entries of Sphinx's index, which no reader sees on the page."""
BELOW = {"development/architecture": "decisions/*", "reference/rules": "rules/*"}
"""Pages that are shown below another one."""


def setup(app: Sphinx) -> None:
    """Hang our functions on the steps of a build."""
    app.connect("source-read", add_navigation)
    app.connect("doctree-read", draw)
    app.connect("doctree-read", add_subjects)
    app.connect("doctree-read", set_aside)
    app.connect("html-page-context", set_language)


def add_navigation(app: Sphinx, page: str, source: list[str]) -> None:  # noqa: ARG001 # Sphinx passes it
    """Add the tree to the pages that hold it, in Sphinx's words, which the files themselves do without."""
    if page == root_doc:
        for caption, pages in NAVIGATION.items():
            source[0] += "\n".join(["\n\n```{toctree}", ":hidden:", f":caption: {caption}", *pages, "```\n"])
    if page in BELOW:
        source[0] += "\n".join(["\n\n```{toctree}", ":hidden:", ":glob:", BELOW[page], "```\n"])


DIAGRAMS: dict[str, Any] = {
    "flowchart": {"wrappingWidth": 200, "nodeSpacing": 20, "rankSpacing": 30, "padding": 8},
    "fontFamily": "sans-serif",
    "themeVariables": {"fontSize": "14px"},
}
"""Narrow, since a page's column is 46 letters wide and a telephone's screen half of it."""


def draw(app: Sphinx, document: nodes.document) -> None:  # noqa: ARG001 # Sphinx passes it
    """Replace blocks of Mermaid by pictures in their natural size; site.css darkens them for readers in the dark."""
    blocks = [block for block in document.findall(nodes.literal_block) if block.get("language") == "mermaid"]
    for number, block in enumerate(blocks, start=1):
        try:
            picture = mermaidx.render(block.astext(), theme="neutral", config=DIAGRAMS).svg()
        except RuntimeError as error:
            getLogger(__name__).warning("cannot draw this diagram: %s", error, location=block)
            continue
        width = re.search(r'viewBox="\S+ \S+ (\S+)', picture)
        picture = picture.replace('width="100%"', f'width="{width and width[1]}"', 1)
        picture = picture.replace("my-svg", f"diagram-{number}")  # Mermaid's id, which its style sheet names
        block.replace_self(nodes.raw("", f'<div class="diagram" tabindex="0">{picture}</div>', format="html"))


def add_subjects(app: Sphinx, document: nodes.document) -> None:
    """Enter a page into Sphinx's index under its subjects; the entry leads to the page's beginning."""
    subjects = SUBJECTS.get(app.env.docname, [])
    document.append(index(entries=[("single", subject, "", "main", None) for subject in subjects]))


def set_aside(app: Sphinx, document: nodes.document) -> None:  # noqa: ARG001 # Sphinx passes it
    """Keep Japanese pages out of the search, which splits and stems English words."""
    if app.env.docname.endswith(".ja"):
        app.env.metadata[app.env.docname]["nosearch"] = True


def set_language(
    app: Sphinx,  # noqa: ARG001 # Sphinx passes it
    page: str,
    template: str,  # noqa: ARG001
    context: dict[str, Any],
    document: nodes.document | None,  # noqa: ARG001
) -> None:
    """Say which language a page is in."""
    if page.endswith(".ja"):
        context["language"] = "ja"
