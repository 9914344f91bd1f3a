"""A process that plans stacks with the organisation's own code, so that errors in this code cannot change the findings.

``own_resources.py`` may end its process, never return, change what it imports, or start a thread that never ends. The
process that runs the rules requests plans in JSON from this process, waits a limited time, and ends it. This protects
only against accidents: whoever may change the repository's code may also change the process that runs the rules.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import IO, Any, NamedTuple

from training_platform.config.model.stack import Stack
from training_platform.config.reading.finding import TRACEBACK, UserError
from training_platform.config.workspace import Workspace
from training_platform.resources.plan import OWN_RESOURCES, Plan, PlanError
from training_platform.resources.transfer import plan_of_document

_PROCESS = "training_platform.resources.own_process"
_SECONDS = 20
"""The time limit for one plan in seconds. A plan of 1,000 node pools needs a tenth of this time."""
_BYTES = 64 * 2**20
"""The maximum size of a plan as JSON, in bytes."""
_WORKERS = 4
"""The maximum number of processes. Each is for one repository; a comparison needs one for its base, too."""


class _WorkerKey(NamedTuple):
    """What identifies a process: a repository, the content of its own code, and whether error texts are shown."""

    root: Path
    program: bytes
    traceback: str | None


_workers: dict[_WorkerKey, _Worker] = {}


def plan_in_worker(stack: Stack, workspace: Workspace, organization: str) -> Plan:
    """Return the plan of a stack, including what the organisation's own code adds and changes.

    Raises PlanError for errors in that code, and UserError if no plan is returned within 20 s.
    """
    key = _WorkerKey(workspace.root, (workspace.root / OWN_RESOURCES).read_bytes(), traceback=os.environ.get(TRACEBACK))
    if key not in _workers:
        while len(_workers) >= _WORKERS:
            _workers.pop(next(iter(_workers))).end()
        _workers[key] = _Worker(workspace.root)
    try:
        answer = _workers[key].answer(stack, workspace, organization)
    except _NoAnswerError as error:
        _workers.pop(key).end()
        raise UserError(
            f"{OWN_RESOURCES} {error} for stack {stack.name}, so the plan of the stack is not known."
        ) from error
    if sentence := answer.get("refused"):
        raise UserError(sentence)
    if mistake := answer.get("mistake"):
        raise PlanError(mistake["message"], tuple(mistake["path"]), line=mistake["line"], reason=mistake["reason"])
    try:
        return plan_of_document(answer["plan"])
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise UserError(f"{OWN_RESOURCES} changes the format of plans: {error}.") from error


class _NoAnswerError(Exception):
    """The process returned no plan. The message describes what the organisation's code does."""


class _Worker:
    """A process that plans stacks of a repository."""

    def __init__(self, root: Path) -> None:
        package = Path(__file__).parents[2]
        paths = [str(package), *filter(None, [os.environ.get("PYTHONPATH")])]
        self._process = subprocess.Popen(  # noqa: S603 # this interpreter, and arguments of ours
            [sys.executable, "-P", "-m", _PROCESS, str(root)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._answers: SimpleQueue[bytes] = SimpleQueue()
        self._workspace: Workspace | None = None
        assert self._process.stdout is not None
        Thread(target=_read_answers, args=(self._process.stdout, self._answers), daemon=True).start()

    def answer(self, stack: Stack, workspace: Workspace, organization: str) -> dict[str, Any]:
        """Return the response to a request for a plan. Raises _NoAnswerError."""
        request: dict[str, Any] = {"stack": stack.name, "organization": organization}
        if workspace is not self._workspace:
            request["files"] = {row.name: [row.source.file, row.source.value] for row in workspace.stacks.values()}
            self._workspace = workspace
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
            line = self._answers.get(timeout=_SECONDS)
        except BrokenPipeError:
            line = b""
        except Empty:
            raise _NoAnswerError(f"takes more than {_SECONDS} s") from None
        if len(line) > _BYTES:
            raise _NoAnswerError(f"makes a plan of more than {_BYTES // 2**20} MiB")
        try:
            answer = json.loads(line)
        except ValueError:
            raise _NoAnswerError("ends the planning process") from None
        if not isinstance(answer, dict):
            raise _NoAnswerError("changes the format of plans")
        return answer

    def end(self) -> None:
        """End the process, even in the middle of a plan."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()


def _read_answers(stream: IO[bytes], answers: SimpleQueue[bytes]) -> None:
    """Put each line into the queue, and an empty line when the process ends. Lines that are too long are cut."""
    line = b"\n"
    while line.endswith(b"\n"):
        line = stream.readline(_BYTES + 1)
        answers.put(line)


@atexit.register
def _end_workers() -> None:
    while _workers:
        _workers.popitem()[1].end()
