"""The object record of a run: the objects that it creates, recorded before each creation, and its results so far.

A run has one file, ``.verify/<environment>/<run>.jsonl``, with one entry per line. Each entry is on the disk before the
next request. A killed process leaves objects behind. The next start deletes only objects in the file: an object must
have the run's label and the recorded UID, which the API server also compares. If the process was killed before the
response arrived, the file has no UID. The object is then identified by its nonce, an annotation of 128 random bits that
was recorded before the request. Resources of Google Cloud have the run and the nonce as labels, and the name that
Google gave them is their UID. Buckets are never created, so none is ever deleted.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, Final

from training_platform.catalog.types import Json
from training_platform.clients.failures import ApiError
from training_platform.clients.google_api import GoogleApi, GoogleError
from training_platform.clients.kubernetes_api import ApiKind, ClusterApi, ClusterError
from training_platform.config.reading.finding import UserError
from training_platform.resources.scope import MANAGED_BY

FOLDER: Final = ".verify"
RUN_LABEL: Final = f"{MANAGED_BY}/verify-run"
_NONCE: Final = f"{MANAGED_BY}/verify-nonce"
_POLL_SECONDS: Final = 0.2
_OTHER_UID: Final = 409  # the name now belongs to another object, which is kept
# Labels of resources of Google Cloud, whose keys take no slash.
_RUN_CLOUD_LABEL: Final = "verify-run"
_NONCE_CLOUD_LABEL: Final = "verify-nonce"
_MAY_HAVE_CREATED: Final = (408, 499)  # a time-out and a cancellation
_DELETED: Final = "deleted"
_MISSING: Final = "missing"
_KEPT: Final = "kept: an object of this name exists that the run did not create"


@dataclass(frozen=True, kw_only=True)
class Creation:
    """A recorded creation. ``uid`` is empty if the process ended before the server returned it.

    ``api`` and ``labels`` are set only for resources of Google Cloud: the name of the API, and the field with the
    labels. For these, the namespace is the API's region, and the kind consists of the path of the list and the field in
    its response.
    """

    number: int
    cluster: str
    kind: ApiKind
    namespace: str
    name: str
    nonce: str
    uid: str = ""
    api: str = ""
    labels: str = ""

    def __str__(self) -> str:
        """Return the object's name in messages."""
        if self.api:
            return self.uid or f"{self.kind.plural} of {self.kind.path.rpartition('/')[0]}"
        if self.namespace:
            return f"{self.kind.plural} {self.namespace}/{self.name}"
        return f"{self.kind.plural} {self.name}"


