"""A section as the text of a stack file: short mappings on one line, like files that people write."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from training_platform.config.first_files import SCHEMA
from training_platform.config.model.stack import PROJECT

_INLINE = ("subnet", "boot_disk")


class _Line(dict[str, Any]):
    """A mapping that stands on one line."""


class _Dumper(yaml.SafeDumper):
    """Writes lists below their key, two deeper."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002 # PyYAML asks for it
        return super().increase_indent(flow, False)


def _line(dumper: _Dumper, value: _Line) -> yaml.Node:
    return dumper.represent_mapping("tag:yaml.org,2002:map", value, flow_style=True)


_Dumper.add_representer(_Line, _line)


def stack_text(kind: str, section: Mapping[str, Any], notes: str = "") -> str:
    """Return the file of a stack; ``kind`` is ``environment`` or ``team``, ``notes`` a comment's text."""
    content = {"config": {f"{PROJECT}:{kind}": _folded(section)}}
    text = yaml.dump(content, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)
    said = "".join(f"# {line}\n" for line in notes.splitlines())
    return f"{SCHEMA}{said}{text}"


def _folded(value: Any, key: str = "") -> Any:
    if isinstance(value, Mapping):
        inner = {name: _folded(each, name) for name, each in value.items()}
        return _Line(inner) if key in _INLINE else inner
    return [_folded(each) for each in value] if isinstance(value, list) else value
