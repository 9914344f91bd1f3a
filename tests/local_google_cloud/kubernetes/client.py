"""A client that speaks to the plugin as the engine does, for tests without an engine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

import grpc  # type: ignore[import-untyped]  # grpcio ships no types
from google.protobuf.empty_pb2 import Empty
from pulumi.runtime.proto import plugin_pb2, provider_pb2_grpc
from pulumi.runtime.proto import provider_pb2 as pb

from local_google_cloud.kubernetes.object_store import from_struct
from local_google_cloud.kubernetes.wire import wire_struct
from training_platform.catalog.types import Json

WAIT_SECONDS: Final = 30


class CallRefused(Exception):
    """A refusal of the plugin, with its message."""


class Diff(NamedTuple):
    """A difference as the plugin reports it; ``paths`` maps each path to its kind, such as ``UPDATE_REPLACE``."""

    changes: bool
    paths: dict[str, str]
    replaces: list[str]
    delete_first: bool


class Client:
    """One provider of a program, on a connection of its own."""

    def __init__(self, channel: Any) -> None:
        self._stub: Any = provider_pb2_grpc.ResourceProviderStub(channel)

    def call(self, method: str, request: Any) -> Any:
        """Call a method by name; raises ``CallRefused`` with the plugin's message."""
        try:
            return getattr(self._stub, method)(request, timeout=WAIT_SECONDS)
        except grpc.RpcError as error:
            raise CallRefused(error.details()) from error

    def configure(self, urn: str = "urn:pulumi:dev::p::pulumi:providers:kubernetes::a", **args: Any) -> Any:
        """Attach and configure, in the engine's order; ``args`` as the SDK spells them on the wire."""
        self.call("Handshake", pb.ProviderHandshakeRequest(engine_address="127.0.0.1:1", configure_with_urn=True))
        self.call("Attach", plugin_pb2.PluginAttach(address="127.0.0.1:1"))
        self.call("GetPluginInfo", Empty())
        return self.set(urn, args)

    def set(self, urn: str, args: Json) -> Any:
        """Configure the provider; the released plugin reads its settings as variables."""
        variables = {f"kubernetes:config:{name}": value for name, value in args.items()}
        request = pb.ConfigureRequest(urn=urn, args=wire_struct(args), variables=variables, acceptSecrets=True)
        return self.call("Configure", request)

    def check(self, token: str, name: str, news: Json, olds: Json | None = None, **more: Any) -> tuple[Json, Json]:
        """Return the completed inputs, and the reason for each refused property."""
        request = pb.CheckRequest(**_named(token, name), olds=wire_struct(olds or {}), news=wire_struct(news), **more)
        answer = self.call("Check", request)
        return from_struct(answer.inputs), {failure.property: failure.reason for failure in answer.failures}

    def diff(
        self,
        token: str,
        name: str,
        olds: Json,
        news: Json,
        ignore: tuple[str, ...] = (),
        *,
        outputs: Json | None = None,
    ) -> Diff:
        """Compare old inputs, with the ``outputs`` that the released plugin reads, with new ones."""
        state = wire_struct(outputs or olds)
        request = pb.DiffRequest(
            **_named(token, name),
            old_inputs=wire_struct(olds),
            olds=state,
            news=wire_struct(news),
            ignoreChanges=ignore,
        )
        answer = self.call("Diff", request)
        paths = {path: pb.PropertyDiff.Kind.Name(difference.kind) for path, difference in answer.detailedDiff.items()}
        assert answer.hasDetailedDiff  # or the engine would not look at it
        changes = answer.changes == pb.DiffResponse.DIFF_SOME
        return Diff(changes, paths, list(answer.replaces), answer.deleteBeforeReplace)

    def create(self, token: str, name: str, inputs: Json, *, preview: bool = False) -> tuple[str, Json]:
        """Create a resource; returns its id and outputs."""
        request = pb.CreateRequest(**_named(token, name), properties=wire_struct(inputs), preview=preview)
        answer = self.call("Create", request)
        return answer.id, from_struct(answer.properties)

    def read(
        self, token: str, name: str, identity: str, inputs: Json | None = None, outputs: Json | None = None
    ) -> tuple[str, Json, Json]:
        """Read a resource; returns its id, outputs and inputs. The id is empty if it does not exist."""
        old = wire_struct(outputs or {})
        request = pb.ReadRequest(**_named(token, name), id=identity, inputs=wire_struct(inputs or {}), properties=old)
        answer = self.call("Read", request)
        return answer.id, from_struct(answer.properties), from_struct(answer.inputs)

    def update(
        self, token: str, name: str, identity: str, news: Json, outputs: Json | None = None, *, preview: bool = False
    ) -> Json:
        """Update a resource; returns its new outputs."""
        old = wire_struct(outputs or {})
        request = pb.UpdateRequest(
            **_named(token, name), id=identity, news=wire_struct(news), olds=old, preview=preview
        )
        return from_struct(self.call("Update", request).properties)

    def delete(self, token: str, name: str, identity: str, outputs: Json | None = None) -> None:
        """Remove a resource."""
        self.call("Delete", pb.DeleteRequest(**_named(token, name), id=identity, properties=wire_struct(outputs or {})))


@contextmanager
def connect(port: int) -> Iterator[Client]:
    """Open a separate connection, as each provider of a program does."""
    with grpc.insecure_channel(f"127.0.0.1:{port}", options=(("grpc.use_local_subchannel_pool", 1),)) as channel:
        yield Client(channel)


def _named(token: str, name: str) -> dict[str, Any]:
    return {"urn": f"urn:pulumi:dev::p::{token}::{name}", "type": token, "name": name}
