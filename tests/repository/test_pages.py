"""Commands of the pages are typed in the order of their page, in a new clone, and print what the page shows.

A fence ``sh`` holds commands. A fence ``console`` holds commands after ``$``, each with its output, in which a line
``...`` is for any lines. A paragraph ``*Needs: ...*`` holds for the rest of its section, and above the first section
for the whole page; NEEDS lists its phrases.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click
import pytest
from click.testing import CliRunner

from tests.repository.clones import clone
from tests.repository.typed_pages import (
    BLOCKS,
    ENGINE,
    LANGUAGES,
    NEEDS,
    NOT_TYPED,
    PAGES,
    START,
    joined,
    type_page,
)
from training_platform.cli.main import app


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
