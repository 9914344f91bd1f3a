"""A search for the cheapest stack files that meet wishes about waits, by shares, limits, reservations and fallbacks.

From the current files, each single change is played and the best is kept, until no change is better. A change is better
if it misses the wishes by less, then if a day costs less. The search ends in a local optimum and proves nothing about
other files. A kept change adds no error to those that ``check`` finds in the current files.
"""

from __future__ import annotations

import math
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Annotated, Final, NamedTuple

from pydantic import AfterValidator, Field

from training_platform.catalog.nearest import find_nearest
from training_platform.catalog.prices import PriceBook
from training_platform.config.expansion import Flavor
from training_platform.config.model.queues import Share
from training_platform.config.model.stack import parse_stack
from training_platform.config.reading.editing import difference, with_entry, with_number
from training_platform.config.reading.finding import UserError
from training_platform.config.reading.rejection import read_section
from training_platform.config.reading.section import Section, enumeration
from training_platform.config.reading.source import parse_source
from training_platform.config.workspace import Workspace, cross_check, unpromised
from training_platform.parts.simulate.from_stacks import clusters
from training_platform.parts.simulate.machines import CapacityTimes
from training_platform.parts.simulate.results import ALL, Figures, duration, median, play_trace
from training_platform.parts.simulate.traces import MOST_SECONDS, read_trace

FIGURES: Final = ("median", "p90", "longest")
_WISH: Final = re.compile(r"(\w+)\s*<\s*([0-9.]+)\s*(min|h|d)")
_SECONDS: Final = {"min": 60.0, "h": 3600.0, "d": 86_400.0}
_TEAM: Final = ("config", "training-platform:team")
_ENVIRONMENT: Final = ("config", "training-platform:environment")
_HOPELESS: Final = 30.0  # the distance of a wish if jobs never start or end; the largest logarithm is 27


class Wish(NamedTuple):
    """A limit for a figure of a team's waits, in seconds."""

    team: str
    figure: str
    seconds: float

    def __str__(self) -> str:
        """Return the wish as messages show it."""
        return f"{self.team}: {self.figure} < {duration(self.seconds)}"


def _wish(team: str, text: str) -> Wish | None:
    match = _WISH.fullmatch(text.strip())
    if not match:
        return None
    figure, number, unit = match.groups()
    if figure not in FIGURES or not re.fullmatch(r"\d+(\.\d+)?", number):
        return None
    seconds = float(number) * _SECONDS[unit]
    return Wish(team, figure, seconds) if 0 < seconds <= MOST_SECONDS else None


def _checked(text: str) -> str:
    if not _wish("", text):
        allowed = f"{enumeration(FIGURES)}, then < and a time in min, h or d, such as p90 < 4h"
        raise ValueError(f"{text!r} is not a wish. Allowed: {allowed}")
    return text


class WishFile(Section):
    """Wishes: limits of waits by team, the most USD a day, and the most machines (slices) of pools with reservations.

    Only the pools in ``reservations``, by cluster, change their size.
    """

    wait: dict[str, Annotated[str, AfterValidator(_checked)]] = Field(min_length=1)
    budget: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    reservations: dict[str, dict[str, int]] = Field(default_factory=dict)

    @property
    def wishes(self) -> list[Wish]:
        """The wishes about waits."""
        parsed = (_wish(team, text) for team, text in self.wait.items())
        return [wish for wish in parsed if wish]


def read_wishes(path: Path, workspace: Workspace, environment: str) -> WishFile:
    """Read a file of wishes for an environment. Raises UserError with all of its unknown names."""
    wish_file = read_section(path, WishFile)
    teams = [team.name for _, team, _ in workspace.teams() if team.environment == environment]
    spec = workspace.stacks[environment].environment
    pools = []
    for cluster, section in (spec.clusters if spec else {}).items():
        for name, pool in section.node_pools.items():
            if pool.capacity == "reservation":
                pools.append(f"{cluster}.{name}")
    sized_pools = [f"{cluster}.{pool}" for cluster, sizes in wish_file.reservations.items() for pool in sizes]
    sentences = []
    for kind, names, declared in (
        ("a team", list(wish_file.wait), teams),
        ("a node pool with a reservation", sized_pools, pools),
    ):
        for name in names:
            if name not in declared:
                nearest = find_nearest(name, declared)
                hint = f" Nearest: {nearest}." if nearest else ""
                sentences.append(f"{name!r} is not {kind} of {environment}: {enumeration(sorted(declared))}.{hint}")
    if sentences:
        raise UserError(f"{path}: {' '.join(sentences)}")
    return wish_file


Texts = Mapping[str, str]
"""New texts of stack files, by their names."""


