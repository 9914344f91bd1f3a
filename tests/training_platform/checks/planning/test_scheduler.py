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
from tests.training_platform.checks.planning.test_same_report import spoil, texts
from training_platform.checks.planning import scheduler
from training_platform.checks.planning.planner import Planner
from training_platform.checks.planning.scheduler import content_of
from training_platform.checks.report import Report
from training_platform.checks.run import run_check
from training_platform.checks.stacks import CheckOptions
from training_platform.cli.main import app

pytestmark = pytest.mark.timeout(300)

TODAY = date(2026, 11, 21)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dask]:
    """Run a scheduler with one worker, and more once a test wants them."""
    with dask(tmp_path_factory.mktemp("dask"), 1) as started:
        yield started


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[Dask]:
    """Run a scheduler with one worker of a test's own, which kills parts of it."""
    with dask(tmp_path, 1) as started:
        yield started


def check(root: Path, address: str, *stacks: str, cache: Path | None = None) -> Report:
    planner = Planner(scheduler=address, cache=cache)
    return run_check(root, CheckOptions(today=TODAY, planner=planner), selected=stacks)


def plant(root: Path, line: str) -> None:
    """Let the program of a repository begin with a line."""
    program = root / "__main__.py"
    program.write_text(
        program.read_text(encoding="utf-8").replace("\nimport ", f"\n{line}\nimport ", 1), encoding="utf-8"
    )


def test_the_report_is_the_same_as_by_this_machine_and_is_kept(copy: Path, tmp_path: Path, cluster: Dask) -> None:
    spoil(copy)
    cache = tmp_path / "cache"
    cluster.grow()
    alone = texts(run_check(copy, CheckOptions(today=TODAY, planner=Planner(jobs=1))))

    assert texts(check(copy, cluster.address, cache=cache)) == alone
    assert texts(check(copy, "tcp://127.0.0.1:1", cache=cache)) == alone  # nothing is left to plan
    assert "tpu-topology" in alone["text"]


def test_what_plans_is_what_was_sent(copy: Path, cluster: Dask) -> None:
    plant(copy, 'raise RuntimeError("planted")')

    report = check(copy, cluster.address, "dev")

    assert len(report.failures) == 1
    assert re.fullmatch(r"stack dev: the program stopped at .+planted.+\.", report.failures[0])
    assert report.exit_code() == 2


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
    """Return the process that plans for the worker."""
    return next(iter(psutil.Process(cluster.workers[0].pid).children()), None)


def worker_that_plans(cluster: Dask) -> psutil.Process | None:
    """Return the worker, once it plans."""
    return psutil.Process(cluster.workers[0].pid) if planner_of(cluster) else None


def scheduler_at_work(cluster: Dask) -> psutil.Process | None:
    """Return the scheduler, once its worker plans."""
    return psutil.Process(cluster.scheduler.pid) if planner_of(cluster) else None


@pytest.mark.parametrize("victim", [planner_of, worker_that_plans])
def test_what_is_lost_costs_another_try(
    copy: Path, mortal: Dask, victim: Callable[[Dask], psutil.Process | None]
) -> None:
    alone = texts(run_check(copy, CheckOptions(today=TODAY, planner=Planner(jobs=1)), selected=["dev"]))
    with ThreadPoolExecutor(1) as thread:
        report = thread.submit(check, copy, mortal.address, "dev")
        lose(mortal, victim)
        mortal.grow()

        assert texts(report.result()) == alone


def test_a_scheduler_that_is_lost_leaves_stacks_unchecked(copy: Path, mortal: Dask) -> None:
    with ThreadPoolExecutor(1) as thread:
        report = thread.submit(check, copy, mortal.address, "dev")
        lose(mortal, scheduler_at_work)

        assert re.fullmatch(r"stack dev: no worker planned it: .+\.", report.result().failures[0])
        assert report.result().exit_code() == 2


def test_a_program_that_kills_every_process_is_one_sentence(copy: Path, cluster: Dask) -> None:
    plant(copy, "import os; os.kill(os.getpid(), 9)")

    report = check(copy, cluster.address, "dev")

    assert report.failures == ("stack dev: no worker planned it: ProcessDiedError: exit code -9.",)
    assert report.exit_code() == 2


def test_a_worker_with_other_versions_plans_nothing(copy: Path, cluster: Dask, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = scheduler.installed_versions()
    monkeypatch.setattr(scheduler, "installed_versions", lambda: {**installed, "pulumi": "3.1.0"})

    report = check(copy, cluster.address, "dev")

    assert re.fullmatch(
        rf"stack dev: worker tcp://\S+ has pulumi {re.escape(installed['pulumi'])} in place of 3\.1\.0\.",
        report.failures[0],
    )


def test_no_scheduler_and_no_worker_are_a_sentence_each(
    copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduler, "CONNECT_SECONDS", 1)
    arguments = ["check", "dev", "--no-cache", "--root", str(copy), "--scheduler"]

    nobody = CliRunner().invoke(app, [*arguments, "tcp://127.0.0.1:1"])
    nonsense = CliRunner().invoke(app, [*arguments, "nonsense://x"])
    with dask(tmp_path, 0) as empty:
        idle = CliRunner().invoke(app, [*arguments, empty.address])

    assert [each.exit_code for each in (nobody, nonsense, idle)] == [2, 2, 2]
    assert "The scheduler tcp://127.0.0.1:1 cannot be reached" in nobody.stderr
    assert "The scheduler nonsense://x cannot be reached" in nonsense.stderr
    assert idle.stderr.strip().endswith(f"The scheduler {empty.address} has no worker after 1 s.")


@pytest.mark.parametrize("address", ["nonsense", "http://127.0.0.1:9", "tcp://127.0.0.1"])
def test_an_address_of_no_scheduler_ends_the_command(copy: Path, address: str) -> None:
    command = [sys.executable, "-m", "training_platform.cli.main", "check", "dev", "--no-cache", "--scheduler", address]

    done = subprocess.run(command, cwd=copy, capture_output=True, text=True, timeout=60, check=False)

    assert done.returncode == 2
    assert re.fullmatch(rf"training-platform: The scheduler {address} cannot be reached: .+\.\n", done.stderr)


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
