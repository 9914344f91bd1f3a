"""Plans stacks: from the cache, in this process, or side by side in others; a team after its environment."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from training_platform.checks.planning.cache import Cache, program_digest, stack_digest
from training_platform.checks.planning.outcome import Outcome, decode
from training_platform.checks.planning.workers import Answer, PlanTask, Workers, plan
from training_platform.checks.process import Progress, quiet
from training_platform.config.model.stack import Stack
from training_platform.config.workspace import Workspace

if TYPE_CHECKING:
    from training_platform.checks.planning.scheduler import Scheduler

FEWEST = 8
"""Stacks below which one process is done before several have loaded Pulumi."""


@dataclass(frozen=True, kw_only=True)
class Planner:
    """How stacks are planned: by how many processes at most, where outcomes are kept and looked for.

    None are as many processes as cores, and no cache. ``scheduler`` is the address of a Dask scheduler whose workers
    plan in their place.
    """

    jobs: int | None = None
    cache: Path | None = None
    scheduler: str | None = None

    @classmethod
    def of_text(cls, text: str) -> Planner:
        """Return the planner that ``to_text`` wrote down."""
        jobs, _, folder = text.partition(":")
        return cls(jobs=int(jobs) or None, cache=Path(folder) if folder else None)

    def to_text(self) -> str:
        """Write it down for another process: ``JOBS:FOLDER``, where 0 and no folder are None.

        The process may be of an older version, which knows of no scheduler: the base of a change is planned here.
        """
        return f"{self.jobs or 0}:{self.cache or ''}"

    def plan(
        self, workspace: Workspace, names: Sequence[str], *, inputs: bool = False, progress: Progress = quiet
    ) -> PlannedStacks:
        """Plan the named stacks, and the environments of teams; ``inputs`` as an outcome has them."""
        queue = PlanQueue(workspace.root, plan_order(workspace, names), inputs=inputs)
        if self.cache is None:
            for _ in self._work(queue, progress):
                pass
            return queue.result()
        cache, digests = Cache(self.cache), _digests(queue)
        queue.known({name: outcome for name, digest in digests.items() if (outcome := cache.get(digest))})
        if queue:
            try:
                for name, data in self._work(queue, progress):
                    cache.put(digests[name], data)
            finally:  # what was edited meanwhile may have been read before or after
                now = _digests(queue)
                cache.forget(digests[name] for name in digests if digests[name] != now[name])
                cache.prune()
        return queue.result()

    def _work(self, queue: PlanQueue, progress: Progress) -> Iterator[tuple[str, bytes]]:
        """Plan all that waits, and yield each encoded outcome as it comes."""
        total = len(queue.stacks)
        progress("planning", queue.done, total)  # loading Pulumi takes longer than reading the files did
        for name, answer in self._answers(queue):
            queue.take(name, answer)
            progress(f"planned {name}", queue.done, total)
            if answer.data is not None and not queue.failed(name):  # else a bug's traceback could not be asked for
                yield name, answer.data

    def _answers(self, queue: PlanQueue) -> Iterator[tuple[str, Answer]]:
        jobs = self.jobs or os.cpu_count() or 1
        if self.scheduler:
            from training_platform.checks.planning.scheduler import Scheduler  # noqa: PLC0415 # loads Dask

            with Scheduler(self.scheduler, queue.root) as workers:
                yield from _by(workers, queue)
            return
        if jobs == 1 or (self.jobs is None and len(queue) < FEWEST):
            while job := queue.next():
                yield job.name, plan(job)
                if len(queue.stacks) >= FEWEST:
                    gc.collect(1)  # what one plan leaves behind; with the collector off it would add up
            return
        with Workers(min(jobs, len(queue))) as workers:
            yield from _by(workers, queue)


DEFAULT = Planner()


@dataclass(frozen=True, kw_only=True)
class PlannedStacks:
    """Outcomes by stack, and a sentence for each stack that could not be planned, both in the order of planning."""

    outcomes: Mapping[str, Outcome]
    failures: tuple[str, ...]


class PlanQueue:
    """The stacks of one check, in the order of planning; ``inputs`` as an outcome has them."""

    def __init__(self, root: Path, stacks: Iterable[Stack], *, inputs: bool) -> None:
        self.root = root
        self.inputs = inputs
        self.stacks = tuple(stacks)
        self._waiting = {stack.name: stack for stack in self.stacks}
        self._outcomes: dict[str, Outcome] = {}
        self._failures: dict[str, str] = {}

    def __len__(self) -> int:
        """Return how many stacks wait."""
        return len(self._waiting)

    @property
    def done(self) -> int:
        """Stacks that have an outcome, or none and a reason."""
        return len(self._outcomes) + len(self._failures)

    def known(self, outcomes: Mapping[str, Outcome]) -> None:
        """Take outcomes from elsewhere: these stacks are not planned."""
        self._outcomes.update(outcomes)
        for name in outcomes:
            del self._waiting[name]

    def next(self) -> PlanTask | None:
        """Return the next stack whose environment is planned, None while there is none."""
        for name, stack in self._waiting.items():
            home = self._outcomes.get(stack.environment_name) if stack.team else None
            if home or not stack.team:
                del self._waiting[name]
                outputs = {stack.environment_name: home.outputs} if home else {}
                return PlanTask(self.root, name, outputs, self.inputs, stack.production)
        return None

    def take(self, name: str, answer: Answer) -> None:
        """Take what came of a stack; teams of an environment that failed stay unplanned, and their report says so."""
        if answer.data is None:
            self._failures[name] = answer.failure or ""
            self._waiting = {key: stack for key, stack in self._waiting.items() if stack.environment_name != name}
        else:
            self._outcomes[name] = decode(answer.data)

    def failed(self, name: str) -> bool:
        """Whether a rule failed at a planned stack."""
        return any(finding.failed for finding in self._outcomes[name].findings)

    def abandon(self, why: str) -> None:
        """Say of all that waits why it is not planned."""
        self._failures |= {name: f"stack {name}: {why}" for name in self._waiting}
        self._waiting.clear()

    def result(self) -> PlannedStacks:
        """Return what came of all stacks."""
        order = [stack.name for stack in self.stacks]
        return PlannedStacks(
            outcomes={name: self._outcomes[name] for name in order if name in self._outcomes},
            failures=tuple(self._failures[name] for name in order if name in self._failures),
        )


def plan_order(workspace: Workspace, selected: Iterable[str]) -> list[Stack]:
    """Return the stacks to plan for ``selected``: each environment once, before its teams; rejected ones left out.

    An environment that lends what no team was promised is left out with any of its teams: nobody knows what it lends.
    """
    wanted = dict.fromkeys(selected)
    homes = dict.fromkeys(workspace.stacks[name].environment_name for name in wanted)
    names = dict.fromkeys([*homes, *wanted])
    rejected = {stack.home_said for stack in workspace.stacks.values() if stack.findings}
    sound = {
        name: stack
        for name, stack in workspace.stacks.items()
        if not stack.findings and not (stack.lends and name in rejected)
    }
    stacks = [sound[name] for name in names if name in sound and sound[name].environment_name in sound]
    return sorted(stacks, key=lambda stack: stack.team is not None)


def _by(workers: Workers | Scheduler, queue: PlanQueue) -> Iterator[tuple[str, Answer]]:
    """Hand out all that waits, and yield each answer as it comes."""
    while True:
        while workers.free and (job := queue.next()):
            workers.give(job)
        if not workers.busy:
            queue.abandon("no process is left that could plan it.")
            return
        for done, answer in workers.answers():
            yield done.name, answer


def _digests(queue: PlanQueue) -> dict[str, str]:
    program = program_digest(queue.root)
    return {stack.name: stack_digest(program, queue.root, stack, inputs=queue.inputs) for stack in queue.stacks}
