"""Stacks planned by the workers of a real Dask scheduler: the same report, whatever is lost on the way."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from io import BytesIO
from pathlib import Path

import psutil  # type: ignore[import-untyped] # comes with Dask, without types
import pytest
from click.testing import CliRunner

from benchmarks.organisation import Dask, dask
from tests.training_platform.checks.planning.test_same_report import alone, spoil, texts
from training_platform.checks.planning import scheduler
from training_platform.checks.planning.planner import Planner
from training_platform.checks.planning.scheduler import content_of
from training_platform.checks.planning.scheduler_plugin import installed_versions
from training_platform.checks.report import Report
from training_platform.checks.run import run_check
from training_platform.checks.stacks import CheckOptions
from training_platform.cli.main import app

pytestmark = pytest.mark.timeout(300)

TODAY = date(2026, 11, 21)


@pytest.fixture(scope="module")
def idle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dask]:
    """Run a scheduler that has no worker until a test asks for one."""
    with dask(tmp_path_factory.mktemp("dask"), 0) as started:
        yield started


@pytest.fixture
def cluster(idle: Dask) -> Dask:
    """Return a scheduler with a worker, whatever the test before killed."""
    if not alive(idle):
        idle.grow()
    return idle


def alive(cluster: Dask) -> list[psutil.Process]:
    return [psutil.Process(worker.pid) for worker in cluster.workers if worker.poll() is None]


def check(root: Path, address: str, *stacks: str, cache: Path | None = None) -> Report:
    planner = Planner(scheduler=address, cache=cache)
    return run_check(root, CheckOptions(today=TODAY, planner=planner), selected=stacks)


def plant(root: Path, line: str) -> None:
    """Let the program of a repository begin with a line."""
    program = root / "__main__.py"
    program.write_text(
        program.read_text(encoding="utf-8").replace("\nimport ", f"\n{line}\nimport ", 1), encoding="utf-8"
    )


def test_no_scheduler_and_no_worker_are_a_sentence_each(
    copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduler, "CONNECT_SECONDS", 1)
    arguments = ["check", "dev", "--no-cache", "--root", str(copy), "--scheduler"]

    nobody = CliRunner().invoke(app, [*arguments, "tcp://127.0.0.1:1"])
    nonsense = CliRunner().invoke(app, [*arguments, "nonsense://x"])
    with dask(tmp_path, 0) as idle:
        waiting = CliRunner().invoke(app, [*arguments, idle.address])

    assert [each.exit_code for each in (nobody, nonsense, waiting)] == [2, 2, 2]
    assert "The scheduler tcp://127.0.0.1:1 cannot be reached" in nobody.stderr
    assert "The scheduler nonsense://x cannot be reached" in nonsense.stderr
    assert waiting.stderr.strip().endswith(f"The scheduler {idle.address} has no worker after 1 s.")


def test_the_report_is_the_same_as_by_this_machine_and_is_kept(copy: Path, tmp_path: Path, cluster: Dask) -> None:
    spoil(copy)
    cache = tmp_path / "cache"
    cluster.grow()
    here = alone(copy)

    assert texts(check(copy, cluster.address, cache=cache)) == here
    assert texts(check(copy, "tcp://127.0.0.1:1", cache=cache)) == here  # nothing is left to plan
    assert "tpu-topology" in here["text"]


@pytest.fixture
def small(copy: Path) -> Path:
    """Return a repository whose program is planned soon, for tests of who plans it."""
    (copy / "__main__.py").write_text("import pulumi\n\npulumi.export('planned', True)\n", encoding="utf-8")
    return copy


def lose(cluster: Dask, victim: Callable[[Dask], psutil.Process | None]) -> None:
    """Kill a process as soon as it is there, as a lack of memory or a spot VM would."""
    deadline = time.monotonic() + 200
    while time.monotonic() < deadline:
        found = victim(cluster)
        if found is not None:
            found.send_signal(signal.SIGKILL)
            return
        time.sleep(0.05)
    raise AssertionError("it never came")


def planner_of(cluster: Dask) -> psutil.Process | None:
    """Return the process that plans for a worker."""
    return next((child for worker in alive(cluster) for child in worker.children()), None)


def worker_that_plans(cluster: Dask) -> psutil.Process | None:
    """Return a worker that plans."""
    return next((worker for worker in alive(cluster) if worker.children()), None)


@pytest.mark.parametrize("victim", [planner_of, worker_that_plans])
def test_what_is_lost_costs_another_try(
    small: Path, cluster: Dask, victim: Callable[[Dask], psutil.Process | None]
) -> None:
    here = alone(small, "dev")
    with ThreadPoolExecutor(1) as thread:
        report = thread.submit(check, small, cluster.address, "dev")
        lose(cluster, victim)
        if not alive(cluster):
            cluster.grow()

        assert texts(report.result()) == here


def test_a_scheduler_that_is_lost_leaves_stacks_unchecked(small: Path, tmp_path: Path) -> None:
    with dask(tmp_path, 1) as mortal, ThreadPoolExecutor(1) as thread:
        report = thread.submit(check, small, mortal.address, "dev")
        lose(mortal, lambda cluster: psutil.Process(cluster.scheduler.pid) if planner_of(cluster) else None)

        assert re.fullmatch(r"stack dev: no worker planned it: .+\.", report.result().failures[0])
        assert report.result().exit_code() == 2


def test_a_failure_of_what_was_sent_is_one_sentence_for_each_stack(
    copy: Path, cluster: Dask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduler, "RETRIES", 1)  # each kills a process that has loaded Pulumi
    plant(
        copy,
        "import os, pulumi\nif pulumi.get_stack() == 'prod': os.kill(os.getpid(), 9)\nraise RuntimeError('planted')",
    )

    report = check(copy, cluster.address, "dev", "prod")

    raised, killed = report.failures
    assert re.fullmatch(r"stack dev: the program stopped at .+planted.+\.", raised)
    assert killed == "stack prod: no worker planned it: ProcessDiedError: exit code -9."
    assert report.exit_code() == 2


def test_a_worker_with_other_versions_plans_nothing(copy: Path, cluster: Dask, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = installed_versions()
    monkeypatch.setattr(scheduler, "installed_versions", lambda: {**installed, "pulumi": "3.1.0"})

    report = check(copy, cluster.address, "dev")

    assert re.fullmatch(
        rf"stack dev: worker tcp://\S+ has pulumi {re.escape(installed['pulumi'])} in place of 3\.1\.0\.",
        report.failures[0],
    )


def test_an_address_of_no_scheduler_ends_the_command(copy: Path) -> None:
    """In a process of its own, which a thread that never ends would keep."""
    addresses = ("nonsense", "http://127.0.0.1:9", "tcp://127.0.0.1")
    program = """if True:
        import sys
        from click.testing import CliRunner
        from training_platform.cli.main import app
        for address in sys.argv[1:]:
            done = CliRunner().invoke(app, ["check", "dev", "--no-cache", "--scheduler", address])
            print(done.exit_code, done.stderr, end="")
    """

    done = subprocess.run(
        [sys.executable, "-c", program, *addresses], cwd=copy, capture_output=True, text=True, timeout=60, check=True
    )

    said = done.stdout.splitlines()
    assert len(said) == len(addresses)
    for address, line in zip(addresses, said, strict=True):
        assert re.fullmatch(rf"2 training-platform: The scheduler {address} cannot be reached: .+\.", line)


def test_the_content_is_what_planning_needs_and_nothing_else(copy: Path) -> None:
    (copy / "stacks" / "notes.txt").write_text("a secret")
    first, again = content_of(copy), content_of(copy)
    names = zipfile.ZipFile(BytesIO(first.archive)).namelist()
    edited = copy / "stacks" / "Pulumi.dev.yaml"
    edited.write_text(edited.read_text(encoding="utf-8") + "\n", encoding="utf-8")

    assert first == again
    assert content_of(copy).digest != first.digest
    assert {name.split("/")[0] for name in names} == {
        "Pulumi.yaml", "__main__.py", "modules", "stacks", "training_platform",
    }  # fmt: skip
    assert {name for name in names if name.startswith("stacks/")} == {
        f"stacks/Pulumi.{stack}.yaml" for stack in ("dev", "dev-vision", "prod", "prod-nlp", "prod-vision")
    }


def test_fast_plans_nowhere(copy: Path) -> None:
    done = CliRunner().invoke(app, ["check", "--fast", "--scheduler", "tcp://127.0.0.1:1", "--root", str(copy)])

    assert done.exit_code == 2
    assert "--scheduler is for planning" in done.stderr
