"""``job exec``, ``top`` and ``port-forward`` by kubectl, a real API server and kwok's kubelet, with a member's rights.

Nodes are objects: kwok runs each command on this machine.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from tests.kube.api_servers import free_port
from tests.parts.jobs.runs.gke_cluster import CLUSTER, TEAM, Cluster, until
from training_platform.cli.main import app
from training_platform.resources.tenancy import MEMBER_RULES

pytestmark = [pytest.mark.kube, pytest.mark.timeout(300)]

KWOK = "TRAINING_PLATFORM_KWOK"  # sigs.k8s.io/kwok, cmd/kwok
NVIDIA_SMI = '#!/bin/sh\necho "0, 97, 61440, 81559"\necho "1, 3, 12, 81559"\n'
Member = Callable[..., Result]


@pytest.fixture(scope="module")
def kubelet(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Let kwok answer for the kubelet of each node; returns kwok's port."""
    if KWOK not in os.environ:
        pytest.skip(f"no program is named by {KWOK}")
    folder = tmp_path_factory.mktemp("kubelet")
    programs = folder / "bin"
    programs.mkdir()
    (programs / "nvidia-smi").write_text(NVIDIA_SMI)
    (programs / "nvidia-smi").chmod(0o755)
    port = free_port()
    path = [{"name": "PATH", "value": f"{programs}:{os.environ['PATH']}"}]
    none = {"resourceRef": {"apiGroup": "v1", "kind": "Node"}, "selector": {"matchLabels": {"no": "node"}}, "next": {}}
    answers = {
        "Stage": none,  # kwok wants one, and is to change no object here
        "ClusterExec": {"execs": [{"local": {"envs": path}}]},
        "ClusterPortForward": {"forwards": [{"command": ["cat"]}]},  # of every port: what is sent is sent back
    }
    documents = [
        {"apiVersion": "kwok.x-k8s.io/v1alpha1", "kind": kind, "metadata": {"name": "all"}, "spec": spec}
        for kind, spec in answers.items()
    ]
    (folder / "kwok.yaml").write_text(yaml.safe_dump_all(documents))
    (folder / "kubeconfig").write_text(cluster.server.kubeconfig())
    certificate = cluster.server.certificate
    options = {
        "kubeconfig": folder / "kubeconfig", "config": folder / "kwok.yaml", "manage-single-node": "none",
        "server-address": f"127.0.0.1:{port}", "tls-cert-file": certificate,
        "tls-private-key-file": certificate.with_suffix(".key"),
    }  # fmt: skip
    for index in range(8):
        address = {"type": "InternalIP", "address": "127.0.0.1"}
        status = {"addresses": [address], "daemonEndpoints": {"kubeletEndpoint": {"Port": port}}}
        cluster.patch(f"/api/v1/nodes/h100-{index}/status", {"status": status})
    words = [os.environ[KWOK], *(f"--{name}={value}" for name, value in options.items())]
    with (folder / "kwok.log").open("wb") as log, subprocess.Popen(words, stdout=log, stderr=log) as kwok:
        yield port
        kwok.terminate()


def config_of(cluster: Cluster, namespace: str, name: str, folder: Path) -> Path:
    """Write the kubeconfig of somebody with a member's rights in a namespace, with a token that the server issued."""
    with suppress(AssertionError):  # it may be there already
        cluster.post("/api/v1/namespaces", {"metadata": {"name": namespace}})
    cluster.post(f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": name}})
    rbac_path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
    rules = [{"apiGroups": [rule.api_group], "resources": rule.resources, "verbs": rule.verbs} for rule in MEMBER_RULES]
    cluster.post(f"{rbac_path}/roles", {"metadata": {"name": name}, "rules": rules})
    subject = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}
    cluster.post(f"{rbac_path}/rolebindings", {"metadata": {"name": name}, "subjects": [subject], "roleRef": role})
    token_path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
    config = json.loads(cluster.server.kubeconfig())
    config["users"][0]["user"] = {"token": cluster.post(token_path, {"spec": {}})["status"]["token"]}
    config["contexts"][0]["name"] = config["current-context"] = f"lab-{CLUSTER}"
    path = folder / name
    path.write_text(json.dumps(config))
    return path


