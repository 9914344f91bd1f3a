"""Reads and writes the state files of a server. Writes are atomic, and any unreadable file raises ``BrokenFile``."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from training_platform.config.reading.finding import UserError


class BrokenFile(UserError):
    """Raised for a state file that cannot be read. The message is one sentence."""

    def __init__(self, path: Path, reason: object) -> None:
        super().__init__(f"{path} is broken: {reason}. Delete the sandbox's folder to start again.")


def read_json(path: Path) -> Any:
    """Return the parsed JSON of a file. Raises BrokenFile."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise BrokenFile(path, error) from error


def write_whole(path: Path, text: str) -> None:
    """Write a file atomically: a killed process leaves either the old or the new content. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, partial = tempfile.mkstemp(dir=path.parent, prefix=path.name)  # mode 0600
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            out.write(text)
        Path(partial).replace(path)
    except OSError:
        Path(partial).unlink(missing_ok=True)
        raise
