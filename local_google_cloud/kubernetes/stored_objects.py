"""Handles Kubernetes objects and Helm releases as the released provider and an API server without controllers do.

``Objects`` and ``Releases`` have the same methods. Inputs and results are values in the engine's format, unless a
docstring says otherwise. Charts are not downloaded or rendered, so a release creates no object except the namespace
that ``createNamespace`` requests. As with Helm, this namespace remains when the release is deleted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml
from pulumi.runtime.rpc import UNKNOWN as UNKNOWN_ON_WIRE

from local_google_cloud.kubernetes.object_store import (
    CREATED,
    HELM,
    Key,
    ObjectRefused,
    ObjectStore,
    PropertyPath,
    get,
    pruned,
    put,
    with_secrets,
)
from local_google_cloud.kubernetes.wire import readable
from training_platform.catalog.types import Json
from training_platform.config.reading.unknown import UNKNOWN, holds_unknown
from training_platform.rules.documents.definitions import CrdSchema, Failure, failures_by
from training_platform.rules.documents.shapes import check_of

AUTONAMED: Final = "pulumi.com/autonamed"  # annotation of objects whose names the provider generated
RELEASE: Final = "kubernetes:helm.sh/v3:Release"
TIMEOUT_SECONDS: Final = 300  # of a release: the provider writes this default into the inputs
_SET_BY_SERVER: Final = ("uid", "resourceVersion", "creationTimestamp")
# A server makes these up for a dry run, and the provider treats them as known; the real object has others.
_DRY_RUN: Final = {"uid": "00000000-0000-0000-0000-000000000000", "creationTimestamp": CREATED}
_UNKNOWN_OUTPUTS: Final = {"status": UNKNOWN_ON_WIRE, "resourceNames": UNKNOWN_ON_WIRE}  # of a release
_TABLE: Final = yaml.safe_load(Path(__file__).with_name("kinds.yaml").read_text(encoding="utf-8"))
_CLUSTER_SCOPED: Final = frozenset((group, kind) for group, kinds in _TABLE["cluster_scoped"].items() for kind in kinds)


class ObjectKind(NamedTuple):
    """Group ("" for core), version and kind."""

    group: str
    version: str
    kind: str

    @classmethod
    def of_token(cls, token: str) -> ObjectKind:
        """Parse a Pulumi type such as ``kubernetes:core/v1:Namespace``. Raises ObjectRefused for another form."""
        parts = token.split(":")
        if len(parts) != 3 or parts[1].count("/") != 1:
            raise ObjectRefused(f"{token!r} is not a Kubernetes kind: expected kubernetes:<group>/<version>:<kind>")
        group, version = parts[1].split("/")
        return cls("" if group == "core" else group, version, parts[2])

    @property
    def namespaced(self) -> bool | None:
        """Whether objects of this kind are namespaced; ``None`` for a custom kind, whose CRD defines it."""
        if (self.group, self.kind) in _CLUSTER_SCOPED:
            return False
        return True if "." not in self.group or self.group.endswith(".k8s.io") else None

    @property
    def resource(self) -> str:
        """The kind's plural in an API server's messages, such as ``clusterroles.rbac.authorization.k8s.io``."""
        name = self.kind.lower()
        if name.endswith(("s", "x", "ch")):
            name += "es"
        elif name.endswith("y") and name[-2] not in "aeou":
            name = name.removesuffix("y") + "ies"
        else:
            name += "s"
        return f"{name}.{self.group}" if self.group else name


@dataclass(frozen=True, kw_only=True)
class ProviderSettings:
    """A configured provider. ``cluster`` identifies the cluster that contains its objects."""

    cluster: str
    default_namespace: str = "default"
    forces_namespace: bool = False  # inputs without a namespace get the default one


class ResourceCall(NamedTuple):
    """The kind and URN of a call's resource, and the settings of its provider."""

    kind: ObjectKind
    settings: ProviderSettings
    urn: str


class ResourceState(NamedTuple):
    """A resource after a call. The id is "" if the resource does not exist. Only a read sets ``inputs``."""

    id: str
    properties: Json
    inputs: Json | None = None