class Candidate(NamedTuple):
    """Changed stack files that were played: by how much they miss wishes (0: all hold), which, and the figures.

    ``words`` describe the differences from the current files.
    """

    words: tuple[str, ...]
    texts: Texts
    missed: float
    missing: tuple[str, ...]
    usd: float
    figures: Figures

    @property
    def key(self) -> tuple[float, float, int]:
        """The sorting key of candidates, the best first."""
        return (round(self.missed, 4), round(self.usd, 2), len(self.words))


@dataclass(kw_only=True)
class Search:
    """A search from the stack files of a repository; every run uses ``times`` and a seed of ``seeds``.

    ``tried`` has all played candidates. ``allowed`` are the errors that ``check`` finds in the current files.
    ``undecided`` are the wishes for teams without jobs in the trace; since their waits are unknown, their shares stay
    as they are.
    """

    workspace: Workspace
    environment: str
    trace: Path
    wishes: WishFile
    book: PriceBook
    times: Mapping[str, CapacityTimes]
    seeds: range
    today: date
    tried: list[Candidate] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Read the current files."""
        files = [stack.source.file for stack in self.workspace.stacks.values()]
        self.before: Texts = {file: (self.workspace.root / file).read_bytes().decode("utf-8-sig") for file in files}
        self.allowed = self._errors({})
        self.unusable = 0
        self.undecided: tuple[Wish, ...] = ()
        self._passed: dict[frozenset[tuple[str, str]], bool] = {}

    def run(self, most: int, progress: Callable[[str], None]) -> Candidate:
        """Play at most ``most`` candidates and return the best; ``tried`` then has all, the best first."""
        start = self._play({})
        if start is None:
            raise UserError(f"{self.trace} has no job that the current stack files can play.")
        if len(self.undecided) == len(self.wishes.wait):
            raise UserError(f"{self.trace} has no jobs of the teams with wishes: {enumeration(self.wishes.wait)}.")
        best = start
        self.tried = [start]
        while len(self.tried) < most:
            progress(f"{len(self.tried)} played: {self.verdict(best)}, ${best.usd:,.0f} a day")
            candidates: list[Candidate] = []
            for change in self._changes(best.texts):
                if len(self.tried) >= most:
                    break
                candidate = self._play({**best.texts, **change})
                if candidate:
                    candidates.append(candidate)
                    self.tried.append(candidate)
            candidates.sort(key=lambda candidate: candidate.key)
            better = (candidate for candidate in candidates if candidate.key[:2] < best.key[:2])
            next_best = next(filter(self.passes, better), None)
            if next_best is None:
                break
            best = next_best
        self.tried.sort(key=lambda candidate: candidate.key)
        return best

    def passes(self, candidate: Candidate) -> bool:
        """Whether ``check`` finds only errors in changed files that the current files have as well."""
        key = frozenset(candidate.texts.items())
        if key not in self._passed:
            self._passed[key] = self._errors(candidate.texts) <= self.allowed
        return self._passed[key]

    def verdict(self, candidate: Candidate) -> str:
        """Return a sentence on the missed wishes, or that all hold which the trace can decide."""
        if candidate.missing:
            return f"missed: {'; '.join(candidate.missing)}"
        return "all other wishes hold" if self.undecided else "all wishes hold"

    def difference(self, candidate: Candidate) -> str:
        """Return changed stack files as a patch for ``git apply``."""
        return "".join(difference(file, self.before[file], text) for file, text in sorted(candidate.texts.items()))

    def document(self, candidate: Candidate) -> dict[str, object]:
        """Return a candidate for programs."""
        return {
            "holds": not candidate.missing and not self.undecided,
            "changes": candidate.words,
            "missed": candidate.missing,
            "usd_a_day": candidate.usd,
            "difference": self.difference(candidate),
        }

    def _workspace(self, texts: Texts) -> Workspace:
        stacks = dict(self.workspace.stacks)
        for name, stack in self.workspace.stacks.items():
            file = stack.source.file
            if file in texts:
                stacks[name] = parse_stack(name, parse_source(texts[file], file))
        return cross_check(Workspace(self.workspace.root, stacks))

    def _play(self, texts: Texts) -> Candidate | None:
        """Play changed files; None if they have errors, or cannot play all jobs that the current files can."""
        workspace = self._workspace(texts)
        if any(row.severity == "error" for stack in workspace.stacks.values() for row in stack.findings):
            return None
        played_clusters = list(clusters(workspace, self.environment, self.book))
        trace = read_trace(self.trace, played_clusters)
        if not texts:
            self.unusable = trace.unusable
            teams = {job.team for job in trace.jobs}
            self.undecided = tuple(wish for wish in self.wishes.wishes if wish.team not in teams)
        if not trace.jobs or trace.unusable > self.unusable:
            return None
        runs = [play_trace(played_clusters, trace, self.times, seed) for seed in self.seeds]
        missed_wishes = list(self._missed_wishes(runs))
        usd = median(run.usd() for run in runs) or 0.0
        budget = self.wishes.budget
        if budget and usd > budget:
            missed_wishes.append((_distance(usd, budget), f"${usd:,.0f} a day, wished ${budget:,.0f}"))
        return Candidate(
            words=tuple(differences(self.workspace, workspace, self.environment)),
            texts=texts,
            missed=sum(distance for distance, _ in missed_wishes),
            missing=tuple(sentence for _, sentence in missed_wishes),
            usd=usd,
            figures=runs[0],
        )

    def _missed_wishes(self, runs: list[Figures]) -> Iterator[tuple[float, str]]:
        """Yield the distance of each missed wish, and a sentence."""
        for wish in self.wishes.wishes:
            never = median(
                sum(row["jobs"] or 0 for key, row in run.rows["never"].items() if key[1] == wish.team) for run in runs
            )
            if never:
                yield _HOPELESS, f"{wish}, and {never:,.0f} jobs never start or end"
                continue
            value = median(max(self._waits(run, wish), default=0.0) for run in runs) or 0.0
            if value >= wish.seconds:
                yield _distance(value, wish.seconds), f"{wish}, is {duration(value)}"

    def _waits(self, run: Figures, wish: Wish) -> Iterator[float]:
        for key, row in run.rows["waits"].items():
            if key[1:] == (wish.team, ALL):
                yield row[f"{wish.figure}_seconds"] or 0.0

    def _errors(self, texts: Texts) -> set[tuple[str, str, str]]:
        """Return the errors that ``check`` finds in the repository with other stack files."""
        from training_platform.checks.run import run_check  # noqa: PLC0415 # loads every rule
        from training_platform.checks.stacks import CheckOptions  # noqa: PLC0415 # as above

        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            shutil.copy(self.workspace.root / "Pulumi.yaml", root)
            for name in ("stacks", "jobs"):
                if (self.workspace.root / name).is_dir():
                    shutil.copytree(self.workspace.root / name, root / name)
            for file, text in texts.items():
                (root / file).write_text(text, encoding="utf-8", newline="")
            report = run_check(root, CheckOptions(today=self.today))
        errors = {(row.rule, row.file or "", row.path) for row in report.all_findings() if row.severity == "error"}
        return errors | {("failure", "", text) for text in report.failures}

    def _changes(self, texts: Texts) -> Iterator[Texts]:
        """Yield every single change of some texts."""
        workspace = self._workspace(texts)
        files = {**self.before, **texts}
        spec = workspace.stacks[self.environment].environment
        assert spec is not None
        unpromised_quota = unpromised(workspace, self.environment)
        fixed_teams = {wish.team for wish in self.undecided}
        for cluster in spec.clusters:
            flavors = workspace.flavors(self.environment, cluster)
            for flavor in flavors.values():
                holdings = self._holdings(workspace, cluster, flavor)
                free = unpromised_quota.get(cluster, {}).get(flavor.name, 0)
                total = sum(holding.share.nominal_quota for holding in holdings)
                changeable = [holding for holding in holdings if holding.team not in fixed_teams]
                for holding in changeable:
                    yield from _limits(files, holding, total)
                    yield from self._sizes(workspace, files, holding)
                    if holding.team in self.wishes.wait:
                        others = [other for other in changeable if other is not holding]
                        yield from _quotas(files, holding, others, free)
                if free and flavor.capacity != "reservation":
                    yield from self._fallbacks(workspace, files, cluster, flavor, free)

    def _holdings(self, workspace: Workspace, cluster: str, flavor: Flavor) -> list[Holding]:
        """Return each team's share of a flavor in a cluster."""
        holdings = []
        for stack, team, _ in workspace.teams():
            share = team.shares.get(cluster, {}).get(flavor.name)
            if team.environment == self.environment and share:
                holdings.append(Holding(stack.source.file, team.name, cluster, flavor, share))
        return holdings

    def _fallbacks(
        self, workspace: Workspace, files: Texts, cluster: str, flavor: Flavor, free: int
    ) -> Iterator[Texts]:
        """Yield a new share of a flavor for each team with a wish that has other flavors of the same accelerator."""
        flavors = workspace.flavors(self.environment, cluster)
        for stack, team, _ in workspace.teams():
            shares = team.shares.get(cluster, {})
            accelerators = {flavors[name].accelerator.name for name in shares if name in flavors}
            has_wish = team.environment == self.environment and team.name in self.wishes.wait
            if has_wish and flavor.accelerator.name in accelerators and flavor.name not in shares:
                file = stack.source.file
                path = (*_TEAM, "shares", cluster)
                yield {file: with_entry(files[file], file, path, [f"{flavor.name}: {{nominal_quota: {free}}}"])}

    def _sizes(self, workspace: Workspace, files: Texts, holding: Holding) -> Iterator[Texts]:
        """Yield other sizes of a reservation; the team loses the difference, or gains it if the team has a wish."""
        file = workspace.stacks[self.environment].source.file
        cluster = holding.cluster
        for pool in holding.flavor.pools:
            most = self.wishes.reservations.get(cluster, {}).get(pool.name, 0)
            if pool.accelerator.kind == "tpu":
                size_field = "slices"
                minimum_field = "min_slices"
                unit = pool.machine.chips * pool.hosts
            else:
                size_field = "max_nodes"
                minimum_field = "min_nodes"
                unit = pool.machine.chips
            current = int(getattr(pool.spec, size_field))
            minimum = int(getattr(pool.spec, minimum_field) or 0)
            for size in sorted({current - 1, current // 2, current + 1, current * 2, most} - {current}):
                quota = holding.share.nominal_quota + (size - current) * unit
                grows_without_wish = size > current and holding.team not in self.wishes.wait
                if not 1 <= size <= most or quota < 0 or grows_without_wish:
                    continue
                path = (*_ENVIRONMENT, "clusters", cluster, "node_pools", pool.name)
                text = with_number(files[file], file, (*path, size_field), size)
                if minimum_field in pool.spec.model_fields_set and (minimum == current or minimum > size):
                    text = with_number(text, file, (*path, minimum_field), size)
                yield {file: text, **holding.with_number(files, quota)}


class Holding(NamedTuple):
    """A team's share of a flavor, with its stack file."""

    file: str
    team: str
    cluster: str
    flavor: Flavor
    share: Share

    def with_number(self, files: Texts, number: int, key: str = "nominal_quota") -> dict[str, str]:
        """Return the file with another value of a field of the share."""
        path = (*_TEAM, "shares", self.cluster, self.flavor.name, key)
        return {self.file: with_number(files[self.file], self.file, path, number)}


def _distance(value: float, limit: float) -> float:
    """Return by how much a value above a limit misses it."""
    return 0.01 + math.log(value / limit)


def _limits(files: Texts, holding: Holding, total: int) -> Iterator[Texts]:
    """Yield limits raised until they no longer restrict anything."""
    share = holding.share
    others = total - share.nominal_quota
    if share.borrowing_limit is not None and share.borrowing_limit < others:
        yield holding.with_number(files, others, "borrowing_limit")
    if share.lending_limit is not None and share.lending_limit < share.nominal_quota:
        yield holding.with_number(files, share.nominal_quota, "lending_limit")


def _quotas(files: Texts, holding: Holding, others: Iterable[Holding], free: int) -> Iterator[Texts]:
    """Yield more quota for a team, from another team or from unpromised quota."""
    unit = holding.flavor.chips_per_slice
    quota = holding.share.nominal_quota
    for other in others:
        available = other.share.nominal_quota
        for amount in sorted({unit, holding.flavor.in_whole_slices(available // 2), available}):
            if 0 < amount <= available:
                raised = holding.with_number(files, quota + amount)
                yield raised | other.with_number({**files, **raised}, available - amount)
    for amount in sorted({unit, free}):
        if 0 < amount <= free:
            yield holding.with_number(files, quota + amount)


def differences(before: Workspace, after: Workspace, environment: str) -> Iterator[str]:
    """Yield the differences between two versions of the numbers that a search changes."""
    old = _numbers(before, environment)
    for subject, numbers in _numbers(after, environment).items():
        if subject not in old:
            yield f"{subject}: {numbers['']}, a new share"
            continue
        for verb, number in numbers.items():
            if number != old[subject][verb]:
                yield f"{subject}: {verb}{number}, not {old[subject][verb]}"


def _numbers(workspace: Workspace, environment: str) -> dict[str, dict[str, int | None]]:
    """Return the numbers that a search changes, by subject and by the verb that precedes each."""
    numbers: dict[str, dict[str, int | None]] = {}
    spec = workspace.stacks[environment].environment
    for cluster, section in (spec.clusters if spec else {}).items():
        for name, pool in section.node_pools.items():
            for field_name in ("max_nodes", "slices"):
                numbers[f"{field_name} of {name} in {cluster}"] = {"": getattr(pool, field_name)}
    for _, team, _ in workspace.teams():
        if team.environment == environment:
            for cluster, shares in team.shares.items():
                for flavor, share in shares.items():
                    numbers[f"{team.name}'s {flavor} in {cluster}"] = {
                        "": share.nominal_quota,
                        "may borrow ": share.borrowing_limit,
                        "lends ": share.lending_limit,
                    }
    return numbers
