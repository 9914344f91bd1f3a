"""The object store: the objects of every cluster in memory, and optionally in a JSON file.

The key of an object contains the API group but no version, since a cluster serves the same object in all versions of
its kind. The fields that a server fills in are deterministic, so that two runs of a program give equal states: ``uid``
depends on the object's identity, ``resourceVersion`` counts its updates from 1, and ``creationTimestamp`` is constant.
No controller runs, so status fields stay empty. The file contains secrets in plain text, as a cluster does.

The functions below the store work on property values in the engine's format. ``readable`` copies such a value without
its secret markers, and replaces every unknown with ``UNKNOWN``.
"""

from __future__ import annotations

import copy
import json
import uuid
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from pathlib import Path
from threading import RLock
from typing import Any, Final, Literal, NamedTuple

from google.protobuf.struct_pb2 import Struct

from local_google_cloud.files import BrokenFile, read_json, write_whole
from local_google_cloud.kubernetes.wire import as_sent
from training_platform.catalog.types import Json
from training_platform.config.reading.secrets import SECRET, SIGNATURE
from training_platform.config.reading.unknown import UNKNOWN
from training_platform.rules.documents.definitions import path_text

CREATED: Final = "2026-01-01T00:00:00Z"
HELM: Final = "helm.sh"  # group of Helm releases
# The last two are GKE's, for managed Prometheus.
BUILT_IN: Final = frozenset({"default", "kube-system", "kube-public", "kube-node-lease", "gmp-system", "gmp-public"})


class ObjectRefused(Exception):
    """Raised if an API server would refuse a request, with its message."""


class Key(NamedTuple):
    """The identity of an object within a cluster. ``namespace`` is "" for cluster-scoped kinds."""

    group: str
    kind: str
    namespace: str
    name: str


class ObjectStore:
    """Objects, keyed by cluster and ``Key``.

    Thread-safe. Every returned object is a copy. The parameter ``resource`` is the plural of a kind, used in error
    messages.
    """

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._lock = RLock()
        self._objects: dict[tuple[str, Key], Json] = {}
        if file is not None and file.exists():
            try:
                for record in read_json(file):
                    self._objects[record["cluster"], Key._make(record["key"])] = record["object"]
            except (TypeError, KeyError) as error:
                raise BrokenFile(file, "it is not in the format of the stand-in") from error

    def clusters(self) -> list[str]:
        """Return the clusters that have objects."""
        with self._lock:
            return sorted({cluster for cluster, _ in self._objects})

    def keys(self, cluster: str) -> list[Key]:
        """Return the keys of a cluster's objects, except built-in namespaces."""
        with self._lock:
            return sorted(key for owner, key in self._objects if owner == cluster)

    def read(self, cluster: str, key: Key) -> Json | None:
        """Return an object, or ``None`` if it does not exist."""
        with self._lock:
            return copy.deepcopy(self._objects.get((cluster, key)))

    def has_namespace(self, cluster: str, name: str) -> bool:
        """Return True if a namespace exists."""
        with self._lock:
            return name in BUILT_IN or (cluster, _namespace(name)) in self._objects

    def create(self, cluster: str, key: Key, obj: Json, resource: str) -> Json:
        """Store a new object, and return it with the fields that a server adds."""
        with self._lock:
            built_in = key == _namespace(key.name) and key.name in BUILT_IN
            if built_in or (cluster, key) in self._objects:
                raise ObjectRefused(f'{resource} "{key.name}" already exists')
            if key.namespace and not self.has_namespace(cluster, key.namespace):
                raise ObjectRefused(f'namespaces "{key.namespace}" not found')
            return self._write(cluster, key, obj, 1)

    def update(self, cluster: str, key: Key, obj: Json, resource: str) -> Json:
        """Replace an object, and return it with the fields that a server adds."""
        with self._lock:
            old = self._objects.get((cluster, key))
            if old is None:
                raise ObjectRefused(f'{resource} "{key.name}" not found')
            return self._write(cluster, key, obj, int(old["metadata"]["resourceVersion"]) + 1)

    def delete(self, cluster: str, key: Key) -> None:
        """Delete an object, if it exists. If it is a namespace, delete everything in it."""
        with self._lock:
            deleted = {key}
            if key == _namespace(key.name):
                deleted |= {other for other in self.keys(cluster) if other.namespace == key.name}
            self._save(
                {
                    (owner, other): obj
                    for (owner, other), obj in self._objects.items()
                    if owner != cluster or other not in deleted
                }
            )

    def ensure_namespace(self, cluster: str, name: str) -> None:
        """Create a namespace if it does not exist."""
        with self._lock:
            if not self.has_namespace(cluster, name):
                obj = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
                self.create(cluster, _namespace(name), obj, "namespaces")

    def _write(self, cluster: str, key: Key, obj: Json, version: int) -> Json:
        metadata = {
            **obj.get("metadata", {}),
            "name": key.name,
            "uid": str(uuid.uuid5(uuid.NAMESPACE_URL, "/".join((cluster, *key)))),
            "resourceVersion": str(version),
            "creationTimestamp": CREATED,
        }
        if key.namespace:
            metadata["namespace"] = key.namespace
        live = {**obj, "metadata": metadata}
        self._save({**self._objects, (cluster, key): copy.deepcopy(live)})
        return live

    def _save(self, objects: dict[tuple[str, Key], Json]) -> None:
        """Replace all objects. Raises ObjectRefused if they cannot be written."""
        if self._file is not None:
            records = [{"cluster": c, "key": key, "object": obj} for (c, key), obj in sorted(objects.items())]
            try:
                write_whole(self._file, json.dumps(records, indent=1))
            except OSError as error:
                raise ObjectRefused(f"the stand-in cannot write its objects: {error.strerror or error}") from error
        self._objects = objects


