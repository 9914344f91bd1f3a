"""The ledger of a run: what it is about to create, what it created, and the answers so far, written before each step.

One file a run, ``.verify/<environment>/<run>.jsonl``, a record a line, on the disk before the next request. A process
that is killed leaves objects behind; the next start deletes those that the ledger names, and nothing else: an object
has to have the run's label and the UID of the ledger, which the API server compares once more. Where the process was
killed before the answer came, the ledger has no UID; then the object is known by a number of 128 bits in its
annotation, which was drawn for it alone and written down before. Resources of Google Cloud carry both as labels, and
the name that Google gave them is their UID. Buckets are never created, so none is ever deleted.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
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
_OTHER_UID: Final = 409  # an object that has the name since, which is left alone
_RUN, _NUMBER = "verify-run", "verify-nonce"  # labels of resources of Google Cloud, which take no slash
_UNDECIDED: Final = (408, 499)  # a time-out and a cancellation: the creation may have gone through
_LEFT: Final = "left alone: an object of this name is there that the run did not create"


@dataclass(frozen=True, kw_only=True)
class Creation:
    """An object that the ledger names; ``uid`` is empty where the process ended before it knew the object's.

    A resource of Google Cloud has the name of its ``api`` and of the field of its ``labels``; its namespace is the
    region that is asked, its kind the path of the list and the list's field.
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
        """Return the object as messages name it."""
        if self.api:
            return self.uid or f"{self.kind.plural} of {self.kind.path.rpartition('/')[0]}"
        return (
            f"{self.kind.plural} {self.namespace}/{self.name}" if self.namespace else f"{self.kind.plural} {self.name}"
        )


