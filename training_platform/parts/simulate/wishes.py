"""Files of wishes: limits for teams' waits, a budget, and the maximum size of pools with reservations."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Annotated, Final, NamedTuple

from pydantic import AfterValidator, Field

from kueue_model import MOST_SECONDS
from kueue_model.results import duration
from training_platform.catalog.nearest import find_nearest
from training_platform.config.reading.finding import UserError
from training_platform.config.reading.rejection import read_section
from training_platform.config.reading.section import Section, enumeration
from training_platform.config.workspace import Workspace
from training_platform.parts.simulate.stack_changes import environment_spec

FIGURES: Final = ("median", "p90", "longest")
_SECONDS: Final = {"min": 60.0, "h": 3600.0, "d": 86_400.0}
_WISH: Final = re.compile(rf"({'|'.join(FIGURES)})\s*<\s*([0-9]+(?:\.[0-9]+)?)\s*({'|'.join(_SECONDS)})")


class Wish(NamedTuple):
    """A limit in seconds for one statistic of a team's waits, such as their 90th percentile."""

    team: str
    figure: str
    seconds: float

    def __str__(self) -> str:
        """Return the wish in the form for messages."""
        return f"{self.team}: {self.figure} < {duration(self.seconds)}"

    @classmethod
    def parse(cls, team: str, text: str) -> Wish:
        """Parse a wish such as ``p90 < 4h``. Raises ValueError."""
        match = _WISH.fullmatch(text.strip())
        if match:
            figure, number, unit = match.groups()
            seconds = float(number) * _SECONDS[unit]
            if 0 < seconds <= MOST_SECONDS:
                return cls(team, figure, seconds)
        allowed = f"{enumeration(FIGURES)}, then < and a time in min, h or d, such as p90 < 4h"
        raise ValueError(f"{text!r} is not a wish. Allowed: {allowed}")


def _validated(text: str) -> str:
    Wish.parse("", text)
    return text


class WishFile(Section):
    """Wishes: limits for waits of each team, the maximum USD per day, and the maximum size of pools with reservations.

    The size is in machines or slices. Only the pools in ``reservations``, grouped by cluster, may change their size.
    """

    wait: dict[str, Annotated[str, AfterValidator(_validated)]] = Field(min_length=1)
    budget: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    reservations: dict[str, dict[str, int]] = Field(default_factory=dict)

    @property
    def wishes(self) -> list[Wish]:
        """The wishes that are about waits."""
        return [Wish.parse(team, text) for team, text in self.wait.items()]


def read_wishes(path: Path, workspace: Workspace, environment: str) -> WishFile:
    """Read a file of wishes for an environment. Raises UserError with every unknown name in it."""
    wish_file = read_section(path, WishFile)
    teams = [team.name for _, team, _ in workspace.teams() if team.environment == environment]
    reserved_pools = [
        f"{cluster}.{name}"
        for cluster, section in environment_spec(workspace, environment).clusters.items()
        for name, pool in section.node_pools.items()
        if pool.capacity == "reservation"
    ]
    sized_pools = [f"{cluster}.{name}" for cluster, sizes in wish_file.reservations.items() for name in sizes]
    sentences = [
        *_unknown_names(wish_file.wait, teams, f"a team of {environment}"),
        *_unknown_names(sized_pools, reserved_pools, f"a node pool of {environment} with a reservation"),
    ]
    if sentences:
        raise UserError(f"{path}: {' '.join(sentences)}")
    return wish_file


def _unknown_names(names: Iterable[str], declared: Collection[str], kind: str) -> Iterator[str]:
    """Yield a sentence for each of the names that is not declared. ``kind`` is what the names stand for."""
    for name in names:
        if name not in declared:
            nearest = find_nearest(name, declared)
            hint = f" Nearest: {nearest}." if nearest else ""
            yield f"{name!r} is not {kind}: {enumeration(sorted(declared))}.{hint}"
