"""Notebooks that a real JupyterHub starts on a real node and ends when they are idle.

The hub has the chart's configuration and the planned values. In a cluster all times are longer by ``SPEED``.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.containers.hubs import hub_files, notebook_node, running_hub
from tests.containers.nodes import IMAGE, NODE
from tests.kube.deployed import NOTEBOOKS, TEAM
from tests.kube.queues import until

pytestmark = [pytest.mark.kube, pytest.mark.containers, pytest.mark.timeout(600)]

DEV = (NOTEBOOKS[0], f"{NOTEBOOKS[1]}          image: {IMAGE}\n")
POD = f"/api/v1/namespaces/{TEAM}/pods/jupyter-ada"
USER = "/hub/api/users/ada"
IDLE_SECONDS = 36
TALKING_SECONDS = 100
CELL = f"""\
import pathlib, time
pathlib.Path.home().joinpath("notes").touch()
for second in range({TALKING_SECONDS}):
    print(second, flush=True)
    time.sleep(1)
time.sleep(600)
"""
RUN = """\
import asyncio, json, sys
from tornado.httpclient import HTTPRequest
from tornado.websocket import websocket_connect
url, authorization, cell = sys.argv[1:]
async def main():
    socket = await websocket_connect(HTTPRequest(url, headers={"Authorization": authorization}))
    header = {"msg_id": "1", "msg_type": "execute_request", "username": "ada", "session": "1", "version": "5.3"}
    message = {"header": header, "parent_header": {}, "metadata": {}, "content": {"code": cell, "silent": False}}
    await socket.write_message(json.dumps({**message, "channel": "shell"}))
    while text := await socket.read_message():
        content = json.loads(text)["content"]
        if "text" in content:
            print(content["text"], end="", flush=True)
asyncio.run(main())
"""


class Hub:
    """A hub with ada, a member of the team."""

    def __init__(self, client: httpx.Client, api_server: httpx.Client, homes: Path) -> None:
        self.client = client
        self.home = homes / "ada"
        self._api_server = api_server

    def call(self, method: str, path: str, body: Any = None) -> Any:
        answer = self.client.request(method, path, json=body)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None

    def start(self) -> None:
        """Start the server of the team's profile, and wait until the hub reports that it is ready."""
        self.call("POST", f"{USER}/server", {"profile": f"team-{TEAM}-pool-a100"})
        until(lambda: self.call("GET", USER)["servers"], lambda servers: servers.get("", {}).get("ready"), 120.0)
        assert self.pod()["spec"]["nodeName"] == NODE

    def pod(self) -> Any:
        """Return the notebook's pod; None once it is deleted."""
        answer = self._api_server.get(POD)
        return answer.json() if answer.is_success else None

    def wait_for_end(self, seconds: float) -> float:
        """Wait until the hub has no server and the cluster no pod; return the seconds."""
        began = time.monotonic()
        until(lambda: (self.call("GET", USER)["servers"], self.pod()), lambda now: now == ({}, None), seconds)
        return time.monotonic() - began

    @contextmanager
    def cell(self, code: str) -> Iterator[Path]:
        """Run a cell in a new kernel, with an open web socket while the block runs; yields the file with its output."""
        kernel = self.call("POST", "/user/ada/api/kernels")["id"]
        url = f"ws{str(self.client.base_url).removeprefix('http')}/user/ada/api/kernels/{kernel}/channels"
        python = hub_files() / "venv" / "bin" / "python"
        output = self.home.parent / "output"
        with output.open("wb") as file:
            command = [str(python), "-c", RUN, url, self.client.headers["Authorization"], code]
            browser = subprocess.Popen(command, stdout=file)
            try:
                yield output
            finally:
                browser.kill()
                browser.wait()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    files = hub_files()
    folder = tmp_path_factory.mktemp("hub")
    with notebook_node(folder, DEV, files / "image.tar") as lab, running_hub(lab, folder) as client:
        hub = Hub(client, lab.kueue.client, folder / "share" / TEAM)
        hub.call("POST", USER)
        yield hub


@pytest.fixture(autouse=True)
def _ended(cluster: Hub) -> Iterator[None]:
    """End a test's notebook, of this cluster."""
    yield
    cluster.client.delete(f"{USER}/server")
    cluster.wait_for_end(60)


def test_an_unused_notebook_is_deleted_after_the_idle_time(cluster: Hub) -> None:
    cluster.start()

    seconds = cluster.wait_for_end(2 * IDLE_SECONDS)

    assert seconds > IDLE_SECONDS / 2


def test_a_notebook_whose_kernel_prints_stays_until_it_prints_no_more(cluster: Hub) -> None:
    cluster.start()
    with cluster.cell(CELL) as output:
        until(output.read_text, lambda text: len(text.split()) > IDLE_SECONDS + 10, TALKING_SECONDS)
    # Nobody has the notebook open from here on.
    time.sleep(IDLE_SECONDS + 10)
    assert cluster.pod()["status"]["phase"] == "Running"

    cluster.wait_for_end(2 * IDLE_SECONDS + 20)

    assert (cluster.home / "notes").stat().st_uid == 1000
    cluster.start()
    assert [row["name"] for row in cluster.call("GET", "/user/ada/api/contents")["content"]] == ["notes"]
