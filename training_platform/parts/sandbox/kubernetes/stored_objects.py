"""Kubernetes objects and Helm releases: how the released provider and an API server treat them, controllers apart.

``Objects`` and ``Releases`` answer the same calls. Inputs and outcomes are values as the engine sent them (``values``),
except where a docstring says otherwise. No chart is fetched or rendered, so a release creates no objects but the
namespace that ``createNamespace`` asks for; as with Helm, that namespace outlives the release.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import yaml
from pulumi.runtime.rpc import UNKNOWN as UNKNOWN_ON_WIRE

from training_platform.catalog.types import Json
from training_platform.parts.sandbox.kubernetes.definitions import CrdSchema, Failure, failures_by
from training_platform.parts.sandbox.kubernetes.object_store import (
    CREATED,
    HELM,
    Key,
    ObjectRefused,
    ObjectStore,
    PropertyPath,
    pruned,
    put,
    with_secrets,
)
from training_platform.parts.sandbox.kubernetes.wire import readable
from training_platform.resources.stack_resource import UNKNOWN
from training_platform.rules.documents.shapes import check_of
from training_platform.views.inputs import at, holds_unknown

if TYPE_CHECKING:
    from training_platform.parts.sandbox.kubernetes.controller_programs import ApiStore

AUTONAMED: Final = "pulumi.com/autonamed"  # the annotation by which the provider knows names that it generated
TIMEOUT_SECONDS: Final = 300  # of a release: the provider's default, which it writes into the inputs
_SET_BY_SERVER: Final = ("uid", "resourceVersion", "creationTimestamp")
# A server invents these for a dry run, and the provider takes them for known; the object itself will have others.
_DRY_RUN: Final = {"uid": "00000000-0000-0000-0000-000000000000", "creationTimestamp": CREATED}
_NOT_YET: Final = {"status": UNKNOWN_ON_WIRE, "resourceNames": UNKNOWN_ON_WIRE}  # of a release, in a preview
_TABLE: Final = yaml.safe_load(Path(__file__).with_name("kinds.yaml").read_text(encoding="utf-8"))
_CLUSTER_SCOPED: Final = frozenset((group, kind) for group, kinds in _TABLE["cluster_scoped"].items() for kind in kinds)


class ObjectKind(NamedTuple):
    """Group (empty for core), version and kind."""

    group: str
    version: str
    kind: str

    @classmethod
    def of_token(cls, token: str) -> ObjectKind:
        """Read a Pulumi type such as ``kubernetes:core/v1:Namespace``. Raises ObjectRefused for another form."""
        parts = token.split(":")
        if len(parts) != 3 or parts[1].count("/") != 1:
            raise ObjectRefused(f"{token!r} names no Kubernetes kind: expected kubernetes:<group>/<version>:<kind>")
        group, version = parts[1].split("/")
        return cls("" if group == "core" else group, version, parts[2])

    @property
    def namespaced(self) -> bool | None:
        """Whether objects live in a namespace; ``None`` for a custom kind, which only its CRD can tell."""
        if (self.group, self.kind) in _CLUSTER_SCOPED:
            return False
        return True if "." not in self.group or self.group.endswith(".k8s.io") else None

    @property
    def resource(self) -> str:
        """The plural that messages of an API server use, such as ``clusterroles.rbac.authorization.k8s.io``."""
        name = self.kind.lower()
        if name.endswith(("s", "x", "ch")):
            name += "es"
        else:
            name = name[:-1] + "ies" if name.endswith("y") and name[-2] not in "aeou" else name + "s"
        return f"{name}.{self.group}" if self.group else name


@dataclass(frozen=True, kw_only=True)
class ProviderSettings:
    """A configured provider; ``cluster`` says which cluster's objects it sees."""

    cluster: str
    default_namespace: str = "default"
    forces_namespace: bool = False  # the provider names a namespace, which inputs without one are given


class ResourceCall(NamedTuple):
    """A call about a resource of a kind, by a provider with these settings."""

    kind: ObjectKind
    settings: ProviderSettings


