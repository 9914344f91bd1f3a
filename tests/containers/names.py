"""A name server for pods, in place of kube-dns: the addresses that headless Services have in a real API server."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from socketserver import BaseRequestHandler, ThreadingUDPServer
from threading import Thread
from typing import Final

import httpx

from tests.containers.nodes import ADDRESS

_HEADER: Final = struct.Struct(">HHHHHH")
_ANSWERS: Final = 0x8580  # authoritative, recursion available
_NO_SUCH_NAME: Final = 3
_IPV4: Final = 1
_SECONDS_KEPT: Final = 1


@contextmanager
def names(client: httpx.Client) -> Iterator[None]:
    """Answer the pods of this machine's nodes while the block runs."""

    class Handler(BaseRequestHandler):
        def handle(self) -> None:
            query, server_socket = self.request
            # Tests may send to this machine only, by sendto; a pod that asks has another address.
            server_socket.sendmsg([_answer(query, client)], [], 0, self.client_address)

    with ThreadingUDPServer((ADDRESS, 53), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield
        finally:
            server.shutdown()


def _answer(query: bytes, client: httpx.Client) -> bytes:
    """Return the answer to a query, which has one question: a name of labels with their lengths, a type, a class."""
    labels: list[str] = []
    position = _HEADER.size
    while length := query[position]:
        labels.append(query[position + 1 : position + 1 + length].decode().lower())
        position += length + 1
    (kind,) = struct.unpack_from(">H", query, position + 1)
    question = query[_HEADER.size : position + 5]
    pod_addresses = addresses(labels, client)
    records = b""
    shown = pod_addresses if kind == _IPV4 else []
    for address in shown:
        pointer = 0xC000 | _HEADER.size  # to the question's name
        records += struct.pack(">HHHIH", pointer, kind, 1, _SECONDS_KEPT, 4) + socket.inet_aton(address)
    flags = _ANSWERS if pod_addresses else _ANSWERS | _NO_SUCH_NAME
    (number,) = struct.unpack_from(">H", query)
    return _HEADER.pack(number, flags, 1, len(shown), 0, 0) + question + records


def addresses(labels: list[str], client: httpx.Client) -> list[str]:
    """Return the addresses of a name such as HOST.SERVICE.NAMESPACE.svc.cluster.local, or without HOST."""
    if labels[-3:] != ["svc", "cluster", "local"] or len(labels) not in (5, 6):
        return []
    *host, service, namespace = labels[:-3]
    path = f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"
    slices = client.get(path, params={"labelSelector": f"kubernetes.io/service-name={service}"}).json()
    matching = []
    for endpoint in (endpoint for item in slices.get("items", ()) for endpoint in item["endpoints"] or ()):
        if not host or endpoint.get("hostname") == host[0]:
            matching += endpoint["addresses"]
    return matching
