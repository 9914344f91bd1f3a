"""Searches for the cheapest stack files that meet wishes about waits.

Starting from the current files, the search simulates each single change and keeps the best one, until no change is an
improvement. A change is better if it misses the wishes by less, or if it misses them equally and costs less per day.
The search ends in a local optimum and proves nothing about other files. A change is kept only if ``check`` finds no
errors that the current files do not have.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from kueue_model import CapacityTimes, Cluster, Trace, read_trace
from kueue_model.results import ALL, Figures, duration, median, play_trace
from training_platform.catalog.prices import PriceBook
from training_platform.config.model.stack import parse_stack
from training_platform.config.reading.editing import difference
from training_platform.config.reading.finding import UserError
from training_platform.config.reading.section import enumeration
from training_platform.config.reading.source import parse_source
from training_platform.config.workspace import Workspace, cross_check
from training_platform.parts.simulate.from_stacks import clusters
from training_platform.parts.simulate.stack_changes import SingleChanges, Texts, differences
from training_platform.parts.simulate.wishes import Wish, WishFile

_HOPELESS: Final = 30.0  # the distance of a wish if jobs never start or end; the largest logarithm is 27


class Candidate(NamedTuple):
    """Changed stack files that were simulated: their distance from the wishes (0: all are met), and the missed wishes.

    ``texts`` contains the texts of the changed files, and ``differences`` describes their differences from the current
    files.
    """

    differences: tuple[str, ...]
    texts: Texts
    distance: float
    missed: tuple[str, ...]
    usd: float

    @property
    def rank(self) -> tuple[float, float]:
        """The sorting key of candidates, lower is better."""
        return (round(self.distance, 4), round(self.usd, 2))


class CurrentFiles(NamedTuple):
    """The current stack files: the result of their simulation, and the errors that ``check`` finds in them.

    ``unplayable`` is the number of jobs that they cannot run. ``undecided`` contains the wishes for teams without jobs.
    Since their waits are unknown, their shares are not changed.
    """

    candidate: Candidate
    texts: Texts
    errors: frozenset[tuple[str, str, str]]
    unplayable: int
    undecided: tuple[Wish, ...]

    def verdict(self, candidate: Candidate) -> str:
        """Return a sentence with the missed wishes. If there are none, it says that all decidable wishes are met."""
        if candidate.missed:
            return f"missed: {'; '.join(candidate.missed)}"
        return "all other wishes are met" if self.undecided else "all wishes are met"

    def patch(self, candidate: Candidate) -> str:
        """Return the changed stack files as a patch for ``git apply``."""
        return "".join(difference(file, self.texts[file], text) for file, text in sorted(candidate.texts.items()))

    def as_json(self, candidate: Candidate) -> dict[str, object]:
        """Return a candidate as JSON data."""
        return {
            "holds": not candidate.missed and not self.undecided,
            "changes": candidate.differences,
            "missed": candidate.missed,
            "usd_a_day": candidate.usd,
            "difference": self.patch(candidate),
        }


class Recommendation(NamedTuple):
    """The result of a search: the best candidate, and how many candidates were simulated."""

    current: CurrentFiles
    best: Candidate
    played: int


@dataclass(frozen=True, kw_only=True)
class ChangeSearch:
    """A search that starts from the stack files of a repository. Every run uses ``times`` and one of the ``seeds``."""

    workspace: Workspace
    environment: str
    trace: Path
    wishes: WishFile
    book: PriceBook
    times: Mapping[str, CapacityTimes]
    seeds: range
    today: date
    _passing: dict[frozenset[tuple[str, str]], bool] = field(init=False, default_factory=dict, repr=False)  # by texts

    def run(self, max_candidates: int, progress: Callable[[str], None]) -> Recommendation:
        """Simulate up to ``max_candidates``, and return the best. Raises UserError if no wish can be decided.

        A wish can be decided if the trace has jobs of its team.
        """
        current = self._begin()
        best = current.candidate
        played = 1
        while played < max_candidates:
            progress(f"{played} simulated, best so far: {current.verdict(best)}, ${best.usd:,.0f} a day")
            neighbours = list(islice(self._neighbours(best, current), max_candidates - played))
            played += len(neighbours)
            neighbours.sort(key=_sorting_key)
            better = (candidate for candidate in neighbours if candidate.rank < best.rank)
            next_best = next((candidate for candidate in better if self._passes(candidate, current)), None)
            if next_best is None:
                break
            best = next_best
        return Recommendation(current, best, played=played)

    def _begin(self) -> CurrentFiles:
        """Simulate the current files. Raises UserError if the trace has no jobs of any team with a wish."""
        current_clusters = list(clusters(self.workspace, self.environment, self.book))
        trace = read_trace(self.trace, current_clusters)
        teams = {job.team for job in trace.jobs}
        undecided = tuple(wish for wish in self.wishes.wishes if wish.team not in teams)
        if not trace.jobs:
            raise UserError(f"{self.trace} has no job that can run with the current stack files.")
        if len(undecided) == len(self.wishes.wait):
            raise UserError(f"{self.trace} has no jobs of the teams with wishes: {enumeration(self.wishes.wait)}.")
        texts = {}
        for stack in self.workspace.stacks.values():
            file = stack.source.file
            texts[file] = (self.workspace.root / file).read_bytes().decode("utf-8-sig")
        return CurrentFiles(
            candidate=self._candidate({}, self.workspace, current_clusters, trace),
            texts=texts,
            errors=self._errors({}),
            unplayable=trace.unusable,
            undecided=undecided,
        )

    def _neighbours(self, candidate: Candidate, current: CurrentFiles) -> Iterator[Candidate]:
        """Simulate each single change of a candidate, except changes that cause errors in a file or lose a job."""
        undecided_teams = {wish.team for wish in current.undecided}
        changes = SingleChanges(
            workspace=self._changed_workspace(candidate.texts),
            texts={**current.texts, **candidate.texts},
            environment=self.environment,
            reservations=self.wishes.reservations,
            gaining=self.wishes.wait.keys() - undecided_teams,
            fixed=undecided_teams,
        )
        for change in changes:
            texts = {**candidate.texts, **change}
            workspace = self._changed_workspace(texts)
            findings = [finding for stack in workspace.stacks.values() for finding in stack.findings]
            if any(finding.severity == "error" for finding in findings):
                continue
            changed_clusters = list(clusters(workspace, self.environment, self.book))
            trace = read_trace(self.trace, changed_clusters)
            if trace.jobs and trace.unusable <= current.unplayable:
                yield self._candidate(texts, workspace, changed_clusters, trace)

    def _changed_workspace(self, texts: Texts) -> Workspace:
        stacks = dict(self.workspace.stacks)
        for name, stack in self.workspace.stacks.items():
            file = stack.source.file
            if file in texts:
                stacks[name] = parse_stack(name, parse_source(texts[file], file))
        return cross_check(Workspace(self.workspace.root, stacks))

    def _candidate(
        self, texts: Texts, workspace: Workspace, played_clusters: Sequence[Cluster], trace: Trace
    ) -> Candidate:
        """Simulate the trace in the clusters of changed files, once for each seed."""
        runs = [play_trace(played_clusters, trace, self.times, seed) for seed in self.seeds]
        missed_wishes = list(self._missed_wishes(runs))
        usd = median(run.usd for run in runs) or 0.0
        budget = self.wishes.budget
        if budget and usd > budget:
            missed_wishes.append((_distance(usd, budget), f"${usd:,.0f} a day, but the budget is ${budget:,.0f}"))
        return Candidate(
            differences=tuple(differences(self.workspace, workspace, self.environment)),
            texts=texts,
            distance=sum(distance for distance, _ in missed_wishes),
            missed=tuple(sentence for _, sentence in missed_wishes),
            usd=usd,
        )

    def _missed_wishes(self, runs: Sequence[Figures]) -> Iterator[tuple[float, str]]:
        """Yield the distance of each missed wish, and a sentence about it."""
        for wish in self.wishes.wishes:
            never = median(_endless_jobs(run, wish.team) for run in runs)
            if never:
                yield _HOPELESS, f"{wish}, and {never:,.0f} jobs never start or end"
                continue
            wait = median(_longest_wait(run, wish) for run in runs) or 0.0
            if wait >= wish.seconds:
                yield _distance(wait, wish.seconds), f"{wish}, is {duration(wait)}"

    def _passes(self, candidate: Candidate, current: CurrentFiles) -> bool:
        """Return True if ``check`` finds only errors that the current files have too."""
        key = frozenset(candidate.texts.items())
        if key not in self._passing:
            self._passing[key] = self._errors(candidate.texts) <= current.errors
        return self._passing[key]

    def _errors(self, texts: Texts) -> frozenset[tuple[str, str, str]]:
        """Return the errors that ``check`` finds in the repository if stack files are replaced by ``texts``."""
        from training_platform.checks.repository_copy import repository_copy  # noqa: PLC0415 # loads every rule
        from training_platform.checks.run import run_check  # noqa: PLC0415 # as above
        from training_platform.checks.stacks import CheckOptions  # noqa: PLC0415 # as above

        with repository_copy(self.workspace.root, texts) as root:
            report = run_check(root, CheckOptions(today=self.today))
        errors = {(row.rule, row.file or "", row.path) for row in report.all_findings() if row.severity == "error"}
        failures = {("failure", "", sentence) for sentence in report.failures}
        return frozenset(errors | failures)


def _sorting_key(candidate: Candidate) -> tuple[float, float, int]:
    """Return the sorting key of candidates: the best first, and among equals the one with the fewest differences."""
    return (*candidate.rank, len(candidate.differences))


def _distance(value: float, limit: float) -> float:
    """Return a measure of how far a value exceeds a limit."""
    return 0.01 + math.log(value / limit)


def _endless_jobs(run: Figures, team: str) -> float:
    """Return the number of a team's jobs that never start or end."""
    return sum(row["jobs"] or 0 for key, row in run.never.items() if key.team == team)


def _longest_wait(run: Figures, wish: Wish) -> float:
    """Return the wait that a wish limits, in seconds, in the cluster in which it is longest."""
    waits = (
        row[f"{wish.figure}_seconds"] or 0.0
        for key, row in run.waits.items()
        if key.team == wish.team and key.flavor == ALL
    )
    return max(waits, default=0.0)
