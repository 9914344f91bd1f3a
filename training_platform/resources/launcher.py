"""The launcher, which is the program ``launch.py`` that starts the containers of jobs and servers, and its input."""

from __future__ import annotations

from functools import cache
from pathlib import Path

PLAN_VARIABLE = "TRAINING_LAUNCH"
"""The environment variable that contains the launcher's instructions as JSON."""


@cache
def launcher() -> str:
    """Return the text of the program. It needs only the standard library of Python 3.8 or newer."""
    return Path(__file__).with_name("launch.py").read_text(encoding="utf-8")