class Objects:
    """Objects of every kind. Each is checked against its CRD in ``schemas``, or else against our own documents."""

    def __init__(self, store: ObjectStore, schemas: Mapping[tuple[str, str, str], CrdSchema]) -> None:
        self._store = store
        self._schemas = schemas

    def check(
        self, call: ResourceCall, olds: Json, news: Json, generated: str, autonaming: bool
    ) -> tuple[Json, list[Failure]]:
        """Set an object's name and namespace, and check it. ``olds`` is empty for a new object.

        ``generated`` is the name to use if the program sets none, unless ``autonaming`` is disabled.
        """
        inputs = news
        failures: list[Failure] = []
        if call.kind.kind.endswith("List"):
            failures.append(Failure("kind", "lists cannot be created; create the objects in them"))
        if call.kind.kind.endswith("Patch"):
            failures.append(Failure("kind", "the stand-in provider cannot patch objects"))
        if not get(readable(news), "metadata", "name"):
            old = readable(olds)
            name = generated if autonaming else ""
            if get(old, "metadata", "annotations", AUTONAMED) == "true":
                name = get(old, "metadata", "name")
            if name:
                inputs = put(news, ("metadata", "name"), name)
                inputs = put(inputs, ("metadata", "annotations", AUTONAMED), "true")
            else:
                failures.append(Failure("metadata.name", "must be set, since auto-naming is disabled"))
        has_namespace = bool(get(readable(inputs), "metadata", "namespace"))
        if call.settings.forces_namespace and not has_namespace and self._namespaced(call, inputs):
            inputs = put(inputs, ("metadata", "namespace"), call.settings.default_namespace)
        group, version, kind = call.kind
        if schema := self._schemas.get(call.kind):
            failures += failures_by(schema.check, readable(inputs))
        elif check := check_of(f"kubernetes:{group or 'core'}/{version}:{kind}"):
            failures += failures_by(check, readable(inputs))
        return inputs, failures

    def fixed(self, call: ResourceCall) -> Iterator[PropertyPath]:
        """Yield the immutable fields. A change of one of them replaces the object."""
        yield from (("kind",), ("metadata", "name"), ("metadata", "namespace"))
        group, _, kind = call.kind
        for path in _TABLE["immutable"].get(group, {}).get(kind, ()):
            yield tuple(path.split("."))
        if (group, kind) == ("", "Secret"):
            yield from (("type",), ("data",), ("stringData",))
        if (group, kind) == ("", "ConfigMap"):
            yield from (("data",), ("binaryData",))

    def deletes_first(self, olds: Json, news: Json) -> bool:
        """Return True if the new object has the same name as the old one, which then has to be deleted first."""
        autonamed = get(news, "metadata", "annotations", AUTONAMED) == "true"
        same = all(get(olds, "metadata", field) == get(news, "metadata", field) for field in ("name", "namespace"))
        return bool(get(news, "metadata", "name")) and same and not autonamed

    def create(self, call: ResourceCall, inputs: Json, *, preview: bool) -> ResourceState:
        """Create the object. If all inputs are known, a preview returns a dry run's fields, as the provider does."""
        plain = readable(inputs)
        cluster = call.settings.cluster
        if preview and holds_unknown(plain):
            return ResourceState("", inputs)
        metadata = get(plain, "metadata") or {}
        name = metadata.get("name")
        namespace = metadata.get("namespace") or call.settings.default_namespace
        if not name or name is UNKNOWN:
            raise ObjectRefused(f"{call.kind.kind}: name is required")
        key = Key(
            call.kind.group, call.kind.kind, namespace=namespace if self._namespaced(call, inputs) else "", name=name
        )
        if preview:
            return ResourceState("", _filled(inputs, {"metadata": _DRY_RUN}))
        try:
            live = self._store.create(cluster, key, plain, call.kind.resource)
        except ObjectRefused as refusal:
            words = "was not successfully created by the Kubernetes API server"
            raise ObjectRefused(f'resource "{call.urn}" {words}: {refusal}') from refusal
        return ResourceState(f"{key.namespace}/{key.name}" if key.namespace else key.name, _filled(inputs, live))

    def read(self, call: ResourceCall, identity: str, inputs: Json) -> ResourceState:
        """Return the live object, and as its inputs those fields that the program has set.

        In an import, the inputs are all fields of the object, or only its name if the kind is custom, since the
        provider has no schema for such a kind.
        """
        cluster = call.settings.cluster
        key = _key(call.kind, identity)
        live = self._store.read(cluster, key)
        if live is None:
            return ResourceState("", {})
        if inputs:
            set_fields = pruned(live, readable(inputs))
        else:
            metadata = {name: value for name, value in live["metadata"].items() if name not in _SET_BY_SERVER}
            set_fields = {**live, "metadata": metadata}
            if call.kind.namespaced is None:
                named = {name: metadata[name] for name in ("name", "namespace") if name in metadata}
                set_fields = {"apiVersion": live["apiVersion"], "kind": live["kind"], "metadata": named}
        return ResourceState(identity, with_secrets(live, inputs), inputs=with_secrets(set_fields, inputs))

    def update(self, call: ResourceCall, identity: str, inputs: Json, *, preview: bool) -> ResourceState:
        """Update the object in place. A preview is a dry run, unless a value is unknown."""
        cluster = call.settings.cluster
        key = _key(call.kind, identity)
        plain = readable(inputs)
        live = self._store.read(cluster, key)
        if preview and holds_unknown(plain):
            return ResourceState(identity, _filled(inputs, live) if live else inputs)
        if live is None:
            missing = f'{call.kind.resource} "{key.name}" not found'
            raise ObjectRefused(f'update of resource "{call.urn}" failed: {missing}')
        if not preview:
            live = self._store.update(cluster, key, plain, call.kind.resource)
        return ResourceState(identity, _filled(inputs, live))

    def delete(self, call: ResourceCall, identity: str) -> None:
        """Delete the object, if it exists."""
        self._store.delete(call.settings.cluster, _key(call.kind, identity))

    def _namespaced(self, call: ResourceCall, inputs: Json) -> bool:
        """Return True if the kind is namespaced. Without a CRD, a custom kind is if its inputs contain a namespace."""
        schema = self._schemas.get(call.kind)
        namespaced = schema.namespaced if schema else call.kind.namespaced
        return bool(get(readable(inputs), "metadata", "namespace")) if namespaced is None else namespaced