@dataclass
class ObjectRecord:
    """The entries of a run's file, which is read once and appended to. ``head``, the first entry, describes the run."""

    path: Path
    head: Json
    done: dict[str, Json] = field(default_factory=dict)
    open: dict[int, Creation] = field(default_factory=dict)
    ended: bool = False
    last_number: int = 0

    @property
    def run(self) -> str:
        """The run's id, eight hexadecimal digits."""
        return str(self.head["run"])

    @classmethod
    def begin(cls, folder: Path, head: Mapping[str, Any]) -> ObjectRecord:
        """Return the record of a new run, whose file starts with ``head``."""
        run = secrets.token_hex(4)
        began = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
        return cls(folder / f"{began}-{run}.jsonl", {"run": run, **head})

    @classmethod
    def latest(cls, folder: Path) -> ObjectRecord | None:
        """Return the newest record in a folder, or None. Raises UserError if it is unreadable."""
        paths = sorted(path for path in folder.glob("*.jsonl") if b"\n" in path.read_bytes())
        return cls.read(paths[-1]) if paths else None

    @classmethod
    def read(cls, path: Path) -> ObjectRecord:
        """Read a file, without the last line if a killed process did not complete it."""
        try:
            lines = path.read_text(encoding="utf-8").split("\n")[:-1]
            head, *entries = map(json.loads, lines)
            record = cls(path, head)
            for entry in entries:
                record._apply(entry)
            str(head["run"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UserError(f"{path} is not a record that verify wrote: {error}. Nothing was deleted.") from error
        return record

    def write(self, entry: Mapping[str, Any]) -> None:
        """Append an entry. It is on the disk when this method returns. Raises UserError."""
        try:
            with self.path.open("a+b") as file:
                self._cut_unfinished_line(file)
                if not file.tell():
                    file.write(json.dumps(self.head).encode() + b"\n")
                file.write(json.dumps(entry).encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise UserError(f"{self.path} cannot be written, so nothing is created: {error.strerror}.") from error
        self._apply(entry)

    @staticmethod
    def _cut_unfinished_line(file: IO[bytes]) -> None:
        file.seek(0)
        whole = file.read().rfind(b"\n") + 1
        file.truncate(whole)
        file.seek(whole)

    def _apply(self, entry: Mapping[str, Any]) -> None:
        if "making" in entry:
            number = int(entry["making"])
            fields = ("cluster", "namespace", "name", "nonce", "api", "labels")
            values = {field: entry[field] for field in fields if field in entry}
            self.open[number] = Creation(number=number, kind=ApiKind(*entry["kind"]), **values)
            self.last_number = max(self.last_number, number)
        elif "made" in entry:
            number = int(entry["made"])
            self.open[number] = replace(self.open[number], uid=str(entry["uid"]))
        elif "gone" in entry:
            self.open.pop(int(entry["gone"]), None)
        elif "done" in entry:
            self.done[str(entry["done"])] = dict(entry)
        elif "ended" in entry:
            self.ended = True


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock an environment's folder. Raises UserError if another process holds the lock, or it is not writable."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "lock").open("a+", encoding="utf-8") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise UserError(f"another verify of {folder.name} is running in this clone: wait for it.") from error
            yield
    except OSError as error:
        raise UserError(f"{folder} cannot be written: {error.strerror}.") from error


@dataclass
class Maker:
    """Creates objects for a run and deletes them. Each object is recorded before its server gets the request.

    ``google`` returns an API of the project, given its name and a region. ``kept`` names the objects that were not
    deleted, with the reason.
    """

    object_record: ObjectRecord
    clusters: Mapping[str, ClusterApi]
    seconds: float = 120.0
    google: Callable[[str, str], GoogleApi] | None = None
    kept: list[str] = field(default_factory=list)

    def name(self, suffix: str = "") -> str:
        """Return a name that is unique to this run."""
        return f"verify-{self.object_record.run}{f'-{suffix}' if suffix else ''}"

    def make(self, cluster: str, kind: ApiKind, obj: Json) -> Json:
        """Create an object with the run's label, and return the stored object. Raises ClusterError."""
        metadata = obj["metadata"]
        namespace = metadata.get("namespace", "")
        nonce = secrets.token_hex(16)
        labels = {**metadata.get("labels", {}), RUN_LABEL: self.object_record.run}
        annotations = {**metadata.get("annotations", {}), _NONCE: nonce}
        marked = {**obj, "metadata": {**metadata, "labels": labels, "annotations": annotations}}
        entry = {
            "cluster": cluster,
            "kind": list(kind),
            "namespace": namespace,
            "name": metadata["name"],
            "nonce": nonce,
        }
        create = self.clusters[cluster].create
        created = self._create(entry, lambda: create(kind, namespace, marked, dry_run=False))
        self.object_record.write({"made": self.object_record.last_number, "uid": created["metadata"]["uid"]})
        return created

    def make_in_project(self, api: str, region: str, kind: ApiKind, body: Json, labels: str) -> Json:
        """Create a resource of Google Cloud in its list, with the run's labels. Raises GoogleError."""
        nonce = secrets.token_hex(16)
        all_labels = {
            **body.get(labels, {}),
            _RUN_CLOUD_LABEL: self.object_record.run,
            _NONCE_CLOUD_LABEL: nonce,
        }
        marked = {**body, labels: all_labels}
        entry = {
            "cluster": "",
            "kind": list(kind),
            "namespace": region,
            "name": "",
            "nonce": nonce,
            "api": api,
            "labels": labels,
        }
        google_api = self._google_api(api, region)
        created = self._create(entry, lambda: google_api.call("POST", kind.path, marked))
        self.object_record.write({"made": self.object_record.last_number, "uid": created["name"]})
        return created

    def _google_api(self, api: str, region: str) -> GoogleApi:
        assert self.google is not None
        return self.google(api, region)

    def _create(self, entry: Json, create: Callable[[], Json]) -> Json:
        """Record a creation, then request it. After a refusal nothing exists; after a time-out the object may exist."""
        number = self.object_record.last_number + 1
        self.object_record.write({"making": number, **entry})
        try:
            return create()
        except ApiError as error:
            refused = error.status is not None and 400 <= error.status < 500
            if refused and error.status not in _MAY_HAVE_CREATED:
                self.object_record.write({"gone": number, "how": "refused"})
            raise

    def remove(self) -> None:
        """Delete the recorded objects, newest first. Objects that may not belong to this run are added to ``kept``.

        Raises ApiError if a server does not answer. The object then stays in the record.
        """
        for number in sorted(self.object_record.open, reverse=True):
            creation = self.object_record.open[number]
            remove = self._remove_from_project if creation.api else self._remove_from_cluster
            outcome = remove(creation)
            if outcome == _KEPT:
                self.kept.append(f"{creation}: {outcome}")
            self.object_record.write({"gone": number, "how": outcome})

    def _remove_from_cluster(self, creation: Creation) -> str:
        if creation.cluster not in self.clusters:
            raise ClusterError(
                f"{creation} of an earlier run is in {creation.cluster.rpartition('/')[2]}, which cannot be reached: "
                "name its kubeconfig with --kubeconfig."
            )
        api = self.clusters[creation.cluster]
        body = api.get(creation.kind, creation.namespace, creation.name)
        if body is None:
            return _MISSING
        if not self._created_object(body["metadata"], creation):
            return _KEPT
        uid = str(body["metadata"]["uid"])
        try:
            api.delete(creation.kind, creation.namespace, creation.name, uid=uid)
        except ClusterError as error:
            if error.status != _OTHER_UID:
                raise

        def is_gone() -> bool:
            remaining = api.get(creation.kind, creation.namespace, creation.name)
            return remaining is None or remaining["metadata"]["uid"] != uid

        if not wait_for(is_gone, self.seconds):
            raise ClusterError(f"{creation} was deleted but still exists after {self.seconds:.0f} s.")
        return _DELETED

    def _created_object(self, metadata: Json, creation: Creation) -> bool:
        """Return True if this run created an object: it has the label, and the recorded UID (or else the nonce)."""
        if (metadata.get("labels") or {}).get(RUN_LABEL) != self.object_record.run:
            return False
        if creation.uid:
            return bool(metadata["uid"] == creation.uid)
        return (metadata.get("annotations") or {}).get(_NONCE) == creation.nonce

    def _remove_from_project(self, creation: Creation) -> str:
        api = self._google_api(creation.api, creation.namespace)
        if creation.uid:
            body = get_resource(api, creation.uid)
        else:
            body = wait_for(lambda: _resource_by_nonce(api, creation), min(self.seconds, 30))  # lists may lag behind
        if body is None:
            return _MISSING
        if _nonce(body, creation) != creation.nonce:
            return _KEPT
        if body[creation.labels].get(_RUN_CLOUD_LABEL) != self.object_record.run:
            return _KEPT
        name = str(body["name"])
        try:
            api.call("DELETE", name)
        except GoogleError as error:
            if error.status != 404:  # somebody else deleted it first
                raise
        if not wait_for(lambda: get_resource(api, name) is None, self.seconds):
            raise GoogleError(f"{creation} was deleted but still exists after {self.seconds:.0f} s.")
        return _DELETED


def get_resource(api: GoogleApi, name: str) -> Json | None:
    """Return a resource of Google Cloud, or None if it does not exist. Raises GoogleError."""
    try:
        return api.call("GET", name)
    except GoogleError as error:
        if error.status == 404:
            return None
        raise


def _resource_by_nonce(api: GoogleApi, creation: Creation) -> Json | None:
    """Return the resource of a creation whose response was lost, or None."""
    for page in api.pages(creation.kind.path):
        resources: list[Json] = page.get(creation.kind.plural) or []
        for resource in resources:
            if _nonce(resource, creation) == creation.nonce:
                return resource
    return None


def _nonce(body: Json, creation: Creation) -> Any:
    return (body.get(creation.labels) or {}).get(_NONCE_CLOUD_LABEL)


def wait_for(look: Callable[[], Any], seconds: float) -> Any:
    """Call ``look`` until it returns a true value, and return that, or the last value when the time is over."""
    deadline = time.monotonic() + seconds
    while not (value := look()) and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
    return value
