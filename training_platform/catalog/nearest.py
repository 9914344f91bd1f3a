"""Finds the valid value that was probably meant."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import SequenceMatcher

_SHORTEST = 3  # length of a prefix that identifies a name
_LONGEST = 300  # longer than any valid name
_ALSO_CALLED = {
    "preemptible": "spot",
    "premium": "BASIC_SSD",
    "standard": "BASIC_HDD",
    "dws": "flex-start",
    "calendar": "reservation",
}
"""Aliases: other names under which people know a value.

Spot VMs succeeded preemptible VMs. Dynamic Workload Scheduler provides flex-start VMs, and its calendar mode is a
reservation. Tiers have aliases (Filestore docs, service tiers).
"""
_NUMBER = re.compile(r"\d+")


def find_nearest(name: str, allowed: Iterable[str]) -> str | None:
    """Return the allowed value that was probably meant by ``name``, or None; letter case is ignored.

    The first of these that exists is returned:

    - if ``name`` is an alias (``dws`` for ``flex-start``): the only value that is the other name, or ends with it
    - the only value that begins with ``name``
    - the most similar value that differs from ``name`` only in its numbers
    - the most similar of the values that begin with ``name``, or of all values if none does
    - a value that is one of the parts of ``name``
    - a value with which ``name`` begins
    """
    by_folded = {value.casefold(): value for value in sorted(allowed)}
    folded = name.strip().casefold()
    if len(folded) > _LONGEST:
        return None
    ours = "-".join(_ALSO_CALLED.get(word, word) for word in folded.split("-")).casefold()
    if ours != folded:
        called = [value for value in by_folded if value == ours or value.endswith(f"-{ours}")]
        if len(called) == 1:
            return by_folded[called[0]]
    beginning = [value for value in by_folded if len(folded) >= _SHORTEST and value.startswith(folded)]
    numbered = [value for value in by_folded if _NUMBER.sub("0", value) == _NUMBER.sub("0", folded)]
    if len(beginning) == 1:
        return by_folded[beginning[0]]
    if numbered and _NUMBER.search(folded):
        return by_folded[min(numbered, key=lambda value: _apart(value, folded))]
    parts = [value for value in by_folded if value in folded.split("-")]  # nvidia-tesla-t4
    begun = [value for value in by_folded if len(value) >= _SHORTEST and folded.startswith(value)]  # production, prod
    match = _likest(folded, beginning or by_folded, 0.0 if beginning else 0.6) or next(iter(parts + begun), None)
    return by_folded[match] if match else None


def _likest(name: str, values: Iterable[str], cutoff: float) -> str | None:
    """Return the value that is most similar to a name, the first in a tie; None if none reaches ``cutoff``."""
    matcher = SequenceMatcher(b=name)
    likest = None
    best = cutoff - 1e-9
    for value in values:
        matcher.set_seq1(value)
        if all(ratio() > best for ratio in (matcher.real_quick_ratio, matcher.quick_ratio, matcher.ratio)):
            likest = value
            best = matcher.ratio()
    return likest


def same_letters(name: str, other: str) -> int:
    """Return the length of the common prefix of two names."""
    pairs = zip(name, other, strict=False)
    return next(
        (number for number, (letter, other_letter) in enumerate(pairs) if letter != other_letter),
        min(len(name), len(other)),
    )


def _apart(name: str, other: str) -> tuple[float, list[tuple[int, int]]]:
    """Return the sorting key of a candidate: dissimilarity, then numerical distance, then the larger number."""
    pairs = zip(map(int, _NUMBER.findall(name)), map(int, _NUMBER.findall(other)), strict=True)
    return -SequenceMatcher(a=other, b=name).ratio(), [
        (abs(number - other_number), -number) for number, other_number in pairs
    ]
