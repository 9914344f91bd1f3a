"""Mutations of the model, one for each branch of the algorithm: a recorded scenario has to fail under each of them."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Final, NamedTuple

from tests.parts.simulate.record import RECORDED, agreeing, expand, read_record, record_path
from tests.parts.simulate.scenarios import Json, play
from training_platform.parts.simulate import admission

KILLED: Final = RECORDED / "mutations.json"
"""By mutation, the name of a scenario that fails under it; written by ``python -m`` this module."""
MODULES: Final = ("quotas", "queues", "preemption", "admission")  # each imports only those before it


class Mutation(NamedTuple):
    """A change of the model's source: in which module, and what is replaced by what."""

    module: str
    old: str
    new: str


MUTATIONS: Final = {
    "no borrowing limit": Mutation("quotas", "if limit is not None:\n            room = min", "if False:\n            room = min"),
    "no lending limit": Mutation("quotas", "0 if limit is None else max(0, member.subtree[flavor] - limit)", "0"),
    "weights do not count": Mutation("quotas", "(0, ratio / self.weight) if self.weight else (1, ratio)", "(0, ratio)"),
    "weight 0 is like 1": Mutation("quotas", "if self.weight else (1, ratio)", "if self.weight else (0, ratio)"),
    "shares by flavor, not by resource": Mutation("quotas", "over.get(resource, 0) + more", "max(over.get(resource, 0), more)"),
    "cohorts lend nothing": Mutation("quotas", "child.subtree[flavor] - child.local[flavor]", "0"),
    "flavors are not tried further": Mutation("admission", "last = start - 1\n        for last in range(start, len(flavors)):", "last = start - 1\n        for last in range(start, min(start + 1, len(flavors))):"),
    "the flavor scan does not go on": Mutation("admission", "job.tried[index] + 1 if index < len(job.tried) else 0", "0"),
    "borrowing never tries the next flavor": Mutation("admission", "(found.level and queue.next_if_borrowing)", "False"),
    "preempting never tries the next flavor": Mutation("admission", "(found.mode < FIT and queue.next_if_preempting)", "False"),
    "the first flavor is the best": Mutation("admission", "(found.mode, -found.level) > (best.mode, -best.level)", "False"),
    "no level of borrowing": Mutation("admission", "(found.mode, -found.level) > (best.mode, -best.level)", "found.mode > best.mode"),
    "overlapping targets are evicted for both": Mutation("admission", "overlap = any(target.job in evicted for target in entry.targets)", "overlap = False"),
    "no second look at the room": Mutation("admission", "overlap or not self._fits(entry, evicted)", "overlap"),
    "nothing is kept for who cannot reclaim": Mutation("admission", 'if queue.reclaim != "Any":', "if False:"),
    "a preemptor's room is free for others": Mutation("admission", "            counted.append((queue.member, entry.usage))\n            queue.member.add(entry.usage)\n", ""),
    "nobody is tried again": Mutation("admission", "for queue in self.queues.values():\n                    queue.aside.clear()", "for queue in ():\n                    queue.aside.clear()"),
    "one job is put aside, not its shape": Mutation("queues", "self.shape = (self.priority, self.pods)", "self.shape = (self.priority, self.pods, self.name)"),
    "new jobs of a shape are tried": Mutation("admission", "queue.push(job)\n        self._forget_states", "queue.push(job)\n        queue.aside.discard(job.shape)\n        self._forget_states"),
    "borrowers before those within quota": Mutation("admission", "keys[above, entry.job] = (borrows, own.share()", "keys[above, entry.job] = (0, own.share()"),
    "share does not order entries": Mutation("admission", "keys[above, entry.job] = (borrows, own.share(), -entry", "keys[above, entry.job] = (borrows, 0, -entry"),
    "priority does not order entries": Mutation("admission", "own.share(), -entry.job.priority, entry", "own.share(), 0, entry"),
    "age does not order jobs": Mutation("queues", "(job.created, job.tie, job)", "(-job.created, job.tie, job)"),
    "priority does not order jobs": Mutation("queues", "(-shape[0], self.waiting", "(0, self.waiting"),
    "held queues start jobs": Mutation("queues", 'self.held = spec.get("stopPolicy", "None") != "None"', "self.held = False"),
    "shares of cohorts are compared as they were": Mutation("admission", "changed = [member for member in left if not", "changed = [member for member in () if not"),
    "who finds nobody is not compared": Mutation("admission", " or self.nested", ""),
    "level does not order entries": Mutation("admission", "return (entry.level, ", "return (0, "),
    "ending a waiting job is no reason to try others": Mutation("admission", "            self._try_again()\n        self._forget_states", "        self._forget_states"),
    "a new status of a queue tries nobody": Mutation("admission", "if job.queue in self.watched:", "if False:"),
    "a new status comes after other reasons": Mutation(
        "admission",
        "            if self._status_at <= now:\n                self._status_at = math.inf\n                self._try_again()\n            if self._requeue_at <= now:\n                self._requeue_at = math.inf\n",
        "            if due := self._requeue_at <= now:\n                self._requeue_at = math.inf\n            if self._status_at <= now:\n                self._status_at = math.inf\n                self._try_again()\n            if due:\n",
    ),
    "root cohorts look at queues as well": Mutation("admission", "above.parent and above.name in cohorts", "above.name in cohorts"),
    "those put aside are no part of a loop": Mutation("admission", "frozenset(queue.aside) for queue in queues", "0 for queue in ()"),
    "only lower priorities are evicted": Mutation("preemption", 'policy == "Any"\n                or ', ""),
    "newer jobs of the same priority stay": Mutation("preemption", 'policy == "LowerOrNewerEqualPriority"\n', 'policy == "never"\n'),
    "nobody is given back": Mutation("preemption", "for index in range(len(taken) - 2, -1, -1):", "for index in ():"),
    "old jobs are evicted first": Mutation("preemption", "job.priority, -job.reserved, job.tie", "job.priority, job.reserved, job.tie"),
    "own jobs are evicted first": Mutation("preemption", "job.queue == self.queue.name, job.priority", "job.queue != self.queue.name, job.priority"),
    "priority does not order candidates": Mutation("preemption", "self.queue.name, job.priority, -job", "self.queue.name, -job"),
    "no right to the own quota": Mutation("preemption", "or within_quota:", "or False:"),
    "no second rule": Mutation("preemption", "len(strategies) > 1", "False"),
    "the first rule is always the final share": Mutation("preemption", "strategies[0] == FINAL_SHARE", "strategies[0] != ''"),
    "the first rule is always the initial share": Mutation("preemption", "strategies[0] == FINAL_SHARE", "strategies[0] == ''"),
    "shares are compared without the job": Mutation("preemption", "    protected: list[Job] = []\n", "    protected: list[Job] = []\n    waiting = waiting._replace(usage={})\n"),
    "the smallest share is evicted": Mutation("preemption", "elif share > of_queue:", "elif queue is None or share < of_queue:"),
    "cohorts are not compared": Mutation("preemption", "if cohort_below is not None and of_cohort >= of_queue:", "if cohort_below is not None and queue is None:"),
    "no claim by place": Mutation("preemption", "claim = claim or not any(", "claim = False and not any("),
    "borrowing takes nobody's place": Mutation("preemption", "elif own.takes_while_borrowing and job.priority < waiting.job.priority:", "elif False:"),
    "candidates stay candidates": Mutation("preemption", "row.apart is None or _borrows_below(", "True or _borrows_below("),
    "one attempt without fair sharing": Mutation("preemption", "attempts = [False, True]", "attempts = [False]"),
    "evictions may always lead to borrowing": Mutation("preemption", "if borrowing and row.if_not_borrowing:", "if False:"),
}  # fmt: skip


