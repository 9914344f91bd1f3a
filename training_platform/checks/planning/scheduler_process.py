"""The process beside a worker that plans, or calls another function: run from an unpacked archive, by the code in it.

A job and an answer are a line of JSON each; a call and its result are pickled, for the same versions. It ends with its
input, and after ``IDLE_SECONDS`` without a job, so that a client that was killed leaves none behind for long.
"""

from __future__ import annotations

import base64
import json
import os
import pickle
import select
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from training_platform.checks.planning.outcome import packed, unpacked
from training_platform.checks.planning.workers import Answer, PlanTask, plan

IDLE_SECONDS = 300


def job_line(job: PlanTask) -> bytes:
    """Return a job as a line; its root stays out, since it is another where it is planned."""
    return json.dumps({**job._asdict(), "root": "", "outputs": packed(job.outputs)}).encode() + b"\n"


def call_line(function: Callable[..., object], arguments: Sequence[object]) -> bytes:
    """Return the call of a function of this package as a line."""
    return json.dumps({"call": base64.b64encode(pickle.dumps((function, arguments))).decode()}).encode() + b"\n"


def result_of(data: bytes) -> Any:
    """Read the result of a call from its answer."""
    return pickle.loads(base64.b64decode(data))  # noqa: S301 # workers are as trusted as CI


def answer_of(line: bytes) -> Answer:
    """Read an answer back."""
    answer: dict[str, Any] = json.loads(line)
    data = answer["data"]
    return Answer(None if data is None else data.encode(), answer["failure"])


def main() -> None:
    """Answer the jobs of standard input; what the program prints goes to standard error."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    jobs = os.fdopen(0, "rb", buffering=0)  # so that waiting for the descriptor waits for the next line
    while select.select([jobs], [], [], IDLE_SECONDS)[0]:
        line = jobs.readline()
        if not line:
            return
        job = json.loads(line)
        if "call" in job:
            function, arguments = result_of(job["call"].encode())
            answer = Answer(base64.b64encode(pickle.dumps(function(*arguments))))
        else:
            answer = plan(PlanTask(**{**job, "root": Path.cwd(), "outputs": unpacked(job["outputs"])}))
        text = None if answer.data is None else answer.data.decode()
        answers.write(json.dumps({"data": text, "failure": answer.failure}).encode() + b"\n")
        answers.flush()


if __name__ == "__main__":
    main()
