"""The event loop in which a program is planned: nothing is waited for, since the recorder answers at once."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeVar, TypeVarTuple

from training_platform.checks.planning.garbage_collector import collector_off
from training_platform.checks.signals import ENDING

Result = TypeVar("Result")
Arguments = TypeVarTuple("Arguments")


def run_in_loop(main: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine in a loop of its own; what it leaves waiting ends with it, and would warn in the next plan.

    Raises KeyboardInterrupt after an interrupt, once the program's own code is through.
    """
    loop = _Loop()
    asyncio.set_event_loop(loop)
    try:
        with collector_off(), _no_stack_traces(), _interrupts_stop(loop):
            try:
                return loop.run_until_complete(main)
            finally:
                loop.run_until_complete(_settle())
    finally:
        asyncio.set_event_loop(None)
        loop.close()


async def _settle() -> None:
    """End all tasks that are left."""
    waiting = asyncio.all_tasks() - {asyncio.current_task()}
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)


class _Loop(asyncio.SelectorEventLoop):
    """A loop that calls the recorder where the SDK hands a call over to a thread, to wait for an engine's answer.

    A thread that has nothing to wait for costs a tenth of a plan.
    """

    def __init__(self) -> None:
        super().__init__()
        self.set_exception_handler(_drop_repeated)

    def run_in_executor(
        self, _executor: Executor | None, func: Callable[[*Arguments], Result], *args: *Arguments
    ) -> asyncio.Future[Result]:
        """Return a future that is done: with the result of ``func``, or with its error."""
        answer: asyncio.Future[Result] = self.create_future()
        try:
            answer.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 # whoever awaits the future raises it
            answer.set_exception(error)
        return answer


def _drop_repeated(_loop: asyncio.AbstractEventLoop, _context: dict[str, Any]) -> None:
    """Say nothing of errors that nobody awaited: they repeat, for every output, the one that was raised."""


@contextmanager
def _interrupts_stop(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """Let an interrupt stop a loop, and raise it then: raised within the SDK it would be caught, and the plan go on."""
    if threading.current_thread() is not threading.main_thread():  # others never get one
        yield
        return
    came: list[int] = []

    def stop(number: int, _frame: FrameType | None) -> None:
        came.append(number)
        loop.call_soon_threadsafe(loop.stop)

    handled = {number: signal.getsignal(number) for number in (signal.SIGINT, *ENDING)}
    before = {number: handler for number, handler in handled.items() if callable(handler)}
    for number in before:
        signal.signal(number, stop)
    try:
        yield
    except RuntimeError:  # what a stopped loop raises
        if not came:
            raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if came:
        signal.raise_signal(came[0])
        raise KeyboardInterrupt


@contextmanager
def _no_stack_traces() -> Iterator[None]:
    """Let the SDK see one frame of the stack: for the engine's messages it describes all of them for each resource.

    That is a seventh of a plan, for nothing. Errors keep their tracebacks; whoever prints one does so afterwards.
    """
    before = getattr(sys, "tracebacklimit", None)
    sys.tracebacklimit = 1
    try:
        yield
    finally:
        sys.tracebacklimit = before
