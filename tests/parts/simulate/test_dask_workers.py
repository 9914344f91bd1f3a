"""Functions called by the workers of a real Dask scheduler: the same results, whatever is lost on the way."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path

import psutil  # type: ignore[import-untyped] # comes with Dask, without types
import pytest

from tests.parts.simulate.dask_cluster import DaskCluster, dask_cluster
from tests.places import ROOT
from training_platform.config.reading.finding import UserError
from training_platform.parts.simulate import dask_workers as module
from training_platform.parts.simulate.dask_plugin import installed_versions
from training_platform.parts.simulate.dask_workers import dask_workers

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(scope="module")
def idle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskCluster]:
    """Run a scheduler that has no worker until a test adds one."""
    with dask_cluster(tmp_path_factory.mktemp("dask"), 0) as cluster:
        yield cluster


@pytest.fixture
def cluster(idle: DaskCluster) -> DaskCluster:
    """Return a scheduler with a worker, whatever the test before killed."""
    if not alive(idle):
        idle.add_worker()
    return idle


def alive(cluster: DaskCluster) -> list[psutil.Process]:
    return [psutil.Process(worker.pid) for worker in cluster.workers if worker.poll() is None]


def nap(cluster: DaskCluster, seconds: float) -> list[None]:
    with dask_workers(cluster.address) as call:
        return call(time.sleep, [(seconds,)])


def kill(cluster: DaskCluster, victim: Callable[[DaskCluster], psutil.Process | None]) -> None:
    """Kill a process as soon as it exists, as a lack of memory or a spot VM would."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        process = victim(cluster)
        if process is not None:
            process.send_signal(signal.SIGKILL)
            process.wait(30)
            return
        time.sleep(0.05)
    raise AssertionError("the process was never started")


def process_of_call(cluster: DaskCluster) -> psutil.Process | None:
    return next((child for worker in alive(cluster) for child in worker.children()), None)


def worker_of_call(cluster: DaskCluster) -> psutil.Process | None:
    return next((worker for worker in alive(cluster) if worker.children()), None)


@pytest.mark.parametrize("victim", [process_of_call, worker_of_call])
def test_a_lost_process_or_worker_costs_another_try(
    cluster: DaskCluster, victim: Callable[[DaskCluster], psutil.Process | None]
) -> None:
    with ThreadPoolExecutor(1) as thread:
        results = thread.submit(nap, cluster, 1)
        kill(cluster, victim)
        if not alive(cluster):
            cluster.add_worker()

        assert results.result() == [None]


def test_a_lost_scheduler_is_an_error(tmp_path: Path) -> None:
    with dask_cluster(tmp_path, 1) as cluster, ThreadPoolExecutor(1) as thread:
        results = thread.submit(nap, cluster, 30)
        kill(cluster, lambda cluster: psutil.Process(cluster.scheduler.pid) if process_of_call(cluster) else None)

        with pytest.raises(UserError, match=r"gave no result: .+\."):
            results.result()


@pytest.mark.parametrize(
    ("function", "arguments", "message"),
    [
        pytest.param(os._exit, (3,), "NoResultError: exit code 3", id="ends"),
        pytest.param(divmod, (1, 0), "NoResultError: exit code 1, ZeroDivisionError", id="raises"),
    ],
)
def test_a_call_without_a_result_is_an_error(
    cluster: DaskCluster, function: Callable[..., object], arguments: tuple[int, ...], message: str
) -> None:
    with dask_workers(cluster.address) as call, pytest.raises(UserError, match=f"gave no result: {message}"):
        call(function, [arguments])


def test_a_worker_with_other_versions_calls_nothing(cluster: DaskCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = installed_versions()
    monkeypatch.setattr(module, "installed_versions", lambda: {**installed, "pydantic": "1.0"})

    with pytest.raises(UserError, match=rf"has pydantic {re.escape(installed['pydantic'])} in place of 1\.0"):
        nap(cluster, 0)


def test_no_scheduler_and_no_worker_are_a_sentence_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CONNECT_SECONDS", 1)

    with pytest.raises(UserError, match=r"^The scheduler tcp://127.0.0.1:1 cannot be reached"):
        dask_workers("tcp://127.0.0.1:1").__enter__()
    with dask_cluster(tmp_path, 0) as cluster, pytest.raises(UserError, match=r"has no worker after 1 s\.$"):
        nap(cluster, 0)


def test_an_address_of_no_scheduler_ends_the_process(tmp_path: Path) -> None:
    """In a process of its own, which a thread that never ends would keep."""
    addresses = ("nonsense", "http://127.0.0.1:9", "tcp://127.0.0.1", "nonsense://x")
    program = """if True:
        import sys
        from training_platform.config.reading.finding import UserError
        from training_platform.parts.simulate.dask_workers import dask_workers
        for address in sys.argv[1:]:
            try:
                dask_workers(address).__enter__()
            except UserError as error:
                print(error)
    """

    done = subprocess.run(
        [sys.executable, "-c", program, *addresses],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    sentences = done.stdout.splitlines()
    assert len(sentences) == len(addresses)
    for address, sentence in zip(addresses, sentences, strict=True):
        assert sentence.startswith(f"The scheduler {address} cannot be reached: ")


def test_the_package_is_sent_and_nothing_else() -> None:
    names = zipfile.ZipFile(BytesIO(module._archive())).namelist()

    assert {name.split("/")[0] for name in names} == {"training_platform"}
    assert "training_platform/parts/simulate/results.py" in names
    assert not [name for name in names if name.endswith(".pyc")]