class ResourceState(NamedTuple):
    """A resource after a call; without an id there is none. ``inputs`` are those that a read found."""

    id: str
    properties: Json
    inputs: Json | None = None


class Objects:
    """Objects of every kind, judged by the CRDs in ``schemas`` where one defines the kind, else by our documents."""

    def __init__(self, store: ObjectStore | ApiStore, schemas: Mapping[tuple[str, str, str], CrdSchema]) -> None:
        self._store = store
        self._schemas = schemas

    def check(
        self, call: ResourceCall, olds: Json, news: Json, generated: str, autonaming: bool
    ) -> tuple[Json, list[Failure]]:
        """Name the object, put it in the provider's namespace, and judge it; ``olds`` is empty for a new object.

        ``generated`` is the name of one that the program does not name, where ``autonaming`` is not disabled.
        """
        inputs, failures = news, list[Failure]()
        if call.kind.kind.endswith("List"):
            failures.append(Failure("kind", "lists cannot be created; create the objects in them"))
        if call.kind.kind.endswith("Patch"):
            failures.append(Failure("kind", "the stand-in provider patches no objects that others made"))
        if not at(readable(news), ("metadata", "name")):
            old = readable(olds)
            name = generated if autonaming else ""
            if at(old, ("metadata", "annotations", AUTONAMED)) == "true":
                name = at(old, ("metadata", "name"))
            if name:
                inputs = put(news, ("metadata", "name"), name)
                inputs = put(inputs, ("metadata", "annotations", AUTONAMED), "true")
            else:
                failures.append(Failure("metadata.name", "must be set, since auto-naming is disabled"))
        unplaced = not at(readable(inputs), ("metadata", "namespace"))
        if call.settings.forces_namespace and unplaced and self._namespaced(call, inputs):
            inputs = put(inputs, ("metadata", "namespace"), call.settings.default_namespace)
        group, version, kind = call.kind
        if schema := self._schemas.get(call.kind):
            failures += schema.failures(inputs)
        elif check := check_of(f"kubernetes:{group or 'core'}/{version}:{kind}"):
            failures += failures_by(check, readable(inputs))
        return inputs, failures

    def fixed(self, call: ResourceCall) -> Iterator[PropertyPath]:
        """Yield the fields whose change replaces an object."""
        yield from (("kind",), ("metadata", "name"), ("metadata", "namespace"))
        group, _, kind = call.kind
        yield from (tuple(path.split(".")) for path in _TABLE["immutable"].get(group, {}).get(kind, ()))
        if (group, kind) == ("", "Secret"):
            yield from (("type",), ("data",), ("stringData",))
        if (group, kind) == ("", "ConfigMap"):
            yield from (("data",), ("binaryData",))

    def in_the_way(self, olds: Json, news: Json) -> bool:
        """Whether the replaced object has the name of the new one, and is deleted first."""
        named, autonamed = at(news, ("metadata", "name")), at(news, ("metadata", "annotations", AUTONAMED)) == "true"
        same = all(at(olds, ("metadata", field)) == at(news, ("metadata", field)) for field in ("name", "namespace"))
        return bool(named and same and not autonamed)

    def create(self, call: ResourceCall, inputs: Json, *, preview: bool) -> ResourceState:
        """Create the object; as the provider's, a preview tells a dry run's fields only of wholly known inputs."""
        plain, cluster = readable(inputs), call.settings.cluster
        if preview and holds_unknown(plain):
            return ResourceState("", inputs)
        metadata = at(plain, ("metadata",)) or {}
        name, namespace = metadata.get("name"), metadata.get("namespace") or call.settings.default_namespace
        if not name or name is UNKNOWN:
            raise ObjectRefused(f"{call.kind.kind}: name is required")
        key = Key(call.kind.group, call.kind.kind, namespace if self._namespaced(call, inputs) else "", name)
        if preview:
            self._store.rehearse(cluster, key, plain)
            return ResourceState("", _filled(inputs, {"metadata": _DRY_RUN}))
        live = self._store.create(cluster, key, plain, call.kind.resource)
        return ResourceState(f"{key.namespace}/{key.name}" if key.namespace else key.name, _filled(inputs, live))

    def read(self, call: ResourceCall, identity: str, inputs: Json) -> ResourceState:
        """The live object, and as its inputs the fields that the program had set; all of them in an import."""
        cluster, key = call.settings.cluster, _key(call.kind, identity)
        live = self._store.read(cluster, key)
        if live is None:
            return ResourceState("", {})
        if inputs:
            own = self._store.own(cluster, key, live, readable(inputs))
        else:
            metadata = {name: value for name, value in live["metadata"].items() if name not in _SET_BY_SERVER}
            own = {**live, "metadata": metadata}
        return ResourceState(identity, with_secrets(live, inputs), with_secrets(own, inputs))

    def update(self, call: ResourceCall, identity: str, inputs: Json, *, preview: bool) -> ResourceState:
        """Update in place; as a server's dry run, a preview refuses the same, unless a value is unknown."""
        cluster, key, plain = call.settings.cluster, _key(call.kind, identity), readable(inputs)
        live = self._store.read(cluster, key)
        if not preview:
            live = self._store.update(cluster, key, plain, call.kind.resource)
        elif not holds_unknown(plain):
            self._store.rehearse(cluster, key, plain)
        return ResourceState(identity, _filled(inputs, live) if live else inputs)

    def delete(self, call: ResourceCall, identity: str) -> None:
        """Delete the object; deleting it twice is not an error."""
        self._store.delete(call.settings.cluster, _key(call.kind, identity))

    def _namespaced(self, call: ResourceCall, inputs: Json) -> bool:
        """Scope by the CRD, else by the kind; a custom kind without CRD is namespaced where its inputs name one."""
        schema = self._schemas.get(call.kind)
        known = schema.namespaced if schema else call.kind.namespaced
        return bool(at(readable(inputs), ("metadata", "namespace"))) if known is None else known


