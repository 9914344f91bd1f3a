"""Commands of the pages are typed in the order of their page, in a new clone, and print what the page shows.

A fence ``sh`` holds commands. A fence ``console`` holds commands after ``$``, each with its output, in which a line
``...`` is for any lines. A paragraph ``*Needs: ...*`` holds for the rest of its section, and above the first section
for the whole page; NEEDS lists its phrases.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import click
import pytest
from click.testing import CliRunner
from markdown_it import MarkdownIt

from docs.reference.write import FOLDER
from docs.reference.write import pages as reference
from tests.places import ROOT
from tests.repository.clones import clone
from training_platform.cli.main import app

NOT_TYPED: Final = {
    "a Google Cloud project", "a cluster", "the network", "the Pulumi CLI", "a program of your own",
    "the samples' stacks",
}  # fmt: skip
ENGINE: Final = "the Pulumi CLI and its gcp plugin"
NEEDS: Final = {*NOT_TYPED, ENGINE}
LANGUAGES: Final = {"sh", "console", "yaml", "python", "typescript", "mermaid", "text"}
PAGES: Final = {
    str(path.relative_to(ROOT)): path
    for folder in (ROOT, ROOT / "docs", FOLDER, ROOT / "docs" / "development")
    for path in sorted(folder.glob("*.md"))
    if path.name not in {"CHANGELOG.md", *reference()}
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


def works_alone(line: str) -> bool:
    """Whether a line is a whole command of this project that needs nothing beside the clone, by its help."""
    line = line.removeprefix("$ ")
    command: click.Command = app
    names = shlex.split(line, comments=True)[1:] if line.startswith("training-platform ") else []
    while isinstance(command, click.Group) and names and names[0] in command.commands:
        command = command.commands[names.pop(0)]
    is_whole = bool(names) or not any(parameter.required for parameter in command.params)
    return (
        not isinstance(command, click.Group)
        and is_whole
        and not re.search("Needs |until interrupted", command.help or "")
    )


@pytest.mark.parametrize("name", PAGES)
def test_a_fence_names_its_language_and_an_exception_says_in_a_word_what_is_missing(name: str) -> None:
    for block in BLOCKS[name]:
        assert block.language in {*LANGUAGES, "inline"}, f"{name}:{block.line}"
        assert block.needs <= NEEDS, f"{name}:{block.line}"
        if block.language in {"sh", "console"} and block.needs & NOT_TYPED:
            lines = [line for line in joined(block.text).splitlines() if not line.startswith("#")]
            assert not all(map(works_alone, lines)), f"{name}:{block.line}: these commands need nothing"


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


@pytest.fixture(scope="module")
def new_clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a clone that tests share; ``fresh`` cleans it."""
    return clone(tmp_path_factory.mktemp("pages") / "clone")


@pytest.fixture
def fresh(new_clone: Path) -> Path:
    """Return the clone as it was at first."""
    commands = (
        "git clean -qffdx --exclude=.venv",
        "git switch -q -f -C main origin/main",
        "git for-each-ref --format='delete %(refname)' refs/heads | grep -v /main$ | git update-ref --stdin",
    )
    for command in commands:
        subprocess.run(["bash", "-c", command], cwd=new_clone, check=True)
    return new_clone


START: Final = "docs/start.md"  # which test_start_page.py types, to see what it leaves


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, blocks in BLOCKS.items()
        if name != START and any(b.language in {"sh", "console"} and not b.needs for b in blocks)
    ],
)
@pytest.mark.timeout(660)
def test_the_commands_of_a_page_work_in_a_new_clone_in_its_order(name: str, fresh: Path) -> None:
    type_page(name, fresh)


PLACEHOLDER: Final = re.compile(r"[A-Z]{2,}|[<>]|\.\.\.")
INLINE: Final = sorted(
    {
        block.text
        for blocks in BLOCKS.values()
        for block in blocks
        if block.language == "inline" and works_alone(block.text) and not PLACEHOLDER.search(block.text)
    }
)


@pytest.mark.parametrize("line", INLINE)
def test_a_command_within_a_sentence_works_in_a_new_clone(
    line: str, fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(fresh)

    result = CliRunner().invoke(app, shlex.split(line)[1:])

    assert result.exit_code in {0, 1}, result.output  # 1: findings


def commands_of(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    """Yield every command of this project that is not a group, by its whole name."""
    if not isinstance(command, click.Group):
        yield name, command
        return
    for child, below in command.commands.items():
        yield from commands_of(below, f"{name} {child}")


COMMANDS: Final = dict(commands_of(app, "training-platform"))


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_says_in_its_help_what_it_is_for_and_its_example_works(
    name: str, fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(fresh)
    command = COMMANDS[name]
    assert (command.help or "").partition("\n")[0].endswith(".")
    assert all(parameter.help for parameter in command.params if isinstance(parameter, click.Option))
    (line,) = re.findall(r"^  (.+)$", command.epilog or "", re.MULTILINE)
    words = shlex.split(line.rpartition("| ")[2].partition(" >")[0])
    path = len(name.split())
    assert " ".join(words[:path]) in {name, name.replace("job init", "init job")}

    if works_alone(line):
        assert CliRunner().invoke(app, words[1:]).exit_code in {0, 1}
    else:
        assert command.make_context(name, words[path:]).params


UNDER_THE_ENGINE: Final = [name for name, blocks in BLOCKS.items() if any(block.needs == {ENGINE} for block in blocks)]


@pytest.mark.engine
@pytest.mark.parametrize("name", UNDER_THE_ENGINE)
@pytest.mark.timeout(1200)
def test_the_commands_of_a_page_work_under_the_real_engine(name: str, fresh: Path) -> None:
    type_page(name, fresh, needs=frozenset({ENGINE}), timeout=1200)
