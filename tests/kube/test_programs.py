"""The programs of tests: which controllers run, names of clusters, and programs that end with their parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from local_google_cloud.kubernetes import HELM, Key, ObjectRefused, ObjectStore
from tests.kube.api_servers import ControlPlanes, context
from tests.kube.api_store import release_values
from tests.kube.tied_process import TiedProcess


def test_controllers_run_by_the_helm_releases_of_their_charts() -> None:
    releases = ObjectStore()
    keys = {
        "kueue": Key(HELM, "Release", "kube-system", "queues"),
        "jobset": Key(HELM, "Release", "kube-system", "sets"),
        "other": Key(HELM, "Release", "kube-system", "other"),
        "lws": Key("example.com", "Release", "kube-system", "lws"),
    }
    for chart, key in keys.items():
        values = {"values": {"of": chart}} if chart != "jobset" else {}
        releases.create("main", key, {**values, "status": {"chart": chart}}, "releases")

    assert release_values(releases, "main", ["kueue", "jobset", "lws"]) == {"kueue": {"of": "kueue"}, "jobset": {}}
    assert release_values(releases, "elsewhere", ["kueue"]) == {}


@pytest.mark.parametrize(
    ("cluster", "name"),
    [
        ("projects/example-lab/locations/us-west4/clusters/lab-main", "gke_example-lab_us-west4_lab-main"),
        ("https://127.0.0.1:1", "cluster"),
    ],
)
def test_a_cluster_is_called_as_gcloud_calls_it(cluster: str, name: str) -> None:
    assert context(cluster) == name


ROOT = Path(__file__).parents[2]
SLEEPER = """\
import sys, time
from pathlib import Path
from tests.kube.tied_process import TiedProcess
TiedProcess(["sh", "-c", "echo $$ > {pid}; exec sleep 60"], Path("{log}"))
time.sleep(60)
"""


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def is_there(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:  # also where it ends between the opening of the file and its reading
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def test_a_program_ends_when_it_is_told_and_its_words_are_in_the_log(tmp_path: Path) -> None:
    program = TiedProcess(["sh", "-c", "echo hello; exec sleep 60"], tmp_path / "log")
    wait_until(lambda: program.last_words() == "hello")
    assert not program.ended

    program.close()

    assert program.ended


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
def test_a_program_ends_when_its_starter_is_killed(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    script = SLEEPER.format(pid=file, log=tmp_path / "log")
    with subprocess.Popen([sys.executable, "-c", script], cwd=ROOT) as starter:
        wait_until(lambda: file.exists() and file.read_text() != "")
        pid = int(file.read_text())
        assert is_there(pid)

        os.kill(starter.pid, signal.SIGKILL)
        starter.wait()

    wait_until(lambda: not is_there(pid))


def test_a_server_that_does_not_start_is_refused_with_its_last_words(tmp_path: Path) -> None:
    etcd = tmp_path / "etcd"
    etcd.write_text("#!/bin/sh\necho no such flag\nexit 2\n")
    etcd.chmod(0o755)

    with (
        ControlPlanes(tmp_path, tmp_path / "data") as planes,
        pytest.raises(ObjectRefused, match=r"etcd did not start; .*etcd\.log ends with: no such flag"),
    ):
        planes.server("a")