def _filled(inputs: Json, live: Json) -> Json:
    """The inputs with the fields that the server added, their secrets and unknowns left alone."""
    filled = inputs
    for field in (*_SET_BY_SERVER, "name", "namespace"):
        if field in live["metadata"]:
            filled = put(filled, ("metadata", field), live["metadata"][field])
    return filled


def _key(kind: ObjectKind, identity: str) -> Key:
    namespace, _, name = identity.rpartition("/")
    return Key(kind.group, kind.kind, namespace, name)


class Releases:
    """Releases by namespace and name, kept in ``store``; ``objects`` is where their namespaces are."""

    def __init__(self, store: ObjectStore, objects: ObjectStore | ApiStore) -> None:
        self._store = store
        self._objects = objects

    def check(
        self, call: ResourceCall, olds: Json, news: Json, generated: str, _autonaming: bool
    ) -> tuple[Json, list[Failure]]:
        """Fill in the inputs that the provider fills in: name, namespace and time-out."""
        inputs = dict(news)
        inputs["name"] = inputs.get("name") or olds.get("name") or generated
        inputs["namespace"] = inputs.get("namespace") or call.settings.default_namespace
        if not readable(inputs).get("skipAwait"):
            inputs.setdefault("timeout", TIMEOUT_SECONDS)
        return inputs, [] if inputs.get("chart") else [Failure("chart", "required, but missing")]

    def fixed(self, _call: ResourceCall) -> Iterator[PropertyPath]:
        """A release of another name or namespace is another release."""
        yield from (("name",), ("namespace",))

    def in_the_way(self, _olds: Json, _news: Json) -> bool:
        """Another release has another name."""
        return False

    def create(self, call: ResourceCall, inputs: Json, *, preview: bool) -> ResourceState:
        """Record the release, with its namespace where it asks for one; a preview creates nothing and knows no id."""
        if preview:
            return ResourceState("", {**inputs, **_NOT_YET})
        plain, cluster = readable(inputs), call.settings.cluster
        key = Key(HELM, "Release", plain["namespace"], plain["name"])
        if self._store.read(cluster, key) is not None:
            raise ObjectRefused(f'release "{key.name}": cannot re-use a name that is still in use, it already exists')
        if plain.get("createNamespace"):
            self._objects.ensure_namespace(cluster, key.namespace)
        if self._objects.has_namespace(cluster, key.namespace):
            self._store.ensure_namespace(cluster, key.namespace)  # which may be another store
        live = self._store.create(cluster, key, _released(plain, 1), "releases")
        self._create_secret(cluster, live)
        return ResourceState(f"{key.namespace}/{key.name}", _outputs(inputs, live))

    def read(self, call: ResourceCall, identity: str, inputs: Json) -> ResourceState:
        """The release as it is recorded, and the inputs that the program had set; all of them in an import."""
        live = self._store.read(call.settings.cluster, Key(HELM, "Release", *identity.split("/", 1)))
        if live is None:
            return ResourceState("", {})
        live.pop("metadata")
        own = pruned(live, readable(inputs)) if inputs else {k: v for k, v in live.items() if k != "status"}
        return ResourceState(identity, with_secrets(_outputs(live, live), inputs), with_secrets(own, inputs))

    def update(self, call: ResourceCall, identity: str, inputs: Json, *, preview: bool) -> ResourceState:
        """Record the release's next revision."""
        if preview:
            return ResourceState(identity, {**inputs, **_NOT_YET})
        key, cluster = Key(HELM, "Release", *identity.split("/", 1)), call.settings.cluster
        old = self._store.read(cluster, key)
        if old is None:
            raise ObjectRefused(f'release "{key.name}" not found')
        live = self._store.update(cluster, key, _released(readable(inputs), old["status"]["revision"] + 1), "releases")
        self._delete_secret(cluster, old)
        self._create_secret(cluster, live)
        return ResourceState(identity, _outputs(inputs, live))

    def delete(self, call: ResourceCall, identity: str) -> None:
        """Forget the release; deleting it twice is not an error."""
        key, cluster = Key(HELM, "Release", *identity.split("/", 1)), call.settings.cluster
        if (old := self._store.read(cluster, key)) is not None:
            self._delete_secret(cluster, old)
        self._store.delete(cluster, key)

    def _create_secret(self, cluster: str, release: Json) -> None:
        """Write Helm's own record of a release into an API server, where others look for it."""
        status = release["status"]
        if self._objects is self._store or not self._objects.has_namespace(cluster, status["namespace"]):
            return
        key = _secret(status)
        record = {"chart": {"metadata": {"version": status["version"]}}, "config": release.get("values") or {}}
        packed = base64.b64encode(base64.b64encode(gzip.compress(json.dumps(record).encode())))
        labels = {"owner": "helm", "name": status["name"], "status": "deployed", "version": str(status["revision"])}
        metadata = {"name": key.name, "namespace": key.namespace, "labels": labels}
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "helm.sh/release.v1"}
        self._objects.create(cluster, key, {**secret, "data": {"release": packed.decode()}}, "secrets")

    def _delete_secret(self, cluster: str, release: Json) -> None:
        if self._objects is not self._store:
            self._objects.delete(cluster, _secret(release["status"]))


def _secret(status: Json) -> Key:
    return Key("", "Secret", status["namespace"], f"sh.helm.release.v1.{status['name']}.v{status['revision']}")


def _released(inputs: Json, revision: int) -> Json:
    """Return a release with its status; a version that is not named is the newest, which cannot be known here."""
    status = {
        "name": inputs["name"], "namespace": inputs["namespace"], "revision": revision, "status": "deployed",
        "chart": str(inputs["chart"]).rstrip("/").rpartition("/")[2], "version": inputs.get("version", ""),
    }  # fmt: skip
    return {**inputs, "status": status}


def _outputs(inputs: Json, live: Json) -> dict[str, Any]:
    return {**inputs, "status": live["status"], "resourceNames": {}}
