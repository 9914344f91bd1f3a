"""Processes that plan: which stack a death costs, and that none outlives the check."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from datetime import date
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from tests.places import ORGANISATION
from training_platform.checks.planning import planner as module
from training_platform.checks.planning.outcome import Outcome, encode
from training_platform.checks.planning.planner import Planner
from training_platform.checks.planning.workers import Answer, PlanTask, Workers
from training_platform.checks.run import run_check
from training_platform.checks.stacks import CheckOptions

TODAY = date(2026, 11, 21)
EMPTY = encode(Outcome(findings=(), branches=(), resources=(), outputs={}))


def dies_of_prod(connection: Connection) -> None:
    """Answer every job but that of prod, which kills the process as a lack of memory would."""
    while True:
        job: PlanTask = connection.recv()
        if job.name == "prod":
            os.kill(os.getpid(), signal.SIGKILL)
        connection.send(Answer(EMPTY))


def dies_at_once(connection: Connection) -> None:
    """End before any answer."""
    connection.close()
    sys.exit(3)


def test_a_process_that_dies_is_one_sentence_that_names_the_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "Workers", partial(Workers, target=dies_of_prod))

    report = run_check(ORGANISATION, CheckOptions(today=TODAY, planner=Planner(jobs=2)))

    assert report.failures == ("stack prod: the process that planned it died (signal SIGKILL).",)
    assert report.exit_code() == 2
    planned = {stack.name: stack.planned for stack in report.stacks}
    assert planned == {"dev": True, "dev-vision": True, "prod": False, "prod-nlp": False, "prod-vision": False}


def test_where_every_process_dies_each_stack_that_is_left_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "Workers", partial(Workers, target=dies_at_once))

    report = run_check(ORGANISATION, CheckOptions(today=TODAY, planner=Planner(jobs=2)), selected=["dev", "prod"])

    assert report.failures == tuple(
        f"stack {name}: the process that planned it died (exit code 3)." for name in ("dev", "prod")
    )


def test_stacks_that_no_process_is_left_for_are_named(monkeypatch: pytest.MonkeyPatch, copy: Path) -> None:
    monkeypatch.setattr(module, "Workers", partial(Workers, target=dies_at_once))
    for name in ("one", "two"):
        text = (copy / "stacks" / "Pulumi.dev.yaml").read_text(encoding="utf-8")
        (copy / "stacks" / f"Pulumi.{name}.yaml").write_text(text, encoding="utf-8")

    report = run_check(copy, CheckOptions(today=TODAY, planner=Planner(jobs=2)), selected=["dev", "one", "prod", "two"])

    assert len(report.failures) == 4
    assert report.failures[3] == "stack two: no process is left that could plan it."


def test_leaving_ends_every_process() -> None:
    with Workers(2, target=dies_of_prod) as workers:
        for name in ("dev", "staging"):
            workers.give(PlanTask(ORGANISATION, name, {}, inputs=False, production=False))
        processes = [worker.process for worker in workers._workers]

    assert len(processes) == 2
    assert [process.is_alive() for process in processes] == [False, False]


def test_an_interrupt_ends_the_check_and_all_of_its_processes(copy: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pids"
    os.mkfifo(pipe)
    program = f"import os, signal\nopen({str(pipe)!r}, 'w').write(str(os.getpid()))\nsignal.pause()\n"
    (copy / "__main__.py").write_text(program, encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "training_platform.cli.main",
        "check",
        "dev",
        "prod",
        "--no-cache",
        "--jobs",
        "2",
        "--root",
        str(copy),
    ]
    check = subprocess.Popen(command, cwd=ORGANISATION, start_new_session=True, stderr=subprocess.PIPE, text=True)
    planning = int(pipe.read_text(encoding="utf-8"))  # waits for a process that plans

    os.killpg(check.pid, signal.SIGINT)
    _, said = check.communicate(timeout=30)

    assert check.returncode == 130
    assert "Traceback" not in said
    with pytest.raises(ProcessLookupError):
        os.kill(planning, 0)


def test_what_a_process_keeps_loaded_stays_out_of_the_collectors_sight() -> None:
    program = """if True:
        import gc
        from training_platform.checks.planning.workers import _keep_loaded
        from training_platform.checks.process import collector_off
        with collector_off():
            pass
        assert gc.get_freeze_count() == 0
        _keep_loaded()
        with collector_off():
            pass
        print(gc.get_freeze_count() > 1000)
    """

    ran = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)

    assert ran.stdout == "True\n"
