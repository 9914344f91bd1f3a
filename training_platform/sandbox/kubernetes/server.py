"""The gRPC plugin: what the Pulumi engine calls, put to ``Objects``, ``Releases`` and the provider's settings.

An attached plugin is one process for every provider resource of a program, and only ``Configure`` names a provider. The
engine opens one connection per provider, so the peer of a call tells whose it is. A call on a connection that was never
configured is served only where all providers so far mean one cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import wraps
from importlib.metadata import version
from pathlib import Path
from threading import Lock
from typing import Any, Final

import grpc  # type: ignore[import-untyped]  # grpcio ships no types
from google.protobuf.empty_pb2 import Empty
from pulumi.runtime.proto import plugin_pb2, provider_pb2_grpc
from pulumi.runtime.proto import provider_pb2 as pb
from typing_extensions import override

from training_platform.checks.planning.wire import readable
from training_platform.resources.register import RELEASE
from training_platform.sandbox.kubernetes.calls import Ask, AutoName, Failure, Kept
from training_platform.sandbox.kubernetes.changes import Change, changes
from training_platform.sandbox.kubernetes.objects import Objects
from training_platform.sandbox.kubernetes.releases import Releases
from training_platform.sandbox.kubernetes.schemas import kinds
from training_platform.sandbox.kubernetes.schemas.crds import load_crds
from training_platform.sandbox.kubernetes.settings import Settings, changed_settings, configured, refused_settings
from training_platform.sandbox.kubernetes.store import ObjectStore, Refused, Store
from training_platform.sandbox.kubernetes.values import from_struct, to_struct

_Method = Callable[[Any, Any, Any], Any]  # the servicer, a request, the call's context


def _answering_refusals(method: _Method) -> _Method:
    @wraps(method)
    def call(plugin: Plugin, request: Any, context: Any) -> Any:
        try:
            return method(plugin, request, context)
        except Refused as refusal:
            context.abort(grpc.StatusCode.UNKNOWN, str(refusal))  # the code that the released provider's errors have

    return call


def _unimplemented(_plugin: Plugin, _request: Any, context: Any) -> None:
    context.abort(grpc.StatusCode.UNIMPLEMENTED, "the stand-in kubernetes provider has no such call")


_UNIMPLEMENTED: Final[Any] = _unimplemented


class Plugin(provider_pb2_grpc.ResourceProviderServicer):
    """The provider plugin; custom kinds are judged by the CRDs under ``crds``.

    Releases are kept in ``store``, and objects too unless ``objects`` keeps them.
    """

    def __init__(self, store: Store, crds: Sequence[Path] = (), objects: ObjectStore | None = None) -> None:
        schemas = {kind: schema for folder in crds for kind, schema in load_crds(folder).items()}
        self._objects = Objects(objects or store, schemas)
        self._releases = Releases(store, objects or store)
        self._providers: dict[str, Settings] = {}  # by the peer of the connection
        self._lock = Lock()

    @override
    def Handshake(self, request: pb.ProviderHandshakeRequest, context: Any) -> pb.ProviderHandshakeResponse:
        return pb.ProviderHandshakeResponse(
            accept_secrets=True,
            accept_resources=True,
            accept_outputs=False,
            supports_autonaming_configuration=True,
        )

    @override
    def Attach(self, request: plugin_pb2.PluginAttach, context: Any) -> Empty:
        return Empty()

    @override
    def GetPluginInfo(self, request: Empty, context: Any) -> plugin_pb2.PluginInfo:
        """The version of the SDK beside us: the engine warns of a plugin that is older than the SDK or names none."""
        return plugin_pb2.PluginInfo(version=version("pulumi-kubernetes"))

    @override
    def CheckConfig(self, request: pb.CheckRequest, context: Any) -> pb.CheckResponse:
        refused = refused_settings(from_struct(request.news))
        return pb.CheckResponse(inputs=request.news, failures=[_failure(Failure(*one)) for one in refused])

    @override
    def DiffConfig(self, request: pb.DiffRequest, context: Any) -> pb.DiffResponse:
        changed, replaces = changed_settings(from_struct(request.olds), from_struct(request.news))
        return pb.DiffResponse(changes=_some(changed), diffs=changed, replaces=replaces)

    @override
    def Configure(self, request: pb.ConfigureRequest, context: Any) -> pb.ConfigureResponse:
        with self._lock:
            self._providers.pop(context.peer(), None)
            self._providers[context.peer()] = configured(request.urn, from_struct(request.args))
            if len(self._providers) > _MOST_PROVIDERS:  # connections of engines that ended long ago
                del self._providers[next(iter(self._providers))]
        return pb.ConfigureResponse(
            acceptSecrets=True,
            acceptResources=True,
            acceptOutputs=False,
            supportsPreview=True,
            supports_autonaming_configuration=True,
        )

    @override
    @_answering_refusals
    def Check(self, request: pb.CheckRequest, context: Any) -> pb.CheckResponse:
        ask, olds, news = self._ask(request, context), from_struct(request.olds), from_struct(request.news)
        options = request.autonaming
        disabled = options.mode == pb.CheckRequest.AutonamingOptions.DISABLE
        how = AutoName(request.randomSeed, options.proposed_name, disabled)
        inputs, failures = self._kept(request).check(ask, olds, news, how)
        return pb.CheckResponse(inputs=to_struct(inputs), failures=[_failure(one) for one in failures])

    @override
    @_answering_refusals
    def Diff(self, request: pb.DiffRequest, context: Any) -> pb.DiffResponse:
        ask, olds = self._ask(request, context), readable(from_struct(request.old_inputs))
        news = readable(from_struct(request.news))
        found = [one for one in changes(olds, news) if not _ignored(str(one), request.ignoreChanges)]
        verdict = self._kept(request).judge(ask, olds, news, found)
        return pb.DiffResponse(
            changes=_some(found),
            diffs=sorted({str(one.path[0]) for one in found}),
            replaces=verdict.replaces,
            deleteBeforeReplace=verdict.delete_first,
            hasDetailedDiff=True,
            detailedDiff={str(one): _property_diff(one, str(one) in verdict.replaces) for one in found},
        )

    @override
    @_answering_refusals
    def Create(self, request: pb.CreateRequest, context: Any) -> pb.CreateResponse:
        inputs = from_struct(request.properties)
        made = self._kept(request).create(self._ask(request, context), inputs, preview=request.preview)
        return pb.CreateResponse(id=made.id, properties=to_struct(made.properties))

    @override
    @_answering_refusals
    def Read(self, request: pb.ReadRequest, context: Any) -> pb.ReadResponse:
        made = self._kept(request).read(self._ask(request, context), request.id, from_struct(request.inputs))
        inputs = to_struct(made.inputs or {})
        return pb.ReadResponse(id=made.id, properties=to_struct(made.properties), inputs=inputs)

    @override
    @_answering_refusals
    def Update(self, request: pb.UpdateRequest, context: Any) -> pb.UpdateResponse:
        ask, inputs = self._ask(request, context), from_struct(request.news)
        made = self._kept(request).update(ask, request.id, inputs, preview=request.preview)
        return pb.UpdateResponse(properties=to_struct(made.properties))

    @override
    @_answering_refusals
    def Delete(self, request: pb.DeleteRequest, context: Any) -> Empty:
        self._kept(request).delete(self._ask(request, context), request.id)
        return Empty()

    @override
    @_answering_refusals
    def Invoke(self, request: pb.InvokeRequest, context: Any) -> pb.InvokeResponse:
        raise Refused(f"{request.tok}: the stand-in provider has no functions; it renders no charts, YAML or kustomize")

    @override
    def Cancel(self, request: Empty, context: Any) -> Empty:
        return Empty()

    # The generated methods would answer the same, but log a traceback with it.
    Parameterize = GetSchema = GetMapping = GetMappings = Construct = Call = List = _UNIMPLEMENTED

    def _kept(self, request: Any) -> Kept:
        return self._releases if request.type == RELEASE else self._objects

    def _ask(self, request: Any, context: Any) -> Ask:
        try:
            kind = kinds.parse(request.type)
        except ValueError as error:
            raise Refused(str(error)) from error
        return Ask(urn=request.urn, name=request.name, kind=kind, settings=self._settings(context.peer()))

    def _settings(self, peer: str) -> Settings:
        with self._lock:
            known = set(self._providers.values())
            found = self._providers.get(peer) or (known.pop() if len(known) == 1 else None)
        if found is None:
            raise Refused("the connection of this call was never configured, so its cluster is not known")
        return found


@contextmanager
def serve(
    port: int = 0, *, crds: Sequence[Path] = (), store: Store | None = None, objects: ObjectStore | None = None
) -> Iterator[int]:
    """Serve the plugin on the loopback interface for as long as the block runs; gives the port it bound."""
    threads = ThreadPoolExecutor(max_workers=16, thread_name_prefix="kubernetes-provider")
    server = grpc.server(threads, options=_NO_LIMITS)
    plugin = Plugin(store or Store(), crds, objects)
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(plugin, server)
    try:
        bound: int = server.add_insecure_port(f"127.0.0.1:{port}")
        server.start()
        yield bound
    finally:
        server.stop(grace=None).wait()
        threads.shutdown()


def _failure(failure: Failure) -> pb.CheckFailure:
    return pb.CheckFailure(property=failure.property, reason=failure.reason)


def _some(found: Sequence[object]) -> pb.DiffResponse.DiffChanges.ValueType:
    return pb.DiffResponse.DIFF_SOME if found else pb.DiffResponse.DIFF_NONE


def _property_diff(change: Change, replaces: bool) -> pb.PropertyDiff:
    name = f"{change.kind.upper()}_REPLACE" if replaces else change.kind.upper()
    return pb.PropertyDiff(kind=pb.PropertyDiff.Kind.Value(name), inputDiff=True)


def _ignored(path: str, ignored: Sequence[str]) -> bool:
    return any(path == one or path.startswith((f"{one}.", f"{one}[")) for one in ignored)


_MOST_PROVIDERS: Final = 1_000
_NO_LIMITS: Final = (("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1))
