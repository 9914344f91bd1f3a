"""How long operations of the local cloud take, as a person says it on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NoReturn

from training_platform.sandbox.cloud.state.cloud import REAL_DURATIONS
from training_platform.sandbox.run.problems import CannotRun

REAL: Final = "real"


def parse_durations(given: Sequence[str]) -> dict[str, float]:
    """Return seconds by kind from ``container.clusters=6``, ``*=1``, or ``real``, roughly what Google takes.

    ``real/100`` is a hundredth of that. Later ones win. Raises CannotRun for anything else.
    """
    found: dict[str, float] = {}
    for text in given:
        kind, _, seconds = text.partition("=")
        base, _, part = text.partition("/")
        if base == REAL:
            divisor = _number(part or "1", text) or _refuse(text)
            found |= {each: value / divisor for each, value in REAL_DURATIONS.items()}
        else:
            found[kind] = _number(seconds, text)
    return found


def _number(text: str, given: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1
    return number if number >= 0 else _refuse(given)


def _refuse(given: str) -> NoReturn:
    raise CannotRun(f"--duration {given}: write a kind and seconds, container.clusters=6 or *=1, or real, or real/100.")
