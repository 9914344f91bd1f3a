"""A stack file as the sandbox runs it: the same lines, without secrets, credentials and endpoints of a real cloud.

The text is edited in place, so that findings name the lines of the file that the person wrote.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import yaml

from training_platform.config.model.stack import PROJECT
from training_platform.sandbox.run.problems import CannotRun

SECRET: Final = "sandbox"  # noqa: S105 # stands for every secret: what encrypted them is not asked for
ENVIRONMENT: Final = f"{PROJECT}:environment"
_ENGINES_OWN: Final = ("encryptionsalt", "encryptedkey", "secretsprovider")
_REAL_CLOUD: Final = re.compile(
    r"gcp:(credentials|accessToken|externalCredentials|impersonate\w+|universeDomain|pollInterval|batching"
    r"|requestTimeout|\w+CustomEndpoint)\Z"
)


class Edit(NamedTuple):
    """A part of the text, and what stands there instead."""

    start: int
    end: int
    text: str


def sandboxed(text: str, *, salt: str | None = None, lift_protection: bool = False) -> str:
    """Return a stack file for the sandbox; ``salt`` is the ``encryptionsalt`` that its state was made with.

    ``lift_protection`` turns an environment's ``deletion_protection`` off. Raises CannotRun for a file that is not
    YAML, or is written so that it cannot be edited.
    """
    try:
        root = yaml.compose(text, Loader=yaml.CSafeLoader)
    except yaml.YAMLError as error:
        raise CannotRun(f"a stack file is not YAML: {error}") from error
    edits = list(_edits(text, root, lift_protection)) if isinstance(root, yaml.MappingNode) else []
    for edit in sorted(edits, reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text if salt is None else f"{text.rstrip()}\nencryptionsalt: {salt}\n"


def salt_of(text: str) -> str | None:
    """Return the ``encryptionsalt`` that the engine wrote into a stack file."""
    found = re.search(r"^encryptionsalt: (\S+)$", text, re.MULTILINE)
    return found[1] if found else None


def _edits(text: str, root: yaml.MappingNode, lift: bool) -> Iterator[Edit]:
    for key, value in root.value:
        if key.value in _ENGINES_OWN:
            yield _comment(text, root, key, value)
        elif key.value == "config" and isinstance(value, yaml.MappingNode):
            yield from _config(text, value, lift)


def _config(text: str, config: yaml.MappingNode, lift: bool) -> Iterator[Edit]:
    for key, value in config.value:
        if _REAL_CLOUD.match(key.value):
            yield _comment(text, config, key, value)
            continue
        yield from (Edit(*_extent(text, each), SECRET) for each in _secrets(value))
        if lift and key.value == ENVIRONMENT and isinstance(value, yaml.MappingNode) and value.value:
            yield _unprotected(value)


def _secrets(node: yaml.Node) -> Iterator[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        if [key.value for key, _ in node.value] == ["secure"]:
            yield node
            return
        for _, value in node.value:
            yield from _secrets(value)
    elif isinstance(node, yaml.SequenceNode):
        for each in node.value:
            yield from _secrets(each)


def _unprotected(section: yaml.MappingNode) -> Edit:
    for key, value in section.value:
        if key.value == "deletion_protection":
            return Edit(value.start_mark.index, value.end_mark.index, "false")
    first = section.value[0][0].start_mark
    after = ", " if section.flow_style else "\n" + " " * first.column
    return Edit(first.index, first.index, f"deletion_protection: false{after}")


def _comment(text: str, parent: yaml.MappingNode, key: yaml.Node, value: yaml.Node) -> Edit:
    if parent.flow_style:
        raise CannotRun(
            f"{key.value} stands in a mapping in braces; write one key a line, so that a copy can leave it out."
        )
    start, end = key.start_mark.index, _extent(text, value)[1]
    return Edit(start, end, "\n".join(f"# {line}" for line in text[start:end].split("\n")))


def _extent(text: str, node: Any) -> tuple[int, int]:
    """Return where a value stands; a block ends where the next thing begins, which is not its own end."""
    start, end = node.start_mark.index, node.end_mark.index
    return start, start + len(text[start:end].rstrip())
