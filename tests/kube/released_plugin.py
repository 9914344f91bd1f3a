"""The released plugin for Kubernetes without an engine: its process, and the messages that an engine would print."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

import grpc  # type: ignore[import-untyped]  # grpcio ships no types
from google.protobuf.empty_pb2 import Empty
from pulumi.runtime.proto import engine_pb2_grpc
from typing_extensions import override

PLUGIN: Final = "pulumi-resource-kubernetes"
URN: Final = "urn:pulumi:dev::p::pulumi:providers:kubernetes::a"


class ReleasedPlugin(NamedTuple):
    """The port of a running plugin, and what it told the engine so far."""

    port: int
    messages: list[str]


class _Engine(engine_pb2_grpc.EngineServicer):
    """The engine's side: it takes messages."""

    def __init__(self) -> None:
        self.messages: list[str] = []

    @override
    def Log(self, request: Any, context: Any) -> Empty:
        if request.message:  # an empty one clears the status of a resource
            self.messages.append(request.message)
        return Empty()


@contextmanager
def released_plugin() -> Iterator[ReleasedPlugin]:
    """Run the plugin that is on PATH while the block runs."""
    engine = _Engine()
    server = grpc.server(ThreadPoolExecutor(4))
    engine_pb2_grpc.add_EngineServicer_to_server(engine, server)
    address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    process = subprocess.Popen([PLUGIN, address], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        yield ReleasedPlugin(int(process.stdout.readline()), engine.messages)  # it prints its port and goes on
    finally:
        process.kill()
        process.communicate()
        server.stop(grace=None).wait()
