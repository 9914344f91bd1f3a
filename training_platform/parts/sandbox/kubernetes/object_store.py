"""The light store: the objects of every cluster in memory and, if asked, in a JSON file that survives a restart.

Objects are kept by group, not by version: a cluster serves one object in all versions of its kind. Fields that a
server fills in are deterministic, so two runs of a program have equal states: ``uid`` from the object's identity,
``resourceVersion`` counting its updates from 1, one fixed ``creationTimestamp``. No controller runs, so status fields
stay empty. The file holds secrets in plain text, as a cluster does.

Below the store: property values as the engine sends them. Most code keeps values as they were sent, and asks
``readable`` for a copy without secrets, in which every unknown is ``UNKNOWN``.
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

from training_platform.catalog.types import Json
from training_platform.config.reading.secrets import SECRET, SIGNATURE
from training_platform.parts.sandbox.files import BrokenFile, read_json, write_whole
from training_platform.parts.sandbox.kubernetes.wire import as_sent

CREATED: Final = "2026-01-01T00:00:00Z"
HELM: Final = "helm.sh"  # the group of Helm releases, which are kept here even where objects are in API servers
# The last two are GKE's, for managed Prometheus.
BUILT_IN: Final = frozenset({"default", "kube-system", "kube-public", "kube-node-lease", "gmp-system", "gmp-public"})


class ObjectRefused(Exception):
    """A refusal of an API server; the text is the whole answer."""


class Key(NamedTuple):
    """An object's identity within a cluster; ``namespace`` is empty for cluster-scoped kinds."""

    group: str
    kind: str
    namespace: str
    name: str


class ObjectStore:
    """Objects by cluster and key, as ``ApiStore`` has them in real API servers.

    Safe to use from several threads; each object that it returns is the caller's own copy. ``resource`` is the plural
    by which a refusal calls an object.
    """

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._lock = RLock()
        self._objects: dict[tuple[str, Key], Json] = {}
        if file is not None and file.exists():
            try:
                for record in read_json(file):
                    self._objects[record["cluster"], Key(*record["key"])] = record["object"]
            except (TypeError, KeyError) as error:
                raise BrokenFile(file, "it does not hold what the stand-in writes") from error

    def clusters(self) -> list[str]:
        """Clusters that hold an object."""
        with self._lock:
            return sorted({cluster for cluster, _ in self._objects})

    def keys(self, cluster: str) -> list[Key]:
        """The keys of a cluster's objects; built-in namespaces are not counted."""
        with self._lock:
            return sorted(key for owner, key in self._objects if owner == cluster)

    def read(self, cluster: str, key: Key) -> Json | None:
        """An object, or ``None``."""
        with self._lock:
            return copy.deepcopy(self._objects.get((cluster, key)))

    def own(self, cluster: str, key: Key, live: Json, inputs: Json) -> Json:  # noqa: ARG002 # as in ApiStore
        """The fields of a live object that the program set; no value is spelt differently here."""
        return pruned(live, inputs)

    def rehearse(self, cluster: str, key: Key, obj: Json) -> None:
        """Refuse in a preview what a create or an update would refuse: nothing that this store could know."""

    def has_namespace(self, cluster: str, name: str) -> bool:
        """Whether objects can be put into a namespace."""
        with self._lock:
            return name in BUILT_IN or (cluster, _namespace(name)) in self._objects

    def create(self, cluster: str, key: Key, obj: Json, resource: str) -> Json:
        """Store a new object, and return it with the fields that the server fills in."""
        with self._lock:
            built_in = key == _namespace(key.name) and key.name in BUILT_IN
            if built_in or (cluster, key) in self._objects:
                raise ObjectRefused(f'{resource} "{key.name}" already exists')
            if key.namespace and not self.has_namespace(cluster, key.namespace):
                raise ObjectRefused(f'namespaces "{key.namespace}" not found')
            return self._write(cluster, key, obj, 1)

    def update(self, cluster: str, key: Key, obj: Json, resource: str) -> Json:
        """Put an object in the place of the one with its key; fields that it lacks are deleted."""
        with self._lock:
            old = self._objects.get((cluster, key))
            if old is None:
                raise ObjectRefused(f'{resource} "{key.name}" not found')
            return self._write(cluster, key, obj, int(old["metadata"]["resourceVersion"]) + 1)

    def delete(self, cluster: str, key: Key) -> None:
        """Delete an object, and with a namespace all that is in it; deleting it twice is not an error."""
        with self._lock:
            inside = key.name if key == _namespace(key.name) else None
            self._save(
                {
                    (owner, other): obj
                    for (owner, other), obj in self._objects.items()
                    if owner != cluster or not (other == key or (inside and other.namespace == inside))
                }
            )

    def ensure_namespace(self, cluster: str, name: str) -> None:
        """Create a namespace unless it is there."""
        with self._lock:
            if not self.has_namespace(cluster, name):
                obj = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
                self.create(cluster, _namespace(name), obj, "namespaces")

    def _write(self, cluster: str, key: Key, obj: Json, version: int) -> Json:
        """Write an object with the fields that a server fills in, and return it."""
        filled = {
            "name": key.name,
            "uid": str(uuid.uuid5(uuid.NAMESPACE_URL, "/".join((cluster, *key)))),
            "resourceVersion": str(version),
            "creationTimestamp": CREATED,
            **({"namespace": key.namespace} if key.namespace else {}),
        }
        live = {**obj, "metadata": {**obj.get("metadata", {}), **filled}}
        self._save({**self._objects, (cluster, key): copy.deepcopy(live)})
        return live

    def _save(self, objects: dict[tuple[str, Key], Json]) -> None:
        """Hold these objects, and no others; where they cannot be written, the change is refused."""
        if self._file is not None:
            records = [{"cluster": c, "key": key, "object": obj} for (c, key), obj in sorted(objects.items())]
            try:
                write_whole(self._file, json.dumps(records, indent=1))
            except OSError as error:
                raise ObjectRefused(f"the stand-in cannot write its objects: {error.strerror or error}") from error
        self._objects = objects


