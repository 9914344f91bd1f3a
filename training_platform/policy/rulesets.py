"""What the policy pack says of each rule set without loading the rules, which takes longer than all else at its start.

The words are data, ``rulesets.json``, which ``make reference`` writes from the rules.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

FILE = Path(__file__).parent / "rulesets.json"


class Ruleset(NamedTuple):
    """A rule set: what its rules look for, and their ids.

    ``across`` says whether it needs the whole stack, ``house`` whether it has rules of the house, ``fixes`` whether it
    can put something right.
    """

    title: str
    rules: tuple[str, ...]
    across: bool = False
    house: bool = False
    fixes: bool = False


RULESETS: Mapping[str, Ruleset] = {
    name: Ruleset(**row) for name, row in json.loads(FILE.read_text(encoding="utf-8")).items()
}
"""By name, in the order in which they are run; both ledgers, ``quota``, are the last."""