def _namespace(name: str) -> Key:
    return Key("", "Namespace", namespace="", name=name)


PropertyPath = tuple[str | int, ...]


def from_struct(struct: Struct) -> Json:
    """Return a Struct as plain Python data in the engine's format."""
    return {name: as_sent(value) for name, value in struct.fields.items()}


def is_secret(value: Any) -> bool:
    """Return True if a value is wrapped as a secret."""
    return isinstance(value, Mapping) and value.get(SIGNATURE) == SECRET


def with_secrets(value: Any, like: Any) -> Any:
    """Return ``value``, in which every part that is secret in ``like`` is wrapped as a secret."""
    if is_secret(like):
        return {SIGNATURE: SECRET, "value": with_secrets(value, like["value"])}
    if isinstance(value, dict) and isinstance(like, Mapping):
        return {name: with_secrets(item, like.get(name)) for name, item in value.items()}
    if isinstance(value, list) and isinstance(like, list):
        return [with_secrets(item, like[i] if i < len(like) else None) for i, item in enumerate(value)]
    return value


def get(value: Any, *names: str) -> Any:
    """Return a field of a value, or None if it is missing. Every field below an unknown value is unknown."""
    for name in names:
        if not isinstance(value, dict):
            return UNKNOWN if value is UNKNOWN else None
        value = value.get(name)
    return value


def put(value: Json, path: tuple[str, ...], item: Any) -> Json:
    """Return a copy of a value with one field set, even inside a secret. Nothing is set below an unknown."""
    changed = copy.deepcopy(value)
    parent: Any = changed
    for name in path[:-1]:
        parent = parent.setdefault(name, {})
        while is_secret(parent):
            parent = parent["value"]
        if not isinstance(parent, dict):
            return changed
    parent[path[-1]] = item
    return changed


def pruned(live: Json, like: Json) -> Json:
    """Return the fields of a live object that are also set in ``like``, the earlier inputs."""
    return {
        name: pruned(item, like[name]) if isinstance(item, dict) and isinstance(like[name], dict) else item
        for name, item in live.items()
        if name in like
    }


class PropertyChange(NamedTuple):
    """One property that was added, deleted or updated."""

    path: PropertyPath
    kind: Literal["add", "delete", "update"]

    def within(self, path: PropertyPath) -> bool:
        """Return True if the changed property is ``path``, is below it, or contains it."""
        shared = min(len(path), len(self.path))
        return self.path[:shared] == path[:shared]

    def __str__(self) -> str:
        return path_text(self.path)


def changes(old: Any, new: Any, path: PropertyPath = ()) -> Iterator[PropertyChange]:
    """Yield the differences between two values. Null means absent, and an unknown differs from every known value."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name in sorted(old.keys() | new.keys()):
            yield from changes(old.get(name), new.get(name), (*path, name))
    elif isinstance(old, list) and isinstance(new, list):
        for i, (before, after) in enumerate(zip_longest(old, new)):
            yield from changes(before, after, (*path, i))
    elif old is None and new is not None:
        yield PropertyChange(path, "add")
    elif new is None and old is not None:
        yield PropertyChange(path, "delete")
    elif old != new or isinstance(old, bool) is not isinstance(new, bool):
        yield PropertyChange(path, "update")
