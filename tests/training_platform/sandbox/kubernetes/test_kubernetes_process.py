"""The plugin as a process of its own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from training_platform.sandbox.kubernetes.client import Client, connect

ROOT = Path(__file__).parents[4]
NAMESPACE = "kubernetes:core/v1:Namespace"


@contextmanager
def running(*args: str) -> Iterator[tuple[subprocess.Popen[str], Client, int]]:
    """Start the plugin, and stop it with the signal that a shell sends."""
    command = [sys.executable, "-W", "error", "-m", "training_platform.sandbox.kubernetes", *args]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as plugin:
        assert plugin.stdout is not None
        port = int(plugin.stdout.readline())
        with connect(port) as client:
            client.configure(clusterIdentifier="tests")
            yield plugin, client, port
        plugin.send_signal(signal.SIGTERM)
        out, errors = plugin.communicate(timeout=20)
        assert (plugin.returncode, out, errors) == (0, "", "")


def test_objects_survive_a_restart_and_the_port_is_the_one_line_printed(tmp_path: Path) -> None:
    state = ("--state", str(tmp_path / "objects.json"))
    with running(*state) as (_, client, _):
        client.create(NAMESPACE, "ns", {"metadata": {"name": "vision"}})

    with running(*state, "--port", "0") as (_, client, _):
        assert client.read(NAMESPACE, "ns", "vision")[0] == "vision"


def test_only_the_loopback_interface_is_served() -> None:
    with running() as (_, _, port), pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.2", port), timeout=5)


def test_folders_of_definitions_are_used(schemas: Path) -> None:
    folders = ("--crds", str(schemas / "kueue"), "--crds", str(schemas / "jobset"))
    with running(*folders) as (_, client, _):
        for token in ("kubernetes:kueue.x-k8s.io/v1beta2:ClusterQueue", "kubernetes:jobset.x-k8s.io/v1alpha2:JobSet"):
            _, failures = client.check(token, "x", {"metadata": {"name": "x"}, "spec": {"wrong": 1}})
            assert "spec.wrong" in failures


def test_a_missing_folder_stops_the_start() -> None:
    command = [sys.executable, "-m", "training_platform.sandbox.kubernetes", "--crds", "absent"]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True, timeout=30)

    assert done.returncode != 0
    assert done.stdout == ""
    assert "no folder of CRDs at absent" in done.stderr
