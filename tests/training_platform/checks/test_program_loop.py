"""The loop in which programs are planned: calls are answered where they are made, and nothing outlives a plan."""

from __future__ import annotations

import asyncio
import gc
import signal
import sys
import threading
import traceback
from contextlib import suppress

import pulumi
import pulumi_gcp as gcp
import pytest

from training_platform.checks.planning.recorder import record, run_in_loop


def plan(program: object) -> None:
    record(program, project="training-platform", stack_name="dev")  # type: ignore[arg-type]


def test_a_call_is_answered_in_the_thread_that_makes_it() -> None:
    async def main() -> int:
        return await asyncio.get_running_loop().run_in_executor(None, threading.get_ident)

    assert run_in_loop(main()) == threading.get_ident()


def test_an_error_of_a_call_reaches_who_awaits_it() -> None:
    async def main() -> None:
        with pytest.raises(ZeroDivisionError):
            await asyncio.get_running_loop().run_in_executor(None, lambda: 1 // 0)

    run_in_loop(main())


def test_what_a_failed_program_left_waiting_ends_with_it() -> None:
    left: list[asyncio.Task[None]] = []

    async def main() -> None:
        left.append(asyncio.create_task(asyncio.Event().wait()))  # type: ignore[arg-type] # what it returns is dropped
        raise LookupError

    with pytest.raises(LookupError):
        run_in_loop(main())
    assert left[0].cancelled()


def interrupt(_: object) -> None:
    signal.raise_signal(signal.SIGINT)


def never(_: object) -> None:
    pytest.fail("the plan went on")


def test_an_interrupt_of_a_program_ends_its_plan() -> None:
    def program() -> None:
        network = gcp.compute.Network("net", name="given")
        interrupt(network)
        pulumi.export("name", network.name.apply(never))

    with pytest.raises(KeyboardInterrupt):
        plan(program)


def test_an_interrupt_while_outputs_are_waited_for_ends_the_plan() -> None:
    def program() -> None:
        interrupted = gcp.compute.Network("net", name="given").name.apply(interrupt)
        pulumi.export("name", interrupted.apply(never))

    with pytest.raises(KeyboardInterrupt):
        plan(program)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_error_keeps_its_traceback() -> None:
    def broken() -> None:
        gcp.compute.Network("net")
        raise LookupError("here")

    with pytest.raises(LookupError) as caught:
        plan(broken)

    assert traceback.extract_tb(caught.value.__traceback__)[-1].name == "broken"


@pytest.mark.parametrize("before", [None, 7])
@pytest.mark.parametrize("error", [None, pulumi.RunError("planned")])
def test_how_python_prints_tracebacks_and_collects_is_as_before(
    monkeypatch: pytest.MonkeyPatch, before: int | None, error: Exception | None
) -> None:
    monkeypatch.delattr(sys, "tracebacklimit", raising=False)
    if before:
        monkeypatch.setattr(sys, "tracebacklimit", before, raising=False)

    def program() -> None:
        assert (gc.isenabled(), sys.tracebacklimit) == (False, 1)
        if error:
            raise error

    with suppress(pulumi.RunError):
        plan(program)

    assert (gc.isenabled(), getattr(sys, "tracebacklimit", None)) == (True, before)
