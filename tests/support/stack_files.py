"""Stack files whose sections tests write as data."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from training_platform.config.model.stack import PROJECT, parse_stack
from training_platform.config.reading.source import parse_source
from training_platform.config.workspace import Workspace, cross_check


def text_of(sections: Mapping[str, Any]) -> str:
    """Return a stack file's text; its sections by their kind, ``environment`` or ``team``."""
    config = {f"{PROJECT}:{kind}": section for kind, section in sections.items()}
    return str(yaml.dump({"config": config}, Dumper=yaml.CSafeDumper))  # in an eighth of the time of Python's own


def workspace_of(files: Mapping[str, Mapping[str, Any]], root: Path = Path()) -> Workspace:
    """Return the stacks of a repository, whose files are given by name and then as ``text_of`` takes them."""
    sources = {name: parse_source(text_of(file), f"stacks/Pulumi.{name}.yaml") for name, file in files.items()}
    return cross_check(Workspace(root, {name: parse_stack(name, source) for name, source in sources.items()}))
