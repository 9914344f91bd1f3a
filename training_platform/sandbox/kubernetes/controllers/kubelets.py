"""What stands in for the kubelets of a cluster: nodes that exist as objects only, and pods that go when deleted."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from threading import Event, Thread
from typing import Final, Self

import httpx

from training_platform.sandbox.kubernetes.api_servers.control_plane import Access
from training_platform.sandbox.kubernetes.values import Json, has_condition

LOG: Final = logging.getLogger("training_platform.sandbox.kubernetes")
Nodes = Callable[[], Mapping[str, Json]]
_NODES: Final = "/api/v1/nodes"
_SECONDS: Final = 0.5  # between two looks
_AT_ONCE: Final = {"gracePeriodSeconds": 0}


class Kubelets:
    """Keeps a cluster's Node objects equal to ``nodes``, by name, for as long as the block runs.

    A pod that is being deleted goes at once, as does one whose node is gone: no container of it ever ran.
    """

    def __init__(self, access: Access, nodes: Nodes) -> None:
        self._client = access.client()
        self._nodes = nodes
        self._ended = Event()
        self._thread = Thread(target=self._run, name="kubelets", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self._client.close()

    def _run(self) -> None:
        while not self._ended.wait(_SECONDS):
            try:
                wanted = self._nodes()
                self._register(wanted)
                self._reap(wanted)
            except (httpx.HTTPError, KeyError) as error:  # tried again at the next look
                LOG.warning("nodes are not up to date: %s", error)

    def _register(self, wanted: Mapping[str, Json]) -> None:
        there = {each["metadata"]["name"]: each for each in self._items(_NODES)}
        for name in there.keys() - wanted.keys():
            self._client.delete(f"{_NODES}/{name}").raise_for_status()
        for name, node in wanted.items():
            if name not in there:
                body = {**node, "apiVersion": "v1", "kind": "Node"}
                self._client.post(_NODES, json=body).raise_for_status()
            if name not in there or not has_condition(there[name], "Ready"):
                self._patch(f"{_NODES}/{name}/status", {"status": node["status"]})
                self._patch(f"{_NODES}/{name}", {"spec": node["spec"]})  # the server adds the taint of one not ready

    def _reap(self, nodes: Mapping[str, Json]) -> None:
        for pod in self._items("/api/v1/pods"):
            about = pod["metadata"]
            if "deletionTimestamp" in about or pod["spec"].get("nodeName", "") not in {*nodes, ""}:
                path = f"/api/v1/namespaces/{about['namespace']}/pods/{about['name']}"
                self._client.request("DELETE", path, json=_AT_ONCE)

    def _items(self, path: str) -> list[Json]:
        answer = self._client.get(path, params={"resourceVersion": "0"})  # as the server last saw it, from memory
        answer.raise_for_status()
        return list(answer.json()["items"])

    def _patch(self, path: str, body: Json) -> None:
        headers = {"Content-Type": "application/merge-patch+json"}
        self._client.patch(path, content=json.dumps(body), headers=headers).raise_for_status()
