"""What pipelines ask clusters before they rest on them: whether they answer, and for objects that no stack has."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

import pytest

from tests.pipelines.conftest import run, stacks_of
from training_platform.catalog import CHARTS

KUEUE = "/apis/kueue.x-k8s.io/v1beta2"
ROWS = [{"kind": "ClusterQueue", "name": "clusterqueues"}, {"kind": "LocalQueue", "name": "localqueues"}]
QUEUE = {"type": "kubernetes:kueue.x-k8s.io/v1beta2:ClusterQueue", "id": "ours", "urn": "urn:q", "custom": True}


class Cluster(NamedTuple):
    """The answers of an API server by path, its state file, and the server."""

    answers: dict[str, Any]
    state: Path
    server: ThreadingHTTPServer


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """An API server with Kueue and one queue, which the state has too."""
    answers: dict[str, Any] = {
        "/api/v1": {"resources": []},
        KUEUE: {"resources": [{**row, "namespaced": row["kind"] == "LocalQueue"} for row in ROWS]},
        f"{KUEUE}/clusterqueues": {"items": [{"metadata": {"name": "ours"}}]},
        f"{KUEUE}/localqueues": {"items": []},
    }

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer = answers.get(self.path.partition("?")[0])
            self.send_response(HTTPStatus.NOT_FOUND if answer is None else HTTPStatus.OK)
            self.end_headers()
            self.wfile.write(json.dumps(answer or {}).encode())

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        config = {
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}],
            "users": [{"name": "c", "user": {"token": "t"}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
        }  # fmt: skip
        inputs = {"kubeconfig": json.dumps(config), "clusterIdentifier": "projects/p/locations/l/clusters/dev-main"}
        provider = {"type": "pulumi:providers:kubernetes", "urn": "urn:p", "custom": True, "inputs": inputs}
        state = tmp_path / "state.json"
        state.write_text(json.dumps({"deployment": {"resources": [provider, QUEUE]}}, indent=1))
        yield Cluster(answers, state, server)
        server.shutdown()


def test_an_environment_with_objects_of_kueue_that_no_stack_has_is_not_destroyed(ended: Path, cluster: Cluster) -> None:
    cluster.answers[f"{KUEUE}/clusterqueues"]["items"].append({"metadata": {"name": "theirs"}})
    cluster.answers[f"{KUEUE}/localqueues"]["items"] = [{"metadata": {"name": "main", "namespace": "lab"}}]

    code, lines = run(ended, "retire", "dev", PROVIDER=str(cluster.state))

    assert code == 1
    assert stacks_of("destroy", lines) == ["dev-nlp", "dev-vision"]
    named = "cluster dev-main has Kueue objects that belong to no stack: ClusterQueue theirs, LocalQueue lab/main."
    assert any(line.startswith(named) for line in lines)


def test_an_environment_whose_objects_of_kueue_are_its_own_is_destroyed(ended: Path, cluster: Cluster) -> None:
    code, lines = run(ended, "retire", "dev", PROVIDER=str(cluster.state))

    assert code == 0
    assert stacks_of("destroy", lines) == ["dev-nlp", "dev-vision", "dev"]


def test_a_cluster_without_kueue_keeps_no_environment(ended: Path, cluster: Cluster) -> None:
    del cluster.answers[KUEUE]

    assert run(ended, "retire", "dev", PROVIDER=str(cluster.state))[0] == 0


@pytest.mark.parametrize(("forget", "destroyed"), [("", False), ("true", True)])
def test_a_cluster_that_does_not_answer_keeps_its_environment_unless_it_is_to_be_forgotten(
    forget: str, destroyed: bool, ended: Path, cluster: Cluster
) -> None:
    cluster.server.server_close()

    _, lines = run(ended, "retire", "dev", PROVIDER=str(cluster.state), PULUMI_K8S_DELETE_UNREACHABLE=forget)

    assert ("dev" in stacks_of("destroy", lines)) is destroyed


def test_no_preview_is_judged_while_a_cluster_does_not_answer(repository: Path, cluster: Cluster) -> None:
    cluster.server.shutdown()
    cluster.server.server_close()

    code, lines = run(repository, "judge", "dev", "origin/main", PROVIDER=str(cluster.state))

    assert code == 1
    assert any(line.startswith("Cluster dev-main cannot be reached") for line in lines)


def test_after_a_failed_up_the_warnings_about_charts_are_printed(repository: Path, cluster: Cluster) -> None:
    event = {"involvedObject": {"kind": "Pod", "name": "kueue-1"}, "reason": "Failed", "message": "no such image"}
    for namespace in {chart.namespace for chart in CHARTS.values()}:
        cluster.answers[f"/api/v1/namespaces/{namespace}/events"] = {"items": []}
    cluster.answers["/api/v1/namespaces/kueue-system/events"] = {"items": [{**event, "lastTimestamp": "2026-11-21"}]}

    code, lines = run(repository, "each-stack", "dev", "up", failing="dev", PROVIDER=str(cluster.state))
    _, without_up = run(repository, "each-stack", "dev", "preview", failing="dev", PROVIDER=str(cluster.state))

    line = "cluster dev-main: kueue-system: Pod kueue-1: Failed: no such image"
    assert code == 1
    assert line in lines
    assert line not in without_up
