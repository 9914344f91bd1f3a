"""A stand-in for Pulumi's kubernetes provider: the gRPC plugin that the engine calls, and the providers' settings.

The engine attaches to it with ``PULUMI_DEBUG_PROVIDERS=kubernetes:PORT``. One attached plugin serves every provider
resource of a program, but only ``Configure`` calls name a provider. The engine opens one connection per provider, so
the plugin identifies the provider by the address from which a call comes. A call on a connection that has received no
``Configure`` call is served only if all providers so far have the same settings.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import wraps
from importlib.metadata import version
from pathlib import Path
from threading import Lock
from typing import Any, Final, cast

import grpc  # type: ignore[import-untyped]  # grpcio ships no types
from google.protobuf.empty_pb2 import Empty
from pulumi.runtime.proto import plugin_pb2, provider_pb2_grpc
from pulumi.runtime.proto import provider_pb2 as pb
from typing_extensions import override

from local_google_cloud.kubernetes.object_store import ObjectRefused, ObjectStore, changes, from_struct
from local_google_cloud.kubernetes.stored_objects import (
    RELEASE,
    ObjectKind,
    Objects,
    ProviderSettings,
    Releases,
    ResourceCall,
)
from local_google_cloud.kubernetes.wire import readable, wire_struct
from training_platform.catalog.types import Json
from training_platform.rules.documents.definitions import load_crds

_MOST_PROVIDERS: Final = 1_000
_NO_LIMITS: Final = (("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1))


@contextmanager
def serve(
    port: int = 0,
    *,
    crds: Sequence[Path] = (),
    store: ObjectStore | None = None,
) -> Iterator[int]:
    """Serve the plugin on the loopback interface while the ``with`` block runs, and yield the port."""
    threads = ThreadPoolExecutor(max_workers=16, thread_name_prefix="kubernetes-provider")
    server = grpc.server(threads, options=_NO_LIMITS)
    plugin = Plugin(store or ObjectStore(), crds)
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(plugin, server)
    try:
        bound_port: int = server.add_insecure_port(f"127.0.0.1:{port}")
        server.start()
        yield bound_port
    finally:
        server.stop(grace=None).wait()
        threads.shutdown()


def _of_resource(method: Callable[[Any, Any, ResourceCall], Any]) -> Callable[[Any, Any, Any], Any]:
    """Return a gRPC method that passes the call's resource to ``method``, and turns refusals into gRPC errors."""

    @wraps(method)
    def answer(plugin: Plugin, request: Any, context: Any) -> Any:
        try:
            return method(plugin, request, plugin.resource_call(request, context))
        except ObjectRefused as refusal:
            context.abort(grpc.StatusCode.UNKNOWN, str(refusal))  # the code of the released provider's errors

    return answer