@dataclass
class ObjectRecord:
    """The records of a run, read once and appended to. ``head`` says what the run is about."""

    path: Path
    head: Json
    done: dict[str, Json] = field(default_factory=dict)
    open: dict[int, Creation] = field(default_factory=dict)
    ended: bool = False
    made: int = 0

    @property
    def run(self) -> str:
        """The run's id, eight hexadecimal digits."""
        return str(self.head["run"])

    @classmethod
    def begin(cls, folder: Path, head: Mapping[str, Any]) -> ObjectRecord:
        """Return the ledger of a new run, whose file begins with the first record."""
        run = secrets.token_hex(4)
        return cls(folder / f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{run}.jsonl", {"run": run, **head})

    @classmethod
    def latest(cls, folder: Path) -> ObjectRecord | None:
        """Return the newest ledger of a folder, None where there is none. Raises UserError where it is unreadable."""
        paths = sorted(path for path in folder.glob("*.jsonl") if b"\n" in path.read_bytes())
        return cls.read(paths[-1]) if paths else None

    @classmethod
    def read(cls, path: Path) -> ObjectRecord:
        """Read a ledger; a last line that a killed process did not finish is as if it was never written."""
        try:
            lines = path.read_text(encoding="utf-8").split("\n")[:-1]
            head, *records = map(json.loads, lines)
            ledger = cls(path, head)
            for record in records:
                ledger._take(record)
            str(head["run"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UserError(f"{path} is not a ledger that verify wrote: {error}. Nothing was deleted.") from error
        return ledger

    def write(self, record: Mapping[str, Any]) -> None:
        """Append a record, on the disk when this returns. Raises UserError."""
        try:
            with self.path.open("a+b") as file:
                self._cut(file)
                if not file.tell():
                    file.write(json.dumps(self.head).encode() + b"\n")
                file.write(json.dumps(record).encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise UserError(f"{self.path} cannot be written, so nothing is created: {error.strerror}.") from error
        self._take(record)

    @staticmethod
    def _cut(file: IO[bytes]) -> None:
        """Take an unfinished last line away."""
        file.seek(0)
        whole = file.read().rfind(b"\n") + 1
        file.truncate(whole)
        file.seek(whole)

    def _take(self, record: Mapping[str, Any]) -> None:
        if "making" in record:
            number = int(record["making"])
            known = ("cluster", "namespace", "name", "nonce", "api", "labels")
            names = {key: record[key] for key in known if key in record}
            self.open[number] = Creation(number=number, kind=ApiKind(*record["kind"]), **names)
            self.made = max(self.made, number)
        elif "made" in record:
            number = int(record["made"])
            self.open[number] = Creation(**{**vars(self.open[number]), "uid": str(record["uid"])})
        elif "gone" in record:
            self.open.pop(int(record["gone"]), None)
        elif "done" in record:
            self.done[str(record["done"])] = dict(record)
        elif "ended" in record:
            self.ended = True


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Hold an environment's folder. Raises UserError where another process has it, or it cannot be written."""
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
    """Creates objects for a run and deletes them again; the ledger knows of each before its server does.

    ``google`` returns an API of the project by its name and a region.
    """

    ledger: ObjectRecord
    clusters: Mapping[str, ClusterApi]
    seconds: float = 120.0
    google: Callable[[str, str], GoogleApi] | None = None
    left: list[str] = field(default_factory=list)

    def name(self, part: str = "") -> str:
        """Return a name of this run alone."""
        return f"verify-{self.ledger.run}{f'-{part}' if part else ''}"

    def make(self, cluster: str, kind: ApiKind, obj: Json) -> Json:
        """Create an object with the run's label, and return it as the server has it. Raises ClusterError."""
        about, nonce = obj["metadata"], secrets.token_hex(16)
        namespace = about.get("namespace", "")
        labels = {**about.get("labels", {}), RUN_LABEL: self.ledger.run}
        marked = {**about, "labels": labels, "annotations": {**about.get("annotations", {}), _NONCE: nonce}}
        where = {"cluster": cluster, "kind": list(kind), "namespace": namespace, "name": about["name"], "nonce": nonce}
        create = self.clusters[cluster].create
        made = self._made(where, lambda: create(kind, namespace, {**obj, "metadata": marked}, dry_run=False))
        self.ledger.write({"made": self.ledger.made, "uid": made["metadata"]["uid"]})
        return made

    def make_in_project(self, api: str, region: str, kind: ApiKind, body: Json, labels: str) -> Json:
        """Create a resource of Google Cloud by its list, with the run's labels. Raises GoogleError."""
        assert self.google is not None
        nonce, call = secrets.token_hex(16), self.google(api, region).call
        marked = {**body, labels: {**body.get(labels, {}), _RUN: self.ledger.run, _NUMBER: nonce}}
        where = {"cluster": "", "kind": list(kind), "namespace": region, "name": "", "nonce": nonce}
        made = self._made({**where, "api": api, "labels": labels}, lambda: call("POST", kind.path, marked))
        self.ledger.write({"made": self.ledger.made, "uid": made["name"]})
        return made

    def _made(self, where: Json, create: Callable[[], Json]) -> Json:
        """Write down what is about to be created, and create it. A refusal has created nothing; a time-out may have."""
        number = self.ledger.made + 1
        self.ledger.write({"making": number, **where})
        try:
            return create()
        except ApiError as error:
            if error.status is not None and 400 <= error.status < 500 and error.status not in _UNDECIDED:
                self.ledger.write({"gone": number, "how": "refused"})
            raise

    def remove(self) -> None:
        """Delete what the ledger names, the newest first; whatever is not surely of this run stays and is in ``left``.

        Raises ApiError where a server cannot be asked; then the ledger goes on naming the object.
        """
        for creation in sorted(self.ledger.open.values(), key=lambda made: -made.number):
            how = self._removed_from_project(creation) if creation.api else self._removed(creation)
            if how.startswith("left"):
                self.left.append(f"{creation}: {how}")
            self.ledger.write({"gone": creation.number, "how": how})

    def _removed(self, creation: Creation) -> str:
        if creation.cluster not in self.clusters:
            raise ClusterError(
                f"{creation} of an earlier run is in {creation.cluster.rpartition('/')[2]}, which cannot be asked: "
                "name its kubeconfig with --kubeconfig."
            )
        api = self.clusters[creation.cluster]
        body = api.get(creation.kind, creation.namespace, creation.name)
        if body is None:
            return "not there"
        about = body["metadata"]
        own = (
            about["uid"] == creation.uid
            if creation.uid
            else (about.get("annotations") or {}).get(_NONCE) == creation.nonce
        )
        if (about.get("labels") or {}).get(RUN_LABEL) != self.ledger.run or not own:
            return _LEFT
        uid = str(about["uid"])
        try:
            api.delete(creation.kind, creation.namespace, creation.name, uid=uid)
        except ClusterError as error:
            if error.status != _OTHER_UID:
                raise

        def is_gone() -> bool:
            there = api.get(creation.kind, creation.namespace, creation.name)
            return there is None or there["metadata"]["uid"] != uid

        if not wait_for(is_gone, self.seconds):
            raise ClusterError(f"{creation} was deleted and is still there after {self.seconds:.0f} s.")
        return "deleted"

    def _removed_from_project(self, creation: Creation) -> str:
        assert self.google is not None
        api = self.google(creation.api, creation.namespace)
        if creation.uid:
            body = found(api, creation.uid)
        else:
            body = wait_for(lambda: _numbered(api, creation), min(self.seconds, 30))  # lists may lag behind
        if body is None:
            return "not there"
        if _number(body, creation) != creation.nonce or body[creation.labels].get(_RUN) != self.ledger.run:
            return _LEFT
        name = str(body["name"])
        try:
            api.call("DELETE", name)
        except GoogleError as error:
            if error.status != 404:  # somebody else was first
                raise
        if not wait_for(lambda: found(api, name) is None, self.seconds):
            raise GoogleError(f"{creation} was deleted and is still there after {self.seconds:.0f} s.")
        return "deleted"


def found(api: GoogleApi, name: str) -> Json | None:
    """Return a resource of Google Cloud, None where there is none. Raises GoogleError."""
    try:
        return api.call("GET", name)
    except GoogleError as error:
        if error.status == 404:
            return None
        raise


def _numbered(api: GoogleApi, creation: Creation) -> Json | None:
    """Return what a creation made whose answer was lost, by its number."""
    pages = (page.get(creation.kind.plural) or () for page in api.pages(creation.kind.path))
    return next((row for page in pages for row in page if _number(row, creation) == creation.nonce), None)


def _number(body: Json, creation: Creation) -> Any:
    return (body.get(creation.labels) or {}).get(_NUMBER)


def wait_for(look: Callable[[], Any], seconds: float) -> Any:
    """Return the first value of ``look`` that is true, or its last one once the time is over."""
    deadline = time.monotonic() + seconds
    while not (value := look()) and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
    return value
