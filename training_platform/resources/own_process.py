"""The process that plans stacks with the organisation's own code. ``own_worker`` starts it and requests the plans."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import IO, Any

from training_platform.config.model.stack import parse_stack
from training_platform.config.reading.finding import UserError, bug
from training_platform.config.reading.source import Source
from training_platform.config.workspace import Workspace, cross_check
from training_platform.resources.plan import PlanError
from training_platform.resources.stack_plan import stack_plan
from training_platform.resources.transfer import document_of_plan


def _main(root: Path) -> None:
    """Respond to each request until the requests end. Output of the organisation's code goes to standard error."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    requests: SimpleQueue[bytes] = SimpleQueue()
    Thread(target=_read_requests, args=(os.fdopen(os.dup(0), "rb"), requests), daemon=True).start()
    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    workspace = Workspace(root)
    while True:
        request = json.loads(requests.get())
        if "files" in request:
            workspace = _workspace(root, request["files"])
        answers.write(json.dumps(_answer(request, workspace)).encode() + b"\n")
        answers.flush()


def _read_requests(stream: IO[bytes], requests: SimpleQueue[bytes]) -> None:
    """Put each request into the queue. Exit as soon as the requesting process ends, even in the middle of a plan."""
    for line in stream:
        requests.put(line)
    os._exit(0)


def _workspace(root: Path, files: Mapping[str, tuple[str, Any]]) -> Workspace:
    stacks = {name: parse_stack(name, Source(file=file, value=value)) for name, (file, value) in files.items()}
    return cross_check(Workspace(root, stacks))


def _answer(request: Mapping[str, Any], workspace: Workspace) -> dict[str, Any]:
    stack = workspace.stacks[request["stack"]]
    try:
        plan = stack_plan(stack, workspace, request["organization"], own_code_here=True)
        assert plan is not None  # only stacks with a plan are requested
        return {"plan": document_of_plan(plan)}
    except PlanError as error:
        return {"mistake": {"message": str(error), "path": error.path, "line": error.line, "reason": error.reason}}
    except UserError as error:
        return {"refused": str(error)}
    except Exception as error:  # noqa: BLE001 # a bug of ours, or own code that changed ours
        return {"refused": bug(f"{stack.source.file} was not planned", error)}


if __name__ == "__main__":
    _main(Path(sys.argv[1]))
