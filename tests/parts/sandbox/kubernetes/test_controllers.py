"""Controllers that a sandbox can run, names of its clusters, and programs that end with their parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from training_platform.parts.sandbox.kubernetes.api_servers import ControlPlanes, context
from training_platform.parts.sandbox.kubernetes.api_store import IN_SANDBOX, ApiStore, release_values
from training_platform.parts.sandbox.kubernetes.controller_programs import PROGRAMS, find_binaries
from training_platform.parts.sandbox.kubernetes.object_store import HELM, Key, ObjectRefused, ObjectStore
from training_platform.parts.sandbox.kubernetes.tied_process import TiedProcess


def able(folder: Path, *kinds: str) -> list[str]:
    crds = folder / "crds"
    crds.mkdir(exist_ok=True)
    for kind in kinds:
        (crds / f"{kind}.yaml").write_text(f"kind: CustomResourceDefinition\nmetadata: {{name: {kind}}}\n")
    controllers = ApiStore(ControlPlanes(folder, folder), [crds], binaries=find_binaries(folder)).controllers
    for kind in kinds:
        (crds / f"{kind}.yaml").unlink()
    return controllers


@pytest.fixture
def nothing_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for program in PROGRAMS.values():
        monkeypatch.delenv(program.variable, raising=False)


@pytest.mark.usefixtures("nothing_named")
def test_without_programs_no_controller_runs(tmp_path: Path) -> None:
    assert able(tmp_path, *IN_SANDBOX.values()) == []


@pytest.mark.usefixtures("nothing_named")
@pytest.mark.parametrize("by_path", [True, False])
def test_a_controller_runs_whose_program_is_named_and_whose_kinds_are_defined(
    by_path: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / ("kueue" if by_path else "elsewhere")
    program.touch(mode=0o755)
    if not by_path:
        monkeypatch.setenv("TRAINING_PLATFORM_KUEUE", str(program))

    assert able(tmp_path, *IN_SANDBOX.values()) == ["kueue"]
    assert able(tmp_path, IN_SANDBOX["jobset"]) == []


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


ROOT = Path(__file__).parents[5]
SLEEPER = """\
import sys, time
from pathlib import Path
from training_platform.parts.sandbox.kubernetes.tied_process import TiedProcess
from training_platform.parts.sandbox.kubernetes.tied_process import TiedProcess
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