class Plugin(provider_pb2_grpc.ResourceProviderServicer):
    """The provider plugin. The CRDs under ``crds`` define the schemas of custom kinds.

    ``store`` contains objects and Helm releases.
    """

    def __init__(self, store: ObjectStore, crds: Sequence[Path] = ()) -> None:
        schemas = {kind: schema for folder in crds for kind, schema in load_crds(folder).items()}
        self._objects = Objects(store, schemas)
        self._releases = Releases(store)
        self._providers: dict[str, ProviderSettings] = {}  # by the peer of the connection
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
        """Return the SDK's version. The engine warns about a plugin that is older than the SDK or has no version."""
        return plugin_pb2.PluginInfo(version=version("pulumi-kubernetes"))

    @override
    def CheckConfig(self, request: pb.CheckRequest, context: Any) -> pb.CheckResponse:
        return pb.CheckResponse(inputs=request.news)

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
    @_of_resource
    def Check(self, request: pb.CheckRequest, call: ResourceCall) -> pb.CheckResponse:
        olds = from_struct(request.olds)
        news = from_struct(request.news)
        digest = hashlib.sha256(request.randomSeed or request.urn.encode()).hexdigest()
        generated = request.autonaming.proposed_name or f"{request.name}-{digest[:8]}"
        autonaming = request.autonaming.mode != pb.CheckRequest.AutonamingOptions.DISABLE
        inputs, failures = self._family(request).check(call, olds, news, generated, autonaming)
        refused = [pb.CheckFailure(property=path, reason=reason) for path, reason in failures]
        return pb.CheckResponse(inputs=wire_struct(inputs), failures=refused)

    @override
    @_of_resource
    def Diff(self, request: pb.DiffRequest, call: ResourceCall) -> pb.DiffResponse:
        olds = readable(from_struct(request.old_inputs))
        news = readable(from_struct(request.news))
        ignored = {mark for name in request.ignoreChanges for mark in (f"{name}.", f"{name}[")}
        changed = [change for change in changes(olds, news) if not f"{change}.".startswith(tuple(ignored))]
        family = self._family(request)
        fixed = list(family.fixed(call))
        replaces = [str(change) for change in changed if any(change.within(path) for path in fixed)]
        details = {}
        for change in changed:
            kind = change.kind.upper() + ("_REPLACE" if str(change) in replaces else "")
            details[str(change)] = pb.PropertyDiff(kind=pb.PropertyDiff.Kind.Value(kind), inputDiff=True)
        return pb.DiffResponse(
            changes=_some(changed),
            diffs=sorted({str(change.path[0]) for change in changed}),
            replaces=replaces,
            deleteBeforeReplace=bool(replaces) and family.deletes_first(olds, news),
            hasDetailedDiff=True,
            detailedDiff=details,
        )

    @override
    @_of_resource
    def Create(self, request: pb.CreateRequest, call: ResourceCall) -> pb.CreateResponse:
        inputs = from_struct(request.properties)
        created = self._family(request).create(call, inputs, preview=request.preview)
        return pb.CreateResponse(id=created.id, properties=wire_struct(created.properties))

    @override
    @_of_resource
    def Read(self, request: pb.ReadRequest, call: ResourceCall) -> pb.ReadResponse:
        inputs = from_struct(request.inputs)
        live = self._family(request).read(call, request.id, inputs)
        return pb.ReadResponse(
            id=live.id, properties=wire_struct(live.properties), inputs=wire_struct(live.inputs or {})
        )

    @override
    @_of_resource
    def Update(self, request: pb.UpdateRequest, call: ResourceCall) -> pb.UpdateResponse:
        inputs = from_struct(request.news)
        updated = self._family(request).update(call, request.id, inputs, preview=request.preview)
        return pb.UpdateResponse(properties=wire_struct(updated.properties))

    @override
    @_of_resource
    def Delete(self, request: pb.DeleteRequest, call: ResourceCall) -> Empty:
        self._family(request).delete(call, request.id)
        return Empty()

    @override
    def Invoke(self, request: pb.InvokeRequest, context: Any) -> pb.InvokeResponse:
        reason = "the stand-in provider has no functions; it renders no charts, YAML or kustomize"
        context.abort(grpc.StatusCode.UNKNOWN, f"{request.tok}: {reason}")
        return pb.InvokeResponse()

    @override
    def Cancel(self, request: Empty, context: Any) -> Empty:
        return Empty()

    def _unimplemented(self, _request: Any, context: Any) -> Any:
        """Refuse an unimplemented method with an error, without the traceback that the generated code would log."""
        context.abort(grpc.StatusCode.UNIMPLEMENTED, "the stand-in kubernetes provider has no such call")

    Parameterize = GetSchema = GetMapping = GetMappings = Construct = Call = List = cast(Any, _unimplemented)

    def _family(self, request: Any) -> Objects | Releases:
        return self._releases if request.type == RELEASE else self._objects

    def resource_call(self, request: Any, context: Any) -> ResourceCall:
        """Return the kind of the call's resource and the settings of its provider. Raises ObjectRefused."""
        kind = ObjectKind.of_token(request.type)
        with self._lock:
            settings = self._providers.get(context.peer())
            distinct = set(self._providers.values())
        if settings is None and len(distinct) == 1:
            settings = distinct.pop()
        if settings is None:
            raise ObjectRefused("the connection of this call was never configured, so its cluster is unknown")
        return ResourceCall(kind, settings, urn=request.urn)


def _some(changed: Sequence[object]) -> pb.DiffResponse.DiffChanges.ValueType:
    return pb.DiffResponse.DIFF_SOME if changed else pb.DiffResponse.DIFF_NONE


def configured(urn: str, args: Json) -> ProviderSettings:
    """Parse the arguments of ``Configure``.

    ``clusterIdentifier`` identifies a cluster that several stacks share. Without it, the cluster belongs to the
    provider.
    """
    settings = readable(args)
    namespace = settings.get("namespace")
    return ProviderSettings(
        cluster=settings.get("clusterIdentifier") or urn,
        default_namespace=namespace or "default",
        forces_namespace=bool(namespace),
    )


def changed_settings(old: Json, new: Json) -> tuple[list[str], list[str]]:
    """Return the changed properties, and those among them whose change replaces the provider and all of its resources.

    Only a change of ``clusterIdentifier`` replaces it. A provider without this property is never replaced here.
    """
    before = readable(old)
    after = readable(new)
    changed = sorted({str(change.path[0]) for change in changes(before, after)})
    old_id = before.get("clusterIdentifier")
    new_id = after.get("clusterIdentifier")
    return changed, ["clusterIdentifier"] if old_id and new_id and old_id != new_id else []
