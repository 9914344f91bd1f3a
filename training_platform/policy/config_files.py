"""The pack's config for each environment, ``policies/config/*.json``, checked before an engine takes it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from training_platform.config.reading.source import UnreadableError, read_source
from training_platform.policy.settings import wrong_settings

FOLDER = "policies/config"


def wrong_configs(root: Path) -> Iterator[str]:
    """Yield a sentence for everything in a repository's configs that the pack does not take, with file and line."""
    for path in sorted((root / FOLDER).glob("*.json")):
        file = f"{FOLDER}/{path.name}"
        try:
            yield from _wrong(path, file)
        except UnreadableError as error:
            yield str(error)


def _wrong(path: Path, file: str) -> Iterator[str]:
    source = read_source(path, file)  # of JSON a reader of YAML says where each key stands
    try:
        config = json.loads(path.read_bytes())
    except ValueError as error:
        place = f":{error.lineno}:{error.colno}" if isinstance(error, json.JSONDecodeError) else ""
        raise UnreadableError(f"{file}{place}: is not JSON: {error}.") from error
    yield from (each.one_line for each in source.findings)
    if not isinstance(config, dict):
        raise UnreadableError(f"{file}:1:1: is not a mapping of policies to levels or settings.")
    for wrong in wrong_settings(config, path.parents[1]):
        finding = source.finding(
            "policy-config", wrong.path, wrong.message, allowed=wrong.allowed, nearest=wrong.nearest
        )
        yield finding.one_line
