"""What is left to plan, and what came of the rest: a team waits for its environment, whose outputs it reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from training_platform.checks.planning.outcome import Outcome, decode
from training_platform.checks.planning.worker import Answer, Job
from training_platform.config.model.stack import Stack


@dataclass(frozen=True, kw_only=True)
class Planned:
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

    def next(self) -> Job | None:
        """Return the next stack whose environment is planned, None while there is none."""
        for name, stack in self._waiting.items():
            home = self._outcomes.get(stack.environment_name) if stack.team else None
            if home or not stack.team:
                del self._waiting[name]
                outputs = {stack.environment_name: home.outputs} if home else {}
                return Job(self.root, name, outputs, self.inputs, stack.production)
        return None

    def take(self, name: str, answer: Answer) -> None:
        """Take what came of a stack; teams of an environment that failed stay unplanned, and their report says so."""
        if answer.data is None:
            self._failures[name] = answer.failure or ""
            self._waiting = {key: stack for key, stack in self._waiting.items() if stack.environment_name != name}
        else:
            self._outcomes[name] = decode(answer.data)

    def abandon(self, why: str) -> None:
        """Say of all that waits why it is not planned."""
        self._failures |= {name: f"stack {name}: {why}" for name in self._waiting}
        self._waiting.clear()

    def result(self) -> Planned:
        """Return what came of all stacks."""
        order = [stack.name for stack in self.stacks]
        return Planned(
            outcomes={name: self._outcomes[name] for name in order if name in self._outcomes},
            failures=tuple(self._failures[name] for name in order if name in self._failures),
        )