@cache
def mutated(mutation: Mutation) -> ModuleType:
    """Return the module ``admission`` of a model with a mutation. ValueError where its source lacks ``old``."""
    for name in MODULES:
        source = Path(str(admission.__file__)).with_name(f"{name}.py").read_text(encoding="utf-8")
        if name == mutation.module:
            if mutation.old not in source:
                raise ValueError(f"{name}.py has no {mutation.old!r}")
            source = source.replace(mutation.old, mutation.new)
        module = ModuleType(f"mutant_{name}")
        sys.modules[module.__name__] = module
        exec(source.replace("training_platform.parts.simulate.", "mutant_"), module.__dict__)  # noqa: S102 # our own source
    return sys.modules["mutant_admission"]


class StuckError(Exception):
    """A mutation that runs in circles, which shows nothing."""


def differs(scenario: Json, mutation: Mutation) -> bool:
    """Whether a mutation plays a scenario otherwise than the model. Raises StuckError in ``main``."""
    return list(play(scenario, 0)) != list(play(scenario, 0, mutated(mutation)))


def untied(rows: Iterable[Json]) -> Iterator[Json]:
    """Yield the scenarios of a record that the model plays as Kueue did without a tie, so that one play is enough."""
    for row in rows:
        real = list(expand(row["plays"][0]))
        if len(row["plays"]) == 1 and agreeing(play(row, 0), real) == len(real):
            yield row


def main() -> None:
    """Find a recorded scenario for each mutation that has none in the table, and write their names to it."""
    killed: dict[str, str] = json.loads(KILLED.read_text(encoding="utf-8"))
    left = {name: mutation for name, mutation in MUTATIONS.items() if name not in killed}

    def stuck(_signal: int, _frame: object) -> None:
        raise StuckError

    signal.signal(signal.SIGVTALRM, stuck)
    for row in sorted(untied(read_record(record_path())), key=lambda row: len(row["steps"])):
        for name, mutation in list(left.items()):
            signal.setitimer(signal.ITIMER_VIRTUAL, 2.0)
            try:
                if differs(row, mutation):
                    killed[name] = row["name"]
                    del left[name]
            except StuckError:
                del left[name]
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    KILLED.write_text(json.dumps(killed, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    print(
        f"{len(killed)} of {len(MUTATIONS)} mutations fail a recorded scenario; not: {MUTATIONS.keys() - killed.keys()}"
    )


if __name__ == "__main__":
    main()
