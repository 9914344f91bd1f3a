"""Manifests and bodies as text: the same value is always the same text, and every reader reads the same value."""

from __future__ import annotations

import json
import re
from typing import Any

import yaml

_PLAIN = re.compile(r"[A-Za-z]([A-Za-z0-9_./:-]*[A-Za-z0-9_./-])?")
_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})


def yaml_text(value: Any) -> str:
    """Return a value as YAML, keys in their order, never with aliases.

    Texts that one reader of YAML or another takes for a number, a truth value or a date are quoted: kubectl reads
    ``1e3`` as a number and ``y`` as true, and PyYAML writes both plain.
    """
    return str(yaml.dump(value, Dumper=_Dumper, sort_keys=False, width=float("inf")))


def json_text(value: Any) -> str:
    """Return a value as JSON, keys in their order."""
    return json.dumps(value, indent=2) + "\n"


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 # PyYAML's signature
        return True


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    plain = _PLAIN.fullmatch(value) is not None and value.lower() not in _WORDS
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=None if plain else '"')


_Dumper.add_representer(str, _text)