def _filled(inputs: Json, live: Json) -> Json:
    """Return the inputs, including secrets and unknowns, with the fields that the server adds."""
    filled = inputs
    for field in (*_SET_BY_SERVER, "name", "namespace"):
        if field in live["metadata"]:
            filled = put(filled, ("metadata", field), live["metadata"][field])
    return filled


def _key(kind: ObjectKind, identity: str) -> Key:
    namespace, _, name = identity.rpartition("/")
    return Key(kind.group, kind.kind, namespace=namespace, name=name)


class Releases:
    """Helm releases in ``store``, keyed by namespace and name, with their namespaces."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    def check(
        self, call: ResourceCall, olds: Json, news: Json, generated: str, _autonaming: bool
    ) -> tuple[Json, list[Failure]]:
        """Fill in the provider's defaults: name, namespace and timeout."""
        inputs = dict(news)
        inputs["name"] = inputs.get("name") or olds.get("name") or generated
        inputs["namespace"] = inputs.get("namespace") or call.settings.default_namespace
        if not readable(inputs).get("skipAwait"):
            inputs.setdefault("timeout", TIMEOUT_SECONDS)
        return inputs, [] if inputs.get("chart") else [Failure("chart", "required, but missing")]

    def fixed(self, _call: ResourceCall) -> Iterator[PropertyPath]:
        """Yield the immutable fields, which are those that identify a release."""
        yield from (("name",), ("namespace",))

    def deletes_first(self, _olds: Json, _news: Json) -> bool:
        """Return False, since the replacement of a release always has another name."""
        return False

    def create(self, call: ResourceCall, inputs: Json, *, preview: bool) -> ResourceState:
        """Record the release, and create its namespace if it requests one. In a preview, the result has no id."""
        if preview:
            return ResourceState("", {**inputs, **_UNKNOWN_OUTPUTS})
        plain = readable(inputs)
        cluster = call.settings.cluster
        key = Key(HELM, "Release", namespace=plain["namespace"], name=plain["name"])
        if self._store.read(cluster, key) is not None:
            raise ObjectRefused(f'release "{key.name}": cannot re-use a name that is still in use, it already exists')
        if plain.get("createNamespace"):
            self._store.ensure_namespace(cluster, key.namespace)
        live = self._store.create(cluster, key, _released(plain, 1), "releases")
        return ResourceState(f"{key.namespace}/{key.name}", _outputs(inputs, live))

    def read(self, call: ResourceCall, identity: str, inputs: Json) -> ResourceState:
        """Return the recorded release, and the inputs that the program has set. In an import, return all inputs."""
        live = self._store.read(call.settings.cluster, _release_key(identity))
        if live is None:
            return ResourceState("", {})
        live.pop("metadata")
        if inputs:
            set_inputs = pruned(live, readable(inputs))
        else:
            set_inputs = {name: value for name, value in live.items() if name != "status"}
        return ResourceState(
            identity, with_secrets(_outputs(live, live), inputs), inputs=with_secrets(set_inputs, inputs)
        )

    def update(self, call: ResourceCall, identity: str, inputs: Json, *, preview: bool) -> ResourceState:
        """Record the release's next revision."""
        if preview:
            return ResourceState(identity, {**inputs, **_UNKNOWN_OUTPUTS})
        key = _release_key(identity)
        cluster = call.settings.cluster
        old = self._store.read(cluster, key)
        if old is None:
            raise ObjectRefused(f'release "{key.name}" not found')
        live = self._store.update(cluster, key, _released(readable(inputs), old["status"]["revision"] + 1), "releases")
        return ResourceState(identity, _outputs(inputs, live))

    def delete(self, call: ResourceCall, identity: str) -> None:
        """Delete the recorded release, if it exists."""
        self._store.delete(call.settings.cluster, _release_key(identity))


def _release_key(identity: str) -> Key:
    namespace, name = identity.split("/", 1)
    return Key(HELM, "Release", namespace=namespace, name=name)


def _released(inputs: Json, revision: int) -> Json:
    """Return a release with its status. Without ``version``, it would have the chart's newest version, unknown here."""
    status = {
        "name": inputs["name"],
        "namespace": inputs["namespace"],
        "revision": revision,
        "status": "deployed",
        "chart": str(inputs["chart"]).rstrip("/").rpartition("/")[2],
        "version": inputs.get("version", ""),
    }
    return {**inputs, "status": status}


def _outputs(inputs: Json, live: Json) -> dict[str, Any]:
    return {**inputs, "status": live["status"], "resourceNames": {}}