@pytest.fixture(scope="module")
def configs(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return the kubeconfigs of a member of the team and of a member of another team."""
    folder = tmp_path_factory.mktemp("members")
    return {name: config_of(cluster, team, name, folder) for name, team in (("ada", TEAM), ("grace", "nlp"))}


@pytest.fixture
def run(submit: Callable[..., str], cluster: Cluster, kubelet: int) -> str:
    """Return a run of two nodes whose containers run."""
    assert kubelet
    name = submit()
    placed = until(
        lambda: cluster.pods(name), lambda pods: [bool(pod["spec"].get("nodeName")) for pod in pods] == [True] * 2
    )
    for pod in placed:
        cluster.says(pod, "Running")
    return name


@pytest.fixture
def inside(
    root: Path, configs: dict[str, Path], capfd: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Return a function that runs a command as a person, and returns exit code, output and errors."""

    def run(who: str, command: str, *arguments: str) -> tuple[int, str, str]:
        where = ["--root", str(root), "--kubeconfig", str(configs[who]), "--local-cloud", "http://127.0.0.1:9"]
        result = CliRunner().invoke(app, ["job", command, *where, *arguments])
        kubectl_output = capfd.readouterr()
        return result.exit_code, result.stdout + kubectl_output.out, result.stderr + kubectl_output.err

    return run


Inside = Callable[..., tuple[int, str, str]]


def test_a_member_runs_a_command_in_a_container_of_the_run(inside: Inside, run: str) -> None:
    code, out, errors = inside("ada", "exec", run, "--", "sh", "-c", "echo here; exit 0")
    failed, *_ = inside("ada", "exec", run, "--node", "1", "--", "sh", "-c", "exit 3")

    assert (code, out) == (0, "here\n"), errors
    assert failed == 1  # kwok says that a command failed, and not with which code


def test_a_member_sees_how_busy_the_gpus_are(inside: Inside, run: str) -> None:
    code, out, errors = inside("ada", "top", run, "--format", "json")

    assert code == 0, errors
    rows = json.loads(out)
    assert [(row["gpu"], row["busy_percent"]) for row in rows] == [("0", "97"), ("1", "3")] * 2


@pytest.mark.parametrize("websockets", ["true", "false"])  # kubectl of today, and before 1.31
def test_a_member_reaches_a_port_of_a_container(
    root: Path, configs: dict[str, Path], run: str, monkeypatch: pytest.MonkeyPatch, websockets: str
) -> None:
    monkeypatch.setenv("KUBECTL_PORT_FORWARD_WEBSOCKETS", websockets)
    where = ["--root", str(root), "--kubeconfig", str(configs["ada"]), "--local-cloud", "http://127.0.0.1:9"]
    command = [sys.executable, "-m", "training_platform.cli.main", "job", "port-forward", *where, run, ":6006"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as forward:  # not killed: kubectl would stay
        try:
            assert forward.stdout is not None
            first_line = forward.stdout.readline()
            port = int(first_line.removeprefix("Forwarding from 127.0.0.1:").removesuffix(" -> 6006\n"))
            with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
                connection.sendall(b"!")
                answer = connection.recv(1)  # no more: kwok ends a stream only once both sides have
        finally:
            forward.terminate()

    assert answer == b"!"


@pytest.mark.parametrize(
    "command", [("exec", "--", "true"), ("top",), ("port-forward", "6006")], ids=lambda row: row[0]
)
def test_a_member_of_another_team_reaches_nothing_of_the_run(
    inside: Inside, run: str, command: tuple[str, ...]
) -> None:
    name, *arguments = command

    code, out, errors = inside("grace", name, run, *arguments)

    assert (code, out) == (2, "")
    assert "grace" in errors or "not found" in errors or "may not" in errors, errors