def _namespace(name: str) -> Key:
    return Key("", "Namespace", "", name)


PropertyPath = tuple[str | int, ...]


def from_struct(struct: Struct) -> Json:
    """Read a protobuf struct."""
    return {name: as_sent(value) for name, value in struct.fields.items()}


def is_secret(value: Any) -> bool:
    """Whether a value as the engine sent it is wrapped as a secret."""
    return isinstance(value, Mapping) and value.get(SIGNATURE) == SECRET


def with_secrets(value: Any, like: Any) -> Any:
    """Mark as secret in ``value`` what is secret in ``like``, a value as the engine sent it."""
    if is_secret(like):
        return {SIGNATURE: SECRET, "value": with_secrets(value, like["value"])}
    if isinstance(value, dict) and isinstance(like, Mapping):
        return {name: with_secrets(item, like.get(name)) for name, item in value.items()}
    if isinstance(value, list) and isinstance(like, list):
        return [with_secrets(item, like[i] if i < len(like) else None) for i, item in enumerate(value)]
    return value


def put(value: Json, path: tuple[str, ...], item: Any) -> Json:
    """Copy a value as the engine sent it and set one field, inside secrets too; below an unknown nothing is set."""
    changed = copy.deepcopy(value)
    here: Any = changed
    for name in path[:-1]:
        here = here.setdefault(name, {})
        while is_secret(here):
            here = here["value"]
        if not isinstance(here, dict):
            return changed
    here[path[-1]] = item
    return changed


def pruned(live: Json, like: Json) -> Json:
    """The fields of a live object that earlier inputs had set; fields that a server or others set are left out."""
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
        """Whether the change touches ``path``: at it, below it, or by adding or deleting something above it."""
        shared = min(len(path), len(self.path))
        return self.path[:shared] == path[:shared]

    def __str__(self) -> str:
        return text(self.path)


def changes(old: Any, new: Any, path: PropertyPath = ()) -> Iterator[PropertyChange]:
    """Compare readable values; a null counts as absent, and an unknown differs from every known value."""
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


def text(path: PropertyPath) -> str:
    """Write a path as the engine does: ``spec.flavors[0]["example.com/key"]``."""
    written = ""
    for step in path:
        if isinstance(step, int):
            written += f"[{step}]"
        elif any(mark in step for mark in '."[]'):
            escaped = step.replace('"', '\\"')
            written += f'["{escaped}"]'
        else:
            written += f".{step}" if written else step
    return written
