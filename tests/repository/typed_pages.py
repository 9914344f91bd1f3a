"""Commands of the pages, and how they are typed in a clone."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from markdown_it import MarkdownIt

from docs.reference.write import FOLDER
from docs.reference.write import pages as reference
from tests.support.places import ROOT

NOT_TYPED: Final = {
    "a Google Cloud project", "a cluster", "the network", "the Pulumi CLI", "a program of your own",
    "the samples' stacks",
}  # fmt: skip


ENGINE: Final = "the Pulumi CLI and its gcp plugin"


NEEDS: Final = {*NOT_TYPED, ENGINE}


LANGUAGES: Final = {"sh", "console", "yaml", "python", "typescript", "mermaid", "text"}


GENERATED: Final = frozenset(reference())


PAGES: Final = {
    str(path.relative_to(ROOT)): path
    for folder in (ROOT, ROOT / "docs", FOLDER, ROOT / "docs" / "development")
    for path in sorted(folder.glob("*.md"))
    if path.name not in {"CHANGELOG.md", *GENERATED}
    and path.suffixes != [".ja", ".md"]  # a translation has the same blocks
}


class Block(NamedTuple):
    """A fence of a page, or commands within a line (``inline``), with what its section needs."""

    line: int
    language: str
    text: str
    needs: frozenset[str]


def blocks(text: str) -> Iterator[Block]:
    """Yield the fences of a page and the commands of this project within its lines, in their order."""
    page: frozenset[str] = frozenset()
    section = page
    sections = 0
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        line = token.map[0] + 1 if token.map else 0
        if token.type == "heading_open" and token.tag != "h1":
            section, sections = page, sections + 1
        elif token.type == "fence":
            yield Block(line, token.info, token.content, section)
        elif token.type == "inline" and (says := re.fullmatch(r"\*Needs: (.+)\.\*", token.content, re.DOTALL)):
            section = page | {" ".join(need.split()) for need in says[1].split(";")}
            page = section if not sections else page
        for child in token.children or ():
            if child.type == "code_inline" and child.content.startswith("training-platform "):
                yield Block(line, "inline", " ".join(child.content.split()), section)


BLOCKS: Final = {name: list(blocks(path.read_text(encoding="utf-8"))) for name, path in PAGES.items()}


def joined(text: str) -> str:
    """Return commands with those that go on in a second line in one."""
    return re.sub(r"\\\n *", "", text)


def script(typed: list[Block]) -> str:
    """Return blocks as one script of bash, which prints a mark before and after each command with output."""
    with_output = f"echo '{MARK}'\n{{ %s\n}} || [ $? = 1 ]\necho '{MARK}'"  # 1: findings
    lines = ["set -eo pipefail", "trap 'kill $(jobs -p) 2> /dev/null || true' EXIT"]
    for block in typed:
        if block.language == "sh":
            lines.append(
                re.sub(r"^make test\b", "make --dry-run test", block.text, flags=re.MULTILINE)
            )  # this is one of them
        else:
            lines += [with_output % command for command in re.findall(r"^\$ (.+)$", joined(block.text), re.MULTILINE)]
    return "\n".join(lines)


MARK: Final = "------ of a page ------"


def type_page(name: str, root: Path, *, needs: frozenset[str] = frozenset(), timeout: int = 600) -> str:
    """Type the blocks of a page whose needs are met, and return their output.

    Every command has to succeed, and to print what the page shows.
    """
    typed = [block for block in BLOCKS[name] if block.language in {"sh", "console"} and block.needs <= needs]
    shown = [
        output
        for block in typed
        if block.language == "console"
        for output in re.split(r"^\$ .+\n", joined(block.text), flags=re.MULTILINE)[1:]
    ]
    env = {**os.environ, "PATH": f"{root / '.venv' / 'bin'}:{os.environ['PATH']}", "COLUMNS": "100"}

    done = subprocess.run(
        ["bash", "-c", script(typed)], cwd=root, env=env, check=False, timeout=timeout,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip

    assert done.returncode == 0, done.stdout
    printed = done.stdout.split(f"{MARK}\n")[1::2]
    assert len(printed) == len(shown)
    for expected, output in zip(shown, printed, strict=True):
        assert matches(expected, output), f"{name} shows\n{expected}\nand the command prints\n{output}"
    return done.stdout


def matches(expected: str, output: str) -> bool:
    """Whether a page shows an output, but for lines left out (``...``), times, names of runs and spaces in columns."""
    pattern = "".join(
        r"(?:.*\n)*?" if line.strip() == "..." else re.escape(_shown(line)) + r"\n" for line in expected.splitlines()
    )
    return re.fullmatch(pattern, "".join(f"{_shown(line)}\n" for line in output.splitlines())) is not None


def _shown(line: str) -> str:
    line = re.sub(r"\b(finetune|pretrain)-\w{5}\b", "RUN", line)
    line = re.sub(r"\d{4}-\d\d-\d\dT[\d:]+Z|\b\d+(\.\d+)? s\b|\b\d+m\b", "TIME", line)
    return re.sub(" +", " ", line).rstrip()  # columns


START: Final = "docs/start.md"  # which test_start_page.py types, to see what it leaves
